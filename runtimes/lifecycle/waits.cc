#include "runtimes/lifecycle/waits.hh"

#include <algorithm>
#include <array>
#include <utility>

#include "runtimes/lifecycle/reasons.hh"

namespace trainer {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kByPhase = {
    {{"Pending", reasons::kCreatingPods},
     {"Restarting", reasons::kNodesReplaced},
     {"Queued", reasons::kWaitingForQuota},
     {"Suspended", reasons::kSuspended}}};

}  // namespace

kube::Time waits_since(const std::optional<kube::Time>& created,
                       std::span<const kube::Condition* const> conditions, kube::Time now) {
  kube::Time since = created.value_or(now);
  for (const kube::Condition* condition : conditions)
    if (condition != nullptr && condition->last_transition_time)
      since = std::max(since, *condition->last_transition_time);
  return since;
}

std::string_view waiting_reason(std::string_view phase, std::string_view refusal) {
  if (phase == "Pending" || phase == "Restarting")
    if (const auto known = known_refusal(refusal); !known.empty()) return known;
  const auto* const row = std::find_if(kByPhase.begin(), kByPhase.end(),
                                       [phase](const auto& each) { return each.first == phase; });
  return row == kByPhase.end() ? std::string_view() : row->second;
}

}  // namespace trainer
