// Requests and lookups for tests of admission.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "kube/model/json.hh"
#include "runtimes/admission/admission.hh"

namespace trainer::test {

kube::Json yaml(std::string_view text);

// A torch runtime with job and container `node`, ClusterTrainingRuntime "rt".
kube::Json torch_runtime();
// TrainJob "j" in namespace "ns" by that runtime, as it is stored.
kube::Json train_job();
// A list with one patch that sets this node selector on job `node`.
kube::Json patches(std::string_view manager, std::string_view pool);

AdmissionRequest create(kube::Json object);
AdmissionRequest update(kube::Json before, kube::Json after);

// The cluster holds these objects.
struct Cluster {
  std::map<std::string, kube::Json> runtimes;  // "KIND/NAME"
  std::optional<kube::Json> jobset;
  std::optional<std::string> snapshot;
  std::set<std::string> priority_classes;
  std::map<std::string, kube::Json> claims;

  Cluster();
  AdmissionLookups lookups() const;
};

// With the plugins of production.
AdmissionAnswer validate_runtime(const AdmissionRequest& request);
AdmissionNeeds needs_of(const AdmissionRequest& request, const kube::Json* runtime = nullptr);

// Checks that a refusal says why, and that an answer that allows has no reason and a patch that
// fits.
void check_consistent(const AdmissionRequest& request, const AdmissionAnswer& answer);

// The object as it is after the answer's JSON Patch.
kube::Json apply(const AdmissionRequest& request, const AdmissionAnswer& answer);

}  // namespace trainer::test
