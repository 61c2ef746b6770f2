#include "local/node/network.hh"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <system_error>
#include <utility>

#include "local/node/pod_config.hh"
#include "local/node/spawn.hh"

namespace trainer::node {

namespace {

using kube::Result;

constexpr const char* kSocketFile = "network";
constexpr int kFirstClient = 10'000;  // milliseconds
constexpr int kPause = 1'000;         // milliseconds
constexpr timeval kLongestAnswer{5, 0};

struct Wanted {
  int domain = 0;
  int type = 0;
  int protocol = 0;
};

Fd unix_socket() {
  return Fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

// The address is below the folder's descriptor: a path of a socket may have 107 characters only.
sockaddr_un address_below(const Fd& folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder.get(), kSocketFile);
  std::copy(path.begin(), path.end(), address.sun_path);
  return address;
}

Fd open_folder(const std::filesystem::path& state) {
  return Fd(::open(state.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

tl::unexpected<kube::Error> failure(const std::filesystem::path& state, std::string_view what) {
  return kube::fail(kube::ErrorCode::kInternal,
                    "{}: the network of the pods {}: `trainer local down` and `trainer local up` "
                    "start it again, and `--tier 2` runs pods without it",
                    (state / kSocketFile).native(), what);
}

tl::unexpected<kube::Error> failure_by_errno(const std::filesystem::path& state,
                                             std::string_view what) {
  const int error = errno;
  return failure(state, fmt::format("{} ({})", what, std::generic_category().message(error)));
}

tl::unexpected<kube::Error> refusal(std::string_view what, std::string_view why) {
  return kube::fail(kube::ErrorCode::kUnsupported,
                    "network namespace: {} ({}): `--tier 2` runs pods without one", what, why);
}

// Each client is a descriptor.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Returns whether accept() failed for lack of something that another client's end, or another
// process's, gives back: the connection waits meanwhile.
bool is_exhausted(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

Result<Fd> listen_below(const std::filesystem::path& state) {
  const Fd folder = open_folder(state);
  Fd listening = unix_socket();
  const sockaddr_un address = address_below(folder);
  unlinkat(folder.get(), kSocketFile, 0);
  // No connection is made before it listens, and then only by its owner.
  if (!listening ||
      bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(address.sun_path, S_IRUSR | S_IWUSR) != 0 || listen(listening.get(), SOMAXCONN) != 0)
    return failure_by_errno(state, "has no socket");
  return listening;
}

void send_descriptor(int to, const Fd& sent) {
  const int error = sent ? 0 : errno;
  send_message(to, {reinterpret_cast<const char*>(&error), sizeof error}, sent.get(), MSG_DONTWAIT);
}

// The result is empty, with errno, if there is none.
Fd receive_descriptor(int from) {
  int error = 0;
  Fd received;
  const bool has_come = receive_message(from, &error, sizeof error, received) > 0;
  if (!received) errno = has_come && error != 0 ? error : ENETDOWN;
  return received;
}

// Returns false if the client has gone.
bool serve(int client) {
  Wanted wanted;
  const ssize_t got = recv(client, &wanted, sizeof wanted, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got != sizeof wanted) return false;
  const bool is_internet = wanted.domain == AF_INET || wanted.domain == AF_INET6;
  Fd made;
  if (is_internet) made = Fd(socket(wanted.domain, wanted.type | SOCK_CLOEXEC, wanted.protocol));
  send_descriptor(client, made);
  return true;
}

}  // namespace

std::uint64_t network_cookie(const Fd& socket) {
  constexpr int kNetnsCookie = 71;  // SO_NETNS_COOKIE
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return getsockopt(socket.get(), SOL_SOCKET, kNetnsCookie, &cookie, &size) == 0 ? cookie : 0;
}

Result<PodNetwork> PodNetwork::join(const std::filesystem::path& state) {
  const Fd folder = open_folder(state);
  Fd connection = unix_socket();
  const sockaddr_un address = address_below(folder);
  if (connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failure_by_errno(state, "cannot be reached");
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.uid != geteuid())
    return failure(state, "is a process of another user");
  setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &kLongestAnswer, sizeof kLongestAnswer);
  PodNetwork made(std::move(connection));
  made.cookie_ = network_cookie(made.open_socket(AF_INET, SOCK_STREAM, 0));
  if (made.cookie_ == 0) return failure(state, "does not answer");
  return made;
}

Result<PodNetwork> PodNetwork::open(const std::filesystem::path& state, const Command& shim) {
  if (auto running = join(state)) return running;
  {
    const auto listening = listen_below(state);
    if (!listening) return tl::unexpected(listening.error());
    if (auto started = spawn_network(shim, *listening); !started)
      return tl::unexpected(started.error());
  }
  return join(state);  // it fails if the process has ended at once
}

Fd PodNetwork::open_socket(int domain, int type, int protocol) const {
  const Wanted wanted{domain, type, protocol};
  if (send(connection_.get(), &wanted, sizeof wanted, MSG_NOSIGNAL) != sizeof wanted) return Fd();
  return receive_descriptor(connection_.get());
}

Result<void> enter_new_network() {
  if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
      return refusal("it cannot be made", std::generic_category().message(errno));
  }
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  const bool is_read = socket && ioctl(socket.get(), SIOCGIFFLAGS, &loopback) == 0;
  loopback.ifr_flags = static_cast<short>(loopback.ifr_flags | IFF_UP);
  if (!is_read || ioctl(socket.get(), SIOCSIFFLAGS, &loopback) != 0)
    return refusal("its loopback interface cannot be used", std::generic_category().message(errno));
  if (network_cookie(socket) == 0) return refusal("it has no cookie", "Linux is before 5.14");
  return {};
}

int run_network() {
  std::signal(SIGPIPE, SIG_IGN);
  fcntl(kLockDescriptor, F_SETFD, FD_CLOEXEC);
  raise_descriptor_limit();
  if (const auto entered = enter_new_network(); !entered) {
    std::cerr << "trainer shim network: " << entered.error().message << '\n';
    return 1;
  }
  std::vector<Fd> clients;
  bool is_full = false;
  for (;;) {
    // A descriptor below 0 has no events.
    std::vector<pollfd> events{{is_full ? -1 : kLockDescriptor, POLLIN, 0}};
    for (const Fd& client : clients) events.push_back({client.get(), POLLIN, 0});
    const int limit = is_full ? kPause : clients.empty() ? kFirstClient : -1;
    const int ready = poll(events.data(), events.size(), limit);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) {
      std::cerr << "trainer shim network: poll: " << std::generic_category().message(errno) << '\n';
      return 1;
    }
    std::vector<Fd> left;
    for (std::size_t i = 0; i < clients.size(); ++i)
      if (events[i + 1].revents == 0 || serve(clients[i].get()))
        left.push_back(std::move(clients[i]));
    const bool has_left = left.size() < clients.size();
    clients = std::move(left);
    if (is_full) {
      is_full = ready > 0 && !has_left;
      continue;
    }
    if (clients.empty() && events.front().revents == 0) return 0;
    if (events.front().revents == 0) continue;
    Fd client(accept4(kLockDescriptor, nullptr, nullptr, SOCK_CLOEXEC));
    is_full = !client && is_exhausted(errno);
    if (client) clients.push_back(std::move(client));
  }
}

}  // namespace trainer::node
