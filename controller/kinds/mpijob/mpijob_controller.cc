#include "controller/kinds/mpijob/mpijob_controller.hh"

#include <fmt/format.h>

#include <utility>

#include "controller/kinds/common/upstream_lease.hh"
#include "controller/ssh/key_pair.hh"
#include "kube/manager/manager_metrics.hh"
#include "kube/model/resources.hh"
#include "runtimes/views/created_version.hh"

namespace trainer::mpijob {
namespace {

using kube::Debounce;
using kube::Json;
using kube::Result;
using kube::Task;

constexpr UpstreamController kMPIOperator{"mpi-operator", "mpi-operator", "mpi-operator", "",
                                          "mpiOperator.upstreamNamespaces"};

// Returns the object if its controller has this uid. One whose text is not kept counts as
// another's.
std::shared_ptr<const Json> child(const std::shared_ptr<const kube::StoredObject>& stored,
                                  const std::string& uid) {
  return stored && stored->controller_uid == uid && stored->body.size() > 0 ? stored->object()
                                                                            : nullptr;
}

}  // namespace

MPIJobController::MPIJobController(const kube::ControllerContext& context, Options options)
    : PlannedController(context, context.caches.get<kube::StoredObject>(all_of(kMPIJobs)),
                        std::make_shared<kube::DecodedObjects<DecodedMPIJob>>(
                            [](const std::shared_ptr<const Json>& object) {
                              return v1::read_job(*object, kReplicaSpecs);
                            })),
      options_(std::move(options)),
      pods_(context.caches.get<v1::V1PodView>(v1_pods())),
      launchers_(context.caches.get<kube::StoredObject>(labelled(kube::kJobs))),
      services_(context.caches.get<kube::StoredObject>(labelled(kube::kServices))),
      config_maps_(context.caches.get<kube::StoredObject>(labelled(kube::kConfigMaps))),
      secrets_(context.caches.get<kube::StoredObject>(labelled(kube::kSecrets))),
      pod_groups_(pod_groups_of(options_.settings) ? &context.caches.get<kube::StoredObject>(
                                                         all_of(*pod_groups_of(options_.settings)))
                                                   : nullptr),
      job_metrics_(options_.jobs, context.metrics, context.client.clock(),
                   {kMPIJobs.kind, false, failure_reasons()}),
      is_upstream_known_(!options_.follows_upstream) {
  for (const char* what : {"created", "successful", "failed"}) count(what, false);
}

std::vector<kube::BackgroundTask> MPIJobController::tasks() {
  std::vector<kube::BackgroundTask> tasks;
  if (!options_.follows_upstream) return tasks;
  UpstreamLeaseOptions lease;
  lease.upstream = kMPIOperator;
  lease.namespaces = options_.upstream_namespaces;
  lease.on_change = [this](bool is_held) { upstream_changed(is_held); };
  lease.on_synced = [this] { is_upstream_known_ = true; };
  lease.on_ignored = [this](std::string_view name, std::size_t count) {
    context().metrics.set_unexpected_leases(name, count);
  };
  tasks.push_back({"follow mpi-operator",
                   follow_upstream_lease(context().client, std::move(lease), context().log)});
  return tasks;
}

// Two controllers of one job would each undo what the other does.
void MPIJobController::upstream_changed(bool is_present) {
  const bool was_present = std::exchange(is_upstream_present_, is_present);
  if (was_present == is_present) return;
  context().log.info("MPIJobs of v2beta1",
                     {{"are", is_present ? "left to mpi-operator, which holds its Lease"
                                         : "reconciled here: mpi-operator does not run"}});
  objects().each([this](const kube::ObjectKey& key, const auto&) {
    this->context().router.enqueue(this->context().id, key, Debounce::kNone);
  });
}

bool MPIJobController::is_reconciled(const kube::StoredObject& stored) const {
  return !is_upstream_present_ && is_created_at(stored.fingerprint, kMPIJobs.version);
}

// A new pod that waits needs no reconcile. The launcher's pods belong to its Job, so that the label
// says whose they are; a plan counts only those of the right owner.
void MPIJobController::on_pod(const Pod& before, const Pod& after) {
  if (is_unchanged(before, after) || (!before && after->phase == "Pending")) return;
  const v1::V1PodView& pod = after ? *after : *before;
  const kube::ObjectKey key{pod.ns, pod.job};
  if (!objects().find(key)) return;
  const bool is_urgent = !after || after->is_over() || after->is_deleting;
  context().router.enqueue(context().id, key, is_urgent ? Debounce::kShort : Debounce::kCounters);
}

// An object that was changed or deleted is put back. A new one is the plan's own.
void MPIJobController::on_object(const Stored& before, const Stored& after) {
  if (before) on_child(before, after);
}

Task<MPIJobPlan> MPIJobController::plan(const Subject& subject) {
  const v1::V1Job& job = **subject.decoded;
  const std::string& ns = job.metadata.ns;
  const std::string& name = job.metadata.name;
  const std::string& uid = job.metadata.uid;
  MPIJobObserved observed{.job = job,
                          .objects = subject.memory->objects,
                          .settings = options_.settings,
                          .now = context().client.clock().now()};
  observed.workers = pods_.find_by(kByOwner, ns, uid);
  const auto launcher = launchers_.find({ns, launcher_name(name)});
  observed.launcher = child(launcher, uid);
  if (observed.launcher) observed.launchers = pods_.find_by(kByOwner, ns, launcher->uid);
  observed.service = child(services_.find({ns, name}), uid);
  observed.config_map = child(config_maps_.find({ns, name + "-config"}), uid);
  observed.secret = child(secrets_.find({ns, name + "-ssh"}), uid);
  if (pod_groups_) observed.pod_group = child(pod_groups_->find({ns, name}), uid);
  observed.relayed = subject.memory->relayed;
  observed.refusal = refusal_of(subject);
  co_return mpijob::plan(observed);
}

Result<void> MPIJobController::complete(const Subject&, MPIJobPlan& plan) {
  for (const auto index : plan.ssh_key_actions) {
    if (auto added = add_ssh_key_pair(plan.actions.at(index).body); !added) return added;
  }
  return {};
}

// An event may be about an action that fails, so that it does not wait for all of them.
void MPIJobController::on_status(const Subject& subject, const MPIJobPlan& plan) {
  subject.memory->relayed = plan.relayed;
  count("created", plan.counts_created);
  count("successful", plan.counts_succeeded);
  count("failed", plan.counts_failed);
}

// These are the names of mpi-operator's metrics.
void MPIJobController::count(std::string_view what, bool is_counted) const {
  context().metrics.count(fmt::format("mpi_operator_jobs_{}_total", what),
                          fmt::format("MPIJobs {}.", what), {}, is_counted ? 1 : 0);
}

void MPIJobController::measure(const Subject& subject) {
  if (!*subject.decoded) return;
  const v1::V1Job& job = **subject.decoded;
  JobRecord& record = subject.memory->record;
  JobFacts facts = facts_of(job);
  facts.reach(JobStep::kFirstPod,
              record.awaits(JobStep::kFirstPod) &&
                  pods_.bucket_of(kByOwner, job.metadata.ns, job.metadata.uid) != nullptr);
  job_metrics_.update(record, facts);
}

}  // namespace trainer::mpijob
