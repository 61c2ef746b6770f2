// Writes the statuses of one controller's objects.
#pragma once

#include <string>

#include "kube/client/api_client.hh"
#include "kube/client/semaphore.hh"
#include "kube/manager/cache_set.hh"
#include "kube/manager/event_router.hh"
#include "kube/manager/log.hh"
#include "kube/manager/pending_status_writes.hh"

namespace kube {

// Concurrency: the control loops' thread; never two statuses of one object at a time.
class StatusWriter {
 public:
  // `writes` is shared with the executor: statuses wait for the creation of children in their
  // namespace, which leaves them a share.
  StatusWriter(ApiClient& client, CacheSet& caches, EventRouter& router, Semaphore& writes,
               const Log& log)
      : client_(client), caches_(caches), router_(router), writes_(writes), log_(log) {}
  StatusWriter(const StatusWriter&) = delete;
  StatusWriter& operator=(const StatusWriter&) = delete;

  // Sets the controller whose queue gets the objects after a write.
  void set_controller(std::size_t id) { controller_ = id; }

  // Writes the status difference of one object, conditional on the observed version. kConflict says
  // that another client wrote in between: the caller plans again. `is_minor` says that only
  // counters differ, so the object need not be reconciled after the write.
  Task<Result<void>> patch(Resource resource, ObjectKey key, std::string resource_version,
                           Json patch, bool is_minor);

  // Returns the stored version of the object, which is in the caches afterwards; "" if it is gone.
  Task<Result<std::string>> read(Resource resource, ObjectKey key);

  // Returns whether the object of this uid still exists.
  bool exists(const ObjectKey& key, const std::string& uid) const {
    return router_.find_owner(controller_, key.ns, uid) != nullptr;
  }

  // The event handler of the primary collection calls it. It returns true if the version may be of
  // a status write in flight: when that ends, it decides whether the object is enqueued.
  bool is_own_write(const ObjectKey& key, const std::string& version) {
    return router_.source() == ChangeSource::kOthers && pending_.record(key, version);
  }

 private:
  void end(const PendingStatusWrites::Write& write, std::string_view written_version);

  ApiClient& client_;
  CacheSet& caches_;
  EventRouter& router_;
  Semaphore& writes_;
  const Log& log_;
  PendingStatusWrites pending_;
  std::size_t controller_ = 0;
};

}  // namespace kube
