// The kinds that local mode serves. Pure.
#pragma once

#include "kube/model/json.hh"
#include "kube/server/served_kind.hh"

namespace trainer {

// This project's kinds but for V1 jobs, and the kinds of Kubernetes that they need. Takes some
// milliseconds; call it once.
kube::server::ServedKinds local_kinds();

// The kinds that a CustomResourceDefinition of another project adds, one for each version that is
// served. Of its CEL rules only those that forbid a change are evaluated. The definition itself is
// not checked: members that it lacks count as empty.
kube::server::ServedKinds kinds_of_crd(const kube::Json& crd);

}  // namespace trainer
