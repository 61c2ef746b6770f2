// What a controller does with a plan: write, record events, and decide when to reconcile again.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "kube/client/clock.hh"
#include "kube/client/events.hh"
#include "kube/manager/controller.hh"
#include "kube/manager/executor.hh"
#include "kube/manager/log.hh"
#include "kube/manager/status_rate_limiter.hh"
#include "kube/manager/status_writer.hh"
#include "kube/model/plan.hh"

namespace kube {

// Which object a plan is about, as it was observed.
struct ObjectRef {
  ObjectKey key;
  std::string uid;
  std::string resource_version;
};

// Of one controller. Concurrency: the control loops' thread.
class PlanRunner {
 public:
  PlanRunner(const ControllerRegistration& registration, Executor& executor, StatusWriter& statuses,
             EventRecorder& events, Clock& clock, const Log& log)
      : registration_(registration),
        executor_(executor),
        statuses_(statuses),
        events_(events),
        clock_(clock),
        log_(log) {}

  // Called once for each object whose end is in its status now: its kind, and "succeeded" or
  // "failed". May be empty.
  std::function<void(std::string_view kind, std::string_view result)> on_finished;

  // In the order that Plan documents. A failed action becomes a Warning event and the result's
  // error, but the status is written all the same: a child that is refused must not hide the
  // others' counts.
  Task<Result<Requeue>> run(ObjectRef object, Plan plan);
  // How long the reconcile of an object can wait whose children have changed, so that one reconcile
  // finds what changes together; that wait is part of the wait of its counters.
  std::chrono::milliseconds delay_of(Debounce debounce, const std::string& uid);
  // The object was deleted: when its counters were written is forgotten.
  void forget(const std::string& uid) { limiter_.forget(uid); }

 private:
  // How long a difference in counters must still wait; zero: write it now.
  std::chrono::milliseconds delay_of_status(const ObjectRef& object);
  Task<Result<Requeue>> write_status(const ObjectRef& object, Plan& plan,
                                     StatusRateLimiter::Time planned);
  void record_failure(const ObjectRef& object, const ActionFailure& failure);
  void record(const ObjectRef& object, const PlannedEvent& event);
  std::string name_of(const ObjectRef& object) const {
    return registration_.resource().kind + " " + object.key.to_string();
  }

  const ControllerRegistration& registration_;
  Executor& executor_;
  StatusWriter& statuses_;
  EventRecorder& events_;
  Clock& clock_;
  const Log& log_;
  StatusRateLimiter limiter_;
};

}  // namespace kube
