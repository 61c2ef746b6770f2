// Where a text stops being UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace kube {

// The offset of the first byte that begins no well-formed sequence; npos when there is none.
std::size_t find_bad_utf8(std::string_view text);

}  // namespace kube
