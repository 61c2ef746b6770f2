// Each pod has ports of its own. All processes are in the machine's network, and each pod has an
// address of 127.0.0.0/8. A seccomp filter notifies the pod's shim of each bind() and connect();
// the shim moves those that mean "this machine" to the pod's address:
//   bind to the wildcard or loopback, with a port   -> the same port of the pod's address
//   connect to loopback, at a port that the pod has bound  -> that port of the pod's address
// So two pods bind the same port, and 127.0.0.1 at any other port is still the host's. Data, and
// connections to other machines, are not touched. Where pods have a network of their own
// (network.hh), a socket that is bound or connected to a pod's address is replaced by one in there
// first, and other users of the machine do not reach it. Without one, all of them do.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "kube/model/error.hh"
#include "local/node/files.hh"
#include "local/node/network.hh"

struct seccomp_notif;
struct seccomp_notif_resp;

namespace trainer::node {

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
  sockaddr_storage whole;
};

// Returns the port in host order; nullopt for a family without ports.
std::optional<std::uint16_t> port_of(const SocketAddress& address);
// Pure. Returns where a bind() or connect() goes instead; nullopt: nowhere else. An IPv6 socket
// gets the mapped form of `own`. `is_any_port` says that a bind to port 0 is moved, too.
std::optional<SocketAddress> redirect_bind(const SocketAddress& address, in_addr own,
                                           bool is_any_port = false);
std::optional<SocketAddress> redirect_connect(const SocketAddress& address, in_addr own,
                                              const std::set<std::uint16_t>& bound);

// The filter is for the calling thread and the processes that it starts, and stays for good. The
// result is the descriptor at which notifications are received: without a receiver the calls of
// programs under the filter fail with ENOSYS. Errors: the kernel does not offer it, or there is
// another filter with a receiver. Sets no_new_privs.
kube::Result<Fd> install_port_filter();

// This is the receiver for the containers of one pod. Concurrency: one thread, which may not be
// under the filter itself.
class PortSupervisor {
 public:
  explicit PortSupervisor(in_addr own, std::optional<PodNetwork> network = std::nullopt);
  ~PortSupervisor();

  // Serves one notification of a listener that is readable. Returns false if all programs under
  // this filter have ended.
  bool serve(int listener);

 private:
  struct Buffers;
  // Returns what the program gets: an errno, 0, or nullopt if the kernel goes on with its call.
  std::optional<int> decide(int listener, const seccomp_notif& call);
  std::optional<int> decide_connect(int listener, const seccomp_notif& call,
                                    const SocketAddress& address, std::size_t size);
  std::optional<int> bind_copy(int listener, const seccomp_notif& call, const SocketAddress& to,
                               std::size_t size);
  // Replaces the socket if it is in another network than that of its peers. Returns false if it
  // cannot be replaced.
  bool move(int listener, const seccomp_notif& call, Fd& socket, bool is_of_pods);
  void note_bound(const Fd& socket);

  in_addr own_;
  std::optional<PodNetwork> network_;
  std::set<std::uint16_t> bound_;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace trainer::node
