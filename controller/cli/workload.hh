// Kueue decides by the Workload of a job when the job runs, and undoes other changes of `suspend`.
#pragma once

#include <string>
#include <vector>

#include "kube/client/api_client.hh"

namespace trainer {

struct Workload {
  kube::Resource resource;  // at the version that the cluster serves
  kube::ObjectKey key;
  bool is_active = true;  // spec.active: else Kueue evicts the job, and does not start it
};

// Returns those of the job with this uid; none if the cluster has no Kueue.
kube::Task<kube::Result<std::vector<Workload>>> find_workloads(kube::ApiClient& client,
                                                               std::string ns, std::string uid);

// Sets spec.active.
kube::Task<kube::Result<void>> set_active(kube::ApiClient& client, Workload workload,
                                          bool is_active);

}  // namespace trainer
