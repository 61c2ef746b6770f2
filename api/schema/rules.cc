#include "api/schema/rules.hh"

#include <algorithm>
#include <array>
#include <utility>

namespace trainer {
namespace {

using kube::Json;

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

bool is_subdomain(std::string_view text) {
  while (true) {
    const std::string_view label =
        take(text, [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
    if (label.empty() || label.front() == '-' || label.back() == '-') return false;
    if (text.empty()) return true;
    if (!take_one_of(text, ".")) return false;
  }
}

bool is_condition_type(std::string_view text) {
  if (const auto slash = text.find('/'); slash != std::string_view::npos) {
    if (!is_subdomain(text.substr(0, slash))) return false;
    text.remove_prefix(slash + 1);
  }
  return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         all(text, [](char c) { return is_alphanumeric(c) || is_one_of(c, "-_."); });
}

// A number as JSON spells it.
bool is_json_number(std::string_view text) {
  take_one_of(text, "-");
  const std::string_view whole = take(text, is_digit);
  if (whole.empty() || (whole.size() > 1 && whole.front() == '0')) return false;
  if (take_one_of(text, ".") && take(text, is_digit).empty()) return false;
  if (text.empty()) return true;
  if (!take_one_of(text, "eE")) return false;
  take_one_of(text, "+-");
  return !take(text, is_digit).empty() && text.empty();
}

constexpr std::array kPatterns{
    std::pair<std::string_view, bool (*)(std::string_view)>{
        R"(^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|)"
        R"(([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$)",
        is_quantity},
    std::pair<std::string_view, bool (*)(std::string_view)>{
        "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", is_condition_reason},
    std::pair<std::string_view, bool (*)(std::string_view)>{
        R"(^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?)"
        R"((([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$)",
        is_condition_type},
    std::pair<std::string_view, bool (*)(std::string_view)>{
        R"(^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$)", is_json_number},
};

// A name that the API server has yet to generate is not judged.
bool has_dns_label_name(const Json& self) {
  const std::string_view name = self.find_path({"metadata"}) == nullptr
                                    ? std::string_view()
                                    : self.find("metadata")->get_string("name");
  if (name.empty()) return true;
  return is_lower(name.front()) && name.back() != '-' &&
         all(name, [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
}

bool has_short_name(const Json& self) {
  const Json* name = self.find_path({"metadata", "name"});
  return name == nullptr || !name->is_string() || name->as_string().size() <= 63;
}

bool is_uri_or_empty(const Json& self) {
  std::string_view text = self.as_string();
  if (text.empty()) return true;
  if (!is_letter(text.front())) return false;
  take(text, [](char c) { return is_alphanumeric(c) || is_one_of(c, "+.-"); });
  constexpr std::string_view kSeparator = "://";
  if (!text.starts_with(kSeparator)) return false;
  text.remove_prefix(kSeparator.size());
  return !text.empty() && text.find('\n') == std::string_view::npos;
}

bool is_positive(const Json& self) {
  return self.as_double() >= 1;
}

bool is_known_manager(const Json& self) {
  return self.as_string() == "trainer.kubeflow.org/trainjob-controller" ||
         self.as_string() == "kueue.x-k8s.io/multikueue";
}

bool has_last_updated_time(const Json& self) {
  return self.find("lastUpdatedTime") != nullptr;
}

bool has_one_policy_at_most(const Json& self) {
  int policies = 0;
  for (const char* name : {"torch", "mpi", "jax", "xgboost", "flux"})
    if (self.find(name) != nullptr) ++policies;
  return policies <= 1;
}

bool has_no_main_container(const Json& self) {
  return std::none_of(self.as_array().begin(), self.as_array().end(),
                      [](const Json& name) { return name == Json("node"); });
}

bool has_one_startup_order(const Json& self) {
  const Json* policy = self.find("startupPolicy");
  if (policy == nullptr || policy->get_string("startupPolicyOrder") != "InOrder") return true;
  // A rule that cannot be evaluated counts as broken, and this one needs the list.
  if (self.find("replicatedJobs") == nullptr) return false;
  const Json::Array& jobs = self.get_array("replicatedJobs");
  return std::none_of(jobs.begin(), jobs.end(),
                      [](const Json& job) { return job.find("dependsOn") != nullptr; });
}

bool has_claims_without_namespace(const Json& self) {
  if (self.find("templates") == nullptr) return false;
  const Json::Array& claims = self.get_array("templates");
  return std::all_of(claims.begin(), claims.end(), [](const Json& claim) {
    const Json* metadata = claim.find("metadata");
    return metadata != nullptr && metadata->get_string("namespace").empty();
  });
}

constexpr std::array kRules{
    std::pair<std::string_view, bool (*)(const Json&)>{
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')", has_dns_label_name},
    std::pair<std::string_view, bool (*)(const Json&)>{"size(self.metadata.name) <= 63",
                                                       has_short_name},
    std::pair<std::string_view, bool (*)(const Json&)>{
        "self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')", is_uri_or_empty},
    std::pair<std::string_view, bool (*)(const Json&)>{"self >= 1", is_positive},
    std::pair<std::string_view, bool (*)(const Json&)>{
        "self in ['trainer.kubeflow.org/trainjob-controller', 'kueue.x-k8s.io/multikueue']",
        is_known_manager},
    std::pair<std::string_view, bool (*)(const Json&)>{"has(self.lastUpdatedTime)",
                                                       has_last_updated_time},
    std::pair<std::string_view, bool (*)(const Json&)>{
        "[has(self.torch), has(self.mpi), has(self.jax), has(self.xgboost),has(self.flux)]"
        ".filter(x, x).size() <= 1",
        has_one_policy_at_most},
    std::pair<std::string_view, bool (*)(const Json&)>{"!self.exists(c, c == 'node')",
                                                       has_no_main_container},
    std::pair<std::string_view, bool (*)(const Json&)>{
        "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' && "
        "self.replicatedJobs.exists(x, has(x.dependsOn)))",
        has_one_startup_order},
    std::pair<std::string_view, bool (*)(const Json&)>{
        "self.templates.all(t, !has(t.metadata.namespace) || size(t.metadata.namespace) == 0)",
        has_claims_without_namespace},
};

// "!has(self.NAME)", the form of every rule about a removed field.
std::optional<std::string_view> removed_member(std::string_view cel) {
  constexpr std::string_view kBefore = "!has(self.";
  if (!cel.starts_with(kBefore) || !cel.ends_with(')')) return std::nullopt;
  const std::string_view name = cel.substr(kBefore.size(), cel.size() - kBefore.size() - 1);
  return all(name, is_alphanumeric) ? std::optional(name) : std::nullopt;
}

}  // namespace

std::optional<bool> keeps_rule(std::string_view cel, const Json& self) {
  if (const auto name = removed_member(cel)) return self.find(*name) == nullptr;
  for (const auto& [text, holds] : kRules)
    if (text == cel) return holds(self);
  return std::nullopt;
}

std::optional<bool> matches_pattern(std::string_view pattern, std::string_view text) {
  for (const auto& [regex, matches] : kPatterns)
    if (regex == pattern) return matches(text);
  return std::nullopt;
}

}  // namespace trainer
