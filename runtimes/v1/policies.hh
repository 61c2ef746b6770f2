// The policies in the order in which a reconcile applies them (plan.cc); one file each. Internal to
// runtimes/v1.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "runtimes/v1/context.hh"
#include "runtimes/views/text.hh"

namespace trainer::v1 {

// defaults.cc: the controller assumes these values if the spec says nothing; they are never written
// back.
V1Job with_defaults(const Framework& framework, const V1Job& job);
// Returns the roles that do not count, since their names differ from those of others in case only:
// both would have pods of the same names.
std::vector<std::string> repeated_roles(const Framework& framework, const ReplicaSpecs& specs);

// cleanup.cc
std::string_view clean_pod_policy(const JobSpec& spec);
void remove_children(V1JobContext& context);  // all, for a suspended job
void clean_up_finished(V1JobContext& context);
void expire(V1JobContext& context);  // ttlSecondsAfterFinished

// suspend.cc
void suspend(V1JobContext& context);
void resume(V1JobContext& context);

// limits.cc: returns true if backoffLimit or activeDeadlineSeconds has ended the job.
bool exceeds_limits(V1JobContext& context);
// The job has failed because of backoffLimit.
bool is_out_of_retries(const JobStatus& status);
// Returns whether activeDeadlineSeconds have run out and failed the job.
bool is_out_of_time(const JobStatus& status);

// gang.cc
// Returns whether pods may be created.
bool sync_pod_group(V1JobContext& context);
void remove_pod_group(V1JobContext& context);
void decorate_for_gang(const Settings& settings, std::string_view job_name, std::string_view type,
                       kube::Json& pod_template);

// replicas.cc
// `job` has its defaults; negative numbers count as 0.
std::int64_t total_replicas(const V1Job& job);
std::string pod_name(std::string_view job, const Framework& framework, std::string_view role,
                     std::int32_t index);
kube::StringMap base_labels(const Framework& framework, std::string_view job);
std::string selector_of(const Framework& framework, std::string_view job, std::string_view type);
kube::Json make_pod(const Framework& framework, const V1Job& job, const ReplicaSpec& spec,
                    const PodSlot& slot, const Settings& settings);
kube::Json make_service(const Framework& framework, const V1Job& job, const ReplicaSpec& spec,
                        const PodSlot& slot);
// One reconcile may still create this much: all objects of a plan are in memory at once.
struct Batch {
  std::size_t objects = std::numeric_limits<std::size_t>::max();
  std::size_t weight = std::numeric_limits<std::size_t>::max();  // the weight by kube::weight_of()
  // These are the bytes that the controller adds to pods. They are known before a pod is built.
  std::int64_t generated = std::numeric_limits<std::int64_t>::max();
  bool is_full() const { return objects == 0 || weight == 0; }
  void take(const kube::Json& object) {
    --objects;
    weight -= std::min(weight, kube::weight_of(object));
  }
};
// Creates pods and Services; if more are missing it asks for another reconcile.
void sync_pods(V1JobContext& context, Batch batch);
// Returns whether the Service of the job's name was refused. The job does without it.
bool is_job_service_refused(const V1JobContext& context);
// Deletes pods and Services of roles and indexes that the job does not have any more.
void remove_surplus(V1JobContext& context);
void count_pods(V1JobContext& context);

// restart.cc
bool is_retryable(std::int32_t exit_code);
bool needs_restart(const Framework& framework, const RoleState& role, const V1PodView& pod);
void restart_failed_pods(V1JobContext& context);

// conditions.cc: the order of the conditions matters to users, since the column STATE shows the
// last one. Returns false if nothing changed.
bool set_condition(JobStatus& status, JobCondition condition);

// status.cc: Framework::update_status() uses these functions, and they make the parts of a status
// that are the same for all kinds.
void set_running(V1JobContext& context, std::string message);
void set_restarting(V1JobContext& context, std::string message);
void succeed(V1JobContext& context, std::string message);
// `reason` is that of the condition, without the kind.
void fail(V1JobContext& context, std::string message, std::string_view reason = kFailed);
void record_first_failure(V1JobContext& context);
void relay_troubles(V1JobContext& context);
// Sets the condition ReplicaFailure of a job that has a child refused.
void report_refusal(V1JobContext& context);
void finish_status(V1JobContext& context);

}  // namespace trainer::v1
