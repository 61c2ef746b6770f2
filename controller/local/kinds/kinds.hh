// The kinds of local mode, a function each or a few together.
#pragma once

#include <string>
#include <vector>

#include "api/kinds/kinds.hh"
#include "controller/local/kinds/types.hh"
#include "kube/model/meta.hh"
#include "kube/server/served_kind.hh"

namespace trainer::local {

// A kind of Kubernetes with its schema and merge keys; without a status and without a generation.
ServedKind builtin_kind(const BuiltinTypes& types, const kube::Resource& resource,
                        std::vector<std::string> short_names, Rules rules = {});

ServedKind pod_kind(const BuiltinTypes& types);
ServedKind job_kind(const BuiltinTypes& types);
ServedKind service_kind(const BuiltinTypes& types);
// ConfigMap, Secret, Event and what else has few rules: in the order of discovery.
kube::server::ServedKinds core_kinds(const BuiltinTypes& types);
kube::server::ServedKinds other_kinds(const BuiltinTypes& types);
ServedKind crd_kind();

// The versions that are served, the stored one first: of a CustomResourceDefinition, and of a kind
// of this project.
kube::server::ServedKinds kinds_of_crd(const Json& crd);
kube::server::ServedKinds served_versions(const ApiKind& kind);

}  // namespace trainer::local
