// A JobSet gives its children these names (JobSet, pkg/controllers/jobset_controller.go and
// pkg/util/placement). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/jobset.hh"
#include "runtimes/views/labels.hh"

namespace trainer::jobset {

// JobSet's own name in spec.managedBy, which counts as unset.
inline constexpr std::string_view kJobSetControllerName = "jobset.sigs.k8s.io/jobset-controller";
// "<jobset>-<replicatedjob>-<index>"
std::string job_name(std::string_view jobset, std::string_view replicated_job, std::int64_t index);

// The position says which Job of a JobSet has a name: the inverse of job_name. The result is
// nullopt for any other name.
struct JobPosition {
  std::string_view replicated_job;
  std::int32_t index = 0;
};
std::optional<JobPosition> parse_job_name(std::string_view jobset, std::string_view name);

// Returns network.subdomain, else the JobSet's name.
const std::string& subdomain(const JobSet& jobset);
// Returns whether the pods get DNS host names: this needs `network` with enableDNSHostnames.
bool has_dns_hostnames(const JobSet& jobset);
// "<jobset>-<replicatedjob>-<job index>-<pod index>.<subdomain>"; needs spec.coordinator.
std::string coordinator_endpoint(const JobSet& jobset);
// Returns the SHA-1 in hex of "<namespace>/<job>": affinity terms of several controllers compare
// it.
std::string job_key(std::string_view ns, std::string_view job);
// "<template>-<jobset>"
std::string claim_name(std::string_view claim_template, std::string_view jobset);

// Returns a number without sign or leading zeros; nullopt for anything else.
std::optional<std::int32_t> parse_count(std::string_view text);

kube::Json owner_reference(const JobSet& jobset);

}  // namespace trainer::jobset
