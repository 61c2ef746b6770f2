#include "controller/local/housekeeping.hh"

#include <algorithm>
#include <utility>
#include <vector>

#include "controller/local/journal.hh"
#include "kube/client/yield.hh"
#include "kube/model/resources.hh"

namespace trainer {

using kube::Json;
using kube::Task;
using kube::Time;
using kube::server::Change;

namespace {

constexpr std::chrono::seconds kInterval(60);
constexpr std::chrono::seconds kRetry(5);

// Whether an object may have to go, or to be released, because of this change.
bool may_leave_work(const Change& change) {
  if (!change.after) return true;
  const Json& metadata = change.after->get("metadata");
  if (metadata.find("deletionTimestamp") != nullptr) return true;
  const Json& owners = metadata.get("ownerReferences");
  if (owners.empty()) return false;
  return !change.before || change.before->get("metadata").get("ownerReferences") != owners;
}

bool is_event(const Change& change) {
  return change.resource->plural == kube::kEvents.plural &&
         change.resource->group == kube::kEvents.group;
}

// Of its last change.
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
                           kube::server::Api& api, const kube::Log& log)
    : clock_(clock), api_(api), log_(log), collector_(api), wake_(std::move(executor)) {
  api_.store().subscribe([this](const Change& change) { on_change(change); });
}

void Housekeeping::on_change(const Change& change) {
  const bool is_work = is_event(change)
                           ? !change.before && api_.store().all(kube::kEvents).size() > kMaxEvents
                           : may_leave_work(change);
  if (!is_work) return;
  has_work_ = true;
  wake_.notify();
}

Task<void> Housekeeping::collect() {
  // Requests come between two rounds.
  while (std::exchange(has_work_, false)) {
    while (collector_.step()) co_await kube::yield();
    drop_events();
    co_await kube::yield();
  }
}

void Housekeeping::drop_events() {
  std::vector<std::pair<Time, kube::ObjectKey>> events;
  for (const auto& [key, event] : api_.store().all(kube::kEvents))
    events.emplace_back(time_of(*event), key);
  std::ranges::sort(events);
  const Time oldest = clock_.now() + (-std::chrono::microseconds(kEventLife));
  std::size_t left = events.size();
  for (const auto& [time, key] : events) {
    if (time >= oldest && left <= kMaxEvents) break;
    api_.store().erase(kube::kEvents, key);
    --left;
  }
}

Task<void> Housekeeping::run() {
  for (;;) {
    std::chrono::seconds pause = kInterval;
    try {
      co_await collect();
    } catch (const StorageError& error) {
      log_.warn("housekeeping", {{"why", error.what()}});
      pause = kRetry;
    }
    co_await wake_.wait_for(clock_, pause);
    has_work_ = true;
  }
}

}  // namespace trainer
