#include "kube/model/yaml_scalar.hh"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

#include "kube/model/json_text.hh"
#include "kube/model/numbers.hh"

namespace kube {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

template <std::size_t N>
bool is_one_of(std::string_view text, const std::string_view (&words)[N]) {
  return std::ranges::find(words, text) != std::end(words);
}

std::optional<Json> resolve_word(std::string_view text) {
  static constexpr std::string_view kNull[] = {"", "~", "null", "Null", "NULL"};
  static constexpr std::string_view kTrue[] = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                               "True", "TRUE", "on",  "On",  "ON"};
  static constexpr std::string_view kFalse[] = {"n",     "N",     "no",  "No",  "NO", "false",
                                                "False", "FALSE", "off", "Off", "OFF"};
  static constexpr std::string_view kInfinity[] = {".inf",  ".Inf",  ".INF",
                                                   "+.inf", "+.Inf", "+.INF"};
  static constexpr std::string_view kMinusInfinity[] = {"-.inf", "-.Inf", "-.INF"};
  static constexpr std::string_view kNan[] = {".nan", ".NaN", ".NAN"};
  if (is_one_of(text, kNull)) return Json();
  if (is_one_of(text, kTrue)) return Json(true);
  if (is_one_of(text, kFalse)) return Json(false);
  if (is_one_of(text, kInfinity)) return Json(std::numeric_limits<double>::infinity());
  if (is_one_of(text, kMinusInfinity)) return Json(-std::numeric_limits<double>::infinity());
  if (is_one_of(text, kNan)) return Json(std::numeric_limits<double>::quiet_NaN());
  return std::nullopt;
}

// Takes the prefix that chooses the base off the digits; strconv.ParseInt does the same for base 0.
int take_base(std::string_view& digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  const char letter = static_cast<char>(digits[1] | 0x20);
  digits.remove_prefix(letter == 'x' || letter == 'b' || letter == 'o' ? 2 : 1);
  return letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
}

std::optional<Json> resolve_integer(std::string_view text) {
  const bool negative = text.front() == '-';
  const bool is_signed = negative || text.front() == '+';
  if (is_signed) text.remove_prefix(1);
  const int base = take_base(text);
  std::uint64_t magnitude = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, magnitude, base);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;

  constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
  if (negative && magnitude <= kLargest + 1) return Json(static_cast<std::int64_t>(~magnitude + 1));
  if (!negative && magnitude <= kLargest) return Json(static_cast<std::int64_t>(magnitude));
  if (!is_signed) return Json(static_cast<double>(magnitude));
  return std::nullopt;
}

// The pattern is [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
std::optional<Json> resolve_float(std::string_view text) {
  if (text.front() == '+') text.remove_prefix(text.starts_with("+-") ? 0 : 1);
  const auto value = parse_double(text);
  return value ? std::optional<Json>(*value) : std::nullopt;
}

}  // namespace

Json resolve_plain_scalar(std::string_view text) {
  if (const auto word = resolve_word(text)) return *word;
  const char first = text.front();
  if (first == '.') {
    if (const auto real = resolve_float(text)) return *real;
  } else if (first == '+' || first == '-' || is_digit(first)) {
    std::string digits(text);
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    if (const auto integer = resolve_integer(digits)) return *integer;
    if (const auto real = resolve_float(digits)) return *real;
  }
  return Json(text);
}

Result<Json> resolve_tagged_scalar(std::string_view tag, std::string_view text) {
  constexpr std::string_view kPrefix = "tag:yaml.org,2002:";
  if (tag.substr(0, kPrefix.size()) != kPrefix) return Json(text);
  tag.remove_prefix(kPrefix.size());
  if (tag == "binary") {
    return fail(ErrorCode::kParse,
                "!!binary has no form in JSON; write the base64 text without the tag");
  }
  Json value = resolve_plain_scalar(text);
  if (tag == "float" && value.is_int()) return Json(value.as_double());
  const bool fits = tag == "int"     ? value.is_int()
                    : tag == "float" ? value.is_double()
                    : tag == "bool"  ? value.is_bool()
                    : tag == "null"  ? value.is_null()
                                     : true;
  if (!fits) {
    return fail(ErrorCode::kParse, "{} is no !!{}; write a value that is, or leave the tag away",
                print_json(text), tag);
  }
  const bool typed = tag == "int" || tag == "float" || tag == "bool" || tag == "null";
  return typed ? value : Json(text);
}

Result<Json> as_json_number(Json value) {
  if (!value.is_double()) return value;
  const double number = value.as_double();
  if (!std::isfinite(number)) {
    return fail(ErrorCode::kParse,
                "infinity and NaN have no form in JSON; quote the text if a string is meant");
  }
  if (number == std::floor(number) && std::fabs(number) < 0x1p63)
    return Json(static_cast<std::int64_t>(number));
  return value;
}

std::optional<std::string> member_name(const Json& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_int()) return std::to_string(value.as_int());
  if (!value.is_double()) return std::nullopt;
  const double number = value.as_double();
  if (std::isnan(number)) return ".nan";
  if (std::isinf(number)) return number > 0 ? ".inf" : "-.inf";
  // sigs.k8s.io/yaml prints such names with the precision of a float and %g.
  const auto single = static_cast<float>(number);
  const float size = std::fabs(single);
  const bool exponent = size != 0 && (size < 1e-4F || size >= 1e6F);
  char digits[64];
  const auto result =
      std::to_chars(std::begin(digits), std::end(digits), single,
                    exponent ? std::chars_format::scientific : std::chars_format::fixed);
  return std::string(digits, result.ptr);
}

bool is_plain_safe(std::string_view text) {
  if (text.empty() || text == "=" || text == "<<") return false;
  const char first = text.front();
  const bool is_word = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') ||
                       first == '/' || first == '_' || first == '$' || first == '(';
  // Readers differ most on texts that start like a number: dates, sexagesimals ("1:30"), versions
  // ("1_0").
  const bool is_numberlike = is_digit(first) || first == '.' || first == '-' || first == '+';
  if (!is_word && !is_numberlike) return false;
  constexpr std::string_view kOfNumbers = "0123456789abcdefABCDEFxXoOtTzZ+-.:_ ";
  if (is_numberlike && text.find_first_not_of(kOfNumbers) == text.npos) return false;
  const std::string_view start = text.substr(0, 3);
  if (start == "---" || start == "..." || text.substr(0, 2) == "- ") return false;
  if (text.find(": ") != text.npos || text.find(" #") != text.npos) return false;
  if (text.back() == ':' || text.back() == ' ') return false;
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return std::none_of(text.begin(), text.end(), is_control) &&
         resolve_plain_scalar(text).is_string();
}

}  // namespace kube
