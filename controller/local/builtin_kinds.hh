// The kinds that local mode serves. Pure.
#pragma once

#include "kube/model/json.hh"
#include "kube/server/served_kind.hh"

namespace trainer {

// This project's kinds but for V1 jobs, and those of Kubernetes with which they work. Takes some
// milliseconds; call it once.
kube::server::ServedKinds local_kinds();

// The kinds that a CustomResourceDefinition of another project adds, one for each version that is
// served. CEL rules of it are not evaluated, but for those that forbid a change. Its object is not
// checked: what it lacks is empty.
kube::server::ServedKinds kinds_of_crd(const kube::Json& crd);

}  // namespace trainer
