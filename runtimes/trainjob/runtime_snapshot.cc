#include "runtimes/trainjob/runtime_snapshot.hh"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "api/api.hh"
#include "kube/model/digest.hh"
#include "kube/model/meta.hh"
#include "kube/model/yaml.hh"

namespace trainer {
namespace {

using kube::Json;

// A snapshot has these limits, because reading more would hold up all other jobs, and any client of
// the namespace may write this ConfigMap.
constexpr kube::YamlLimits kLimits{.max_bytes = 512U << 10, .max_nodes = 40'000};
// A text that this controller has written may be longer: version 0.1.0 wrote what a ConfigMap
// takes.
constexpr kube::YamlLimits kOwnLimits{.max_bytes = 1U << 20, .max_nodes = kLimits.max_nodes};

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

// The canonical form holds a runtime's identity and contents. Its uid, versions and times are left
// out: a runtime that was applied again without a change is the same runtime.
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

// The nodes are counted as parse_yaml() counts them.
std::size_t count_nodes(const Json& value) {
  std::size_t count = 1;
  if (value.is_array()) {
    for (const Json& item : value.as_array()) count += count_nodes(item);
  } else if (value.is_object()) {
    for (const auto& [name, member] : value.as_object()) count += 1 + count_nodes(member);
  }
  return count;
}

tl::unexpected<kube::Error> invalid_text(std::string_view why) {
  return kube::fail(
      kube::ErrorCode::kInvalid,
      fmt::format("invalid runtime snapshot: unable to unmarshal the snapshot: {}", why));
}

std::shared_ptr<RuntimeSnapshot> make_snapshot(std::string text, const kube::Result<Json>& object) {
  auto snapshot = std::make_shared<RuntimeSnapshot>();
  snapshot->hash = kube::sha256_hex(text);
  if (!object) {
    snapshot->runtime = invalid_text(object.error().message);
    return snapshot;
  }
  if (!object->is_object()) {
    snapshot->runtime =
        invalid_text(fmt::format("it is of type {}, not an object", object->type_name()));
    return snapshot;
  }
  snapshot->text = std::move(text);
  snapshot->is_object = true;
  const std::string_view api_version = object->get_string("apiVersion");
  const auto meta = kube::ObjectMeta::of(*object);
  snapshot->group = api_version.substr(0, api_version.find('/'));
  snapshot->kind = object->get_string("kind");
  snapshot->ns = meta.ns;
  snapshot->name = meta.name;
  if (auto runtime = read_runtime(*object)) {
    snapshot->runtime = std::move(*runtime);
  } else {
    snapshot->runtime = invalid_text(kube::to_string(runtime.error()));
  }
  return snapshot;
}

}  // namespace

std::string_view kind_of(const RuntimeRef& ref) {
  return ref.kind ? std::string_view(*ref.kind) : "ClusterTrainingRuntime";
}

std::string_view group_of(const RuntimeRef& ref) {
  return ref.apiGroup ? std::string_view(*ref.apiGroup) : kTrainerGroup;
}

bool is_cluster_scoped(const RuntimeRef& ref) {
  return kind_of(ref) == "ClusterTrainingRuntime";
}

std::shared_ptr<const RuntimeSnapshot> snapshot_of(const Json& runtime) {
  kube::Result<Json> canonical = canonical_runtime(runtime);
  std::string text = kube::print_yaml(*canonical);
  // The text is refused now, since otherwise another process would refuse it when it reads it.
  if (text.size() > kLimits.max_bytes || count_nodes(*canonical) > kLimits.max_nodes ||
      kube::count_flow_marks(text) > kLimits.max_nodes) {
    canonical = kube::fail(kube::ErrorCode::kInvalid,
                           fmt::format("the runtime is larger than {} bytes or {} values of YAML, "
                                       "or has more brackets, braces and commas than that",
                                       kLimits.max_bytes, kLimits.max_nodes));
  }
  return make_snapshot(std::move(text), canonical);
}

std::shared_ptr<const RuntimeSnapshot> snapshot_from(std::string text, std::string_view own_hash) {
  const bool is_own = !own_hash.empty() && kube::sha256_hex(text) == own_hash;
  const auto object = kube::parse_yaml(text, is_own ? kOwnLimits : kLimits);
  auto snapshot = make_snapshot(std::move(text), object);
  snapshot->is_own = is_own;
  return snapshot;
}

std::shared_ptr<const RuntimeSnapshot> unread_snapshot(std::string_view text) {
  auto snapshot = std::make_shared<RuntimeSnapshot>();
  snapshot->hash = kube::sha256_hex(text);
  snapshot->runtime = invalid_text("it is not the one that this job started with");
  return snapshot;
}

bool is_text_of(const TrainJobStatus& status, std::string_view text) {
  return status.runtimeSnapshotHash.empty() || status.runtimeSnapshotHash == kube::sha256_hex(text);
}

kube::Result<const Runtime*> runtime_in(const RuntimeSnapshot& snapshot, const RuntimeRef& ref,
                                        std::string_view ns) {
  if (!snapshot.is_object) return tl::unexpected(snapshot.runtime.error());
  const bool is_elsewhere = !is_cluster_scoped(ref) && !snapshot.ns.empty() && snapshot.ns != ns;
  if (snapshot.name != ref.name || snapshot.group != group_of(ref) ||
      snapshot.kind != kind_of(ref) || is_elsewhere) {
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
                    ref.name, or_any(ref.apiGroup), or_any(ref.kind), snapshot.name, snapshot.group,
                    snapshot.kind));
  }
  if (!snapshot.runtime) return tl::unexpected(snapshot.runtime.error());
  return &*snapshot.runtime;
}

}  // namespace trainer
