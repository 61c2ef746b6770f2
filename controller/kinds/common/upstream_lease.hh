// This file finds out, by its Lease, whether an upstream controller runs.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "kube/client/api_client.hh"
#include "kube/client/watcher.hh"
#include "kube/manager/log.hh"

namespace trainer {

struct UpstreamController {
  std::string_view name;   // in logs: "JobSet controller"
  std::string_view lease;  // "6d4f6a47.jobset.x-k8s.io"
  std::string_view ns;     // the namespace in its manifests
  // Its validating webhooks are in this object, which only administrators write; "" if it has none.
  std::string_view webhooks;
  std::string_view setting;  // the member of the configuration that names further namespaces
};

struct UpstreamLeaseOptions {
  UpstreamController upstream;
  // The Lease is trusted in these namespaces, besides that of upstream's manifests and that of its
  // webhooks. A tenant can create one anywhere else.
  std::set<std::string, std::less<>> namespaces;
  std::function<void(bool is_held)> on_change;
  // It is called once, after the first on_change.
  std::function<void()> on_synced;
  // It is called with the number of Leases of this name that are held and not trusted.
  std::function<void(std::string_view name, std::size_t count)> on_ignored;
};

// Watches the Leases of this name in all namespaces. Calls `on_change` whenever a trusted
// one becomes held or is no longer held: it is released or deleted, or not renewed for its
// duration, of which at most a minute counts. A silent watch may have a dead connection, so a Lease
// that seems to have expired is listed from the API server, and counts as held until that has
// answered. A Lease that is not trusted is logged, once for each namespace. Runs until it is
// cancelled.
kube::Task<void> follow_upstream_lease(kube::ApiClient& client, UpstreamLeaseOptions options,
                                       const kube::Log& log);

}  // namespace trainer
