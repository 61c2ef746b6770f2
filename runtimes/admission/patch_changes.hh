// This file says when a runtimePatch counts as changed: both webhooks must agree about it. Pure.
#pragma once

#include <string_view>

#include "kube/model/json.hh"

namespace trainer {

// This is `manager` of Kueue's entry in spec.runtimePatches.
inline constexpr std::string_view kKueueManager = "kueue.x-k8s.io/manager";

// `time` does not count, and neither do empty members: clients built on Go structs add and drop
// them at will.
bool is_patch_changed(const kube::Json& before, const kube::Json& after);
// Compares the lists of two TrainJobs, in their order.
bool are_patches_changed(const kube::Json& before, const kube::Json& after);

}  // namespace trainer
