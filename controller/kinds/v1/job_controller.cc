#include "controller/kinds/v1/job_controller.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/client/yield.hh"
#include "kube/manager/manager_metrics.hh"
#include "runtimes/trainjob/plan.hh"
#include "runtimes/trainjob/unreadable.hh"
#include "runtimes/v1/measures.hh"

namespace trainer::v1 {
namespace {

using kube::Action;
using kube::Debounce;
using kube::Json;
using kube::Requeue;
using kube::Result;
using kube::Task;

// A plan that still needs reads after this many rounds has a bug; it is tried again with backoff.
constexpr int kMaxRounds = 6;

const StoredCache* find_cache(const kube::CacheSet& caches, const kube::Resource* resource) {
  return resource ? &caches.get<kube::StoredObject>(all_of(*resource)) : nullptr;
}

}  // namespace

JobController::JobController(const kube::ControllerContext& context, const Framework& framework,
                             Settings settings, std::shared_ptr<JobCensus> jobs)
    : context_(context),
      framework_(framework),
      settings_(std::move(settings)),
      jobs_(context.caches.get<kube::StoredObject>(all_of(framework.resource))),
      pods_(context.caches.get<PodView>(v1_pods())),
      services_(framework.has_services ? &context.caches.get<kube::StoredObject>(v1_services())
                                       : nullptr),
      pod_groups_(find_cache(context.caches, pod_groups_of(settings_))),
      census_(std::move(jobs)),
      job_metrics_(census_, context.metrics, context.client.clock(),
                   {framework.resource.kind, false, failure_reasons()}),
      decoded_([&framework](const std::shared_ptr<const Json>& object) {
        return read_job(*object, framework.replica_specs);
      }) {}

// A new pod that waits needs no reconcile: the plan that has created it counts it already.
void JobController::on_pod(const Pod& before, const Pod& after) {
  if (is_unchanged(before, after) || (!before && after->phase == "Pending")) return;
  const PodView& pod = after ? *after : *before;
  const bool is_urgent = !after || after->is_over() || after->is_deleting;
  context_.router.enqueue_owner(context_.id, pod.ns, pod.owner_uid,
                                is_urgent ? Debounce::kShort : Debounce::kCounters);
}

// A Service that this controller created needs nothing; one that was deleted is created again.
void JobController::on_service(const Stored& before, const Stored& after) {
  if (after) return;
  context_.router.enqueue_owner(context_.id, before->object_key.ns, before->controller_uid,
                                Debounce::kShort);
}

void JobController::on_pod_group(const Stored& before, const Stored& after) {
  const Stored& group = after ? after : before;
  context_.router.enqueue_owner(context_.id, group->object_key.ns, group->controller_uid,
                                Debounce::kShort);
}

Task<Result<Requeue>> JobController::reconcile(kube::ObjectKey key) {
  auto stored = jobs_.find(key);
  if (stored && stored->body.size() >= kube::kLargeText) {
    co_await kube::yield();
    stored = jobs_.find(key);
  }
  if (!stored) co_return Requeue{};
  const auto decoded = decoded_.of(stored);
  kube::ObjectRef object{key, stored->uid, stored->resource_version};
  if (!*decoded) {
    // The schema refuses such objects. One that is stored nevertheless must not be retried.
    kube::Plan report;
    report.events.push_back(unreadable_event(decoded->error()));
    co_return co_await context_.plan_runner.run(std::move(object), std::move(report));
  }
  measure(**decoded);
  const auto known = memories_.find(stored->uid);
  const auto memory = known == memories_.end() ? std::make_shared<Memory>() : known->second;
  const auto completed = with_extensions(**decoded, memory->extensions);
  auto plan = co_await make_plan(completed ? *completed : **decoded, memory);
  if (!plan) co_return tl::unexpected(plan.error());

  const JobPlan::Counts counts = plan->counts;
  const bool is_blocked = plan->is_blocked;
  std::unordered_set<std::uint64_t> relayed = std::move(plan->relayed);
  std::function<void()> on_status = [this, memory, counts, ns = key.ns,
                                     extensions = std::move(plan->extensions)] {
    memory->extensions = extensions;
    count_status(counts, ns);
  };
  std::vector<Action> written;
  std::copy_if(plan->actions.begin(), plan->actions.end(), std::back_inserter(written),
               [this](const Action& action) {
                 const auto& all = framework_.dependents;
                 return std::find(all.begin(), all.end(), action.resource) != all.end();
               });
  auto done =
      co_await context_.plan_runner.run(std::move(object), std::move(*plan), std::move(on_status));
  if (done) {
    memory->relayed = std::move(relayed);
    remember(std::move(written), *memory);
    count_actions(counts, key.ns);
  }
  // It is not known which of them were written, or another client must change one.
  if (!done || is_blocked) memory->dependents.clear();
  // The pods of a finished job are no longer reported.
  if ((*decoded)->status.completionTime) {
    memories_.erase(stored->uid);
  } else if (const auto now = jobs_.find(key); now && now->uid == stored->uid) {
    memories_[stored->uid] = memory;
  }
  co_return done;
}

Observed JobController::observe(const Job& job, const Memory& memory) const {
  const std::string& ns = job.metadata.ns;
  Observed observed{.framework = framework_,
                    .job = job,
                    .pods = pods_.find_by(kByOwner, ns, job.metadata.uid),
                    .services = {},
                    .dependents = memory.dependents,
                    .relayed = memory.relayed,
                    .settings = settings_,
                    .now = context_.client.clock().now(),
                    .refusal = context_.plan_runner.refusal_of(job.metadata.uid)};
  if (services_) {
    for (const auto* service : services_->find_by(kByOwner, ns, job.metadata.uid))
      observed.services.push_back({service->object_key.name, service->uid, false});
  }
  if (pod_groups_) {
    const auto group = pod_groups_->find(job.metadata.key());
    observed.dependents[dependent_name(*pod_groups_of(settings_), job.metadata.name)] =
        group ? group->object() : nullptr;
  }
  return observed;
}

Task<Result<JobPlan>> JobController::make_plan(const Job& job, std::shared_ptr<Memory> memory) {
  for (int round = 0; round < kMaxRounds; ++round) {
    JobPlan plan = v1::plan(observe(job, *memory));
    if (plan.needs_dependents.empty()) co_return plan;
    for (const auto& [resource, key] : plan.needs_dependents) {
      auto found = co_await context_.client.get(resource, key);
      if (!found && found.error().code != kube::ErrorCode::kNotFound)
        co_return tl::unexpected(found.error().at(resource.kind + " " + key.to_string()));
      memory->dependents[dependent_name(resource, key.name)] =
          found ? std::make_shared<const Json>(trim_dependent(job, std::move(*found))) : nullptr;
    }
  }
  co_return kube::fail(
      kube::ErrorCode::kInternal,
      fmt::format("{} {}: the plan asks for more after {} reads", framework_.resource.kind,
                  job.metadata.key().to_string(), kMaxRounds));
}

void JobController::remember(std::vector<Action> written, Memory& memory) const {
  for (Action& action : written) {
    const std::string name = dependent_name(action.resource, action.key.name);
    switch (action.verb) {
      case Action::Verb::kCreate:
      case Action::Verb::kApply:
        memory.dependents[name] = std::make_shared<const Json>(std::move(action.body));
        break;
      case Action::Verb::kDelete:
        memory.dependents[name] = nullptr;
        break;
      case Action::Verb::kMergePatch:
        memory.dependents.erase(name);  // it is read again
        break;
    }
  }
}

// The names of upstream's metrics (Training Operator, pkg/common/metrics.go).
void JobController::count(std::string_view what, std::int32_t times, const std::string& ns) const {
  if (times <= 0) return;
  const std::string_view label = census_->label_of_counter(ns);
  context_.metrics.count(
      fmt::format("training_operator_jobs_{}_total", what), fmt::format("Jobs {}.", what),
      {{"job_namespace", std::string(label)}, {"framework", std::string(framework_.name)}},
      static_cast<std::uint32_t>(times));
}

void JobController::count_status(const JobPlan::Counts& counts, const std::string& ns) const {
  count("created", counts.created ? 1 : 0, ns);
  count("successful", counts.succeeded ? 1 : 0, ns);
  count("failed", counts.failed ? 1 : 0, ns);
}

void JobController::count_actions(const JobPlan::Counts& counts, const std::string& ns) const {
  count("deleted", counts.deleted ? 1 : 0, ns);
  count("restarted", counts.restarted, ns);
  if (counts.restarted > 0) job_metrics_.restarted("failure", counts.restarted);
}

// The metrics follow the stored status: the next reconcile counts what this one writes.
void JobController::measure(const Job& job) {
  const kube::ObjectMeta& meta = job.metadata;
  // A job that had finished before it was restored is counted once its status says so.
  if (status_before_restore(framework_, job)) return;
  JobRecord& record = records_[meta.uid];
  JobFacts facts;
  facts.ns = meta.ns;
  facts.phase = phase_of(job.status);
  facts.waiting = waiting_reason(job.status, facts.phase);
  facts.failure = failure_reason(job.status);
  facts.created = meta.creation_timestamp.value_or(kube::Time());
  facts.reach(JobStep::kFirstPod, record.awaits(JobStep::kFirstPod) &&
                                      pods_.bucket_of(kByOwner, meta.ns, meta.uid) != nullptr);
  facts.reach(JobStep::kRunning, facts.phase == "Running");
  facts.has_run = has_run(job.status);
  job_metrics_.update(record, facts);
}

void JobController::forget(const std::string& uid) {
  memories_.erase(uid);
  records_.erase(uid);
}

}  // namespace trainer::v1
