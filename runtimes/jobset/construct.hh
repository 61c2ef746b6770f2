// This file makes the Jobs of a JobSet in the form in which they are sent (JobSet,
// pkg/controllers/jobset_controller.go). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/jobset.hh"
#include "kube/model/json.hh"
#include "runtimes/jobset/plan.hh"

namespace trainer::jobset {

// The position of each replicated job among all Jobs of the set and of its group; by spec order.
struct Layout {
  struct Place {
    std::int64_t global_offset = 0;
    std::int64_t group_offset = 0;
    std::int64_t group_replicas = 0;
  };
  std::int64_t global_replicas = 0;
  std::vector<Place> places;

  static Layout of(const JobSet& jobset);
};

// Makes the Jobs of one replicated job. The parts that they share are built only once.
class JobFactory {
 public:
  JobFactory(const JobSet& jobset, const Layout& layout, std::size_t replicated_job,
             JobDecorators decorators);
  // `job_restart_attempt` is written only if there is one (gate RestartJob).
  kube::Json make(std::int32_t index, std::optional<std::int32_t> job_restart_attempt) const;

 private:
  const JobSet& jobset_;
  const ReplicatedJob& replicated_job_;
  Layout::Place place_;
  bool is_on_labelled_nodes_ = false;  // the node selector strategy
  kube::Json prototype_;
};

// This is a Job decorator. It sets terminationMessagePolicy FallbackToLogsOnError in containers
// that set none. Then the message of a failed container has its last lines, and status.firstFailure
// keeps them when the pod is gone.
void keep_last_lines(kube::Json& job, const JobSet& jobset);

// Makes a PersistentVolumeClaim from a template of a claim policy.
kube::Json make_claim(const JobSet& jobset, const VolumeClaimPolicy& policy,
                      const kube::Json& claim_template);

}  // namespace trainer::jobset
