// Defaults are set by the rules of apiextensions-apiserver (pkg/apiserver/schema/defaulting): first
// the defaults in existing objects, then every null that no schema allows is removed.
#include "api/schema/schema_view.hh"
#include "api/schema/structural_schema.hh"

namespace trainer {
namespace {

using kube::Json;

void fill(Json& value, const Json& schema);

void fill_object(Json& object, const SchemaView& view) {
  if (const Json* properties = view.find("properties")) {
    for (const auto& [name, property] : properties->as_object()) {
      const Json* otherwise = SchemaView(property).find("default");
      if (otherwise == nullptr) continue;
      Json& member = object[name];
      if (member.is_null()) member = *otherwise;
    }
  }
  object.as_object().keep_if([&view](Json::Object::Member& member) {
    const Json* schema = view.member(member.first);
    if (schema != nullptr && member.second.is_null()) return false;
    if (schema != nullptr) fill(member.second, *schema);
    return true;
  });
}

void fill(Json& value, const Json& schema) {
  const SchemaView view(schema);
  if (value.is_object()) return fill_object(value, view);
  const Json* items = view.find("items");
  if (!value.is_array() || items == nullptr) return;
  for (Json& item : value.as_array()) fill(item, *items);
}

}  // namespace

void apply_schema_defaults(Json& object, const wire::Schema& schema) {
  fill(object, schema.document);
}

}  // namespace trainer
