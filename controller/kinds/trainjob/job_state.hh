// The controller keeps this state about a TrainJob between reconciles.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "controller/kinds/common/last_warning.hh"
#include "controller/registration/job_metrics.hh"
#include "kube/model/compressed_text.hh"
#include "kube/model/json.hh"
#include "runtimes/trainjob/plan.hh"

namespace trainer {

// These objects are not watched. They are read by name, once for a uid and a process.
struct JobState {
  std::optional<std::shared_ptr<const SnapshotView>> snapshot;
  bool is_fresh = true;  // this process has not read or written anything for this job yet
  // These, and the members of the same name below, mean the same as in TrainJobObserved.
  std::map<std::string, bool> dependents;
  std::map<std::string, std::shared_ptr<const kube::Json>> dependent_objects;
  std::shared_ptr<const kube::CompressedText> deleted_jobset;
  // This is a hash of the job's generation, labels and annotations at the last reconcile. If it
  // differs, the snapshot and the dependent objects are read again.
  std::optional<std::size_t> shape;
  // status.restarts of the JobSet when dependent objects were last read again for a restart.
  std::int32_t read_restarts = 0;
  std::int32_t total_nodes = 0;  // the nodes of the JobSet that was built
  std::optional<std::optional<kube::Time>> scheduled_since;  // the value in the last plan
  LastWarning warning;                                       // about a pod, a Job or the JobSet
  JobRecord record;                                          // the metrics read it

  // This part of a forgotten snapshot is kept: if its text is still the same, it is not parsed
  // again.
  std::shared_ptr<const RuntimeSnapshot> former_content;

  // Dependent objects are read again before they are written again.
  void forget_reads() {
    if (snapshot && *snapshot) former_content = (*snapshot)->content;
    snapshot.reset();
    forget_dependents();
  }
  void forget_dependents() {
    dependents.clear();
    dependent_objects.clear();
  }
};

}  // namespace trainer
