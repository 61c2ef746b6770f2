// Shims are started here.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "kube/model/error.hh"
#include "local/node/files.hh"
#include "local/node/tiers.hh"

namespace trainer::node {

using Command = std::vector<std::string>;

// Returns the lock of a pod's directory; empty if a shim holds it. It passes to the shim, so that
// it is held without a gap, whenever this process is killed.
Fd lock_pod(const std::filesystem::path& directory);

// Starts the shim of a pod, in a session of its own; the result is a child process. `lock` is that
// of the directory.
kube::Result<pid_t> spawn_shim(const Command& shim, const std::filesystem::path& directory,
                               const std::string& pod_uid, const Fd& lock);
// Starts the process that has the network of the pods (network.hh), with `listening` as its
// descriptor 3.
kube::Result<void> spawn_network(const Command& shim, const Fd& listening);
// Asks the shim to end the pod with so many seconds of grace.
void stop_shim(int pidfd, int grace);

// The call blocks for some milliseconds.
kube::Result<TierProbe> probe_tiers_by(const Command& shim);

}  // namespace trainer::node
