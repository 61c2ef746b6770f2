// What is known of one TrainJob and of what belongs to it: the input of plan_trainjob(). Pure.
#pragma once

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

namespace trainer {

// What is kept of a Pod of a TrainJob (a projection; strings that say nothing stay empty).
struct TrainPodView {
  std::string name;
  std::string ns;
  std::string uid;
  std::string resource_version;
  std::string jobset;      // label jobset.sigs.k8s.io/jobset-name
  std::string jobset_uid;  // label jobset.sigs.k8s.io/jobset-uid: tells a former job's pods apart
  std::string replicated_job;
  std::string job_index;
  std::optional<std::int32_t> index;  // job completion index
  std::int32_t attempt = 0;           // label restart-attempt
  std::string phase;                  // Pending, Running, Succeeded, Failed, Unknown
  bool is_ready = false;              // condition Ready, or all containers have ended with 0
  bool is_deleting = false;
  bool is_disrupted = false;  // condition DisruptionTarget
  // Leads a Job under exclusive placement, and has a node (jobset::is_scheduled_leader).
  bool is_exclusive_leader = false;
  std::string machine;  // spec.nodeName
  // ErrImagePull, CreateContainerConfigError, Unschedulable, SchedulingGated, ...; what every pod
  // passes through (ContainerCreating, PodInitializing) stays empty.
  std::string waiting_reason;
  std::string waiting_message;
  // Of a failed pod: the container that ended first with a failure.
  struct Failure {
    std::string container;
    std::optional<std::int32_t> exit_code;
    std::optional<std::int32_t> signal;
    std::string reason;
    std::string message;  // 2 KB at most
    std::optional<kube::Time> finished_at;
    friend bool operator==(const Failure&, const Failure&) = default;
  };
  std::optional<Failure> failure;
  // For the expander (jobset::PodView): what its restarts in place and its disruption budget need.
  std::optional<std::string> in_place_attempt;
  std::int32_t restart_count = 0;
  bool is_infrastructure_failure = false;
  kube::ObjectKey key() const { return {ns, name}; }
  friend bool operator==(const TrainPodView&, const TrainPodView&) = default;
};

// The snapshot ConfigMap as it stands.
struct SnapshotView {
  std::string owner_uid;                           // its controller's
  std::shared_ptr<const RuntimeSnapshot> content;  // null when the key is missing
};

struct TrainJobObserved {
  const TrainJob& job;
  const kube::Json& job_object;  // as stored, for the status difference
  // nullopt: not known (not read yet); a pointer to null: known to be absent.
  std::optional<std::shared_ptr<const SnapshotView>> snapshot;
  // null: not read, or absent (then runtime_error says why)
  std::shared_ptr<const RuntimeSnapshot> live_runtime;
  std::string runtime_error;
  const JobSet* jobset = nullptr;             // of the job's name, whoever owns it
  const kube::Json* jobset_object = nullptr;  // its stored form
  // owned_template_fields() of the stored JobSet with its managedFields, taken when it entered the
  // store. Without it every label of a suspended JobSet's templates that we would not write counts
  // as ours to remove.
  std::optional<std::uint64_t> jobset_owned_fields;
  // The last state of a JobSet of this job that is gone from the store, where the watch still knows
  // it: a JobSet that finished and was removed by its TTL between two reconciles must not run
  // again.
  const JobSet* deleted_jobset = nullptr;
  std::vector<const TrainPodView*> pods;
  std::map<std::string, bool>
      dependents;  // "Secret/j-mpi-ssh-auth" -> exists; absent: not known (see dependent_name)
  // The stored forms of companions that were read (any Companion::Mode), for ownership and for
  // "unchanged". A companion that exists but has no entry here counts as ours and unchanged.
  std::map<std::string, std::shared_ptr<const kube::Json>> dependent_objects;
  std::string build_error;  // the last refused child, for status.message
  std::string
      waiting_event;  // a scheduler's or controller's text for a stuck job, when it was asked for
  // Nodes of the JobSet as this process built it; 0: it did not. It outlives the moment between the
  // JobSet and the status that tells it.
  std::int32_t total_nodes = 0;
  // The Job controller has begun with a Job of this JobSet: from then on it says itself what keeps
  // it from making pods.
  bool have_jobs_started = true;
  bool is_jobset_controller_active = true;  // we expand this job's JobSet ourselves
  jobset::Gates gates;                      // of that expander
  std::string jobset_managed_by;  // stamped into a JobSet at its creation (expander mode Share); ""
                                  // in the other modes
  kube::Time now;
};

}  // namespace trainer
