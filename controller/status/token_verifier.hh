// Who may report on a TrainJob: its own pods, by a token made for that one purpose.
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

// Why a token cannot be one for `audience` that is valid at `now`, by what it says itself; empty
// when it may be one. Nothing it says is proven by that.
std::string reason_not_to_ask(std::string_view token, const std::string& audience, kube::Time now);

// Asks the API server (TokenReview) whether it issued the token, for this audience, to a service
// account of the job's namespace and bound to a pod that still stands; then reads that pod and
// checks that it belongs to the job's JobSet. A verdict in favour is kept for a minute. The API
// server is asked about four tokens at a time, and never about one that says itself that it is no
// such token: anybody may send us anything, and admission asks through the same client.
// Concurrency: the io_context thread of `client`.
class TokenVerifier {
 public:
  explicit TokenVerifier(kube::ApiClient& client);

  // Errors: kForbidden with the reason, for the log; others when the API server could not be asked,
  // kTimeout when that was because of too many others.
  kube::Task<kube::Result<void>> verify(kube::Secret<std::string> token, kube::ObjectKey trainjob);

 private:
  kube::Task<kube::Result<void>> ask(kube::Secret<std::string> token, kube::ObjectKey trainjob);
  void remember(std::string digest, std::chrono::steady_clock::time_point now);

  bool is_trusted(const std::string& digest);

  kube::ApiClient& client_;
  kube::Semaphore turns_;
  // By the SHA-256 of token and audience: until when the verdict counts.
  std::unordered_map<std::string, std::chrono::steady_clock::time_point> trusted_;
};

}  // namespace trainer
