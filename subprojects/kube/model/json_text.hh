// JSON text is read and written here. No other file knows RapidJSON.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "kube/model/error.hh"
#include "kube/model/json.hh"
#include "kube/model/json_cursor.hh"

namespace kube {

struct JsonLimits {
  std::size_t max_bytes = 16U << 20;  // a document above this is refused unread
  int max_depth = 200;  // containers within containers; the API server itself stops at 10,000
  // This counts values of all kinds, also containers, but not those that a filter leaves out. Two
  // bytes of text may become a value of forty bytes, so documents from any client need a bound.
  std::size_t max_values = std::numeric_limits<std::size_t>::max();
};

// This limit is for one object of the API. etcd bounds its text to 1.5 MB, which could become
// 750,000 values; a real JobSet of that size has 100,000.
inline constexpr JsonLimits kObjectLimits{.max_values = 300'000};

// Parses one document. Errors (kParse) name the byte offset: bad UTF-8, bad syntax, text after the
// document, depth, size, too many values, a number that is no finite double, and an object that has
// the same name twice. In parts that `filter` leaves out, only the depth and the ends of brackets
// and strings are checked. Linear in the text's length; never recurses with the input.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {},
                        const JsonFilter& filter = {});

// Returns compact text; members come sorted. `print_json(*parse_json(t))` is a canonical form of t.
std::string print_json(const Json& value);
// Returns the same over several lines, for people: hidden characters (visible_text.hh) are escaped.
std::string print_json_pretty(const Json& value);

// Returns the length of the well-formed UTF-8 sequence at the front of `text` (not empty), 0 for a
// malformed one.
std::size_t utf8_length(std::string_view text);
// Returns the offset of the first byte that begins no well-formed sequence of UTF-8, without
// surrogates and overlong forms; npos if there is none.
std::size_t find_bad_utf8(std::string_view text);
inline bool is_utf8(std::string_view text) {
  return find_bad_utf8(text) == std::string_view::npos;
}

}  // namespace kube
