#include "runtimes/lifecycle/reasons.hh"

#include <algorithm>
#include <iterator>

#include "kube/model/resources.hh"
#include "runtimes/views/text.hh"

namespace trainer {
namespace {

struct Rule {
  std::string_view reported;  // by Kubernetes
  std::string_view reason;    // status.reason
};

// The kubelet, the scheduler and the controllers use these reasons. One cause has several, which
// alternate (ErrImagePull, ImagePullBackOff).
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
    {"HeadlessServiceCreationFailed", "ServicesRefused"},
    {"PVCCreationFailed", "ClaimsRefused"},
};

// These texts within a message say more than its reason. They are in lower case.
constexpr Rule kByText[] = {
    {"persistentvolumeclaim", "VolumeMissing"},
    {"pod group", "GangNotReady"},
    {"podgroup", "GangNotReady"},
    {"gang", "GangNotReady"},
};

constexpr std::string_view kQuotaText = "exceeded quota";
constexpr std::string_view kQuotaExceeded = "QuotaExceeded";
constexpr std::string_view kChildRefused = "ChildRefused";
constexpr std::string_view kChildNameTaken = "ChildNameTaken";

// A job cannot start without objects of these kinds.
const std::pair<const kube::Resource&, std::string_view> kByKind[] = {
    {kube::kJobs, "JobsRefused"},
    {kube::kPods, "PodsRefused"},
    {kube::kServices, "ServicesRefused"},
    {kube::kPersistentVolumeClaims, "ClaimsRefused"},
};

struct Advice {
  std::string_view about;
  std::string_view text;
};

// These texts of a refusal's message show who refused. They are those of apiserver's admission
// plugins and of pkg/apis/core/validation.
constexpr Advice kByRefuser[] = {
    {"is forbidden: User",
     "The controller has no right to do this: ask an admin to compare its ClusterRole with the one "
     "that this version ships."},
    {"failed quota",
     "A ResourceQuota of the namespace counts what the message lists, so each container must ask "
     "for it: set it in resourcesPerNode or in the runtime."},
    {"violates PodSecurity",
     "The Pod Security level of the namespace forbids what the message lists: set a "
     "securityContext "
     "that it allows in the runtime, or use a namespace of another level."},
    {"failed calling webhook",
     "The admission webhook that the message names does not answer: ask an admin to repair or to "
     "remove it."},
    {"admission webhook",
     "The admission webhook that the message names refuses it: change what it asks for, or talk to "
     "who runs it."},
    {"ValidatingAdmissionPolicy",
     "An admission policy of the cluster refuses it: change what the message asks for."},
    {" usage per ",
     "A LimitRange of the namespace bounds what one pod or container may ask for: stay within it "
     "(`kubectl describe limitrange`)."},
    {"max limit to request ratio",
     "A LimitRange of the namespace bounds the ratio of limit and request: change one of them "
     "(`kubectl describe limitrange`)."},
    {"Limit must be set for non overcommitable resources",
     "Write the same number of the resource under limits, too: extended resources, such as GPUs, "
     "need it."},
    {"volumeMounts",
     "A mount needs a volume of its name: add the volume to the pod template, or take out the "
     "mount."},
    {"tolerations",
     "Correct the toleration that the message names in the runtime or in the patch of the job."},
    {"error looking up service account",
     "Create the ServiceAccount that the message names in this namespace, or name one that exists "
     "in the runtime."},
    {"PriorityClass",
     "Name a PriorityClass that exists: `kubectl get priorityclasses` lists them."},
    {"RuntimeClass", "Name a RuntimeClass that exists: `kubectl get runtimeclasses` lists them."},
    {"is controlled by",
     "Delete or rename the object of that name, or create the job under another."},
};

constexpr Advice kByStatusReason[] = {
    {"Unschedulable",
     "Compare resourcesPerNode, nodeSelector and tolerations with what the cluster's machines "
     "offer, or wait for capacity."},
    {"GangNotReady",
     "The scheduler starts all pods together: it waits until there is room for every one of them."},
    {"SchedulingGated",
     "A controller holds the pods by a scheduling gate and removes it when their place is "
     "decided."},
    {"ImagePullFailed",
     "Check the image's name and tag, and imagePullSecrets for a private registry."},
    {"ConfigMissing",
     "Create the ConfigMap or Secret that the message names; the pods go on by themselves."},
    {"VolumeMissing",
     "Create the claim, Secret or ConfigMap that the message names; the pods go on by themselves."},
    {"QuotaExceeded",
     "A ResourceQuota of the namespace is used up: free some of it, or ask for less."},
    {"PodsRefused", "The API server or a webhook refused the pods: change what the message names."},
    {"JobsRefused", "The API server or a webhook refused the Jobs: change what the message names."},
    {"ServicesRefused",
     "The API server or a webhook refused the Service, so the pods do not find each other: change "
     "what the message names."},
    {"ClaimsRefused",
     "The API server or a webhook refused the claims: change what the message names."},
    {"ContainerStartFailed",
     "The container could not be started: check its command, mounts and security context."},
    {"ContainersCrashing", "The container starts and fails again: its output says why."},
    {"ChildRefused", "Change what the message names in the job or its runtime."},
    {"RuntimeNotFound", "Create the runtime, or name an existing one in a new TrainJob."},
    {"JobSetNameTaken", "Delete the JobSet of that name, or create the TrainJob under another."},
    {"ChildNameTaken", "Delete the object of that name, or create the job under another."},
    {"ChildMissing",
     "Delete the JobSet that the message names: it is made again with all it needs."},
    {"RuntimeSnapshotInvalid",
     "Put the snapshot ConfigMap back as it was, or delete it to have it written again."},
    {"RuntimeSnapshotLost",
     "Put the runtime back as it was when the job started, or create the TrainJob anew."},
    {"WaitingForQuota", "Kueue decides when it starts: see `kubectl get workloads`."},
    {"Suspended", "Set spec.suspend to false to start it."},
};

bool is_quota(std::string_view message) {
  return message.find(kQuotaText) != message.npos;
}

std::string_view reason_by_kind(const kube::Resource& resource) {
  const auto* const at = std::find_if(std::begin(kByKind), std::end(kByKind),
                                      [&](const auto& each) { return each.first == resource; });
  return at == std::end(kByKind) ? kChildRefused : at->second;
}

}  // namespace

