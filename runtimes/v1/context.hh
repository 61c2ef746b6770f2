// The policies of one reconcile of a V1 job share this context. Internal to runtimes/v1.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/v1/plan.hh"

namespace trainer::v1 {

inline constexpr std::string_view kCreated = "Created";
inline constexpr std::string_view kRunning = "Running";
inline constexpr std::string_view kRestarting = "Restarting";
inline constexpr std::string_view kSucceeded = "Succeeded";
inline constexpr std::string_view kSuspended = "Suspended";
inline constexpr std::string_view kFailed = "Failed";

// This is one role with its pods.
struct RoleState {
  std::string name;  // "Worker"
  std::string type;  // "worker": the same in names and labels
  const ReplicaSpec* spec = nullptr;
  std::int32_t replicas = 0;
  std::vector<std::string> names;      // the names of pods and Services, by index
  std::vector<const V1PodView*> pods;  // by index; nullptr where there is none
  std::int32_t succeeded_gone = 0;     // pods that succeeded and are gone; they do not run again
  ReplicaStatus counters;
};

// Actions of a later stage wait for those of an earlier one.
inline constexpr int kBeforePods = 0;
inline constexpr int kAfterRbacRoles = 1;  // a RoleBinding is refused while its Role is missing
inline constexpr int kWithPods = 2;

struct V1JobContext {
  explicit V1JobContext(const Observed& observed);

  const Observed& observed;
  const Framework& framework;
  const V1Job job;   // with defaults
  JobStatus status;  // the status that will be written
  std::vector<RoleState> roles;
  std::vector<const V1PodView*> surplus;  // pods whose role or index the job does not have any more
  V1JobPlan plan;
  std::set<std::string_view> counted_pods;  // uids in the stored status.restartedPods: failed pods
                                            // whose restart is counted, and which still exist
  std::optional<WaitingCause> blocked;      // see block()
  bool leaves_pods = false;                 // this reconcile creates and deletes no pod
  // See too_large(): the roles are empty, and only what stops a job is done.
  bool is_too_large = false;

  const std::string& name() const { return job.metadata.name; }
  const RoleState* find_role(std::string_view role) const;

  // `reason` without the kind: "Running".
  bool set_condition(std::string_view type, bool is_true, std::string_view reason,
                     std::string message);
  bool is_true(std::string_view type) const;
  bool is_finished() const { return is_true(kSucceeded) || is_true(kFailed); }
  std::string reason_of(std::string_view reason) const;  // "PyTorchJobRunning"

  // Plans the event of a condition that this reconcile sets, to be recorded after the status. Plans
  // nothing if the stored status has that condition already.
  void report(std::string_view type, std::string reason, std::string message);
  // Plans an event that is recorded after the actions, if these succeed, whatever happens to the
  // status.
  void note(std::string_view type, std::string_view reason, std::string message);
  // Does what note() does, but only once as long as the cause of the event remains: later plans of
  // the same event do nothing (V1JobPlan::relayed).
  void relay(std::string_view type, std::string_view reason, const std::string& message);

  // Another owner's object has a name that the job needs. Returns false: the job waits.
  bool block(std::string message);

  // Creates a new object of this job: name, namespace and owner are added to `body`.
  void create(const kube::Resource& resource, std::string object_name, kube::Json body, int stage,
              std::string_view failure_reason);
  void remove(const kube::Resource& resource, const std::string& object_name, std::string uid,
              std::string_view failure_reason);
  void remove_pod(const V1PodView& pod);
  void remove_service(const ServiceView& service);
  void patch(const kube::Resource& resource, const std::string& object_name, kube::Json body,
             int stage);
  // Returns a dependent object in its stored form; nullptr if there is none. If it is not known,
  // plan.needs_objects has it afterwards.
  const kube::Json* find_dependent(const kube::Resource& resource, const std::string& object_name);
  bool is_owner_of(const kube::Json& object) const;

 private:
  kube::Action& act(kube::Action::Verb verb, const kube::Resource& resource,
                    std::string object_name);
};

}  // namespace trainer::v1
