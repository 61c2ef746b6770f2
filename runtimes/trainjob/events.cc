#include "runtimes/trainjob/events.hh"

#include <fmt/format.h>

#include <utility>

#include "runtimes/trainjob/conditions.hh"
#include "runtimes/trainjob/stragglers.hh"
#include "runtimes/views/text.hh"

namespace trainer {
namespace {

// The API refuses longer notes; upstream cuts here, too.
constexpr std::size_t kMaxNote = 950;

kube::PlannedEvent event(std::string_view type, std::string_view reason, std::string message) {
  kube::PlannedEvent result;
  result.type = type;
  result.reason = reason;
  result.message = std::move(message);
  if (result.message.size() > kMaxNote)
    result.message = keep_head(result.message, kMaxNote) + " ...";
  return result;
}

std::string_view suspension(const TrainJobStatus& status) {
  const kube::Condition* condition = kube::find_condition(status.conditions, kSuspended);
  return condition ? std::string_view(condition->status) : std::string_view();
}

// Upstream's one event, with its wording: tools search for it.
kube::PlannedEvent refused_child(const Blocked& blocked) {
  std::string text = keep_head(blocked.message, kMaxNote);
  if (text.size() < blocked.message.size()) text += " ...";
  kube::PlannedEvent result;
  result.type = "Warning";
  result.reason = "TrainJobResourcesCreationFailed";
  result.message = "TrainJob resources reconciliation failed: " + text;
  return result;
}

std::string restart_of(const HangStatus& hangs) {
  return fmt::format("hang {}, at step {}: the failure policy decides whether the pods restart",
                     hangs.restarts, hangs.step);
}

}  // namespace

std::vector<kube::PlannedEvent> events_between(const TrainJobStatus& before,
                                               const TrainJobStatus& after,
                                               const PhaseVerdict& verdict,
                                               const std::optional<Blocked>& blocked) {
  std::vector<kube::PlannedEvent> events;
  if (suspension(before) != suspension(after)) {
    events.push_back(suspension(after) == "True"
                         ? event("Normal", "Suspended", after.message)
                         : event("Normal", "Resumed", "spec.suspend is false"));
  }
  if (const kube::Condition* terminal = find_terminal(after)) {
    if (!is_finished(before)) {
      events.push_back(
          event(terminal->type == kFailed ? "Warning" : "Normal", terminal->type, after.message));
      using End = kube::PlannedEvent::End;
      events.back().end = terminal->type == kFailed ? End::kFailed : End::kSucceeded;
    }
    return events;
  }
  if (after.restarts > before.restarts ||
      (after.phase == "Restarting" && before.phase != "Restarting")) {
    events.push_back(event("Warning", "Restarting", after.message));
  }
  if (after.hangs && after.hangs != before.hangs)
    events.push_back(event("Warning", "HangRestart", restart_of(*after.hangs)));
  if (after.processRestarts.value_or(0) > before.processRestarts.value_or(0))
    events.push_back(event("Warning", "ProcessesRestarted",
                           fmt::format("torchrun has started processes again in their pods; {} "
                                       "such restarts so far",
                                       *after.processRestarts)));
  if (after.phase == "Running" && before.phase != "Running")
    events.push_back(event("Normal", "Running", after.message));
  // The same word as after a suspension: the job goes on. A suspension or a restart ends a stall
  // without a step.
  const bool goes_on = after.phase == "Running" && after.restarts == before.restarts;
  if (before.stall && !after.stall && goes_on)
    events.push_back(event("Normal", "Resumed", "the training makes steps again"));
  if (const std::string slow = newly_slow(before.stragglers, after.stragglers); !slow.empty())
    events.push_back(event("Normal", "Straggler", slow));
  if (blocked) {
    if (!blocked->is_recorded && (after.reason != before.reason || after.message != before.message))
      events.push_back(refused_child(*blocked));
  } else if (verdict.is_problem && after.reason != before.reason) {
    events.push_back(event("Warning", after.reason, after.message));
  }
  return events;
}

kube::PlannedEvent created_event(const TrainJob& job) {
  kube::PlannedEvent created = event("Normal", "Created", "created JobSet " + job.metadata.name);
  created.time = kube::PlannedEvent::Time::kAfterActions;
  return created;
}

kube::PlannedEvent ignored_event(const std::string& what) {
  kube::PlannedEvent ignored =
      event("Warning", "SettingIgnored", "the pods start without this: " + what);
  ignored.time = kube::PlannedEvent::Time::kAfterActions;
  return ignored;
}

kube::PlannedEvent scheduled_event(std::int32_t nodes) {
  kube::PlannedEvent scheduled =
      event("Normal", "Scheduled", fmt::format("{0} of {0} nodes have a machine", nodes));
  scheduled.time = kube::PlannedEvent::Time::kAfterActions;
  return scheduled;
}

}  // namespace trainer
