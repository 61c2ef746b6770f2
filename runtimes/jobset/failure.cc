// This file decides what a failed Job means for the set (JobSet,
// pkg/controllers/failure_policy.go). Each reconcile makes one decision.
#include <fmt/format.h>

#include <algorithm>

#include "runtimes/jobset/disruption.hh"
#include "runtimes/jobset/failure_pattern.hh"
#include "runtimes/jobset/policies.hh"

namespace trainer::jobset {
namespace {

constexpr std::string_view kRestartJobSet = "RestartJobSet";
constexpr std::string_view kRestartJob = "RestartJob";

struct Decision {
  std::string_view action = kRestartJobSet;
  const FailurePolicyRule* rule = nullptr;  // none matched
  const JobView* job = nullptr;             // the earliest failure that counts
};

// The rules of one reconcile may cost this much, in about nanoseconds. It is enough for any number
// of Jobs, except for large policies, and for patterns if a hundred Jobs have failed at a time.
constexpr std::size_t kMaxCost = 20'000'000;
constexpr std::size_t kCostOfText = 10;

bool is_before(const JobView* a, const JobView* b) {
  return a->failure()->last_transition_time < b->failure()->last_transition_time;
}

// If several have the same time, the first of the list is taken. That is common: times of
// conditions are whole seconds.
template <class Filter>
const JobView* earliest(const std::vector<const JobView*>& failed, const Filter& is_desired) {
  const JobView* found = nullptr;
  for (const JobView* job : failed) {
    if ((!found || is_before(job, found)) && is_desired(*job)) found = job;
  }
  return found;
}

bool contains(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Returns the Jobs to which the rules are applied. It is only the earliest if those of all would
// cost too much.
std::vector<const JobView*> candidates(const JobSetContext& context,
                                       const FailurePatterns& patterns) {
  std::vector<const JobView*> jobs = context.jobs.failed;
  std::size_t longest = 0;
  for (const JobView* job : jobs) longest = std::max(longest, job->failure()->message.size());
  std::size_t cost = patterns.cost(longest) + 1;
  for (const FailurePolicyRule& rule : context.jobset.spec.failurePolicy->rules)
    cost += kCostOfText * (1 + rule.onJobFailureReasons.size() + rule.targetReplicatedJobs.size());
  const std::size_t most = std::max<std::size_t>(kMaxCost / cost, 1);
  if (jobs.size() <= most) return jobs;
  std::stable_sort(jobs.begin(), jobs.end(), is_before);
  jobs.resize(most);
  return jobs;
}

bool matches(const FailurePolicyRule& rule, const JobView& job) {
  if (job.replicated_job.empty()) return false;
  return (rule.onJobFailureReasons.empty() ||
          contains(rule.onJobFailureReasons, job.failure()->reason)) &&
         (rule.targetReplicatedJobs.empty() ||
          contains(rule.targetReplicatedJobs, job.replicated_job));
}

Decision decide(JobSetContext& context) {
  FailurePatternCache own;
  FailurePatternCache* const shared = context.observed.failure_patterns;
  const FailurePatterns& patterns = (shared ? shared : &own)->of(context.jobset);
  if (patterns.refusal()) context.warn("FailurePatternRefused", patterns.refusal()->to_string());
  const std::vector<const JobView*> failed = candidates(context, patterns);
  const auto& rules = context.jobset.spec.failurePolicy->rules;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const JobView* job = earliest(failed, [&](const JobView& candidate) {
      return matches(rules[i], candidate) && (rules[i].onJobFailureMessagePatterns.empty() ||
                                              patterns.finds_any(i, candidate.failure()->message));
    });
    if (job) return {rules[i].action, &rules[i], job};
  }
  return {kRestartJobSet, nullptr,
          earliest(context.jobs.failed, [](const JobView&) { return true; })};
}

std::string first_failed(const JobView& job) {
  return fmt::format("(first failed job: {})", job.name);
}

void fail_for(JobSetContext& context, std::string_view reason, std::string_view what,
              const JobView& job) {
  fail(context, reason, fmt::format("{} {}", what, first_failed(job)));
}

// Returns true if the action would exceed maxRestarts; the set has then failed.
bool is_out_of_budget(JobSetContext& context, const Decision& decision) {
  if (!is_budget_spent(context)) return false;
  fail_for(context, reasons::kReachedMaxRestarts,
           "jobset failed due to reaching max number of restarts", *decision.job);
  return true;
}

std::string message_of(const Decision& decision) {
  return fmt::format("applying {} failure policy action {}", decision.action,
                     first_failed(*decision.job));
}

std::string event_reason(const Decision& decision) {
  return fmt::format("{}FailurePolicyAction", decision.action);
}

void restart_set(JobSetContext& context, const Decision& decision, bool is_counted) {
  if (is_counted && is_out_of_budget(context, decision)) return;
  const std::string reason =
      decision.rule ? kube::condition_reason(fmt::format("FailurePolicy_{}", decision.rule->name))
                    : std::string("DefaultFailurePolicy");
  record_avoided_node(context, *decision.job);
  restart_all(context, is_counted, reason, message_of(decision));
  context.warn(event_reason(decision), message_of(decision));
}

void restart_single(JobSetContext& context, const Decision& decision, bool is_counted) {
  if (!context.observed.gates.restart_job) {
    context.warn("FeatureGateClosed",
                 "rule {} asks for the action {}, which needs the feature gate "
                 "RestartJob; open the gate, or delete the JobSet",
                 decision.rule->name, decision.action);
    return;
  }
  const ReplicatedJobState* const rjob = context.find_rjob(decision.job->replicated_job);
  if (rjob && rjob->replicas > kMaxJobRestarts) {
    context.warn("TooManyReplicas",
                 "rule {} asks for the action {}, and replicated job {} has {} replicas where "
                 "at most {} can be restarted by themselves: the whole JobSet is restarted",
                 decision.rule->name, decision.action, rjob->spec->name, rjob->replicas,
                 kMaxJobRestarts);
    return restart_set(context, decision, is_counted);
  }
  if (is_counted && is_out_of_budget(context, decision)) return;
  record_avoided_node(context, *decision.job);
  if (restart_one(context, *decision.job, is_counted)) {
    context.warn(event_reason(decision), message_of(decision));
  }
}

void run(JobSetContext& context, const Decision& decision) {
  const std::string_view action = decision.action;
  if (action == "FailJobSet") {
    fail(context, event_reason(decision), message_of(decision));
  } else if (action == kRestartJobSet || action == "RestartJobSetAndIgnoreMaxRestarts") {
    restart_set(context, decision, action == kRestartJobSet);
  } else if (action == kRestartJob || action == "RestartJobAndIgnoreMaxRestarts") {
    restart_single(context, decision, action == kRestartJob);
  } else {
    context.warn("UnknownFailurePolicyAction",
                 "rule {} asks for the action \"{}\", which is none of FailJobSet, "
                 "RestartJobSet, RestartJobSetAndIgnoreMaxRestarts, RestartJob and "
                 "RestartJobAndIgnoreMaxRestarts; delete the JobSet and correct the rule",
                 decision.rule->name, action);
  }
}

// This is explained in disruption.hh. Any of the failures that share the earliest time may be the
// disruption.
bool restart_after_disruption(JobSetContext& context, const JobView& first) {
  const std::int32_t limit = max_disruption_restarts(context.jobset);
  const std::int32_t used = context.status.restarts - context.status.restartsCountTowardsMax;
  if (used >= limit) return false;
  const auto when = first.failure()->last_transition_time;
  // These are few of very many pods. Each of them is compared with each failed Job.
  std::vector<const PodView*> lost;
  for (const PodView* pod : context.observed.pods)
    if (pod->is_infrastructure_failure) lost.push_back(pod);
  const JobView* disrupted = earliest(context.jobs.failed, [&](const JobView& job) {
    return job.failure()->last_transition_time == when &&
           was_disrupted(job, lost, context.may_be_kept(job));
  });
  if (!disrupted) return false;
  record_avoided_node(context, *disrupted);
  restart_all(context, false, "Disruption",
              fmt::format("restarting after a disruption, {} of at most {} {}", used + 1, limit,
                          first_failed(*disrupted)));
  return true;
}

}  // namespace

void apply_failure_policy(JobSetContext& context) {
  const JobView* first = earliest(context.jobs.failed, [](const JobView&) { return true; });
  if (!context.jobset.spec.failurePolicy) {
    if (restart_after_disruption(context, *first)) return;
    fail_for(context, reasons::kFailedJobs, "jobset failed due to one or more job failures",
             *first);
    return;
  }
  const Decision decision = decide(context);
  if (decision.action == kRestartJobSet && restart_after_disruption(context, *first)) return;
  run(context, decision);
}

}  // namespace trainer::jobset
