// This file plans what should happen to one TrainJob now. Pure: holds every rule of the TrainJob's
// life (Kubeflow Trainer, pkg/controller/trainjob_controller.go; docs/decisions).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kube/model/plan.hh"
#include "runtimes/pipeline/pipeline.hh"
#include "runtimes/trainjob/observed.hh"

namespace trainer {

struct TrainJobPlan : kube::Plan {
  // These objects must be read live before this plan can be complete; the reconciler reads them and
  // plans again.
  bool needs_snapshot = false;
  bool needs_live_runtime = false;
  std::vector<std::pair<kube::Resource, kube::ObjectKey>> needs_dependents;
  // The number in a JobSet that was built, see TrainJobObserved.
  std::optional<std::int32_t> total_nodes;
  std::optional<kube::Time> scheduled_since;  // the next plan's
  // Indexes into `actions`: Secrets that get a fresh SSH key pair (ssh-privatekey, ssh-publickey)
  // before they are sent.
  std::vector<std::size_t> ssh_key_actions;
};

// The plan never throws on objects of a cluster: a child of unexpected shape counts as absent or
// becomes a reason in the status. A plan with needs_snapshot, needs_live_runtime or
// needs_dependents holds nothing else: the caller reads these, and plans again.
TrainJobPlan plan_trainjob(const TrainJobObserved& observed, const PipelineOptions& options);

// Returns the status of a job that was restored after it had finished, and has none yet: it follows
// from the mark in its metadata (finished_marker.hh). The result is nullopt for every other job.
std::optional<TrainJobStatus> status_before_restore(const TrainJob& job,
                                                    const kube::Json& job_object);

// The key of a dependent object in TrainJobObserved: "KIND/NAME", for groups other than core
// "KIND.GROUP/NAME".
std::string dependent_name(const kube::Resource& resource, std::string_view name);

}  // namespace trainer
