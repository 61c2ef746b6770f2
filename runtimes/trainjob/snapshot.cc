#include "runtimes/trainjob/snapshot.hh"

#include <fmt/format.h>

#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/trainjob/children.hh"

namespace trainer {
namespace {

using kube::Json;

SnapshotState refuse(std::string reason, std::string message) {
  SnapshotState state;
  state.kind = SnapshotState::Kind::kRefused;
  state.reason = std::move(reason);
  state.message = std::move(message);
  return state;
}

SnapshotState refuse_snapshot(const RuntimeRef& ref, std::string_view why) {
  const std::string_view prefix =
      is_cluster_scoped(ref) ? "getting runtime snapshot" : "unable to get runtime snapshot";
  return refuse("RuntimeSnapshotInvalid", fmt::format("{}: {}", prefix, why));
}

kube::Action create_snapshot(const TrainJob& job, const std::string& text) {
  kube::Action action;
  action.verb = kube::Action::Verb::kCreate;
  action.resource = kube::kConfigMaps;
  action.key = {job.metadata.ns, snapshot_name(job.metadata.name)};
  action.owner_uid = job.metadata.uid;
  action.body = Json::object({
      {"apiVersion", "v1"},
      {"kind", "ConfigMap"},
      {"metadata", Json::object({{"name", action.key.name},
                                 {"namespace", action.key.ns},
                                 {"ownerReferences", Json::array({owner_reference(job)})}})},
      {"immutable", true},
      {"data", Json::object({{"runtime", text}})},
  });
  return action;
}

SnapshotState inspect_existing(const TrainJob& job, const SnapshotView& snapshot) {
  const RuntimeRef& ref = job.spec.runtimeRef;
  if (snapshot.owner_uid != job.metadata.uid) {
    return refuse_snapshot(
        ref,
        "invalid runtime snapshot: a snapshot configmap exists but is owned by another object");
  }
  if (!snapshot.content) {
    return refuse_snapshot(
        ref, "invalid runtime snapshot: snapshot ConfigMap missing \"runtime\" data key");
  }
  SnapshotState state;
  state.kind = SnapshotState::Kind::kUsable;
  state.content = snapshot.content;
  const std::string& recorded = job.status.runtimeSnapshotHash;
  if (!recorded.empty() && recorded != state.content->hash) {
    return refuse_snapshot(
        ref, fmt::format("invalid runtime snapshot: the text in ConfigMap \"{}\" is not the one "
                         "this job started with "
                         "(its SHA-256 is {}, status.runtimeSnapshotHash says {}): delete the "
                         "ConfigMap to have it "
                         "written again from an unchanged runtime, or create the TrainJob anew",
                         snapshot_name(job.metadata.name), state.content->hash, recorded));
  }
  return state;
}

SnapshotState write_from_runtime(const TrainJobObserved& observed) {
  const TrainJob& job = observed.job;
  if (!observed.live_runtime) {
    if (observed.runtime_error.empty()) {
      SnapshotState state;
      state.kind = SnapshotState::Kind::kNeedsRuntime;
      return state;
    }
    const std::string_view text = is_cluster_scoped(job.spec.runtimeRef)
                                      ? "not found ClusterTrainingRuntime specified in TrainJob"
                                      : "TrainingRuntime specified in TrainJob is not found";
    SnapshotState state =
        refuse("RuntimeNotFound", fmt::format("{}: {}", text, observed.runtime_error));
    return state;
  }
  if (!observed.live_runtime->is_object)  // too large
    return refuse_snapshot(job.spec.runtimeRef, observed.live_runtime->runtime.error().message);
  SnapshotState state;
  state.kind = SnapshotState::Kind::kUsable;
  state.content = observed.live_runtime;
  const std::string& recorded = job.status.runtimeSnapshotHash;
  // A job that never had a JobSet is not bound to a runtime's text.
  const bool has_begun = observed.jobset || !job.status.jobsStatus.empty();
  if (has_begun && !recorded.empty() && recorded != state.content->hash) {
    state = refuse(
        "RuntimeSnapshotLost",
        fmt::format(
            "ConfigMap \"{}\" is gone and {} \"{}\" has changed since this job started (SHA-256 "
            "{}, "
            "status.runtimeSnapshotHash says {}): restore the runtime as it was, or create the "
            "TrainJob anew",
            snapshot_name(job.metadata.name), kind_of(job.spec.runtimeRef),
            job.spec.runtimeRef.name, state.content->hash, recorded));
    return state;
  }
  state.create = create_snapshot(job, state.content->text);
  return state;
}

}  // namespace

std::string snapshot_name(std::string_view job_name) {
  return std::string(job_name) + "-runtime-snapshot";
}

bool is_supported_runtime(const RuntimeRef& ref) {
  return group_of(ref) == kTrainerGroup &&
         (kind_of(ref) == "TrainingRuntime" || kind_of(ref) == "ClusterTrainingRuntime");
}

std::string runtime_kind_name(const RuntimeRef& ref) {
  return fmt::format("{}.{}", kind_of(ref), group_of(ref));
}

SnapshotState inspect_snapshot(const TrainJobObserved& observed) {
  if (!observed.snapshot) return {};
  return *observed.snapshot ? inspect_existing(observed.job, **observed.snapshot)
                            : write_from_runtime(observed);
}

}  // namespace trainer
