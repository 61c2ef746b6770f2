#include "local/server/housekeeping.hh"

#include <malloc.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kube/client/yield.hh"
#include "kube/model/resources.hh"
#include "local/server/journal.hh"

namespace trainer {

using kube::Json;
using kube::Task;
using kube::Time;
using kube::server::Change;

namespace {

constexpr std::chrono::seconds kInterval(60);
constexpr std::chrono::seconds kRetry(5);
constexpr std::chrono::seconds kStart(1);  // the first run: the start of the process is over

// Returns the time of its last change.
Time time_of(const Json& event) {
  const Json& created = event.get("metadata").get("creationTimestamp");
  Time latest;
  for (const Json* each : {&created, &event.get("lastTimestamp"), &event.get("eventTime")}) {
    const auto time = each->is_string() ? Time::parse(each->as_string()) : std::nullopt;
    latest = std::max(latest, time.value_or(latest));
  }
  return latest;
}

}  // namespace

Housekeeping::Housekeeping(kube::asio::any_io_executor executor, kube::Clock& clock,
                           kube::server::Api& api, CustomKinds& custom_kinds, const kube::Log& log)
    : clock_(clock),
      api_(api),
      custom_kinds_(custom_kinds),
      log_(log),
      collector_(api.kinds(), api.store(), [&clock] { return clock.now(); }),
      wake_(std::move(executor)),
      drop_at_(clock.steady() + kStart) {
  // It subscribes after the collector and the custom kinds, which follow the store, too.
  api_.store().subscribe([this](const Change&) {
    if (collector_.has_work() || custom_kinds_.has_orphans() || has_too_many_events())
      wake_.notify();
  });
}

bool Housekeeping::has_too_many_events() const {
  return api_.store().all(kube::kEvents).size() > kMaxEvents;
}

Task<void> Housekeeping::collect() {
  // Requests can run between two steps.
  while (collector_.has_work() || custom_kinds_.has_orphans()) {
    custom_kinds_.erase_orphans();
    if (collector_.has_work()) collector_.step();
    co_await kube::yield();
  }
  if (!has_too_many_events() && clock_.steady() < drop_at_) co_return;
  drop_at_ = clock_.steady() + kInterval;
  drop_events();
  malloc_trim(0);  // bursts of jobs leave much free memory
}

void Housekeeping::drop_events() {
  std::vector<std::pair<Time, kube::ObjectKey>> events;
  for (const auto& [key, event] : api_.store().all(kube::kEvents))
    events.emplace_back(time_of(*event.get()), key);
  std::ranges::sort(events);
  const Time oldest = clock_.now() + (-std::chrono::microseconds(kEventLife));
  // A twentieth more than needed is removed. Otherwise each further Event would cost a pass over
  // all.
  const std::size_t most = events.size() > kMaxEvents ? kMaxEvents - kMaxEvents / 20 : kMaxEvents;
  std::size_t left = events.size();
  for (const auto& [time, key] : events) {
    if (time >= oldest && left <= most) break;
    api_.store().erase(kube::kEvents, key);
    --left;
  }
}

Task<void> Housekeeping::run() {
  auto interval = kStart;
  for (;;) {
    std::chrono::seconds pause = std::exchange(interval, kInterval);
    try {
      co_await collect();
    } catch (const StorageError& error) {
      log_.warn("housekeeping", {{"why", error.what()}});
      pause = kRetry;
    }
    const bool has_more = pause != kRetry && collector_.has_work();
    if (!has_more) co_await wake_.wait_for(clock_, pause);
  }
}

}  // namespace trainer
