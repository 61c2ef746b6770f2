// The meaning of a YAML scalar follows the rules of go-yaml v2, with which kubectl reads YAML. The
// reader and the printer share these functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace kube {

// Returns the value of an unquoted scalar without a tag: null, a boolean (YAML 1.1 has "yes",
// "off", "y" and the like), an integer (0x, 0o, 0b and a leading 0 choose the base, "_" separates
// digits), a double, which may be infinite or no number, or else the text itself. Dates stay text.
Json resolve_plain_scalar(std::string_view text);

// Returns the value of a scalar with an explicit tag such as "tag:yaml.org,2002:int". Unknown tags
// leave text. Errors (kParse) without a place: the text does not fit the tag.
Result<Json> resolve_tagged_scalar(std::string_view tag, std::string_view text);

// Returns a number in the form in which it arrives in JSON: 1.0 and 1e3 are integers there. Errors
// (kParse): infinity and NaN.
Result<Json> as_json_number(Json value);

// Returns the form of a value that is the name of a member: 0x10 is "16", yes is "true". nullopt
// for null and containers.
std::optional<std::string> member_name(const Json& value);

// Returns true if the text may be unquoted and is still read as the same text, by readers of YAML
// 1.1 and of 1.2.
bool is_plain_safe(std::string_view text);

}  // namespace kube
