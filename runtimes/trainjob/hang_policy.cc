#include "runtimes/trainjob/hang_policy.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/lifecycle/reason.hh"
#include "runtimes/stall/policy.hh"
#include "runtimes/trainjob/conditions.hh"
#include "runtimes/views/labels.hh"

namespace trainer {
namespace {

bool is_running(const PodView& pod) {
  return pod.phase == "Running" && !pod.is_deleting;
}

// The pods of an attempt have its number as label. Those that a JobSet restarts in place keep that
// of the first.
bool is_of_attempt(const PodView& pod, std::int32_t restarts) {
  return pod.attempt == restarts || pod.in_place_attempt;
}

// Returns the pod of the first suspect. Without a suspect any pod will do: all of them restart.
const PodView* find_pod(const StallStatus& stall, std::int32_t restarts,
                        const std::vector<const PodView*>& pods) {
  const PodView* first = nullptr;
  for (const PodView* pod : pods) {
    if (!is_running(*pod) || pod->attempt != restarts) continue;
    if (!stall.suspects.empty() && pod->name == stall.suspects.front().pod) return pod;
    if (first == nullptr || pod->name < first->name) first = pod;
  }
  return first;
}

const JobView* find_job(const PodView& pod, const std::vector<const JobView*>& jobs) {
  const std::string attempt = std::to_string(pod.attempt);
  const auto at = std::find_if(jobs.begin(), jobs.end(), [&](const JobView* job) {
    return job->replicated_job == pod.replicated_job && job->job_index == pod.job_index &&
           job->restart_attempt == attempt && !job->is_deleting && !job->finished &&
           !job->failure_target;
  });
  return at == jobs.end() ? nullptr : *at;
}

// The Job controller ends the pods of a Job whose deadline has passed, and counts no retry.
kube::Action end_job(const JobView& job) {
  kube::Action action;
  action.verb = kube::Action::Verb::kMergePatch;
  action.resource = kube::kJobs;
  action.key = job.key();
  action.body = kube::Json::object(
      {{"metadata", kube::Json::object({{"uid", job.uid}})},
       {"spec", kube::Json::object({{"activeDeadlineSeconds", std::int64_t{1}}})}});
  action.description = fmt::format("end Job {} because of a hang", job.name);
  return action;
}

// An unknown policy counts as Warn.
stall::Policy policy_of(const JobSet& jobset) {
  const auto at = jobset.metadata.annotations.find(kHangPolicyKey);
  if (at == jobset.metadata.annotations.end()) return stall::Policy::kWarn;
  return stall::parse_policy(at->second).value_or(stall::Policy::kWarn);
}

}  // namespace

bool are_current(const HeartbeatFacts& heartbeats, const std::vector<const PodView*>& pods,
                 std::int32_t restarts) {
  return std::any_of(pods.begin(), pods.end(), [&](const PodView* pod) {
    return is_running(*pod) && pod->attempt == heartbeats.restarts && is_of_attempt(*pod, restarts);
  });
}

void answer_hang(const TrainJobObserved& observed, const JobSet& jobset, TrainJobStatus& status,
                 TrainJobPlan& plan) {
  const stall::Policy policy = policy_of(jobset);
  if (!status.stall || policy == stall::Policy::kWarn) return;
  if (policy == stall::Policy::kFail) {
    return fail(status, reasons::kStalled, fmt::format("the job hangs: {}", status.stall->message),
                observed.now);
  }
  const PodView* const pod = find_pod(*status.stall, status.restarts, observed.pods);
  const JobView* const job = pod ? find_job(*pod, observed.jobs) : nullptr;
  HangStatus hangs = status.hangs.value_or(HangStatus());
  if (job == nullptr || job->uid == hangs.jobUid) return;
  const std::int64_t step = observed.heartbeats->position.steps;
  hangs.repeats = hangs.repeats > 0 && hangs.step == step ? hangs.repeats + 1 : 1;
  hangs.step = step;
  if (hangs.repeats >= kMaxHangsAtOneStep) {
    fail(status, reasons::kStalled,
         fmt::format("the job hung {} times in a row at step {}: {}", hangs.repeats, step,
                     status.stall->message),
         observed.now);
  } else {
    hangs.jobUid = job->uid;
    ++hangs.restarts;
    plan.actions.push_back(end_job(*job));
  }
  status.hangs = std::move(hangs);
}

bool has_failed_by_heartbeats(const TrainJobStatus& status) {
  const kube::Condition* const failed = kube::find_condition(status.conditions, kFailed);
  return failed && failed->is_true() &&
         (failed->reason == reasons::kStalled.name ||
          failed->reason == reasons::kProcessesKeepFailing.name);
}

}  // namespace trainer
