#include "kube/server/pending.hh"

#include <fmt/format.h>

#include <utility>

#include "kube/model/resources.hh"
#include "kube/server/decoded.hh"
#include "kube/server/managed_fields.hh"
#include "kube/server/object_rules.hh"
#include "kube/server/refusals.hh"
#include "kube/server/shown.hh"

namespace kube::server {
namespace {

// Returns CreateOptions, UpdateOptions or PatchOptions in the form of an admission review.
Json options_of(std::string_view kind, const Query& query) {
  Json options = Json::object({{"kind", kind}, {"apiVersion", "meta.k8s.io/v1"}});
  for (const auto* name : {"fieldManager", "fieldValidation"})
    if (const auto value = query.get(name); !value.empty()) options.set(name, value);
  if (query.get("dryRun") == "All") options.set("dryRun", Json::array({"All"}));
  if (query.is_true("force")) options.set("force", true);
  return options;
}

}  // namespace

PendingWrite pending(const Target& target, Object before, Json object, Request request) {
  PendingWrite write;
  write.kind = target.kind;
  write.key = target.key;
  write.subresource = target.subresource;
  write.before = std::move(before);
  write.object = std::move(object);
  write.operation = write.before ? "UPDATE" : "CREATE";
  write.is_dry_run = target.query.get("dryRun") == "All";
  write.manager = manager_of(target.query, request.user_agent);
  write.options = options_of(request.method == "PATCH" ? "PatchOptions"
                             : write.before            ? "UpdateOptions"
                                                       : "CreateOptions",
                             target.query);
  write.request = std::move(request);
  return write;
}

PendingWrite pending_update(const Target& target, Object before, Json object, Request request,
                            Time now) {
  const ServedKind& kind = *target.kind;
  if (kind.set_defaults) kind.set_defaults(object);
  track_update(kind, before.get(), object,
               {manager_of(target.query, request.user_agent), target.subresource, now});
  return pending(target, std::move(before), std::move(object), std::move(request));
}

std::optional<Response> check_namespace(const ServedKinds& kinds, const ObjectStore& store,
                                        const ServedKind& kind, const ObjectKey& key) {
  if (!kind.resource.namespaced || find_kind(kinds, "", "v1", "namespaces") == nullptr)
    return std::nullopt;
  const Object ns = store.find(kNamespaces, {"", key.ns});
  if (!ns) return not_found(kNamespaces, key.ns);
  if (!ns->get("metadata").find("deletionTimestamp")) return std::nullopt;
  return forbidden_write(
      kind.resource, key.name,
      fmt::format("unable to create new content in namespace {} because it is being terminated",
                  key.ns));
}

bool is_scale_of(const Target& target) {
  return target.subresource == "scale" && target.kind->scale;
}

bool is_writable(const Target& target) {
  const bool is_status = target.subresource == "status" && target.kind->has_status;
  return target.subresource.empty() || is_status || is_scale_of(target);
}

std::optional<Response> check_version(const Target& target, const Json& before,
                                      const Json& object) {
  const Json& metadata = object.get("metadata");
  const Json& stored = before.get("metadata");
  const Resource& resource = target.kind->resource;
  const std::string_view version = metadata.get_string("resourceVersion");
  if (version.empty() && is_custom(resource))
    return invalid_object(
        resource.plural, resource.group, target.key.name,
        {invalid("metadata.resourceVersion", 0, std::string("must be specified for an update"))});
  if (!version.empty() && version != stored.get_string("resourceVersion"))
    return modified(resource, target.key.name);
  return std::nullopt;
}

tl::expected<Json, Response> scaled(const ServedKind& kind, const Json& before, const Json& scale) {
  Json object = before;
  if (set_replicas(kind, object, scale.get("spec").get_int("replicas"))) return object;
  const Resource& resource = kind.resource;
  return tl::unexpected(invalid_object(
      resource.kind, resource.group, key_of(before).name,
      {invalid(
          kind.scale->spec_replicas.substr(1), Json(),
          std::string("cannot be set: the field above it has no members: make it an object"))}));
}

}  // namespace kube::server
