// Gangs for Volcano (Kubeflow Trainer, pkg/runtime/framework/plugins/volcano).
#include <fmt/format.h>

#include <string>

#include "kube/model/pod_template.hh"
#include "runtimes/gang/pod_group.hh"
#include "runtimes/pipeline/gang.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/pod_group.hh"

namespace trainer::pipeline {

namespace {

constexpr std::string_view kQueueAnnotation = "scheduling.volcano.sh/queue-name";

const VolcanoPolicy* policy_of(const Draft& draft) {
  const PodGroupPolicy* policy = draft.pod_group_policy();
  return policy != nullptr && policy->volcano ? &*policy->volcano : nullptr;
}

// A group has one priority; of several jobs the last one's counts, which is the trainer's in the
// usual order.
std::string priority_class(const Draft& draft) {
  std::string name;
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i)
    if (const kube::Json* spec = draft.pod_template(i).find("spec"))
      if (const kube::Json* found = spec->find("priorityClassName");
          found != nullptr && found->is_string())
        name = found->as_string();
  return name;
}

// Where the queue's annotation comes from: the last patch that sets it, else the runtime.
std::string path_of_queue(const TrainJob& job) {
  for (std::size_t i = job.spec.runtimePatches.size(); i-- > 0;) {
    const auto& spec = job.spec.runtimePatches[i].trainingRuntimeSpec;
    const kube::Json* annotations =
        spec ? spec->find_path({"template", "metadata", "annotations"}) : nullptr;
    if (annotations != nullptr && annotations->find(kQueueAnnotation) != nullptr)
      return kube::join_key(kube::join_index("spec.runtimePatches", i) +
                                ".trainingRuntimeSpec.template.metadata.annotations",
                            kQueueAnnotation);
  }
  return "spec.runtimeRef";
}

class Volcano final : public Plugin {
 public:
  std::string_view source() const override { return "plugin volcano"; }
  bool is_active(const Draft& draft) const override;
  void enforce_pod_group_policy(Draft& draft) const override;
  void add_dependents(Draft& draft) const override;
  void validate(const Draft& draft, kube::FieldErrors& errors) const override;
};

}  // namespace

bool Volcano::is_active(const Draft& draft) const {
  return policy_of(draft) != nullptr;
}

void Volcano::enforce_pod_group_policy(Draft& draft) const {
  const std::vector<bool> members = gang_members(draft);
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!members[i]) continue;
    kube::add_annotations(draft.pod_template(i),
                          {{std::string(gang::kVolcanoAnnotation), draft.name()}});
    if (draft.journal.is_on())
      draft.journal.note(
          kube::join_key(draft.pod_path(i) + ".metadata.annotations", gang::kVolcanoAnnotation),
          source());
  }
}

void Volcano::add_dependents(Draft& draft) const {
  const VolcanoPolicy* policy = policy_of(draft);
  DependentObject group = make_pod_group(draft, gang::kVolcanoPodGroups);
  kube::Json& spec = group.object["spec"];
  if (const auto queue = draft.annotations.find(kQueueAnnotation); queue != draft.annotations.end())
    spec.set("queue", queue->second);
  if (std::string priority = priority_class(draft); !priority.empty())
    spec.set("priorityClassName", std::move(priority));
  if (policy->networkTopology)
    spec.set("networkTopology",
             kube::Json::object({{"mode", policy->networkTopology->mode.value_or("hard")},
                                 {"highestTierAllowed",
                                  policy->networkTopology->highestTierAllowed.value_or(1)}}));
  draft.dependents.push_back(std::move(group));
}

void Volcano::validate(const Draft& draft, kube::FieldErrors& errors) const {
  const auto queue = draft.annotations.find(kQueueAnnotation);
  if (queue != draft.annotations.end() && queue->second.empty())
    errors.push_back(kube::invalid(
        path_of_queue(draft.job), queue->second,
        fmt::format(
            "Volcano queue name must not be empty; name a queue in annotation {}, or leave it out",
            kQueueAnnotation)));
}

std::unique_ptr<const Plugin> make_volcano() {
  return std::make_unique<Volcano>();
}

}  // namespace trainer::pipeline
