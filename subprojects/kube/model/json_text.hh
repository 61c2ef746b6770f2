// JSON text in and out. The only place that knows RapidJSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace kube {

struct JsonLimits {
  std::size_t max_bytes = 16U << 20;  // a document above this is refused unread
  int max_depth = 200;  // containers within containers; the API server itself stops at 10,000
};

// A member that the reader passes over: the whole of it, or what is listed below it. Of a watched
// object most bytes are often of no interest, such as managedFields; not building them halves the
// work. Names are not copied.
struct JsonOmission {
  std::string_view name;
  std::vector<JsonOmission> below;  // empty: all of it
};
using JsonOmissions = std::vector<JsonOmission>;

// Parses one document. Errors (kParse) name the byte offset: bad UTF-8, bad syntax, text after the
// document, depth, size, a number that is no finite double, and an object that has the same name
// twice. Of omitted members only the end is looked for: brackets and strings must close.
// Linear in the text's length; never recurses with the input.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {},
                        const JsonOmissions& omissions = {});

// Compact text; members come sorted. `print_json(*parse_json(t))` is a canonical form of t.
std::string print_json(const Json& value);
// The same over several lines, for people.
std::string print_json_pretty(const Json& value, int indent = 2);

// True for well-formed UTF-8 without surrogates and overlong forms.
bool is_utf8(std::string_view text);

}  // namespace kube
