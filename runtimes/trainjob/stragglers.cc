#include "runtimes/trainjob/stragglers.hh"

#include <fmt/format.h>

#include <algorithm>

namespace trainer {
namespace {

constexpr std::size_t kMaxInEvent = 3;

bool is_same(const StragglerStatus& a, const StragglerStatus& b) {
  return a.rank == b.rank && a.pod == b.pod;
}

const StragglerStatus* find(const std::vector<StragglerStatus>& list, const StragglerStatus& one) {
  const auto at = std::find_if(list.begin(), list.end(),
                               [&](const StragglerStatus& each) { return is_same(each, one); });
  return at == list.end() ? nullptr : &*at;
}

}  // namespace

std::vector<StragglerStatus> stragglers_of(const std::vector<stall::Straggler>& named) {
  static_assert(stall::kMaxNamedSlow <= kMaxStragglers);
  std::vector<StragglerStatus> list;
  for (const stall::Straggler& each : named) {
    StragglerStatus& straggler = list.emplace_back();
    straggler.rank = each.rank;
    straggler.pod = each.pod;
    straggler.node = each.node;
    straggler.times = fmt::format("{:.1f}", each.times);
  }
  return list;
}

std::vector<StragglerStatus> with_times_of(const std::vector<StragglerStatus>& before,
                                           std::vector<StragglerStatus> now) {
  for (StragglerStatus& each : now)
    if (const StragglerStatus* const known = find(before, each)) each.times = known->times;
  return now;
}

void settle_stragglers(const HeartbeatFacts* heartbeats, bool may_run, const TrainJobStatus& before,
                       TrainJobStatus& after) {
  if (after.stragglers.empty() && !heartbeats) return;  // this is so nearly always
  if (!may_run || after.restarts != before.restarts)
    after.stragglers.clear();
  else if (after.phase == "Running" && heartbeats && heartbeats->stragglers)
    after.stragglers = with_times_of(before.stragglers, *heartbeats->stragglers);
}

std::string describe(const StragglerStatus& straggler) {
  return fmt::format(
      "{} is slow: its own work takes {} times the median; the others wait for it at each step",
      rank_text(straggler.rank, straggler.pod, straggler.node), straggler.times);
}

std::string newly_slow(const std::vector<StragglerStatus>& before,
                       const std::vector<StragglerStatus>& now) {
  std::string text;
  std::size_t count = 0;
  for (const StragglerStatus& each : now) {
    if (find(before, each) != nullptr || ++count > kMaxInEvent) continue;
    if (!text.empty()) text += "; ";
    text += describe(each);
  }
  if (count > kMaxInEvent) text += fmt::format("; and {} more", count - kMaxInEvent);
  return text;
}

}  // namespace trainer
