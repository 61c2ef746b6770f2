// A new JobSet is refused for these errors in its failure policy: JobSet,
// pkg/webhooks/jobset_webhook.go.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "runtimes/jobset/failure_rules.hh"
#include "runtimes/jobset/validation.hh"

namespace trainer::jobset {
namespace {

bool is_letter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}
bool is_word(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
}

bool restarts_single_jobs(const FailurePolicyRule& rule) {
  return rule.action == "RestartJob" || rule.action == "RestartJobAndIgnoreMaxRestarts";
}

// Returns false if the rest of the policy need not be checked.
bool check_single_restarts(ValidatedJobSet& checked, const FailurePolicy& policy) {
  if (std::none_of(policy.rules.begin(), policy.rules.end(), restarts_single_jobs)) return true;
  if (!checked.gates.restart_job) {
    checked.refuse(
        "RestartJob and RestartJobAndIgnoreMaxRestarts failure policy actions are not allowed when "
        "RestartJob feature gate is disabled");
    return false;
  }
  const auto& jobs = checked.jobset.spec.replicatedJobs;
  if (std::any_of(jobs.begin(), jobs.end(),
                  [](const ReplicatedJob& job) { return job.replica_count() > kMaxJobRestarts; })) {
    checked.refuse(
        "JobSet cannot have a failure policy rule with RestartJob or "
        "RestartJobAndIgnoreMaxRestarts action and a replicated job with replicas > 1024");
  }
  return true;
}

void check_rule(ValidatedJobSet& checked, const FailurePolicyRule& rule) {
  if (rule.name.empty() || rule.name.size() > kLongestRuleName) {
    checked.refuse(
        "invalid failure policy rule name of length {}, the rule name must be at least "
        "1 characters long and at most {} characters long",
        rule.name.size(), kLongestRuleName);
  }
  if (!is_rule_name(rule.name)) {
    checked.refuse(
        "invalid failure policy rule name '{}', a failure policy rule name must start "
        "with an alphabetic character, optionally followed by a string of alphanumeric "
        "characters or '_,:', and must end with an alphanumeric character or '_'",
        rule.name);
  }
  for (const std::string& target : rule.targetReplicatedJobs) {
    if (checked.find(target)) continue;
    checked.refuse(
        "invalid replicatedJob name '{}' in failure policy does not appear in .spec.ReplicatedJobs",
        target);
  }
  for (const std::string& reason : rule.onJobFailureReasons) {
    if (is_job_failure_reason(reason)) continue;
    checked.refuse(
        "invalid job failure reason '{}' in failure policy is not a recognized job failure reason",
        reason);
  }
}

void check_unique_names(ValidatedJobSet& checked, const FailurePolicy& policy) {
  std::map<std::string_view, std::vector<std::size_t>> indices;
  for (std::size_t i = 0; i < policy.rules.size(); ++i) indices[policy.rules[i].name].push_back(i);
  for (const auto& [name, where] : indices) {
    if (where.size() < 2) continue;
    checked.refuse("rule names are not unique, rules with indices [{}] all have the same name '{}'",
                   fmt::join(where, " "), name);
  }
}

}  // namespace

bool is_rule_name(std::string_view name) {
  if (name.empty() || !is_letter(name.front()) || !is_word(name.back())) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return is_word(c) || c == ',' || c == ':'; });
}

bool is_job_failure_reason(std::string_view reason) {
  return std::find(kJobFailureReasons.begin(), kJobFailureReasons.end(), reason) !=
         kJobFailureReasons.end();
}

void check_failure_policy(ValidatedJobSet& checked) {
  const auto& policy = checked.jobset.spec.failurePolicy;
  if (!policy || !check_single_restarts(checked, *policy)) return;
  for (const FailurePolicyRule& rule : policy->rules) check_rule(checked, rule);
  check_unique_names(checked, *policy);
}

}  // namespace trainer::jobset
