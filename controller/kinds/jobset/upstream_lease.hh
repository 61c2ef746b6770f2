// This file finds out, by its Lease, whether the upstream JobSet controller runs.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "kube/client/api_client.hh"
#include "kube/client/watcher.hh"
#include "kube/manager/log.hh"

namespace trainer {

struct UpstreamLeaseOptions {
  // The Lease is trusted in these namespaces, besides jobset-system and the namespace of upstream's
  // validating webhooks. A tenant can create one anywhere else.
  std::set<std::string, std::less<>> namespaces;
  std::function<void(bool is_held)> on_change;
  // It is called once, after the first on_change.
  std::function<void()> on_synced;
  // It is called with the number of Leases of this name that are held and not trusted.
  std::function<void(std::string_view name, std::size_t count)> on_ignored;
};

// Watches Lease 6d4f6a47.jobset.x-k8s.io in all namespaces. Calls `on_change` whenever a trusted
// one becomes held or is no longer held: it is released or deleted, or not renewed for its
// duration, of which at most a minute counts. A silent watch may have a dead connection, so a Lease
// that seems to have expired is listed from the API server, and counts as held until that has
// answered. A Lease that is not trusted is logged, once for each namespace. Runs until it is
// cancelled.
kube::Task<void> follow_upstream_lease(kube::ApiClient& client, UpstreamLeaseOptions options,
                                       const kube::Log& log);

}  // namespace trainer
