#include "local/server/pod_tokens.hh"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"

namespace trainer {

using kube::Json;
using kube::ObjectKey;
using kube::server::Response;

namespace {

constexpr std::string_view kAccountsPath = "/api/v1/namespaces/";
constexpr const char* kIssuer = "https://trainer.local";
constexpr std::size_t kMaxToken = 8'192;
constexpr std::size_t kMaxAudiences = 8;
constexpr std::size_t kMaxAudience = 1'024;
// The shortest time and the usual one are those of kube-apiserver (kubernetes, pkg/apis/
// authentication/validation and defaults).
constexpr std::int64_t kShortest = 600;
constexpr std::int64_t kUsual = 3'600;
constexpr std::int64_t kLongest = 86'400;
constexpr kube::JsonLimits kClaimsOfPod{.max_values = 100};

// The alphabet is that of URLs, without padding (RFC 7515).
std::string encode_url(std::string_view data) {
  std::string text = kube::base64_encode(data);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  while (text.ends_with('=')) text.pop_back();
  return text;
}

std::optional<std::string> decode_url(std::string_view data) {
  std::string text(data);
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  text.append((4 - text.size() % 4) % 4, '=');
  return kube::base64_decode(text);
}

std::string hmac(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> buffer;
  unsigned size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), buffer.data(),
           &size) == nullptr)
    throw std::runtime_error("OpenSSL offers no HMAC; is a restricted provider loaded?");
  return std::string(reinterpret_cast<const char*>(buffer.data()), size);
}

Response refuse_request(std::string_view why) {
  return kube::server::failure(422, "Invalid", fmt::format("TokenRequest: {}", why));
}

bool are_audiences(const Json::Array& audiences) {
  return !audiences.empty() && audiences.size() <= kMaxAudiences &&
         std::ranges::all_of(audiences, [](const Json& each) {
           return each.is_string() && !each.as_string().empty() &&
                  each.as_string().size() <= kMaxAudience;
         });
}

Json claims_for(const ObjectKey& account, const Json& pod, const Json::Array& audiences,
                kube::Time now, std::int64_t seconds) {
  const Json& meta = pod.get("metadata");
  Json of_pod = Json::object({{"name", meta.get("name")}, {"uid", meta.get("uid")}});
  Json bound = Json::object({{"namespace", account.ns}, {"pod", std::move(of_pod)}});
  bound.set("serviceaccount", Json::object({{"name", account.name}}));
  return Json::object(
      {{"aud", audiences},
       {"exp", now.seconds() + seconds},
       {"iat", now.seconds()},
       {"iss", kIssuer},
       {"kubernetes.io", std::move(bound)},
       {"sub", fmt::format("system:serviceaccount:{}:{}", account.ns, account.name)}});
}

// The names of the extra values are those of kubernetes, pkg/serviceaccount.
Json user_of_claims(const Json& claims) {
  const Json& bound = claims.get("kubernetes.io");
  const Json& pod = bound.get("pod");
  Json groups =
      Json::array({"system:serviceaccounts",
                   fmt::format("system:serviceaccounts:{}", bound.get_string("namespace")),
                   "system:authenticated"});
  Json extra =
      Json::object({{"authentication.kubernetes.io/pod-name", Json::array({pod.get("name")})},
                    {"authentication.kubernetes.io/pod-uid", Json::array({pod.get("uid")})}});
  return Json::object({{"username", claims.get("sub")},
                       {"groups", std::move(groups)},
                       {"extra", std::move(extra)}});
}

Json unknown(std::string why) {
  return Json::object({{"authenticated", false}, {"error", std::move(why)}});
}

}  // namespace

PodTokens::PodTokens(const kube::Secret<std::string>& api_token,
                     const kube::server::ObjectStore& store)
    : key_(hmac(api_token.reveal(), "tokens of pods")), store_(store) {}

std::optional<ObjectKey> PodTokens::account_of(std::string_view target) {
  target = target.substr(0, target.find('?'));
  constexpr std::string_view kAccounts = "/serviceaccounts/";
  constexpr std::string_view kToken = "/token";
  if (!target.starts_with(kAccountsPath) || !target.ends_with(kToken)) return std::nullopt;
  target.remove_prefix(kAccountsPath.size());
  target.remove_suffix(kToken.size());
  const auto at = target.find(kAccounts);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const std::string_view name = target.substr(at + kAccounts.size());
  const std::string_view ns = target.substr(0, at);
  if (name.empty() || name.find('/') != name.npos || ns.find('/') != ns.npos) return std::nullopt;
  return ObjectKey(std::string(ns), std::string(name));
}

