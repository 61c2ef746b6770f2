#include "controller/local/builtin_kinds.hh"

#include <iterator>
#include <utility>

#include "api/kinds/kinds.hh"
#include "controller/local/kinds/kinds.hh"

namespace trainer {
namespace {

using kube::server::ServedKinds;

void append(ServedKinds& kinds, ServedKinds more) {
  kinds.insert(kinds.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

}  // namespace

ServedKinds local_kinds() {
  const local::BuiltinTypes types;
  ServedKinds kinds = local::core_kinds(types);
  kinds.push_back(local::pod_kind(types));
  kinds.push_back(local::service_kind(types));
  kinds.push_back(local::job_kind(types));
  append(kinds, local::other_kinds(types));
  kinds.push_back(local::crd_kind());
  for (const ApiKind& kind : api_kinds()) append(kinds, local::served_versions(kind));
  return kinds;
}

ServedKinds kinds_of_crd(const kube::Json& crd) {
  return local::kinds_of_crd(crd);
}

}  // namespace trainer
