// The input of plan_trainjob() is all that is known of one TrainJob and of the objects that belong
// to it. Pure.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/jobset.hh"
#include "api/trainjob.hh"
#include "kube/model/json.hh"
#include "kube/model/time.hh"
#include "runtimes/jobset/gates.hh"
#include "runtimes/trainjob/runtime_snapshot.hh"
#include "runtimes/views/job.hh"
#include "runtimes/views/pod.hh"

namespace trainer {

// The snapshot ConfigMap as it is stored.
struct SnapshotView {
  std::string owner_uid;                           // its controller's
  std::shared_ptr<const RuntimeSnapshot> content;  // null when the key is missing
};

struct TrainJobObserved {
  const TrainJob& job;           // read_stored_trainjob() makes it from job_object
  const kube::Json& job_object;  // the stored form, for the status difference
  // nullopt: not known (not read yet); a pointer to null: known to be absent.
  std::optional<std::shared_ptr<const SnapshotView>> snapshot;
  // null: not read, or absent (then runtime_error says why)
  std::shared_ptr<const RuntimeSnapshot> live_runtime;
  std::string runtime_error;
  const JobSet* jobset = nullptr;             // the JobSet of the job's name, whoever owns it
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
  std::map<std::string, bool>
      dependents;  // "Secret/j-mpi-ssh-auth" -> exists; absent: not known (see dependent_name)
  // The stored forms of dependent objects that were read (any mode), for ownership and for
  // "unchanged". One that exists but has no entry here counts as owned and unchanged.
  std::map<std::string, std::shared_ptr<const kube::Json>> dependent_objects;
  std::string build_error;  // the last refused child, for status.message
  // "REASON: MESSAGE" of the latest warning about the object that the last plan asked for
  // (kube::Plan::needs_events); "" where there is none.
  std::string waiting_event;
  // This is the number of nodes of the JobSet that this process built, or 0 if it built none. It is
  // used between the creation of the JobSet and the status that has the number.
  std::int32_t total_nodes = 0;
  std::vector<const JobView*> jobs;  // the Jobs of the JobSet
  // This process saw first at this time that all nodes have a machine. Time() says that the event
  // has been sent.
  std::optional<kube::Time> scheduled_since;
  bool is_jobset_controller_active = true;  // this controller owns the job's JobSet
  jobset::Gates gates;                      // the gates of that JobSet controller
  std::string jobset_managed_by;  // set in a JobSet at its creation (JobSet controller mode Share);
                                  // "" in the other modes
  bool marks_finished = false;    // finished jobs get the mark of finished_marker.hh
  kube::Time now;

  // Returns whether the Job controller has begun with a Job. From then on it reports itself what
  // keeps it from making pods.
  bool have_jobs_started() const {
    return std::any_of(jobs.begin(), jobs.end(),
                       [](const JobView* each) { return each->has_start_time; });
  }
};

}  // namespace trainer
