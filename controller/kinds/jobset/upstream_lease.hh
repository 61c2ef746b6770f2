// Is the upstream JobSet controller running? Told by its Lease, wherever it is installed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kube/client/api_client.hh"
#include "kube/client/watcher.hh"

namespace trainer {

// Follows Lease 6d4f6a47.jobset.x-k8s.io in the namespaces given, in all where none is, and calls
// `on_change` whenever it becomes held or stops being held: released, gone or not renewed for its
// duration. A watch that is silent proves nothing: of a Lease that seems to have run out the API
// server is asked, and until it has answered the Lease counts as held. Runs until cancelled.
// `on_synced` is called once, when the first list has been read.
kube::Task<void> follow_upstream_lease(kube::ApiClient& client, std::vector<std::string> namespaces,
                                       std::function<void(bool is_held)> on_change,
                                       std::function<void()> on_synced);

}  // namespace trainer
