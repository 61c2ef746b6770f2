// What both reconcilers do with a plan: write, tell, and decide when to look again.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "controller/core/executor.hh"
#include "controller/core/log.hh"
#include "controller/core/status_rate_limiter.hh"
#include "kube/client/clock.hh"
#include "kube/client/events.hh"
#include "kube/model/plan.hh"

namespace trainer {

// What came of one reconcile: when to look again without being told, if at all.
using Requeue = std::optional<std::chrono::milliseconds>;

// Which object a plan is about, as it was observed.
struct ObjectRef {
  kube::Resource resource;
  kube::ObjectKey key;
  std::string uid;
  std::string resource_version;
};

// Concurrency: the control loops' thread.
class PlanRunner {
 public:
  PlanRunner(Executor& executor, kube::EventRecorder& events, kube::Clock& clock, const Log& log)
      : executor_(executor), events_(events), clock_(clock), log_(log) {}

  // Told once for each object whose end now stands in its status: its kind, and "succeeded" or
  // "failed". May be empty.
  std::function<void(std::string_view kind, std::string_view result)> on_finished;

  // In the order that Plan documents. A failed action becomes a Warning event and the result's
  // error, but the status is written all the same: a child that is refused must not hide the
  // others' counts.
  kube::Task<kube::Result<Requeue>> run(ObjectRef object, kube::Plan plan);
  // How long a look at an object can wait whose children have changed, so that one look finds what
  // changes together; that wait is part of the wait of its counters.
  std::chrono::milliseconds wait_of(Stores::Debounce debounce, const kube::Resource& resource,
                                    const std::string& uid);
  // The object is gone: when its counters were written is forgotten.
  void forget(const std::string& uid) { pace_.forget(uid); }

 private:
  // Whether writes queue, or did so a moment ago.
  bool is_crowded();
  // How long a difference in counters must still wait; zero: write it now.
  std::chrono::milliseconds delay(const ObjectRef& object);
  kube::Task<kube::Result<Requeue>> write_status(const ObjectRef& object, kube::Plan& plan,
                                                 StatusRateLimiter::Time planned);
  void record(const ObjectRef& object, const kube::PlannedEvent& event);

  Executor& executor_;
  kube::EventRecorder& events_;
  kube::Clock& clock_;
  const Log& log_;
  StatusRateLimiter pace_;
  StatusRateLimiter::Time crowded_until_{};
};

}  // namespace trainer
