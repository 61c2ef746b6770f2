// Whether the upstream JobSet controller runs in any namespace, by its Lease.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kube/client/api_client.hh"
#include "kube/client/watcher.hh"

namespace trainer {

// Watches Lease 6d4f6a47.jobset.x-k8s.io in `namespaces` (empty: in all), and calls `on_change`
// whenever it becomes held or stops being held: released, deleted or not renewed for its duration.
// A silent watch may have a dead connection, so a Lease that seems to have expired is listed from
// the API server; until that has answered, the Lease counts as held. Runs until it is cancelled.
// `on_synced` is called once, when the first list has been read.
kube::Task<void> follow_upstream_lease(kube::ApiClient& client, std::vector<std::string> namespaces,
                                       std::function<void(bool is_held)> on_change,
                                       std::function<void()> on_synced);

}  // namespace trainer
