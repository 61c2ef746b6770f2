// What a decoder of Go says where JSON does not fit the struct that it is read into
// (sigs.k8s.io/json, and UnmarshalJSON of Quantity, IntOrString and Time). Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "kube/model/json.hh"

namespace kube::server {

struct GoTypes {
  // The type that a part of the schema refers to by {"$ref": "#/NAME"}, nullptr: none. May be
  // empty: there are no references.
  std::function<const Json*(const Json& schema)> target_of;
  std::string package = "v1";  // of the structs
};

// "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32", of the
// first value, in the order of names, that its field cannot hold; "" where all can. Nulls and
// unknown fields fit. `member`: of what the value is, "" for a whole object. A struct has the name
// by which the schema refers to it, or its `title`.
std::string decoding_problem(const Json& value, const Json& schema, const GoTypes& types,
                             std::string_view member = "");

}  // namespace kube::server
