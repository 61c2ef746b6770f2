// The one place that names the test framework's header, so that its next major version is a change
// of one file.
#pragma once

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kube::test {

// These are Catch2's matchers for a text that the test computes. Every text contains an empty one,
// so that is refused.
inline std::string not_empty(std::string_view part) {
  if (part.empty()) throw std::invalid_argument("the text to find is empty");
  return std::string(part);
}
inline auto contains(std::string_view part) {
  return Catch::Contains(not_empty(part));
}
inline auto starts_with(std::string_view part) {
  return Catch::StartsWith(not_empty(part));
}
inline auto ends_with(std::string_view part) {
  return Catch::EndsWith(not_empty(part));
}

}  // namespace kube::test
