// Is the upstream JobSet controller running? Told by its Lease, wherever it is installed.
#pragma once

#include <functional>

#include "kube/client/api_client.hh"
#include "kube/client/watcher.hh"

namespace trainer {

// Follows Lease 6d4f6a47.jobset.x-k8s.io in all namespaces and calls `on_change` whenever it
// becomes held or stops being held: released, gone or not renewed for its duration. Runs until
// cancelled. `on_synced` is called once, when the first list has been read.
kube::Task<void> follow_upstream_lease(kube::ApiClient& client,
                                       std::function<void(bool is_held)> on_change,
                                       std::function<void()> on_synced);

}  // namespace trainer
