// This file finds why pods wait: the one cause that most of them share. Pure.
#pragma once

#include <optional>
#include <vector>

#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/views/pod.hh"

namespace trainer {

// Returns the cause that holds back the most pods. If counts are equal, it is the one that comes
// first by name. The result is nullopt if no pod says why.
std::optional<WaitingCause> dominant_cause(const std::vector<const PodView*>& waiting);

}  // namespace trainer
