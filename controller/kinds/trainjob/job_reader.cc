#include "controller/kinds/trainjob/job_reader.hh"

#include <fmt/format.h>

#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"

namespace trainer {
namespace {

using kube::Result;
using kube::Task;

kube::ObjectKey snapshot_key(const TrainJob& job) {
  return {job.metadata.ns, job.metadata.name + "-runtime-snapshot"};
}

// The plan reads all of a dependent object that it may update. It reads only who controls a Secret
// or an object of another owner. Those may be large, and keys are not kept.
kube::Json kept_of(kube::Json object, const kube::Resource& resource, const TrainJob& job) {
  const auto meta = kube::ObjectMeta::of(object);
  const kube::OwnerReference* const owner = meta.controller();
  if (resource != kube::kSecrets && owner && owner->uid == job.metadata.uid) return object;
  kube::Json kept = kube::Json::object({{"metadata", kube::Json::object()}});
  if (owner) kept["metadata"].set("ownerReferences", kube::Json::array({owner->to_json()}));
  return kept;
}

}  // namespace

Task<Result<bool>> JobReader::read_needs(const TrainJob& job, const TrainJobPlan& plan,
                                         std::shared_ptr<JobState> state, Reads& reads) {
  bool has_read = false;
  if (plan.needs_snapshot && !state->snapshot) {
    auto read = co_await read_snapshot(job, state);
    if (!read) co_return tl::unexpected(read.error());
    has_read = true;
  }
  if (plan.needs_live_runtime && !reads.live_runtime && reads.runtime_error.empty()) {
    co_await read_runtime(job, reads);
    has_read = true;
  }
  for (const auto& [resource, key] : plan.needs_dependents) {
    if (state->dependents.count(dependent_name(resource, key.name))) continue;
    auto read = co_await read_dependent(job, resource, key, state);
    if (!read) co_return tl::unexpected(read.error());
    has_read = true;
  }
  if (plan.needs_events || !has_read) {
    std::shared_ptr<LastWarning> warning(state, &state->warning);
    if (co_await read_last_warning(client_, job.metadata.ns, plan.needs_events, warning)) {
      has_read = true;
      // A dependent object may have been deleted.
      if (warning->text.starts_with("FailedMount")) state->forget_dependents();
    }
  }
  co_return has_read;
}

Task<Result<void>> JobReader::read_dependent(const TrainJob& job, kube::Resource resource,
                                             kube::ObjectKey key, std::shared_ptr<JobState> state) {
  const std::string name = dependent_name(resource, key.name);
  auto existing = co_await client_.get(resource, key);
  if (!existing && existing.error().code != kube::ErrorCode::kNotFound) {
    co_return tl::unexpected(existing.error().at(
        fmt::format("TrainJob {}: read {}", job.metadata.key().to_string(), name)));
  }
  state->dependents[name] = existing.has_value();
  if (existing) {
    state->dependent_objects[name] =
        std::make_shared<const kube::Json>(kept_of(std::move(*existing), resource, job));
  }
  co_return Result<void>{};
}

Task<Result<void>> JobReader::read_snapshot(const TrainJob& job, std::shared_ptr<JobState> state) {
  // A job that no controller has reconciled yet has no snapshot. If one exists nevertheless, its
  // creation conflicts, and then it is read.
  if (state->is_fresh && job.metadata.generation == 1 && job.status.phase.empty() &&
      !jobsets_.find(job.metadata.key())) {
    state->is_fresh = false;
    state->snapshot = nullptr;
    co_return Result<void>{};
  }
  auto existing = co_await client_.get(kube::kConfigMaps, snapshot_key(job));
  if (!existing && existing.error().code != kube::ErrorCode::kNotFound) {
    co_return tl::unexpected(existing.error().at("read the runtime snapshot"));
  }
  state->snapshot = existing ? view_of_snapshot(*existing, job) : nullptr;
  state->former_content.reset();
  co_return Result<void>{};
}

Task<void> JobReader::read_runtime(const TrainJob& job, Reads& reads) {
  const auto& ref = job.spec.runtimeRef;
  const bool has_namespace = ref.kind == "TrainingRuntime";
  if (is_namespaced_ && !has_namespace) {
    reads.runtime_error =
        "the controller of this namespace has no rights to the cluster's runtimes: write "
        "spec.runtimeRef.kind: TrainingRuntime";
    co_return;
  }
  const auto& resource = has_namespace ? kTrainingRuntimes : kClusterTrainingRuntimes;
  const kube::ObjectKey key{has_namespace ? job.metadata.ns : std::string(), ref.name};
  auto live = co_await snapshots_.read_live(resource, key);
  if (live) {
    reads.live_runtime = std::move(*live);
  } else {
    reads.runtime_error = live.error().message;
  }
}

std::shared_ptr<const SnapshotView> JobReader::view_of_snapshot(const kube::Json& config_map,
                                                                const TrainJob& job) {
  const auto meta = kube::ObjectMeta::of(config_map);
  auto view = std::make_shared<SnapshotView>();
  if (const auto* owner = meta.controller()) view->owner_uid = owner->uid;
  if (const auto* text = config_map.find_path({"data", "runtime"}); text && text->is_string()) {
    const std::string& content = text->as_string();
    const bool is_usable = view->owner_uid == job.metadata.uid && is_text_of(job.status, content);
    view->content = is_usable ? snapshots_.of(content, job.status.runtimeSnapshotHash)
                              : unread_snapshot(content);
  }
  return view;
}

void JobReader::remember(const std::vector<kube::Action>& written, JobState& state) {
  for (const auto& action : written) {
    const bool exists = action.verb != kube::Action::Verb::kDelete;
    const auto* text = action.body.find_path({"data", "runtime"});
    if (action.resource == kube::kConfigMaps && exists && text) {
      const SnapshotView snapshot{action.owner_uid, snapshots_.of(text->as_string())};
      state.snapshot = std::make_shared<const SnapshotView>(snapshot);
      continue;
    }
    const std::string name = dependent_name(action.resource, action.key.name);
    state.dependents[name] = exists;
    if (exists && action.resource != kube::kSecrets) {  // keys are not kept
      state.dependent_objects[name] = std::make_shared<const kube::Json>(action.body);
    } else {
      state.dependent_objects.erase(name);
    }
  }
}

}  // namespace trainer
