#include "kube/server/selector.hh"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kube/model/text.hh"

namespace kube::server {
namespace {

constexpr std::string_view kOperators = "in, notin, =, ==, !=";

// Splits at commas that are not within parentheses.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

bool is_label_key(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == '/';
  });
}

// Objects of a kind are selected by these fields, besides name and namespace (the field label
// conversions of each API group of Kubernetes).
constexpr std::string_view kEventFields[] = {"involvedObject.kind",
                                             "involvedObject.namespace",
                                             "involvedObject.name",
                                             "involvedObject.uid",
                                             "involvedObject.apiVersion",
                                             "involvedObject.fieldPath",
                                             "involvedObject.resourceVersion",
                                             "reason",
                                             "reportingComponent",
                                             "source",
                                             "type",
                                             "regarding.kind",
                                             "regarding.namespace",
                                             "regarding.name",
                                             "regarding.uid"};
constexpr std::string_view kPodFields[] = {
    "spec.nodeName",    "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
    "spec.hostNetwork", "status.phase",       "status.podIP",       "status.nominatedNodeName"};

bool is_selectable(std::string_view path, const Resource& resource) {
  if (path == "metadata.name" || (path == "metadata.namespace" && resource.namespaced)) return true;
  const auto is_in = [path](const auto& list) {
    return std::find(std::begin(list), std::end(list), path) != std::end(list);
  };
  if (resource.kind == "Event") return is_in(kEventFields);
  if (resource.group.empty() && resource.kind == "Pod") return is_in(kPodFields);
  if (resource.group.empty() && resource.kind == "Namespace") return path == "status.phase";
  if (resource.group.empty() && resource.kind == "Node") return path == "spec.unschedulable";
  if (resource.group.empty() && resource.kind == "Secret") return path == "type";
  return resource.group == "batch" && path == "status.successful";
}

