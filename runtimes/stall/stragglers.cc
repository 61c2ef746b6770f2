#include "runtimes/stall/stragglers.hh"

#include <algorithm>
#include <optional>
#include <utility>

namespace trainer::stall {
namespace {

constexpr std::size_t kFewestRanks = 3;  // with fewer, a median says nothing
constexpr std::int64_t kFewestSteps = 50;
constexpr double kSlow = 1.5;  // medians
constexpr double kFine = 1.3;
// Seconds: less than this is the noise of short steps.
constexpr double kSlowBy = 0.005;
constexpr double kFineBy = 0.003;
constexpr std::chrono::seconds kHold{60};
constexpr int kHoldHeartbeats = 3;
// A new process compares for so long before it contradicts what an earlier one has named: its
// ranks report one after another, and then each change must last.
constexpr std::chrono::seconds kSettled = 2 * kHold;
constexpr double kMaxTimes = 999;
constexpr double kShortest = 1e-6;      // seconds of a median
constexpr std::size_t kNodeBytes = 48;  // bytes that a std::map adds to an entry

bool is_counted(const RankReport& report) {
  return report.has_reported && !report.has_ended && report.own >= 0 &&
         report.steps >= kFewestSteps;
}

bool is_slow(double own, double median) {
  return own > kSlow * median && own - median >= kSlowBy;
}

bool is_fine(double own, double median) {
  return own < kFine * median || own - median < kFineBy;
}

// Returns nullopt if too few ranks are known.
std::optional<double> median_of(const std::map<std::int32_t, RankReport>& ranks) {
  std::vector<double> owns;
  owns.reserve(ranks.size());
  for (const auto& [rank, report] : ranks)
    if (is_counted(report)) owns.push_back(report.own);
  if (owns.size() < kFewestRanks) return std::nullopt;
  const auto middle = owns.begin() + static_cast<std::ptrdiff_t>(owns.size() / 2);
  std::nth_element(owns.begin(), middle, owns.end());
  if (owns.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(owns.begin(), middle)) / 2;
}

}  // namespace

bool Stragglers::decide(const std::map<std::int32_t, RankReport>& ranks, Time now) {
  const auto median = median_of(ranks);
  if (!median) return clear();
  compared_since_ = std::min(compared_since_, now);
  const bool was_known = std::exchange(is_known_, now - compared_since_ >= kSettled);
  bool has_changed = is_known_ != was_known;
  has_changed = forget_gone(ranks) || has_changed;
  std::vector<Due> due;
  for (const auto& [rank, report] : ranks) {
    if (!is_counted(report)) continue;
    const bool was_named = is_named(rank);
    if (was_named ? !is_fine(report.own, *median) : !is_slow(report.own, *median)) {
      changes_.erase(rank);
    } else if (has_lasted(rank, report, now)) {
      if (!was_named) {
        due.push_back({report.own, rank});
        continue;
      }
      changes_.erase(rank);
      std::erase_if(named_, [&](const Straggler& each) { return each.rank == rank; });
      has_changed = true;
    }
  }
  return name(std::move(due), ranks, *median) || has_changed;
}

bool Stragglers::clear() {
  const bool has_changed = is_known_ || !named_.empty();
  changes_.clear();
  named_.clear();
  compared_since_ = Time::max();
  is_known_ = false;
  return has_changed;
}

bool Stragglers::forget_gone(const std::map<std::int32_t, RankReport>& ranks) {
  const auto is_gone = [&](std::int32_t rank) {
    const auto at = ranks.find(rank);
    return at == ranks.end() || !is_counted(at->second);
  };
  std::erase_if(changes_, [&](const auto& entry) { return is_gone(entry.first); });
  return std::erase_if(named_, [&](const Straggler& each) { return is_gone(each.rank); }) > 0;
}

bool Stragglers::is_named(std::int32_t rank) const {
  return std::any_of(named_.begin(), named_.end(),
                     [&](const Straggler& each) { return each.rank == rank; });
}

bool Stragglers::has_lasted(std::int32_t rank, const RankReport& report, Time now) {
  Change& change = changes_.try_emplace(rank, Change{now, report.sent, 0}).first->second;
  if (change.sent != report.sent) ++change.heartbeats;
  change.sent = report.sent;
  return now - change.since >= kHold && change.heartbeats >= kHoldHeartbeats;
}

// The slowest come first where there is no room for all. Those that are named keep their places.
bool Stragglers::name(std::vector<Due> due, const std::map<std::int32_t, RankReport>& ranks,
                      double median) {
  std::sort(due.begin(), due.end(), [](const Due& a, const Due& b) {
    return a.own != b.own ? a.own > b.own : a.rank < b.rank;
  });
  due.resize(std::min(due.size(), kMaxNamedSlow - named_.size()));
  for (const Due& each : due) {
    const RankReport& report = ranks.at(each.rank);
    const double times = std::min(each.own / std::max(median, kShortest), kMaxTimes);
    named_.push_back({each.rank, std::string(report.pod), std::string(report.node), times});
    changes_.erase(each.rank);
  }
  std::sort(named_.begin(), named_.end(),
            [](const Straggler& a, const Straggler& b) { return a.rank < b.rank; });
  return !due.empty();
}

std::size_t Stragglers::bytes() const {
  std::size_t bytes = changes_.size() * (kNodeBytes + sizeof(*changes_.begin()));
  for (const Straggler& each : named_)
    bytes += sizeof(Straggler) + each.pod.capacity() + each.node.capacity();
  return bytes;
}

}  // namespace trainer::stall
