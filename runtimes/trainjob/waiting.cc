#include "runtimes/trainjob/waiting.hh"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "runtimes/views/text.hh"

namespace trainer {
namespace {

struct Rule {
  std::string_view reported;  // what Kubernetes says
  std::string_view reason;    // status.reason
};

// The kubelet's and the scheduler's words; one cause has several, which alternate (ErrImagePull,
// ImagePullBackOff).
constexpr Rule kByReason[] = {
    {"SchedulingGated", "SchedulingGated"},
    {"Unschedulable", "Unschedulable"},
    {"FailedScheduling", "Unschedulable"},
    {"SchedulerError", "Unschedulable"},
    {"ErrImagePull", "ImagePullFailed"},
    {"ImagePullBackOff", "ImagePullFailed"},
    {"InvalidImageName", "ImagePullFailed"},
    {"ErrImageNeverPull", "ImagePullFailed"},
    {"ImageInspectError", "ImagePullFailed"},
    {"RegistryUnavailable", "ImagePullFailed"},
    {"SignatureValidationFailed", "ImagePullFailed"},
    {"CreateContainerConfigError", "ConfigMissing"},
    {"CreateContainerError", "ContainerStartFailed"},
    {"RunContainerError", "ContainerStartFailed"},
    {"StartError", "ContainerStartFailed"},
    {"PostStartHookError", "ContainerStartFailed"},
    {"FailedCreatePodSandBox", "ContainerStartFailed"},
    {"CrashLoopBackOff", "ContainersCrashing"},
    {"FailedMount", "VolumeMissing"},
    {"FailedAttachVolume", "VolumeMissing"},
    {"FailedMapVolume", "VolumeMissing"},
    {"FailedBinding", "VolumeMissing"},
    {"FailedCreate", "PodsRefused"},
    {"JobCreationFailed", "JobsRefused"},
};

// Words within a message that say more than its reason. Written in lower case.
constexpr Rule kByText[] = {
    {"exceeded quota", "QuotaExceeded"},
    {"persistentvolumeclaim", "VolumeMissing"},
    {"pod group", "GangNotReady"},
    {"podgroup", "GangNotReady"},
    {"gang", "GangNotReady"},
};

std::string_view classify(std::string_view reported, std::string_view message) {
  const auto* rule = std::find_if(std::begin(kByReason), std::end(kByReason),
                                  [reported](const Rule& r) { return r.reported == reported; });
  const std::string_view reason =
      rule == std::end(kByReason) ? std::string_view("PodsWaiting") : rule->reason;
  if (reason != "Unschedulable" && reason != "PodsRefused") return reason;
  const std::string lower = to_lower(message);
  for (const Rule& text : kByText) {
    if (lower.find(text.reported) != std::string::npos) return text.reason;
  }
  return reason;
}

// A condition's reason must match the CRD's pattern; what others wrote may not, so only the reasons
// above are used.
std::string with_reported(std::string_view reported, std::string_view message) {
  if (message.empty()) return std::string(reported);
  return std::string(message);
}

}  // namespace

std::optional<WaitingCause> dominant_cause(const std::vector<const PodView*>& waiting) {
  std::map<std::pair<std::string_view, std::string_view>, int> counts;
  for (const PodView* pod : waiting) ++counts[{pod->waiting_reason, pod->waiting_message}];
  if (counts.empty()) return std::nullopt;
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto& [words, count] = *most;
  return WaitingCause{
      std::string(classify(words.first, words.second)),
      fmt::format("{}: {}", count_of(count, "pod"), with_reported(words.first, words.second))};
}

std::optional<WaitingCause> cause_of_event(std::string_view event) {
  if (event.empty()) return std::nullopt;
  const std::size_t colon = event.find(": ");
  if (colon == std::string_view::npos)
    return WaitingCause{std::string(classify({}, event)), std::string(event)};
  const std::string_view message = event.substr(colon + 2);
  return WaitingCause{std::string(classify(event.substr(0, colon), message)), std::string(message)};
}

std::string advice_for(std::string_view reason) {
  static const std::map<std::string_view, std::string_view> kAdvice = {
      {"Unschedulable",
       "Compare resourcesPerNode, nodeSelector and tolerations with what the cluster's machines "
       "offer, or wait for capacity."},
      {"GangNotReady",
       "The scheduler starts all pods together: it waits until there is room for every one of "
       "them."},
      {"SchedulingGated",
       "A controller holds the pods by a scheduling gate and removes it when their place is "
       "decided."},
      {"ImagePullFailed",
       "Check the image's name and tag, and imagePullSecrets for a private registry."},
      {"ConfigMissing",
       "Create the ConfigMap or Secret that the message names; the pods go on by themselves."},
      {"VolumeMissing",
       "Create the claim, Secret or ConfigMap that the message names; the pods go on by "
       "themselves."},
      {"QuotaExceeded",
       "A ResourceQuota of the namespace is used up: free some of it, or ask for less."},
      {"PodsRefused",
       "The API server or a webhook refused the pods: change what the message names."},
      {"JobsRefused",
       "The API server or a webhook refused the Jobs: change what the message names."},
      {"ContainerStartFailed",
       "The container could not be started: check its command, mounts and security context."},
      {"ContainersCrashing", "The container starts and fails again: its output says why."},
      {"ChildRefused", "Change what the message names in the TrainJob or its runtime."},
      {"RuntimeNotFound", "Create the runtime, or name an existing one in a new TrainJob."},
      {"JobSetNameTaken", "Delete the JobSet of that name, or create the TrainJob under another."},
      {"ChildNameTaken", "Delete the object of that name, or create the TrainJob under another."},
      {"ChildMissing",
       "Delete the JobSet that the message names: it is made again with all it needs."},
      {"RuntimeSnapshotInvalid",
       "Put the snapshot ConfigMap back as it was, or delete it to have it written again."},
      {"RuntimeSnapshotLost",
       "Put the runtime back as it was when the job started, or create the TrainJob anew."},
      {"WaitingForQuota", "Kueue decides when it starts: see `kubectl get workloads`."},
      {"Suspended", "Set spec.suspend to false to start it."},
  };
  const auto found = kAdvice.find(reason);
  return found == kAdvice.end() ? std::string() : std::string(found->second);
}

}  // namespace trainer
