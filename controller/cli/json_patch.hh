// Applies RFC 6902 operations, as the API server does with the answer of a mutating webhook.
#pragma once

#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace trainer {

// add, remove and replace; other operations are kUnsupported, a path that does not exist is
// kInvalid, each named with its path.
kube::Result<kube::Json> apply_json_patch(kube::Json document, const kube::Json& operations);

}  // namespace trainer
