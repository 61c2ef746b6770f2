#include "controller/kinds/trainjob/trainjob_controller.hh"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "api/api.hh"
#include "controller/config/values.hh"
#include "controller/ssh/key_pair.hh"
#include "kube/client/yield.hh"
#include "kube/model/digest.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "runtimes/trainjob/conditions.hh"
#include "runtimes/trainjob/legacy.hh"
#include "runtimes/trainjob/measures.hh"
#include "runtimes/trainjob/unreadable.hh"

namespace trainer {
namespace {

using kube::Debounce;
using kube::Result;
using kube::Task;

// One reconcile reads and plans again at most this often. A plan that still needs reads then has a
// bug; the reconcile is tried again with backoff.
constexpr int kMaxRounds = 6;

// A refused snapshot is repaired with a ConfigMap, which is not watched.
bool is_snapshot_refused(const TrainJobStatus& status) {
  return status.reason == "RuntimeSnapshotInvalid" || status.reason == "RuntimeSnapshotLost";
}

bool is_child_in_the_way(const TrainJobStatus& status) {
  return status.reason == "ChildNameTaken" || status.reason == "ChildMissing";
}

// Forgets what this reconcile has to read again. `shape`: the job's.
void forget_outdated(const TrainJobStatus& status, std::size_t shape, JobState& state) {
  // Dependent objects are not watched: a deleted one is created again when the job changes, and
  // when pods need it again.
  if (state.shape != shape) {
    if (state.shape) state.forget_reads();
    state.shape = shape;
  }
  // An existing object blocks this one, or a missing one does: read again, since either may have
  // changed meanwhile.
  if (is_snapshot_refused(status) || is_child_in_the_way(status)) state.forget_reads();
  if (is_finished(status)) {  // nothing is built any more, and a snapshot may be large
    state.forget_reads();
    state.former_content.reset();
  }
}

// No reconcile follows such a write.
bool changes_reason_only(const TrainJobPlan& plan) {
  return plan.is_status_minor && plan.status_patch &&
         plan.status_patch->get("status").find("reason") != nullptr;
}

// The actions on dependent objects: all except those on the JobSet and the TrainJob.
std::vector<kube::Action> dependents_in(const std::vector<kube::Action>& actions) {
  std::vector<kube::Action> dependents;
  std::copy_if(actions.begin(), actions.end(), std::back_inserter(dependents),
               [](const kube::Action& action) {
                 return action.resource != kJobSets && action.resource != kTrainJobs;
               });
  return dependents;
}

// A plan has no random numbers: it says which Secrets need a key pair.
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

TrainJobController::TrainJobController(const kube::ControllerContext& context,
                                       std::shared_ptr<JobSetState> shared, Settings settings)
    : context_(context),
      shared_(std::move(shared)),
      settings_(std::move(settings)),
      trainjobs_(context.caches.get<kube::StoredObject>(all_of(kTrainJobs))),
      jobsets_(context.caches.get<kube::StoredObject>(all_of(kJobSets))),
      jobs_(context.caches.get<JobView>(jobset_jobs())),
      pods_(context.caches.get<PodView>(jobset_pods())),
      reader_(context.client, jobsets_, settings_.is_namespaced),
      finalizers_(context.io, context.client,
                  context.caches.get<kube::StoredObject>(all_of(kTrainingRuntimes)),
                  settings_.is_namespaced
                      ? nullptr
                      : &context.caches.get<kube::StoredObject>(all_of(kClusterTrainingRuntimes)),
                  settings_.removes_legacy_finalizers, context.log),
      job_metrics_(settings_.jobs, context.metrics, context.client.clock(),
                   {kTrainJobs.kind, true, failure_reasons()}) {
  if (!settings_.pipeline.is_progress_enabled) return;
  // Each running job has a ConfigMap with the CA.
  settings_.server->on_ca_change.push_back([this] {
    trainjobs_.each([this](const kube::ObjectKey& key, const auto&) {
      context_.router.enqueue(context_.id, key, Debounce::kCounters);
    });
  });
}

std::vector<kube::BackgroundTask> TrainJobController::leader_tasks() {
  std::vector<kube::BackgroundTask> tasks;
  tasks.push_back({"legacy finalizers", finalizers_.run()});
  return tasks;
}

void TrainJobController::on_jobset(const Stored& before, const Stored& after) {
  if (before && (!after || after->uid != before->uid)) keep_deleted_jobset(*before);
  // The TrainJob of this name: its owner, or one that must report that the name is taken.
  const auto& key = (after ? after : before)->object_key;
  if (!trainjobs_.find(key)) return;
  const bool has_counters_only =
      after && (!before || context_.router.source() == kube::ChangeSource::kOwnCounters);
  context_.router.enqueue(context_.id, key,
                          has_counters_only ? Debounce::kCounters
                          : after           ? Debounce::kShort
                                            : Debounce::kNone);
}

void TrainJobController::on_pod(const Pod& before, const Pod& after) {
  const auto& pod = after ? after : before;
  if (pod->jobset.empty() || is_unchanged(before, after)) return;
  const kube::ObjectKey key{pod->ns, pod->jobset};
  if (trainjobs_.find(key)) context_.router.enqueue(context_.id, key, Debounce::kCounters);
}

void TrainJobController::on_runtime(const Stored&, const Stored& after) {
  if (after) finalizers_.changed(after->object_key);
}

Task<Result<kube::Requeue>> TrainJobController::reconcile(kube::ObjectKey key) {
  const auto stored = trainjobs_.find(key);
  if (!stored) co_return kube::Requeue{};
  const auto decoded = decoded_.of(stored);
  const kube::Json& object = *decoded->object;
  const auto& job = decoded->job;
  if (!job) {
    measure_unreadable(object, key, stored->uid);
    kube::ObjectRef unreadable{key, stored->uid, stored->resource_version};
    co_return co_await context_.plan_runner.run(std::move(unreadable),
                                                plan_unreadable(object, job.error()));
  }
  auto& slot = states_[stored->uid];
  if (!slot) slot = std::make_shared<JobState>();
  const auto state = slot;  // the map may change during a co_await
  if (stored->body.size() >= kube::kLargeText) co_await kube::yield();
  forget_outdated(job->status, decoded->shape, *state);
  const Child child = child_of(key, *state);
  if (child.stored && child.stored->body.size() >= kube::kLargeText) co_await kube::yield();
  if (const JobSet* jobset = child.jobset()) {
    if (jobset->status.restarts > std::max(job->status.restarts, state->read_restarts))
      state->forget_dependents();
    state->read_restarts = jobset->status.restarts;  // less than before in one that was made again
  }

  measure(*job, object, *state, child.jobset());

  auto plan = co_await make_plan(*job, object, state, child);
  if (!plan) co_return tl::unexpected(plan.error());
  if (auto filled = fill_ssh_keys(*plan); !filled) co_return tl::unexpected(filled.error());
  const std::vector<kube::Action> desired = dependents_in(plan->actions);
  if (plan->total_nodes) state->total_nodes = *plan->total_nodes;
  state->scheduled_since = plan->scheduled_since;
  const bool changes_reason = changes_reason_only(*plan);
  kube::ObjectRef ref{key, stored->uid, stored->resource_version};
  auto done = co_await context_.plan_runner.run(std::move(ref), std::move(*plan));
  if (!done) {
    // It is not known which objects a failed stage has written, so they are read again before the
    // next write.
    if (done.error().code != kube::ErrorCode::kCancelled) state->forget_reads();
    co_return done;
  }
  if (changes_reason || state->record.awaits(JobStep::kJobSet)) measure_written(stored, *state);
  reader_.remember(desired, *state);
  co_return done;
}

TrainJobController::DecodedJob TrainJobController::decode_job(
    std::shared_ptr<const kube::Json> object) {
  auto job = read_stored_trainjob(*object);
  std::size_t shape = 0;
  if (job) {
    shape = std::hash<std::string>()(fmt::format(
        "{}|{}|{}", job->metadata.generation, kube::print_json(kube::to_json(job->metadata.labels)),
        kube::print_json(kube::to_json(job->metadata.annotations))));
  }
  return {std::move(object), std::move(job), shape};
}

TrainJobController::Child TrainJobController::child_of(const kube::ObjectKey& key,
                                                       const JobState& state) {
  Child child;
  child.stored = jobsets_.find(key);
  if (child.stored) {
    child.decoded = shared_->decoded.of(child.stored);
  } else if (state.deleted_jobset) {
    if (const auto object = kube::parse_json(state.deleted_jobset->text())) {
      if (auto read = read_jobset(*object)) child.deleted = std::move(*read);
    }
  }
  return child;
}

Task<Result<TrainJobPlan>> TrainJobController::make_plan(const TrainJob& job,
                                                         const kube::Json& object,
                                                         std::shared_ptr<JobState> state,
                                                         const Child& child) {
  JobReader::Reads reads;
  const PipelineOptions options = pipeline_options();
  for (int round = 0; round < kMaxRounds; ++round) {
    auto plan = plan_trainjob(observe(job, object, *state, reads, child), options);
    auto has_read = co_await reader_.read_needs(job, plan, state, reads);
    if (!has_read) co_return tl::unexpected(has_read.error());
    if (!*has_read) co_return plan;
  }
  co_return kube::fail(kube::ErrorCode::kInternal,
                       fmt::format("TrainJob {}: the plan asks for more after {} reads",
                                   job.metadata.key().to_string(), kMaxRounds));
}

TrainJobObserved TrainJobController::observe(const TrainJob& job, const kube::Json& object,
                                             const JobState& state, const JobReader::Reads& reads,
                                             const Child& child) const {
  TrainJobObserved observed{job, object};
  observed.snapshot = state.snapshot;
  observed.live_runtime = reads.live_runtime;
  observed.runtime_error = reads.runtime_error;
  observed.jobset = child.jobset();
  observed.jobset_object = child.decoded ? child.decoded->object.get() : nullptr;
  if (child.stored) observed.jobset_owned_fields = child.stored->fingerprint;
  observed.deleted_jobset = child.deleted ? &*child.deleted : nullptr;
  observed.pods = pods_.find_by(kByJobSet, job.metadata.ns, job.metadata.name);
  observed.dependents = state.dependents;
  observed.dependent_objects = state.dependent_objects;
  if (const auto* refusal = context_.plan_runner.refusal_of(job.metadata.uid))
    observed.build_error = refusal->message;
  observed.waiting_event = state.warning.text;
  observed.total_nodes = state.total_nodes;
  if (state.scheduled_since) {
    observed.scheduled_since = *state.scheduled_since;
  } else if (job.status.phase == "Starting") {
    observed.scheduled_since = kube::Time();  // an earlier process has recorded the event
  }
  if (child.stored)
    observed.jobs = jobs_.find_by(kByOwner, child.stored->object_key.ns, child.stored->uid);
  observed.is_jobset_controller_active =
      child.jobset() ? shared_->ownership.owns(child.jobset()->spec.managedBy)
                     : shared_->ownership.mode() != JobSetControllerMode::kOff;
  observed.gates = settings_.gates;
  observed.jobset_managed_by = shared_->ownership.managed_by();
  observed.marks_finished = settings_.marks_finished;
  observed.now = context_.client.clock().now();
  return observed;
}

PipelineOptions TrainJobController::pipeline_options() const {
  PipelineOptions options = settings_.pipeline;
  options.status_server_url = https_url({settings_.server->host, settings_.status_port});
  options.status_server_ca = settings_.server->ca_pem;
  return options;
}

// The metrics follow the stored status. The next reconcile counts what this one writes. If no
// reconcile follows from that write, it is counted at the end of this one.
void TrainJobController::measure(const TrainJob& job, const kube::Json& object, JobState& state,
                                 const JobSet* jobset) const {
  // A job that had finished before it was restored is counted once its status says so.
  if (status_before_restore(job, object)) return;
  const kube::ObjectMeta& meta = job.metadata;
  JobFacts facts;
  facts.ns = meta.ns;
  facts.runtime = job.spec.runtimeRef.name;
  facts.phase = phase_of(job.status);
  facts.waiting = waiting_reason(job.status);
  facts.failure = failure_reason(job.status);
  facts.created = meta.creation_timestamp.value_or(kube::Time());
  const JobRecord& record = state.record;
  facts.reach(JobStep::kJobSet,
              record.awaits(JobStep::kJobSet) && jobsets_.find(meta.key()) != nullptr);
  facts.reach(JobStep::kFirstPod, record.awaits(JobStep::kFirstPod) &&
                                      pods_.bucket_of(kByJobSet, meta.ns, meta.name) != nullptr);
  facts.reach(JobStep::kRunning, facts.phase == "Running");
  facts.has_run =
      facts.phase == "Restarting" || (job.is_suspended() && job.status.startTime.has_value());
  if (jobset) {
    const std::int32_t counted = jobset->status.restartsCountTowardsMax;
    facts.restarts = JobRestarts{counted, jobset->status.restarts - counted};
  }
  job_metrics_.update(state.record, facts);
}

// Its status is all that is known of it.
void TrainJobController::measure_unreadable(const kube::Json& object, const kube::ObjectKey& key,
                                            const std::string& uid) {
  auto& slot = states_[uid];
  if (!slot) slot = std::make_shared<JobState>();
  TrainJobStatus status;
  status.phase = object.get("status").get_string("phase");
  status.reason = kUnreadable;
  JobFacts facts;
  facts.ns = key.ns;
  facts.phase = phase_of(status);
  facts.waiting = waiting_reason(status);
  facts.has_run = true;
  job_metrics_.update(slot->record, facts);
}

void TrainJobController::measure_written(const Stored& before, JobState& state) {
  const auto stored = trainjobs_.find(before->object_key);
  if (!stored || stored->uid != before->uid) return;
  const auto decoded = decoded_.of(stored);
  if (decoded->job) measure(*decoded->job, *decoded->object, state, nullptr);
}

// The last state of a JobSet says whether its job had ended.
void TrainJobController::keep_deleted_jobset(const kube::StoredObject& last) {
  if (last.controller_kind != kTrainJobs.kind) return;
  // If the TrainJob was deleted first, nothing is kept.
  const auto owner = trainjobs_.find(last.object_key);
  if (!owner || owner->uid != last.controller_uid) return;
  auto& slot = states_[last.controller_uid];
  if (!slot) slot = std::make_shared<JobState>();
  slot->deleted_jobset = std::make_shared<const kube::CompressedText>(last.body);
}

void TrainJobController::forget(const std::string& uid) {
  states_.erase(uid);
}

}  // namespace trainer
