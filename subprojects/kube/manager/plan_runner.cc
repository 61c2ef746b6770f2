#include "kube/manager/plan_runner.hh"

#include <algorithm>

namespace kube {
namespace {

using std::chrono::milliseconds;

// This is the message of the API server's NamespaceLifecycle admission; the answer's reason is
// Forbidden.
bool is_namespace_terminating(const Error& error) {
  return error.code == ErrorCode::kForbidden &&
         error.message.find("because it is being terminated") != std::string::npos;
}

bool creates(const Action& action) {
  return action.verb == Action::Verb::kCreate || action.verb == Action::Verb::kApply;
}

// Returns whether the write may have happened.
bool is_unanswered(const Error& error) {
  return error.status >= 500 || (error.status == 0 && error.code != ErrorCode::kCancelled);
}

// An error of the API server itself passes in most cases. An error that lasts longer than this is
// reported like a refusal: another component's webhook that does not answer causes such an error.
constexpr std::chrono::seconds kLasting{5};

// Returns whether the API server has decided about the write.
bool is_decided(const Error& error) {
  // kNotFound is the answer to a patch if the object has just been deleted.
  for (const ErrorCode code :
       {ErrorCode::kTooManyRequests, ErrorCode::kUnauthorized, ErrorCode::kNotFound})
    if (error.code == code) return false;
  return error.code == ErrorCode::kAlreadyExists || (error.status >= 400 && error.status < 500);
}

// No plan is so urgent that a failing action should be tried more often than this. `due_after` is
// explained in Plan.
constexpr milliseconds kSoonestDue{1'000};

tl::unexpected<Error> failed(Error error, const Requeue& due_after) {
  if (due_after) {
    const auto due = std::max(*due_after, kSoonestDue);
    error.retry_within = std::min(error.retry_within.value_or(due), due);
  }
  return tl::unexpected(std::move(error));
}

Requeue earlier(Requeue a, Requeue b) {
  if (!a) return b;
  if (!b) return a;
  return std::min(*a, *b);
}

}  // namespace

Task<Result<Requeue>> PlanRunner::run(ObjectRef object, Plan plan,
                                      std::function<void()> on_status) {
  if (unanswered_.contains(object.uid)) {
    const auto checked = co_await check_last_status(object);
    if (!checked) co_return failed(checked.error(), plan.due_after);
  }
  // The garbage collector deletes the children of an object that is gone. Each deletion would
  // enqueue the object again until its own watch is back.
  if (std::ranges::any_of(plan.actions, creates) &&
      co_await executor_.is_gone(registration_.resource(), object.key, object.uid)) {
    log_.debug("gone", {{"object", name_of(object)}});
    co_return Requeue{};
  }
  Requeue delayed;
  const auto planned = clock_.steady();
  if (plan.is_status_first()) {
    auto written = co_await write_status(object, plan, planned);
    if (!written) co_return failed(written.error(), plan.due_after);
    if (on_status) on_status();
    delayed = *written;
  }
  const auto [failure, has_changed] = co_await executor_.run(std::move(plan.actions));
  if (failure && is_namespace_terminating(failure->error)) {
    // Nothing can be created in the namespace any more, not even an event, and the object will be
    // deleted.
    log_.debug("namespace ends", {{"object", name_of(object)}});
    co_return Requeue{};
  }
  if (failure) {
    record_failure(object, *failure);
    keep_refusal(object, *failure);
  }
  const bool is_accepted = !failure && refusal_of(object.uid);
  if (!failure) refused_.erase(object.uid);
  for (const auto& event : plan.events)
    if (event.time == kube::PlannedEvent::Time::kAfterActions && !failure) record(object, event);
  if (!plan.is_status_first()) {
    auto written = co_await write_status(object, plan, planned);
    if (!written) co_return failed(written.error(), plan.due_after);
    if (on_status) on_status();
    delayed = *written;
  }
  if (failure) {
    // The write is tried again when its error would count as lasting.
    if (!refusal_of(object.uid)) plan.due_after = earlier(plan.due_after, Requeue(kLasting));
    // Delayed counters must not wait for the backoff of a child that was refused.
    Error error = failure->error;
    if (delayed && !error.retry_after) error.retry_after = delayed;
    co_return failed(std::move(error), plan.due_after);
  }
  if (is_accepted) co_return Requeue(milliseconds(0));
  const bool has_written = has_changed || (plan.status_patch && !delayed);
  co_return earlier(paced(object, plan.requeue_after, has_written), delayed);
}

std::vector<Action> PlanRunner::unwatched(const std::vector<Action>& actions) const {
  std::vector<Action> found;
  for (const Action& action : actions) {
    const auto& watches = registration_.watches;
    if (std::ranges::none_of(watches, [&action](const Watch& watch) {
          return watch.collection.resource == action.resource;
        }))
      found.push_back(action);
  }
  return found;
}

void PlanRunner::keep_refusal(const ObjectRef& object, const ActionFailure& failure) {
  const Error& error = failure.error;
  const bool is_answered = error.code != ErrorCode::kCancelled &&
                           error.code != ErrorCode::kNetwork && error.code != ErrorCode::kTimeout;
  if (!is_answered || error.code == ErrorCode::kConflict) return;
  const auto now = clock_.steady();
  const auto [at, is_new] = refused_.try_emplace(object.uid);
  Refused& refused = at->second;
  if (is_new) refused.since = now;
  refused.refusal = {failure.resource, error.message, error.code, failure.name};
  refused.is_certain = is_decided(error) || now - refused.since >= kLasting;
}

const Refusal* PlanRunner::refusal_of(const std::string& uid) const {
  const auto at = refused_.find(uid);
  return at != refused_.end() && at->second.is_certain ? &at->second.refusal : nullptr;
}

Task<Result<void>> PlanRunner::check_last_status(const ObjectRef& object) {
  const auto stored = co_await statuses_.read(registration_.resource(), object.key);
  if (!stored) co_return tl::unexpected(stored.error());
  unanswered_.erase(object.uid);
  if (*stored == object.resource_version) co_return Result<void>{};
  co_return fail(ErrorCode::kConflict,
                 "{}: it has changed, perhaps by a status write whose answer was lost",
                 name_of(object));
}

Task<Result<Requeue>> PlanRunner::write_status(const ObjectRef& object, Plan& plan,
                                               StatusRateLimiter::Time planned) {
  if (plan.status_patch) {
    if (plan.is_status_minor()) {
      if (!statuses_.exists(object.key, object.uid))
        co_return Requeue{};  // deleted during the actions
      const DebounceTimes& times = registration_.debounce;
      const auto window = executor_.is_under_load() ? times.under_load : times.status;
      const auto delay = limiter_.delay(object.uid, clock_.steady(), window);
      if (delay.count() > 0) co_return Requeue(delay);
    }
    Json patch = std::move(*plan.status_patch);
    auto written =
        co_await statuses_.patch(registration_.resource(), object.key, object.resource_version,
                                 std::move(patch), plan.is_status_minor());
    if (!written) {
      if (is_unanswered(written.error())) unanswered_.insert(object.uid);
      record_refused_status(object, written.error());
      co_return tl::unexpected(written.error());
    }
  }
  limiter_.clear_waiting(object.uid, planned);
  // Events repeat the status, so they follow it.
  for (const auto& event : plan.events) {
    if (event.time == kube::PlannedEvent::Time::kAfterActions) continue;
    record(object, event);
    if (event.end != PlannedEvent::End::kNone && object.is_end_counted) {
      const bool has_failed = event.end == PlannedEvent::End::kFailed;
      metrics_.finished(registration_.resource().kind, has_failed ? "failed" : "succeeded", 1);
    }
  }
  co_return Requeue{};
}

milliseconds PlanRunner::delay_of(Debounce debounce, const std::string& uid) {
  if (debounce == Debounce::kNone) return milliseconds(0);
  if (debounce == Debounce::kShort) return registration_.debounce.brief;
  limiter_.changed(uid, clock_.steady());
  return executor_.is_under_load() ? registration_.debounce.under_load
                                   : registration_.debounce.counters;
}

Requeue PlanRunner::paced(const ObjectRef& object, Requeue asked, bool has_written) {
  if (has_written || !asked || *asked >= Pacing::kShortestPause) {
    pauses_.erase(object.uid);
    return asked;
  }
  milliseconds& pause = pauses_[object.uid];
  pause = std::clamp(2 * pause, Pacing::kShortestPause, Pacing::kLongestPause);
  return pause;
}

void PlanRunner::record_failure(const ObjectRef& object, const ActionFailure& failure) {
  const auto code = failure.error.code;
  if (code == ErrorCode::kCancelled || code == ErrorCode::kConflict) return;
  const DefaultFailure& otherwise = registration_.default_failure;
  if (failure.reason.empty() && otherwise.reason.empty()) return;
  const std::string& reason = failure.reason.empty() ? otherwise.reason : failure.reason;
  const std::string prefix = reason == otherwise.reason ? otherwise.prefix : "";
  record(object, {"Warning", reason, prefix + failure.error.message});
}

// Without an event, nothing shows a user why an object makes no progress.
void PlanRunner::record_refused_status(const ObjectRef& object, const Error& error) {
  const bool is_refused = error.status >= 400 && error.status < 500;
  if (!is_refused || error.code == ErrorCode::kConflict ||
      error.code == ErrorCode::kTooManyRequests || is_namespace_terminating(error)) {
    return;
  }
  metrics_.status_refused(registration_.resource().kind, error.status);
  record(object, {"Warning", "StatusUpdateFailed", error.message});
}

void PlanRunner::record(const ObjectRef& object, const PlannedEvent& event) {
  const Resource& resource = registration_.resource();
  Event full{{resource.api_version(), resource.kind, object.key, object.uid},
             event.type,
             event.reason,
             event.message,
             event.end != PlannedEvent::End::kNone,
             registration_.component};
  if (event.type == "Warning") {
    log_.warn("event",
              {{"object", name_of(object)}, {"reason", event.reason}, {"message", event.message}});
  } else {
    log_.info("event", {{"object", name_of(object)}, {"reason", event.reason}});
  }
  events_.record(std::move(full));
}

}  // namespace kube
