// Other installations may lead at the same time.
#pragma once

#include <functional>
#include <string_view>

#include "kube/client/api_client.hh"
#include "kube/manager/log.hh"

namespace trainer {

// A Lease only excludes replicas in its namespace: an installation in another namespace would
// reconcile the same objects. Reads the Leases of this name in all namespaces every half minute;
// one that was renewed since the last read belongs to another leader. `on_count` gets their number,
// and each is logged once. Runs until it is cancelled; only the leader runs it.
kube::Task<void> look_for_other_leaders(
    kube::ApiClient& client, kube::ObjectKey own,
    std::function<void(std::string_view name, std::size_t count)> on_count, const kube::Log& log);

}  // namespace trainer
