// The successPolicy says which indexes must succeed (pkg/controller/job/success_policy.go). The
// first rule that is met decides.
#include <fmt/format.h>

#include "runtimes/batch/policies.hh"

namespace trainer::batch {
namespace {

bool is_met(const kube::Json& rule, const IndexSet& succeeded, std::int32_t completions) {
  const kube::Json& count = rule.get("succeededCount");
  const auto has_enough = [&count](std::int32_t total) {
    return count.is_int() && total >= count.as_int();
  };
  if (!rule.get("succeededIndexes").is_string()) return has_enough(succeeded.total());
  const IndexSet wanted = IndexSet::parse(rule.get_string("succeededIndexes"), completions);
  if (wanted.empty()) return false;
  const std::int32_t shared = wanted.shared_with(succeeded);
  return shared == wanted.total() || has_enough(shared);
}

}  // namespace

std::string match_success_policy(const Context& context) {
  if (context.succeeded_indexes.empty()) return {};
  const kube::Json::Array& rules = context.job.spec().get("successPolicy").get_array("rules");
  for (std::size_t i = 0; i < rules.size(); ++i)
    if (is_met(rules[i], context.succeeded_indexes, context.job.completions.value_or(0)))
      return fmt::format("Matched rules at index {}", i);
  return {};
}

}  // namespace trainer::batch
