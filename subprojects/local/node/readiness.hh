// Readiness probes are made by TCP.
#pragma once

#include <optional>
#include <string>

#include "kube/client/task.hh"
#include "kube/model/json.hh"
#include "local/node/files.hh"

namespace trainer::node {

struct ReadinessProbe {
  unsigned short port = 0;
  std::chrono::seconds initial_delay{0};
  std::chrono::seconds period{10};
  std::chrono::seconds timeout{1};
  int success_threshold = 1;
  int failure_threshold = 3;
};

// Pure. Returns the container's probe, with its port's number; nullopt if it has none by tcpSocket.
std::optional<ReadinessProbe> readiness_probe_of(const kube::Json& container);

// Returns whether the address accepts a connection in time. `socket` is the one to use; if it is
// empty, a new one of this process is used.
kube::Task<bool> accepts_connections(std::string address, unsigned short port,
                                     kube::Milliseconds limit, Fd socket = Fd());

}  // namespace trainer::node
