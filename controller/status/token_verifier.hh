// Progress reports are authenticated: they come from a TrainJob's own pods, with a token for its
// audience.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "kube/client/api_client.hh"
#include "kube/client/semaphore.hh"
#include "kube/model/json.hh"
#include "kube/model/secret.hh"
#include "kube/model/time.hh"

namespace trainer {

// Returns "trainer.kubeflow.org/v1alpha1/namespaces/NS/trainjobs/NAME/status": the audience that
// the pipeline asks for in the pod's token.
std::string status_audience(const kube::ObjectKey& trainjob);

// Reads "Bearer TOKEN": exactly two words, the first in any case. Empty for anything else.
std::string bearer_token(std::string_view authorization);

// Returns whether an error says that a token was refused. A 401 or 403 for the TokenReview request
// itself does not say so: that error, of this controller's rights, has an HTTP status.
bool is_token_refused(const kube::Error& error);

// Returns why a token cannot be valid for `audience` at `now`, so that no TokenReview is needed:
// from its unverified claims; else empty.
std::string reason_not_to_review(std::string_view token, const std::string& audience,
                                 kube::Time now);

// Returns the status of the token's TokenReview; if `audience` is empty, for the API server's own.
// Errors are those of the request.
kube::Task<kube::Result<kube::Json>> review_token(kube::ApiClient& client,
                                                  kube::Secret<std::string> token,
                                                  std::string audience);

// The pod that has sent a request, and the TrainJob that it belongs to: a later TrainJob may have
// the same name.
struct VerifiedPod {
  std::string trainjob_uid;
  std::string name;
  std::string uid;
  std::string node;            // the machine
  std::int32_t restarts = 0;   // the label with the restarts of the JobSet that made it
  std::string hang_threshold;  // annotation kHangThresholdKey of the pod, see hang_limits.hh
};

// Checks with a TokenReview that the API server issued the token, for this audience, to a service
// account of the job's namespace and bound to a pod that still exists; then reads that pod and the
// job's JobSet, and checks that they belong together. A positive result is remembered for as long
// as the caller trusts it. At most four TokenReviews are in flight, and none is sent for a token
// whose own claims exclude it: any client can send requests here, and admission shares the API
// client. Concurrency: the io_context thread of `client`.
class TokenVerifier {
 public:
  explicit TokenVerifier(kube::ApiClient& client);

  // A result that is remembered counts if it was verified less than `trust_for` ago. Errors:
  // kForbidden with the reason, for the log; others if a request failed, kTimeout if too many
  // others were waiting.
  kube::Task<kube::Result<VerifiedPod>> verify(kube::Secret<std::string> token,
                                               kube::ObjectKey trainjob,
                                               std::chrono::seconds trust_for);

 private:
  struct Trusted {
    std::chrono::steady_clock::time_point since;
    VerifiedPod pod;
  };
  kube::Task<kube::Result<VerifiedPod>> pod_by_token(kube::Secret<std::string> token,
                                                     kube::ObjectKey trainjob);
  kube::Task<kube::Result<std::string>> uid_of_owner(kube::Json pod, kube::ObjectKey trainjob);
  void remember(std::string digest, Trusted trusted);

  // Returns nullptr if no result is cached, or one that is older than `trust_for`.
  const Trusted* find_trusted(const std::string& digest, std::chrono::seconds trust_for) const;

  kube::ApiClient& client_;
  kube::Semaphore reviews_;
  std::unordered_map<std::string, Trusted> trusted_;  // by the SHA-256 of token and audience
};

}  // namespace trainer
