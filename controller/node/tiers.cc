#include "controller/node/tiers.hh"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <system_error>

#include "controller/node/files.hh"
#include "controller/node/ports.hh"
#include "controller/node/sandbox.hh"

namespace trainer::node {

namespace {

constexpr int kLimit = 5'000;  // milliseconds
constexpr const char* kOwnAddress = "127.127.255.254";

// What a child writes until its end, which is awaited.
std::string answer_of(pid_t child, const Fd& output) {
  std::string answer;
  std::array<char, 512> piece;
  pollfd event{output.get(), POLLIN, 0};
  ssize_t got = 0;
  while (poll(&event, 1, kLimit) > 0 && (got = read(output.get(), piece.data(), piece.size())) > 0)
    answer.append(piece.data(), static_cast<std::size_t>(got));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return answer;
}

[[noreturn]] void answer(const Fd& output, const std::string& text) {
  _exit(write(output.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

std::string try_namespaces() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    PodConfig pod;
    pod.hostname = "probe";
    pod.memory_volumes.push_back({"/tmp"});
    const auto entered = enter_namespaces(pod);
    answer(write_end, entered ? "ok" : entered.error().message);
  }
  write_end.reset();
  const std::string said = answer_of(child, read_end);
  return said == "ok" ? "" : said.empty() ? "the test process was stopped" : said;
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// Under the filter: binds a port that another process has on 127.0.0.1.
[[noreturn]] void bind_taken(const Fd& output, sockaddr_in address) {
  const auto listener = install_port_filter();
  const int number = listener ? listener->get() : -1;
  if (write(output.get(), &number, sizeof number) != sizeof number || number < 0)
    answer(output, listener ? "no pipe" : listener.error().message);
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    answer(output, "ok");
  answer(output, "bind: " + std::generic_category().message(errno));
}

std::string try_ports() {
  const Fd taken(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  int ends[2];
  if (bind(taken.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      pipe2(ends, O_CLOEXEC) != 0)
    return "no socket";
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const pid_t child = fork();
  if (child == 0) bind_taken(write_end, address);
  write_end.reset();
  int number = -1;
  if (read(read_end.get(), &number, sizeof number) == sizeof number && number >= 0) {
    const Fd listener = copy_descriptor(open_process(child), number);
    in_addr own{};
    inet_pton(AF_INET, kOwnAddress, &own);
    PortSupervisor ports(own);
    pollfd event{listener.get(), POLLIN, 0};
    if (!listener)
      kill(child, SIGKILL);
    else if (poll(&event, 1, kLimit) > 0)
      ports.serve(listener.get());
  }
  const std::string said = answer_of(child, read_end);
  return said == "ok" ? "" : said.empty() ? "no right to other processes' sockets" : said;
}

}  // namespace

Tier TierProbe::best() const {
  if (!ports_problem.empty()) return Tier::kPlain;
  return namespaces_problem.empty() ? Tier::kNamespaces : Tier::kPorts;
}

std::string TierProbe::problem_of(Tier tier) const {
  if (tier == Tier::kPlain) return {};
  if (!ports_problem.empty()) return ports_problem;
  return tier == Tier::kNamespaces ? namespaces_problem : std::string();
}

kube::Json to_json(const TierProbe& probe) {
  return kube::Json::object(
      {{"namespaces", probe.namespaces_problem}, {"ports", probe.ports_problem}});
}

TierProbe read_tier_probe(const kube::Json& value) {
  return {std::string(value.get_string("namespaces")), std::string(value.get_string("ports"))};
}

TierProbe probe_tiers() {
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int signal : {SIGTERM, SIGCHLD, SIGPIPE}) sigaddset(&awaited, signal);
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  return {try_namespaces(), try_ports()};
}

}  // namespace trainer::node
