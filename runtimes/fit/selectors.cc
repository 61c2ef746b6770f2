#include "runtimes/fit/selectors.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "kube/model/text.hh"

namespace trainer::fit {
namespace {

using kube::Json;
using Operator = Requirement::Operator;

constexpr std::pair<std::string_view, Operator> kOperators[] = {
    {"In", Operator::kIn},         {"NotIn", Operator::kNotIn},
    {"Exists", Operator::kExists}, {"DoesNotExist", Operator::kDoesNotExist},
    {"Gt", Operator::kGreater},    {"Lt", Operator::kLess},
};

std::vector<Requirement> read_requirements(const Json::Array& expressions) {
  std::vector<Requirement> all;
  for (const Json& each : expressions) all.push_back(Requirement::read(each));
  return all;
}

}  // namespace

Requirement Requirement::read(const Json& expression) {
  Requirement read;
  read.key = expression.get_string("key");
  for (const auto& [name, op] : kOperators)
    if (expression.get_string("operator") == name) read.op = op;
  for (const Json& value : expression.get_array("values"))
    if (value.is_string()) read.values.push_back(value.as_string());
  return read;
}

bool Requirement::allows(const std::string* value) const {
  const auto is_listed = [&] { return std::ranges::find(values, *value) != values.end(); };
  switch (op) {
    case Operator::kIn:
      return value != nullptr && is_listed();
    case Operator::kNotIn:
      return value == nullptr || !is_listed();
    case Operator::kExists:
      return value != nullptr;
    case Operator::kDoesNotExist:
      return value == nullptr;
    case Operator::kGreater:
    case Operator::kLess: {
      if (value == nullptr || values.size() != 1) return false;
      const auto has = kube::parse_number<std::int64_t>(*value);
      const auto bound = kube::parse_number<std::int64_t>(values[0]);
      return has && bound && (op == Operator::kGreater ? *has > *bound : *has < *bound);
    }
    case Operator::kUnknown:
      return false;
  }
  return false;
}

std::string Requirement::to_string() const {
  switch (op) {
    case Operator::kIn:
      if (values.size() == 1) return fmt::format("{}={}", key, values[0]);
      return fmt::format("{} in ({})", key, fmt::join(values, ", "));
    case Operator::kNotIn:
      return fmt::format("{} not in ({})", key, fmt::join(values, ", "));
    case Operator::kExists:
      return fmt::format("{} exists", key);
    case Operator::kDoesNotExist:
      return fmt::format("{} does not exist", key);
    case Operator::kGreater:
      return fmt::format("{} > {}", key, fmt::join(values, ", "));
    case Operator::kLess:
      return fmt::format("{} < {}", key, fmt::join(values, ", "));
    case Operator::kUnknown:
      return fmt::format("{} with an unknown operator", key);
  }
  return key;
}

bool match_all(const std::vector<Requirement>& requirements, const kube::StringMap& labels) {
  return std::ranges::all_of(requirements, [&labels](const Requirement& each) {
    const auto at = labels.find(each.key);
    return each.allows(at == labels.end() ? nullptr : &at->second);
  });
}

std::string print_all(const std::vector<Requirement>& requirements) {
  std::vector<std::string> texts;
  for (const Requirement& each : requirements) texts.push_back(each.to_string());
  return fmt::format("{}", fmt::join(texts, ", "));
}

LabelSelector LabelSelector::read(const Json& selector) {
  LabelSelector read;
  if (!selector.is_object()) return read;
  read.is_absent = false;
  for (const auto& [key, value] : selector.get_object("matchLabels"))
    if (value.is_string()) read.requirements.push_back({key, Operator::kIn, {value.as_string()}});
  auto more = read_requirements(selector.get_array("matchExpressions"));
  std::ranges::move(more, std::back_inserter(read.requirements));
  return read;
}

bool LabelSelector::matches(const kube::StringMap& labels) const {
  return !is_absent && match_all(requirements, labels);
}

NodeTerm NodeTerm::read(const Json& term) {
  return {read_requirements(term.get_array("matchExpressions")),
          read_requirements(term.get_array("matchFields"))};
}

bool NodeTerm::matches(const std::string& name, const kube::StringMap& node_labels) const {
  if (labels.empty() && fields.empty()) return false;
  return match_all(labels, node_labels) && match_all(fields, {{"metadata.name", name}});
}

}  // namespace trainer::fit
