// The six kinds of V1 jobs differ in these values. A further kind is a file in
// frameworks/ and its lines in frameworks/registry.cc. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/kinds/kinds.hh"
#include "api/v1job.hh"
#include "kube/model/exec_limits.hh"
#include "kube/model/field_error.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer::v1 {

struct V1JobContext;

// The maximum number of pods of a job, in all its roles. Each pod of a TFJob or XGBoostJob has the
// names of all others in its environment, so with many more the pod object would be too large.
inline constexpr std::int64_t kMaxPods = 10'000;
// This bound is for one pod. Several kinds add variables to each container, and those of an
// XGBoostJob contain the names of all pods. So the number of containers times the number of pods
// has a bound, too.
inline constexpr std::int64_t kMaxContainers = 1'000;
inline constexpr std::int64_t kMaxContainersTimesPods = 1'000'000;
// This bounds what the controller adds to one pod: etcd takes objects of 1.5 MiB, and a template
// needs room.
inline constexpr std::int64_t kMaxGeneratedBytes = std::int64_t{5} << 18;

// The flags and files that the process was started with.
struct Settings {
  // --gang-scheduler-name: "" for none; "volcano" in any case; any other name means
  // scheduler-plugins under that name.
  std::string gang_scheduler;
  std::string init_container_image = "alpine:3.10";
  std::int32_t init_container_tries = 100;
  // A YAML list of containers with {{.MasterAddr}}, {{.InitContainerImage}} and {{.MaxTries}};
  // empty for the built-in one. See check_init_template().
  std::string init_container_template;
  std::string kubectl_delivery_image = "ghcr.io/kubeflow/training-v1/kubectl-delivery:latest";
  std::string cluster_domain;  // CUSTOM_CLUSTER_DOMAIN, for TF_CONFIG
  bool marks_finished =
      false;  // finished jobs get the finished marker (runtimes/lifecycle/finished_marker.hh)
};

// A pod that is to be created.
struct PodSlot {
  std::string_view role;  // canonical: "Worker"
  std::int32_t index = 0;
};

// A generated text is a part of a job that grows with its counts or texts. It is measured before
// any of it is built.
struct GeneratedText {
  std::string_view name = {};  // the name of a variable; for anything else its kind: "ConfigMap"
  std::string path = {};       // the path of the field that decides about its size
  std::int64_t bytes = 0;      // the bytes of a variable, by kube::exec_bytes()
  std::int64_t limit = kube::kMaxExecStringBytes;
  // This sentence says whose limit that is.
  std::string_view why = "Linux starts no process with a longer variable";
  // It is in all containers of each pod; else it is in one of each pod, or beside the pods.
  bool is_in_each_container = false;
  bool is_in_pods = true;
};

// The CRD of a kind differs from the others' in these members (Training Operator,
// manifests/base/crds).
struct CrdDifferences {
  // The members of `spec`, besides runPolicy and the roles.
  std::vector<std::string_view> members = {};
  // The members of `spec.elasticPolicy`; empty for all.
  std::vector<std::string_view> elastic_members = {};
  std::string_view scale_path = {};  // "": no subresource `scale`
  bool is_age_first = false;         // the two columns have another order
};

