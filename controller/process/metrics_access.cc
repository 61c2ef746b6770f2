#include "controller/process/metrics_access.hh"

#include <utility>

#include "controller/status/token_verifier.hh"
#include "kube/model/digest.hh"
#include "kube/model/json.hh"

namespace trainer {

using kube::ErrorCode;
using kube::Json;
using kube::Result;
using kube::Task;

namespace {

constexpr std::chrono::seconds kAllowedFor{60};
constexpr std::chrono::seconds kRefusedFor{10};
constexpr std::chrono::seconds kMaxWait{5};
constexpr std::size_t kMaxKnown = 1'000;
constexpr std::size_t kMaxReviews = 4;  // reviews in flight

// Returns the SubjectAccessReview of the user that a TokenReview names.
Json access_of(const Json& user, const NonResourceAccess& access) {
  Json spec = Json::object(
      {{"user", user.get_string("username")},
       {"nonResourceAttributes", Json::object({{"path", access.path}, {"verb", access.verb}})}});
  for (const char* name : {"uid", "groups", "extra"}) {
    if (const Json* value = user.find(name)) spec.set(name, *value);
  }
  return Json::object({{"apiVersion", "authorization.k8s.io/v1"},
                       {"kind", "SubjectAccessReview"},
                       {"spec", std::move(spec)}});
}

}  // namespace

MetricsAccess::MetricsAccess(kube::ApiClient& client) : client_(client), reviews_(kMaxReviews) {}

Task<Result<void>> MetricsAccess::check(kube::Secret<std::string> token, NonResourceAccess access) {
  if (token.reveal().empty())
    co_return kube::fail(ErrorCode::kUnauthorized, "a bearer token is required");
  std::string digest = kube::sha256_raw(token.reveal() + "\n" + access.verb + " " + access.path);
  if (const Known* known = recall(digest)) co_return known->result;
  const auto permit = co_await reviews_.acquire(std::chrono::steady_clock::now() + kMaxWait);
  if (!permit) co_return tl::unexpected(permit.error());
  // Another request of the same kind may have been checked meanwhile.
  if (const Known* known = recall(digest)) co_return known->result;
  const auto result = co_await review(std::move(token), std::move(access));
  if (result || is_token_refused(result.error())) remember(std::move(digest), result);
  co_return result;
}

Task<Result<void>> MetricsAccess::review(kube::Secret<std::string> token,
                                         NonResourceAccess access) {
  const auto status = co_await review_token(client_, std::move(token), "");
  if (!status) co_return tl::unexpected(status.error());
  const Json* user = status->find("user");
  if (user == nullptr || !status->get_bool("authenticated"))
    co_return kube::fail(ErrorCode::kUnauthorized, "the token is not valid");
  Json body = access_of(*user, access);
  const auto answer =
      co_await client_.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", std::move(body));
  if (!answer) co_return tl::unexpected(answer.error().at("SubjectAccessReview"));
  if (answer->get("status").get_bool("allowed")) co_return Result<void>();
  co_return kube::fail(
      ErrorCode::kForbidden,
      "{} may not {} {}: a ClusterRole with nonResourceURLs [{}] and verbs [{}] allows it",
      user->get_string("username"), access.verb, access.path, access.path, access.verb);
}

const MetricsAccess::Known* MetricsAccess::recall(const std::string& digest) const {
  const auto at = known_.find(digest);
  return at == known_.end() || at->second.until <= client_.clock().steady() ? nullptr : &at->second;
}

void MetricsAccess::remember(std::string digest, const Result<void>& result) {
  // Tokens of any client are refused: they must not push out the allowed ones.
  if (known_.size() >= kMaxKnown)
    std::erase_if(known_, [](const auto& each) { return !each.second.result; });
  if (known_.size() >= kMaxKnown) known_.clear();
  const auto until = client_.clock().steady() + (result ? kAllowedFor : kRefusedFor);
  known_.insert_or_assign(std::move(digest), Known{result, until});
}

}  // namespace trainer
