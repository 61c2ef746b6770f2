// This file sets conditions and makes their events (JobSet, pkg/controllers/jobset_controller.go).
#include "runtimes/jobset/conditions.hh"

#include <utility>

#include "api/api.hh"
#include "runtimes/jobset/reconcile_context.hh"

namespace trainer::jobset {
namespace {

using kube::Condition;

// If one of the pair becomes True, the other becomes False and changes nothing else: its reason,
// message and time stay.
std::string_view counterpart(std::string_view type) {
  if (type == kStartupInProgress) return kStartupCompleted;
  if (type == kStartupCompleted) return kStartupInProgress;
  return {};
}

Condition* find(std::vector<Condition>& conditions, std::string_view type) {
  for (Condition& condition : conditions)
    if (condition.type == type) return &condition;
  return nullptr;
}

bool put(std::vector<Condition>& conditions, Condition next) {
  Condition* const stored = find(conditions, next.type);
  if (!stored) {
    conditions.push_back(std::move(next));
    return true;
  }
  if (stored->status == next.status) {
    if (stored->reason == next.reason && stored->message == next.message) return false;
    next.last_transition_time = stored->last_transition_time;
  }
  *stored = std::move(next);
  return true;
}

kube::PlannedEvent event_of(std::string_view type, bool value, std::string_view reason,
                            std::string_view message) {
  using End = kube::PlannedEvent::End;
  return {.type = value && (type == kFailed || type == kRestarting) ? "Warning" : "Normal",
          .reason = std::string(reason),
          .message = std::string(message),
          .end = !value               ? End::kNone
                 : type == kFailed    ? End::kFailed
                 : type == kCompleted ? End::kSucceeded
                                      : End::kNone};
}

}  // namespace

void JobSetContext::set_condition(std::string_view type, bool value, std::string_view reason,
                                  std::string_view message) {
  if (!value && !find(status.conditions, type)) return;  // nearly always
  Condition next{.type = std::string(type),
                 .status = value ? "True" : "False",
                 .reason = std::string(reason),
                 .message = std::string(message),
                 .last_transition_time = observed.now.whole_seconds()};
  // The message is cut before it is compared, since the stored one was cut, too.
  const std::vector<std::string> cuts = fit(next);
  bool has_changed = put(status.conditions, std::move(next));
  const std::string_view other_type = value ? counterpart(type) : std::string_view();
  Condition* const other = other_type.empty() ? nullptr : find(status.conditions, other_type);
  if (other && other->is_true()) {
    other->status = "False";
    has_changed = true;
  }
  if (!has_changed) return;
  plan.events.push_back(event_of(type, value, reason, message));
  for (const std::string& cut : cuts) warn("StatusTruncated", "status: " + cut);
}

void JobSetContext::set_replica_failure(const WaitingCause& cause, bool has_event) {
  Condition next{.type = std::string(kReplicaFailure),
                 .status = "True",
                 .reason = cause.reason,
                 .message = cause.message,
                 .last_transition_time = observed.now.whole_seconds()};
  const std::vector<std::string> cuts = fit(next);
  if (!put(status.conditions, std::move(next)) || has_event) return;
  warn(cause.reason, cause.message);
}

void JobSetContext::clear_replica_failure() {
  std::erase_if(status.conditions,
                [](const Condition& each) { return each.type == kReplicaFailure; });
}

void JobSetContext::warn(std::string_view reason, std::string message) {
  constexpr std::size_t kMaxEvents = 20;
  if (plan.events.size() >= kMaxEvents) return;
  plan.events.push_back(
      {.type = "Warning", .reason = std::string(reason), .message = std::move(message)});
}

bool is_finished(const JobSetStatus& status) {
  return kube::is_condition_true(status.conditions, kCompleted) ||
         kube::is_condition_true(status.conditions, kFailed);
}

}  // namespace trainer::jobset
