#include "tests/simulation/job_status.hh"

#include <cstdlib>
#include <string>

namespace trainer::simulation {
namespace {

using kube::Json;

const Json* find_condition(const Json& object, std::string_view type) {
  const Json* status = object.find("status");
  if (!status) return nullptr;
  for (const Json& condition : status->get_array("conditions")) {
    if (condition.get_string("type") == type) return &condition;
  }
  return nullptr;
}

}  // namespace

bool is_deleting(const Json& object) {
  return object.find("metadata")->find("deletionTimestamp") != nullptr;
}

bool is_job_condition_true(const Json& job, std::string_view type) {
  const Json* condition = find_condition(job, type);
  return condition && condition->get_string("status") == "True";
}

std::string_view phase_of(const Json& pod) {
  const Json* status = pod.find("status");
  return status ? status->get_string("phase") : std::string_view();
}

bool is_over(const Json& pod) {
  return phase_of(pod) == "Succeeded" || phase_of(pod) == "Failed";
}

int index_of(const Json& pod) {
  const Json* labels = pod.find_path({"metadata", "labels"});
  return std::atoi(
      std::string(labels->get_string("batch.kubernetes.io/job-completion-index")).c_str());
}

}  // namespace trainer::simulation
