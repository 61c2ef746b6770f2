#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "kube/model/names.hh"
#include "kube/model/pod_checks.hh"

namespace kube {
namespace {

void check_key(std::string_view key, const std::string& path, FieldErrors& errors) {
  for (std::string& problem : qualified_name_problems(key))
    errors.push_back(invalid(path, key, std::move(problem)));
}

void check_expression(const Json& expression, const std::string& path, FieldErrors& errors) {
  const std::string_view word = expression.get_string("operator");
  const std::size_t values = expression.get_array("values").size();
  const std::string values_path = join_field(path, "values");
  if (word == "In" || word == "NotIn") {
    if (values == 0)
      errors.push_back(
          required(values_path, "must be specified when `operator` is 'In' or 'NotIn'"));
  } else if (word == "Exists" || word == "DoesNotExist") {
    if (values > 0)
      errors.push_back(forbidden(
          values_path, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
  } else if (word == "Gt" || word == "Lt") {
    if (values != 1)
      errors.push_back(
          required(values_path, "must be specified single value when `operator` is 'Lt' or 'Gt'"));
  } else {
    errors.push_back(invalid(join_field(path, "operator"), word,
                             "not a valid selector operator: write In, NotIn, Exists, "
                             "DoesNotExist, Gt or Lt"));
  }
  check_key(expression.get_string("key"), join_field(path, "key"), errors);
}

void check_term(const Json& term, const std::string& path, FieldErrors& errors) {
  const auto& expressions = term.get_array("matchExpressions");
  for (std::size_t i = 0; i < expressions.size(); ++i)
    check_expression(expressions[i], join_index(join_field(path, "matchExpressions"), i), errors);
}

void check_weight(const Json& item, const std::string& path, FieldErrors& errors) {
  const std::int64_t weight = item.get_int("weight");
  if (weight < 1 || weight > 100)
    errors.push_back(invalid(join_field(path, "weight"), weight, "must be in the range 1-100"));
}

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

void check_node_affinity(const Json& affinity, const std::string& path, FieldErrors& errors) {
  if (const Json* needed = affinity.find(kRequired); needed != nullptr && needed->is_object()) {
    const std::string at = join_field(join_field(path, kRequired), "nodeSelectorTerms");
    const auto& terms = needed->get_array("nodeSelectorTerms");
    if (terms.empty()) errors.push_back(required(at, "must have at least one node selector term"));
    for (std::size_t i = 0; i < terms.size(); ++i) check_term(terms[i], join_index(at, i), errors);
  }
  const auto& preferred = affinity.get_array(kPreferred);
  for (std::size_t i = 0; i < preferred.size(); ++i) {
    const std::string at = join_index(join_field(path, kPreferred), i);
    check_weight(preferred[i], at, errors);
    check_term(preferred[i].get("preference"), join_field(at, "preference"), errors);
  }
}

void check_topology_key(const Json& item, const std::string& path, FieldErrors& errors) {
  const std::string_view key = item.get_string("topologyKey");
  const std::string at = join_field(path, "topologyKey");
  if (key.empty()) return errors.push_back(required(at, "can not be empty"));
  check_key(key, at, errors);
}

// Of podAffinity and podAntiAffinity.
void check_pod_affinity(const Json& affinity, const std::string& path, FieldErrors& errors) {
  const auto& needed = affinity.get_array(kRequired);
  for (std::size_t i = 0; i < needed.size(); ++i)
    check_topology_key(needed[i], join_index(join_field(path, kRequired), i), errors);
  const auto& preferred = affinity.get_array(kPreferred);
  for (std::size_t i = 0; i < preferred.size(); ++i) {
    const std::string at = join_index(join_field(path, kPreferred), i);
    check_weight(preferred[i], at, errors);
    check_topology_key(preferred[i].get("podAffinityTerm"), join_field(at, "podAffinityTerm"),
                       errors);
  }
}

void check_toleration(const Json& toleration, const std::string& path, FieldErrors& errors) {
  const std::string_view key = toleration.get_string("key");
  const std::string_view word = toleration.get_string("operator");
  const std::string_view value = toleration.get_string("value");
  const std::string operator_path = join_field(path, "operator");
  if (!key.empty()) check_key(key, join_field(path, "key"), errors);
  if (key.empty() && word != "Exists")
    errors.push_back(invalid(operator_path, word,
                             "operator must be Exists when `key` is empty, which means \"match all "
                             "values and all keys\""));
  const std::string_view effect = toleration.get_string("effect");
  if (toleration.get("tolerationSeconds").is_int() && effect != "NoExecute")
    errors.push_back(invalid(join_field(path, "effect"), effect,
                             "effect must be 'NoExecute' when `tolerationSeconds` is set"));
  if (word.empty() || word == "Equal") {
    for (std::string& problem : label_value_problems(value))
      errors.push_back(invalid(operator_path, value, std::move(problem)));
  } else if (word == "Exists" && !value.empty()) {
    errors.push_back(
        invalid(operator_path, value, "value must be empty when `operator` is 'Exists'"));
  }
  // The last two are of Kubernetes 1.35.
  check_word(toleration, "operator", path, {"Equal", "Exists", "Gt", "Lt"}, errors);
  check_word(toleration, "effect", path, {"NoSchedule", "PreferNoSchedule", "NoExecute"}, errors);
}

void check_gates(const Json& spec, std::string_view path, FieldErrors& errors) {
  std::set<std::string_view> names;
  const auto& gates = spec.get_array("schedulingGates");
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const std::string at = join_index(join_field(path, "schedulingGates"), i);
    const std::string_view name = gates[i].get_string("name");
    check_key(name, at, errors);
    if (!names.insert(name).second) errors.push_back(duplicate(at, name));
  }
}

void check_spread(const Json& spec, std::string_view path, FieldErrors& errors) {
  const auto& constraints = spec.get_array("topologySpreadConstraints");
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    const std::string at = join_index(join_field(path, "topologySpreadConstraints"), i);
    if (constraints[i].get_int("maxSkew") < 1)
      errors.push_back(invalid(join_field(at, "maxSkew"), constraints[i].get_int("maxSkew"),
                               "must be greater than zero"));
    check_topology_key(constraints[i], at, errors);
    check_word(constraints[i], "whenUnsatisfiable", at, {"DoNotSchedule", "ScheduleAnyway"},
               errors);
  }
}

}  // namespace

void check_pod_placement(const Json& spec, std::string_view path, FieldErrors& errors) {
  for (FieldError& error : label_errors(join_field(path, "nodeSelector"), spec.get("nodeSelector")))
    errors.push_back(std::move(error));
  const Json& affinity = spec.get("affinity");
  const std::string at = join_field(path, "affinity");
  check_node_affinity(affinity.get("nodeAffinity"), join_field(at, "nodeAffinity"), errors);
  for (const char* name : {"podAffinity", "podAntiAffinity"})
    check_pod_affinity(affinity.get(name), join_field(at, name), errors);
  const auto& tolerations = spec.get_array("tolerations");
  for (std::size_t i = 0; i < tolerations.size(); ++i)
    check_toleration(tolerations[i], join_index(join_field(path, "tolerations"), i), errors);
  check_spread(spec, path, errors);
  check_gates(spec, path, errors);
}

}  // namespace kube
