// The process of a container is started here.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "kube/model/error.hh"
#include "local/node/files.hh"
#include "local/node/pod_config.hh"

namespace trainer::node {

struct Launched {
  pid_t process = -1;  // the leader of a session of its own
  Fd out, err;         // its output, not blocking
  Fd listener;         // the listener of its port filter, if the pod has an address
};

// Waits until the program runs; an error says why it does not: not found, no such directory. All
// signals of the program have their defaults; it gets SIGKILL when the caller ends.
kube::Result<Launched> launch(const PodConfig& pod, const ContainerConfig& container,
                              const std::filesystem::path& directory);

}  // namespace trainer::node
