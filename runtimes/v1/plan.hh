// Plans what should happen to one V1 job now. Pure; each policy has a file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "api/v1job.hh"
#include "kube/model/named_objects.hh"
#include "kube/model/plan.hh"
#include "kube/model/time.hh"
#include "runtimes/v1/framework.hh"
#include "runtimes/views/v1_pod.hh"

namespace trainer::v1 {

struct ServiceView {
  std::string name;
  std::string uid;
  bool is_deleting = false;
};

// Upstream's CRDs do not have these members of a status. If those CRDs are installed, the API
// server drops the members from what is written.
struct StatusExtensions {
  std::int32_t restarts = 0;
  std::vector<std::string> restartedPods;
  std::optional<FirstFailure> firstFailure;

  StatusExtensions() = default;
  explicit StatusExtensions(const JobStatus& status);
  bool empty() const { return restarts == 0 && restartedPods.empty() && !firstFailure; }
};

struct Observed {
  const Framework& framework;
  const V1Job& job;  // the stored job (but see with_extensions()), without defaults
  std::vector<const V1PodView*> pods;  // with this job's uid as controller owner
  std::vector<ServiceView> services;   // the services with this uid as controller owner
  // HorizontalPodAutoscaler, PodGroup, and the objects that an MPIJob has beside its pods. They are
  // the stored ones, of any owner.
  const kube::NamedObjects& objects;
  // The PodGroup where PodGroups are watched; a null pointer where there is none.
  std::optional<std::shared_ptr<const kube::Json>> watched_pod_group;
  // This is V1JobPlan::relayed of the last plan of this process. nullopt says that this process
  // sees the job for the first time. If that job has a status, an earlier process has made the
  // events of its troubles.
  std::optional<std::unordered_set<std::uint64_t>> relayed;
  const Settings& settings;
  kube::Time now;
  const kube::Refusal* refusal = nullptr;  // a child that could not be written
};

struct V1JobPlan : kube::Plan {
  // These are hashes of the events that V1JobContext::relay() has planned, most of them about
  // troubles of pods (V1PodView::Trouble). An event is not made again while its hash is here.
  std::unordered_set<std::uint64_t> relayed;
  StatusExtensions extensions;  // the extensions of the planned status
  // These numbers are added to training_operator_jobs_*_total once the plan has run.
  struct Counts {
    bool created = false;
    bool deleted = false;
    bool succeeded = false;
    bool failed = false;
    std::int32_t restarted = 0;
  };
  Counts counts;
};

// Plans by the rules of the Training Operator 1.9 (pkg/controller.v1), with 1.9.4's cleanPodPolicy,
// and with the departures of docs/decisions/0056 and 0057. Nothing is planned for a job that is
// being deleted or has another manager. An unchanged job gets an empty plan. Cost: linear in pods
// and services.
V1JobPlan plan(const Observed& observed);

// Returns the status of a finished job that was restored from a backup without it: it follows from
// the job's finished marker (runtimes/lifecycle/finished_marker.hh). The result is nullopt for
// every other job.
std::optional<JobStatus> status_before_restore(const Framework& framework, const V1Job& job);

// Returns the job with the extensions of the last plan of this process, if its stored status has
// none of them. So backoffLimit counts all pods that this process has recreated, also with
// upstream's CRDs, and no status is written again. The result is nullopt for every other job.
std::optional<V1Job> with_extensions(const V1Job& job, const StatusExtensions& last);

// Returns the part of a dependent object that is kept after a read: all of it if the job owns it,
// else only its owner, since it may be large.
kube::Json trim_dependent(const V1Job& job, kube::Json object);

// The PodGroups of the gang scheduler; nullptr without one.
const kube::Resource* pod_groups_of(const Settings& settings);

// Returns all pods, Services and dependent objects that a job has when it starts, in order, for
// `render`. There are none if the job is refused for its size (validate.hh, too_large()).
std::vector<kube::Json> all_children(const Framework& framework, const V1Job& job,
                                     const Settings& settings);

}  // namespace trainer::v1
