// The runtime a TrainJob started with, kept in a ConfigMap beside it (trainer-contract 3.4,
// design.md "Snapshot"). Pure.
#pragma once

#include <optional>
#include <string>

#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "kube/model/error.hh"
#include "runtimes/action.hh"
#include "runtimes/trainjob/plan.hh"

namespace trainer {

std::string snapshot_name(std::string_view job_name);

// "TrainingRuntime" and "ClusterTrainingRuntime" of our group are the kinds there are.
bool is_supported_runtime(const RuntimeRef& ref);
// "Deployment.apps": how a kind is named in messages; absent members read as their schema defaults.
std::string runtime_kind_name(const RuntimeRef& ref);

// A snapshot's text back into the runtime. Errors carry upstream's texts (3.4), without their
// prefix; `ref` is what the job asks for.
kube::Result<Runtime> read_snapshot(std::string_view text, const RuntimeRef& ref,
                                    std::string_view ns);

// Where a job's snapshot stands.
struct SnapshotState {
  enum class Kind {
    kUnread,        // ask for the ConfigMap
    kNeedsRuntime,  // ask for the live runtime
    kUsable,        // `text` is what the job runs with
    // `reason` and `message` say why nothing may be built; nothing we watch tells when it is
    // mended.
    kRefused,
  };
  Kind kind = Kind::kUnread;
  std::string text;
  std::string hash;  // SHA-256 of `text`, hex
  // kUsable, where it is known without reading `text` back.
  std::optional<kube::Json> runtime;
  std::optional<Action> create;  // kUsable: the ConfigMap is missing and must be written first
  std::string reason;
  std::string message;
};
// The runtime of a state that is kUsable.
kube::Result<Runtime> read_snapshot(const SnapshotState& state, const RuntimeRef& ref,
                                    std::string_view ns);
SnapshotState inspect_snapshot(const TrainJobObserved& observed);

}  // namespace trainer
