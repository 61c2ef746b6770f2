#include "runtimes/trainjob/measures.hh"

#include <algorithm>

#include "kube/model/meta.hh"
#include "runtimes/trainjob/conditions.hh"

namespace trainer {
namespace {

constexpr std::string_view kPhases[] = {"Queued",    "Initializing", "Pending",
                                        "Starting",  "Running",      "Restarting",
                                        "Suspended", "Complete",     "Failed"};

// phase.cc, lifecycle/reasons.cc, children.cc, snapshot.cc and unreadable.cc set these reasons.
constexpr std::string_view kWaiting[] = {"CreatingPods",
                                         "Scheduling",
                                         "StartingContainers",
                                         "WaitingForQuota",
                                         "Suspended",
                                         "InitializersRunning",
                                         "NodesReplaced",
                                         "WaitingForDeletion",
                                         "Unschedulable",
                                         "GangNotReady",
                                         "SchedulingGated",
                                         "QuotaExceeded",
                                         "PodsRefused",
                                         "JobsRefused",
                                         "ServicesRefused",
                                         "ClaimsRefused",
                                         "PodsWaiting",
                                         "ImagePullFailed",
                                         "ConfigMissing",
                                         "VolumeMissing",
                                         "ContainerStartFailed",
                                         "ContainersCrashing",
                                         "ChildRefused",
                                         "JobSetNameTaken",
                                         "ChildNameTaken",
                                         "ChildMissing",
                                         "RuntimeNotFound",
                                         "RuntimeSnapshotInvalid",
                                         "RuntimeSnapshotLost",
                                         "Unreadable"};

// The JobSet's condition Failed has these reasons, and plan.cc sets others.
constexpr std::string_view kFailures[] = {
    "FailedJobs",       "ReachedMaxRestarts",          "FailJobSetFailurePolicyAction",
    "DeadlineExceeded", "TrainingRuntimeNotSupported", kOtherMeasure};

std::string_view known(std::string_view word, std::span<const std::string_view> words) {
  const auto at = std::find(words.begin(), words.end(), word);
  return at == words.end() ? kOtherMeasure : *at;
}

}  // namespace

std::string_view phase_of(const TrainJobStatus& status) {
  return status.phase.empty() ? "Pending" : known(status.phase, kPhases);
}

std::string_view waiting_reason(const TrainJobStatus& status) {
  for (const std::string_view phase : {"Running", "Complete", "Failed"})
    if (status.phase == phase) return {};
  return status.reason.empty() ? "CreatingPods" : known(status.reason, kWaiting);
}

std::string_view failure_reason(const TrainJobStatus& status) {
  const kube::Condition* const failed = kube::find_condition(status.conditions, kFailed);
  return failed && failed->is_true() ? known(failed->reason, kFailures) : std::string_view();
}

std::span<const std::string_view> failure_reasons() {
  return kFailures;
}

}  // namespace trainer
