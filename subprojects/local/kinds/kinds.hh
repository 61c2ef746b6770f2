// Local mode serves these kinds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/kinds/kinds.hh"
#include "kube/model/meta.hh"
#include "kube/model/time.hh"
#include "kube/server/served_kind.hh"
#include "local/kinds/types.hh"

namespace trainer::local {

// This is a kind of Kubernetes; its schema and merge keys come from BuiltinTypes.
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

Builtin pod_kind();
Builtin job_kind();
Builtin service_kind();
// These are kinds with few rules: of the core group, and of other groups.
std::vector<Builtin> core_kinds();
std::vector<Builtin> other_kinds();
ServedKind crd_kind();

// Returns one for each served version of a kind of this project, the stored version first.
kube::server::ServedKinds served_versions(const ApiKind& kind);

// Refuses a CustomResourceDefinition if members of a schema are of another type than readers of
// schemas rely on.
FieldErrors check_definition(const Json& crd, const Json* before);

// Makes the kinds of a CustomResourceDefinition of another project, which check_definition()
// accepts. Only those of its CEL rules are evaluated that forbid a change. Members that the
// definition lacks count as empty.
kube::server::ServedKinds kinds_of_crd(const Json& crd);

// Returns this project's kinds except V1 jobs, and the kinds of Kubernetes that they need. It takes
// some milliseconds; call it once.
kube::server::ServedKinds all_kinds();

}  // namespace trainer::local
