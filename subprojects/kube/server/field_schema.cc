#include "kube/server/field_schema.hh"

#include "kube/model/json_text.hh"

namespace kube::server {

const Json& object_meta_schema() {
  static const Json kSchema =
      *parse_json(R"({"type": "object", "title": "ObjectMeta", "properties": {
    "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
    "creationTimestamp": {"type": "string", "format": "date-time"},
    "deletionGracePeriodSeconds": {"type": "integer", "format": "int64"},
    "deletionTimestamp": {"type": "string", "format": "date-time"},
    "finalizers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    "generateName": {"type": "string"},
    "generation": {"type": "integer", "format": "int64"},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "managedFields": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {}},
    "name": {"type": "string"},
    "namespace": {"type": "string"},
    "ownerReferences": {"type": "array", "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["uid"],
      "items": {"type": "object", "title": "OwnerReference", "x-kubernetes-map-type": "atomic",
        "properties": {
        "apiVersion": {"type": "string"}, "blockOwnerDeletion": {"type": "boolean"},
        "controller": {"type": "boolean"}, "kind": {"type": "string"},
        "name": {"type": "string"}, "uid": {"type": "string"}}}},
    "resourceVersion": {"type": "string"},
    "selfLink": {"type": "string"},
    "uid": {"type": "string"}}})");
  return kSchema;
}

FieldSchema::FieldSchema(const ServedKind& kind, const Json* own)
    : kind_(&kind),
      own_(own),
      target_(own != nullptr && kind.target_of ? kind.target_of(*own) : nullptr) {}

FieldSchema FieldSchema::of(const ServedKind& kind) {
  FieldSchema root(kind, kind.schema.get());
  root.is_root_ = true;
  return root;
}

const Json* FieldSchema::find(std::string_view keyword) const {
  if (own_ == nullptr) return nullptr;
  const Json* found = own_->find(keyword);
  return found == nullptr && target_ != nullptr ? target_->find(keyword) : found;
}

std::string_view FieldSchema::text(std::string_view keyword) const {
  const Json* found = find(keyword);
  return found != nullptr && found->is_string() ? std::string_view(found->as_string())
                                                : std::string_view();
}

bool FieldSchema::is_set(std::string_view keyword) const {
  const Json* found = find(keyword);
  return found != nullptr && found->is_bool() && found->as_bool();
}

// An object without declared members holds any.
bool FieldSchema::is_open() const {
  if (own_ == nullptr || is_set("x-kubernetes-preserve-unknown-fields")) return true;
  const Json* properties = find("properties");
  return (properties == nullptr || properties->empty()) && find("additionalProperties") == nullptr;
}

FieldSchema FieldSchema::member(std::string_view name) const {
  if (is_root_ && name == "metadata") return FieldSchema(*kind_, &object_meta_schema());
  if (const Json* properties = find("properties"))
    if (const Json* property = properties->find(name)) return FieldSchema(*kind_, property);
  const Json* additional = find("additionalProperties");
  return FieldSchema(*kind_,
                     additional != nullptr && additional->is_object() ? additional : nullptr);
}

FieldSchema FieldSchema::items() const {
  return FieldSchema(*kind_, find("items"));
}

bool FieldSchema::has_field(std::string_view name) const {
  if (is_root_ && (name == "metadata" || name == "apiVersion" || name == "kind")) return true;
  const Json* properties = find("properties");
  return properties != nullptr && properties->find(name) != nullptr;
}

bool FieldSchema::allows(std::string_view name) const {
  if (has_field(name) || is_open()) return true;
  const Json* additional = find("additionalProperties");
  return additional != nullptr && (!additional->is_bool() || additional->as_bool());
}

FieldSchema::ListType FieldSchema::list_type() const {
  const std::string_view type = text("x-kubernetes-list-type");
  if (type == "map") return ListType::kMap;
  return type == "set" ? ListType::kSet : ListType::kAtomic;
}

const Json::Array& FieldSchema::list_keys() const {
  static const Json::Array kNone;
  const Json* keys = find("x-kubernetes-list-map-keys");
  return keys != nullptr && keys->is_array() ? keys->as_array() : kNone;
}

const Json& FieldSchema::default_of(std::string_view name) const {
  const Json* found = member(name).find("default");
  return found != nullptr ? *found : Json::null();
}

bool FieldSchema::accepts(const Json& value) const {
  if (value.is_null() || type().empty() || is_set("x-kubernetes-int-or-string")) return true;
  if (type() == "number" || type() == "integer") return value.is_number();
  return value.type_name() == type();
}

}  // namespace kube::server
