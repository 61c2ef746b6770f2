// This file computes how long an object of any kind has waited, and the metrics' label that says
// for what. Pure.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "kube/model/meta.hh"
#include "kube/model/time.hh"

namespace trainer {

// Returns the last of these times: the object's creation (`now` if it is not known), and the last
// change of each condition. Pointers may be null.
kube::Time waits_since(const std::optional<kube::Time>& created,
                       std::span<const kube::Condition* const> conditions, kube::Time now);

// Returns why an object in this phase neither runs nor has ended; "" for one in another phase.
// `refusal` is the reason of a condition ReplicaFailure that is true, or "".
std::string_view waiting_reason(std::string_view phase, std::string_view refusal);

}  // namespace trainer