struct Framework {
  kube::Resource resource;              // {"kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"}
  std::string_view singular;            // "pytorchjob": labels, webhook names
  std::string_view name;                // "pytorch": the label `framework` of metrics
  std::string_view replica_specs;       // "pytorchReplicaSpecs"
  std::vector<std::string_view> roles;  // in the order in which they are reconciled
  std::string_view container;           // the one every role must have; "" for none
  std::string_view port_name;           // with `port`, added to that container where it is missing
  std::int32_t port = 0;
  std::string_view restart_policy;   // the default of a role's restartPolicy
  bool has_closed_roles = true;      // a job with a role that is not in `roles` is refused
  bool any_worker_succeeds = false;  // one that succeeds ends a job with elasticPolicy, no Master
  bool has_services = true;          // one headless Service for each pod
  bool has_selector = false;         // replicaStatuses name the pods' labels, for `scale`
  // The only pod of this role has no index, neither in its name nor as a label; "" for none.
  std::string_view lone_role = {};
  bool counts_all_roles = false;  // replicaStatuses have roles that the job lacks, too
  // A failed pod stays, whatever the restart policy, and a running pod that is being deleted
  // counts as active.
  bool keeps_failed_pods = false;
  // The reason of the event when a job is deleted by its TTL is "SuccessfulDelete" + this.
  std::string_view deleted_noun = "Job";
  // Reasons of the Warning events about members of a pod template that have no effect.
  std::string_view template_restart_reason = "SetPodTemplateRestartPolicy";
  std::string_view template_scheduler_reason = "SetPodTemplateSchedulerName";
  bool has_webhook = true;
  // The CRD may serve another version, whose objects belong to another controller
  // (runtimes/views/created_version.hh).
  bool shares_crd = false;
  // Returns whether the pod has the label job-role=master.
  bool (*is_master)(const V1Job& job, const PodSlot& slot) = nullptr;
  // Defaults that are set before the common ones; may be nullptr.
  void (*set_defaults)(V1Job& job) = nullptr;
  // Rules of admission beyond the common ones; may be nullptr. The job has no defaults yet.
  void (*check)(const V1Job& job, kube::FieldErrors& errors,
                std::vector<std::string>& warnings) = nullptr;
  // These rules are only for new jobs: stored ones may break them, and go on. May be nullptr.
  void (*check_new)(const V1Job& job, kube::FieldErrors& errors) = nullptr;
  // Adds warnings beyond the common ones; may be nullptr. The job has its defaults.
  void (*warn)(const V1Job& job, std::vector<std::string>& warnings) = nullptr;
  // Environment, init containers and volumes of a pod. The job has its defaults.
  void (*set_cluster_spec)(const V1Job& job, const PodSlot& slot, const Settings& settings,
                           kube::Json& pod_template) = nullptr;
  // Measures the parts whose size follows from counts or texts of the spec. The results are at
  // least as large as what set_cluster_spec() and sync_dependents() make. May be nullptr. The job
  // has its defaults.
  std::vector<GeneratedText> (*measure)(const V1Job& job, const Settings& settings) = nullptr;
  // Conditions follow from the counters: which roles decide about success and failure.
  void (*update_status)(V1JobContext& context) = nullptr;
  // Writes the objects beside pods and services; may be nullptr. It is called for jobs that run or
  // are suspended. It returns false if an object of this name has another owner; this reconcile
  // then creates no pods.
  bool (*sync_dependents)(V1JobContext& context) = nullptr;
  // The collections of the objects that sync_dependents() needs to know, as far as the controller
  // reads or watches them.
  std::vector<kube::Resource> dependents = {};
  CrdDifferences crd = {};

  bool knows(std::string_view role) const {
    return std::find(roles.begin(), roles.end(), role) != roles.end();
  }
};

// Returns those of this program, in the order PyTorchJob, TFJob, XGBoostJob, PaddleJob, JAXJob,
// MPIJob.
std::span<const Framework* const> frameworks();
// Returns one of them by its kind, in any case ("pytorchjob"); nullptr for others.
const Framework* find_framework(std::string_view kind);

// Returns the CRD of a kind. V1 jobs are installed apart from the other kinds. `framework` outlives
// it.
ApiKind api_kind(const Framework& framework);

// --enable-scheme: the kinds named, in any case; all where none is named. Errors quote the name.
tl::expected<std::vector<const Framework*>, std::string> enabled_frameworks(
    const std::vector<std::string>& kinds);

// Returns why the template of init containers is refused, or "": only the three fields of Settings
// may be in it, and with them it must be a YAML list of containers.
namespace pytorch {
std::string check_init_template(const std::string& text);
}

}  // namespace trainer::v1
