#include "local/node/ports.hh"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "local/node/socket_move.hh"

namespace trainer::node {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;  // none: programs bind the host's ports
#endif

// The address is ::ffff:A.B.C.D.
in6_addr mapped(in_addr address) {
  in6_addr made{};
  made.s6_addr[10] = made.s6_addr[11] = 0xff;
  std::memcpy(&made.s6_addr[12], &address, sizeof address);
  return made;
}

// Returns the IPv4 address that an IPv6 address means on this machine; nullopt if it means another
// one.
std::optional<in_addr> as_v4(const in6_addr& address) {
  in_addr v4{};
  if (IN6_IS_ADDR_UNSPECIFIED(&address)) {
    v4.s_addr = htonl(INADDR_ANY);
  } else if (IN6_IS_ADDR_LOOPBACK(&address)) {
    v4.s_addr = htonl(INADDR_LOOPBACK);
  } else if (IN6_IS_ADDR_V4MAPPED(&address)) {
    std::memcpy(&v4, &address.s6_addr[12], sizeof v4);
  } else {
    return std::nullopt;
  }
  return v4;
}

std::optional<in_addr> v4_of(const SocketAddress& address) {
  if (address.any.sa_family == AF_INET) return address.v4.sin_addr;
  if (address.any.sa_family == AF_INET6) return as_v4(address.v6.sin6_addr);
  return std::nullopt;
}

bool is_wildcard(in_addr address) {
  return address.s_addr == htonl(INADDR_ANY);
}

bool is_localhost(in_addr address) {
  return address.s_addr == htonl(INADDR_LOOPBACK);
}

// AddressTable gives pods these addresses.
bool is_of_pods(const SocketAddress& address) {
  const auto to = v4_of(address);
  return to && (ntohl(to->s_addr) & 0xffc00000U) == 0x7f400000U;  // 127.64.0.0/10
}

SocketAddress moved(SocketAddress address, in_addr own) {
  if (address.any.sa_family == AF_INET)
    address.v4.sin_addr = own;
  else
    address.v6.sin6_addr = mapped(own);
  return address;
}

// pidfds are of processes, notifications of threads.
pid_t process_of(pid_t thread) {
  const auto status = read_file("/proc/" + std::to_string(thread) + "/status");
  if (!status) return thread;
  constexpr std::string_view kName = "\nTgid:\t";
  const auto at = status->find(kName);
  pid_t process = thread;
  if (at != std::string::npos)
    std::from_chars(status->data() + at + kName.size(), status->data() + status->size(), process);
  return process;
}

Fd copy_of_socket(const seccomp_notif& call) {
  const Fd process = open_process(process_of(static_cast<pid_t>(call.pid)));
  return copy_descriptor(process, static_cast<int>(call.data.args[0]));
}

iovec remote_memory(const seccomp_notif& call, std::size_t size) {
  return {reinterpret_cast<void*>(call.data.args[1]), size};
}

bool read_address(const seccomp_notif& call, SocketAddress& address, std::size_t size) {
  const iovec local{&address, size};
  const iovec remote = remote_memory(call, size);
  return process_vm_readv(static_cast<pid_t>(call.pid), &local, 1, &remote, 1, 0) ==
         static_cast<ssize_t>(size);
}

bool rewrite_address(const seccomp_notif& call, SocketAddress address, std::size_t size) {
  const iovec local{&address, size};
  const iovec remote = remote_memory(call, size);
  return process_vm_writev(static_cast<pid_t>(call.pid), &local, 1, &remote, 1, 0) ==
         static_cast<ssize_t>(size);
}

bool is_still_waiting(int listener, const seccomp_notif& call) {
  return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &call.id) == 0;
}

int option_of(int socket, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(socket, level, name, &value, &size) == 0 ? value : 0;
}

bool is_v6_only(int socket) {
  return option_of(socket, IPPROTO_IPV6, IPV6_V6ONLY) != 0;
}

bool is_stream(int socket) {
  return option_of(socket, SOL_SOCKET, SO_TYPE) == SOCK_STREAM;
}

}  // namespace

