#include "runtimes/trainjob/snapshot.hh"

#include <fmt/format.h>

#include <utility>

#include "api/api.hh"
#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "runtimes/trainjob/children.hh"

namespace trainer {
namespace {

using kube::Json;

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
const kube::Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap", true};

std::string_view kind_of(const RuntimeRef& ref) {
  return ref.kind ? std::string_view(*ref.kind) : "ClusterTrainingRuntime";
}

std::string_view group_of(const RuntimeRef& ref) {
  return ref.apiGroup ? std::string_view(*ref.apiGroup) : kTrainerGroup;
}

bool is_cluster_scoped(const RuntimeRef& ref) {
  return kind_of(ref) == "ClusterTrainingRuntime";
}

// What identifies a runtime and what it says. Its uid, versions and times are left out: a runtime
// that was applied again, word for word, is the same blueprint.
Json canonical_runtime(const Json& runtime) {
  Json metadata = Json::object();
  if (const Json* source = runtime.find("metadata")) {
    for (const std::string_view name : {"name", "namespace", "labels", "annotations"}) {
      if (const Json* value = source->find(name)) metadata.set(name, *value);
    }
  }
  if (Json* annotations = metadata.find("annotations"); annotations && annotations->is_object()) {
    annotations->erase(kLastApplied);
    if (annotations->empty()) metadata.erase("annotations");
  }
  Json canonical = Json::object();
  for (const std::string_view name : {"apiVersion", "kind", "spec"}) {
    if (const Json* value = runtime.find(name)) canonical.set(name, *value);
  }
  canonical.set("metadata", std::move(metadata));
  return canonical;
}

// JSON is YAML, but reading it as JSON is far cheaper where somebody wrote a snapshot that way.
kube::Result<Json> parse_snapshot(std::string_view text) {
  if (!text.empty() && text.front() == '{') {
    if (auto parsed = kube::parse_json(text)) return parsed;
  }
  return kube::parse_yaml(text);
}

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

Action create_snapshot(const TrainJob& job, const std::string& text) {
  Action action;
  action.verb = Action::Verb::kCreate;
  action.resource = kConfigMaps;
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
  if (!snapshot.text) {
    return refuse_snapshot(
        ref, "invalid runtime snapshot: snapshot ConfigMap missing \"runtime\" data key");
  }
  SnapshotState state;
  state.kind = SnapshotState::Kind::kUsable;
  state.text = *snapshot.text;
  state.hash = kube::sha256_hex(state.text);
  const std::string& known = job.status.runtimeSnapshotHash;
  if (!known.empty() && known != state.hash) {
    return refuse_snapshot(
        ref, fmt::format("invalid runtime snapshot: the text in ConfigMap \"{}\" is not the one "
                         "this job started with "
                         "(its SHA-256 is {}, status.runtimeSnapshotHash says {}): delete the "
                         "ConfigMap to have it "
                         "written again from an unchanged runtime, or create the TrainJob anew",
                         snapshot_name(job.metadata.name), state.hash, known));
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
  SnapshotState state;
  state.kind = SnapshotState::Kind::kUsable;
  state.runtime = canonical_runtime(*observed.live_runtime);
  state.text = kube::print_yaml(*state.runtime);
  state.hash = kube::sha256_hex(state.text);
  const std::string& known = job.status.runtimeSnapshotHash;
  // A job that never had a JobSet has nothing to be true to.
  const bool has_begun = observed.jobset || !job.status.jobsStatus.empty();
  if (has_begun && !known.empty() && known != state.hash) {
    state = refuse(
        "RuntimeSnapshotLost",
        fmt::format(
            "ConfigMap \"{}\" is gone and {} \"{}\" has changed since this job started (SHA-256 "
            "{}, "
            "status.runtimeSnapshotHash says {}): restore the runtime as it was, or create the "
            "TrainJob anew",
            snapshot_name(job.metadata.name), kind_of(job.spec.runtimeRef),
            job.spec.runtimeRef.name, state.hash, known));
    return state;
  }
  state.create = create_snapshot(job, state.text);
  return state;
}

kube::Result<Runtime> invalid_text(std::string_view why) {
  return kube::fail(
      kube::ErrorCode::kInvalid,
      fmt::format("invalid runtime snapshot: unable to unmarshal the snapshot: {}", why));
}

kube::Result<Runtime> read_snapshot_object(const Json& object, const RuntimeRef& ref,
                                           std::string_view ns) {
  if (!object.is_object())
    return invalid_text(fmt::format("it is of type {}, not an object", object.type_name()));

  const std::string_view api_version = object.get_string("apiVersion");
  const std::string_view group = api_version.substr(0, api_version.find('/'));
  const std::string_view kind = object.get_string("kind");
  const auto meta = kube::ObjectMeta::of(object);
  const bool is_elsewhere = !is_cluster_scoped(ref) && !meta.ns.empty() && meta.ns != ns;
  if (meta.name != ref.name || group != group_of(ref) || kind != kind_of(ref) || is_elsewhere) {
    const auto or_any = [](const std::optional<std::string>& value) {
      return value ? std::string_view(*value) : "<any>";
    };
    return kube::fail(
        kube::ErrorCode::kInvalid,
        fmt::format("invalid runtime snapshot: the snapshot refers to the wrong runtime: expecting "
                    "a runtime with name, "
                    "api group and kind of \"{}\", \"{}\", \"{}\" but found runtime with name, api "
                    "group and kind of "
                    "\"{}\", \"{}\", \"{}\"",
                    ref.name, or_any(ref.apiGroup), or_any(ref.kind), meta.name, group, kind));
  }
  auto runtime = read_runtime(object);
  if (!runtime) return invalid_text(kube::to_string(runtime.error()));
  return std::move(*runtime);
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

std::string snapshot_text(const Json& runtime) {
  return kube::print_yaml(canonical_runtime(runtime));
}

kube::Result<Runtime> read_snapshot(std::string_view text, const RuntimeRef& ref,
                                    std::string_view ns) {
  const auto parsed = parse_snapshot(text);
  return parsed ? read_snapshot_object(*parsed, ref, ns) : invalid_text(parsed.error().message);
}

kube::Result<Runtime> read_snapshot(const SnapshotState& state, const RuntimeRef& ref,
                                    std::string_view ns) {
  return state.runtime ? read_snapshot_object(*state.runtime, ref, ns)
                       : read_snapshot(state.text, ref, ns);
}

SnapshotState inspect_snapshot(const TrainJobObserved& observed) {
  if (!observed.snapshot) return {};
  return *observed.snapshot ? inspect_existing(observed.job, **observed.snapshot)
                            : write_from_runtime(observed);
}

}  // namespace trainer