std::string_view reason_of_report(std::string_view reported, std::string_view message) {
  const auto* rule = std::find_if(std::begin(kByReason), std::end(kByReason),
                                  [reported](const Rule& r) { return r.reported == reported; });
  const std::string_view reason =
      rule == std::end(kByReason) ? std::string_view("PodsWaiting") : rule->reason;
  if (reason.ends_with("Refused") && is_quota(message)) return kQuotaExceeded;
  if (reason != "Unschedulable" && reason != "PodsRefused") return reason;
  const std::string lower = to_lower(message);
  for (const Rule& text : kByText) {
    if (lower.find(text.reported) != std::string::npos) return text.reason;
  }
  return reason;
}

// A condition's reason must match the pattern of the CRD. The reasons of other components may not
// match it, so only the reasons of the tables above are used.
std::optional<WaitingCause> cause_of_event(std::string_view event) {
  if (event.empty()) return std::nullopt;
  const std::size_t colon = event.find(": ");
  if (colon == std::string_view::npos)
    return WaitingCause{std::string(reason_of_report({}, event)), std::string(event)};
  const std::string_view message = event.substr(colon + 2);
  return WaitingCause{std::string(reason_of_report(event.substr(0, colon), message)),
                      std::string(message)};
}

bool is_refusal_event(std::string_view event) {
  return reason_of_report(event.substr(0, event.find(": ")), "").ends_with("Refused");
}

WaitingCause cause_of_refusal(const kube::Refusal& refusal) {
  const std::string_view reason =
      is_quota(refusal.message) ? kQuotaExceeded : reason_by_kind(refusal.resource);
  return {std::string(reason), refusal.message};
}

std::string_view known_refusal(std::string_view reason) {
  if (reason == kQuotaExceeded) return kQuotaExceeded;
  for (const std::string_view word : {kChildRefused, kChildNameTaken})
    if (reason == word) return word;
  for (const auto& [resource, word] : kByKind)
    if (word == reason) return word;
  return {};
}

std::string advice_for(std::string_view reason, std::string_view message) {
  if (!known_refusal(reason).empty()) {
    for (const Advice& refuser : kByRefuser)
      if (message.find(refuser.about) != message.npos) return std::string(refuser.text);
  }
  for (const Advice& advice : kByStatusReason)
    if (advice.about == reason) return std::string(advice.text);
  return {};
}

}  // namespace trainer
