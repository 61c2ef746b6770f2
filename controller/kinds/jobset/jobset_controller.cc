#include "controller/kinds/jobset/jobset_controller.hh"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "controller/config/configuration.hh"
#include "controller/kinds/jobset/upstream_lease.hh"
#include "kube/client/yield.hh"
#include "kube/manager/manager_metrics.hh"
#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/measures.hh"
#include "runtimes/plugins/registry.hh"
#include "runtimes/trainjob/unreadable.hh"

namespace trainer {
namespace {

using kube::Debounce;
using kube::Result;
using kube::Task;

// A hundred thousand Jobs take 60 ms to collect, sort and count. If there are more than this many,
// they are sorted in steps, so that other objects can be reconciled in between.
constexpr std::size_t kSlice = 20'000;

// These are names of upstream's metrics (JobSet, pkg/metrics), whose labels name each JobSet; here
// they have no labels.
constexpr const char* kCompletedTotal = "jobset_completed_total";
constexpr const char* kFailedTotal = "jobset_failed_total";

// Returns whether the plan creates Jobs, and so new pods.
bool starts_pods(const kube::Plan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(), [](const kube::Action& action) {
    return action.resource == kube::kJobs && action.verb != kube::Action::Verb::kDelete &&
           !action.body.get("spec").get_bool("suspend");
  });
}

// Returns the name by the Job's name and labels; "" if these do not fit together.
std::string jobset_name_of(const JobView& job) {
  const std::string end = fmt::format("-{}-{}", job.replicated_job, job.job_index);
  return job.name.ends_with(end) ? job.name.substr(0, job.name.size() - end.size()) : "";
}

// Returns whether the plan makes no claims, so that none must be read.
bool needs_no_claims(const JobSet& jobset) {
  return jobset.metadata.deletion_timestamp || jobset::is_finished(jobset.status);
}

bool is_of_trainjob(const kube::StoredObject& jobset) {
  return jobset.controller_kind == "TrainJob";
}

}  // namespace

JobSetController::JobSetController(const kube::ControllerContext& context,
                                   std::shared_ptr<JobSetState> shared, Settings settings)
    : context_(context),
      shared_(std::move(shared)),
      settings_(std::move(settings)),
      jobsets_(context.caches.get<kube::StoredObject>(all_of(kJobSets))),
      services_(context.caches.get<kube::StoredObject>(all_of(kube::kServices))),
      jobs_(context.caches.get<JobView>(jobset_jobs())),
      pods_(context.caches.get<PodView>(jobset_pods())),
      claims_(
          context.client,
          [this](const kube::ObjectKey& key, const std::string& uid) { return exists(key, uid); },
          [this](const JobSet& jobset) {
            std::int64_t failed = 0;
            for (const auto* job : jobs_of(jobset.metadata.ns, jobset.metadata.uid))
              failed += job->failed;
            return failed;
          }),
      is_mode_known_(shared_->ownership.configured() != JobSetControllerMode::kAuto),
      job_metrics_(settings_.jobs, context.metrics, context.client.clock(),
                   {kJobSets.kind, false, jobset::failure_reasons(), true}) {
  for (const char* const counter : {kCompletedTotal, kFailedTotal}) count_end(counter, 0);
  shared_->ownership.on_change([this] {
    jobsets_.each([this](const kube::ObjectKey& key, const auto&) {
      context_.router.enqueue(context_.id, key, Debounce::kNone);
    });
  });
}

std::vector<kube::BackgroundTask> JobSetController::tasks() {
  std::vector<kube::BackgroundTask> tasks;
  if (is_mode_known_) return tasks;
  UpstreamLeaseOptions options;
  options.namespaces = settings_.upstream_namespaces;
  options.on_change = [this](bool is_held) { upstream_changed(is_held); };
  options.on_synced = [this] { is_mode_known_ = true; };
  options.on_ignored = [this](std::string_view name, std::size_t count) {
    context_.metrics.set_unexpected_leases(name, count);
  };
  tasks.push_back({"follow the upstream JobSet controller",
                   follow_upstream_lease(context_.client, std::move(options), context_.log)});
  return tasks;
}

void JobSetController::upstream_changed(bool is_present) {
  if (!shared_->ownership.set_upstream_present(is_present)) return;
  context_.log.info("expander mode",
                    {{"mode", std::string(trainer::name_of(shared_->ownership.mode()))},
                     {"why", is_present ? "the upstream JobSet controller holds its Lease"
                                        : "no upstream JobSet controller"}});
}

