#include "controller/kinds/common/collections.hh"

#include <utility>

#include "runtimes/trainjob/difference.hh"
#include "runtimes/views/created_version.hh"

namespace trainer {
namespace {

// Adds an index before the event handler, which may read it.
template <class T>
kube::Watch with_index(kube::Watch watch, std::string_view name,
                       typename kube::ObjectCache<T>::IndexFunc value_of) {
  watch.connect = [name, value_of = std::move(value_of), connect = std::move(watch.connect)](
                      kube::AnyObjectCache& cache, kube::Controller& controller) {
    dynamic_cast<kube::ObjectCache<T>&>(cache).add_index(name, value_of);
    if (connect) connect(cache, controller);
  };
  watch.batch = kube::Pacing::kEventBatch;
  return watch;
}

}  // namespace

kube::StoredObjectTransform jobset_transform() {
  return kube::StoredObjectTransform(
      kJobSets, kube::Fingerprint{{seen_of_managed_fields()}, owned_template_fields});
}

kube::StoredObjectTransform versioned_transform(const kube::Resource& resource) {
  return kube::StoredObjectTransform(
      resource, kube::Fingerprint{seen_of_created_version(), version_fingerprint});
}

JobCache::Transform job_transform() {
  return [](std::string_view text) { return transform_job(text); };
}

PodCache::Transform pod_transform() {
  return [](std::string_view text) { return transform_pod(text); };
}

V1PodCache::Transform v1_pod_transform() {
  return [](std::string_view text) { return v1::transform_pod(text); };
}

BatchPodCache::Transform batch_pod_transform() {
  return [](std::string_view text) { return batch::transform_pod(text); };
}

kube::Watch indexed_jobs(kube::Watch watch) {
  return with_index<JobView>(std::move(watch), kByOwner,
                             [](const JobView& job) -> std::string_view { return job.owner_uid; });
}

kube::Watch indexed_pods(kube::Watch watch) {
  return with_index<PodView>(std::move(watch), kByJobSet,
                             [](const PodView& pod) -> std::string_view { return pod.jobset; });
}

kube::Watch indexed_v1_pods(kube::Watch watch) {
  return with_index<v1::V1PodView>(
      std::move(watch), kByOwner,
      [](const v1::V1PodView& pod) -> std::string_view { return pod.owner_uid; });
}

kube::Watch indexed_batch_pods(kube::Watch watch) {
  return with_index<batch::BatchPodView>(
      std::move(watch), kByJob,
      [](const batch::BatchPodView& pod) -> std::string_view { return pod.job; });
}

kube::Watch indexed_by_controller(kube::Watch watch) {
  return with_index<kube::StoredObject>(
      std::move(watch), kByOwner,
      [](const kube::StoredObject& object) -> std::string_view { return object.controller_uid; });
}

}  // namespace trainer
