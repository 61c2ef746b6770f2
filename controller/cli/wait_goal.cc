#include "controller/cli/wait_goal.hh"

#include <array>
#include <utility>

#include "kube/model/text.hh"

namespace trainer {
namespace {

using Goal = WaitGoal::Kind;

constexpr std::array<std::pair<std::string_view, Goal>, 5> kWords{
    {{"complete", Goal::kComplete},
     {"failed", Goal::kFailed},
     {"finished", Goal::kFinished},
     {"running", Goal::kRunning},
     {"suspended", Goal::kSuspended}}};
constexpr std::string_view kPhaseOf = "phase=";

bool is_reached(const WaitGoal& goal, const kube::Json& object, const ObjectState& state,
                std::string_view running) {
  const bool is_complete = state.is_finished && !state.is_failed;
  switch (goal.kind) {
    case Goal::kComplete:
      return is_complete;
    case Goal::kFailed:
      return state.is_finished && state.is_failed;
    case Goal::kFinished:
      return state.is_finished;
    case Goal::kRunning:
      return is_complete || state.phase == running;
    case Goal::kSuspended:
      return !state.is_finished && kube::has_condition(object, "Suspended");
    case Goal::kPhase:
      return kube::to_lower(state.phase) == goal.phase;
  }
  return false;
}

}  // namespace

std::optional<WaitGoal> read_wait_goal(std::string_view text) {
  const std::string word = kube::to_lower(text);
  for (const auto& [name, kind] : kWords)
    if (word == name) return WaitGoal{kind, ""};
  if (!word.starts_with(kPhaseOf) || word.size() == kPhaseOf.size()) return std::nullopt;
  return WaitGoal{Goal::kPhase, word.substr(kPhaseOf.size())};
}

WaitVerdict check_wait(const WaitGoal& goal, const kube::Json& object, const ObjectState& state,
                       std::string_view running) {
  if (is_reached(goal, object, state, running)) return WaitVerdict::kReached;
  return state.is_finished ? WaitVerdict::kNever : WaitVerdict::kWaiting;
}

}  // namespace trainer