Response PodTokens::issue(const ObjectKey& account, const Json& request, kube::Time now) const {
  const Json& spec = request.get("spec");
  const Json::Array& audiences = spec.get_array("audiences");
  if (!are_audiences(audiences))
    return refuse_request(
        "spec.audiences: state whom the token is for: in local mode the API "
        "itself accepts no token of a pod");
  const Json& bound = spec.get("boundObjectRef");
  const std::string name(bound.get_string("name"));
  if (bound.get_string("kind") != kube::kPods.kind || name.empty())
    return refuse_request("spec.boundObjectRef: name a pod: local mode makes tokens of pods only");
  const auto pod = store_.find(kube::kPods, {account.ns, name});
  if (!pod || pod->get("metadata").get("uid") != bound.get("uid"))
    return kube::server::failure(404, "NotFound", fmt::format("pods \"{}\" not found", name));
  if (pod->get("spec").get_string("serviceAccountName", "default") != account.name)
    return refuse_request(
        fmt::format("spec.boundObjectRef: pod {} has another ServiceAccount", name));
  const std::int64_t seconds =
      std::clamp(spec.get_int("expirationSeconds", kUsual), kShortest, kLongest);
  const Json header = Json::object({{"alg", "HS256"}, {"typ", "JWT"}});
  const std::string text =
      encode_url(kube::print_json(header)) + "." +
      encode_url(kube::print_json(claims_for(account, *pod, audiences, now, seconds)));
  Json answer = request;
  answer.set(
      "status",
      Json::object({{"token", text + "." + sign(text)},
                    {"expirationTimestamp", (now + std::chrono::seconds(seconds)).to_string()}}));
  return kube::server::json_response(201, answer);
}

std::string PodTokens::sign(std::string_view text) const {
  return encode_url(hmac(key_.reveal(), text));
}

std::optional<Json> PodTokens::read(std::string_view token) const {
  const auto last = token.rfind('.');
  if (token.size() > kMaxToken || last == token.npos) return std::nullopt;
  const std::string_view text = token.substr(0, last);
  const std::string_view signature = token.substr(last + 1);
  const std::string expected = sign(text);
  if (signature.size() != expected.size() ||
      CRYPTO_memcmp(signature.data(), expected.data(), expected.size()) != 0)
    return std::nullopt;
  const auto claims = decode_url(text.substr(std::min(text.find('.'), text.size() - 1) + 1));
  auto read = claims ? kube::parse_json(*claims, kClaimsOfPod) : kube::Result<Json>(Json());
  if (!read || !read->is_object()) return std::nullopt;
  return std::move(*read);
}

std::string PodTokens::problem_of(const Json& claims, kube::Time now) const {
  if (claims.get_int("exp") <= now.seconds()) return "the token has expired";
  const Json& bound = claims.get("kubernetes.io");
  const Json& named = bound.get("pod");
  const auto pod = store_.find(kube::kPods, {std::string(bound.get_string("namespace")),
                                             std::string(named.get_string("name"))});
  if (!pod || pod->get("metadata").get("uid") != named.get("uid")) return "the token's pod is gone";
  return "";
}

std::optional<Json> PodTokens::review(const Json& spec, kube::Time now) const {
  const auto claims = read(spec.get_string("token"));
  if (!claims) return std::nullopt;
  if (std::string problem = problem_of(*claims, now); !problem.empty())
    return unknown(std::move(problem));
  // Without audiences the review is for the API itself.
  Json::Array common;
  const Json::Array& own = claims->get_array("aud");
  for (const Json& each : spec.get_array("audiences"))
    if (std::ranges::count(own, each) > 0) common.push_back(each);
  if (common.empty()) return unknown("the token is for another audience");
  return Json::object({{"authenticated", true},
                       {"user", user_of_claims(*claims)},
                       {"audiences", std::move(common)}});
}

}  // namespace trainer
