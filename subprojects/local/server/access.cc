#include "local/server/access.hh"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <array>
#include <charconv>
#include <vector>

#include "kube/client/openssl.hh"
#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"

namespace trainer {

using kube::Json;
using kube::Result;

namespace {

constexpr const char* kAccessFile = "access.json";
constexpr std::string_view kBearer = "Bearer ";

const std::vector<std::string>& hosts() {
  static const std::vector<std::string> kHosts{"127.0.0.1", "localhost"};
  return kHosts;
}

Result<std::string> make_token() {
  std::array<unsigned char, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    return kube::openssl_error("cannot make a token");
  const std::string_view raw(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return kube::sha256_hex(raw);
}

Result<Access> read_access(const std::string& text) {
  const auto kept = kube::parse_json(text);
  if (!kept) return tl::unexpected(kept.error());
  auto certificates = kube::read_certificate_secret(*kept, true);
  if (!certificates) return tl::unexpected(certificates.error());
  Access access;
  access.certificates = std::move(*certificates);
  access.token = kube::Secret<std::string>(std::string(kept->get_string("token")));
  if (access.token.reveal().empty())
    return kube::fail(kube::ErrorCode::kInvalid, "there is no \"token\"");
  return access;
}

bool is_equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Json one_named(std::string_view name, std::string_view member, Json value) {
  return Json::array({Json::object({{"name", name}, {member, std::move(value)}})});
}

}  // namespace

bool Access::is_granted(std::string_view authorization) const {
  if (!authorization.starts_with(kBearer)) return false;
  return is_equal(authorization.substr(kBearer.size()), token.reveal());
}

kube::server::Response Access::review(const Json& token_review) const {
  Json answer = token_review;
  const bool is_known = is_equal(token_review.get("spec").get_string("token"), token.reveal());
  Json status = Json::object({{"authenticated", is_known}});
  if (is_known) {
    Json groups = Json::array({"system:masters", "system:authenticated"});
    status.set("user", Json::object({{"username", kLocalUser}, {"groups", std::move(groups)}}));
  } else {
    status.set("error", "the token is not the one of this machine's local mode");
  }
  answer.set("status", std::move(status));
  return kube::server::json_response(201, answer);
}

Result<Access> load_access(const StateDirectory& state, kube::Time now) {
  const std::string file = (state.path() / kAccessFile).string();
  Access access;
  const auto kept = state.folder().read(kAccessFile);
  if (!kept && kept.error().code != kube::ErrorCode::kNotFound) return tl::unexpected(kept.error());
  if (kept) {
    auto read = read_access(*kept);
    if (!read) return tl::unexpected(read.error().at(file));
    if (kube::reason_to_renew(read->certificates, hosts(), now).empty()) return read;
    access = std::move(*read);
  } else {
    auto token = make_token();
    if (!token) return tl::unexpected(token.error());
    access.token = kube::Secret<std::string>(std::move(*token));
  }
  auto made = kube::make_certificates(hosts(), now, &access.certificates);
  if (!made) return tl::unexpected(made.error());
  access.certificates = std::move(*made);
  const Json stored = Json::object({{"token", access.token.reveal()},
                                    {"data", kube::certificate_secret_data(access.certificates)}});
  if (auto written = state.folder().replace(kAccessFile, kube::print_json(stored)); !written)
    return tl::unexpected(written.error());
  return access;
}

unsigned short kept_port(const StateDirectory& state, const char* file) {
  const std::string text = state.folder().read(file).value_or("");
  unsigned short port = 0;
  std::from_chars(text.data(), text.data() + text.size(), port);
  return port;
}

Result<void> keep_port(const StateDirectory& state, unsigned short port, const char* file) {
  return state.folder().replace(file, std::to_string(port) + "\n");
}

std::string kubeconfig_of(const Access& access, const std::string& address) {
  const std::string ca = kube::base64_encode(access.certificates.ca_certificate);
  Json cluster = Json::object({{"server", address}, {"certificate-authority-data", ca}});
  Json user = Json::object({{"token", access.token.reveal()}});
  Json context =
      Json::object({{"cluster", kLocalUser}, {"user", kLocalUser}, {"namespace", "default"}});
  return kube::print_yaml(
      Json::object({{"apiVersion", "v1"},
                    {"kind", "Config"},
                    {"clusters", one_named(kLocalUser, "cluster", std::move(cluster))},
                    {"users", one_named(kLocalUser, "user", std::move(user))},
                    {"contexts", one_named(kLocalUser, "context", std::move(context))},
                    {"current-context", kLocalUser}}));
}

}  // namespace trainer
