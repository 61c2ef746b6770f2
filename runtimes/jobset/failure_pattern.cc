#include "runtimes/jobset/failure_pattern.hh"

#include <re2/re2.h>

#include <algorithm>

namespace trainer::jobset {

bool finds_any(const std::vector<std::string>& patterns, const std::string& text) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    const RE2 expression(pattern, RE2::Quiet);
    return expression.ok() && RE2::PartialMatch(text, expression);
  });
}

}  // namespace trainer::jobset
