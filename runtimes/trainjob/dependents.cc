#include "runtimes/trainjob/dependents.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtimes/pipeline/plugin.hh"
#include "runtimes/trainjob/difference.hh"
#include "runtimes/trainjob/known_objects.hh"
#include "runtimes/trainjob/stacks.hh"

namespace trainer {
namespace {

using kube::Json;

constexpr int kDependentStage = 1;
constexpr int kLastStage = 3;  // after the JobSet

std::vector<DependentObject> refreshed(const TrainJobObserved& observed,
                                       const PipelineOptions& options) {
  std::vector<DependentObject> all;
  if (!observed.jobset_object) return all;
  for (const auto& plugin : *options.plugins)
    plugin->refresh_dependents(observed.job, *observed.jobset_object, options, all);
  return all;
}

class DependentPlanner {
 public:
  DependentPlanner(const TrainJobObserved& observed, const DependentObject& dependent,
                   TrainJobPlan& plan)
      : observed_(observed),
        dependent_(dependent),
        plan_(plan),
        key_{observed.job.metadata.ns, kube::ObjectMeta::of(dependent.object).name} {}

  std::optional<Blocked> run(bool is_refreshed) {
    const kube::ReadObject* const known =
        known_dependent(observed_, dependent_.resource, key_.name);
    const bool is_apply = dependent_.mode == DependentObject::Mode::kApply;
    if (!known) {
      // A create of an existing object fails, and so finds out whose the object is. The object is
      // read before a first apply, and when a JobSet proves that there was a create.
      if (is_apply || observed_.jobset)
        plan_.needs_objects.push_back({dependent_.resource, key_});
      else
        write(nullptr);
      return std::nullopt;
    }
    if (!known->exists()) return write_missing();
    if (known->controller_uid != observed_.job.metadata.uid) return name_taken();
    // A running job's gang is not changed: its scheduler has counted on it.
    if (is_apply && (is_refreshed || observed_.job.is_suspended() || !observed_.jobset))
      write(known->object.get());
    return std::nullopt;
  }

 private:
  bool has_pod(std::string_view phase) const {
    return std::any_of(observed_.pods.begin(), observed_.pods.end(), [&](const PodView* pod) {
      return pod && pod->phase == phase &&
             (!observed_.jobset || pod->attempt == observed_.jobset->status.restarts);
    });
  }

  std::optional<Blocked> write_missing() {
    // Only some of the running pods would know a new key.
    const bool are_keys_in_use =
        dependent_.generate != DependentObject::Generate::kNothing && has_pod("Running");
    if (!are_keys_in_use) write(nullptr);
    if (!are_keys_in_use || !has_pod("Pending")) return std::nullopt;
    return Blocked{
        reasons::kChildMissing,
        fmt::format("{} \"{}\" was deleted, and pods run with its keys, without which others "
                    "cannot start: delete JobSet \"{}\" to start all pods with new keys",
                    dependent_.resource.kind, key_.to_string(),
                    observed_.job.metadata.key().to_string())};
  }

  std::optional<Blocked> name_taken() const {
    if (!dependent_.is_needed) return std::nullopt;
    return Blocked{
        reasons::kChildNameTaken,
        fmt::format(
            "{} \"{}\" exists and is not controlled by this TrainJob: delete it or create the "
            "TrainJob under another name",
            dependent_.resource.kind, key_.to_string())};
  }

  void write(const Json* stored) {
    kube::Action action;
    action.resource = dependent_.resource;
    action.key = key_;
    action.owner_uid = observed_.job.metadata.uid;
    // If the API server has refused something, objects that pods do not need come last.
    action.stage = dependent_.is_needed || !observed_.refusal ? kDependentStage : kLastStage;
    action.body = with_owner(dependent_.object, observed_.job);
    if (stored && !is_dependent_changed(action.body, *stored)) return;
    action.verb = dependent_.mode == DependentObject::Mode::kApply ? kube::Action::Verb::kApply
                                                                   : kube::Action::Verb::kCreate;
    if (stored) action.body["metadata"].set("uid", kube::ObjectMeta::of(*stored).uid);
    plan_.actions.push_back(std::move(action));
    if (dependent_.generate == DependentObject::Generate::kSshKeyPair)
      plan_.ssh_key_actions.push_back(plan_.actions.size() - 1);
  }

  const TrainJobObserved& observed_;
  const DependentObject& dependent_;
  TrainJobPlan& plan_;
  const kube::ObjectKey key_;
};

}  // namespace

bool is_dependent_missing(const TrainJobObserved& observed, const PipelineOptions& options) {
  const auto& all = observed.objects.entries();
  return std::any_of(all.begin(), all.end(), [&](const auto& entry) {
    const auto& [name, each] = entry;
    const bool is_runtime = each.resource.group == kTrainJobs.group;
    if (!each.is_known || each.read.exists() || is_runtime ||
        is_snapshot(observed.job, each.resource, name) ||
        is_stacks(observed.job, each.resource, name) || !is_dependent_current(observed, each.read))
      return false;
    const auto others = refreshed(observed, options);
    return std::none_of(others.begin(), others.end(), [&](const DependentObject& one) {
      return one.resource == each.resource && kube::ObjectMeta::of(one.object).name == name;
    });
  });
}

std::optional<Blocked> plan_dependent(const TrainJobObserved& observed,
                                      const DependentObject& dependent, TrainJobPlan& plan) {
  return DependentPlanner(observed, dependent, plan).run(false);
}

void refresh_dependents(const TrainJobObserved& observed, const PipelineOptions& options,
                        TrainJobPlan& plan) {
  for (const DependentObject& dependent : refreshed(observed, options))
    DependentPlanner(observed, dependent, plan).run(true);
}

}  // namespace trainer
