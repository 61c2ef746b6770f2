// Texts of bounded length: what others wrote must fit into a status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace trainer {

// The first or the last `limit` bytes at most, cut between characters.
std::string keep_head(std::string_view text, std::size_t limit);
std::string keep_tail(std::string_view text, std::size_t limit);

// ASCII letters only.
std::string to_lower(std::string_view text);

// "1 pod", "3 pods"; the plural ends in "s".
std::string count_of(std::int64_t count, std::string_view noun);

}  // namespace trainer
