// The controller of TrainJobs keeps this state of one job between reconciles.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "controller/registration/job_metrics.hh"
#include "kube/manager/planned_controller.hh"
#include "kube/model/compressed_text.hh"
#include "kube/model/time.hh"
#include "runtimes/trainjob/observed.hh"

namespace trainer {

struct JobState : kube::ObjectMemory {
  // TrainJobObserved has the meaning of these.
  std::shared_ptr<const kube::CompressedText> deleted_jobset;
  std::int32_t total_nodes = 0;
  std::uint64_t stacks_number = 0;
  std::optional<ProcessRestartCount> process_restarts;
  std::optional<std::optional<kube::Time>> scheduled_since;
  JobRecord record;  // the metrics read it
};

}  // namespace trainer
