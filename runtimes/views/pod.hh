// The view is the part of a Pod that is kept, and says how it is read from the API server's
// objects. Pure; it is made for each watch event, so it keeps little.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/time.hh"

namespace trainer {

// This is a Pod, for the TrainJob's status, for the JobSet controller and for exclusive placement.
// Strings without a value are empty.
struct PodView {
  std::string name;
  std::string ns;
  std::string uid;
  std::string resource_version;
  std::string jobset;      // label jobset.sigs.k8s.io/jobset-name
  std::string jobset_uid;  // label jobset.sigs.k8s.io/jobset-uid; another for pods of a former job
  std::string replicated_job;
  std::string job_index;
  std::optional<std::int32_t> index;  // job completion index
  std::int32_t attempt = 0;           // label restart-attempt
  std::string phase;                  // Pending, Running, Succeeded, Failed, Unknown
  bool is_ready = false;              // condition Ready, or all containers have ended with 0
  bool is_deleting = false;
  bool is_disrupted = false;  // condition DisruptionTarget
  // No restart of the program could have avoided its end: DisruptionTarget, or a reason such as
  // NodeLost.
  bool is_infrastructure_failure = false;
  // No restart could have avoided its end, and its node was lost, drained or short of something.
  bool is_node_failure = false;
  // The pod leads a Job under exclusive placement, has a node, and is neither over nor being
  // deleted.
  bool is_exclusive_leader = false;
  std::string node_name;
  // This is ErrImagePull, CreateContainerConfigError, Unschedulable, SchedulingGated, ...; it is
  // empty in states that every pod passes through (ContainerCreating, PodInitializing).
  std::string waiting_reason;
  std::string waiting_message;
  // In a failed pod, this is the container that ended first with a failure.
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
  std::optional<std::string> in_place_attempt;  // annotation in-place-restart-attempt, unparsed
  std::int32_t restart_count = 0;               // the largest of its containers and init containers
  kube::ObjectKey key() const { return {ns, name}; }
  // Returns false for a pod of a former JobSet of the same name.
  bool is_of_jobset(std::string_view of_uid) const {
    return jobset_uid.empty() || jobset_uid == of_uid;
  }
  friend bool operator==(const PodView&, const PodView&) = default;
};

// Reads one object, or its JSON text. The result is nullptr if it is no JSON object with a name;
// members of unexpected types count as absent. A failure that a pod has only because it was being
// deleted is left out: it is an effect, never a cause.
std::shared_ptr<PodView> view_pod(const kube::Json& pod);
std::shared_ptr<PodView> transform_pod(std::string_view json_text);

// These read exclusive placement from a pod's annotations: whether the leader's domain decides
// about the pod's node, and whether the pod is the leader, the pod of completion index 0.
bool is_exclusively_placed(const kube::Json& annotations);
bool is_placement_leader(const kube::Json& annotations);

}  // namespace trainer
