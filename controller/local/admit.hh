// The rules of the program's webhooks apply to writes to local mode's API, without HTTP.
#pragma once

#include <optional>
#include <vector>

#include "controller/admission/admission.hh"
#include "controller/registration/kind_registration.hh"
#include "kube/client/api_client.hh"
#include "kube/server/api.hh"
#include "local/server/write_admission.hh"

namespace trainer {

// Calls the webhooks that a process outside of a cluster publishes, each with the part of an
// AdmissionReview that the rules read. Their matchConditions are not evaluated: these only save
// requests that would change and refuse nothing. If there is a node, TrainJobs are refused whose
// processes it does not start: those of runtimes with MPI or Flux. Concurrency: the server's
// thread. It outlives its tasks.
class Admitter final : public WriteAdmission {
 public:
  // `client` is for the same API, on the same thread.
  Admitter(const Registry& registry, bool has_node, kube::server::Api& api, kube::ApiClient& client,
           const kube::Log& log);

  kube::Task<ApiServer::Admitted> admit(kube::server::PendingWrite write, Caller caller) override;

 private:
  kube::Task<std::optional<kube::server::Response>> review(kube::server::PendingWrite& write,
                                                           const Webhook& webhook);

  std::optional<kube::server::Response> check_node_can_run(
      const kube::server::PendingWrite& write) const;

  kube::server::Api& api_;
  const bool has_node_;
  std::vector<Webhook> webhooks_;  // mutating ones first
  AdmissionState nothing_cached_;  // it is empty, so all lookups are requests to the API
  Admission admission_;
};

}  // namespace trainer
