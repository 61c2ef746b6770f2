#include "controller/kinds/v1/job_controller.hh"

#include <fmt/format.h>

#include <utility>

#include "kube/manager/manager_metrics.hh"
#include "runtimes/v1/measures.hh"
#include "runtimes/views/created_version.hh"

namespace trainer::v1 {
namespace {

using kube::Debounce;
using kube::Json;
using kube::Task;

const StoredCache* find_cache(const kube::CacheSet& caches, const kube::Resource* resource) {
  return resource ? &caches.get<kube::StoredObject>(all_of(*resource)) : nullptr;
}

}  // namespace

JobController::JobController(const kube::ControllerContext& context, const Framework& framework,
                             Settings settings, std::shared_ptr<JobCensus> jobs)
    : PlannedController(context, context.caches.get<kube::StoredObject>(all_of(framework.resource)),
                        std::make_shared<kube::DecodedObjects<DecodedJob>>(
                            [&framework](const std::shared_ptr<const Json>& object) {
                              return read_job(*object, framework.replica_specs);
                            })),
      framework_(framework),
      settings_(std::move(settings)),
      pods_(context.caches.get<V1PodView>(v1_pods())),
      services_(framework.has_services ? &context.caches.get<kube::StoredObject>(v1_services())
                                       : nullptr),
      pod_groups_(find_cache(context.caches, pod_groups_of(settings_))),
      census_(std::move(jobs)),
      job_metrics_(census_, context.metrics, context.client.clock(),
                   {framework.resource.kind, false, failure_reasons()}) {}

// A new pod that waits needs no reconcile: the plan that has created it knows it already.
void JobController::on_pod(const Pod& before, const Pod& after) {
  if (is_unchanged(before, after) || (!before && after->phase == "Pending")) return;
  const V1PodView& pod = after ? *after : *before;
  const bool is_urgent = !after || after->is_over() || after->is_deleting;
  context().router.enqueue_owner(context().id, pod.ns, pod.owner_uid,
                                 is_urgent ? Debounce::kShort : Debounce::kCounters);
}

// A Service that this controller created needs nothing. A Service that was deleted is created
// again.
void JobController::on_service(const Stored& before, const Stored& after) {
  if (after) return;
  context().router.enqueue_owner(context().id, before->object_key.ns, before->controller_uid,
                                 Debounce::kShort);
}

bool JobController::is_reconciled(const kube::StoredObject& stored) const {
  return !framework_.shares_crd || is_created_at(stored.fingerprint, framework_.resource.version);
}

Task<V1JobPlan> JobController::plan(const Subject& subject) {
  const V1Job& job = **subject.decoded;
  const auto completed = with_extensions(job, subject.memory->extensions);
  Observed observed = observe(completed ? *completed : job, *subject.memory);
  observed.refusal = refusal_of(subject);
  co_return v1::plan(observed);
}

Observed JobController::observe(const V1Job& job, const JobMemory& memory) const {
  const std::string& ns = job.metadata.ns;
  Observed observed{.framework = framework_,
                    .job = job,
                    .pods = pods_.find_by(kByOwner, ns, job.metadata.uid),
                    .services = {},
                    .objects = memory.objects,
                    .watched_pod_group = {},
                    .relayed = memory.relayed,
                    .settings = settings_,
                    .now = context().client.clock().now()};
  if (services_) {
    for (const auto* service : services_->find_by(kByOwner, ns, job.metadata.uid))
      observed.services.push_back({service->object_key.name, service->uid, false});
  }
  if (pod_groups_) {
    const auto group = pod_groups_->find(job.metadata.key());
    observed.watched_pod_group = group ? group->object() : nullptr;
  }
  return observed;
}

void JobController::keep(const Subject& subject, const kube::NamedObject&, Json object,
                         Origin origin, kube::ReadObject& kept) {
  if (origin == Origin::kRead) object = trim_dependent(**subject.decoded, std::move(object));
  kept.object = std::make_shared<const Json>(std::move(object));
}

void JobController::on_status(const Subject& subject, const V1JobPlan& plan) {
  subject.memory->extensions = plan.extensions;
  const std::string& ns = subject.key().ns;
  count("created", plan.counts.created ? 1 : 0, ns);
  count("successful", plan.counts.succeeded ? 1 : 0, ns);
  count("failed", plan.counts.failed ? 1 : 0, ns);
}

void JobController::on_done(const Subject& subject, const V1JobPlan& plan) {
  const std::string& ns = subject.key().ns;
  count("deleted", plan.counts.deleted ? 1 : 0, ns);
  count("restarted", plan.counts.restarted, ns);
  if (plan.counts.restarted > 0) job_metrics_.restarted("failure", plan.counts.restarted);
  // The pods of a finished job are not reported any more.
  if ((*subject.decoded)->status.completionTime) {
    subject.memory->relayed.reset();
    subject.memory->extensions = {};
  } else {
    subject.memory->relayed = plan.relayed;
  }
}

// These are the names of upstream's metrics (Training Operator, pkg/common/metrics.go).
void JobController::count(std::string_view what, std::int32_t times, const std::string& ns) const {
  if (times <= 0) return;
  const std::string_view label = census_->label_of_counter(ns);
  context().metrics.count(
      fmt::format("training_operator_jobs_{}_total", what), fmt::format("Jobs {}.", what),
      {{"job_namespace", std::string(label)}, {"framework", std::string(framework_.name)}},
      static_cast<std::uint32_t>(times));
}

void JobController::measure(const Subject& subject) {
  if (!*subject.decoded) return;
  const V1Job& job = **subject.decoded;
  // A job that had finished before it was restored is counted once its status says so.
  if (status_before_restore(framework_, job)) return;
  JobRecord& record = subject.memory->record;
  JobFacts facts = facts_of(job);
  facts.reach(JobStep::kFirstPod,
              record.awaits(JobStep::kFirstPod) &&
                  pods_.bucket_of(kByOwner, job.metadata.ns, job.metadata.uid) != nullptr);
  job_metrics_.update(record, facts);
}

}  // namespace trainer::v1
