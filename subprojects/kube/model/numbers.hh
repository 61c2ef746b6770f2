// Doubles become text in the same way for every format.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kube {

// Returns the nearest double to a decimal number without leading "+"; nullopt if the text is
// something else or beyond the largest double. Numbers too small for a double are 0.
std::optional<double> parse_double(std::string_view text);

enum class DoubleStyle {
  kValue,    // like Go's %v: "3", "0.25", "1e+21", "1e-05"
  kLiteral,  // like Go's JSON encoder, but never like an integer: "3.0", "0.25", "1e+21", "0.00001"
};

// Returns the shortest text that is read back as the same double. `value` must be finite.
std::string print_double(double value, DoubleStyle style);

}  // namespace kube
