// This file finds why pods wait: the one cause that most of them share. Pure.
#pragma once

#include <optional>
#include <vector>

#include "runtimes/lifecycle/reasons.hh"
#include "runtimes/views/pod.hh"

namespace trainer {

// The cause that holds back the most pods; of equal counts the one that comes first by name.
// nullopt where no pod says why.
std::optional<WaitingCause> dominant_cause(const std::vector<const PodView*>& waiting);

}  // namespace trainer
