// Counterparts in C++ of the CEL rules and the regular expressions that our schemas hold, for use
// where no API server is.
#pragma once

#include <optional>
#include <string_view>

#include "kube/model/json.hh"

namespace trainer {

// Whether `self`, which has the type its schema asks for, keeps the rule. Nothing for a rule
// without a counterpart: one that compares with the stored object, and those of OptimizationJob.
std::optional<bool> keeps_rule(std::string_view cel, const kube::Json& self);

// Whether the text matches a pattern of a schema, or nothing for a pattern without a counterpart.
std::optional<bool> matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace trainer
