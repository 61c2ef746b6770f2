#include "kube/server/decoded.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/server/decoding.hh"
#include "kube/server/field_schema.hh"
#include "kube/server/object_rules.hh"
#include "kube/server/refusals.hh"

namespace kube::server {
namespace {

constexpr std::size_t kLongestManager = 128;

bool is_control(char c) {
  return (c >= 0 && c < ' ') || c == 0x7f;
}

Response cannot_be_handled(const Json& object, const Resource& resource, std::string_view why) {
  const std::string_view version = object.get_string("apiVersion");
  const std::size_t slash = version.find('/');
  return bad_request(fmt::format(
      "{} in version \"{}\" cannot be handled as a {}: {}", object.get_string("kind"),
      slash == std::string_view::npos ? version : version.substr(slash + 1), resource.kind, why));
}

// `is_patched` says that a patch has made the object.
Response undecodable(const Json& object, const Resource& resource, bool is_patched,
                     std::string problem) {
  if (!is_patched) return cannot_be_handled(object, resource, problem);
  return invalid_object("", "", "", {invalid("patch", print_json(object), std::move(problem))});
}

std::string metadata_problem(const Json& object) {
  return decoding_problem(object.get("metadata"), object_meta_schema(), {}, "metadata");
}

std::optional<Response> settle_type(const Target& target, Json& object, bool is_patched) {
  const Resource& resource = target.kind->resource;
  const std::string expected = resource.api_version();
  const std::string_view version = object.get_string("apiVersion");
  const std::string_view kind = object.get_string("kind");
  if (!version.empty() && version != expected)
    return bad_request(
        fmt::format("the API version in the data ({}) does not match the expected API version ({})",
                    version, expected));
  const bool is_other = !kind.empty() && kind != resource.kind;
  if (is_other && (is_patched || is_custom(resource)))
    return invalid_object(resource.kind, resource.group, target.key.name,
                          {invalid("kind", kind, "must be {}", resource.kind)});
  if (is_other)
    return cannot_be_handled(object, resource,
                             fmt::format("the kind in the data does not match {}", resource.kind));
  object.set("apiVersion", expected).set("kind", resource.kind);
  return std::nullopt;
}

std::optional<Response> settle_metadata(const Target& target, Json& object, bool is_patched) {
  const Resource& resource = target.kind->resource;
  Json& metadata = object["metadata"];
  if (metadata.is_null()) metadata = Json::object();
  const FieldSchema schema = FieldSchema::of(*target.kind).member("metadata");
  if (!metadata.is_object())
    return undecodable(object, resource, is_patched,
                       fmt::format("json: cannot unmarshal {} into Go struct field {}.metadata of "
                                   "type v1.ObjectMeta",
                                   metadata.type_name(), resource.kind));
  metadata.as_object().keep_if([](JsonObject::Member& member) { return !member.second.is_null(); });
  for (const auto& [name, value] : metadata.as_object())
    if (!schema.member(name).accepts(value))
      return undecodable(object, resource, is_patched, metadata_problem(object));
  // A struct of Go is printed without its empty members. An empty managedFields is a command.
  metadata.as_object().keep_if([](JsonObject::Member& member) {
    const Json& value = member.second;
    return member.first == "managedFields" || !(value.is_object() || value.is_array()) ||
           !value.empty();
  });
  const std::string_view ns = metadata.get_string("namespace");
  if (!resource.namespaced || target.key.ns.empty()) {
    if (!resource.namespaced) metadata.erase("namespace");
    return std::nullopt;
  }
  if (ns.empty()) metadata.set("namespace", target.key.ns);
  if (!ns.empty() && ns != target.key.ns)
    return bad_request(
        "the namespace of the provided object does not match the namespace sent on the request");
  return std::nullopt;
}

}  // namespace

std::optional<Response> settle(const Target& target, Json& object, bool is_patched) {
  const Resource& resource = target.kind->resource;
  if (!object.is_object())
    return bad_request(fmt::format(
        "the object provided is unrecognized (must be of type {}): it is no JSON object",
        resource.kind));
  if (auto refusal = settle_type(target, object, is_patched)) return refusal;
  if (auto refusal = settle_metadata(target, object, is_patched)) return refusal;
  const std::string_view name = object.get("metadata").get_string("name");
  if (!target.key.name.empty() && name != target.key.name)
    return bad_request(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})", name,
                    target.key.name));
  return std::nullopt;
}

std::optional<Response> validate_fields(const Target& target, Json& object, bool is_patch,
                                        std::vector<std::string>& warnings) {
  const ServedKind& kind = *target.kind;
  const std::string_view directive = target.query.get("fieldValidation");
  if (!directive.empty() && directive != "Ignore" && directive != "Warn" && directive != "Strict")
    return invalid_object(
        is_patch ? "PatchOptions" : "CreateOptions", "meta.k8s.io", "",
        {not_supported("fieldValidation", directive, {"Ignore", "Strict", "Warn"})});
  std::string problem = metadata_problem(object);
  if (problem.empty() && kind.decoding_problem) problem = kind.decoding_problem(object);
  if (!problem.empty()) return undecodable(object, kind.resource, is_patch, std::move(problem));
  std::vector<std::string> texts;
  if (kind.unknown_fields && directive != "Ignore")
    for (const std::string& path : kind.unknown_fields(object))
      texts.push_back(fmt::format("unknown field \"{}\"", path));
  if (!texts.empty() && directive == "Strict")
    return undecodable(object, kind.resource, is_patch,
                       fmt::format("strict decoding error: {}", fmt::join(texts, ", ")));
  warnings.insert(warnings.end(), texts.begin(), texts.end());
  prune(kind, object);
  return std::nullopt;
}

// The manager becomes a part of the object (k8s.io/apimachinery/pkg/apis/meta/v1/validation).
std::string manager_problem(std::string_view manager) {
  if (const std::size_t bad = find_bad_utf8(manager); bad != std::string_view::npos)
    return fmt::format("byte {} is not UTF-8", bad);
  const auto* const control = std::ranges::find_if(manager, is_control);
  if (control == manager.end()) return "";
  return fmt::format("byte {} is a control character", control - manager.begin());
}

std::string manager_of(const Query& query, std::string_view user_agent) {
  if (const std::string_view manager = query.get("fieldManager"); !manager.empty())
    return std::string(manager);
  std::string name(user_agent.substr(0, user_agent.find('/')));
  std::erase_if(name, [](char c) { return is_control(c) || static_cast<signed char>(c) < 0; });
  return name.substr(0, kLongestManager);
}

}  // namespace kube::server
