// Whether a failure message holds a pattern that a user wrote. RE2, so that no pattern can take
// more than linear time, and because its syntax is what the field promises.
#pragma once

#include <string>
#include <vector>

namespace trainer::jobset {

// Found anywhere in the text. A pattern that is no regular expression finds nothing.
bool finds_any(const std::vector<std::string>& patterns, const std::string& text);

}  // namespace trainer::jobset
