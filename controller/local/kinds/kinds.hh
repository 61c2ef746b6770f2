// The kinds that local mode serves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/kinds/kinds.hh"
#include "controller/local/kinds/types.hh"
#include "kube/model/meta.hh"
#include "kube/model/time.hh"
#include "kube/server/served_kind.hh"

namespace trainer::local {

// A kind of Kubernetes; its schema and merge keys come from BuiltinTypes.
struct Builtin {
  kube::Resource resource;
  std::vector<std::string> short_names = {};
  Rules rules = {};
  std::string_view columns;  // see columns_of()
  Json (*cells)(const Json& object, kube::Time now);
  bool has_status = false;
  bool has_generation = false;
  bool is_of_all = false;  // `kubectl get all` shows it
};
ServedKind builtin_kind(const BuiltinTypes& types, Builtin builtin);

ServedKind pod_kind(const BuiltinTypes& types);
ServedKind job_kind(const BuiltinTypes& types);
ServedKind service_kind(const BuiltinTypes& types);
// Kinds with few rules: of the core group, and of other groups.
kube::server::ServedKinds core_kinds(const BuiltinTypes& types);
kube::server::ServedKinds other_kinds(const BuiltinTypes& types);
ServedKind crd_kind();

// One for each served version, the stored version first: of a CustomResourceDefinition, and of a
// kind of this project.
kube::server::ServedKinds kinds_of_crd(const Json& crd);
kube::server::ServedKinds served_versions(const ApiKind& kind);

}  // namespace trainer::local
