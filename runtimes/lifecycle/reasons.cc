#include "runtimes/lifecycle/reasons.hh"

#include <algorithm>
#include <iterator>

#include "kube/model/resources.hh"
#include "runtimes/views/text.hh"

namespace trainer {
namespace {

struct Rule {
  std::string_view reported;  // by Kubernetes
  const Reason& reason;
};

// The kubelet, the scheduler and the controllers use these reasons. One cause has several, which
// alternate (ErrImagePull, ImagePullBackOff).
constexpr Rule kByReason[] = {
    {"SchedulingGated", reasons::kSchedulingGated},
    {"Unschedulable", reasons::kUnschedulable},
    {"FailedScheduling", reasons::kUnschedulable},
    {"SchedulerError", reasons::kUnschedulable},
    {"ErrImagePull", reasons::kImagePullFailed},
    {"ImagePullBackOff", reasons::kImagePullFailed},
    {"InvalidImageName", reasons::kImagePullFailed},
    {"ErrImageNeverPull", reasons::kImagePullFailed},
    {"ImageInspectError", reasons::kImagePullFailed},
    {"RegistryUnavailable", reasons::kImagePullFailed},
    {"SignatureValidationFailed", reasons::kImagePullFailed},
    {"CreateContainerConfigError", reasons::kConfigMissing},
    {"CreateContainerError", reasons::kContainerStartFailed},
    {"RunContainerError", reasons::kContainerStartFailed},
    {"StartError", reasons::kContainerStartFailed},
    {"PostStartHookError", reasons::kContainerStartFailed},
    {"FailedCreatePodSandBox", reasons::kContainerStartFailed},
    {"CrashLoopBackOff", reasons::kContainersCrashing},
    {kMissingMount, reasons::kVolumeMissing},
    {"FailedAttachVolume", reasons::kVolumeMissing},
    {"FailedMapVolume", reasons::kVolumeMissing},
    {"FailedBinding", reasons::kVolumeMissing},
    {"FailedCreate", reasons::kPodsRefused},
    {kJobCreationFailed, reasons::kJobsRefused},
    {kServiceCreationFailed, reasons::kServicesRefused},
    {kClaimCreationFailed, reasons::kClaimsRefused},
};

// These texts within a message say more than its reason. They are in lower case.
constexpr Rule kByText[] = {
    {"persistentvolumeclaim", reasons::kVolumeMissing},
    {"pod group", reasons::kGangNotReady},
    {"podgroup", reasons::kGangNotReady},
    {"gang", reasons::kGangNotReady},
};

constexpr std::string_view kQuotaText = "exceeded quota";

// A job cannot start without objects of these kinds.
const std::pair<const kube::Resource&, const Reason&> kByKind[] = {
    {kube::kJobs, reasons::kJobsRefused},
    {kube::kPods, reasons::kPodsRefused},
    {kube::kServices, reasons::kServicesRefused},
    {kube::kPersistentVolumeClaims, reasons::kClaimsRefused},
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

bool is_quota(std::string_view message) {
  return message.find(kQuotaText) != message.npos;
}

const Reason& reason_by_kind(const kube::Resource& resource) {
  const auto* const at = std::find_if(std::begin(kByKind), std::end(kByKind),
                                      [&](const auto& each) { return each.first == resource; });
  return at == std::end(kByKind) ? reasons::kChildRefused : at->second;
}

bool is_same(const Reason& one, const Reason& other) {
  return one.name == other.name;
}

// An object that a job needs, and that a controller writes, is refused.
bool is_refusal(const Reason& reason) {
  return std::any_of(std::begin(kByKind), std::end(kByKind),
                     [&](const auto& each) { return is_same(each.second, reason); });
}

}  // namespace

const Reason& reason_of_report(std::string_view reported, std::string_view message) {
  const auto* rule = std::find_if(std::begin(kByReason), std::end(kByReason),
                                  [reported](const Rule& r) { return r.reported == reported; });
  const Reason& reason = rule == std::end(kByReason) ? reasons::kPodsWaiting : rule->reason;
  if (is_refusal(reason) && is_quota(message)) return reasons::kQuotaExceeded;
  if (!is_same(reason, reasons::kUnschedulable) && !is_same(reason, reasons::kPodsRefused))
    return reason;
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
  return is_refusal(reason_of_report(event.substr(0, event.find(": ")), ""));
}

WaitingCause cause_of_refusal(const kube::Refusal& refusal) {
  const Reason& reason =
      is_quota(refusal.message) ? reasons::kQuotaExceeded : reason_by_kind(refusal.resource);
  return {std::string(reason), refusal.message};
}

std::string_view known_refusal(std::string_view reason) {
  for (const Reason& each :
       {reasons::kQuotaExceeded, reasons::kChildRefused, reasons::kChildNameTaken})
    if (each.name == reason) return each.name;
  for (const auto& [resource, each] : kByKind)
    if (each.name == reason) return each.name;
  return {};
}

std::string_view advice_for(std::string_view reason, std::string_view message) {
  if (!known_refusal(reason).empty()) {
    for (const Advice& refuser : kByRefuser)
      if (message.find(refuser.about) != message.npos) return refuser.text;
  }
  const Reason* const known = find_reason(reason);
  return known ? known->advice : std::string_view();
}

}  // namespace trainer
