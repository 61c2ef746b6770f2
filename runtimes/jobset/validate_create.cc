// A new JobSet is refused for these errors: JobSet, pkg/webhooks/jobset_webhook.go. Beyond upstream
// a replicated job cannot depend on itself, since it would never be created.
#include <fmt/format.h>

#include <utility>

#include "kube/model/names.hh"
#include "runtimes/jobset/job_template.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/jobset/validation.hh"

namespace trainer::jobset {
namespace {

using kube::Json;

// The API server generates names in the same way: the prefix is cut to leave room for five
// characters.
std::string final_name(const kube::ObjectMeta& metadata) {
  if (!metadata.name.empty() || metadata.generate_name.empty()) return metadata.name;
  constexpr std::size_t kLongestPrefix = 58;
  return metadata.generate_name.substr(0, kLongestPrefix) + "xxxxx";
}

void check_strategy(ValidatedJobSet& checked) {
  const auto& policy = checked.jobset.spec.failurePolicy;
  if (!checked.gates.in_place_restart && policy && policy->restartStrategy == "InPlaceRestart") {
    checked.refuse(
        "InPlaceRestart restart strategy cannot be set when InPlaceRestart feature gate is "
        "disabled");
  }
}

void check_subdomain(ValidatedJobSet& checked) {
  const auto& network = checked.jobset.spec.network;
  if (!network || network->subdomain.value_or("").empty()) return;
  const std::string path = "spec.network.subdomain";
  const std::string& value = *network->subdomain;
  const std::string problem = kube::check_dns1123_subdomain(value);
  if (!problem.empty()) checked.invalid(path, value, "{}", problem);
  checked.check_generated(path, value,
                          ".spec.network.subdomain is too long, must be less than 63 characters");
}

void check_manager(ValidatedJobSet& checked) {
  if (!checked.jobset.spec.managedBy) return;
  const std::string path = "spec.managedBy";
  const std::string& value = *checked.jobset.spec.managedBy;
  for (auto& error : kube::domain_prefixed_path_errors(path, value))
    checked.errors.push_back(std::move(error));
  if (value.size() > 63) {
    checked.errors.push_back(
        {kube::FieldError::Type::kTooLong, path, value, "may not be more than 63 bytes"});
  }
}

void check_success_policy(ValidatedJobSet& checked) {
  if (!checked.jobset.spec.successPolicy) return;
  for (const std::string& target : checked.jobset.spec.successPolicy->targetReplicatedJobs) {
    if (!checked.find(target)) {
      checked.refuse("invalid replicatedJob name '{}' does not appear in .spec.ReplicatedJobs",
                     target);
    }
  }
}

// Returns the error of the pod that the coordinator names; "" if there is none.
std::string coordinator_problem(const ValidatedJobSet& checked, const Coordinator& coordinator) {
  const ReplicatedJob* job = checked.find(coordinator.replicatedJob);
  if (!job) {
    return fmt::format("coordinator replicatedJob {} does not exist", coordinator.replicatedJob);
  }
  if (coordinator.jobIndex < 0 || coordinator.jobIndex >= job->replica_count()) {
    return fmt::format("coordinator job index {} is invalid for replicatedJob {}",
                       coordinator.jobIndex, job->name);
  }
  const auto completions = job_number(*job, "completions");
  if (!is_indexed(*job) || !completions) {
    return "job for coordinator pod must be indexed completion mode, and completions number must "
           "be set";
  }
  if (coordinator.podIndex < 0 || coordinator.podIndex >= *completions) {
    return fmt::format("coordinator pod index {} is invalid for replicatedJob {} job index {}",
                       coordinator.podIndex, job->name, coordinator.jobIndex);
  }
  return {};
}

}  // namespace

void ValidatedJobSet::check_generated(const std::string& path, const std::string& value,
                                      std::string_view too_long) {
  check_generated(path, value, value, too_long);
}

void ValidatedJobSet::check_generated(const std::string& path, const std::string& value,
                                      const std::string& generated, std::string_view too_long) {
  constexpr std::string_view kTooLong = "must be no more than 63 characters";
  std::string problem = kube::check_dns1035_label(generated);
  if (problem.starts_with(kTooLong)) {
    invalid(path, value, "{}", too_long);
    problem.erase(0, kTooLong.size());
    if (problem.starts_with(", ")) problem.erase(0, 2);
  }
  if (!problem.empty()) invalid(path, value, "{}", problem);
}

const ReplicatedJob* ValidatedJobSet::find(std::string_view replicated_job) const {
  const auto at = by_name.find(replicated_job);
  return at ? &jobset.spec.replicatedJobs[*at] : nullptr;
}

void check_coordinator(ValidatedJobSet& checked) {
  const auto& coordinator = checked.jobset.spec.coordinator;
  if (!coordinator) return;
  if (const std::string problem = coordinator_problem(checked, *coordinator); !problem.empty()) {
    checked.refuse("{}", problem);
  }
  JobSet named;
  named.metadata.name = checked.name;
  named.spec.network = checked.jobset.spec.network;
  named.spec.coordinator = coordinator;
  const std::string endpoint = coordinator_endpoint(named);
  const std::string problem = kube::check_label_value(endpoint);
  if (problem.empty()) return;
  checked.refuse(
      "spec will lead to invalid label value \"{}\" for coordinator label \"{}\" (long "
      "JobSet / ReplicatedJob / SubDomain name?): {}",
      endpoint, kCoordinatorKey, problem);
}

kube::FieldErrors validate_create(const JobSet& jobset, const Gates& gates,
                                  const FindClaim& find_claim) {
  ValidatedJobSet checked{jobset, gates, final_name(jobset.metadata)};
  check_strategy(checked);
  if (!jobset.spec.replicatedJobs.empty() &&
      !jobset.spec.replicatedJobs.front().dependsOn.empty()) {
    checked.refuse("DependsOn can't be set for the first ReplicatedJob");
  }
  check_subdomain(checked);
  check_manager(checked);
  check_replicated_jobs(checked);
  check_success_policy(checked);
  check_failure_policy(checked);
  check_coordinator(checked);
  check_claims(checked, find_claim);
  return std::move(checked.errors);
}

}  // namespace trainer::jobset
