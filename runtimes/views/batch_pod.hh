// The Job controller and the scheduler of local mode keep this of a Pod. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/time.hh"

namespace trainer::batch {

// A pod that a Job has created has it until the Job has counted the pod.
inline constexpr std::string_view kTrackingFinalizer = "batch.kubernetes.io/job-tracking";
// A pod under backoffLimitPerIndex has these annotations.
inline constexpr std::string_view kIndexFailureCountKey =
    "batch.kubernetes.io/job-index-failure-count";
inline constexpr std::string_view kIndexIgnoredFailureCountKey =
    "batch.kubernetes.io/job-index-ignored-failure-count";

struct BatchPodView {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string job;             // the name of the Job that controls it, or of its job-name label
  std::string controller_uid;  // "" without
  bool is_of_job = false;      // its controller is a batch/v1 Job, or it has none
  std::string phase;
  bool is_deleting = false;
  bool is_ready = false;
  std::string node_name;
  bool is_tracked = false;                    // has kTrackingFinalizer
  std::vector<std::string> other_finalizers;  // beside that one
  std::optional<std::int32_t> index;          // the annotation job-completion-index
  std::int32_t index_failures = 0;            // annotations; 0 if they are no counts
  std::int32_t ignored_index_failures = 0;
  std::int32_t restarts = 0;  // the sum over all its containers
  kube::Time created;
  // Set if it is over or is being deleted: the time when it ended, as far as known.
  kube::Time finished;
  struct Failure {
    std::string container;
    std::int32_t exit_code = 0;
    friend bool operator==(const Failure&, const Failure&) = default;
  };
  std::vector<Failure> failures;  // containers that ended with another code than 0; init ones last
  kube::Json conditions;          // status.conditions in their stored form

  // The scheduler reads these members.
  std::string jobset;                        // label jobset-name
  std::string replicated_job;                // label
  std::int32_t replicated_job_replicas = 0;  // label; 0 if it is no count
  kube::ResourceList requests;
  std::vector<std::int32_t> ports;  // the ports that its containers declare
  bool uses_host_network = false;
  bool is_gated = false;  // has scheduling gates

  kube::ObjectKey key() const { return {ns, name}; }
  bool is_over() const { return phase == "Succeeded" || phase == "Failed"; }
  bool is_active() const { return !is_over() && !is_deleting; }
  friend bool operator==(const BatchPodView&, const BatchPodView&) = default;
};

// Reads one object, or its JSON text. The result is nullptr if it has no name; members of wrong
// types count as absent.
std::shared_ptr<BatchPodView> view_pod(const kube::Json& pod);
std::shared_ptr<BatchPodView> transform_pod(std::string_view json_text);

// Returns a condition of BatchPodView::conditions; null if there is none.
const kube::Json& find_condition(const kube::Json& conditions, std::string_view type);

}  // namespace trainer::batch
