// The pods of a job are read from the objects that the controller would create for it. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "kube/model/json.hh"
#include "runtimes/fit/request.hh"

namespace trainer::fit {

// These are pods that are alike for the scheduler.
struct Role {
  // The name is that of the replicated job or replica type; else of the Job or pod.
  std::string name;
  PodRequest pod;
  std::int64_t pods = 0;
  std::int64_t made = 0;  // pods among them that exist and have no node
  // A later stage begins when pods of an earlier one are complete. These pods run in the stages
  // from `first_stage` to `last_stage`.
  std::int64_t first_stage = 0;
  std::int64_t last_stage = 0;
};

struct Asked {
  std::string ns;
  std::vector<Role> roles;
  std::int64_t stages = 1;
  std::int64_t gang_minimum = 0;  // pods that start together; 0: no gang was asked for
  std::string queue;              // Kueue's LocalQueue; "" for none
  std::int64_t jobs = 0;          // objects of kind Job that have no pod yet
  bool is_admitted = false;       // pods exist, so the queue has admitted the job

  // Returns the pods of all roles that run in a stage.
  std::int64_t pods_of_stage(std::int64_t stage) const;
};

// `objects` are those that `trainer render --jobs` prints for one job. A pod of `running` that has
// a node or has succeeded, and belongs to one of them, is not asked for.
Asked read_asked(const std::vector<kube::Json>& objects, const std::vector<kube::Json>& running);

// Returns the resources that the roles request, and the keys of labels by which they choose pods.
std::vector<std::string> resources_of(const Asked& asked);
std::set<std::string, std::less<>> label_keys_of(const Asked& asked);

}  // namespace trainer::fit
