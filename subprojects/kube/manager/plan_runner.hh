// Executes a plan: writes, records events, and decides when to reconcile again.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kube/client/clock.hh"
#include "kube/client/events.hh"
#include "kube/manager/controller.hh"
#include "kube/manager/executor.hh"
#include "kube/manager/log.hh"
#include "kube/manager/manager_metrics.hh"
#include "kube/manager/status_rate_limiter.hh"
#include "kube/manager/status_writer.hh"
#include "kube/model/plan.hh"

namespace kube {

// This is the object of a plan, in the version that was observed.
struct ObjectRef {
  ObjectKey key;
  std::string uid;
  std::string resource_version;
  bool is_end_counted = true;  // false for a part of another object, whose end is counted
};

// Each controller has one plan runner. Concurrency: the control loops' thread.
class PlanRunner {
 public:
  PlanRunner(const ControllerRegistration& registration, Executor& executor, StatusWriter& statuses,
             EventRecorder& events, Clock& clock, ManagerMetrics& metrics, const Log& log)
      : registration_(registration),
        executor_(executor),
        statuses_(statuses),
        events_(events),
        clock_(clock),
        metrics_(metrics),
        log_(log) {}

  // Runs the plan in the order that Plan documents. A failed action becomes a Warning event and the
  // result's error, but the status is written nevertheless: a child that was refused must not hide
  // the counts of the others. `on_status` is called once the status is stored, or held back,
  // whether or not actions fail. The caller remembers or counts there what follows from the status.
  Task<Result<Requeue>> run(ObjectRef object, Plan plan, std::function<void()> on_status = {});
  // Returns the debounce of an object whose children have changed, so that one reconcile sees all
  // that changes together. This wait is part of the wait of its counters.
  std::chrono::milliseconds delay_of(Debounce debounce, const std::string& uid);
  // Returns the write of the object's last plan that was refused. It is nullptr if all was written,
  // if the API server did not answer, or if the error may pass soon. The next plan reports the
  // refusal. Once the write has succeeded, another plan follows at once, which no longer reports
  // it.
  const Refusal* refusal_of(const std::string& uid) const;
  // The kind of the objects whose plans it runs.
  const Resource& resource() const { return registration_.resource(); }
  // Those of the actions that write objects of kinds that the controller does not watch.
  std::vector<Action> unwatched(const std::vector<Action>& actions) const;
  // The object was deleted: all that is kept about it is dropped.
  void forget(const std::string& uid) {
    limiter_.forget(uid);
    pauses_.erase(uid);
    unanswered_.erase(uid);
    refused_.erase(uid);
  }

 private:
  struct Refused {
    Refusal refusal;
    std::chrono::steady_clock::time_point since;
    bool is_certain = false;  // the same write is refused until something is changed
  };

  void keep_refusal(const ObjectRef& object, const ActionFailure& failure);
  // It is called after a status write without an answer, and returns kConflict if the object is not
  // in the observed version. A plan from the status before could create children of an object that
  // has finished.
  Task<Result<void>> check_last_status(const ObjectRef& object);
  Task<Result<Requeue>> write_status(const ObjectRef& object, Plan& plan,
                                     StatusRateLimiter::Time planned);
  // Returns when to reconcile again because the plan asks for it. If a plan has written nothing and
  // asks for a reconcile at once, the next plan would be the same, so that reconcile waits, longer
  // each time.
  Requeue paced(const ObjectRef& object, Requeue asked, bool has_written);
  void record_failure(const ObjectRef& object, const ActionFailure& failure);
  void record_refused_status(const ObjectRef& object, const Error& error);
  void record(const ObjectRef& object, const PlannedEvent& event);
  std::string name_of(const ObjectRef& object) const {
    return registration_.resource().kind + " " + object.key.to_string();
  }

  const ControllerRegistration& registration_;
  Executor& executor_;
  StatusWriter& statuses_;
  EventRecorder& events_;
  Clock& clock_;
  ManagerMetrics& metrics_;
  const Log& log_;
  StatusRateLimiter limiter_;
  std::unordered_map<std::string, std::chrono::milliseconds> pauses_;  // by uid, see paced()
  std::unordered_map<std::string, Refused> refused_;                   // by uid
  std::unordered_set<std::string> unanswered_;  // uids, see check_last_status()
};

}  // namespace kube
