// This file plans what should happen to one TrainJob now. Pure: holds every rule of the TrainJob's
// life (Kubeflow Trainer, pkg/controller/trainjob_controller.go; docs/decisions).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/model/plan.hh"
#include "runtimes/pipeline/pipeline.hh"
#include "runtimes/trainjob/observed.hh"

namespace trainer {

struct TrainJobPlan : kube::Plan {
  // The number in a JobSet that was built, see TrainJobObserved.
  std::optional<std::int32_t> total_nodes;
  std::optional<kube::Time> scheduled_since;            // the next plan's
  std::optional<ProcessRestartCount> process_restarts;  // the next plan's
  std::optional<std::uint64_t> stacks_number;           // the stacks that it writes, or leaves out
  // Indexes into `actions`: Secrets that get a fresh SSH key pair (ssh-privatekey, ssh-publickey)
  // before they are sent.
  std::vector<std::size_t> ssh_key_actions;
};

// The plan never throws on objects of a cluster: a child of unexpected shape counts as absent or
// becomes a reason in the status.
TrainJobPlan plan_trainjob(const TrainJobObserved& observed, const PipelineOptions& options);

// Returns the status of a job that was restored after it had finished, and has none yet: it follows
// from the mark in its metadata (finished_marker.hh). The result is nullopt for every other job.
std::optional<TrainJobStatus> status_before_restore(const TrainJob& job,
                                                    const kube::Json& job_object);

}  // namespace trainer
