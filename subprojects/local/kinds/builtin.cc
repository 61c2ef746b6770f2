#include <algorithm>
#include <iterator>
#include <utility>

#include "kube/model/text.hh"
#include "kube/server/decoding.hh"
#include "local/kinds/cells.hh"
#include "local/kinds/kinds.hh"

namespace trainer::local {
namespace {

ServedKind builtin_kind(const BuiltinTypes& types, Builtin builtin) {
  ServedKind kind;
  const std::string& name = builtin.resource.kind;
  kind.singular = kube::to_lower(name);
  kind.merge_keys = types.merge_keys(name);
  builtin.rules.may_repeat = true;
  use_schema(kind, types.schema(name), builtin.rules);
  kind.resource = std::move(builtin.resource);
  kind.decoding_problem = [schema = kind.schema, resource = kind.resource](const Json& object) {
    if (kube::server::decoding_problem(object, *schema, {}).empty()) return std::string();
    // The message names types, which this schema does not have, so they are read again.
    return BuiltinTypes().decoding_problem(resource, object);
  };
  kind.short_names = std::move(builtin.short_names);
  if (builtin.is_of_all) kind.categories = {"all"};
  kind.columns = columns_of(builtin.columns);
  kind.cells = builtin.cells;
  kind.has_status = builtin.has_status;
  kind.has_generation = builtin.has_generation;
  return kind;
}

}  // namespace

kube::server::ServedKinds all_kinds() {
  const BuiltinTypes types;
  std::vector<Builtin> builtin = core_kinds();
  for (const auto kind : {pod_kind, service_kind, job_kind}) builtin.push_back(kind());
  std::ranges::move(other_kinds(), std::back_inserter(builtin));
  kube::server::ServedKinds kinds;
  for (Builtin& kind : builtin) kinds.push_back(builtin_kind(types, std::move(kind)));
  kinds.push_back(crd_kind());
  for (const ApiKind& kind : api_kinds())
    std::ranges::move(served_versions(kind), std::back_inserter(kinds));
  return kinds;
}

}  // namespace trainer::local
