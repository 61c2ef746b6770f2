#include "runtimes/trainjob/goodput.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "kube/model/saturating.hh"
#include "runtimes/trainjob/conditions.hh"

namespace trainer {
namespace {

using std::chrono::seconds;

constexpr std::string_view kProductive = "productive";
constexpr std::string_view kQueued = "queued";
constexpr std::string_view kStarting = "starting";
constexpr std::string_view kRecomputed = "recomputed";
constexpr std::string_view kStalled = "stalled";

// Steps are not news: while old ones are made again, their number is looked up.
constexpr seconds kRecomputedPause{5};
constexpr std::int64_t kMaxStep = std::int64_t{1} << 40;
// A stall is found later than it begins.
constexpr std::chrono::minutes kUnsettled{10};

struct Use {
  std::string_view name;
  std::int64_t GoodputStatus::*member;
};
constexpr Use kUses[] = {{kProductive, &GoodputStatus::productive},
                         {kQueued, &GoodputStatus::queued},
                         {kStarting, &GoodputStatus::starting},
                         {kRecomputed, &GoodputStatus::recomputed},
                         {kStalled, &GoodputStatus::stalled}};

bool has_steps(std::string_view use) {
  return use == kProductive || use == kRecomputed || use == kStalled;
}

// Without heartbeats the steps go on.
std::string_view known_use(std::string_view use) {
  for (const Use& each : kUses)
    if (each.name == use && has_steps(use)) return each.name;
  return kStarting;
}

std::int64_t seconds_between(kube::Time from, kube::Time to) {
  return std::max<std::int64_t>(std::chrono::duration_cast<seconds>(to - from).count(), 0);
}

// Counts the time until `at`, which is not before `since`, for the present use.
void count_until(GoodputStatus& goodput, kube::Time at) {
  for (const Use& use : kUses)
    if (use.name == goodput.current)
      goodput.*use.member = kube::saturating_add(goodput.*use.member,
                                                 seconds_between(goodput.since.value_or(at), at));
  goodput.since = at;
}

// The step that the present attempt began with.
std::int64_t first_step(const GoodputStatus& goodput, const stall::Position& position) {
  return position.has_loaded ? goodput.checkpoint : 0;
}

// Ranks report what they like, and attempts add it up.
std::int64_t step_after(std::int64_t first, std::int64_t count) {
  return std::min(kube::saturating_add(first, count), kMaxStep);
}

void end_attempt(GoodputStatus& goodput, const stall::Position& position) {
  const std::int64_t first = first_step(goodput, position);
  goodput.step = std::max(goodput.step, step_after(first, position.steps));
  if (position.saved >= 0) goodput.checkpoint = step_after(first, position.saved);
}

std::string_view use_of(const HeartbeatFacts* heartbeats, const TrainJobStatus& after,
                        const GoodputStatus& goodput) {
  if (is_finished(after)) return {};
  if (after.phase == "Queued" || after.phase == "Suspended" || after.phase == "Pending")
    return kQueued;
  if (after.phase != "Running") return kStarting;
  if (after.stall) return kStalled;
  if (!heartbeats) return known_use(goodput.current);
  if (!heartbeats->stepped_at) return kStarting;
  const stall::Position& position = heartbeats->position;
  const bool is_known = step_after(first_step(goodput, position), position.steps) < goodput.step;
  return is_known ? kRecomputed : kProductive;
}

// Heartbeats begin when the job runs; the status says what was before.
GoodputStatus begun(const TrainJobObserved& observed, const TrainJobStatus& after) {
  GoodputStatus goodput;
  goodput.since = observed.job.metadata.creation_timestamp.value_or(observed.now).whole_seconds();
  goodput.current = kQueued;
  if (after.startTime) {
    count_until(goodput, std::max(*goodput.since, *after.startTime));
    goodput.current = kStarting;
  }
  return goodput;
}

// No heartbeat says when the ranks passed the highest step of an earlier attempt. Steps take about
// the same time, the first one in this attempt was made at `since`, and the last one is known.
kube::Time time_of_new_steps(const GoodputStatus& goodput, const HeartbeatFacts& heartbeats) {
  const kube::Time since = goodput.since.value_or(*heartbeats.stepped_at);
  const std::int64_t made = std::max<std::int64_t>(heartbeats.position.steps, 1);
  const std::int64_t again =
      std::clamp<std::int64_t>(goodput.step - first_step(goodput, heartbeats.position), 0, made);
  const std::chrono::duration<double> took = *heartbeats.stepped_at - since;
  return since + std::chrono::duration_cast<std::chrono::microseconds>(
                     took * static_cast<double>(again) / static_cast<double>(made));
}

// A stall began with the last step, and the end of a job is that of its condition.
kube::Time time_of_change(const TrainJobObserved& observed, const TrainJobStatus& after,
                          const GoodputStatus& goodput, std::string_view use) {
  kube::Time at = observed.now.whole_seconds();
  if (use == kProductive && goodput.current == kRecomputed)
    at = time_of_new_steps(goodput, *observed.heartbeats);
  if (use == kStalled && has_steps(goodput.current)) at = after.stall->since.value_or(at);
  if (use.empty()) at = after.completionTime.value_or(at);
  return std::max(std::min(at.whole_seconds(), observed.now.whole_seconds()),
                  goodput.since.value_or(at));
}

// The facts are those of the attempt that ends, or already of the next one.
std::optional<stall::Position> ended_position(const TrainJobObserved& observed,
                                              const TrainJobStatus& before, bool is_in_place) {
  if (!observed.heartbeats) return std::nullopt;
  const HeartbeatFacts& heartbeats = *observed.heartbeats;
  const bool is_next = is_in_place || heartbeats.restarts != before.restarts;
  return is_next ? heartbeats.previous : heartbeats.position;
}

std::string duration_text(std::int64_t total) {
  if (total < 60) return fmt::format("{}s", total);
  if (total < 3600) return fmt::format("{}m", total / 60);
  const std::int64_t minutes = total % 3600 / 60;
  return minutes == 0 ? fmt::format("{}h", total / 3600)
                      : fmt::format("{}h{}m", total / 3600, minutes);
}

}  // namespace

std::optional<seconds> settle_goodput(const TrainJobObserved& observed,
                                      const HeartbeatFacts* heartbeats,
                                      const TrainJobStatus& before, TrainJobStatus& after) {
  if (!after.goodput && !heartbeats) return std::nullopt;  // this is so nearly always
  if (after.goodput && after.goodput->current.empty()) return std::nullopt;
  GoodputStatus goodput = after.goodput ? *after.goodput : begun(observed, after);
  const auto& last = observed.process_restarts;
  const bool is_resized = last && heartbeats && heartbeats->resizes != last->resizes;
  const bool is_in_place =
      is_resized || after.processRestarts.value_or(0) > before.processRestarts.value_or(0);
  std::string_view use = use_of(heartbeats, after, goodput);
  if (has_steps(goodput.current) && (is_in_place || !has_steps(use))) {
    if (const auto position = ended_position(observed, before, is_in_place))
      end_attempt(goodput, *position);
    use = use_of(heartbeats, after, goodput);
  }
  const kube::Time now = observed.now.whole_seconds();
  if (!goodput.since) goodput.since = now;
  if (use != goodput.current) {
    count_until(goodput, time_of_change(observed, after, goodput, use));
    goodput.current = use;
  } else if (now - *goodput.since >= kGoodputPause) {
    count_until(goodput, std::max(*goodput.since, now + -kUnsettled));
  }
  after.goodput = std::move(goodput);
  if (use.empty()) return std::nullopt;
  if (use == kRecomputed) return kRecomputedPause;
  return seconds(kGoodputPause) - seconds(seconds_between(*after.goodput->since, now));
}

bool makes_steps(const TrainJobStatus& status) {
  return status.phase == "Running" && status.goodput &&
         (status.goodput->current == kProductive || status.goodput->current == kRecomputed);
}

std::string describe(const GoodputStatus& goodput) {
  std::int64_t total = 0;
  for (const Use& use : kUses) total = kube::saturating_add(total, goodput.*use.member);
  std::string text;
  if (total > 0)
    text = fmt::format(
        "goodput {:.0f} %: ",
        std::floor(100.0 * static_cast<double>(goodput.productive) / static_cast<double>(total)));
  const char* separator = "";
  for (const Use& use : kUses) {
    const std::int64_t took = goodput.*use.member;
    if (total == 0 || (took == 0 && use.name != kProductive)) continue;
    text += fmt::format("{}{} {}", std::exchange(separator, ", "), duration_text(took), use.name);
  }
  if (!goodput.current.empty() && goodput.since)
    text += fmt::format("{}{} since {}", total > 0 ? "; " : "", goodput.current,
                        goodput.since->to_string());
  return text;
}

}  // namespace trainer
