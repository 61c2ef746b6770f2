#include "runtimes/trainjob/known_objects.hh"

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "kube/model/resources.hh"
#include "runtimes/lifecycle/reasons.hh"

namespace trainer {
namespace {

constexpr std::string_view kSnapshotSuffix = "-runtime-snapshot";

// The reasons that are checked by reading. This is looked up for each job that is reconciled.
constexpr std::size_t kBlockingCount = static_cast<std::size_t>(
    std::ranges::count(reasons::kAll, Reason::Recheck::kByReading, &Reason::recheck));
constexpr auto kBlocking = [] {
  std::array<std::string_view, kBlockingCount> names;
  auto at = names.begin();
  for (const Reason& each : reasons::kAll)
    if (each.recheck == Reason::Recheck::kByReading) *at++ = each.name;
  return names;
}();

bool is_current(const TrainJobObserved& observed, const kube::ReadObject& read) {
  if (read.is_new) return true;
  return read.stamp.shape == observed.shape && !is_blocked_by_objects(observed.job.status);
}

bool has_never_been_reconciled(const TrainJobObserved& observed) {
  return observed.objects.is_first_plan() && observed.job.metadata.generation == 1 &&
         observed.job.status.phase.empty() && observed.jobset == nullptr;
}

}  // namespace

bool is_blocked_by_objects(const TrainJobStatus& status) {
  return std::ranges::find(kBlocking, status.reason) != kBlocking.end();
}

std::string snapshot_name(std::string_view job_name) {
  return std::string(job_name).append(kSnapshotSuffix);
}

kube::NamedObject snapshot_object(const TrainJob& job) {
  return {kube::kConfigMaps, {job.metadata.ns, snapshot_name(job.metadata.name)}};
}

bool is_snapshot(const TrainJob& job, const kube::Resource& resource, std::string_view name) {
  const std::string& job_name = job.metadata.name;
  return name.size() == job_name.size() + kSnapshotSuffix.size() && name.starts_with(job_name) &&
         name.ends_with(kSnapshotSuffix) && resource.has_same_objects(kube::kConfigMaps);
}

const kube::Resource& runtime_resource(const TrainJob& job) {
  return is_cluster_scoped(job.spec.runtimeRef) ? kClusterTrainingRuntimes : kTrainingRuntimes;
}

kube::NamedObject runtime_object(const TrainJob& job) {
  const kube::Resource& resource = runtime_resource(job);
  return {resource,
          {resource.namespaced ? job.metadata.ns : std::string(), job.spec.runtimeRef.name}};
}

kube::ReadStamp stamp_of(const TrainJobObserved& observed) {
  if (!observed.jobset) return {observed.shape};
  return {observed.shape, std::hash<std::string>()(observed.jobset->metadata.uid),
          observed.jobset->status.restarts};
}

const kube::ReadObject* known_snapshot(const TrainJobObserved& observed) {
  static const kube::ReadObject kAbsent;
  for (const auto& [name, each] : observed.objects.entries()) {
    if (each.is_known && is_snapshot(observed.job, each.resource, name))
      return is_current(observed, each.read) ? &each.read : nullptr;
  }
  return has_never_been_reconciled(observed) ? &kAbsent : nullptr;
}

const kube::ReadObject* known_runtime(const TrainJobObserved& observed) {
  const TrainJob& job = observed.job;
  const kube::ReadObject* const read =
      observed.objects.find(runtime_resource(job), job.spec.runtimeRef.name);
  return read && read->is_new ? read : nullptr;
}

bool is_dependent_current(const TrainJobObserved& observed, const kube::ReadObject& read) {
  if (read.is_new) return true;
  // The pods of a restart need what may have been deleted meanwhile. So does a pod whose mount the
  // kubelet has just reported as missing.
  const kube::ReadStamp now = stamp_of(observed);
  const bool is_of_another_jobset =
      read.stamp.child != 0 && now.child != 0 && read.stamp.child != now.child;
  const bool has_restarted = is_of_another_jobset || now.failures > read.stamp.failures;
  const bool is_mount_missing =
      observed.is_waiting_event_new && observed.waiting_event.starts_with(kMissingMount);
  return is_current(observed, read) && !has_restarted && !is_mount_missing;
}

const kube::ReadObject* known_dependent(const TrainJobObserved& observed,
                                        const kube::Resource& resource, std::string_view name) {
  const kube::ReadObject* const read = observed.objects.find(resource, name);
  return read && is_dependent_current(observed, *read) ? read : nullptr;
}

kube::Json trim_dependent(const kube::Resource& resource, bool is_owned, kube::Json object) {
  if (resource != kube::kSecrets && is_owned) return object;
  return kube::Json::object({{"metadata", kube::Json::object()}});
}

std::shared_ptr<const RuntimeSnapshot> content_of(const kube::ReadObject& read) {
  return std::static_pointer_cast<const RuntimeSnapshot>(read.content);
}

}  // namespace trainer
