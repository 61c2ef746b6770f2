// Processes that have to end with their pod.
#pragma once

#include <string>

namespace trainer::node {

// Kills all descendants of the calling process, which has what it needs to find them: its own
// process numbers, or PR_SET_CHILD_SUBREAPER. Waits a second at most for those that do not end.
void kill_descendants();

// Kills every process that has this uid as its marker (kPodMarker), for a pod whose shim is gone.
// False where some of them still are.
bool kill_marked(const std::string& pod_uid);

}  // namespace trainer::node
