// Texts of other users are cut to bounded length, since they must fit into a status. Numbers are
// read from texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kube/model/text.hh"
#include "kube/model/visible_text.hh"

namespace trainer {

using kube::keep_head;
using kube::keep_tail;
using kube::to_lower;

// This is kube::parse_number() for a number that is not negative.
std::optional<std::int32_t> parse_unsigned(std::string_view text);

// Returns "1 pod" or "3 pods"; the plural ends in "s".
std::string count_of(std::int64_t count, std::string_view noun);

}  // namespace trainer
