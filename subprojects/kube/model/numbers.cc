#include "kube/model/numbers.hh"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>

namespace kube {

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, std::chars_format::general);
  if (result.ptr != end || result.ec == std::errc::invalid_argument) return std::nullopt;
  // from_chars does not distinguish too large from too small; strtod does, and is needed only then.
  if (result.ec != std::errc()) value = std::strtod(std::string(text).c_str(), nullptr);
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::string print_double(double value, DoubleStyle style) {
  const double smallest_fixed = style == DoubleStyle::kValue ? 1e-4 : 1e-6;
  const double size = std::fabs(value);
  const bool exponent = size != 0 && (size < smallest_fixed || size >= 1e21);
  char digits[64];
  const auto result =
      std::to_chars(std::begin(digits), std::end(digits), value,
                    exponent ? std::chars_format::scientific : std::chars_format::fixed);
  std::string text(digits, result.ptr);
  if (style == DoubleStyle::kLiteral && text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

}  // namespace kube
