#include "api/describe/patterns.hh"

#include <algorithm>

namespace trainer::wire {
namespace {

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z');
}
bool is_alphanumeric(char c) {
  return is_letter(c) || is_digit(c);
}
bool is_one_of(char c, std::string_view set) {
  return set.find(c) != std::string_view::npos;
}

template <class Predicate>
bool all(std::string_view text, Predicate holds) {
  return std::all_of(text.begin(), text.end(), holds);
}

// Takes the longest prefix of characters that `holds` accepts.
template <class Predicate>
std::string_view take(std::string_view& text, Predicate holds) {
  std::size_t length = 0;
  while (length < text.size() && holds(text[length])) ++length;
  const std::string_view taken = text.substr(0, length);
  text.remove_prefix(length);
  return taken;
}

bool take_one_of(std::string_view& text, std::string_view set) {
  if (text.empty() || !is_one_of(text.front(), set)) return false;
  text.remove_prefix(1);
  return true;
}

// digits[.digits] or .digits
bool take_decimal(std::string_view& text) {
  const bool has_whole = !take(text, is_digit).empty();
  if (!take_one_of(text, ".")) return has_whole;
  return !take(text, is_digit).empty() || has_whole;
}

bool is_subdomain(std::string_view text) {
  while (true) {
    const std::string_view label =
        take(text, [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
    if (label.empty() || label.front() == '-' || label.back() == '-') return false;
    if (text.empty()) return true;
    if (!take_one_of(text, ".")) return false;
  }
}

}  // namespace

bool is_quantity(std::string_view text) {
  take_one_of(text, "+-");
  if (!take_decimal(text)) return false;
  if (text.empty()) return true;
  if (text.size() == 2 && text[1] == 'i') return is_one_of(text[0], "KMGTPE");
  if (text.size() == 1) return is_one_of(text[0], "numkMGTPE");
  if (!take_one_of(text, "eE")) return false;
  take_one_of(text, "+-");
  return take_decimal(text) && text.empty();
}

bool is_condition_reason(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         all(text, [](char c) { return is_alphanumeric(c) || is_one_of(c, "_,:"); }) &&
         (is_alphanumeric(text.back()) || text.back() == '_');
}

bool is_condition_type(std::string_view text) {
  if (const auto slash = text.find('/'); slash != std::string_view::npos) {
    if (!is_subdomain(text.substr(0, slash))) return false;
    text.remove_prefix(slash + 1);
  }
  return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         all(text, [](char c) { return is_alphanumeric(c) || is_one_of(c, "-_."); });
}

bool is_dns_label(std::string_view text) {
  return !text.empty() && is_lower(text.front()) && text.back() != '-' &&
         all(text, [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
}

bool is_uri(std::string_view text) {
  if (text.empty() || !is_letter(text.front())) return false;
  take(text, [](char c) { return is_alphanumeric(c) || is_one_of(c, "+.-"); });
  constexpr std::string_view kSeparator = "://";
  if (!text.starts_with(kSeparator)) return false;
  text.remove_prefix(kSeparator.size());
  return !text.empty() && text.find('\n') == std::string_view::npos;
}

}  // namespace trainer::wire
