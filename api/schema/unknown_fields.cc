#include <algorithm>
#include <string_view>

#include "api/describe/path.hh"
#include "api/schema/schema_view.hh"
#include "api/schema/structural_schema.hh"
#include "kube/model/object_meta_fields.hh"

namespace trainer {
namespace {

using kube::Json;
using wire::FieldPath;

void find_unknown(const Json& value, const Json& schema, const FieldPath& path,
                  std::vector<std::string>& found) {
  const SchemaView view(schema);
  if (const Json* items = view.find("items"); items != nullptr && value.is_array()) {
    for (std::size_t i = 0; i < value.as_array().size(); ++i)
      find_unknown(value.as_array()[i], *items, FieldPath(path, i), found);
  }
  if (!value.is_object()) return;
  const bool is_open = view.is_set("x-kubernetes-preserve-unknown-fields");
  for (const auto& [name, member] : value.as_object()) {
    const FieldPath below(path, name);
    if (const Json* known = view.member(name)) {
      find_unknown(member, *known, below, found);
    } else if (!is_open) {
      found.push_back(below.to_string());
    }
  }
}

}  // namespace

std::vector<std::string> unknown_fields(const Json& object, const wire::Schema& schema) {
  std::vector<std::string> found;
  if (!object.is_object()) return found;
  const SchemaView view(schema.document);
  const bool is_open = view.is_set("x-kubernetes-preserve-unknown-fields");
  const FieldPath root("");
  for (const auto& [name, value] : object.as_object()) {
    const FieldPath path(root, name);
    if (name == "metadata") {
      for (const auto& [field, unused] : object.get_object("metadata"))
        if (!kube::is_object_meta_field(field)) found.push_back(FieldPath(path, field).to_string());
    } else if (const Json* known = view.member(name)) {
      find_unknown(value, *known, path, found);
    } else if (name != "apiVersion" && name != "kind" && !is_open) {
      found.push_back(path.to_string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace trainer
