// This plugin makes gangs for the coscheduling plugin of kubernetes-sigs/scheduler-plugins
// (Kubeflow Trainer, pkg/runtime/framework/plugins/coscheduling).
#include "kube/model/pod_template.hh"
#include "runtimes/gang/pod_group.hh"
#include "runtimes/pipeline/gang.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/pod_group.hh"

namespace trainer::pipeline {

namespace {

class Coscheduling final : public Plugin {
 public:
  std::string_view source() const override { return "plugin coscheduling"; }
  bool is_active(const Draft& draft) const override;
  void enforce_pod_group_policy(Draft& draft) const override;
  void add_dependents(Draft& draft) const override;
};

}  // namespace

bool Coscheduling::is_active(const Draft& draft) const {
  const PodGroupPolicy* policy = draft.pod_group_policy();
  return policy != nullptr && policy->coscheduling;
}

void Coscheduling::enforce_pod_group_policy(Draft& draft) const {
  const std::vector<bool> members = gang_members(draft);
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i])
      draft.set_metadata(i, "labels", gang::kCoschedulingLabel, draft.name(), source());
}

void Coscheduling::add_dependents(Draft& draft) const {
  DependentObject group = make_pod_group(draft, gang::kCoschedulingPodGroups);
  group.object["spec"].set(
      "scheduleTimeoutSeconds",
      draft.pod_group_policy()->coscheduling->scheduleTimeoutSeconds.value_or(60));
  draft.dependents.push_back(std::move(group));
}

std::unique_ptr<const Plugin> make_coscheduling() {
  return std::make_unique<Coscheduling>();
}

}  // namespace trainer::pipeline
