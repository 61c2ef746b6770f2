// kubectl sends protobuf for a few kinds (`create secret`, `auth can-i`). Pure.
#pragma once

#include <string_view>

#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace kube::server {

// Decodes a body of `application/vnd.kubernetes.protobuf` to the object that it holds: ConfigMap,
// Namespace, Secret, ServiceAccount, DeleteOptions, and the reviews of access_review.hh. Members
// that the form cannot distinguish from absent ones ("", 0, an empty time) are left out. Errors:
// kUnsupported for any other kind, kBadRequest for a text that is no such message.
Result<Json> decode_protobuf(std::string_view body);

}  // namespace kube::server
