// The policies of one reconcile of an MPIJob share this context. Internal to runtimes/mpijob.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtimes/mpijob/plan.hh"

namespace trainer::mpijob {

inline constexpr std::string_view kLauncher = "Launcher";
inline constexpr std::string_view kWorker = "Worker";

inline constexpr std::string_view kCreated = "Created";
inline constexpr std::string_view kRunning = "Running";
inline constexpr std::string_view kSuspended = "Suspended";
inline constexpr std::string_view kSucceeded = "Succeeded";
inline constexpr std::string_view kFailed = "Failed";

// Actions of a later stage wait for those of an earlier one: if a name is taken, what comes after
// it is not created.
inline constexpr int kService = 0;
inline constexpr int kConfigMap = 1;
inline constexpr int kSecret = 2;
inline constexpr int kPodGroup = 3;
inline constexpr int kWorkers = 4;
inline constexpr int kLauncherJob = 5;
inline constexpr int kResume = 6;  // after the start time of the launcher's Job has been cleared

struct MPIJobContext {
  explicit MPIJobContext(const MPIJobObserved& observed);
  // Fills in `workers` and `surplus`. Call this for a valid job only, whose number of workers has a
  // bound.
  void place_workers();

  const MPIJobObserved& observed;
  const v1::V1Job job;   // with defaults
  v1::JobStatus status;  // the status that will be written
  // The workers of the spec, by index; nullptr where there is no pod. `surplus`: all others.
  std::vector<const v1::V1PodView*> workers;
  std::vector<const v1::V1PodView*> surplus;
  MPIJobPlan plan;

  const std::string& name() const { return job.metadata.name; }
  std::string title() const { return "MPIJob " + job.metadata.key().to_string(); }  // "MPIJob ns/j"
  bool is_suspended() const { return job.is_suspended(); }
  bool is_true(std::string_view type) const { return status.is_true(type); }
  // A job is finished once it has ended for good: an eviction of workers alone is no end.
  bool is_finished() const {
    return status.completionTime && (is_true(kSucceeded) || is_true(kFailed));
  }
  // Returns false if the condition has this status and reason already, whatever its message is.
  bool set_condition(std::string_view type, bool is_true, std::string_view reason,
                     std::string message);

  // Plans an event that is recorded with the status.
  void report(std::string_view type, std::string_view reason, std::string message);
  // Plans an event unless an earlier plan of this process has planned it for the same cause.
  void relay(std::string_view type, std::string_view reason, std::string message);

  // Creates a new object of this job: kind, name, namespace and owner are added to `body`.
  void create(const kube::Resource& resource, std::string object_name, kube::Json body, int stage);
  void patch(const kube::Resource& resource, std::string object_name, kube::Json body, int stage,
             std::string_view subresource = {});
  void remove(const kube::Resource& resource, std::string object_name, std::string uid);

 private:
  kube::Action& act(kube::Action::Verb verb, const kube::Resource& resource,
                    std::string object_name, int stage);
};

// children.cc: the form in which views have a value of a ConfigMap
std::string digest_of(const kube::Json& value);

// job.cc
v1::V1Job with_defaults(const v1::V1Job& job);
// Does what validate() does, for a job that has its defaults.
kube::FieldErrors validate_defaulted(const v1::V1Job& job, const MPISettings& settings);
std::string role_path(std::string_view role);  // "spec.mpiReplicaSpecs[Worker]"
const v1::ReplicaSpec* find_role(const v1::V1Job& job, std::string_view role);
// `job` has its defaults; 0 without the role, and for a negative number.
std::int32_t worker_count(const v1::V1Job& job);

// pods.cc: both roles' pods, in the form in which they are created. `job` has its defaults.
kube::Json make_worker(const v1::V1Job& job, std::int32_t index, const MPISettings& settings);
kube::Json make_launcher_template(const v1::V1Job& job, const MPISettings& settings);

// objects.cc
kube::Json make_service(const v1::V1Job& job);
kube::Json make_secret();
kube::Json make_config_map(const MPIJobContext& context);
void sync_objects(MPIJobContext& context);
// The largest ConfigMap that the job can have, in bytes.
std::int64_t config_map_bytes(const v1::V1Job& job, const MPISettings& settings);

// workers.cc
void sync_workers(MPIJobContext& context);
// The workers of a suspended or finished job are deleted by its cleanPodPolicy.
void remove_workers(MPIJobContext& context);

// launcher.cc
kube::Json make_launcher(const v1::V1Job& job, const MPISettings& settings);
// Returns the condition by which the launcher's Job has ended, "Complete" or "Failed"; or nullptr.
const kube::Json* find_end(const MPIJobContext& context, std::string_view type);
bool is_launcher_over(const MPIJobContext& context);
void sync_launcher(MPIJobContext& context);

// gang.cc
void sync_pod_group(MPIJobContext& context);
void remove_pod_group(MPIJobContext& context);
void mark_for_gang(const MPISettings& settings, std::string_view job, kube::Json& pod_template);

// status.cc
void begin_status(MPIJobContext& context);
void update_status(MPIJobContext& context);
void finish_status(MPIJobContext& context);

}  // namespace trainer::mpijob
