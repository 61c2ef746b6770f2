// With tier 1, processes of a pod see this of the machine: all of the host's files with the pod's
// volumes among them, and a host name, shared memory and process numbers of their own. It needs no
// rights if the kernel lets users make user namespaces. It is no protection: the files are the
// user's own.
#pragma once

#include <string>
#include <vector>

#include "kube/model/error.hh"
#include "local/node/pod_config.hh"

namespace trainer::node {

// Gives the shim namespaces of mounts, process numbers, host name and System V IPC. The call
// returns in another process: the first of the new process numbers, whose end ends all others. The
// caller stays behind, passes SIGTERM on, and ends with it. SIGTERM and SIGCHLD are blocked. Errors
// are those of the kernel; they may come from either process.
kube::Result<void> enter_namespaces(const PodConfig& pod);

// The plan says at which places a tree has to be taken apart so that something can be put into it.
// Reads the file system.
struct TreePlan {
  // These directories are made empty, and each entry of the host's directory is put in, since
  // entries are added to them.
  std::vector<std::string> opened;
  std::vector<std::string> replaced;  // entries of those that are left out
};
// Errors name the path: its parent is a file, or it cannot be read.
kube::Result<TreePlan> plan_tree(const std::vector<Mount>& mounts);

// It is called in a process after enter_namespaces(): makes a tree of the host's files with
// `mounts` in it, at the existing empty directory `root`, and goes there. A mount without a source
// is a directory that has to exist.
kube::Result<void> enter_tree(const std::string& root, std::vector<Mount> mounts);

}  // namespace trainer::node
