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

Builtin pod_kind();
Builtin job_kind();
Builtin service_kind();
// Kinds with few rules: of the core group, and of other groups.
std::vector<Builtin> core_kinds();
std::vector<Builtin> other_kinds();
ServedKind crd_kind();

// One for each served version of a kind of this project, the stored version first.
kube::server::ServedKinds served_versions(const ApiKind& kind);

// Refuses a CustomResourceDefinition for members of a schema that are of another type than those
// who read schemas rely on.
FieldErrors check_definition(const Json& crd, const Json* before);

// Makes the kinds of a CustomResourceDefinition of another project, which check_definition()
// accepts. Of its CEL rules only those that forbid a change are evaluated. Members that the
// definition lacks count as empty.
kube::server::ServedKinds kinds_of_crd(const Json& crd);

// This project's kinds but for V1 jobs, and the kinds of Kubernetes that they need. Takes some
// milliseconds; call it once.
kube::server::ServedKinds all_kinds();

}  // namespace trainer::local
