// The input of plan_trainjob() is all that is known of one TrainJob and of the objects that belong
// to it. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/jobset.hh"
#include "api/trainjob.hh"
#include "kube/model/json.hh"
#include "kube/model/named_objects.hh"
#include "kube/model/plan.hh"
#include "kube/model/time.hh"
#include "runtimes/jobset/gates.hh"
#include "runtimes/trainjob/stall.hh"
#include "runtimes/views/job.hh"
#include "runtimes/views/pod.hh"

namespace trainer {

// The restarts of processes by torchrun, as a plan knew them.
struct ProcessRestartCount {
  std::int32_t attempt = 0;   // the restarts of the JobSet
  std::int32_t restarts = 0;  // in this attempt
  std::int32_t earlier = 0;   // in all attempts before
  std::int32_t resizes = 0;   // those that were known (HeartbeatFacts::resizes)
};

struct TrainJobObserved {
  const TrainJob& job;                // read_stored_trainjob() makes it from job_object
  const kube::Json& job_object;       // the stored form, for the status difference
  const kube::NamedObjects& objects;  // known_objects.hh says which
  // The shape of the job is a hash of its generation, labels and annotations.
  std::uint64_t shape = 0;
  const JobSet* jobset = nullptr;             // the JobSet of the job's name, of any owner
  const kube::Json* jobset_object = nullptr;  // its stored form
  // This is owned_template_fields() of the stored JobSet with its managedFields, computed when the
  // JobSet entered the cache. Without it, every label of a suspended JobSet's templates that the
  // plan would not write counts as one to remove.
  std::optional<std::uint64_t> jobset_owned_fields;
  // This is the last state of a JobSet of this job that is gone from the cache, if it is still
  // known. A JobSet that finished and was removed by its TTL between two reconciles must not run
  // again.
  const JobSet* deleted_jobset = nullptr;
  std::vector<const PodView*> pods;
  const kube::Refusal* refusal = nullptr;  // a child that could not be written
  // "REASON: MESSAGE" of the latest warning about the object that the last plan asked for
  // (kube::Plan::needs_events); "" where there is none.
  std::string waiting_event;
  bool is_waiting_event_new = false;  // it was read in this reconcile
  // This is the number of nodes of the JobSet that this process built, or 0 if it built none. It is
  // used between the creation of the JobSet and the status that has the number.
  std::int32_t total_nodes = 0;
  std::vector<const JobView*> jobs;  // the Jobs of the JobSet
  // This process saw first at this time that all nodes have a machine. Time() says that the event
  // has been sent.
  std::optional<kube::Time> scheduled_since;
  // nullptr while no rank has reported since this process leads.
  const HeartbeatFacts* heartbeats = nullptr;
  std::optional<ProcessRestartCount> process_restarts;  // the last plan with heartbeats made it
  std::uint64_t stacks_number = 0;          // the stacks that this process has tried to write last
  bool is_jobset_controller_active = true;  // this controller owns the job's JobSet
  jobset::Gates gates;                      // the gates of that JobSet controller
  std::string jobset_managed_by;  // set in a JobSet at its creation (JobSet controller mode Share);
                                  // "" in the other modes
  // False in an installation for one namespace, which has no rights to ClusterTrainingRuntimes.
  bool reads_cluster_runtimes = true;
  bool marks_finished = false;  // finished jobs get the mark of finished_marker.hh
  kube::Time now;

  // Returns whether the Job controller has begun with a Job. From then on it reports itself what
  // keeps it from making pods.
  bool have_jobs_started() const {
    return std::any_of(jobs.begin(), jobs.end(),
                       [](const JobView* each) { return each->has_start_time; });
  }
};

}  // namespace trainer
