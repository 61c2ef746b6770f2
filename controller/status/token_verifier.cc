#include "controller/status/token_verifier.hh"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "api/jobset.hh"
#include "api/trainjob.hh"
#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "runtimes/views/labels.hh"
#include "runtimes/views/pod.hh"

namespace trainer {

using kube::Json;
using kube::ObjectKey;
using kube::Result;
using kube::Task;

namespace {

// No caller trusts a result for longer.
constexpr auto kKeepFor = std::chrono::minutes(30);
constexpr std::size_t kMaxTrusted = 20'000;
constexpr std::size_t kMaxReviews = 4;  // in flight
// A client that waits longer gets an error, and reports again.
constexpr auto kMaxWait = std::chrono::seconds(8);
// The API server's clock may be behind this process's by this much.
constexpr std::int64_t kClockSkew = 60;  // seconds
// These limits are for unverified claims of any client; a token of the API server has some thirty
// values.
constexpr kube::JsonLimits kClaimLimits{.max_values = 1'000};
constexpr std::string_view kPodName = "authentication.kubernetes.io/pod-name";
constexpr std::string_view kPodUid = "authentication.kubernetes.io/pod-uid";

tl::unexpected<kube::Error> forbid(std::string why) {
  return kube::fail(kube::ErrorCode::kForbidden, std::move(why));
}

std::optional<Json> read_claims(std::string_view token) {
  const auto first = token.find('.');
  const auto second = first == token.npos ? first : token.find('.', first + 1);
  if (second == token.npos || token.find('.', second + 1) != token.npos) return std::nullopt;
  std::string text(token.substr(first + 1, second - first - 1));
  // The text is base64url, without padding.
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  text.append((4 - text.size() % 4) % 4, '=');
  const auto decoded = kube::base64_decode(text);
  if (!decoded) return std::nullopt;
  auto claims = kube::parse_json(*decoded, kClaimLimits);
  if (!claims || !claims->is_object()) return std::nullopt;
  return std::move(*claims);
}

// This is the pod that a token is bound to, from the TokenReview.
struct BoundPod {
  ObjectKey key;
  std::string uid;
};

std::string first_extra(const Json& user, std::string_view name) {
  const Json::Array& values = user.get("extra").get_array(name);
  return values.empty() || !values.front().is_string() ? std::string() : values.front().as_string();
}

Result<BoundPod> read_review(const Json& status, const ObjectKey& trainjob,
                             const std::string& audience) {
  if (!status.get_bool("authenticated")) return forbid("the token is not valid");
  const Json::Array& audiences = status.get_array("audiences");
  if (std::find(audiences.begin(), audiences.end(), Json(audience)) == audiences.end()) {
    return forbid("the token is for another audience");
  }
  const Json* user = status.find("user");
  if (user == nullptr) return forbid("the token names no user");
  const std::string account = fmt::format("system:serviceaccount:{}:", trainjob.ns);
  if (!user->get_string("username").starts_with(account))
    return forbid("the token is of another namespace");
  BoundPod pod{{trainjob.ns, first_extra(*user, kPodName)}, first_extra(*user, kPodUid)};
  if (pod.key.name.empty() || pod.uid.empty()) return forbid("the token is not bound to a pod");
  return pod;
}

Result<void> check_pod(const Json& object, const BoundPod& pod, const ObjectKey& trainjob) {
  const auto meta = kube::ObjectMeta::of(object);
  if (meta.uid != pod.uid) return forbid("the token's pod is gone");
  const auto label = meta.labels.find(jobset::kJobSetNameKey);
  const kube::OwnerReference* owner = meta.controller();
  if (label == meta.labels.end() || label->second != trainjob.name || owner == nullptr ||
      owner->kind != kube::kJobs.kind) {
    return forbid(fmt::format("pod {} is none of the TrainJob's", pod.key.to_string()));
  }
  return {};
}

}  // namespace

std::string status_audience(const ObjectKey& trainjob) {
  return fmt::format("trainer.kubeflow.org/v1alpha1/namespaces/{}/trainjobs/{}/status", trainjob.ns,
                     trainjob.name);
}

std::string bearer_token(std::string_view authorization) {
  std::vector<std::string> words;
  const std::string_view text = boost::algorithm::trim_copy(authorization);
  boost::algorithm::split(words, text, boost::algorithm::is_space(),
                          boost::algorithm::token_compress_on);
  return words.size() == 2 && boost::algorithm::iequals(words[0], "bearer") ? words[1] : "";
}

bool is_token_refused(const kube::Error& error) {
  return error.status == 0 && (error.code == kube::ErrorCode::kUnauthorized ||
                               error.code == kube::ErrorCode::kForbidden);
}

std::string reason_not_to_review(std::string_view token, const std::string& audience,
                                 kube::Time now) {
  const auto claims = read_claims(token);
  if (!claims) return "the token is no JWT";
  // A single audience may be a string instead of a list (RFC 7519, 4.1.3).
  const Json::Array& audiences = claims->get_array("aud");
  const bool is_listed =
      std::find(audiences.begin(), audiences.end(), Json(audience)) != audiences.end();
  if (!is_listed && claims->get_string("aud") != audience)
    return "the token is for another audience";
  const Json* end = claims->find("exp");
  const bool has_ended =
      end != nullptr && end->is_int() && end->as_int() < now.seconds() - kClockSkew;
  return has_ended ? "the token has expired" : "";
}

TokenVerifier::TokenVerifier(kube::ApiClient& client) : client_(client), reviews_(kMaxReviews) {}

const TokenVerifier::Trusted* TokenVerifier::find_trusted(const std::string& digest,
                                                          std::chrono::seconds trust_for) const {
  const auto at = trusted_.find(digest);
  if (at == trusted_.end()) return nullptr;
  return client_.clock().steady() - at->second.since < trust_for ? &at->second : nullptr;
}

Task<Result<VerifiedPod>> TokenVerifier::verify(kube::Secret<std::string> token, ObjectKey trainjob,
                                                std::chrono::seconds trust_for) {
  if (token.reveal().empty()) co_return forbid("there is no bearer token");
  const std::string audience = status_audience(trainjob);
  std::string digest = kube::sha256_raw(token.reveal() + '\0' + audience);
  if (const Trusted* known = find_trusted(digest, trust_for)) co_return known->pod;
  std::string reason = reason_not_to_review(token.reveal(), audience, client_.clock().now());
  if (!reason.empty()) co_return forbid(std::move(reason));
  const auto permit = co_await reviews_.acquire(std::chrono::steady_clock::now() + kMaxWait);
  if (!permit) co_return tl::unexpected(permit.error());
  // Another report with the same token may have been verified meanwhile.
  if (const Trusted* known = find_trusted(digest, trust_for)) co_return known->pod;
  const auto since = client_.clock().steady();
  auto verified = co_await pod_by_token(std::move(token), std::move(trainjob));
  if (verified) remember(std::move(digest), {since, *verified});
  co_return verified;
}

Task<Result<Json>> review_token(kube::ApiClient& client, kube::Secret<std::string> token,
                                std::string audience) {
  Json spec = Json::object();
  spec.set("token", token.reveal());
  if (!audience.empty()) spec["audiences"].push_back(audience);
  Json body = Json::object();
  body.set("apiVersion", "authentication.k8s.io/v1")
      .set("kind", "TokenReview")
      .set("spec", std::move(spec));
  const auto review =
      co_await client.post("/apis/authentication.k8s.io/v1/tokenreviews", std::move(body));
  if (!review) co_return tl::unexpected(review.error().at("TokenReview"));
  co_return review->get("status");
}

Task<Result<VerifiedPod>> TokenVerifier::pod_by_token(kube::Secret<std::string> token,
                                                      ObjectKey trainjob) {
  const std::string audience = status_audience(trainjob);
  const auto status = co_await review_token(client_, std::move(token), audience);
  if (!status) co_return tl::unexpected(status.error());
  const auto pod = read_review(*status, trainjob, audience);
  if (!pod) co_return tl::unexpected(pod.error());
  auto object = co_await client_.get(kube::kPods, pod->key);
  if (!object) {
    if (object.error().code == kube::ErrorCode::kNotFound)
      co_return forbid("the token's pod is gone");
    co_return tl::unexpected(object.error().at("Pod " + pod->key.to_string()));
  }
  if (auto checked = check_pod(*object, *pod, trainjob); !checked)
    co_return tl::unexpected(checked.error());
  VerifiedPod verified;
  const auto meta = kube::ObjectMeta::of(*object);
  verified.name = meta.name;
  verified.uid = meta.uid;
  verified.node = object->get("spec").get_string("nodeName");
  if (const auto view = view_pod(*object)) verified.restarts = view->attempt;
  const auto threshold = meta.annotations.find(kHangThresholdKey);
  if (threshold != meta.annotations.end()) verified.hang_threshold = threshold->second;
  auto owner = co_await uid_of_owner(std::move(*object), std::move(trainjob));
  if (!owner) co_return tl::unexpected(owner.error());
  verified.trainjob_uid = std::move(*owner);
  co_return verified;
}

// The owner is found by the JobSet with the TrainJob's name. A pod may be left from an earlier
// TrainJob and JobSet of this name.
Task<Result<std::string>> TokenVerifier::uid_of_owner(Json pod, ObjectKey trainjob) {
  const auto jobset = co_await client_.get(kJobSets, trainjob);
  if (!jobset) {
    if (jobset.error().code == kube::ErrorCode::kNotFound)
      co_return forbid("the JobSet of the token's pod is gone");
    co_return tl::unexpected(jobset.error().at("JobSet " + trainjob.to_string()));
  }
  const auto meta = kube::ObjectMeta::of(*jobset);
  const auto labels = kube::ObjectMeta::of(pod).labels;
  // An older upstream JobSet controller does not set this label.
  const auto label = labels.find(jobset::kJobSetUidKey);
  if (label != labels.end() && label->second != meta.uid)
    co_return forbid("the token's pod is of a former JobSet");
  const kube::OwnerReference* owner = meta.controller();
  if (owner == nullptr || owner->kind != kTrainJobs.kind || owner->name != trainjob.name)
    co_return forbid("the JobSet of the token's pod is none of the TrainJob's");
  co_return owner->uid;
}

void TokenVerifier::remember(std::string digest, Trusted trusted) {
  if (trusted_.size() >= kMaxTrusted) {
    const auto now = client_.clock().steady();
    std::erase_if(trusted_,
                  [now](const auto& entry) { return now - entry.second.since >= kKeepFor; });
    if (trusted_.size() >= kMaxTrusted) trusted_.clear();
  }
  trusted_[std::move(digest)] = std::move(trusted);
}

}  // namespace trainer
