#include "kube/model/names.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "kube/model/check_items.hh"
#include "kube/model/text.hh"

namespace kube {
namespace {

// The messages quote upstream's regular expressions, since users search for them; the checks below
// are written out, which is faster than <regex> and cannot overflow the stack on a long name.

constexpr std::size_t kLabelLimit = 63;
constexpr std::size_t kSubdomainLimit = 253;
constexpr std::size_t kAnnotationsLimit = 256U << 10;  // bytes of all keys and values

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_lower_alnum(char c) {
  return is_lower(c) || is_digit(c);
}
bool is_alnum(char c) {
  return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

bool matches_label(std::string_view name) {
  return !name.empty() && is_lower_alnum(name.front()) && is_lower_alnum(name.back()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_lower_alnum(c) || c == '-'; });
}

bool matches_subdomain(std::string_view name) {
  for (;;) {
    const std::size_t dot = name.find('.');
    if (!matches_label(name.substr(0, dot))) return false;
    if (dot == name.npos) return true;
    name.remove_prefix(dot + 1);
  }
}

bool matches_qualified(std::string_view name) {
  return !name.empty() && is_alnum(name.front()) && is_alnum(name.back()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

std::string mismatch(std::string_view rule, std::string_view regex,
                     std::initializer_list<std::string_view> examples) {
  std::string text(rule);
  text += " (";  // upstream has two spaces between examples
  for (const auto example : examples)
    text += fmt::format("{}'{}', ", example == *examples.begin() ? "e.g. " : " or ", example);
  return text + fmt::format("regex used for validation is '{}')", regex);
}

std::string join(const std::vector<std::string>& messages) {
  return fmt::format("{}", fmt::join(messages, ", "));
}

std::vector<std::string> problems_of(std::string_view name, std::size_t limit,
                                     std::string mismatched) {
  std::vector<std::string> problems;
  if (name.size() > limit)
    problems.push_back(fmt::format("must be no more than {} characters", limit));
  if (!mismatched.empty()) problems.push_back(std::move(mismatched));
  return problems;
}

// Upstream's decoder refuses these before any rule. Most are numbers and booleans without quotes.
bool is_text(std::string_view path, std::string_view key, const Json& value, FieldErrors& errors) {
  if (value.is_string() || value.is_null()) return true;
  errors.push_back(
      {FieldError::Type::kTypeInvalid, join_field(path, key), value,
       fmt::format("must be of type string, found {}: write it in quotes", value.type_name())});
  return false;
}

}  // namespace

std::vector<std::string> dns1123_label_problems(std::string_view name) {
  if (matches_label(name)) return problems_of(name, kLabelLimit, "");
  return problems_of(
      name, kLabelLimit,
      matches_subdomain(name)
          ? "must not contain dots"
          : mismatch("a lowercase RFC 1123 label must consist of lower case alphanumeric "
                     "characters or '-', and must start and end with an alphanumeric character",
                     "[a-z0-9]([-a-z0-9]*[a-z0-9])?", {"my-name", "123-abc"}));
}

std::vector<std::string> dns1123_subdomain_problems(std::string_view name) {
  if (matches_subdomain(name)) return problems_of(name, kSubdomainLimit, "");
  return problems_of(
      name, kSubdomainLimit,
      mismatch("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
               "'-' or '.', and must start and end with an alphanumeric character",
               "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
               {"example.com"}));
}

std::vector<std::string> label_value_problems(std::string_view value) {
  if (value.empty() || matches_qualified(value)) return problems_of(value, kLabelLimit, "");
  return problems_of(
      value, kLabelLimit,
      mismatch("a valid label must be an empty string or consist of alphanumeric characters, '-', "
               "'_' or '.', and must start and end with an alphanumeric character",
               "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", {"MyValue", "my_value", "12345"}));
}

std::vector<std::string> qualified_name_problems(std::string_view key) {
  static const std::string kRule = mismatch(
      "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
      "alphanumeric character",
      "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", {"MyName", "my.name", "123-abc"});
  std::vector<std::string> problems;
  if (const std::size_t slash = key.find('/'); slash != key.npos) {
    if (key.find('/', slash + 1) != key.npos)
      return {"a qualified name " + kRule +
              " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"};
    const std::string_view prefix = key.substr(0, slash);
    if (prefix.empty()) {
      problems.emplace_back("prefix part must be non-empty");
    } else {
      for (const std::string& problem : dns1123_subdomain_problems(prefix))
        problems.push_back("prefix part " + problem);
    }
    key.remove_prefix(slash + 1);
  }
  if (key.empty()) {
    problems.emplace_back("name part must be non-empty");
    return problems;
  }
  for (const std::string& problem :
       problems_of(key, kLabelLimit, matches_qualified(key) ? "" : kRule))
    problems.push_back("name part " + problem);
  return problems;
}

FieldErrors label_errors(std::string_view path, const Json& labels) {
  FieldErrors errors;
  if (!labels.is_object()) return errors;
  for (const auto& [key, value] : labels.as_object()) {
    if (errors.size() >= kMaxErrors) break;
    for (std::string& problem : qualified_name_problems(key))
      errors.push_back(invalid(std::string(path), key, std::move(problem)));
    if (!is_text(path, key, value, errors) || value.is_null()) continue;
    for (std::string& problem : label_value_problems(value.as_string()))
      errors.push_back(invalid(std::string(path), value, std::move(problem)));
  }
  return errors;
}

FieldErrors annotation_errors(std::string_view path, const Json& annotations) {
  FieldErrors errors;
  if (!annotations.is_object()) return errors;
  std::size_t size = 0;
  for (const auto& [key, value] : annotations.as_object()) {
    size += key.size() + (value.is_string() ? value.as_string().size() : 0);
    if (errors.size() >= kMaxErrors) continue;
    // The API server accepts prefixes in any case here.
    for (std::string& problem : qualified_name_problems(to_lower(key)))
      errors.push_back(invalid(std::string(path), key, std::move(problem)));
    is_text(path, key, value, errors);
  }
  if (size > kAnnotationsLimit) errors.push_back(too_long(std::string(path), kAnnotationsLimit));
  return errors;
}

void check_labels_and_annotations(const Json& metadata, std::string_view path,
                                  FieldErrors& errors) {
  for (FieldErrors& found :
       std::array{label_errors(join_field(path, "labels"), metadata.get("labels")),
                  annotation_errors(join_field(path, "annotations"), metadata.get("annotations"))})
    std::ranges::move(found, std::back_inserter(errors));
}

FieldErrors domain_prefixed_path_errors(std::string_view path, std::string_view value) {
  if (value.empty()) return {required(std::string(path), "")};
  const std::size_t slash = value.find('/');
  if (slash == value.npos || slash == 0 || slash + 1 == value.size()) {
    return {invalid(std::string(path), value,
                    "must be a domain-prefixed path (such as \"acme.io/foo\")")};
  }
  FieldErrors errors;
  const std::string_view host = value.substr(0, slash);
  for (std::string& problem : dns1123_subdomain_problems(host))
    errors.push_back(invalid(std::string(path), host, std::move(problem)));
  const std::string_view rest = value.substr(slash + 1);
  constexpr std::string_view kMarks = "/-._~%!$&'()*+,;=:";
  const auto is_allowed = [&](char c) { return is_alnum(c) || kMarks.find(c) != kMarks.npos; };
  if (!std::all_of(rest.begin(), rest.end(), is_allowed))
    errors.push_back(invalid(std::string(path), rest,
                             mismatch("Invalid path", "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+", {})));
  return errors;
}

std::string check_dns1123_label(std::string_view name) {
  return join(dns1123_label_problems(name));
}
std::string check_dns1123_subdomain(std::string_view name) {
  return join(dns1123_subdomain_problems(name));
}
std::string check_dns1035_label(std::string_view name) {
  if (matches_label(name) && is_lower(name.front()))
    return join(problems_of(name, kLabelLimit, ""));
  return join(problems_of(
      name, kLabelLimit,
      mismatch("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start "
               "with an alphabetic character, and end with an alphanumeric character",
               "[a-z]([-a-z0-9]*[a-z0-9])?", {"my-name", "abc-123"})));
}
std::string check_label_value(std::string_view value) {
  return join(label_value_problems(value));
}

std::string check_domain_prefixed_path(std::string_view value) {
  std::vector<std::string> problems;
  for (FieldError& error : domain_prefixed_path_errors("", value))
    problems.push_back(error.detail.empty() ? "must be set" : std::move(error.detail));
  return join(problems);
}

}  // namespace kube
