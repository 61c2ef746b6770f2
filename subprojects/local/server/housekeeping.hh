// Housekeeping is garbage collection, the end of objects whose CustomResourceDefinition was
// deleted, and the expiry of Events. In a cluster kube-controller-manager, kube-apiserver and etcd
// do this.
#pragma once

#include <cstddef>

#include "kube/client/clock.hh"
#include "kube/client/notifier.hh"
#include "kube/manager/log.hh"
#include "kube/server/api.hh"
#include "kube/server/collector.hh"
#include "local/server/custom_kinds.hh"

namespace trainer {

// Runs the garbage collector; erases objects that are no longer defined; deletes Events an hour
// after their last change, and the oldest of more than 10,000. Concurrency: the store's thread. It
// outlives the store's last change.
class Housekeeping {
 public:
  static constexpr std::size_t kMaxEvents = 10'000;
  static constexpr std::chrono::hours kEventLife{1};

  // Begins with the objects in the store.
  Housekeeping(kube::asio::any_io_executor executor, kube::Clock& clock, kube::server::Api& api,
               CustomKinds& custom_kinds, const kube::Log& log);
  Housekeeping(const Housekeeping&) = delete;
  Housekeeping& operator=(const Housekeeping&) = delete;

  // Runs until it is cancelled. If a change cannot be stored, it is tried again.
  kube::Task<void> run();

 private:
  bool has_too_many_events() const;
  kube::Task<void> collect();
  void drop_events();

  kube::Clock& clock_;
  kube::server::Api& api_;
  CustomKinds& custom_kinds_;
  const kube::Log& log_;
  kube::server::Collector collector_;
  kube::Notifier wake_;
  kube::Clock::Steady drop_at_;  // old Events are deleted the next time then
};

}  // namespace trainer
