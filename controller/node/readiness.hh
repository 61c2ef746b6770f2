// Readiness probes by TCP.
#pragma once

#include <optional>
#include <string>

#include "controller/node/files.hh"
#include "kube/client/task.hh"
#include "kube/model/json.hh"

namespace trainer::node {

struct ReadinessProbe {
  unsigned short port = 0;
  std::chrono::seconds initial_delay{0};
  std::chrono::seconds period{10};
  std::chrono::seconds timeout{1};
  int success_threshold = 1;
  int failure_threshold = 3;
};

// Pure: the container's, with its port's number; nullopt where it has none by tcpSocket.
std::optional<ReadinessProbe> readiness_probe_of(const kube::Json& container);

// Whether the address accepts a connection in time. `socket`: one that is to be used; empty: a new
// one of this process.
kube::Task<bool> accepts_connections(std::string address, unsigned short port,
                                     kube::Milliseconds limit, Fd socket = Fd());

}  // namespace trainer::node
