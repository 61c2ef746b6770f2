// JSON text in and out. The only place that knows RapidJSON.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace kube {

struct JsonLimits {
  std::size_t max_bytes = 16U << 20;  // a document above this is refused unread
  int max_depth = 200;  // containers within containers; the API server itself stops at 10,000
  // Of all kinds, containers included, as far as they are built. Two bytes of text may become a
  // value of forty: a bound for documents that anybody may send.
  std::size_t max_values = std::numeric_limits<std::size_t>::max();
};

// Which parts of a document are built, as a tree of member names; the reader passes over the rest.
// Of a watched object most bytes are often of no interest, such as managedFields; not building them
// spares most of the work. Without members below it a selection takes everything. The items of an
// array are read as the array's selection says. Names are not copied.
struct JsonSelection {
  enum class Members {
    kAllBut,  // of what is listed below, a member with nothing below it is left out
    kOnly,    // what is not listed below is left out; "*" stands for every name
  };
  std::string_view name;  // of the member this is about; not looked at in the document's own
  Members members = Members::kAllBut;
  std::vector<JsonSelection> below;
};

// Parses one document. Errors (kParse) name the byte offset: bad UTF-8, bad syntax, text after the
// document, depth, size, too many values, a number that is no finite double, and an object that has
// the same name twice. Of members left out only the end is looked for, and how deep they
// are: brackets and strings must close. Linear in the text's length; never recurses with the input.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {},
                        const JsonSelection& selection = {});

// Compact text; members come sorted. `print_json(*parse_json(t))` is a canonical form of t.
std::string print_json(const Json& value);
// The same over several lines, for people.
std::string print_json_pretty(const Json& value, int indent = 2);

// True for well-formed UTF-8 without surrogates and overlong forms.
bool is_utf8(std::string_view text);

}  // namespace kube
