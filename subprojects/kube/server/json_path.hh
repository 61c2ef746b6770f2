// Columns and the subresource `scale` use these JSONPaths. Pure.
#pragma once

#include <string_view>

#include "kube/model/json.hh"

namespace kube::server {

// Returns the first value at a path such as `.spec.replicas`, `.status['a','b']` (the first of the
// two that exists), `.items[0]`, `.items[-1:]`, `.items[*].name` or
// `.items[?(@.type=="Ready")].status`. The result is nullptr if there is none, and for a path in
// any other form. It is that of k8s.io/client-go/util/jsonpath with AllowMissingKeys.
const Json* find_json_path(const Json& object, std::string_view path);

}  // namespace kube::server