// A Service that this controller created needs nothing; one that was deleted is created again.
void JobSetController::on_service(const Stored& before, const Stored& after) {
  if (after) return;
  const kube::ObjectKey& key = before->object_key;
  if (!context_.router.enqueue_owner(context_.id, key.ns, before->controller_uid, Debounce::kNone))
    name_is_free(key);
}

// A child of a JobSet that is gone has ended. Perhaps a new JobSet of that name waits for this.
void JobSetController::name_is_free(const kube::ObjectKey& jobset) {
  if (jobsets_.find(jobset)) context_.router.enqueue(context_.id, jobset, Debounce::kShort);
}

void JobSetController::on_job(const Job& before, const Job& after) {
  const auto& job = after ? after : before;
  if (is_unchanged(before, after)) return;
  if (before && after && before->owner_uid != after->owner_uid)
    context_.router.enqueue_owner(context_.id, before->ns, before->owner_uid, Debounce::kNone);
  if (job->owner_uid.empty()) return;
  if (!context_.router.find_owner(context_.id, job->ns, job->owner_uid)) {
    if (!after) name_is_free({job->ns, jobset_name_of(*job)});
    return;
  }
  if (!after && before->is_complete()) removed_[before->owner_uid][before->name] = before;
  const bool has_ended = after && (after->finished || after->failure_target);
  context_.router.enqueue_owner(context_.id, job->ns, job->owner_uid,
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
    context_.router.enqueue(context_.id, {pod->ns, pod->jobset}, Debounce::kShort);
}

Task<Result<kube::Requeue>> JobSetController::reconcile(kube::ObjectKey key) {
  const auto stored = jobsets_.find(key);
  if (!stored) co_return kube::Requeue{};
  const auto decoded = shared_->decoded.of(stored);
  const auto& jobset = decoded->jobset;
  if (stored->body.size() >= kube::kLargeText) co_await kube::yield();
  kube::ObjectRef object{key, stored->uid, stored->resource_version};
  object.is_end_counted = !is_of_trainjob(*stored);
  if (!jobset) {
    // The schema refuses such objects. One that is stored nevertheless must not be retried.
    kube::Plan report;
    report.events.push_back(unreadable_event(jobset.error()));
    co_return co_await context_.plan_runner.run(std::move(object), std::move(report));
  }
  measure(key, stored->uid);
  if (!shared_->ownership.owns(jobset->spec.managedBy)) co_return kube::Requeue{};
  claims_.forget_after_failures(*jobset);
  const bool were_claims_known = claims_.has(stored->uid);
  if (!needs_no_claims(*jobset))
    if (auto read = co_await claims_.read(*jobset); !read) co_return tl::unexpected(read.error());
  kube::Plan plan = co_await plan_with_events(stored, *jobset);
  if (were_claims_known && starts_pods(plan)) {
    claims_.forget(stored->uid);  // a user may have deleted claims that the new pods mount
    if (auto read = co_await claims_.read(*jobset); !read) co_return tl::unexpected(read.error());
    plan = co_await plan_with_events(stored, *jobset);
  }
  // The JobSet was deleted during the reads: a claim created now would never be garbage collected.
  if (!exists(key, stored->uid)) co_return kube::Requeue{};

  const auto created = KnownClaims::created_by(plan);
  const auto ends = std::find_if(plan.events.begin(), plan.events.end(),
                                 [](const kube::PlannedEvent& event) { return event.is_terminal; });
  const char* const end = ends == plan.events.end() ? nullptr
                          : ends->type == "Warning" ? kFailedTotal
                                                    : kCompletedTotal;
  std::function<void()> on_status;
  if (end) on_status = [this, end] { count_end(end, 1); };
  auto done =
      co_await context_.plan_runner.run(std::move(object), std::move(plan), std::move(on_status));
  measure(key, stored->uid);
  if (done) {
    claims_.add(*jobset, created);
  } else {
    claims_.forget(stored->uid);
  }
  co_return done;
}

Task<kube::Plan> JobSetController::plan_with_events(Stored stored, const JobSet& jobset) {
  kube::Plan plan = co_await plan_for(*stored, jobset);
  const auto known = warnings_.find(stored->uid);
  if (!plan.needs_events && known == warnings_.end()) co_return plan;
  auto warning = known == warnings_.end() ? std::make_shared<LastWarning>() : known->second;
  warnings_[stored->uid] = warning;
  const bool has_read = co_await read_last_warning(context_.client, stored->object_key.ns,
                                                   plan.needs_events, warning);
  if (has_read) plan = co_await plan_for(*stored, jobset);
  if (!plan.needs_events) warnings_.erase(stored->uid);
  co_return plan;
}

Task<kube::Plan> JobSetController::plan_for(const kube::StoredObject& stored,
                                            const JobSet& jobset) {
  jobset::Observed observed{jobset};
  observed.gates = settings_.gates;
  const std::string& ns = stored.object_key.ns;
  const auto* owned = jobs_.bucket_of(kByOwner, ns, stored.uid);
  if (!owned || owned->size() <= kSlice) {
    observed.jobs = jobs_of(ns, stored.uid);
    observe(stored, jobset, observed.jobs, observed);
    co_return jobset::plan(observed);
  }
  co_await kube::yield();
  owned = jobs_.bucket_of(kByOwner, ns, stored.uid);
  std::vector<Job> jobs;  // Jobs may be deleted, or change, while other objects are reconciled.
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
  observe(stored, jobset, views, observed);
  co_return plan.finish();
}

void JobSetController::observe(const kube::StoredObject& stored, const JobSet& jobset,
                               std::span<const JobView* const> jobs, jobset::Observed& observed) {
  const kube::ObjectKey& key = stored.object_key;
  observed.removed_jobs = removed_jobs_of(stored.uid);
  if (jobset::needs_pods(jobset, settings_.gates, jobs)) observed.pods = pods_of(key, stored.uid);
  if (const auto name = jobset::headless_service_key(jobset)) {
    const auto service = services_.find(*name);
    observed.service_exists =
        service && (service->controller_uid.empty() || service->controller_uid == stored.uid);
  }
  observed.claims = claims_.names(stored.uid);
  observed.now = context_.client.clock().now();
  observed.is_of_trainjob = is_of_trainjob(stored);
  if (observed.is_of_trainjob) observed.decorators = production_job_decorators();
  observed.refusal = context_.plan_runner.refusal_of(stored.uid);
  if (const auto known = warnings_.find(stored.uid); known != warnings_.end())
    observed.warning = known->second->text;
  observed.failure_patterns = &failure_patterns_;
  observed.is_managed_here = true;  // nothing is planned for any other
}

std::vector<const JobView*> JobSetController::jobs_of(const std::string& ns,
                                                      const std::string& uid) const {
  return jobs_.find_by(kByOwner, ns, uid);
}

std::vector<const PodView*> JobSetController::pods_of(const kube::ObjectKey& key,
                                                      const std::string& uid) const {
  auto pods = pods_.find_by(kByJobSet, key.ns, key.name);
  std::erase_if(pods, [&uid](const PodView* pod) { return !pod->is_of_jobset(uid); });
  return pods;
}

std::vector<const JobView*> JobSetController::removed_jobs_of(const std::string& uid) const {
  std::vector<const JobView*> found;
  const auto at = removed_.find(uid);
  if (at == removed_.end()) return found;
  for (const auto& [name, job] : at->second) found.push_back(job.get());
  return found;
}

void JobSetController::measure(const kube::ObjectKey& key, const std::string& uid) {
  const auto stored = jobsets_.find(key);
  if (!stored || stored->uid != uid || is_of_trainjob(*stored)) return;
  const auto decoded = shared_->decoded.of(stored);
  if (!decoded->jobset) return;
  const JobSet& jobset = *decoded->jobset;
  JobRecord& record = records_[uid];
  JobFacts facts;
  facts.ns = key.ns;
  facts.phase = jobset::phase_of(jobset);
  facts.waiting = jobset::waiting_reason(jobset.status, facts.phase);
  facts.failure = jobset::failure_reason(jobset.status);
  facts.created = jobset.metadata.creation_timestamp.value_or(kube::Time());
  facts.reach(JobStep::kFirstPod, record.awaits(JobStep::kFirstPod) &&
                                      pods_.bucket_of(kByJobSet, key.ns, key.name) != nullptr);
  facts.reach(JobStep::kRunning, facts.phase == "Running");
  facts.has_run = jobset.status.restarts > 0;
  const std::int32_t counted = jobset.status.restartsCountTowardsMax;
  facts.restarts = JobRestarts{counted, jobset.status.restarts - counted};
  job_metrics_.update(record, facts);
}

void JobSetController::count_end(const char* counter, std::uint32_t times) const {
  const char* const how = counter == kFailedTotal ? "failed." : "completed.";
  context_.metrics.count(counter, std::string("JobSets that have ") + how, {}, times);
}

bool JobSetController::exists(const kube::ObjectKey& key, const std::string& uid) const {
  const auto now = jobsets_.find(key);
  return now && now->uid == uid;
}

void JobSetController::forget(const std::string& uid) {
  claims_.forget(uid);
  warnings_.erase(uid);
  removed_.erase(uid);
  records_.erase(uid);
}

}  // namespace trainer
