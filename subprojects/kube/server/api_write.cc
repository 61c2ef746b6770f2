// POST, PUT and DELETE write objects.
#include <fmt/format.h>

#include <utility>

#include "kube/model/json_text.hh"
#include "kube/server/api.hh"
#include "kube/server/decoded.hh"
#include "kube/server/deletion.hh"
#include "kube/server/object_rules.hh"
#include "kube/server/pending.hh"
#include "kube/server/refusals.hh"
#include "kube/server/selector.hh"
#include "kube/server/target.hh"

namespace kube::server {

Outcome Api::create(Request request, const Target& target) const {
  const ServedKind& kind = *target.kind;
  if (kind.resource.namespaced && target.key.ns.empty()) return method_not_allowed();
  auto object = decode(request);
  if (!object) return object.error();
  if (auto refusal = settle(target, *object)) return *std::move(refusal);
  std::vector<std::string> warnings;
  if (auto refusal = validate_fields(target, *object, false, warnings)) return *std::move(refusal);
  Json& metadata = (*object)["metadata"];
  if (!metadata.get_string("resourceVersion").empty())
    return server_error("resourceVersion should not be set on objects to be created");
  wipe_system_fields(metadata);
  const ObjectKey key{target.key.ns, std::string(metadata.get_string("name"))};
  if (auto refusal = check_namespace(kinds_, store_, kind, key)) return *std::move(refusal);
  PendingWrite write =
      pending_update(target, nullptr, std::move(*object), std::move(request), environment_.now());
  write.key = key;
  write.warnings = std::move(warnings);
  return write;
}

Outcome Api::update(Request request, const Target& target) const {
  const ServedKind& kind = *target.kind;
  if (!is_writable(target)) return no_such_page();
  const Object before = store_.find(kind.resource, target.key);
  auto object = decode(request);
  if (!object) return object.error();
  std::vector<std::string> warnings;
  if (is_scale_of(target)) {
    if (!before) return not_found(kind.resource, target.key.name);
    const std::string version((*object).get("metadata").get_string("resourceVersion"));
    object = scaled(kind, *before, *object);
    if (!object) return object.error();
    if (!version.empty()) (*object)["metadata"].set("resourceVersion", version);
  } else {
    if (auto refusal = settle(target, *object)) return *std::move(refusal);
    if (auto refusal = validate_fields(target, *object, false, warnings))
      return *std::move(refusal);
  }
  if (!before) return not_found(kind.resource, target.key.name);
  const Json& metadata = object->get("metadata");
  const std::string_view uid = metadata.get_string("uid");
  const std::string_view known = before->get("metadata").get_string("uid");
  if (!uid.empty() && uid != known)
    return conflict(
        kind.resource, target.key.name,
        fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}", uid,
                    known));
  if (auto refusal = check_version(target, *before, *object)) return *std::move(refusal);
  const bool is_conditional = !metadata.get_string("resourceVersion").empty();
  PendingWrite write =
      pending_update(target, before, std::move(*object), std::move(request), environment_.now());
  write.warnings = std::move(warnings);
  write.is_conditional = is_conditional;
  return write;
}

