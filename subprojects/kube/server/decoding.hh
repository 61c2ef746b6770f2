// This is the error of a decoder of Go if JSON does not fit the struct that it is read into
// (sigs.k8s.io/json, and UnmarshalJSON of Quantity, IntOrString and Time). Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "kube/model/json.hh"

namespace kube::server {

struct GoTypes {
  // Returns the type that a part of the schema refers to by {"$ref": "#/NAME"}; nullptr if it
  // refers to none. May be empty: there are no references then.
  std::function<const Json*(const Json& schema)> target_of;
  std::string package = "v1";  // the package of the structs
};

// Returns "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32"
// for the first value, in the order of names, that its field cannot hold; "" if all fit. Nulls and
// unknown fields fit. `member` is the member that the value is in, "" for a whole object. A struct
// has the name by which the schema refers to it, or its `title`.
std::string decoding_problem(const Json& value, const Json& schema, const GoTypes& types,
                             std::string_view member = "");

}  // namespace kube::server
