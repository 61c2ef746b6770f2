// This file decides what a failed pod means to its Job (pkg/controller/job/pod_failure_policy.go).
// The first rule that matches decides.
#include <fmt/format.h>

#include <algorithm>

#include "runtimes/batch/policies.hh"

namespace trainer::batch {
namespace {

using kube::Json;

const BatchPodView::Failure* match_exit_codes(const Json& wanted, const BatchPodView& pod) {
  const std::string_view container = wanted.get_string("containerName");
  const Json::Array& values = wanted.get_array("values");
  const bool is_among = wanted.get_string("operator") == "In";
  for (const BatchPodView::Failure& failure : pod.failures) {
    if (!container.empty() && failure.container != container) continue;
    const bool is_listed =
        std::find(values.begin(), values.end(), Json(failure.exit_code)) != values.end();
    if (is_listed == is_among) return &failure;
  }
  return nullptr;
}

std::string_view match_conditions(const Json::Array& patterns, const BatchPodView& pod) {
  if (!pod.conditions.is_array()) return {};
  for (const Json& condition : pod.conditions.as_array())
    for (const Json& pattern : patterns)
      if (condition.get_string("type") == pattern.get_string("type") &&
          condition.get_string("status") == pattern.get_string("status", "True"))
        return condition.get_string("type");
  return {};
}

// Returns why the rule matches, as the beginning of the message of a failed Job; "" if it does not
// match.
std::string match_rule(const Json& rule, const BatchPodView& pod) {
  const std::string name = pod.key().to_string();
  if (const Json& codes = rule.get("onExitCodes"); codes.is_object()) {
    const BatchPodView::Failure* const failure = match_exit_codes(codes, pod);
    return failure ? fmt::format("Container {} for pod {} failed with exit code {}",
                                 failure->container, name, failure->exit_code)
                   : std::string();
  }
  const std::string_view condition = match_conditions(rule.get_array("onPodConditions"), pod);
  return condition.empty() ? std::string()
                           : fmt::format("Pod {} has condition {}", name, condition);
}

}  // namespace

PolicyMatch match_pod_failure_policy(const BatchJob& job, const BatchPodView& pod) {
  const Json::Array& rules = job.spec().get("podFailurePolicy").get_array("rules");
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string what = match_rule(rules[i], pod);
    if (what.empty()) continue;
    const std::string_view action = rules[i].get_string("action");
    PolicyMatch match;
    match.is_counted = action != "Ignore";
    match.fails_index = action == "FailIndex";
    if (action == "FailJob")
      match.job_failure = fmt::format("{} matching {} rule at index {}", what, action, i);
    return match;
  }
  return {};
}

}  // namespace trainer::batch
