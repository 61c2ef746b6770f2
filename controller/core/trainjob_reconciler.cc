#include "controller/core/trainjob_reconciler.hh"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "api/api.hh"
#include "controller/ssh/key_pair.hh"
#include "kube/client/url.hh"
#include "kube/client/yield.hh"
#include "kube/model/digest.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "runtimes/trainjob/unreadable.hh"

namespace trainer {
namespace {

using kube::Result;
using kube::Task;

// A plan that still lacks something after this many reads has a bug; it is tried again with
// backoff.
constexpr int kMaxRounds = 6;
// A stuck job's events are asked for at most this often.
constexpr std::chrono::seconds kEventsInterval{30};

// Whoever mends a refused snapshot does it with a ConfigMap, which is not watched.
bool is_snapshot_refused(const TrainJobStatus& status) {
  return status.reason == "RuntimeSnapshotInvalid" || status.reason == "RuntimeSnapshotLost";
}

bool is_name_taken(const TrainJobStatus& status) {
  return status.reason == "ChildNameTaken";
}

kube::ObjectKey snapshot_key(const TrainJob& job) {
  return {job.metadata.ns, job.metadata.name + "-runtime-snapshot"};
}

// What is worth remembering of writes: the stores have the rest.
std::vector<kube::Action> dependents_in(const std::vector<kube::Action>& actions) {
  std::vector<kube::Action> dependents;
  std::copy_if(actions.begin(), actions.end(), std::back_inserter(dependents),
               [](const kube::Action& action) {
                 return action.resource != kJobSets && action.resource != kTrainJobs;
               });
  return dependents;
}

// Keys need chance, which a plan has none of: it says which Secrets want a pair.
Result<void> fill_ssh_keys(TrainJobPlan& plan) {
  for (const auto index : plan.ssh_key_actions) {
    const auto pair = make_ssh_key_pair();
    if (!pair) return tl::unexpected(pair.error());
    plan.actions.at(index)
        .body["data"]
        .set("ssh-privatekey", kube::base64_encode(pair->private_key.reveal()))
        .set("ssh-publickey", kube::base64_encode(pair->public_key));
  }
  return {};
}

}  // namespace

Task<Result<Requeue>> TrainJobReconciler::reconcile(kube::ObjectKey key) {
  const auto stored = stores_.trainjobs.find(key);
  if (!stored) co_return Requeue{};
  const auto decoded = jobs_.of(stored);
  const kube::Json& object = *decoded->object;
  const auto& job = decoded->job;
  if (stored->body.size() >= kube::kLargeText) co_await kube::yield();
  if (!job) {
    ObjectRef unreadable{kTrainJobs, key, stored->uid, stored->resource_version};
    co_return co_await plan_runner_.run(std::move(unreadable),
                                        plan_unreadable(object, job.error()));
  }
  auto& slot = job_states_[stored->uid];
  if (!slot) slot = std::make_shared<JobState>();
  const auto job_state = slot;  // the map may change while we wait
  // What a job has beside its JobSet is not watched: whoever deleted it sees it made again with the
  // next change of the job.
  if (job_state->shape != decoded->shape) {
    if (job_state->shape) job_state->forget_reads();
    job_state->shape = decoded->shape;
  }
  // An object in the way is waited for: it may be gone by now.
  if (is_snapshot_refused(job->status) || is_name_taken(job->status)) job_state->forget_reads();
  const Child child = child_of(key, *job_state);
  if (child.stored && child.stored->body.size() >= kube::kLargeText) co_await kube::yield();

  auto plan = co_await make_plan(*job, object, job_state, child);
  if (!plan) co_return tl::unexpected(plan.error());
  if (auto filled = fill_ssh_keys(*plan); !filled) co_return tl::unexpected(filled.error());
  const std::vector<kube::Action> desired = dependents_in(plan->actions);
  if (plan->total_nodes) job_state->total_nodes = *plan->total_nodes;
  ObjectRef ref{kTrainJobs, key, stored->uid, stored->resource_version};
  auto done = co_await plan_runner_.run(std::move(ref), std::move(*plan));
  if (!done) {
    const auto code = done.error().code;
    if (code == kube::ErrorCode::kCancelled) co_return done;
    if (code != kube::ErrorCode::kConflict) job_state->build_error = done.error().message;
    // What a failed stage left behind is not known: ask again before writing again.
    job_state->forget_reads();
    co_return done;
  }
  remember(desired, *job_state);
  if (!job_state->build_error.empty()) {
    job_state->build_error.clear();
    done = Requeue(std::chrono::milliseconds(0));  // so that the status stops naming it
  }
  co_return done;
}

TrainJobReconciler::DecodedJob TrainJobReconciler::decode_job(
    std::shared_ptr<const kube::Json> object) {
  auto job = read_trainjob(*object);
  std::size_t shape = 0;
  if (job) {
    shape = std::hash<std::string>()(fmt::format(
        "{}|{}|{}", job->metadata.generation, kube::print_json(kube::to_json(job->metadata.labels)),
        kube::print_json(kube::to_json(job->metadata.annotations))));
  }
  return {std::move(object), std::move(job), shape};
}

TrainJobReconciler::Child TrainJobReconciler::child_of(const kube::ObjectKey& key,
                                                       const JobState& job_state) {
  Child child;
  child.stored = stores_.jobsets.find(key);
  if (child.stored) {
    child.decoded = stores_.decoded_jobsets.of(child.stored);
  } else if (job_state.deleted_jobset) {
    if (const auto object = kube::parse_json(job_state.deleted_jobset->text())) {
      if (auto read = read_jobset(*object)) child.deleted = std::move(*read);
    }
  }
  return child;
}

Task<Result<TrainJobPlan>> TrainJobReconciler::make_plan(const TrainJob& job,
                                                         const kube::Json& object,
                                                         std::shared_ptr<JobState> job_state,
                                                         const Child& child) {
  Reads reads;
  for (int round = 0; round < kMaxRounds; ++round) {
    auto plan = plan_trainjob(observe(job, object, *job_state, reads, child), options_);
    auto has_read = co_await read_needs(job, plan, job_state, reads);
    if (!has_read) co_return tl::unexpected(has_read.error());
    if (!*has_read) co_return plan;
  }
  co_return kube::fail(kube::ErrorCode::kInternal,
                       fmt::format("TrainJob {}: the plan asks for more after {} reads",
                                   job.metadata.key().to_string(), kMaxRounds));
}

TrainJobObserved TrainJobReconciler::observe(const TrainJob& job, const kube::Json& object,
                                             const JobState& job_state, const Reads& reads,
                                             const Child& child) const {
  TrainJobObserved observed{job, object};
  observed.snapshot = job_state.snapshot;
  observed.live_runtime = reads.live_runtime;
  observed.runtime_error = reads.runtime_error;
  observed.jobset = child.jobset();
  observed.jobset_object = child.decoded ? child.decoded->object.get() : nullptr;
  if (child.stored) observed.jobset_owned_fields = child.stored->owned_fields;
  observed.deleted_jobset = child.deleted ? &*child.deleted : nullptr;
  observed.pods = stores_.pods_of(job.metadata.key());
  observed.dependents = job_state.dependents;
  observed.dependent_objects = job_state.dependent_objects;
  observed.build_error = job_state.build_error;
  observed.waiting_event = job_state.waiting_event;
  observed.total_nodes = job_state.total_nodes;
  if (child.stored) observed.have_jobs_started = have_jobs_started(child.stored->uid);
  observed.is_jobset_controller_active = child.jobset()
                                             ? ownership_.owns(child.jobset()->spec.managedBy)
                                             : ownership_.mode() != JobSetControllerMode::kOff;
  observed.gates = gates_;
  observed.jobset_managed_by = ownership_.stamp();
  observed.now = clock_.now();
  return observed;
}

Task<Result<bool>> TrainJobReconciler::read_needs(const TrainJob& job, const TrainJobPlan& plan,
                                                  std::shared_ptr<JobState> job_state,
                                                  Reads& reads) {
  bool has_read = false;
  if (plan.needs_snapshot && !job_state->snapshot) {
    auto read = co_await read_snapshot(job, job_state);
    if (!read) co_return tl::unexpected(read.error());
    has_read = true;
  }
  if (plan.needs_live_runtime && !reads.live_runtime && reads.runtime_error.empty()) {
    co_await read_runtime(job, reads);
    has_read = true;
  }
  for (const auto& [resource, key] : plan.needs_dependents) {
    if (job_state->dependents.count(dependent_name(resource, key.name))) continue;
    auto read = co_await read_dependent(job, resource, key, job_state);
    if (!read) co_return tl::unexpected(read.error());
    has_read = true;
  }
  const auto now = clock_.steady();
  if (plan.needs_events &&
      (!job_state->events_asked || now - *job_state->events_asked >= kEventsInterval)) {
    job_state->events_asked = now;
    co_await read_events(job, job_state);
    has_read = true;
  } else if (!plan.needs_events && !job_state->waiting_event.empty()) {
    job_state->waiting_event.clear();
    has_read = true;
  }
  co_return has_read;
}

Task<Result<void>> TrainJobReconciler::read_dependent(const TrainJob& job, kube::Resource resource,
                                                      kube::ObjectKey key,
                                                      std::shared_ptr<JobState> job_state) {
  const std::string name = dependent_name(resource, key.name);
  auto existing = co_await client_.get(resource, key);
  if (!existing && existing.error().code != kube::ErrorCode::kNotFound) {
    co_return tl::unexpected(existing.error().at(
        fmt::format("TrainJob {}: read {}", job.metadata.key().to_string(), name)));
  }
  job_state->dependents[name] = existing.has_value();
  if (existing) {
    job_state->dependent_objects[name] = std::make_shared<const kube::Json>(std::move(*existing));
  }
  co_return Result<void>{};
}

Task<Result<void>> TrainJobReconciler::read_snapshot(const TrainJob& job,
                                                     std::shared_ptr<JobState> job_state) {
  // A job that nobody has touched yet has no snapshot. Should one stand all the same, creating ours
  // conflicts, and then it is read.
  if (job_state->is_fresh && job.metadata.generation == 1 && job.status.phase.empty() &&
      !stores_.jobsets.find(job.metadata.key())) {
    job_state->is_fresh = false;
    job_state->snapshot = nullptr;
    co_return Result<void>{};
  }
  auto existing = co_await client_.get(kube::kConfigMaps, snapshot_key(job));
  if (!existing && existing.error().code != kube::ErrorCode::kNotFound) {
    co_return tl::unexpected(existing.error().at("read the runtime snapshot"));
  }
  job_state->snapshot = existing ? view_of_snapshot(*existing, job) : nullptr;
  co_return Result<void>{};
}

Task<void> TrainJobReconciler::read_runtime(const TrainJob& job, Reads& reads) {
  const auto& ref = job.spec.runtimeRef;
  const bool is_namespaced = ref.kind == "TrainingRuntime";
  const auto& resource = is_namespaced ? kTrainingRuntimes : kClusterTrainingRuntimes;
  const kube::ObjectKey key{is_namespaced ? job.metadata.ns : std::string(), ref.name};
  auto live = co_await snapshots_.read_live(resource, key);
  if (live) {
    reads.live_runtime = std::move(*live);
  } else {
    reads.runtime_error = live.error().message;
  }
}

Task<void> TrainJobReconciler::read_events(const TrainJob& job,
                                           std::shared_ptr<JobState> job_state) {
  // The first pod that waits; before there are pods, the Job that cannot make them.
  std::string kind = "Job";
  std::string name;
  for (const auto* pod : stores_.pods_of(job.metadata.key())) {
    if (pod->phase != "Pending" || pod->is_deleting) continue;
    kind = "Pod";
    name = pod->name;
    break;
  }
  if (name.empty()) {
    const auto jobset = stores_.jobsets.find(job.metadata.key());
    const auto jobs = jobset ? stores_.jobs_of(jobset->uid) : std::vector<const JobView*>{};
    if (jobs.empty()) co_return;
    name = jobs.front()->name;
  }
  std::string latest;
  std::string text;
  const auto take = [&latest, &text](std::string_view item) {
    const auto event = kube::parse_json(item);
    if (!event || event->get_string("type") != "Warning") return;
    std::string at(event->get_string("lastTimestamp", event->get_string("eventTime")));
    if (at < latest) return;
    latest = std::move(at);
    text = fmt::format("{}: {}", event->get_string("reason"), event->get_string("message"));
  };
  const std::string selector =
      fmt::format("involvedObject.kind={},involvedObject.name={}", kind, name);
  std::string query = "fieldSelector=" + kube::percent_encode(selector);
  std::function<void(std::string_view)> on_item = take;
  auto listed = co_await client_.list(kube::kEvents, job.metadata.ns, std::move(query), on_item);
  if (listed) job_state->waiting_event = text;
}

std::shared_ptr<const SnapshotView> TrainJobReconciler::view_of_snapshot(
    const kube::Json& config_map, const TrainJob& job) {
  const auto meta = kube::ObjectMeta::of(config_map);
  auto view = std::make_shared<SnapshotView>();
  if (const auto* owner = meta.controller()) view->owner_uid = owner->uid;
  if (const auto* text = config_map.find_path({"data", "runtime"}); text && text->is_string()) {
    const std::string& content = text->as_string();
    const bool is_usable = view->owner_uid == job.metadata.uid && is_text_of(job.status, content);
    view->content = is_usable ? snapshots_.of(content) : unread_snapshot(content);
  }
  return view;
}

void TrainJobReconciler::remember(const std::vector<kube::Action>& actions, JobState& job_state) {
  for (const auto& action : actions) {
    const bool exists = action.verb != kube::Action::Verb::kDelete;
    const auto* text = action.body.find_path({"data", "runtime"});
    if (action.resource == kube::kConfigMaps && exists && text) {
      const SnapshotView written{action.owner_uid, snapshots_.of(text->as_string())};
      job_state.snapshot = std::make_shared<const SnapshotView>(written);
      continue;
    }
    const std::string name = dependent_name(action.resource, action.key.name);
    job_state.dependents[name] = exists;
    if (exists && action.resource != kube::kSecrets) {  // keys are not kept
      job_state.dependent_objects[name] = std::make_shared<const kube::Json>(action.body);
    } else {
      job_state.dependent_objects.erase(name);
    }
  }
}

bool TrainJobReconciler::have_jobs_started(const std::string& jobset_uid) const {
  const auto jobs = stores_.jobs_of(jobset_uid);
  return std::any_of(jobs.begin(), jobs.end(), [](const auto* job) { return job->has_start_time; });
}

void TrainJobReconciler::jobset_removed(const StoredObject& last) {
  if (last.controller_kind != "TrainJob") return;
  // Of a TrainJob that went first nothing is remembered any more.
  const auto owner = stores_.trainjobs.find(last.object_key);
  if (!owner || owner->uid != last.controller_uid) return;
  auto& slot = job_states_[last.controller_uid];
  if (!slot) slot = std::make_shared<JobState>();
  slot->deleted_jobset = std::make_shared<const kube::CompressedText>(last.body);
}

void TrainJobReconciler::forget(const std::string& uid) {
  job_states_.erase(uid);
  plan_runner_.forget(uid);
}

}  // namespace trainer
