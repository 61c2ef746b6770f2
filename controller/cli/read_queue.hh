// Reads what Kueue decides by about a job.
#pragma once

#include <optional>
#include <string>

#include "kube/client/api_client.hh"
#include "runtimes/fit/snapshot.hh"

namespace trainer {

// This is the job that is planned.
struct PlannedJob {
  // Kueue reads the labels of the job, which the objects that are made for it may lack.
  std::string queue;
  std::string priority_class;  // Kueue's WorkloadPriorityClass; "" for none
  // These name it if it is in the cluster already.
  std::string kind;
  std::string name;
  std::optional<kube::Time> created;
  // Jobs of the same files. Kueue admits each by itself.
  std::size_t jobs = 1;

  void read_labels(const kube::Json& object);
};

// Reads the job's queue into the snapshot; what the user may not read is named there. A job that
// has reserved quota already needs no queue. `asked` and `snapshot` outlive the task.
kube::Task<void> read_queue(kube::ApiClient& client, const fit::Asked& asked, PlannedJob job,
                            fit::Snapshot& snapshot);

}  // namespace trainer
