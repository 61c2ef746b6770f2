// This file says when a runtimePatch counts as changed: both webhooks must agree about it. Pure.
#pragma once

#include "kube/model/json.hh"

namespace trainer {

// `time` does not count, and neither do empty members: clients built on Go structs add and drop
// them at will.
bool is_patch_changed(const kube::Json& before, const kube::Json& after);
// Compares the lists of two TrainJobs, in their order.
bool are_patches_changed(const kube::Json& before, const kube::Json& after);

}  // namespace trainer
