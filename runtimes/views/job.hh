// What is kept of a Job, and how it is read from what the API server sends. Pure.
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

// A batch/v1 Job. Labels are kept as text, "" when absent: they may not parse, and then a
// warning names them.
struct JobView {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string owner_uid;            // of the JobSet that controls it; "" for any other owner
  std::string replicated_job;       // label jobset.sigs.k8s.io/replicatedjob-name
  std::string restart_attempt;      // label jobset.sigs.k8s.io/restart-attempt
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
  // The first True condition of type Complete or Failed.
  std::optional<kube::Condition> finished;
  // True FailureTarget: the Job counts as failed at once, while its pods are still ending.
  std::optional<kube::Condition> failure_target;
  // What a resume may merge into: {labels, annotations, nodeSelector, tolerations, schedulingGates}
  // of the pod template. Held only while the Job is suspended, nullptr otherwise; empty of a
  // template with more than 20,000 values there.
  std::shared_ptr<const kube::Json> scheduling;

  kube::ObjectKey key() const { return {ns, name}; }
  // The condition by which the Job counts as failed, or nullptr.
  const kube::Condition* failure() const;
  bool is_complete() const { return finished && finished->type == "Complete"; }
  // The Job controller has begun with this Job, which has not ended, and pods are missing: they are
  // refused, or are about to be created.
  bool lacks_pods() const;
  // Of what a resume may merge, whether it is the very same object.
  friend bool operator==(const JobView&, const JobView&) = default;
};

// From one object, or its JSON text. nullptr when it is no JSON object with a name. Members of a
// wrong type count as absent: the API server has checked what it stored.
std::shared_ptr<JobView> view_job(const kube::Json& job);
std::shared_ptr<JobView> transform_job(std::string_view json_text);

// The first of these Jobs that lacks pods, or nullptr.
const JobView* find_job_without_pods(const std::vector<const JobView*>& jobs);

// The scheduling part of a pod template, as JobView::scheduling holds it; absent members left out.
kube::Json scheduling_of(const kube::Json& pod_template);

}  // namespace trainer
