// This file decides which children a TrainJob needs written now: snapshot, dependent objects,
// JobSet (docs/decisions/0004 and 0005). Pure.
#pragma once

#include <optional>
#include <string>

#include "kube/model/json.hh"
#include "runtimes/lifecycle/reason.hh"
#include "runtimes/trainjob/plan.hh"

namespace trainer {

// Returns the one owner reference of every child: the TrainJob as its controller.
kube::Json owner_reference(const TrainJob& job);
kube::Json with_owner(kube::Json object, const TrainJob& job);
bool is_owned_by(const kube::ObjectMeta& child, const TrainJob& job);

// This is a reason why the job cannot have its children, as a text for people and for the status.
struct Blocked {
  Reason reason;
  std::string message;
  bool is_recorded = false;  // an event has said it already
};

struct ChildrenState {
  std::optional<Blocked> blocked;
  // The existing snapshot's hash; "" if there is none, or if it was not read.
  std::string snapshot_hash;
  // The snapshot that is written is not the one whose hash the status has.
  bool is_other_snapshot = false;
  std::optional<std::int32_t> total_nodes;  // known where the children were built
  std::string
      ignored;  // the ignored fields (see Built), set if the JobSet is written to start pods
};

// Adds actions and needs to `plan`. The job must be neither finished nor being deleted.
ChildrenState plan_children(const TrainJobObserved& observed, const PipelineOptions& options,
                            TrainJobPlan& plan);

}  // namespace trainer
