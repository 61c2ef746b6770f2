// The types of Kubernetes that our schemas embed, from the data file kubernetes.json (made by
// tools/reduce_openapi.py).
#pragma once

#include "kube/model/json.hh"

namespace trainer {

// {source, types, mergeKeys}, parsed anew by every call: keep what is needed.
kube::Json read_kubernetes_types();

}  // namespace trainer
