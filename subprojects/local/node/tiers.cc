#include "local/node/tiers.hh"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <system_error>

#include "local/node/files.hh"
#include "local/node/launch.hh"
#include "local/node/network.hh"
#include "local/node/ports.hh"
#include "local/node/sandbox.hh"

namespace trainer::node {

namespace {

constexpr int kLimit = 5'000;  // milliseconds
constexpr const char* kOwnAddress = "127.127.255.254";

// Returns what a child writes at once, before its end, which is awaited.
std::string answer_of(pid_t child, const Fd& output) {
  std::array<char, 512> text;
  pollfd event{output.get(), POLLIN, 0};
  const bool is_there = poll(&event, 1, kLimit) > 0;
  const ssize_t got = is_there ? read(output.get(), text.data(), text.size()) : 0;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return std::string(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
}

kube::Result<void> enter_probe() {
  PodConfig pod;
  pod.hostname = "probe";
  pod.memory_volumes.push_back({"/tmp"});
  return enter_namespaces(pod);
}

// Tries it in a process of its own, since a process cannot leave its namespaces again.
std::string try_to_enter(kube::Result<void> (*enter)()) {
  auto pipe = Pipe::make();
  if (!pipe) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const auto entered = enter();
    const std::string text = entered ? "ok" : entered.error().message;
    _exit(write(pipe->write.get(), text.data(), text.size()) > 0 ? 0 : 1);
  }
  pipe->write.reset();
  const std::string said = answer_of(child, pipe->read);
  return said == "ok" ? "" : said.empty() ? "the test process was stopped" : said;
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// Starts this program as a container with an address of its own. There it binds a port that this
// process has on 127.0.0.1.
std::string try_ports() {
  const Fd taken(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(taken.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return "no socket";
  PodConfig pod;
  pod.tier = Tier::kPorts;
  pod.address = kOwnAddress;
  ContainerConfig container;
  container.argv = {"/proc/self/exe", "shim", "bind", std::to_string(ntohs(address.sin_port))};
  container.working_dir = "/";
  const auto launched = launch(pod, container, "/");
  if (!launched) return launched.error().message;
  in_addr own{};
  inet_pton(AF_INET, kOwnAddress, &own);
  PortSupervisor ports(own);
  pollfd event{launched->listener.get(), POLLIN, 0};
  if (poll(&event, 1, kLimit) > 0 && (event.revents & POLLIN) != 0) ports.serve(event.fd);
  const std::string said = answer_of(launched->process, launched->out);
  return said == "ok" ? "" : said.empty() ? "the test process was stopped" : said;
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

std::string bind_loopback(std::uint16_t port) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  const bool is_bound =
      bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  return is_bound ? "ok" : "bind: " + std::generic_category().message(errno);
}

kube::Json to_json(const TierProbe& probe) {
  return kube::Json::object({{"namespaces", probe.namespaces_problem},
                             {"ports", probe.ports_problem},
                             {"network", probe.network_problem}});
}

TierProbe read_tier_probe(const kube::Json& value) {
  return {std::string(value.get_string("namespaces")), std::string(value.get_string("ports")),
          std::string(value.get_string("network"))};
}

TierProbe probe_tiers() {
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int signal : {SIGTERM, SIGCHLD, SIGPIPE}) sigaddset(&awaited, signal);
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  return {try_to_enter(enter_probe), try_ports(), try_to_enter(enter_new_network)};
}

}  // namespace trainer::node
