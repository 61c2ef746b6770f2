#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "kube/model/check_items.hh"
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
  check_items(term, "matchExpressions", path, errors,
              [&](const Json& item, const std::string& at) { check_expression(item, at, errors); });
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
    if (needed->get_array("nodeSelectorTerms").empty())
      errors.push_back(required(at, "must have at least one node selector term"));
    check_items(*needed, "nodeSelectorTerms", join_field(path, kRequired), errors,
                [&](const Json& item, const std::string& of) { check_term(item, of, errors); });
  }
  check_items(affinity, kPreferred, path, errors, [&](const Json& item, const std::string& at) {
    check_weight(item, at, errors);
    check_term(item.get("preference"), join_field(at, "preference"), errors);
  });
}

void check_topology_key(const Json& item, const std::string& path, FieldErrors& errors) {
  const std::string_view key = item.get_string("topologyKey");
  const std::string at = join_field(path, "topologyKey");
  if (key.empty()) return errors.push_back(required(at, "can not be empty"));
  check_key(key, at, errors);
}

// Checks podAffinity and podAntiAffinity.
void check_pod_affinity(const Json& affinity, const std::string& path, FieldErrors& errors) {
  check_items(affinity, kRequired, path, errors, [&](const Json& item, const std::string& at) {
    check_topology_key(item, at, errors);
  });
  check_items(affinity, kPreferred, path, errors, [&](const Json& item, const std::string& at) {
    check_weight(item, at, errors);
    check_topology_key(item.get("podAffinityTerm"), join_field(at, "podAffinityTerm"), errors);
  });
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
  // Kubernetes 1.35 has added the last two.
  check_word(toleration, "operator", path, {"Equal", "Exists", "Gt", "Lt"}, errors);
  check_word(toleration, "effect", path, {"NoSchedule", "PreferNoSchedule", "NoExecute"}, errors);
}

void check_gates(const Json& spec, std::string_view path, FieldErrors& errors) {
  std::set<std::string_view> names;
  check_items(spec, "schedulingGates", path, errors, [&](const Json& gate, const std::string& at) {
    const std::string_view name = gate.get_string("name");
    check_key(name, at, errors);
    if (!names.insert(name).second) errors.push_back(duplicate(at, name));
  });
}

void check_spread(const Json& spec, std::string_view path, FieldErrors& errors) {
  check_items(
      spec, "topologySpreadConstraints", path, errors,
      [&](const Json& item, const std::string& at) {
        if (item.get_int("maxSkew") < 1)
          errors.push_back(invalid(join_field(at, "maxSkew"), item.get_int("maxSkew"),
                                   "must be greater than zero"));
        check_topology_key(item, at, errors);
        check_word(item, "whenUnsatisfiable", at, {"DoNotSchedule", "ScheduleAnyway"}, errors);
      });
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
  check_items(spec, "tolerations", path, errors,
              [&](const Json& item, const std::string& of) { check_toleration(item, of, errors); });
  check_spread(spec, path, errors);
  check_gates(spec, path, errors);
}

}  // namespace kube
