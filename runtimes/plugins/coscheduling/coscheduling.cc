#include "runtimes/plugins/coscheduling/coscheduling.hh"

#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/gang.hh"
#include "runtimes/pipeline/pod_group.hh"

namespace trainer::pipeline {

namespace {

constexpr std::string_view kPodGroupLabel = "scheduling.x-k8s.io/pod-group";
const kube::Resource kPodGroups{"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"};

bool is_active(const Draft& draft) {
  const PodGroupPolicy* policy = draft.pod_group_policy();
  return policy != nullptr && policy->coscheduling.has_value();
}

}  // namespace

void Coscheduling::enforce_pod_group_policy(Draft& draft) const {
  if (!is_active(draft)) return;
  const std::vector<bool> members = gang_members(draft);
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!members[i]) continue;
    kube::add_labels(draft.pod_template(i), {{std::string(kPodGroupLabel), draft.name()}});
    if (draft.journal.is_on())
      draft.journal.note(kube::join_key(draft.pod_path(i) + ".metadata.labels", kPodGroupLabel),
                         source());
  }
}

void Coscheduling::add_dependents(Draft& draft) const {
  if (!is_active(draft)) return;
  DependentObject group = make_pod_group(draft, kPodGroups);
  group.object["spec"].set(
      "scheduleTimeoutSeconds",
      draft.pod_group_policy()->coscheduling->scheduleTimeoutSeconds.value_or(60));
  draft.dependents.push_back(std::move(group));
}

}  // namespace trainer::pipeline
