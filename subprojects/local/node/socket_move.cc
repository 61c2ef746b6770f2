#include "local/node/socket_move.hh"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

namespace trainer::node {

namespace {

struct Option {
  int level;
  int name;
};
constexpr std::array<Option, 22> kOptions = {{
    {SOL_SOCKET, SO_REUSEADDR},
    {SOL_SOCKET, SO_REUSEPORT},
    {SOL_SOCKET, SO_KEEPALIVE},
    {SOL_SOCKET, SO_BROADCAST},
    {SOL_SOCKET, SO_LINGER},
    {SOL_SOCKET, SO_OOBINLINE},
    {SOL_SOCKET, SO_PRIORITY},
    {SOL_SOCKET, SO_RCVLOWAT},
    {SOL_SOCKET, SO_RCVTIMEO},
    {SOL_SOCKET, SO_SNDTIMEO},
    {IPPROTO_IP, IP_TOS},
    {IPPROTO_IPV6, IPV6_V6ONLY},
    {IPPROTO_TCP, TCP_NODELAY},
    {IPPROTO_TCP, TCP_CORK},
    {IPPROTO_TCP, TCP_KEEPIDLE},
    {IPPROTO_TCP, TCP_KEEPINTVL},
    {IPPROTO_TCP, TCP_KEEPCNT},
    {IPPROTO_TCP, TCP_SYNCNT},
    {IPPROTO_TCP, TCP_LINGER2},
    {IPPROTO_TCP, TCP_DEFER_ACCEPT},
    {IPPROTO_TCP, TCP_USER_TIMEOUT},
    {IPPROTO_TCP, TCP_FASTOPEN},
}};

using Value = std::array<std::byte, 32>;

std::optional<Value> value_of(const Fd& socket, Option option, socklen_t& size) {
  Value value{};
  size = value.size();
  if (getsockopt(socket.get(), option.level, option.name, value.data(), &size) != 0)
    return std::nullopt;
  return value;
}

// The kernel returns twice the value that was set.
void copy_buffer_size(const Fd& from, const Fd& to, int name) {
  int wanted = 0, has = 0;
  socklen_t size = sizeof wanted;
  if (getsockopt(from.get(), SOL_SOCKET, name, &wanted, &size) != 0 ||
      getsockopt(to.get(), SOL_SOCKET, name, &has, &size) != 0 || wanted == has)
    return;
  wanted /= 2;
  setsockopt(to.get(), SOL_SOCKET, name, &wanted, sizeof wanted);
}

// The number behind "flags:\t" of fdinfo, which is octal.
bool is_closed_on_exec(const WaitingCall& call) {
  const auto info = read_file(fmt::format("/proc/{}/fdinfo/{}", call.process, call.socket));
  constexpr std::string_view kName = "flags:\t";
  const auto at = info ? info->find(kName) : std::string::npos;
  unsigned flags = 0;
  if (at != std::string::npos)
    std::from_chars(info->data() + at + kName.size(), info->data() + info->size(), flags, 8);
  return (flags & O_CLOEXEC) != 0;
}

// Lets this process have a descriptor of this number, for a moment: processes that it starts later
// have the former limit.
class RoomFor {
 public:
  explicit RoomFor(int number) {
    if (getrlimit(RLIMIT_NOFILE, &before_) != 0) return;
    rlimit wanted = before_;
    wanted.rlim_cur = std::max(wanted.rlim_cur, static_cast<rlim_t>(number) + 1);
    wanted.rlim_max = std::max(wanted.rlim_max, wanted.rlim_cur);
    is_raised_ = wanted.rlim_cur != before_.rlim_cur && setrlimit(RLIMIT_NOFILE, &wanted) == 0;
  }
  RoomFor(const RoomFor&) = delete;
  RoomFor& operator=(const RoomFor&) = delete;
  ~RoomFor() {
    if (is_raised_) setrlimit(RLIMIT_NOFILE, &before_);
  }