std::optional<std::uint16_t> port_of(const SocketAddress& address) {
  if (address.any.sa_family == AF_INET) return ntohs(address.v4.sin_port);
  if (address.any.sa_family == AF_INET6) return ntohs(address.v6.sin6_port);
  return std::nullopt;
}

std::optional<SocketAddress> redirect_bind(const SocketAddress& address, in_addr own,
                                           bool is_any_port) {
  const auto to = v4_of(address);
  if (!to || (port_of(address) == 0 && !is_any_port) || (!is_wildcard(*to) && !is_localhost(*to)))
    return std::nullopt;
  return moved(address, own);
}

std::optional<SocketAddress> redirect_connect(const SocketAddress& address, in_addr own,
                                              const std::set<std::uint16_t>& bound) {
  const auto to = v4_of(address);
  // Linux takes the wildcard for loopback.
  if (!to || (!is_wildcard(*to) && !is_localhost(*to)) || !bound.contains(*port_of(address)))
    return std::nullopt;
  return moved(address, own);
}

kube::Result<Fd> install_port_filter() {
  if (kArchitecture == 0)
    return kube::fail(kube::ErrorCode::kUnsupported, "seccomp: not on this processor");
  constexpr auto kLoad = static_cast<std::uint16_t>(BPF_LD | BPF_W | BPF_ABS);
  constexpr auto kEqual = static_cast<std::uint16_t>(BPF_JMP | BPF_JEQ | BPF_K);
  constexpr auto kReturn = static_cast<std::uint16_t>(BPF_RET | BPF_K);
  std::array<sock_filter, 7> rules{{
      {kLoad, 0, 0, offsetof(seccomp_data, arch)},
      {kEqual, 0, 3, kArchitecture},
      {kLoad, 0, 0, offsetof(seccomp_data, nr)},
      {kEqual, 2, 0, __NR_bind},
      {kEqual, 1, 0, __NR_connect},
      {kReturn, 0, 0, SECCOMP_RET_ALLOW},
      {kReturn, 0, 0, SECCOMP_RET_USER_NOTIF},
  }};
  const sock_fprog program{static_cast<std::uint16_t>(rules.size()), rules.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return system_failure("no_new_privs");
  constexpr unsigned long kFlags =
      SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
  // A signal does not interrupt a call that is being served (Linux 5.19): it would be made twice.
  for (const unsigned long flags : {kFlags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, kFlags}) {
    const long listener = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (listener >= 0) return Fd(static_cast<int>(listener));
    if (errno != EINVAL) break;
  }
  return system_failure("seccomp");
}

struct PortSupervisor::Buffers {
  std::vector<std::byte> call, answer;
};

PortSupervisor::PortSupervisor(in_addr own, std::optional<PodNetwork> network)
    : own_(own), network_(std::move(network)), buffers_(std::make_unique<Buffers>()) {
  seccomp_notif_sizes sizes{};
  // The kernel's structures may be longer than the compiler's.
  syscall(__NR_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes);
  buffers_->call.resize(std::max<std::size_t>(sizes.seccomp_notif, sizeof(seccomp_notif)));
  buffers_->answer.resize(
      std::max<std::size_t>(sizes.seccomp_notif_resp, sizeof(seccomp_notif_resp)));
}

PortSupervisor::~PortSupervisor() = default;

bool PortSupervisor::serve(int listener) {
  std::fill(buffers_->call.begin(), buffers_->call.end(), std::byte{0});
  std::fill(buffers_->answer.begin(), buffers_->answer.end(), std::byte{0});
  auto* call = reinterpret_cast<seccomp_notif*>(buffers_->call.data());
  auto* answer = reinterpret_cast<seccomp_notif_resp*>(buffers_->answer.data());
  // ENOENT: the caller was killed meanwhile.
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, call) != 0)
    return errno == EINTR || errno == ENOENT || errno == EAGAIN;
  answer->id = call->id;
  if (const auto outcome = decide(listener, *call))
    answer->error = -*outcome;
  else
    answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, answer);
  return true;
}

