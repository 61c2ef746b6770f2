// Several kinds watch these collections. Equal ones share a cache, so each is described once.
#pragma once

#include <string_view>

#include "api/jobset.hh"
#include "kube/manager/controller.hh"
#include "kube/manager/stored_object.hh"
#include "kube/model/resources.hh"
#include "runtimes/jobset/names.hh"
#include "runtimes/views/batch_pod.hh"
#include "runtimes/views/job.hh"
#include "runtimes/views/labels.hh"
#include "runtimes/views/pod.hh"
#include "runtimes/views/v1_pod.hh"

namespace trainer {

using JobCache = kube::ObjectCache<JobView>;
using PodCache = kube::ObjectCache<PodView>;
using V1PodCache = kube::ObjectCache<v1::V1PodView>;
using BatchPodCache = kube::ObjectCache<batch::BatchPodView>;
using StoredCache = kube::ObjectCache<kube::StoredObject>;

// Returns the collection of all objects of a resource, kept as text.
inline kube::Collection all_of(const kube::Resource& resource) {
  return {resource, ""};
}
// Returns the collection of Jobs of JobSets, or of their Pods. The API server leaves out all
// others.
inline kube::Collection jobset_jobs() {
  return {kube::kJobs, std::string(jobset::kJobSetNameKey)};
}
inline kube::Collection jobset_pods() {
  return {kube::kPods, std::string(jobset::kJobSetNameKey)};
}

// Pods and Services of V1 jobs.
inline kube::Collection v1_pods() {
  return {kube::kPods, std::string(kV1JobNameKey)};
}
inline kube::Collection v1_services() {
  return {kube::kServices, std::string(kV1JobNameKey)};
}

// All Pods, as views for the Job controller and the scheduler of local mode.
inline kube::Collection batch_pods() {
  return {kube::kPods, ""};
}

// The fingerprint of JobSets is owned_template_fields().
kube::StoredObjectTransform jobset_transform();
// The fingerprint of these objects is version_fingerprint() (runtimes/views/created_version.hh).
kube::StoredObjectTransform versioned_transform(const kube::Resource& resource);
JobCache::Transform job_transform();
PodCache::Transform pod_transform();
V1PodCache::Transform v1_pod_transform();
BatchPodCache::Transform batch_pod_transform();

// These are names of indexes. Jobs, and objects that V1 jobs own, are indexed by the uid of their
// controller; Pods by the name of their JobSet.
inline constexpr std::string_view kByOwner = "owner";
inline constexpr std::string_view kByJobSet = "jobset";
// Pods of local mode's Job controller: by the name of their Job.
inline constexpr std::string_view kByJob = "job";
// Watches of Jobs and Pods with these indexes; `watch` has the handler.
kube::Watch indexed_jobs(kube::Watch watch);
kube::Watch indexed_pods(kube::Watch watch);
kube::Watch indexed_v1_pods(kube::Watch watch);
kube::Watch indexed_batch_pods(kube::Watch watch);
kube::Watch indexed_by_controller(kube::Watch watch);  // the collection's items are StoredObjects

// Most writes to a Pod or a Job, such as of addresses, change nothing that is in its view.
template <class View>
bool is_unchanged(const std::shared_ptr<const View>& before,
                  const std::shared_ptr<const View>& after) {
  if (!before || !after) return false;
  View last = *before;
  last.resource_version = after->resource_version;
  return last == *after;
}

}  // namespace trainer
