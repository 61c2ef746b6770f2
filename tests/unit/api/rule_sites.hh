// The kinds whose rules are compared with the API server's, and the places of those rules.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/describe/schema_builder.hh"
#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer::test {

struct RuledKind {
  kube::Resource resource;
  const wire::Schema* schema;  // lives as long as the program
  kube::Json base;             // an object that the schema accepts
};

// All kinds, V1 jobs too.
const std::vector<RuledKind>& ruled_kinds();

// A value with a rule: its path in an object, its schema, and the rule.
struct RuleSite {
  std::vector<std::string> path;  // member names; "" is the first item of a list
  const kube::Json* schema;
  const kube::Json* rule;

  std::string_view cel() const { return rule->get_string("rule"); }
};

std::vector<RuleSite> find_rule_sites(const RuledKind& kind,
                                      const std::function<bool(std::string_view cel)>& is_wanted);

// The least value that the schema accepts.
kube::Json least_value(const kube::Json& schema);

// The value at the path, made where it is missing.
kube::Json& reach(kube::Json& object, const kube::Json& root, const std::vector<std::string>& path);

}  // namespace trainer::test
