// Plans what should happen to one MPIJob of kubeflow.org/v2beta1 now: a launcher, which is a Job,
// reaches the workers by SSH. Pure; each policy has a file.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "api/kinds/kinds.hh"
#include "api/v1job.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json_cursor.hh"
#include "kube/model/plan.hh"
#include "kube/model/time.hh"
#include "runtimes/lifecycle/facts.hh"
#include "runtimes/mpijob/settings.hh"
#include "runtimes/views/v1_pod.hh"

namespace trainer::mpijob {

inline const kube::Resource kMPIJobs{"kubeflow.org", "v2beta1", "mpijobs", "MPIJob", true};
inline constexpr std::string_view kReplicaSpecs = "mpiReplicaSpecs";
// The value of spec.runPolicy.managedBy that names this controller; an absent one means the same.
inline constexpr std::string_view kMPIManager = "kubeflow.org/mpi-operator";

struct MPIJobObserved {
  const v1::V1Job& job;                         // the stored job, without defaults
  std::vector<const v1::V1PodView*> workers;    // pods with this job's uid as controller owner
  std::vector<const v1::V1PodView*> launchers;  // the pods of the launcher's Job
  // These objects are the stored ones if this job controls them, else null pointers. The first four
  // have what view_of_child() leaves of them.
  std::shared_ptr<const kube::Json> launcher;  // batch/v1 Job
  std::shared_ptr<const kube::Json> service;
  std::shared_ptr<const kube::Json> config_map;
  std::shared_ptr<const kube::Json> secret;
  std::shared_ptr<const kube::Json> pod_group;
  // Values of the PriorityClasses that the templates name, as far as they exist.
  const kube::NamedObjects& objects;
  // This is MPIJobPlan::relayed of the last plan of this process; nullopt in the first one.
  std::optional<std::unordered_set<std::string>> relayed;
  const MPISettings& settings;
  kube::Time now;
  const kube::Refusal* refusal = nullptr;  // a child that could not be written
};

struct MPIJobPlan : kube::Plan {
  // Events that are made once as long as their cause remains, "REASON MESSAGE".
  std::unordered_set<std::string> relayed;
  // The indexes of actions that create or patch a Secret, which gets a new SSH key pair.
  std::vector<std::size_t> ssh_key_actions;
  // These are added to mpi_operator_jobs_*_total once the status is stored.
  bool counts_created = false;
  bool counts_succeeded = false;
  bool counts_failed = false;
};

// Plans by the rules of mpi-operator 0.8.2 (pkg/controller), with the departures of
// docs/decisions/0071. Nothing is planned for a job that is being deleted or has another manager.
// An unchanged job gets an empty plan. Cost: linear in pods and workers.
MPIJobPlan plan(const MPIJobObserved& observed);

// Returns the members that a plan reads of a launcher's Job, a Service, ConfigMap or Secret.
kube::JsonFilter seen_of_child(const kube::Resource& resource);
// Returns the form in which a plan has such an object: of a ConfigMap's values their digests, of a
// Secret's nothing. Those of a large job have megabytes, and a Secret has its keys.
kube::Json view_of_child(const kube::Resource& resource, kube::Json seen);

// Returns all objects that a job has when it starts, in order, for `render`. The Secret has no
// keys.
std::vector<kube::Json> all_children(const v1::V1Job& job, const MPISettings& settings);

// Returns why the controller does not serve this job. The fields have the order and the words of
// mpi-operator (pkg/apis/kubeflow/validation).
kube::FieldErrors validate(const v1::V1Job& job, const MPISettings& settings = {});
// Returns what a new job says without effect, why its pods will be refused, and why it is not
// served at all. Each text is a sentence for its user.
std::vector<std::string> warnings_of(const v1::V1Job& job, const MPISettings& settings = {});
// The CRD's version v2beta1. It is served beside v1, which is stored.
KindVersion crd_version();

// Names of a job's objects.
std::string launcher_name(std::string_view job);
std::string worker_name(std::string_view job, std::int32_t index);

// The PodGroups of the gang scheduler; nullptr without one.
const kube::Resource* pod_groups_of(const MPISettings& settings);

// Returns the facts of the stored status, for metrics.
JobFacts facts_of(const v1::V1Job& job);
// All values of JobFacts::failure but "".
std::span<const std::string_view> failure_reasons();

}  // namespace trainer::mpijob
