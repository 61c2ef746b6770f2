#include "controller/kinds/placement/registration.hh"

#include <utility>

#include "controller/kinds/common/collections.hh"
#include "controller/kinds/placement/placement_controller.hh"
#include "controller/kinds/placement/webhooks.hh"

namespace trainer {
namespace {

constexpr int kWorkers = 4;

std::vector<kube::PolicyRule> rules() {
  return {
      {"", {""}, {"pods"}, {}, {"list", "watch"}},
      {"Whether the webhooks of exclusive placement are installed.",
       {"admissionregistration.k8s.io"},
       {"validatingwebhookconfigurations"},
       {std::string(kPodWebhooks)},
       {"get"}},
  };
}

}  // namespace

KindRegistration placement_registration(const KindOptions& options,
                                        std::shared_ptr<JobSetState> shared) {
  using Self = PlacementController;
  KindRegistration made;
  // Upstream's controller of exclusive placement has this name (JobSet, pkg/controllers).
  made.controller.name = "pod";
  made.controller.workers = kWorkers;
  made.controller.watches = {
      indexed_pods(kube::Watch::of<Self, PodView>(jobset_pods(), pod_transform(), &Self::on_pod))};
  made.controller.rules = rules();
  made.admission = placement_admission(shared, options.configuration.webhook.exclusivePlacement);
  made.controller.make = [shared = std::move(shared)](const kube::ControllerContext& context) {
    return std::make_unique<PlacementController>(context, shared);
  };
  return made;
}

}  // namespace trainer
