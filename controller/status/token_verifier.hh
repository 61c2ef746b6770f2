// Authentication of progress reports: a TrainJob's own pods, with a token for its audience.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <unordered_map>

#include "kube/client/api_client.hh"
#include "kube/client/semaphore.hh"
#include "kube/model/secret.hh"
#include "kube/model/time.hh"

namespace trainer {

// "trainer.kubeflow.org/v1alpha1/namespaces/NS/trainjobs/NAME/status": the audience that the
// pipeline asks for in the pod's token.
std::string status_audience(const kube::ObjectKey& trainjob);

// "Bearer TOKEN": exactly two words, the first in any case. Empty for anything else.
std::string bearer_token(std::string_view authorization);

// Why a token cannot be valid for `audience` at `now`, from its unverified claims; else empty.
std::string reason_not_to_review(std::string_view token, const std::string& audience,
                                 kube::Time now);

// Checks with a TokenReview that the API server issued the token, for this audience, to a service
// account of the job's namespace and bound to a pod that still exists; then reads that pod and
// checks that it belongs to the job's JobSet. A positive result is cached for a minute. At most
// four TokenReviews are in flight, and none is sent for a token whose own claims exclude it: any
// client can send requests here, and admission shares the API client. Concurrency: the io_context
// thread of `client`.
class TokenVerifier {
 public:
  explicit TokenVerifier(kube::ApiClient& client);

  // Errors: kForbidden with the reason, for the log; others when the TokenReview failed, kTimeout
  // when too many others were waiting.
  kube::Task<kube::Result<void>> verify(kube::Secret<std::string> token, kube::ObjectKey trainjob);

 private:
  kube::Task<kube::Result<void>> review_token(kube::Secret<std::string> token,
                                              kube::ObjectKey trainjob);
  void remember(std::string digest, std::chrono::steady_clock::time_point now);

  bool is_trusted(const std::string& digest);

  kube::ApiClient& client_;
  kube::Semaphore reviews_;
  // By the SHA-256 of token and audience: until when the result is cached.
  std::unordered_map<std::string, std::chrono::steady_clock::time_point> trusted_;
};

}  // namespace trainer
