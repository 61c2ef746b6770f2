// These tests check selectors of labels and of nodes.
#include "runtimes/fit/selectors.hh"

#include "tests/unit/fit/cluster.hh"

using namespace trainer::fit;
using namespace trainer::fit::test;

TEST_CASE("operators of requirements", "[fit]") {
  struct Case {
    const char* expression;
    const char* value;  // nullptr: there is no such label
    bool is_allowed;
  };
  const std::vector<Case> cases{
      {"{key: k, operator: In, values: [a, b]}", "a", true},
      {"{key: k, operator: In, values: [a, b]}", "c", false},
      {"{key: k, operator: In, values: [a]}", nullptr, false},
      {"{key: k, operator: NotIn, values: [a]}", "a", false},
      {"{key: k, operator: NotIn, values: [a]}", "b", true},
      {"{key: k, operator: NotIn, values: [a]}", nullptr, true},
      {"{key: k, operator: Exists}", "a", true},
      {"{key: k, operator: Exists}", nullptr, false},
      {"{key: k, operator: DoesNotExist}", "a", false},
      {"{key: k, operator: DoesNotExist}", nullptr, true},
      {"{key: k, operator: Gt, values: [\"5\"]}", "6", true},
      {"{key: k, operator: Gt, values: [\"5\"]}", "5", false},
      {"{key: k, operator: Lt, values: [\"5\"]}", "4", true},
      {"{key: k, operator: Lt, values: [\"5\"]}", "x", false},
      {"{key: k, operator: Gt, values: [\"5\"]}", nullptr, false},
      {"{key: k, operator: Near, values: [\"5\"]}", "5", false},
  };
  for (const Case& each : cases) {
    INFO(each.expression << " " << (each.value == nullptr ? "(none)" : each.value));
    const std::string value = each.value == nullptr ? "" : each.value;
    const Requirement read = Requirement::read(yaml(each.expression));
    CHECK(read.allows(each.value == nullptr ? nullptr : &value) == each.is_allowed);
  }
}

TEST_CASE("a selector that is absent matches nothing, an empty one everything", "[fit]") {
  const kube::StringMap labels{{"app", "x"}};
  CHECK_FALSE(LabelSelector::read(kube::Json()).matches(labels));
  CHECK(LabelSelector::read(yaml("{}")).matches(labels));
  CHECK(LabelSelector::read(yaml("{matchLabels: {app: x}}")).matches(labels));
  CHECK_FALSE(LabelSelector::read(yaml("{matchLabels: {app: x}, matchExpressions: [{key: app, "
                                       "operator: DoesNotExist}]}"))
                  .matches(labels));
}
