#include "runtimes/trainjob/hang_policy.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/model/resources.hh"
#include "runtimes/lifecycle/reason.hh"
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

}  // namespace

stall::Policy hang_policy_of(const JobSet& jobset) {
  const auto at = jobset.metadata.annotations.find(kHangPolicyKey);
  if (at == jobset.metadata.annotations.end()) return stall::Policy::kWarn;
  return stall::parse_policy(at->second).value_or(stall::Policy::kWarn);
}

bool are_current(const HeartbeatFacts& heartbeats, const std::vector<const PodView*>& pods,
                 std::int32_t restarts) {
  return std::any_of(pods.begin(), pods.end(), [&](const PodView* pod) {
    return is_running(*pod) && pod->attempt == heartbeats.restarts && is_of_attempt(*pod, restarts);
  });
}

HangAnswer answer_hang(TrainJobStatus& status, stall::Policy policy, std::int64_t steps,
                       const std::vector<const PodView*>& pods,
                       const std::vector<const JobView*>& jobs) {
  HangAnswer answer;
  if (!status.stall || policy == stall::Policy::kWarn) return answer;
  if (policy == stall::Policy::kFail) {
    answer.failure = fmt::format("the job hangs: {}", status.stall->message);
    return answer;
  }
  HangStatus hangs = status.hangs.value_or(HangStatus());
  if (hangs.restarts > 0 && hangs.attempt == status.restarts) return answer;
  const PodView* const pod = find_pod(*status.stall, status.restarts, pods);
  const JobView* const job = pod ? find_job(*pod, jobs) : nullptr;
  if (job == nullptr) return answer;
  hangs.repeats = hangs.repeats > 0 && hangs.step == steps ? hangs.repeats + 1 : 1;
  hangs.step = steps;
  if (hangs.repeats >= kMaxHangsAtOneStep) {
    answer.failure = fmt::format("the job hung {} times in a row at step {}: {}", hangs.repeats,
                                 steps, status.stall->message);
  } else {
    hangs.attempt = status.restarts;
    ++hangs.restarts;
    answer.action = end_job(*job);
  }
  status.hangs = std::move(hangs);
  return answer;
}

bool has_failed_by_hang(const TrainJobStatus& status) {
  const kube::Condition* const failed = kube::find_condition(status.conditions, kFailed);
  return failed && failed->is_true() && failed->reason == reasons::kStalled.name;
}

}  // namespace trainer
