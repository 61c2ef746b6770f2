#include "controller/kinds/trainjob/trainjob_controller.hh"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <functional>
#include <utility>

#include "controller/config/values.hh"
#include "controller/ssh/key_pair.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "runtimes/trainjob/known_objects.hh"
#include "runtimes/trainjob/legacy.hh"
#include "runtimes/trainjob/measures.hh"
#include "runtimes/trainjob/stacks.hh"
#include "runtimes/trainjob/unreadable.hh"

namespace trainer {
namespace {

using kube::Debounce;
using kube::Result;
using kube::Task;

DecodedTrainJob decode_trainjob(std::shared_ptr<const kube::Json> object) {
  auto job = read_stored_trainjob(*object);
  std::size_t shape = 0;
  if (job) {
    shape = std::hash<std::string>()(fmt::format(
        "{}|{}|{}", job->metadata.generation, kube::print_json(kube::to_json(job->metadata.labels)),
        kube::print_json(kube::to_json(job->metadata.annotations))));
  }
  return {std::move(object), std::move(job), shape};
}

}  // namespace

TrainJobController::TrainJobController(const kube::ControllerContext& context,
                                       std::shared_ptr<JobSetState> shared, Settings settings)
    : PlannedController(context, context.caches.get<kube::StoredObject>(all_of(kTrainJobs)),
                        std::make_shared<kube::DecodedObjects<DecodedTrainJob>>(decode_trainjob)),
      shared_(std::move(shared)),
      settings_(std::move(settings)),
      jobsets_(context.caches.get<kube::StoredObject>(all_of(kJobSets))),
      jobs_(context.caches.get<JobView>(jobset_jobs())),
      pods_(context.caches.get<PodView>(jobset_pods())),
      snapshots_(context.client),
      finalizers_(context.io, context.client,
                  context.caches.get<kube::StoredObject>(all_of(kTrainingRuntimes)),
                  settings_.is_namespaced
                      ? nullptr
                      : &context.caches.get<kube::StoredObject>(all_of(kClusterTrainingRuntimes)),
                  settings_.removes_legacy_finalizers, context.log),
      job_metrics_(settings_.jobs, context.metrics, context.client.clock(),
                   {kTrainJobs.kind, true, failure_reasons(), true, true}) {
  if (settings_.heartbeats) listen_to_heartbeats();
  if (!settings_.pipeline.is_progress_enabled) return;
  // Each running job has a ConfigMap with the CA.
  settings_.server->on_ca_change.push_back([this] {
    objects().each([this](const kube::ObjectKey& key, const auto&) {
      this->context().router.enqueue(this->context().id, key, Debounce::kCounters);
    });
  });
}

TrainJobController::~TrainJobController() {
  if (settings_.heartbeats) settings_.heartbeats->listen(nullptr);
}

// A posted call may run after this controller has ended, so it holds a token of its life.
void TrainJobController::listen_to_heartbeats() {
  settings_.heartbeats->listen([this, life = std::weak_ptr(life_)](const kube::ObjectKey& key) {
    kube::asio::post(context().io, [this, life, key] {
      if (life.lock()) context().router.enqueue(context().id, key, Debounce::kNone);
    });
  });
}

std::vector<kube::BackgroundTask> TrainJobController::leader_tasks() {
  if (settings_.heartbeats) settings_.heartbeats->set_leading();
  std::vector<kube::BackgroundTask> tasks;
  tasks.push_back({"legacy finalizers", finalizers_.run()});
  return tasks;
}

void TrainJobController::on_jobset(const Stored& before, const Stored& after) {
  if (before && (!after || after->uid != before->uid)) keep_deleted_jobset(*before);
  // The TrainJob of this name owns the JobSet, or must report that the name is taken.
  const auto& key = (after ? after : before)->object_key;
  if (!objects().find(key)) return;
  const bool has_counters_only =
      after && (!before || context().router.source() == kube::ChangeSource::kOwnCounters);
  context().router.enqueue(context().id, key,
                           has_counters_only ? Debounce::kCounters
                           : after           ? Debounce::kShort
                                             : Debounce::kNone);
}

void TrainJobController::on_pod(const Pod& before, const Pod& after) {
  const auto& pod = after ? after : before;
  if (pod->jobset.empty() || is_unchanged(before, after)) return;
  const kube::ObjectKey key{pod->ns, pod->jobset};
  if (objects().find(key)) context().router.enqueue(context().id, key, Debounce::kCounters);
}

void TrainJobController::on_runtime(const Stored&, const Stored& after) {
  if (after) finalizers_.changed(after->object_key);
}

Task<TrainJobPlan> TrainJobController::plan(const Subject& subject) {
  const Child child = child_of(subject);
  if (child.stored && child.stored->body.size() >= kube::kLargeText) co_await kube::yield();
  const auto heartbeats = settings_.heartbeats
                              ? settings_.heartbeats->find(subject.decoded->job->metadata.uid)
                              : nullptr;
  co_return plan_trainjob(observe(subject, child, heartbeats.get()), pipeline_options());
}

kube::Plan TrainJobController::plan_unreadable(const Subject& subject,
                                               const kube::FieldErrors& errors) const {
  return trainer::plan_unreadable(*subject.decoded->object, errors);
}

Result<void> TrainJobController::complete(const Subject& subject, TrainJobPlan& plan) {
  for (const auto index : plan.ssh_key_actions) {
    if (auto added = add_ssh_key_pair(plan.actions.at(index).body); !added) return added;
  }
  if (plan.total_nodes) subject.memory->total_nodes = *plan.total_nodes;
  subject.memory->scheduled_since = plan.scheduled_since;
  if (plan.process_restarts) subject.memory->process_restarts = plan.process_restarts;
  if (plan.stacks_number) subject.memory->stacks_number = *plan.stacks_number;
  return {};
}

void TrainJobController::on_done(const Subject& subject, const TrainJobPlan& plan) {
  const TrainJob& job = *subject.decoded->job;
  if (plan.stacks_number) {
    const kube::NamedObject stacks = stacks_object(job);
    subject.memory->objects.forget(stacks.resource, stacks.key.name);
  }
  subject.memory->objects.forget(runtime_resource(job), job.spec.runtimeRef.name);
  if (subject.memory->record.awaits(JobStep::kJobSet)) measure_again(subject);
}

Task<Result<kube::ReadObject>> TrainJobController::read(const Subject& subject,
                                                        kube::NamedObject named) {
  if (is_stacks(*subject.decoded->job, named.resource, named.key.name)) {
    auto found = co_await PlannedController::read(subject, std::move(named));
    if (found) co_return found;
    kube::ReadObject unread;  // the job does not depend on it
    unread.error = found.error().message;
    co_return unread;
  }
  if (named.resource != kTrainingRuntimes && named.resource != kClusterTrainingRuntimes)
    co_return co_await PlannedController::read(subject, std::move(named));
  auto live = co_await snapshots_.read_live(std::move(named.resource), std::move(named.key));
  kube::ReadObject read;
  if (live)
    read.content = std::move(*live);
  else
    read.error = live.error().message;
  co_return read;
}

void TrainJobController::keep(const Subject& subject, const kube::NamedObject& named,
                              kube::Json object, Origin origin, kube::ReadObject& kept) {
  const TrainJob& job = *subject.decoded->job;
  const bool is_owned = kept.controller_uid == job.metadata.uid;
  if (is_stacks(job, named.resource, named.key.name)) {
    const std::string uid = kube::ObjectMeta::of(object).uid;
    kept.object = std::make_shared<const kube::Json>(
        kube::Json::object({{"metadata", kube::Json::object({{"uid", uid}})}}));
    return;
  }
  if (named != snapshot_object(job)) {
    kept.object = std::make_shared<const kube::Json>(
        trim_dependent(named.resource, is_owned, std::move(object)));
    return;
  }
  static const auto kNoMembers = std::make_shared<const kube::Json>(kube::Json::object());
  kept.object = kNoMembers;
  const auto* text = object.find_path({"data", "runtime"});
  if (!text || !text->is_string()) return;
  const std::string& content = text->as_string();
  const bool is_usable =
      is_owned && (origin == Origin::kWritten || is_text_of(job.status, content));
  kept.content =
      is_usable ? snapshots_.of(content, job.status.runtimeSnapshotHash) : unread_snapshot(content);
}

TrainJobController::Child TrainJobController::child_of(const Subject& subject) const {
  Child child;
  child.stored = jobsets_.find(subject.key());
  if (child.stored) {
    child.decoded = shared_->decoded->of(child.stored);
  } else if (subject.memory->deleted_jobset) {
    if (const auto object = kube::parse_json(subject.memory->deleted_jobset->text())) {
      if (auto read = read_jobset(*object)) child.deleted = std::move(*read);
    }
  }
  return child;
}

TrainJobObserved TrainJobController::observe(const Subject& subject, const Child& child,
                                             const HeartbeatFacts* heartbeats) const {
  const TrainJob& job = *subject.decoded->job;
  const JobState& state = *subject.memory;
  TrainJobObserved observed{job, *subject.decoded->object, state.objects};
  observed.shape = subject.decoded->shape;
  observed.jobset = child.jobset();
  observed.jobset_object = child.decoded ? child.decoded->object.get() : nullptr;
  if (child.stored) observed.jobset_owned_fields = child.stored->fingerprint;
  observed.heartbeats = heartbeats;
  observed.process_restarts = state.process_restarts;
  observed.stacks_number = state.stacks_number;
  observed.deleted_jobset = child.deleted ? &*child.deleted : nullptr;
  observed.pods = pods_.find_by(kByJobSet, job.metadata.ns, job.metadata.name);
  observed.refusal = refusal_of(subject);
  observed.waiting_event = state.warning.text;
  observed.is_waiting_event_new = state.warning.is_new;
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
  observed.reads_cluster_runtimes = !settings_.is_namespaced;
  observed.marks_finished = settings_.marks_finished;
  observed.now = context().client.clock().now();
  return observed;
}

PipelineOptions TrainJobController::pipeline_options() const {
  PipelineOptions options = settings_.pipeline;
  options.status_server_url = https_url({settings_.server->host, settings_.status_port});
  options.status_server_ca = settings_.server->ca_pem;
  return options;
}

void TrainJobController::measure(const Subject& subject) {
  const DecodedTrainJob& decoded = *subject.decoded;
  JobRecord& record = subject.memory->record;
  if (!decoded.job) return job_metrics_.update(record, facts_of_unreadable(*decoded.object));
  const TrainJob& job = *decoded.job;
  // A job that had finished before it was restored is counted once its status says so.
  if (status_before_restore(job, *decoded.object)) return;
  const auto stored = jobsets_.find(subject.key());
  const auto child = stored ? shared_->decoded->of(stored) : nullptr;
  JobFacts facts = facts_of(job, child && child->jobset ? &*child->jobset : nullptr);
  facts.reach(JobStep::kJobSet, record.awaits(JobStep::kJobSet) && stored);
  facts.reach(JobStep::kFirstPod,
              record.awaits(JobStep::kFirstPod) &&
                  pods_.bucket_of(kByJobSet, job.metadata.ns, job.metadata.name) != nullptr);
  job_metrics_.update(record, facts);
}

// The last state of a JobSet says whether its job had ended.
void TrainJobController::keep_deleted_jobset(const kube::StoredObject& last) {
  if (last.controller_kind != kTrainJobs.kind) return;
  // If the TrainJob was deleted first, nothing is kept.
  const auto owner = objects().find(last.object_key);
  if (!owner || owner->uid != last.controller_uid) return;
  memory_of(last.controller_uid)->deleted_jobset =
      std::make_shared<const kube::CompressedText>(last.body);
}

}  // namespace trainer