std::string text_at(const Json& object, std::string_view path) {
  const Json* at = &object;
  if (path == "source") path = "source.component";
  // A field that is absent has the zero of its type.
  const std::string_view zero = path == "spec.unschedulable" || path == "spec.hostNetwork" ? "false"
                                : path == "status.successful"                              ? "0"
                                                                                           : "";
  if (path == "status.successful") path = "status.succeeded";
  while (at != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    at = at->find(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  if (at == nullptr) return std::string(zero);
  if (at->is_string()) return at->as_string();
  if (at->is_bool()) return at->as_bool() ? "true" : "false";
  return at->is_int() ? std::to_string(at->as_int()) : std::string();
}

}  // namespace

bool Selector::Requirement::allows(const std::string_view* value) const {
  const bool is_listed =
      value != nullptr && std::find(values.begin(), values.end(), *value) != values.end();
  switch (op) {
    case Operator::kIn:
      return is_listed;
    case Operator::kNotIn:
      return !is_listed;
    case Operator::kExists:
      return value != nullptr;
    case Operator::kAbsent:
      return value == nullptr;
  }
  return false;
}

// Parses "a in (b,c)" or "a notin (b,c)"; `open` is the position of the parenthesis.
Result<Selector::Requirement> Selector::parse_set(std::string_view text, std::size_t open) {
  const std::string_view head = trimmed(text.substr(0, open));
  const std::size_t space = head.rfind(' ');
  const std::string_view op =
      space == std::string_view::npos ? std::string_view() : head.substr(space + 1);
  if ((op != "in" && op != "notin") || text.back() != ')')
    return fail(ErrorCode::kBadRequest, "unable to parse requirement: found '{}', expected: {}",
                text, kOperators);
  Requirement one;
  one.op = op == "in" ? Requirement::Operator::kIn : Requirement::Operator::kNotIn;
  one.key = trimmed(head.substr(0, space));
  for (const std::string_view value : split(text.substr(open + 1, text.size() - open - 2)))
    one.values.emplace_back(value);
  return one;
}

Result<Selector::Requirement> Selector::parse_label(std::string_view text) {
  if (const std::size_t open = text.find('('); open != std::string_view::npos)
    return parse_set(text, open);
  Requirement one;
  const std::size_t sign = text.find_first_of("=!", 1);
  if (sign == std::string_view::npos) {
    const bool is_absent = !text.empty() && text.front() == '!';
    one.op = is_absent ? Requirement::Operator::kAbsent : Requirement::Operator::kExists;
    one.key = trimmed(is_absent ? text.substr(1) : text);
    return one;
  }
  const std::size_t end = std::min(text.find_first_not_of("=!", sign), text.size());
  const std::string_view op = text.substr(sign, end - sign);
  if (op != "=" && op != "==" && op != "!=")
    return fail(ErrorCode::kBadRequest, "unable to parse requirement: found '{}', expected: {}", op,
                kOperators);
  one.op = op == "!=" ? Requirement::Operator::kNotIn : Requirement::Operator::kIn;
  one.key = trimmed(text.substr(0, sign));
  const std::string_view value = trimmed(text.substr(end));
  if (const std::size_t junk = value.find_first_of("=! "); junk != std::string_view::npos)
    return fail(ErrorCode::kBadRequest, "found '{}', expected: ',' or 'end of string'",
                trimmed(value.substr(junk)));
  one.values.emplace_back(value);
  return one;
}

Result<std::vector<Selector::Requirement>> Selector::parse_labels(std::string_view text) {
  std::vector<Requirement> all;
  if (trimmed(text).empty()) return all;
  for (const std::string_view part : split(text)) {
    auto one = parse_label(part);
    if (!one) return tl::unexpected(std::move(one.error()));
    if (!is_label_key(one->key))
      return fail(ErrorCode::kBadRequest,
                  "unable to parse requirement: found '{}', expected: identifier", one->key);
    all.push_back(std::move(*one));
  }
  return all;
}

Result<std::vector<Selector::Requirement>> Selector::parse_fields(std::string_view text,
                                                                  const Resource& resource) {
  std::vector<Requirement> all;
  if (trimmed(text).empty()) return all;
  for (const std::string_view part : split(text)) {
    const std::size_t sign = part.find('=');
    if (sign == std::string_view::npos || sign == 0)
      return fail(ErrorCode::kBadRequest, "invalid selector: '{}'; can't understand '{}'", text,
                  part);
    Requirement one;
    const bool is_unequal = part[sign - 1] == '!';
    one.op = is_unequal ? Requirement::Operator::kNotIn : Requirement::Operator::kIn;
    one.key = part.substr(0, is_unequal ? sign - 1 : sign);
    const bool is_double = !is_unequal && sign + 1 < part.size() && part[sign + 1] == '=';
    one.values.emplace_back(part.substr(sign + (is_double ? 2 : 1)));
    if (!is_selectable(one.key, resource) && resource.plural == "configmaps")
      return fail(ErrorCode::kBadRequest,
                  "\"{}\" is not a known field selector: only \"metadata.name\", "
                  "\"metadata.namespace\"",
                  one.key);
    if (!is_selectable(one.key, resource))
      return fail(ErrorCode::kBadRequest, "field label not supported: {}", one.key);
    all.push_back(std::move(one));
  }
  return all;
}

Result<Selector> Selector::parse(std::string_view labels, std::string_view fields,
                                 const Resource& resource) {
  Selector selector;
  auto of_labels = parse_labels(labels);
  if (!of_labels) return tl::unexpected(std::move(of_labels.error()));
  auto of_fields = parse_fields(fields, resource);
  if (!of_fields) return tl::unexpected(std::move(of_fields.error()));
  selector.labels_ = std::move(*of_labels);
  selector.fields_ = std::move(*of_fields);
  return selector;
}

bool Selector::matches(const Json& object) const {
  const Json& labels = object.get("metadata").get("labels");
  for (const Requirement& requirement : labels_) {
    const Json* label = labels.find(requirement.key);
    const bool is_text = label != nullptr && label->is_string();
    const std::string_view value = is_text ? std::string_view(label->as_string()) : "";
    if (!requirement.allows(is_text ? &value : nullptr)) return false;
  }
  return std::all_of(fields_.begin(), fields_.end(), [&object](const Requirement& requirement) {
    const std::string text = text_at(object, requirement.key);
    const std::string_view value = text;
    return requirement.allows(&value);
  });
}

}  // namespace kube::server