namespace {

bool is_dry_run(const Json& options, const Query& query) {
  return query.get("dryRun") == "All" || !options.get_array("dryRun").empty();
}

constexpr std::string_view kOrphansWarning =
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
    "to remove them or set propagationPolicy=Orphan to suppress this warning";

// Returns the answer for an object that is gone.
Response deleted(const Resource& resource, const Json& object) {
  const Json& metadata = object.get("metadata");
  Json details = Json::object({{"name", metadata.get_string("name")}});
  if (!resource.group.empty()) details.set("group", resource.group);
  details.set("kind", resource.plural).set("uid", metadata.get_string("uid"));
  Json status = Json::object({{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Success"}});
  status.set("metadata", Json::object()).set("details", std::move(details));
  return json_response(200, status);
}

}  // namespace

// Returns the DeleteOptions of the body, else of the query.
tl::expected<Json, Response> Api::delete_options(const Request& request, const Query& query) const {
  auto body = request.body.empty() ? tl::expected<Json, Response>(Json()) : decode(request);
  if (body && !body->is_object() && !body->is_null())
    return tl::unexpected(bad_request("decoded object cannot be converted to DeleteOptions"));
  if (!body || !body->empty()) return body;
  Json options = Json::object();
  if (const auto policy = query.get("propagationPolicy"); !policy.empty())
    options.set("propagationPolicy", policy);
  if (const auto grace = query.get_int("gracePeriodSeconds"))
    options.set("gracePeriodSeconds", *grace);
  return options;
}

Outcome Api::begin_delete(Request request, const Target& target) const {
  const ServedKind& kind = *target.kind;
  auto options = delete_options(request, target.query);
  if (!options) return options.error();
  const Object before = store_.find(kind.resource, target.key);
  if (!before) return not_found(kind.resource, target.key.name);
  auto planned = plan_deletion(kind, *before, *options, environment_.now());
  if (!planned) return planned.error();
  PendingWrite write = pending(target, before, Json(), std::move(request));
  write.operation = "DELETE";
  write.is_dry_run = is_dry_run(*options, target.query);
  write.options = std::move(*options);
  return write;
}

Response Api::finish_delete(const PendingWrite& write) {
  const ServedKind& kind = *write.kind;
  auto planned = plan_deletion(kind, *write.before, write.options, environment_.now());
  if (!planned) return planned.error();
  if (planned->is_immediate) {
    if (!write.is_dry_run) store_.erase(kind.resource, write.key);
    return deleted(kind.resource, *write.before);
  }
  Result<Object> marked;
  if (write.is_dry_run)
    marked = std::make_shared<const Json>(std::move(planned->object));
  else
    // The object gets a few bytes longer: the limit of what clients may store leaves room for them.
    marked = store_.put(kind.resource, std::move(planned->object));
  if (!marked) return not_storable(kind.resource, write.key.name, marked.error());
  Response response = answer(200, kind, write.request, **marked);
  if (has_default_orphans(kind, write.options)) response.warnings.emplace_back(kOrphansWarning);
  return response;
}

Outcome Api::delete_collection(const Request& request, const Target& target) {
  const ServedKind& kind = *target.kind;
  if (kind.resource.namespaced && target.key.ns.empty()) return method_not_allowed();
  auto options = delete_options(request, target.query);
  if (!options) return options.error();
  const auto selector = Selector::parse(target.query.get("labelSelector"),
                                        target.query.get("fieldSelector"), kind.resource);
  if (!selector) return bad_request(selector.error().message);
  std::vector<std::pair<ObjectKey, Object>> chosen;
  for (const auto& [key, held] : store_.all(kind.resource)) {
    if (!target.key.ns.empty() && key.ns != target.key.ns) continue;
    if (Object object = held.get(); selector->matches(*object))
      chosen.emplace_back(key, std::move(object));
  }
  Json items = Json::array();
  for (const auto& [key, object] : chosen) {
    PendingWrite write;
    write.kind = &kind;
    write.key = key;
    write.before = object;
    write.is_dry_run = is_dry_run(*options, target.query);
    write.options = *options;
    Response response = finish_delete(write);
    if (response.status >= 300) return response;
    items.push_back(*object);
  }
  Json list = Json::object({{"kind", kind.resource.kind + "List"}});
  list.set("apiVersion", kind.resource.api_version());
  list.set("metadata", Json::object({{"resourceVersion", std::to_string(store_.version())}}));
  list.set("items", std::move(items));
  Response response = json_response(200, list);
  if (has_default_orphans(kind, *options)) response.warnings.emplace_back(kOrphansWarning);
  return response;
}

}  // namespace kube::server
