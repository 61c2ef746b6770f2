// This plugin makes gangs for the coscheduling plugin of kubernetes-sigs/scheduler-plugins
// (Kubeflow Trainer, pkg/runtime/framework/plugins/coscheduling).
#include <utility>

#include "runtimes/gang/gang_scheduler.hh"
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
  mark_gang(draft, gang::coscheduling(), source());
}

void Coscheduling::add_dependents(Draft& draft) const {
  gang::GroupRequest request;
  request.timeout_seconds =
      draft.pod_group_policy()->coscheduling->scheduleTimeoutSeconds.value_or(60);
  draft.dependents.push_back(make_pod_group(draft, gang::coscheduling(), std::move(request)));
}

std::unique_ptr<const Plugin> make_coscheduling() {
  return std::make_unique<Coscheduling>();
}

}  // namespace trainer::pipeline
