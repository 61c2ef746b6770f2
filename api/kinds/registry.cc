#include <functional>
#include <map>
#include <string>

#include "api/api.hh"
#include "api/kinds/kinds.hh"
#include "api/schema/structural_schema.hh"

namespace trainer {

const std::vector<ApiKind>& api_kinds() {
  static const std::vector<ApiKind> kinds{
      trainjob_kind(),
      training_runtime_kind(),
      cluster_training_runtime_kind(),
      jobset_kind(),
  };
  return kinds;
}

const wire::Schema* find_schema(std::string_view kind) {
  static const std::map<std::string, wire::Schema, std::less<>> schemas = [] {
    std::map<std::string, wire::Schema, std::less<>> made;
    for (const ApiKind& known : api_kinds())
      for (const KindVersion& version : known.versions)
        if (version.is_stored) made.emplace(known.resource.kind, version.make_schema());
    return made;
  }();
  const auto at = schemas.find(kind);
  return at == schemas.end() ? nullptr : &at->second;
}

void apply_schema_defaults(kube::Json& object) {
  if (const wire::Schema* schema = find_schema(object.get_string("kind")))
    apply_schema_defaults(object, *schema);
}

kube::FieldErrors check_schema(const kube::Json& object) {
  if (const wire::Schema* schema = find_schema(object.get_string("kind")))
    return check_schema(object, *schema);
  std::vector<std::string_view> kinds;
  for (const ApiKind& kind : api_kinds()) kinds.push_back(kind.resource.kind);
  return {kube::not_supported("kind", object.get_string("kind"), kinds)};
}

}  // namespace trainer
