#include "kube/server/object_rules.hh"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/meta.hh"
#include "kube/model/names.hh"
#include "kube/model/object_meta_fields.hh"
#include "kube/model/text.hh"
#include "kube/server/field_schema.hh"

namespace kube::server {
namespace {

void keep_member(Json& object, const Json& from, std::string_view name) {
  if (const Json* value = from.find(name)) {
    object.set(name, *value);
  } else {
    object.erase(name);
  }
}

// metadata.generation counts changes of this part of an object.
Json counted(const ServedKind& kind, const Json& object) {
  Json content = object;
  for (const auto* name : {"metadata", "apiVersion", "kind"}) content.erase(name);
  if (kind.has_status) content.erase("status");
  return content;
}

// This is k8s.io/apimachinery/pkg/api/validation/path: for kinds whose names may be any path
// segment.
void check_path_segment(std::string_view name, FieldErrors& errors) {
  for (const std::string_view word : {".", ".."})
    if (name == word) errors.push_back(invalid("metadata.name", name, "may not be '{}'", word));
  for (const char sign : {'/', '%'})
    if (name.find(sign) != name.npos)
      errors.push_back(invalid("metadata.name", name, "may not contain '{}'", sign));
}

void check_name(const ServedKind& kind, const Json& metadata, FieldErrors& errors) {
  const std::string_view name = metadata.get_string("name");
  if (name.empty()) {
    errors.push_back(required("metadata.name", "name or generateName is required"));
    return;
  }
  const auto& resource = kind.resource;
  const bool is_label = resource.group.empty() && resource.plural == "namespaces";
  const bool is_service = resource.group.empty() && resource.plural == "services";
  const bool is_free = resource.group == "rbac.authorization.k8s.io";
  if (is_free) return check_path_segment(name, errors);
  if (is_service) {
    if (std::string problem = check_dns1035_label(name); !problem.empty())
      errors.push_back(invalid("metadata.name", name, std::move(problem)));
    return;
  }
  for (std::string& problem :
       is_label ? dns1123_label_problems(name) : dns1123_subdomain_problems(name))
    errors.push_back(invalid("metadata.name", name, std::move(problem)));
}

// Kubernetes' own finalizers have no prefix; custom resources may have others without.
bool is_finalizer(const Resource& resource, const Json& finalizer) {
  if (!finalizer.is_string() || !qualified_name_problems(finalizer.as_string()).empty())
    return false;
  const std::string& name = finalizer.as_string();
  return is_custom(resource) || name.find('/') != std::string::npos || name == "orphan" ||
         name == "foregroundDeletion" || name == "kubernetes";
}

void check_owners(const Json& metadata, FieldErrors& errors) {
  const Json::Array& owners = metadata.get_array("ownerReferences");
  std::string controller;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const std::string path = join_index("metadata.ownerReferences", i);
    for (const auto* name : {"apiVersion", "kind", "name", "uid"})
      if (owners[i].get_string(name).empty())
        errors.push_back(required(join_field(path, name), "must not be empty"));
    if (!owners[i].get_bool("controller")) continue;
    const std::string name =
        fmt::format("{}/{}", owners[i].get_string("kind"), owners[i].get_string("name"));
    if (!controller.empty())
      errors.push_back(invalid("metadata.ownerReferences", metadata.get("ownerReferences"),
                               "Only one reference can have Controller set to true. Found \"true\" "
                               "in references for {} and {}",
                               controller, name));
    controller = name;
  }
}

void check_immutable(const Json& metadata, const Json& before, FieldErrors& errors) {
  for (const auto* name : {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
                           "deletionGracePeriodSeconds"})
    if (metadata.get(name) != before.get(name))
      errors.push_back(
          invalid(join_field("metadata", name), metadata.get(name), "field is immutable"));
  if (!before.find("deletionTimestamp")) return;
  const Json::Array& known = before.get_array("finalizers");
  std::vector<std::string> added;
  for (const Json& finalizer : metadata.get_array("finalizers"))
    if (std::find(known.begin(), known.end(), finalizer) == known.end())
      added.push_back(print_json(finalizer));
  if (!added.empty())
    errors.push_back(forbidden("metadata.finalizers",
                               fmt::format("no new finalizers can be added if the object is being "
                                           "deleted, found new finalizers []string{{{}}}",
                                           fmt::join(added, ", "))));
}

void prune_value(Json& value, const FieldSchema& schema) {
  if (value.is_array()) {
    for (Json& item : value.as_array()) prune_value(item, schema.items());
  } else if (value.is_object()) {
    value.as_object().keep_if([&schema](JsonObject::Member& member) {
      if (!schema.allows(member.first)) return false;
      prune_value(member.second, schema.member(member.first));
      return true;
    });
  }
}

}  // namespace

bool is_custom(const Resource& resource) {
  return resource.group.find('.') != std::string::npos && !resource.group.ends_with(".k8s.io");
}

void wipe_system_fields(Json& metadata) {
  for (const auto* name :
       {"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid"})
    metadata.erase(name);
}

void prepare_create(const ServedKind& kind, Json& object) {
  if (kind.has_generation) object["metadata"].set("generation", 1);
  if (kind.has_status) object.erase("status");
}

void prepare_update(const ServedKind& kind, const Json& before, Json& object,
                    std::string_view subresource) {
  if (subresource == "status") {
    Json changed = before;
    keep_member(changed, object, "status");
    keep_member(changed["metadata"], object.get("metadata"), "managedFields");
    object = std::move(changed);
    return;
  }
  if (kind.has_status) keep_member(object, before, "status");
  const Json& old = before.get("metadata");
  Json& metadata = object["metadata"];
  metadata.erase("selfLink");
  if (metadata.get_string("uid").empty()) keep_member(metadata, old, "uid");
  for (const auto* name : {"creationTimestamp", "generation", "resourceVersion"})
    keep_member(metadata, old, name);
  if (old.find("deletionTimestamp")) keep_member(metadata, old, "deletionTimestamp");
  if (!metadata.find("deletionGracePeriodSeconds"))
    keep_member(metadata, old, "deletionGracePeriodSeconds");
  if (kind.has_generation && counted(kind, before) != counted(kind, object))
    metadata.set("generation", old.get_int("generation") + 1);
}

FieldErrors check_metadata(const ServedKind& kind, const Json& object, const Json* before) {
  FieldErrors errors;
  const Json& metadata = object.get("metadata");
  check_name(kind, metadata, errors);
  if (kind.resource.namespaced && metadata.get_string("namespace").empty())
    errors.push_back(required("metadata.namespace", ""));
  check_labels_and_annotations(metadata, "metadata", errors);
  check_owners(metadata, errors);
  for (const Json& finalizer : metadata.get_array("finalizers"))
    if (!is_finalizer(kind.resource, finalizer))
      errors.push_back(invalid("metadata.finalizers", finalizer, "name is not qualified"));
  if (before != nullptr) check_immutable(metadata, before->get("metadata"), errors);
  return errors;
}

void prune(const ServedKind& kind, Json& object) {
  if (!kind.schema || !object.is_object()) return;
  const FieldSchema root = FieldSchema::of(kind);
  object.as_object().keep_if([&root](JsonObject::Member& member) {
    if (member.first == "metadata") {
      if (member.second.is_object())
        member.second.as_object().keep_if(
            [](JsonObject::Member& field) { return is_object_meta_field(field.first); });
      return true;
    }
    if (member.first == "apiVersion" || member.first == "kind") return true;
    if (!root.allows(member.first)) return false;
    prune_value(member.second, root.member(member.first));
    return true;
  });
}

}  // namespace kube::server
