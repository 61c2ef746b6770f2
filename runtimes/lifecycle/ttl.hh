// A finished object of any kind is deleted when its time to live has passed. Pure.
#pragma once

#include <optional>

#include "kube/model/meta.hh"
#include "kube/model/plan.hh"
#include "kube/model/time.hh"

namespace trainer {

// Returns the action that deletes the object and waits for what it owns. Before `expiry` the result
// is nullopt, and the next reconcile is due then.
std::optional<kube::Action> expire(kube::Plan& plan, const kube::Resource& resource,
                                   const kube::ObjectMeta& meta, kube::Time expiry, kube::Time now);

}  // namespace trainer
