// This plugin makes gangs for Volcano (Kubeflow Trainer, pkg/runtime/framework/plugins/volcano).
#include <fmt/format.h>

#include <string>
#include <utility>

#include "kube/model/pod_template.hh"
#include "runtimes/gang/gang_scheduler.hh"
#include "runtimes/jobset/job_template.hh"
#include "runtimes/pipeline/plugin.hh"
#include "runtimes/pipeline/pod_group.hh"

namespace trainer::pipeline {

namespace {

constexpr std::string_view kQueueAnnotation = "scheduling.volcano.sh/queue-name";

const VolcanoPolicy* policy_of(const Runtime& runtime) {
  const auto& policy = runtime.spec.podGroupPolicy;
  return policy && policy->volcano ? &*policy->volcano : nullptr;
}

// A group has one priority. If several jobs have one, the last one's counts, which is the trainer's
// in the usual order.
std::string priority_class(const Draft& draft) {
  std::string name;
  for (std::size_t i = 0; i < draft.pod_sets.size(); ++i)
    if (const kube::Json* spec = draft.pod_template(i).find("spec"))
      if (const kube::Json* found = spec->find("priorityClassName");
          found != nullptr && found->is_string())
        name = found->as_string();
  return name;
}

// Returns the source of the queue's annotation: the last patch that sets it, else the runtime.
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
  void warn(const Draft& draft, std::vector<std::string>& warnings) const override;
  void warn_runtime(const Runtime& runtime, std::vector<std::string>& warnings) const override;
  std::vector<std::string> priority_classes(const Runtime& runtime) const override;
};

}  // namespace

bool Volcano::is_active(const Draft& draft) const {
  return policy_of(draft.runtime) != nullptr;
}

void Volcano::enforce_pod_group_policy(Draft& draft) const {
  mark_gang(draft, gang::volcano(), source());
}

void Volcano::add_dependents(Draft& draft) const {
  const VolcanoPolicy* policy = policy_of(draft.runtime);
  gang::GroupRequest request;
  if (const auto queue = draft.annotations.find(kQueueAnnotation); queue != draft.annotations.end())
    request.queue = queue->second;
  request.priority_class = priority_class(draft);
  DependentObject group = make_pod_group(draft, gang::volcano(), std::move(request));
  if (policy->networkTopology)
    group.object["spec"].set(
        "networkTopology",
        kube::Json::object(
            {{"mode", policy->networkTopology->mode.value_or("hard")},
             {"highestTierAllowed", policy->networkTopology->highestTierAllowed.value_or(1)}}));
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

// Nothing reads the annotation in the job's own metadata.
void Volcano::warn(const Draft& draft, std::vector<std::string>& warnings) const {
  const auto& own = draft.job.metadata.annotations;
  const auto queue = own.find(kQueueAnnotation);
  const auto used = draft.annotations.find(kQueueAnnotation);
  if (queue == own.end() || (used != draft.annotations.end() && used->second == queue->second))
    return;
  warnings.push_back(
      fmt::format("{}: has no effect there, and the job goes to queue {}; write it into "
                  "spec.runtimePatches[].trainingRuntimeSpec.template.metadata.annotations",
                  kube::join_key("metadata.annotations", kQueueAnnotation),
                  used == draft.annotations.end() ? std::string("default") : used->second));
}

// Annotations alone make no gang: another scheduler starts the pods one by one.
void Volcano::warn_runtime(const Runtime& runtime, std::vector<std::string>& warnings) const {
  if (policy_of(runtime) == nullptr) return;
  for (const ReplicatedJob& job : replicated_jobs_of(runtime)) {
    if (ancestor_of(job) != kTrainerStep ||
        !jobset::pod_spec_of(job).get_string("schedulerName").empty())
      continue;
    warnings.push_back(fmt::format(
        "spec.podGroupPolicy.volcano: job {} names no scheduler, so the cluster's default one "
        "starts its pods one by one; set schedulerName: volcano in its pod template",
        job.name));
  }
}

std::vector<std::string> Volcano::priority_classes(const Runtime& runtime) const {
  return policy_of(runtime) == nullptr ? std::vector<std::string>()
                                       : named_priority_classes(runtime);
}

std::unique_ptr<const Plugin> make_volcano() {
  return std::make_unique<Volcano>();
}

}  // namespace trainer::pipeline
