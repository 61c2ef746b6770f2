// The names and keys that a JobSet gives its children: jobset-contract 1.8, 2.1, 2.3 and 2.4. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/jobset.hh"

namespace trainer::jobset {

inline constexpr std::string_view kApiVersion = "jobset.x-k8s.io/v1alpha2";
inline constexpr std::string_view kKind = "JobSet";

// Labels and annotations at once, on Jobs and on their pod templates, unless said otherwise.
inline constexpr std::string_view kJobSetNameKey = "jobset.sigs.k8s.io/jobset-name";
inline constexpr std::string_view kJobSetUidKey = "jobset.sigs.k8s.io/jobset-uid";
inline constexpr std::string_view kReplicatedJobNameKey = "jobset.sigs.k8s.io/replicatedjob-name";
inline constexpr std::string_view kReplicatedJobReplicasKey =
    "jobset.sigs.k8s.io/replicatedjob-replicas";
inline constexpr std::string_view kGlobalReplicasKey = "jobset.sigs.k8s.io/global-replicas";
inline constexpr std::string_view kJobIndexKey = "jobset.sigs.k8s.io/job-index";
inline constexpr std::string_view kJobGlobalIndexKey = "jobset.sigs.k8s.io/job-global-index";
inline constexpr std::string_view kJobKeyKey = "jobset.sigs.k8s.io/job-key";
inline constexpr std::string_view kGroupNameKey = "jobset.sigs.k8s.io/group-name";
inline constexpr std::string_view kGroupReplicasKey = "jobset.sigs.k8s.io/group-replicas";
inline constexpr std::string_view kJobGroupIndexKey = "jobset.sigs.k8s.io/job-group-index";
inline constexpr std::string_view kRestartAttemptKey = "jobset.sigs.k8s.io/restart-attempt";
inline constexpr std::string_view kJobRestartAttemptKey = "jobset.sigs.k8s.io/job-restart-attempt";
inline constexpr std::string_view kCoordinatorKey = "jobset.sigs.k8s.io/coordinator";
inline constexpr std::string_view kPriorityKey = "jobset.sigs.k8s.io/priority";  // pod label only
// Annotations that users write.
inline constexpr std::string_view kExclusiveTopologyKey =
    "alpha.jobset.sigs.k8s.io/exclusive-topology";
inline constexpr std::string_view kNodeSelectorKey = "alpha.jobset.sigs.k8s.io/node-selector";
// Of the node selector strategy: a node's label and taint.
inline constexpr std::string_view kNamespacedJobKey = "alpha.jobset.sigs.k8s.io/namespaced-job";
inline constexpr std::string_view kNoScheduleKey = "alpha.jobset.sigs.k8s.io/no-schedule";
// Pod annotation that the in-place restart agent writes.
inline constexpr std::string_view kInPlaceRestartAttemptKey =
    "jobset.sigs.k8s.io/in-place-restart-attempt";
// A `managedBy` of this value counts as unset.
inline constexpr std::string_view kReservedManager = "jobset.sigs.k8s.io/jobset-controller";
// An extension of ours, see disruption.cc.
inline constexpr std::string_view kMaxDisruptionRestartsKey =
    "trainer.kubeflow.org/max-disruption-restarts";

// "<jobset>-<replicatedjob>-<index>"
std::string job_name(std::string_view jobset, std::string_view replicated_job, std::int64_t index);

// Which Job of a JobSet a name stands for: the inverse of job_name. nullopt for any other name.
struct JobPosition {
  std::string_view replicated_job;
  std::int32_t index = 0;
};
std::optional<JobPosition> parse_job_name(std::string_view jobset, std::string_view name);

// network.subdomain, else the JobSet's name.
const std::string& subdomain(const JobSet& jobset);
// Whether the pods get DNS host names: needs `network` with enableDNSHostnames.
bool has_dns_hostnames(const JobSet& jobset);
// "<jobset>-<replicatedjob>-<job index>-<pod index>.<subdomain>"; needs spec.coordinator.
std::string coordinator_endpoint(const JobSet& jobset);
// SHA-1 in hex of "<namespace>/<job>": affinity terms of several controllers compare it.
std::string job_key(std::string_view ns, std::string_view job);
// "<template>-<jobset>"
std::string claim_name(std::string_view claim_template, std::string_view jobset);

// A number without sign or leading zeros; nullopt for anything else.
std::optional<std::int32_t> parse_count(std::string_view text);

kube::Json owner_reference(const JobSet& jobset);

}  // namespace trainer::jobset
