#include "runtimes/trainjob/snapshot.hh"

#include <fmt/format.h>

#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/trainjob/children.hh"
#include "runtimes/trainjob/known_objects.hh"

namespace trainer {
namespace {

using kube::Json;

SnapshotState refuse(const Reason& reason, std::string message) {
  SnapshotState state;
  state.kind = SnapshotState::Kind::kRefused;
  state.reason = &reason;
  state.message = std::move(message);
  return state;
}

SnapshotState refuse_snapshot(const RuntimeRef& ref, std::string_view why) {
  const std::string_view prefix =
      is_cluster_scoped(ref) ? "getting runtime snapshot" : "unable to get runtime snapshot";
  return refuse(reasons::kRuntimeSnapshotInvalid, fmt::format("{}: {}", prefix, why));
}

kube::Action create_snapshot(const TrainJob& job, const std::string& text) {
  kube::Action action;
  action.verb = kube::Action::Verb::kCreate;
  action.resource = kube::kConfigMaps;
  action.key = snapshot_object(job).key;
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

SnapshotState inspect_existing(const TrainJob& job, const kube::ReadObject& snapshot) {
  const RuntimeRef& ref = job.spec.runtimeRef;
  if (snapshot.controller_uid != job.metadata.uid) {
    return refuse_snapshot(
        ref,
        "invalid runtime snapshot: a snapshot configmap exists but is owned by another object");
  }
  auto content = content_of(snapshot);
  if (!content) {
    return refuse_snapshot(
        ref, "invalid runtime snapshot: snapshot ConfigMap missing \"runtime\" data key");
  }
  SnapshotState state;
  state.kind = SnapshotState::Kind::kUsable;
  state.content = std::move(content);
  const std::string& recorded = job.status.runtimeSnapshotHash;
  if (!recorded.empty() && recorded != state.content->hash) {
    return refuse_snapshot(
        ref, fmt::format("invalid runtime snapshot: the text in ConfigMap \"{}\" is not the one "
                         "this job started with "
                         "(its SHA-256 is {}, status.runtimeSnapshotHash says {}): delete the "
                         "ConfigMap to have it "
                         "written again from an unchanged runtime, or create the TrainJob anew",
                         snapshot_object(job).key.name, state.content->hash, recorded));
  }
  return state;
}

SnapshotState refuse_runtime(const RuntimeRef& ref, std::string_view why) {
  const std::string_view text = is_cluster_scoped(ref)
                                    ? "not found ClusterTrainingRuntime specified in TrainJob"
                                    : "TrainingRuntime specified in TrainJob is not found";
  return refuse(reasons::kRuntimeNotFound, fmt::format("{}: {}", text, why));
}

SnapshotState write_from_runtime(const TrainJobObserved& observed) {
  const TrainJob& job = observed.job;
  const RuntimeRef& ref = job.spec.runtimeRef;
  if (!observed.reads_cluster_runtimes && is_cluster_scoped(ref))
    return refuse_runtime(ref,
                          "the controller of this namespace has no rights to the cluster's "
                          "runtimes: write spec.runtimeRef.kind: TrainingRuntime");
  const kube::ReadObject* const runtime = known_runtime(observed);
  SnapshotState state;
  if (!runtime) {
    state.kind = SnapshotState::Kind::kNeedsRuntime;
    return state;
  }
  auto content = content_of(*runtime);
  if (!content) return refuse_runtime(ref, runtime->error);
  if (!content->is_object)  // too large
    return refuse_snapshot(ref, content->runtime.error().message);
  state.kind = SnapshotState::Kind::kUsable;
  state.content = std::move(content);
  const std::string& recorded = job.status.runtimeSnapshotHash;
  // A job that never had a JobSet is not bound to a runtime's text.
  const bool has_begun = observed.jobset || !job.status.jobsStatus.empty();
  if (has_begun && !recorded.empty() && recorded != state.content->hash) {
    return refuse(
        reasons::kRuntimeSnapshotLost,
        fmt::format(
            "ConfigMap \"{}\" is gone and {} \"{}\" has changed since this job started (SHA-256 "
            "{}, "
            "status.runtimeSnapshotHash says {}): restore the runtime as it was, or create the "
            "TrainJob anew",
            snapshot_object(job).key.name, kind_of(job.spec.runtimeRef), job.spec.runtimeRef.name,
            state.content->hash, recorded));
  }
  state.create = create_snapshot(job, state.content->text);
  return state;
}

}  // namespace

bool is_supported_runtime(const RuntimeRef& ref) {
  return group_of(ref) == kTrainerGroup &&
         (kind_of(ref) == "TrainingRuntime" || kind_of(ref) == "ClusterTrainingRuntime");
}

std::string runtime_kind_name(const RuntimeRef& ref) {
  return fmt::format("{}.{}", kind_of(ref), group_of(ref));
}

SnapshotState inspect_snapshot(const TrainJobObserved& observed) {
  const kube::ReadObject* const snapshot = known_snapshot(observed);
  if (!snapshot) return {};
  return snapshot->exists() ? inspect_existing(observed.job, *snapshot)
                            : write_from_runtime(observed);
}

}  // namespace trainer
