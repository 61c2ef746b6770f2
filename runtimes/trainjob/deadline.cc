#include "runtimes/trainjob/deadline.hh"

#include "runtimes/lifecycle/reason.hh"
#include "runtimes/trainjob/conditions.hh"

namespace trainer {

std::optional<kube::Time> deadline_of(const TrainJob& job, const TrainJobStatus& status) {
  const std::int64_t seconds =
      job.spec.activeDeadlineSeconds.value_or(status.activeDeadlineSeconds.value_or(0));
  if (seconds <= 0 || job.is_suspended() || !job.metadata.creation_timestamp) return std::nullopt;
  kube::Time start = *job.metadata.creation_timestamp;
  if (const auto* suspended = kube::find_condition(status.conditions, kSuspended);
      suspended && suspended->status == "False" && suspended->last_transition_time) {
    start = *suspended->last_transition_time;
  }
  return start.after(seconds);
}

bool is_past_deadline(const TrainJobStatus& status) {
  const kube::Condition* failed = kube::find_condition(status.conditions, kFailed);
  return failed && failed->is_true() && failed->reason == reasons::kDeadlineExceeded.name;
}

std::optional<kube::Time> expiry_of(const TrainJob& job, const TrainJobStatus& status) {
  const auto& ttl = job.spec.ttlSecondsAfterFinished ? job.spec.ttlSecondsAfterFinished
                                                     : status.ttlSecondsAfterFinished;
  const kube::Condition* terminal = find_terminal(status);
  if (!ttl || *ttl < 0 || !terminal || !terminal->last_transition_time) return std::nullopt;
  return terminal->last_transition_time->after(*ttl);
}

}  // namespace trainer