 private:
  rlimit before_{};
  bool is_raised_ = false;
};

// Adds the socket to the set if the old one is a member: "tfd: 5 events: 19 data: 7f..." in fdinfo.
// Returns false if there is a set that does not have it.
bool add_to_sets(const WaitingCall& call, const Fd& fresh) {
  const std::string folder = fmt::format("/proc/{}/fd", call.process);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(folder.c_str()), closedir);
  const Fd process = open_process(call.process);
  if (!listing || !process) return false;
  while (const dirent* entry = readdir(listing.get())) {
    std::array<char, 32> target{};
    if (readlinkat(dirfd(listing.get()), entry->d_name, target.data(), target.size() - 1) < 0 ||
        std::string_view(target.data()) != "anon_inode:[eventpoll]")
      continue;
    const std::string info =
        read_file(fmt::format("/proc/{}/fdinfo/{}", call.process, entry->d_name)).value_or("");
    const std::string wanted = fmt::format("tfd: {:8} events:", call.socket);
    const auto at = info.find(wanted);
    epoll_event event{};
    unsigned events = 0;
    unsigned long long data = 0;
    if (at == std::string::npos ||
        std::sscanf(info.c_str() + at + wanted.size(), "%x data: %llx", &events, &data) != 2)
      continue;
    event.events = events;
    event.data.u64 = data;
    const Fd set = copy_descriptor(process, std::atoi(entry->d_name));
    // Another thread of the process may have closed the set meanwhile.
    if (!set && errno == EBADF) continue;
    if (!set || !add_to_set(set, fresh, call.socket, event)) return false;
  }
  return true;
}

}  // namespace

void copy_options(const Fd& from, const Fd& to) {
  for (const Option option : kOptions) {
    socklen_t size = 0, size_of_new = 0;
    const auto wanted = value_of(from, option, size);
    if (!wanted || wanted == value_of(to, option, size_of_new)) continue;
    setsockopt(to.get(), option.level, option.name, wanted->data(), size);
  }
  for (const int name : {SO_SNDBUF, SO_RCVBUF}) copy_buffer_size(from, to, name);
  fcntl(to.get(), F_SETFL, fcntl(from.get(), F_GETFL) & (O_NONBLOCK | O_ASYNC));
}

// A set finds its members by file and number, so `fresh` needs the number that it has in the
// process. This process has one thread: for a moment another of its descriptors is out of the way,
// which may be `set` or `fresh`.
bool add_to_set(const Fd& set, const Fd& fresh, int number, epoll_event event) {
  const RoomFor room(number);
  const Fd saved(fcntl(number, F_DUPFD_CLOEXEC, 0));
  if (!saved && errno != EBADF) return false;
  const int flags = saved ? fcntl(number, F_GETFD) : 0;
  const Fd& member = fresh.get() == number ? saved : fresh;
  const int container = set.get() == number ? saved.get() : set.get();
  if (dup3(member.get(), number, O_CLOEXEC) < 0) return false;
  // The process may have two descriptors of one set.
  const bool is_added = epoll_ctl(container, EPOLL_CTL_ADD, number, &event) == 0 || errno == EEXIST;
  if (saved) {
    dup3(saved.get(), number, flags == FD_CLOEXEC ? O_CLOEXEC : 0);
  } else {
    close(number);
  }
  return is_added;
}

// If a set has not taken the socket, the others lose it again when the caller closes it.
bool replace_socket(const WaitingCall& call, const Fd& fresh) {
  if (!add_to_sets(call, fresh)) return false;
  seccomp_notif_addfd added{};
  added.id = call.id;
  added.flags = SECCOMP_ADDFD_FLAG_SETFD;
  added.srcfd = static_cast<std::uint32_t>(fresh.get());
  added.newfd = static_cast<std::uint32_t>(call.socket);
  added.newfd_flags = is_closed_on_exec(call) ? O_CLOEXEC : 0;
  return ioctl(call.listener, SECCOMP_IOCTL_NOTIF_ADDFD, &added) >= 0;
}

}  // namespace trainer::node
