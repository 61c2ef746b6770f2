#include "runtimes/trainjob/stall.hh"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtimes/views/text.hh"

namespace trainer {
namespace {

using std::chrono::seconds;

constexpr std::size_t kMaxLine = 256;
constexpr std::size_t kMaxRanges = 8;
constexpr std::size_t kMaxNamed = 3;  // suspects in a message

// `ranks` are the first of `count`.
std::string ranges_of(const std::vector<std::int32_t>& ranks, std::int32_t count) {
  std::string text;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (ranges++ == kMaxRanges) return text + ", ...";
    if (!text.empty()) text += ", ";
    text += last == i ? fmt::to_string(ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  if (static_cast<std::size_t>(count) > ranks.size()) text += ", ...";
  return text;
}

std::string_view what_it_does(std::string_view reason) {
  using stall::name_of;
  using stall::Rule;
  if (reason == name_of(Rule::kEnded)) return "has ended";
  if (reason == name_of(Rule::kStopped)) return "is stopped, by a signal or a debugger";
  if (reason == name_of(Rule::kSilent)) return "does not answer";
  if (reason == name_of(Rule::kNeverReported)) return "has never reported";
  if (reason == name_of(Rule::kBehind)) return "has begun fewer collectives than the others";
  if (reason == name_of(Rule::kNotWaiting)) return "does not wait while the others do";
  return "is in another line than the others";
}

std::string text_of(const StallSuspect& suspect) {
  std::string text = rank_text(suspect.rank, suspect.pod, suspect.node);
  text += fmt::format(" {}", what_it_does(suspect.reason));
  if (suspect.line.empty()) return text;
  const bool is_last = suspect.where == "last seen";
  text += fmt::format("{} {}", is_last ? "; last seen at" : ", at", suspect.line);
  if (!suspect.where.empty() && !is_last) text += fmt::format(" ({})", suspect.where);
  return text;
}

std::string message_of(const StallStatus& stall, const stall::Verdict& verdict) {
  std::string text;
  for (std::size_t i = 0; i < std::min(stall.suspects.size(), kMaxNamed); ++i)
    text += (i == 0 ? "" : "; ") + text_of(stall.suspects[i]);
  const auto named = static_cast<std::int32_t>(std::min(stall.suspects.size(), kMaxNamed));
  if (verdict.suspect_count > named)
    text += fmt::format("; and {} more", verdict.suspect_count - named);
  if (!text.empty()) return text;
  if (verdict.rule == stall::Rule::kSamePlace && !stall.groups.empty()) {
    return fmt::format(
        "all {} ranks are at {}: no rank keeps the others waiting; look at the network between the "
        "nodes",
        verdict.world, stall.groups.front().line);
  }
  return fmt::format(
      "none of {} ranks makes steps, and their stacks do not say which one the others wait for",
      verdict.world);
}

struct Rounded {
  seconds time;
  seconds next;  // the first later time that is rounded to another
};

Rounded round(seconds time) {
  using namespace std::chrono_literals;
  const seconds step = time < 10min ? 1min : time < 1h ? 5min : time < 24h ? 1h : 24h;
  const seconds down = time - time % step;
  return {down, down + step};
}

seconds time_since(const StallStatus& stall, kube::Time now) {
  if (!stall.since) return seconds(0);
  return std::max(std::chrono::duration_cast<seconds>(now - *stall.since), seconds(0));
}

}  // namespace

std::string rank_text(std::int32_t rank, const std::string& pod, const std::string& node) {
  if (pod.empty()) return fmt::format("rank {}", rank);
  if (node.empty()) return fmt::format("rank {} (pod {})", rank, pod);
  return fmt::format("rank {} (pod {}, node {})", rank, pod, node);
}

StallStatus stall_of(const stall::Verdict& verdict, std::optional<kube::Time> since) {
  StallStatus stall;
  stall.since = since ? std::optional(since->whole_seconds()) : std::nullopt;
  stall.reason = stall::name_of(verdict.rule);
  stall.world = verdict.world;
  static_assert(stall::kMaxSuspects <= kMaxStallSuspects && stall::kMaxGroups <= kMaxStallGroups);
  for (const stall::Suspect& each : verdict.suspects) {
    StallSuspect& suspect = stall.suspects.emplace_back();
    suspect.rank = each.rank;
    suspect.pod = each.pod;
    suspect.node = each.node;
    suspect.reason = stall::name_of(each.rule);
    suspect.line = keep_tail(each.line, kMaxLine);
    suspect.where = keep_head(each.where, 128);
  }
  for (const stall::Group& each : verdict.groups) {
    StallGroup& group = stall.groups.emplace_back();
    group.line = keep_tail(each.line, kMaxLine);
    group.count = each.count;
    group.ranks = ranges_of(each.ranks, each.count);
  }
  stall.message = message_of(stall, verdict);
  return stall;
}

std::string summary_of(const StallStatus& stall, kube::Time now) {
  using namespace std::chrono_literals;
  const seconds time = round(time_since(stall, now)).time;
  std::string text = "stalled";
  if (time >= 24h)
    text += fmt::format(" {}d", time / 24h);
  else if (time >= 1h)
    text += fmt::format(" {}h", time / 1h);
  else if (time >= 1min)
    text += fmt::format(" {}m", time / 1min);
  if (stall.suspects.empty()) return text;
  text += fmt::format(" (rank {}", stall.suspects.front().rank);
  if (stall.suspects.size() > 1) text += fmt::format(" and {} more", stall.suspects.size() - 1);
  return text + ")";
}

seconds summary_lasts(const StallStatus& stall, kube::Time now) {
  const seconds time = time_since(stall, now);
  return round(time).next - time;
}

}  // namespace trainer
