#include "runtimes/pipeline/failure_policy.hh"

#include <fmt/format.h>

#include "runtimes/views/labels.hh"

namespace trainer::pipeline {

namespace {

void annotate(Draft& draft, std::string_view key, std::string value, std::string_view source) {
  if (draft.journal.is_on())
    draft.journal.note(fmt::format("metadata.annotations[{}]", key), source);
  draft.annotations[std::string(key)] = std::move(value);
}

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
    annotate(draft, jobset::kMaxDisruptionRestartsKey,
             std::to_string(*policy.maxDisruptionRestarts), source);
}

// The steps before the trainer: what they have loaded, or serve, is good for the next attempt.
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
    annotate(draft, jobset::kKeptOnRestartKey, kept_jobs(draft),
             own ? "spec.failurePolicy" : "runtime runPolicy.failurePolicy");
}

}  // namespace trainer::pipeline
