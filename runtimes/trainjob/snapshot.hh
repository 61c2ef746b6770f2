// The runtime a TrainJob started with, kept in a ConfigMap beside it
// (docs/decisions/0009). Pure.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/trainjob.hh"
#include "kube/model/plan.hh"
#include "runtimes/lifecycle/reason.hh"
#include "runtimes/trainjob/plan.hh"
#include "runtimes/trainjob/runtime_snapshot.hh"

namespace trainer {

// "TrainingRuntime" and "ClusterTrainingRuntime" of Trainer's group are the only kinds.
bool is_supported_runtime(const RuntimeRef& ref);
// "Deployment.apps": how a kind is named in messages; absent members read as their schema defaults.
std::string runtime_kind_name(const RuntimeRef& ref);

// This is the state of a job's snapshot.
struct SnapshotState {
  enum class Kind {
    kUnread,        // ask for the ConfigMap
    kNeedsRuntime,  // ask for the live runtime
    kUsable,        // `content` is what the job runs with
    // `reason` and `message` say why nothing may be built; no watch shows when it is
    // repaired.
    kRefused,
  };
  Kind kind = Kind::kUnread;
  std::shared_ptr<const RuntimeSnapshot> content;  // kUsable
  std::optional<kube::Action>
      create;  // kUsable: the ConfigMap is missing and must be written first
  const Reason* reason = nullptr;
  std::string message;
};
SnapshotState inspect_snapshot(const TrainJobObserved& observed);

}  // namespace trainer
