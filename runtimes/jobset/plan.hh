// The JobSet controller plans here what should happen to one JobSet now. Pure; each policy has a
// file.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/jobset.hh"
#include "kube/model/meta.hh"
#include "kube/model/plan.hh"
#include "kube/model/time.hh"
#include "runtimes/jobset/failure_pattern.hh"
#include "runtimes/jobset/gates.hh"
#include "runtimes/views/job.hh"
#include "runtimes/views/pod.hh"

namespace trainer::jobset {

// A decorator changes a Job before it is created. The Job is complete except for what differs
// between the Jobs of its replicated job, and its pod template has a spec.
using JobDecorator = void (*)(kube::Json& job, const JobSet& jobset);
using JobDecorators = std::span<const JobDecorator>;

struct Observed {
  const JobSet& jobset;
  std::vector<const JobView*> jobs;  // with this JobSet's uid as controller owner
  // These Jobs of the JobSet were complete when they were deleted, in their last known state. Jobs
  // whose deletion was not seen are missing.
  std::vector<const JobView*> removed_jobs;
  std::vector<const PodView*> pods;  // only where `needs_pods` says so
  bool service_exists = false;       // the headless Service, owned by this JobSet or by none
  // PersistentVolumeClaims, by name. nullptr: none is known, and none is read.
  const kube::NamedObjects* objects = nullptr;
  kube::Time now;
  Gates gates;
  JobDecorators decorators;
  FailurePatternCache* failure_patterns = nullptr;  // nullptr: patterns are compiled when needed
  // A child that could not be written, or nullptr.
  const kube::Refusal* refusal = nullptr;
  // If it is true, the controller of the JobSet's TrainJob reads the events of its Jobs.
  bool is_of_trainjob = false;
  // This is "REASON: MESSAGE" of the latest warning about the Job that the last plan asked for
  // (kube::Plan::needs_events); "" if there is none.
  std::string warning;
  // It is true if the caller knows that spec.managedBy means this controller. Otherwise
  // spec.managedBy must be absent, or be upstream's own name.
  bool is_managed_here = false;
};

// Plans by every rule of JobSet (pkg/controllers), with these departures (docs/decisions/0001,
// 0026, 0027):
// - A suspended JobSet gets no Job and no Service; Jobs that are held back count as suspended.
// - A Job counts as failed from its FailureTarget condition on.
// - Jobs that succeeded and were then removed by their own ttlSecondsAfterFinished stay counted and
//   do not run again. If their deletion was not seen, the stored counters decide, as long as every
//   missing Job of their replicated job is one of them.
// - Disruptions may have a restart budget of their own: see disruption.hh.
// - After a failure that a node caused, new Jobs prefer other nodes: see kAvoidedNode.
// - A restart keeps complete Jobs, and servers that are ready, if an annotation names their
//   replicated jobs: see restart.cc.
// - The condition ReplicaFailure reports a child that is refused, or a pod of a Job.
// - A Job whose labels do not parse is not changed and is named in an event, instead of stopping
//   all Jobs.
// - At most 256 Jobs are created at once, fewer large ones, and 1,000 changed or deleted; the rest
//   follow in the next reconciles.
// - The size of a failure policy's patterns is bounded, and so is the text that they search
//   (FailurePatterns).
//
// One reconcile counts a restart; its status must be written before anything else. The following
// reconciles execute the restart: for them the failed Jobs are those of a previous attempt. The
// write of the status is conditional on the resourceVersion that was observed, so neither a lost
// answer nor a repeated reconcile counts a restart twice.
//
// Nothing is planned for a JobSet that is being deleted or has another manager.
// Cost: linear in Jobs and replicated jobs.
kube::Plan plan(const Observed& observed);

struct JobSetContext;

// This does the same for very many Jobs, in steps of any size. `observed.jobs` is not read. The
// other members, except JobSet and gates, may be filled in until finish().
class SlicedPlan {
 public:
  explicit SlicedPlan(const Observed& observed);
  ~SlicedPlan();
  // The Jobs must live until finish() has returned.
  void add(std::span<const JobView* const> jobs);
  // Call this once.
  kube::Plan finish();

 private:
  std::unique_ptr<JobSetContext> context_;
};

// Returns whether plan() reads `pods` for this JobSet with these Jobs.
bool needs_pods(const JobSet& jobset, const Gates& gates, std::span<const JobView* const> jobs);

// Returns the Jobs that a JobSet would have, in order; for render and tests.
std::vector<kube::Json> all_jobs(const JobSet& jobset, const Gates& gates,
                                 JobDecorators decorators);
// Returns the headless Service, or nullopt without DNS host names; the second function returns only
// its key.
std::optional<kube::Json> headless_service(const JobSet& jobset);
std::optional<kube::ObjectKey> headless_service_key(const JobSet& jobset);

}  // namespace trainer::jobset
