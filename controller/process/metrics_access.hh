// This decides who may use the metrics server (`metrics.auth.enabled`).
#pragma once

#include <string>
#include <unordered_map>

#include "kube/client/api_client.hh"
#include "kube/client/semaphore.hh"
#include "kube/model/secret.hh"

namespace trainer {

// A request needs this right: a rule with nonResourceURLs [path] and verbs [verb].
struct NonResourceAccess {
  std::string verb;  // the method in lower case, which is the API server's form
  std::string path;
};

// Checks a bearer token with a TokenReview, and with a SubjectAccessReview that its user has the
// right to the path (controller-runtime, pkg/metrics/filters: WithAuthenticationAndAuthorization).
// Allowed tokens are cached for a minute, refused ones for ten seconds; at most four checks are in
// flight. Concurrency: the io_context thread of `client`.
class MetricsAccess {
 public:
  explicit MetricsAccess(kube::ApiClient& client);

  // Errors: kUnauthorized without a valid token, kForbidden without the right; any error with an
  // HTTP status, and kTimeout, if the reviews themselves failed.
  kube::Task<kube::Result<void>> check(kube::Secret<std::string> token, NonResourceAccess access);

 private:
  struct Known {
    kube::Result<void> result;
    kube::Clock::Steady until;
  };
  kube::Task<kube::Result<void>> review(kube::Secret<std::string> token, NonResourceAccess access);
  const Known* recall(const std::string& digest) const;
  void remember(std::string digest, const kube::Result<void>& result);

  kube::ApiClient& client_;
  kube::Semaphore reviews_;
  std::unordered_map<std::string, Known> known_;  // by the SHA-256 of token and access
};

}  // namespace trainer
