#include "runtimes/trainjob/stacks.hh"

#include <utility>

#include "kube/model/digest.hh"
#include "kube/model/resources.hh"
#include "runtimes/trainjob/children.hh"

namespace trainer {
namespace {

using kube::Json;

constexpr int kStacksStage = 4;  // after everything that pods need

kube::Action write_stacks(const TrainJob& job, const SavedStacks& stacks,
                          const kube::ReadObject& stored) {
  kube::Action action;
  action.resource = kube::kConfigMaps;
  action.key = stacks_object(job).key;
  action.stage = kStacksStage;
  action.failure_reason = "StacksNotSaved";
  action.owner_uid = job.metadata.uid;
  Json metadata = Json::object({{"name", action.key.name},
                                {"namespace", action.key.ns},
                                {"ownerReferences", Json::array({owner_reference(job)})}});
  // A create finds out whether there is an object of another owner by now.
  action.verb = kube::Action::Verb::kCreate;
  if (stored.exists()) {
    action.verb = kube::Action::Verb::kApply;
    metadata.set("uid", kube::ObjectMeta::of(*stored.object).uid);
  }
  action.body = Json::object({{"apiVersion", "v1"},
                              {"kind", "ConfigMap"},
                              {"metadata", std::move(metadata)},
                              {"binaryData", Json::object({{std::string(kStacksFile),
                                                            kube::base64_encode(stacks.bytes)}})}});
  return action;
}

}  // namespace

kube::NamedObject stacks_object(const TrainJob& job) {
  return {kube::kConfigMaps,
          {job.metadata.ns, std::string(job.metadata.name).append(kStacksSuffix)}};
}

bool is_stacks(const TrainJob& job, const kube::Resource& resource, std::string_view name) {
  const std::string& job_name = job.metadata.name;
  return name.size() == job_name.size() + kStacksSuffix.size() && name.starts_with(job_name) &&
         name.ends_with(kStacksSuffix) && resource.has_same_objects(kube::kConfigMaps);
}

void plan_stacks(const TrainJobObserved& observed, const TrainJobStatus& after,
                 TrainJobPlan& plan) {
  if (!observed.heartbeats || !observed.heartbeats->stacks || !after.stall) return;
  const SavedStacks& stacks = *observed.heartbeats->stacks;
  if (stacks.number == observed.stacks_number) return;
  // It is read each time: nothing else would show that it was deleted, or whose it is.
  kube::NamedObject named = stacks_object(observed.job);
  const kube::ReadObject* const stored = observed.objects.find(named.resource, named.key.name);
  if (!stored || !stored->is_new) {
    plan.needs_objects.push_back(std::move(named));
    return;
  }
  plan.stacks_number = stacks.number;
  const bool is_of_another =
      stored->exists() && stored->controller_uid != observed.job.metadata.uid;
  if (is_of_another || !stored->error.empty()) return;
  plan.actions.push_back(write_stacks(observed.job, stacks, *stored));
}

}  // namespace trainer
