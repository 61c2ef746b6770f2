#include "controller/kinds/trainjob/job_reader.hh"

#include <fmt/format.h>

#include "kube/client/url.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "runtimes/views/text.hh"

namespace trainer {
namespace {

using kube::Result;
using kube::Task;

// The events of a job that waits are read at most this often.
constexpr std::chrono::seconds kEventsInterval{30};
constexpr std::size_t kMaxEventPages = 2;  // any user can write Events about a pod
constexpr std::size_t kMaxEventText = 2'048;

kube::ObjectKey snapshot_key(const TrainJob& job) {
  return {job.metadata.ns, job.metadata.name + "-runtime-snapshot"};
}

// What the plan reads of a dependent object: all of one to update; of a Secret, and of an object of
// another owner, only who controls it. Those may be large, and keys are not kept.
kube::Json kept_of(kube::Json object, const kube::Resource& resource, const TrainJob& job) {
  const auto meta = kube::ObjectMeta::of(object);
  const kube::OwnerReference* const owner = meta.controller();
  if (resource != kube::kSecrets && owner && owner->uid == job.metadata.uid) return object;
  kube::Json kept = kube::Json::object({{"metadata", kube::Json::object()}});
  if (owner) kept["metadata"].set("ownerReferences", kube::Json::array({owner->to_json()}));
  return kept;
}

// Of the scheduler and the kubelet: what a warning before it said no longer holds the pod up.
// Others say nothing about that, such as the autoscaler's.
bool is_progress(std::string_view reason) {
  return reason == "Scheduled" || reason == "Pulling" || reason == "Pulled";
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
  const auto now = client_.clock().steady();
  if (plan.needs_events &&
      (!state->events_read_at || now - *state->events_read_at >= kEventsInterval)) {
    state->events_read_at = now;
    co_await read_events(job, state);
    has_read = true;
  } else if (!has_read && !plan.needs_events && !state->waiting_event.empty()) {
    state->waiting_event.clear();
    has_read = true;
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

Task<void> JobReader::read_events(const TrainJob& job, std::shared_ptr<JobState> state) {
  // The events of the first pod that waits or, before there are pods, of the Job that cannot create
  // them.
  std::string kind = "Job";
  std::string name;
  for (const auto* pod : pods_.find_by(kByJobSet, job.metadata.ns, job.metadata.name)) {
    if (pod->phase != "Pending" || pod->is_deleting) continue;
    kind = "Pod";
    name = pod->name;
    break;
  }
  if (name.empty()) {
    const auto jobset = jobsets_.find(job.metadata.key());
    const auto jobs = jobset ? jobs_.find_by(kByOwner, job.metadata.ns, jobset->uid)
                             : std::vector<const JobView*>{};
    if (jobs.empty()) co_return;
    name = jobs.front()->name;
  }
  std::string latest;
  std::string text;
  const auto take = [&latest, &text](std::string_view item) {
    static const kube::JsonFilter kRead{
        "",
        kube::JsonFilter::Members::kInclude,
        {{"type"}, {"reason"}, {"message"}, {"lastTimestamp"}, {"eventTime"}}};
    const auto event = kube::parse_json(item, kube::kObjectLimits, kRead);
    if (!event) return;
    const bool is_warning = event->get_string("type") == "Warning";
    if (!is_warning && !is_progress(event->get_string("reason"))) return;
    std::string at(event->get_string("lastTimestamp", event->get_string("eventTime")));
    if (at < latest) return;
    latest = std::move(at);
    text.clear();
    if (!is_warning) return;
    // The API server limits neither of these in a core/v1 Event.
    text =
        keep_head(fmt::format("{}: {}", event->get_string("reason"), event->get_string("message")),
                  kMaxEventText);
  };
  const std::string selector =
      fmt::format("involvedObject.kind={},involvedObject.name={}", kind, name);
  std::string query = "fieldSelector=" + kube::percent_encode(selector);
  std::function<void(std::string_view)> on_item = take;
  const auto listed = co_await client_.list(kube::kEvents, job.metadata.ns, std::move(query),
                                            on_item, kMaxEventPages);
  if (!listed) co_return;
  if (text.starts_with("FailedMount")) state->forget_dependents();  // one may have been deleted
  state->waiting_event = text;
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
