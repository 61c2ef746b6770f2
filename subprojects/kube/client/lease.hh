// A coordination.k8s.io/v1 Lease elects one leader.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "kube/client/api_client.hh"

namespace kube {

struct LeaseOptions {
  ObjectKey key;
  std::string identity;
  Milliseconds duration{15'000};
  Milliseconds renew_deadline{10'000};
  Milliseconds retry_period{2'000};
  std::function<void(std::string_view holder)>
      on_holder;  // is called with every new holder, also with others
  // It is called when the lease was acquired or renewed, with the time (by Clock::since_boot())
  // until which this process may write, since no other process can hold the lease: the time when
  // the request was sent, plus `duration`, less half of (`duration` - `renew_deadline`). That half
  // is for writes that are in flight at that time. Before the lease is released, it is called with
  // a time long past. May be empty.
  std::function<void(Clock::Steady until)> on_renewed;
  // It is called if the lease has an older version than before, so the API server was restored from
  // a backup. This process may then know wrong states of any object. No watch reports that, since a
  // watch waits for versions that are yet to come. May be empty.
  std::function<void()> on_restored;
  // It is called with the reason why an attempt failed, such as a right that is missing; may be
  // empty.
  std::function<void(std::string_view)> on_error;
  LeaseOptions() {}
};

// Does what k8s.io/client-go/tools/leaderelection does: waits until the lease is free, calls
// on_started, renews. It calls on_stopped when the lease was lost (renew_deadline over, counted
// from when the last renewal should have been sent) or the task was cancelled. If it is cancelled
// as holder, or while it was becoming or staying one, it gives the lease back (holderIdentity ""),
// so a successor starts at once. It calls on_error if that fails.
Task<void> run_leader_election(ApiClient& client, LeaseOptions options,
                               std::function<void()> on_started, std::function<void()> on_stopped);

}  // namespace kube
