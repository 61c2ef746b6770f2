#include "runtimes/pipeline/failure_policy.hh"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "kube/model/name_index.hh"
#include "runtimes/jobset/failure_pattern.hh"
#include "runtimes/jobset/failure_rules.hh"
#include "runtimes/views/labels.hh"

namespace trainer::pipeline {

namespace {

void overlay(Draft& draft, const TrainJobFailurePolicy& policy, std::string_view source) {
  const auto target = [&](std::string_view member) -> FailurePolicy& {
    if (draft.journal.is_on())
      draft.journal.note(fmt::format("spec.failurePolicy.{}", member), source);
    return draft.spec.failurePolicy ? *draft.spec.failurePolicy
                                    : draft.spec.failurePolicy.emplace();
  };
  if (policy.maxRestarts) target("maxRestarts").maxRestarts = policy.maxRestarts;
  if (!policy.rules.empty()) target("rules").rules = policy.rules;
  if (policy.maxDisruptionRestarts)
    draft.set_annotation(jobset::kMaxDisruptionRestartsKey,
                         std::to_string(*policy.maxDisruptionRestarts), source);
}

void check_name(const std::string& name, const std::string& path, kube::FieldErrors& errors) {
  if (name.size() > jobset::kLongestRuleName)
    errors.push_back(kube::too_long(path, jobset::kLongestRuleName));
  if (!jobset::is_rule_name(name))
    errors.push_back(kube::invalid(
        path, name,
        "becomes part of a reason: begin with a letter, go on with letters, digits and '_,:', and "
        "end with a letter, a digit or '_'"));
}

void check_targets(const FailurePolicyRule& rule, const kube::NameIndex& jobs,
                   const std::string& path, kube::FieldErrors& errors) {
  for (std::size_t i = 0; i < rule.targetReplicatedJobs.size(); ++i) {
    const std::string& target = rule.targetReplicatedJobs[i];
    if (jobs.contains(target)) continue;
    errors.push_back(kube::invalid(
        kube::join_index(path + ".targetReplicatedJobs", i), target,
        "is no job of the runtime's spec.template.spec.replicatedJobs: name one of these, or leave "
        "the list out for all"));
  }
}

void check_reasons(const FailurePolicyRule& rule, const std::string& path,
                   kube::FieldErrors& errors) {
  for (std::size_t i = 0; i < rule.onJobFailureReasons.size(); ++i)
    if (!jobset::is_job_failure_reason(rule.onJobFailureReasons[i]))
      errors.push_back(kube::not_supported(
          kube::join_index(path + ".onJobFailureReasons", i), rule.onJobFailureReasons[i],
          {jobset::kJobFailureReasons.begin(), jobset::kJobFailureReasons.end()}));
}

// Returns the steps before the trainer: the next attempt can use the data that they have loaded, or
// serve.
std::string kept_jobs(const Draft& draft) {
  std::string names;
  for (const PodSet& set : draft.pod_sets)
    if (set.ancestor.ends_with("-initializer")) names += (names.empty() ? "" : ",") + set.name;
  return names;
}

}  // namespace

void merge_failure_policy(Draft& draft) {
  const auto& defaults = draft.runtime.spec.runPolicy;
  const bool has_default = defaults && defaults->failurePolicy;
  const auto& own = draft.job.spec.failurePolicy;
  if (has_default) overlay(draft, *defaults->failurePolicy, "runtime runPolicy.failurePolicy");
  if (own) overlay(draft, *own, "spec.failurePolicy");
  if (has_default || own)
    draft.set_annotation(jobset::kKeptOnRestartKey, kept_jobs(draft),
                         own ? "spec.failurePolicy" : "runtime runPolicy.failurePolicy");
}

std::int32_t process_restarts_by_default(const Runtime& runtime) {
  const auto& defaults = runtime.spec.runPolicy;
  if (!defaults || !defaults->failurePolicy) return 0;
  return defaults->failurePolicy->processRestarts.value_or(0);
}

std::int32_t process_restarts_asked_for(const Draft& draft) {
  const auto& own = draft.job.spec.failurePolicy;
  if (own && own->processRestarts) return *own->processRestarts;
  return process_restarts_by_default(draft.runtime);
}

std::optional<kube::FieldError> check_process_restarts_without_torch(const Draft& draft) {
  const auto& own = draft.job.spec.failurePolicy;
  const MlPolicy* const policy = draft.ml_policy();
  if (!own || own->processRestarts.value_or(0) <= 0 || (policy && policy->torch))
    return std::nullopt;
  return kube::invalid(
      std::string(kProcessRestartsPath), *own->processRestarts,
      fmt::format("only torchrun restarts processes in their pods, and runtime \"{}\" has no "
                  "mlPolicy.torch: set spec.failurePolicy.maxRestarts, which replaces the pods",
                  draft.job.spec.runtimeRef.name));
}

kube::FieldErrors check_failure_rules(const std::vector<FailurePolicyRule>& rules,
                                      const std::vector<ReplicatedJob>& jobs,
                                      const std::string& path) {
  kube::FieldErrors errors;
  if (rules.empty()) return errors;
  const kube::NameIndex known(jobs,
                              [](const ReplicatedJob& job) { return std::string_view(job.name); });
  std::set<std::string_view> names;
  FailurePolicy policy;
  policy.rules = rules;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string at = kube::join_index(path + ".rules", i);
    check_name(rules[i].name, at + ".name", errors);
    if (!names.insert(rules[i].name).second)
      errors.push_back({kube::FieldError::Type::kDuplicate, at + ".name", rules[i].name,
                        "give each rule a name of its own"});
    check_reasons(rules[i], at, errors);
    check_targets(rules[i], known, at, errors);
  }
  if (const jobset::FailurePatterns patterns(policy, path); patterns.refusal())
    errors.push_back(*patterns.refusal());
  return errors;
}

}  // namespace trainer::pipeline
