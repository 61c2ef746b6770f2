// These functions find where strings and values of JSON text end, without decoding them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace kube {

inline bool is_json_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Returns the first byte from `at` on that a string must escape: a quotation mark, a backslash, a
// control character; `end` if there is none. Sixteen bytes are compared at a time.
const char* find_string_stop(const char* at, const char* end);
// Returns the end of the string whose opening quotation mark is before `at`; nullptr if it is not
// closed.
const char* find_string_end(const char* at, const char* end);
// Returns the end of the value that begins at `at`, found by its brackets and strings alone. The
// result is nullptr if the text ends before, or has more than `levels` containers within each
// other. A number or word ends before any other character.
const char* find_value_end(const char* at, const char* end,
                           int levels = std::numeric_limits<int>::max());

// Finds the same for a container whose text comes in pieces. It begins behind the opening bracket.
class ContainerEnd {
 public:
  explicit ContainerEnd(int levels = std::numeric_limits<int>::max()) : levels_(levels) {}

  // Returns how many bytes of the next piece belong to the container; nullopt if the container goes
  // on after this piece, or is too deep.
  std::optional<std::size_t> take(std::string_view piece);

 private:
  struct Marks;
  std::uint64_t escaped_by(std::uint64_t slashes, std::size_t first);
  std::optional<std::size_t> take_block(const char* at, std::size_t first);

  int levels_;
  int depth_ = 1;
  bool is_in_string_ = false;
  bool is_escaped_ = false;  // the next byte
};

}  // namespace kube
