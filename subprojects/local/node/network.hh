// This is the network of a node's pods, with tier 1: a network namespace in which only the loopback
// is used. Another user of the machine cannot connect to ports that pods have there, nor take them.
// Processes of pods are not in it, so that everything else is like on the machine: downloads,
// proxies, services on 127.0.0.1, interfaces of NCCL, InfiniBand. Only the sockets by which pods
// reach each other are made in it (ports.hh).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kube/model/error.hh"
#include "local/node/files.hh"

namespace trainer::node {

// This is a connection to the process that has the namespace, `trainer shim network`. The process
// ends with its last connection: the agent and each shim have one, so it outlives a daemon as long
// as pods do. Concurrency: one thread.
class PodNetwork {
 public:
  // `state` is the directory of the node. If no such process runs, it is started: `shim` is the
  // command of run_shim().
  static kube::Result<PodNetwork> open(const std::filesystem::path& state,
                                       const std::vector<std::string>& shim);
  // Connects to the running process. Errors: there is none.
  static kube::Result<PodNetwork> join(const std::filesystem::path& state);

  // Works like socket(); the result is empty if that failed, or the process has ended.
  Fd open_socket(int domain, int type, int protocol) const;
  // The result identifies its namespace (SO_NETNS_COOKIE).
  std::uint64_t cookie() const { return cookie_; }

 private:
  explicit PodNetwork(Fd connection) : connection_(std::move(connection)) {}
  Fd connection_;
  std::uint64_t cookie_ = 0;
};

// Identifies the namespace in which a socket is; 0 if the kernel does not say so (before Linux
// 5.14).
std::uint64_t network_cookie(const Fd& socket);

// This is all that the process does; its descriptor 3 is a socket that listens. Returns its exit
// status.
int run_network();

// Tries in this process what run_network() needs. Errors: the kernel refuses it.
kube::Result<void> enter_new_network();

}  // namespace trainer::node
