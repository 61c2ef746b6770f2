// Texts of bounded length, since what others wrote must fit into a status, and numbers in texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kube/model/text.hh"

namespace trainer {

// The first or the last `limit` bytes at most, cut between characters, as kube::visible_text().
std::string keep_head(std::string_view text, std::size_t limit);
std::string keep_tail(std::string_view text, std::size_t limit);

using kube::to_lower;

// As kube::parse_number(), of a number that is not negative.
std::optional<std::int32_t> parse_unsigned(std::string_view text);

// "1 pod", "3 pods"; the plural ends in "s".
std::string count_of(std::int64_t count, std::string_view noun);

}  // namespace trainer
