// Selectors of labels are matched as apimachinery's labels package and the scheduler's node
// affinity match them. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json.hh"
#include "kube/model/meta.hh"

namespace trainer::fit {

struct Requirement {
  // An operator that Kubernetes does not know matches nothing.
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist, kGreater, kLess, kUnknown };

  std::string key;
  Operator op = Operator::kUnknown;
  std::vector<std::string> values;

  static Requirement read(const kube::Json& expression);
  // `value` is nullptr if there is no such label.
  bool allows(const std::string* value) const;
  // Returns "pool in (a, b)".
  std::string to_string() const;
  friend bool operator==(const Requirement&, const Requirement&) = default;
};

bool match_all(const std::vector<Requirement>& requirements, const kube::StringMap& labels);
std::string print_all(const std::vector<Requirement>& requirements);

// This is metav1.LabelSelector. A selector that is absent matches nothing, an empty one everything.
struct LabelSelector {
  bool is_absent = true;
  std::vector<Requirement> requirements;

  static LabelSelector read(const kube::Json& selector);
  bool matches(const kube::StringMap& labels) const;
  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

// This is one of the terms of a NodeSelector, of which one must match. A term without requirements
// matches no node.
struct NodeTerm {
  std::vector<Requirement> labels;
  std::vector<Requirement> fields;  // the only field is metadata.name

  static NodeTerm read(const kube::Json& term);
  bool matches(const std::string& name, const kube::StringMap& node_labels) const;
  friend bool operator==(const NodeTerm&, const NodeTerm&) = default;
};

}  // namespace trainer::fit
