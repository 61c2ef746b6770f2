// A PATCH is a JSON patch, a merge patch, a strategic merge patch or a server-side apply.
#include <fmt/format.h>

#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"
#include "kube/model/yaml.hh"
#include "kube/server/api.hh"
#include "kube/server/decoded.hh"
#include "kube/server/managed_fields.hh"
#include "kube/server/object_rules.hh"
#include "kube/server/pending.hh"
#include "kube/server/refusals.hh"
#include "kube/server/shown.hh"
#include "kube/server/target.hh"

namespace kube::server {
namespace {

constexpr std::string_view kJsonPatch = "application/json-patch+json";
constexpr std::string_view kMergePatch = "application/merge-patch+json";
constexpr std::string_view kStrategicPatch = "application/strategic-merge-patch+json";
constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";
constexpr std::size_t kMaxOperations = 10'000;

bool is_patch_type(std::string_view type, const ServedKind& kind) {
  return type == kJsonPatch || type == kMergePatch || type == kApplyPatch ||
         (type == kStrategicPatch && kind.merge_keys);
}

tl::expected<Json, Response> patched_by_operations(Json current, const Json& operations) {
  if (!operations.is_array())
    return tl::unexpected(bad_request("error decoding patch: it must be a list of operations"));
  if (operations.size() > kMaxOperations)
    return tl::unexpected(
        too_large(fmt::format("The allowed maximum operations in a JSON patch is {}, got {}",
                              kMaxOperations, operations.size())));
  auto patched = apply_json_patch(std::move(current), operations);
  if (patched) return std::move(*patched);
  if (patched.error().code == ErrorCode::kTooLarge)
    return tl::unexpected(too_large(patched.error().message));
  return tl::unexpected(
      failure(422, "Invalid", "the server rejected our request due to an error in our request"));
}

// Returns `current` with the changes of the patch.
tl::expected<Json, Response> patched(const ServedKind& kind, Json current, const Json& patch,
                                     std::string_view type) {
  if (type == kJsonPatch) return patched_by_operations(std::move(current), patch);
  if (!patch.is_object())
    return tl::unexpected(bad_request(
        fmt::format("error decoding patch: it must be an object, not {}", patch.type_name())));
  if (type == kMergePatch) return merge_patch(std::move(current), patch);
  auto merged = strategic_merge_with_directives(std::move(current), patch, *kind.merge_keys);
  if (merged) return std::move(*merged);
  return tl::unexpected(bad_request(merged.error().message));
}

}  // namespace

Outcome Api::patch(Request request, const Target& target) const {
  const ServedKind& kind = *target.kind;
  const std::string_view type = request.media_type();
  if (!is_writable(target)) return no_such_page();
  if (!is_patch_type(type, kind)) {
    return unsupported_media_type(
        kind.merge_keys ? "application/json-patch+json, application/merge-patch+json, "
                          "application/strategic-merge-patch+json, application/apply-patch+yaml"
                        : "application/json-patch+json, application/merge-patch+json, "
                          "application/apply-patch+yaml");
  }
  const auto body =
      type == kApplyPatch ? parse_yaml(request.body) : parse_json(request.body, kObjectLimits);
  if (!body) return bad_request(fmt::format("error decoding patch: {}", body.error().message));
  if (type == kApplyPatch) return apply(std::move(request), target, *body);
  const Object before = store_.find(kind.resource, target.key);
  if (!before) return not_found(kind.resource, target.key.name);
  const bool is_scale = is_scale_of(target);
  const Json current = is_scale ? scale_of(kind, *before) : *shown(kind, *before);
  auto object = patched(kind, current, *body, type);
  if (!object) return object.error();
  if (!object->is_object()) return bad_request("error decoding patch: the result is no object");
  const bool is_conditional =
      type != kJsonPatch && !body->get("metadata").get_string("resourceVersion").empty();
  std::vector<std::string> warnings;
  if (is_scale) {
    object = scaled(kind, *before, *object);
    if (!object) return object.error();
  } else {
    if (auto refusal = settle(target, *object, true)) return *std::move(refusal);
    if (auto refusal = validate_fields(target, *object, true, warnings)) return *std::move(refusal);
  }
  if (auto refusal = check_version(target, *before, *object)) return *std::move(refusal);
  PendingWrite write =
      pending_update(target, before, std::move(*object), std::move(request), environment_.now());
  write.warnings = std::move(warnings);
  write.is_conditional = is_conditional;
  return write;
}

Outcome Api::apply(Request request, const Target& target, Json config) const {
  const ServedKind& kind = *target.kind;
  const std::string_view manager = target.query.get("fieldManager");
  if (manager.empty())
    return invalid_object("PatchOptions", "meta.k8s.io", "",
                          {required("fieldManager", "is required for apply patch")});
  if (is_scale_of(target)) return no_such_page();
  const Object before = store_.find(kind.resource, target.key);
  if (!before && !target.subresource.empty()) return not_found(kind.resource, target.key.name);
  if (!config.is_object()) return bad_request("error decoding patch: it must be an object");
  if (!config.get("metadata").get("managedFields").is_null())
    return bad_request("metadata.managedFields must be nil");
  if (config.get_string("apiVersion").empty() || config.get_string("kind") != kind.resource.kind)
    return bad_request(fmt::format("invalid object type: {}, Kind={}",
                                   config.get_string("apiVersion"), config.get_string("kind")));
  // The name of the object may be left out. The config itself is not changed.
  Json settled = config;
  Json& metadata = settled["metadata"];
  if (metadata.is_null()) metadata = Json::object();
  if (metadata.is_object() && metadata.get_string("name").empty())
    metadata.set("name", target.key.name);
  if (auto refusal = settle(target, settled)) return *std::move(refusal);
  const std::string_view uid = config.get("metadata").get_string("uid");
  if (!before && !uid.empty())
    return conflict(kind.resource, target.key.name,
                    fmt::format("uid mismatch: the provided object specified uid {}, and no "
                                "existing object was found",
                                uid));
  if (!before)
    if (auto refusal = check_namespace(kinds_, store_, kind, target.key))
      return *std::move(refusal);
  const Writer by{std::string(manager), target.subresource, environment_.now()};
  const Json current = before ? *shown(kind, *before) : Json();
  auto object =
      apply_config(kind, before ? &current : nullptr, config, by, target.query.is_true("force"));
  if (!object) return object.error();
  if (auto refusal = settle(target, *object)) return *std::move(refusal);
  const std::string problem = kind.decoding_problem ? kind.decoding_problem(*object) : "";
  if (!problem.empty()) return server_error(problem);
  if (kind.set_defaults) kind.set_defaults(*object);
  if (before)
    if (auto refusal = check_version(target, *before, *object)) return *std::move(refusal);
  if (!before) {
    (*object)["metadata"].erase("resourceVersion");
    wipe_system_fields((*object)["metadata"]);
  }
  PendingWrite write = pending(target, before, std::move(*object), std::move(request));
  write.is_conditional = !config.get("metadata").get_string("resourceVersion").empty();
  return write;
}

}  // namespace kube::server
