// Doubles as text, the same way for every format.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kube {

// The nearest double to a decimal number without leading "+"; nullopt where the text is something
// else or beyond the largest double. Numbers too small for a double are 0.
std::optional<double> parse_double(std::string_view text);

enum class DoubleStyle {
  kValue,    // as Go's %v: "3", "0.25", "1e+21", "1e-05"
  kLiteral,  // as Go's JSON encoder, but always recognisable as no integer: "3.0", "0.25", "1e+21",
             // "0.00001"
};

// The shortest text that reads back as the same double. `value` must be finite.
std::string print_double(double value, DoubleStyle style);

}  // namespace kube
