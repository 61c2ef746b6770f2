// Some processes have to end with their pod.
#pragma once

#include <string>

namespace trainer::node {

// Kills all descendants of the calling process. It needs its own process numbers, or
// PR_SET_CHILD_SUBREAPER, to find them. Waits a second at most for those that do not end.
void kill_descendants();

// Kills every process that has this uid as its marker (kPodMarker), for a pod whose shim is gone.
// Returns false if some of them still exist.
bool kill_marked(const std::string& pod_uid);

}  // namespace trainer::node
