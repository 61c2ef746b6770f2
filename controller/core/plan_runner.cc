#include "controller/core/plan_runner.hh"

#include <algorithm>

namespace trainer {
namespace {

using kube::Result;
using kube::Task;
using std::chrono::milliseconds;

// What changes together is looked at together: the pods of a node group, far below what a person
// notices. Differences in counters alone wait a moment more, so that what belongs together (a Job,
// its pods) is one write; a TrainJob's longer, so that its JobSet's come with its own, and a look
// that hardly finds more (a pod's change) waits with them. (A JobSet's look may find that the next
// Jobs can start.) While more is to be written than the API server takes all of that waits: what
// stands in a queue grows old there.
struct Windows {
  milliseconds soon;      // a look of Debounce::kSoon
  milliseconds look;      // one of Debounce::kCounters
  milliseconds counters;  // a difference in counters, that look included
  milliseconds crowded;   // both of these, while writes queue
};
constexpr Windows kJobSetWindows{milliseconds(20), milliseconds(20), milliseconds(150),
                                 milliseconds(1'000)};
constexpr Windows kTrainJobWindows{milliseconds(150), milliseconds(300), milliseconds(300),
                                   milliseconds(3'000)};
// The API server stays busy for a while after the last write has had its turn.
constexpr milliseconds kCrowdLinger{1'000};

const Windows& windows_of(const kube::Resource& resource) {
  return resource.kind == kTrainJobs.kind ? kTrainJobWindows : kJobSetWindows;
}

constexpr std::string_view kDefaultFailureReason = "TrainJobResourcesCreationFailed";

// What the API server's NamespaceLifecycle admission says; its reason is not passed on.
bool is_namespace_ending(const kube::Error& error) {
  return error.code == kube::ErrorCode::kForbidden &&
         error.message.find("because it is being terminated") != std::string::npos;
}

Requeue earlier(Requeue a, Requeue b) {
  if (!a) return b;
  if (!b) return a;
  return std::min(*a, *b);
}

}  // namespace

Task<Result<Requeue>> PlanRunner::run(ObjectRef object, kube::Plan plan) {
  Requeue held_back;
  const auto planned = clock_.steady();
  if (plan.is_status_first) {
    auto written = co_await write_status(object, plan, planned);
    if (!written) co_return tl::unexpected(written.error());
    held_back = *written;
  }
  const auto failure = co_await executor_.run(std::move(plan.actions));
  if (failure && is_namespace_ending(failure->error)) {
    // Nothing can be made there any more, not even an event; the object itself is next.
    log_.debug("namespace ends", {{"object", object.resource.kind + " " + object.key.to_string()}});
    co_return Requeue{};
  }
  // What fails of a JobSet without a reason of its own, such as a patch of a Job, is only logged.
  const bool is_told = failure && failure->error.code != kube::ErrorCode::kCancelled &&
                       failure->error.code != kube::ErrorCode::kConflict &&
                       (!failure->reason.empty() || object.resource.kind == kTrainJobs.kind);
  if (is_told) {
    kube::PlannedEvent event;
    event.type = "Warning";
    event.reason = failure->reason.empty() ? std::string(kDefaultFailureReason) : failure->reason;
    event.message = failure->error.message;
    if (event.reason == kDefaultFailureReason) {
      event.message = "TrainJob resources reconciliation failed: " + event.message;
    }
    record(object, event);
  }
  if (!plan.is_status_first) {
    auto written = co_await write_status(object, plan, planned);
    if (!written) co_return tl::unexpected(written.error());
    held_back = *written;
  }
  if (failure) {
    // Counters that wait for a moment must not wait for the backoff of a child that is refused.
    kube::Error error = failure->error;
    if (held_back && !error.retry_after) error.retry_after = held_back;
    co_return tl::unexpected(std::move(error));
  }
  co_return earlier(plan.requeue_after, held_back);
}

Task<Result<Requeue>> PlanRunner::write_status(const ObjectRef& object, kube::Plan& plan,
                                               StatusRateLimiter::Time planned) {
  if (plan.status_patch) {
    if (plan.is_status_minor) {
      const auto wait = delay(object);
      if (wait.count() > 0) co_return Requeue(wait);
    }
    kube::Json patch = std::move(*plan.status_patch);
    auto written =
        co_await executor_.patch_status(object.resource, object.key, object.resource_version,
                                        std::move(patch), plan.is_status_minor);
    if (!written) co_return tl::unexpected(written.error());
  }
  pace_.settled(object.uid, planned);
  // Events tell what stands in the status, so they follow it.
  for (const auto& event : plan.events) {
    record(object, event);
    if (event.is_terminal && on_finished) {
      on_finished(object.resource.kind, event.type == "Warning" ? "failed" : "succeeded");
    }
  }
  co_return Requeue{};
}

bool PlanRunner::is_crowded() {
  const auto now = clock_.steady();
  if (executor_.is_crowded()) crowded_until_ = now + kCrowdLinger;
  return now < crowded_until_;
}

milliseconds PlanRunner::wait_of(Stores::Debounce debounce, const kube::Resource& resource,
                                 const std::string& uid) {
  if (debounce == Stores::Debounce::kNone) return milliseconds(0);
  const Windows& windows = windows_of(resource);
  if (debounce == Stores::Debounce::kShort) return windows.soon;
  pace_.changed(uid, clock_.steady());
  return is_crowded() ? windows.crowded : windows.look;
}

milliseconds PlanRunner::delay(const ObjectRef& object) {
  const Windows& windows = windows_of(object.resource);
  return pace_.wait(object.uid, clock_.steady(), is_crowded() ? windows.crowded : windows.counters);
}

void PlanRunner::record(const ObjectRef& object, const kube::PlannedEvent& event) {
  kube::Event full;
  full.regarding.api_version = object.resource.api_version();
  full.regarding.kind = object.resource.kind;
  full.regarding.key = object.key;
  full.regarding.uid = object.uid;
  full.type = event.type;
  full.reason = event.reason;
  full.message = event.message;
  full.is_terminal = event.is_terminal;
  if (event.type == "Warning") {
    log_.warn("event", {{"object", object.resource.kind + " " + object.key.to_string()},
                        {"reason", event.reason},
                        {"message", event.message}});
  } else {
    log_.info("event", {{"object", object.resource.kind + " " + object.key.to_string()},
                        {"reason", event.reason}});
  }
  events_.record(std::move(full));
}

}  // namespace trainer
