#include "kube/server/api.hh"

#include <fmt/format.h>

#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "kube/model/yaml.hh"
#include "kube/server/access_review.hh"
#include "kube/server/decoded.hh"
#include "kube/server/deletion.hh"
#include "kube/server/managed_fields.hh"
#include "kube/server/object_rules.hh"
#include "kube/server/protobuf.hh"
#include "kube/server/refusals.hh"
#include "kube/server/shown.hh"
#include "kube/server/tables.hh"
#include "kube/server/target.hh"

namespace kube::server {
namespace {

constexpr int kMaxNameAttempts = 8;
// A suffix of five then makes a label of at most 63 bytes.
constexpr std::size_t kLongestGeneratedBase = 58;
constexpr std::size_t kLongestManager = 128;
// This is kube-apiserver's bound (k8s.io/apiserver/pkg/server/config.go): twice what may be stored.
constexpr std::size_t kMaxBody = 2 * kStoredLimits.max_bytes;

bool is_review(std::string_view path) {
  return path.starts_with("/apis/authorization.k8s.io/") ||
         path.starts_with("/apis/authentication.k8s.io/");
}

// Returns whether this subresource of a pod needs the pod's node.
bool needs_kubelet(std::string_view subresource) {
  return subresource == "exec" || subresource == "attach" || subresource == "portforward" ||
         subresource == "proxy" || subresource == "ephemeralcontainers";
}

// Checks the options that create, update, patch and delete have in common.
std::optional<Response> check_options(std::string_view method, const Query& query) {
  FieldErrors errors;
  const std::string_view dry = query.get("dryRun");
  if (!dry.empty() && dry != "All")
    errors.push_back(not_supported("dryRun", Json::array({dry}), {"All"}));
  const std::string_view manager = query.get("fieldManager");
  if (manager.size() > kLongestManager)
    errors.push_back(too_long("fieldManager", kLongestManager));
  else if (std::string problem = manager_problem(manager); !problem.empty())
    errors.push_back(invalid("fieldManager", Json(), std::move(problem)));
  if (errors.empty()) return std::nullopt;
  const std::string_view kind = method == "POST"    ? "CreateOptions"
                                : method == "PUT"   ? "UpdateOptions"
                                : method == "PATCH" ? "PatchOptions"
                                                    : "DeleteOptions";
  return invalid_object(kind, "meta.k8s.io", "", errors);
}

}  // namespace

Api::Api(const ServedKinds& kinds, ObjectStore& store, Environment environment)
    : kinds_(kinds), store_(store), environment_(std::move(environment)) {
  for (const ServedKind& kind : kinds_) store_.add_collection(kind.resource);
}

Response Api::answer(int status, const ServedKind& kind, const Request& request,
                     const Json& object) const {
  if (!wants_table(request.accept)) return json_response(status, *shown(kind, object));
  const Target target = parse_target(kinds_, request.target);
  return json_response(
      status, table_of(kind, object, target.query.get("includeObject"), environment_.now()));
}

tl::expected<Json, Response> Api::decode(const Request& request) const {
  const std::string_view type = request.media_type();
  const auto refuse = [](const Error& error) { return tl::unexpected(bad_request(error.message)); };
  if (type == "application/vnd.kubernetes.protobuf") {
    auto object = decode_protobuf(request.body);
    if (!object) return refuse(object.error());
    return std::move(*object);
  }
  auto object = type.find("yaml") != std::string_view::npos
                    ? parse_yaml(request.body)
                    : parse_json(request.body, kObjectLimits);
  if (!object) return refuse(object.error());
  return std::move(*object);
}

Outcome Api::begin(Request request) {
  if (request.body.size() > kMaxBody)
    return too_large(fmt::format("limit is {} bytes, and the body has {}: send smaller parts",
                                 kMaxBody, request.body.size()));
  const Target target = parse_target(kinds_, request.target);
  if (target.kind == nullptr) {
    if (request.method == "POST" && is_review(target.path)) {
      const auto body = decode(request);
      if (!body) return body.error();
      if (auto response = answer_review(target.path, *body)) return *std::move(response);
    }
    auto response = answer_discovery(kinds_, request, target.path, environment_.version);
    return response ? *std::move(response) : no_such_page();
  }
  if (target.kind->resource == kPods && needs_kubelet(target.subresource))
    return not_streamed(target.subresource);
  if (request.method == "GET") return read(request, target);
  if (auto refusal = check_options(request.method, target.query)) return *std::move(refusal);
  const bool has_name = !target.key.name.empty();
  if (request.method == "POST" && !has_name) return create(std::move(request), target);
  if (request.method == "PUT" && has_name) return update(std::move(request), target);
  if (request.method == "PATCH" && has_name) return patch(std::move(request), target);
  if (request.method == "DELETE" && target.subresource.empty())
    return has_name ? begin_delete(std::move(request), target) : delete_collection(request, target);
  return method_not_allowed();
}

Outcome Api::handle(Request request) {
  Outcome outcome = begin(std::move(request));
  while (auto* write = std::get_if<PendingWrite>(&outcome)) {
    PendingWrite pending = std::move(*write);
    outcome = finish(std::move(pending));
  }
  return outcome;
}

std::optional<Response> Api::check(PendingWrite& write) const {
  if (write.operation == "DELETE") return std::nullopt;
  const ServedKind& kind = *write.kind;
  Json& object = write.object;
  Json& metadata = object["metadata"];
  if (write.before) {
    prepare_update(kind, *write.before, object, write.subresource);
  } else {
    if (metadata.get_string("uid").empty()) {
      metadata.set("uid", environment_.new_uid());
      metadata.set("creationTimestamp", environment_.now().to_string());
    }
    const std::string_view base = metadata.get_string("generateName");
    if (metadata.get_string("name").empty() && !base.empty()) {
      metadata.set("name", std::string(base.substr(0, kLongestGeneratedBase)) +
                               environment_.new_name_suffix());
      write.has_generated_name = true;
    }
    write.key.name = metadata.get_string("name");
    prepare_create(kind, object);
  }
  if (kind.set_defaults) kind.set_defaults(object);
  FieldErrors errors = check_metadata(kind, object, write.before.get());
  if (kind.check)
    for (FieldError& error : kind.check(object, write.before.get()))
      errors.push_back(std::move(error));
  if (errors.empty()) return std::nullopt;
  return invalid_object(kind.resource.kind, kind.resource.group, write.key.name, errors);
}

Outcome Api::finish(PendingWrite write) {
  const Resource& resource = write.kind->resource;
  if (write.before) {
    const Object current = store_.find(resource, write.key);
    if (!current) return not_found(resource, write.key.name);
    if (current != write.before) {
      if (write.is_conditional) return modified(resource, write.key.name);
      return begin(std::move(write.request));
    }
    if (write.operation == "DELETE") return finish_delete(write);
  }
  if (auto refusal = check(write)) return *std::move(refusal);
  if (!write.before) {
    for (int attempt = 1;; ++attempt) {
      const Object existing = store_.find(resource, write.key);
      if (!existing) break;
      if (write.request.method == "PATCH") return begin(std::move(write.request));
      if (!write.has_generated_name || attempt == kMaxNameAttempts)
        return already_exists(resource, write.key.name,
                              existing->get("metadata").find("deletionTimestamp") != nullptr);
      write.object["metadata"].erase("name");
      if (auto refusal = check(write)) return *std::move(refusal);
    }
  }
  return store_write(std::move(write));
}

Response Api::store_write(PendingWrite write) {
  const ServedKind& kind = *write.kind;
  const bool is_scale = write.subresource == "scale";
  const auto respond = [&](const Json& object) {
    Response response = is_scale ? json_response(200, scale_of(kind, object))
                                 : answer(write.before ? 200 : 201, kind, write.request, object);
    response.warnings = std::move(write.warnings);
    return response;
  };
  // Versions of a kind share one representation.
  write.object.set("apiVersion", find_stored_kind(kinds_, kind.resource)->resource.api_version());
  if (write.before && is_equal_but_for_times(*write.before, write.object))
    return respond(*write.before);
  if (write.before && is_removable(kind, write.object)) {
    if (!write.is_dry_run) store_.erase(kind.resource, write.key);
    return respond(write.object);
  }
  if (write.is_dry_run) {
    if (const auto text = readable_text(write.object, kStoredLimits); !text)
      return not_storable(kind.resource, write.key.name, text.error());
    return respond(write.object);
  }
  const auto stored = store_.put(kind.resource, std::move(write.object), kStoredLimits);
  if (!stored) return not_storable(kind.resource, write.key.name, stored.error());
  return respond(**stored);
}

}  // namespace kube::server