std::optional<int> PortSupervisor::decide(int listener, const seccomp_notif& call) {
  SocketAddress address{};
  const std::size_t size = call.data.args[2];
  if (size < sizeof(sockaddr_in) || size > sizeof address || !read_address(call, address, size) ||
      (address.any.sa_family == AF_INET6 && size < sizeof(sockaddr_in6)))
    return std::nullopt;
  if (call.data.nr == __NR_connect) return decide_connect(listener, call, address, size);
  const Fd socket = network_ ? copy_of_socket(call) : Fd();
  // A datagram socket without a port of its own may send to other machines.
  const auto to = redirect_bind(address, own_, network_ && is_stream(socket.get()));
  if (to || (network_ && is_of_pods(address)))
    return bind_copy(listener, call, to.value_or(address), size);
  const auto own = v4_of(address);
  if (own && own->s_addr == own_.s_addr) bound_.insert(*port_of(address));
  return std::nullopt;
}

// The call is not executed here: it may take long, and others would wait.
std::optional<int> PortSupervisor::decide_connect(int listener, const seccomp_notif& call,
                                                  const SocketAddress& address, std::size_t size) {
  const auto to = redirect_connect(address, own_, bound_);
  const bool is_internet = address.any.sa_family == AF_INET || address.any.sa_family == AF_INET6;
  Fd socket = to || (network_ && is_internet) ? copy_of_socket(call) : Fd();
  if (!is_still_waiting(listener, call)) return std::nullopt;
  if (network_ && socket && !move(listener, call, socket, is_of_pods(to.value_or(address))))
    return ENETUNREACH;
  if (!to || rewrite_address(call, *to, size)) return std::nullopt;
  if (!socket || !is_still_waiting(listener, call)) return std::nullopt;
  return connect(socket.get(), &to->any, static_cast<socklen_t>(size)) == 0 ? 0 : errno;
}

bool PortSupervisor::move(int listener, const seccomp_notif& call, Fd& socket, bool is_of_pods) {
  if ((network_cookie(socket) == network_->cookie()) == is_of_pods) return true;
  const int domain = option_of(socket.get(), SOL_SOCKET, SO_DOMAIN);
  const int type = option_of(socket.get(), SOL_SOCKET, SO_TYPE);
  const int protocol = option_of(socket.get(), SOL_SOCKET, SO_PROTOCOL);
  Fd fresh = is_of_pods ? network_->open_socket(domain, type, protocol)
                        : Fd(::socket(domain, type | SOCK_CLOEXEC, protocol));
  if (!fresh) return false;
  copy_options(socket, fresh);
  const WaitingCall waiting{listener, call.id, process_of(static_cast<pid_t>(call.pid)),
                            static_cast<int>(call.data.args[0])};
  if (!replace_socket(waiting, fresh)) return false;
  socket = std::move(fresh);
  return true;
}

std::optional<int> PortSupervisor::bind_copy(int listener, const seccomp_notif& call,
                                             const SocketAddress& to, std::size_t size) {
  Fd socket = copy_of_socket(call);
  if (!is_still_waiting(listener, call)) return std::nullopt;
  if (!socket) {
    if (!rewrite_address(call, to, size)) return std::nullopt;
    bound_.insert(*port_of(to));
    return std::nullopt;
  }
  // There is one IPv6 loopback address, so it has no ports for each pod. Programs that ask for both
  // families go on with the other.
  if (to.any.sa_family == AF_INET6 && is_v6_only(socket.get())) return EADDRNOTAVAIL;
  if (network_ && !move(listener, call, socket, true)) return EADDRNOTAVAIL;
  // A name keeps its address, so connections of an earlier pod may still be in TIME_WAIT there.
  if (is_stream(socket.get())) {
    constexpr int kYes = 1;
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &kYes, sizeof kYes);
  }
  if (bind(socket.get(), &to.any, static_cast<socklen_t>(size)) != 0) return errno;
  note_bound(socket);
  return 0;
}

// Asks for the port of the socket, since the kernel may have chosen it.
void PortSupervisor::note_bound(const Fd& socket) {
  SocketAddress address{};
  socklen_t size = sizeof address;
  if (getsockname(socket.get(), &address.any, &size) != 0) return;
  const auto own = v4_of(address);
  if (own && own->s_addr == own_.s_addr) bound_.insert(*port_of(address));
}

}  // namespace trainer::node
