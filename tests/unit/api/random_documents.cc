#include "tests/unit/api/random_documents.hh"

#include <stdexcept>

#include "api/kinds/kinds.hh"
#include "api/schema/schema_view.hh"

namespace trainer::test {

using kube::Json;

std::string RandomDocuments::word() {
  std::string text;
  for (int i = up_to(6); i >= 0; --i) text += static_cast<char>('a' + up_to(25));
  return text;
}

Json RandomDocuments::anything(int depth) {
  switch (up_to(depth > 0 ? 7 : 5)) {
    case 0:
      return nullptr;
    case 1:
      return random_bool();
    case 2:
      return std::int64_t{up_to(1000000)} - 500000;
    case 3:
      return 0.5 + up_to(1000);
    case 4:
      return "";
    case 5:
      return word();
    case 6: {
      Json list = Json::array();
      for (int i = up_to(2); i > 0; --i) list.push_back(anything(depth - 1));
      return list;
    }
    default: {
      Json object = Json::object();
      for (int i = up_to(2); i > 0; --i) object.set(word(), anything(depth - 1));
      return object;
    }
  }
}

Json RandomDocuments::scalar(const Json& schema) {
  const SchemaView view(schema);
  if (const auto& names = view.list("enum"); !names.empty()) {
    const Json& name = names[static_cast<std::size_t>(up_to(static_cast<int>(names.size()) - 1))];
    return name.as_string().empty() ? names[0] : name;
  }
  if (view.is_set("x-kubernetes-int-or-string"))
    return random_bool() ? Json(up_to(9)) : Json("100m");
  if (view.text("format") == "date-time")
    return "2026-08-20T10:00:" + std::to_string(10 + up_to(49)) + "Z";
  if (view.type() == "boolean") return random_bool();
  if (view.type() == "integer") return 1 + up_to(50);
  if (view.type() == "number") return 0.5;
  return word();
}

Json RandomDocuments::object_value(const Json& schema) {
  const SchemaView view(schema);
  Json out = Json::object();
  if (const Json* properties = view.find("properties")) {
    const auto& required = view.list("required");
    for (const auto& [member, below] : properties->as_object()) {
      const bool is_required =
          std::find(required.begin(), required.end(), Json(member)) != required.end();
      // A removed field is refused everywhere.
      const bool is_removed =
          view.list("x-kubernetes-validations").size() > 0 &&
          (member == "labels" || member == "annotations" || member == "podTemplateOverrides" ||
           member == "podSpecOverrides" || member == "elasticPolicy");
      if (is_required || (random_bool() && !is_removed)) out.set(member, value(below, member));
    }
  } else if (const Json* values = view.find("additionalProperties")) {
    out.set(word(), value(*values, ""));
  }
  return out;
}

Json RandomDocuments::value(const Json& schema, std::string_view name) {
  const SchemaView view(schema);
  if (view.type() == "array") {
    Json list = Json::array();
    for (int i = up_to(2); i >= 0; --i) list.push_back(value(*view.find("items"), name));
    return list;
  }
  if (view.type() != "object") return scalar(schema);
  Json out = object_value(schema);
  const bool is_root = view.find("properties") != nullptr && view.member("apiVersion") != nullptr;
  // Conditions are Kubernetes' own type, and metadata is written by the API server.
  if (members_ == Members::kAny && random_bool() && !is_root && name != "conditions" &&
      name != "metadata")
    out.set("x" + word(), anything());
  return out;
}

Json RandomDocuments::object(std::string_view kind) {
  const wire::Schema* schema = find_schema(kind);
  if (schema == nullptr) throw std::invalid_argument("unknown kind: " + std::string(kind));
  Json document = value(schema->document, "");
  document.set("kind", kind);
  return document;
}

void RandomDocuments::corrupt(Json& document) {
  Json* at = &document;
  while (at->size() > 0 && up_to(4) > 0) {
    const auto index = static_cast<std::size_t>(up_to(static_cast<int>(at->size()) - 1));
    if (at->is_array())
      at = &at->as_array()[index];
    else if (at->is_object())
      at = &(at->as_object().begin() + static_cast<std::ptrdiff_t>(index))->second;
    else
      break;
  }
  if (at != &document) *at = anything();
}

}  // namespace trainer::test
