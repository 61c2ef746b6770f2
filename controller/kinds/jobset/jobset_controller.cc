#include "controller/kinds/jobset/jobset_controller.hh"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "controller/config/configuration.hh"
#include "controller/kinds/common/upstream_lease.hh"
#include "kube/manager/manager_metrics.hh"
#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/measures.hh"
#include "runtimes/plugins/registry.hh"

namespace trainer {
namespace {

using kube::Debounce;
using kube::Task;

// A hundred thousand Jobs take 60 ms to collect, sort and count. If there are more than this many,
// they are sorted in steps, so that other objects can be reconciled in between.
constexpr std::size_t kSlice = 20'000;

// These are names of upstream's metrics (JobSet, pkg/metrics), whose labels name each JobSet; here
// they have no labels.
constexpr const char* kCompletedTotal = "jobset_completed_total";
constexpr const char* kFailedTotal = "jobset_failed_total";

// Returns the name by the Job's name and labels; "" if these do not fit together.
std::string jobset_name_of(const JobView& job) {
  const std::string end = fmt::format("-{}-{}", job.replicated_job, job.job_index);
  return job.name.ends_with(end) ? job.name.substr(0, job.name.size() - end.size()) : "";
}

bool is_of_trainjob(const kube::StoredObject& jobset) {
  return jobset.controller_kind == "TrainJob";
}

}  // namespace

JobSetController::JobSetController(const kube::ControllerContext& context,
                                   std::shared_ptr<JobSetState> shared, Settings settings)
    : PlannedController(context, context.caches.get<kube::StoredObject>(all_of(kJobSets)),
                        shared->decoded),
      shared_(std::move(shared)),
      settings_(std::move(settings)),
      services_(context.caches.get<kube::StoredObject>(all_of(kube::kServices))),
      jobs_(context.caches.get<JobView>(jobset_jobs())),
      pods_(context.caches.get<PodView>(jobset_pods())),
      is_mode_known_(shared_->ownership.configured() != JobSetControllerMode::kAuto),
      job_metrics_(settings_.jobs, context.metrics, context.client.clock(),
                   {kJobSets.kind, false, jobset::failure_reasons(), true}) {
  for (const char* const counter : {kCompletedTotal, kFailedTotal}) count_end(counter, 0);
  shared_->ownership.on_change([this] {
    objects().each([this](const kube::ObjectKey& key, const auto&) {
      this->context().router.enqueue(this->context().id, key, Debounce::kNone);
    });
  });
}

std::vector<kube::BackgroundTask> JobSetController::tasks() {
  std::vector<kube::BackgroundTask> tasks;
  if (is_mode_known_) return tasks;
  UpstreamLeaseOptions options;
  options.upstream = kUpstreamJobSetController;
  options.namespaces = settings_.upstream_namespaces;
  options.on_change = [this](bool is_held) { upstream_changed(is_held); };
  options.on_synced = [this] { is_mode_known_ = true; };
  options.on_ignored = [this](std::string_view name, std::size_t count) {
    context().metrics.set_unexpected_leases(name, count);
  };
  tasks.push_back({"follow the upstream JobSet controller",
                   follow_upstream_lease(context().client, std::move(options), context().log)});
  return tasks;
}

void JobSetController::upstream_changed(bool is_present) {
  if (!shared_->ownership.set_upstream_present(is_present)) return;
  context().log.info("expander mode",
                     {{"mode", std::string(trainer::name_of(shared_->ownership.mode()))},
                      {"why", is_present ? "the upstream JobSet controller holds its Lease"
                                         : "no upstream JobSet controller"}});
}

// A Service that this controller created needs nothing; one that was deleted is created again.
void JobSetController::on_service(const Stored& before, const Stored& after) {
  if (after) return;
  const kube::ObjectKey& key = before->object_key;
  if (!context().router.enqueue_owner(context().id, key.ns, before->controller_uid,
                                      Debounce::kNone))
    name_is_free(key);
}

// A child of a JobSet that is gone has ended. Perhaps a new JobSet of that name waits for this.
void JobSetController::name_is_free(const kube::ObjectKey& jobset) {
  if (objects().find(jobset)) context().router.enqueue(context().id, jobset, Debounce::kShort);
}

void JobSetController::on_job(const Job& before, const Job& after) {
  const auto& job = after ? after : before;
  if (is_unchanged(before, after)) return;
  if (before && after && before->owner_uid != after->owner_uid)
    context().router.enqueue_owner(context().id, before->ns, before->owner_uid, Debounce::kNone);
  if (job->owner_uid.empty()) return;
  if (!context().router.find_owner(context().id, job->ns, job->owner_uid)) {
    if (!after) name_is_free({job->ns, jobset_name_of(*job)});
    return;
  }
  if (!after && before->is_complete())
    memory_of(before->owner_uid)->removed_jobs[before->name] = before;
  const bool has_ended = after && (after->finished || after->failure_target);
  context().router.enqueue_owner(context().id, job->ns, job->owner_uid,
                                 !after || has_ended ? Debounce::kNone : Debounce::kCounters);
}

// Pods, and no other children, have the annotations of in-place restart agents, and containers'
// restart counts.
void JobSetController::on_pod(const Pod& before, const Pod& after) {
  const auto& pod = after ? after : before;
  if (pod->jobset.empty() || is_unchanged(before, after)) return;
  const bool has_agent = (before && before->in_place_attempt) || (after && after->in_place_attempt);
  const bool has_restarted = after && after->restart_count > (before ? before->restart_count : 0);
  if (has_agent || has_restarted)
    context().router.enqueue(context().id, {pod->ns, pod->jobset}, Debounce::kShort);
}

Task<JobSetPlan> JobSetController::plan(const Subject& subject) {
  JobSetPlan made;
  const JobSet& jobset = *subject.decoded->jobset;
  if (!shared_->ownership.owns(jobset.spec.managedBy)) co_return made;
  const auto& [ns, name] = subject.key();
  const auto* owned = jobs_.bucket_of(kByOwner, ns, subject.stored->uid);
  if (owned && owned->size() > kSlice) {
    static_cast<kube::Plan&>(made) = co_await plan_in_slices(subject);
  } else {
    jobset::Observed observed{jobset};
    observed.gates = settings_.gates;
    observed.jobs = jobs_.find_by(kByOwner, ns, subject.stored->uid);
    observe(subject, observed.jobs, observed);
    static_cast<kube::Plan&>(made) = jobset::plan(observed);
  }
  for (const kube::PlannedEvent& event : made.events)
    if (event.end != kube::PlannedEvent::End::kNone) made.end = event.end;
  co_return made;
}

Task<kube::Plan> JobSetController::plan_in_slices(const Subject& subject) {
  co_await kube::yield();
  jobset::Observed observed{*subject.decoded->jobset};
  observed.gates = settings_.gates;
  const auto* owned = jobs_.bucket_of(kByOwner, subject.key().ns, subject.stored->uid);
  std::vector<Job> jobs;  // these may go, or change, during the other reconciles
  if (owned) {
    for (const auto& [name, job] : *owned) jobs.push_back(job);
  }
  std::vector<const JobView*> views;
  for (const Job& job : jobs) views.push_back(job.get());
  jobset::SlicedPlan plan(observed);
  for (std::size_t at = 0; at < views.size(); at += kSlice) {
    co_await kube::yield();
    plan.add(std::span(views).subspan(at, std::min(kSlice, views.size() - at)));
  }
  co_await kube::yield();
  observe(subject, views, observed);
  co_return plan.finish();
}

void JobSetController::observe(const Subject& subject, std::span<const JobView* const> jobs,
                               jobset::Observed& observed) {
  const JobSet& jobset = *subject.decoded->jobset;
  const std::string& uid = subject.stored->uid;
  for (const auto& [name, job] : subject.memory->removed_jobs)
    observed.removed_jobs.push_back(job.get());
  if (jobset::needs_pods(jobset, settings_.gates, jobs))
    observed.pods = pods_of(subject.key(), uid);
  if (const auto name = jobset::headless_service_key(jobset)) {
    const auto service = services_.find(*name);
    observed.service_exists =
        service && (service->controller_uid.empty() || service->controller_uid == uid);
  }
  observed.objects = &subject.memory->objects;
  observed.now = context().client.clock().now();
  observed.is_of_trainjob = is_of_trainjob(*subject.stored);
  if (observed.is_of_trainjob) observed.decorators = production_job_decorators();
  observed.refusal = refusal_of(subject);
  observed.warning = subject.memory->warning.text;
  observed.failure_patterns = &failure_patterns_;
  observed.is_managed_here = true;  // nothing is planned for any other
}

void JobSetController::keep(const Subject&, const kube::NamedObject&, kube::Json object, Origin,
                            kube::ReadObject& kept) {
  kube::Json metadata = kube::Json::object();
  if (const auto* deleted = object.find_path({"metadata", "deletionTimestamp"}))
    metadata.set("deletionTimestamp", *deleted);
  kept.object =
      std::make_shared<const kube::Json>(kube::Json::object({{"metadata", std::move(metadata)}}));
}

bool JobSetController::is_end_counted(const kube::StoredObject& stored) const {
  return !is_of_trainjob(stored);
}

void JobSetController::on_status(const Subject&, const JobSetPlan& plan) {
  if (plan.end != kube::PlannedEvent::End::kNone)
    count_end(plan.end == kube::PlannedEvent::End::kFailed ? kFailedTotal : kCompletedTotal, 1);
}

std::vector<const PodView*> JobSetController::pods_of(const kube::ObjectKey& key,
                                                      const std::string& uid) const {
  auto pods = pods_.find_by(kByJobSet, key.ns, key.name);
  std::erase_if(pods, [&uid](const PodView* pod) { return !pod->is_of_jobset(uid); });
  return pods;
}

void JobSetController::measure(const Subject& subject) {
  if (is_of_trainjob(*subject.stored) || !subject.decoded->jobset) return;
  JobRecord& record = subject.memory->record;
  JobFacts facts = jobset::facts_of(*subject.decoded->jobset);
  const auto& [ns, name] = subject.key();
  facts.reach(JobStep::kFirstPod,
              record.awaits(JobStep::kFirstPod) && pods_.bucket_of(kByJobSet, ns, name) != nullptr);
  job_metrics_.update(record, facts);
}

void JobSetController::count_end(const char* counter, std::uint32_t times) const {
  const char* const how = counter == kFailedTotal ? "failed." : "completed.";
  context().metrics.count(counter, std::string("JobSets that have ") + how, {}, times);
}

}  // namespace trainer
