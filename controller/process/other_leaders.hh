// Other installations that lead at the same time.
#pragma once

#include <functional>
#include <string_view>

#include "kube/client/api_client.hh"
#include "kube/manager/log.hh"

namespace trainer {

// A Lease excludes replicas of one namespace only: an installation in another namespace reconciles
// the same objects. Reads the Leases of this name in all namespaces every half minute; one that was
// renewed in between belongs to another leader. `on_count` gets their number, and each is logged
// once. Runs until it is cancelled; the leader's client.
kube::Task<void> look_for_other_leaders(
    kube::ApiClient& client, kube::ObjectKey own,
    std::function<void(std::string_view name, std::size_t count)> on_count, const kube::Log& log);

}  // namespace trainer
