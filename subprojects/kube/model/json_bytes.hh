// Where the strings and values of JSON text end, found without decoding them. Pure.
#pragma once

#include <limits>

namespace kube {

inline bool is_json_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// The first byte from `at` on that a string cannot hold as it is: a quotation mark, a backslash, a
// control character; `end` where there is none. Sixteen bytes go at a time.
const char* find_string_stop(const char* at, const char* end);
// The end of the string whose opening quotation mark is before `at`; nullptr where it is not
// closed.
const char* find_string_end(const char* at, const char* end);
// The end of the value that begins at `at`, judged by its brackets and strings alone; nullptr where
// the text breaks off before, or has more than `levels` containers within each other. A number or
// word ends where something else begins.
const char* find_value_end(const char* at, const char* end,
                           int levels = std::numeric_limits<int>::max());

}  // namespace kube
