// The view is the part of a Job that is kept, and says how it is read from the API server's
// objects. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer {

// This is a batch/v1 Job. Labels are kept as text, "" if absent: they may not parse, and then a
// warning names them.
struct JobView {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string owner_uid;        // the uid of the JobSet that controls it; "" for any other owner
  std::string replicated_job;   // label jobset.sigs.k8s.io/replicatedjob-name
  std::string restart_attempt;  // label jobset.sigs.k8s.io/restart-attempt
  std::string job_restart_attempt;  // label jobset.sigs.k8s.io/job-restart-attempt
  std::string job_index;            // label jobset.sigs.k8s.io/job-index
  bool is_suspended = false;        // spec.suspend
  bool has_start_time = false;
  bool is_deleting = false;
  std::optional<std::int32_t> parallelism;
  std::optional<std::int32_t> completions;
  std::int32_t active = 0;
  std::int32_t ready = 0;
  std::int32_t succeeded = 0;
  std::int32_t failed = 0;
  // This is the first True condition of type Complete or Failed.
  std::optional<kube::Condition> finished;
  // This is a True FailureTarget: the Job counts as failed at once, while its pods are still
  // ending.
  std::optional<kube::Condition> failure_target;
  // A resume may merge into this: {labels, annotations, nodeSelector, tolerations, schedulingGates}
  // of the pod template. It is held only while the Job is suspended, and nullptr otherwise. It is
  // empty if the template has more than 20,000 values there.
  std::shared_ptr<const kube::Json> scheduling;

  kube::ObjectKey key() const { return {ns, name}; }
  // Returns the condition by which the Job counts as failed, or nullptr.
  const kube::Condition* failure() const;
  bool is_complete() const { return finished && finished->type == "Complete"; }
  // Returns whether the Job controller has begun with this Job, which has not ended, and pods are
  // missing: they are refused, or are about to be created.
  bool lacks_pods() const;
  // The scheduling parts are equal only if they are the very same object.
  friend bool operator==(const JobView&, const JobView&) = default;
};

// Reads one object, or its JSON text. The result is nullptr if it is no JSON object with a name.
// Members of a wrong type count as absent: the API server has checked what it stored.
std::shared_ptr<JobView> view_job(const kube::Json& job);
std::shared_ptr<JobView> transform_job(std::string_view json_text);

// Returns the first of these Jobs that lacks pods, or nullptr.
const JobView* find_job_without_pods(const std::vector<const JobView*>& jobs);

// Returns the scheduling part of a pod template in the form of JobView::scheduling, without absent
// members.
kube::Json scheduling_of(const kube::Json& pod_template);

}  // namespace trainer
