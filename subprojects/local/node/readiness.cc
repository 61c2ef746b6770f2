#include "local/node/readiness.hh"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "kube/client/with_deadline.hh"
#include "local/node/pod_runner.hh"

namespace trainer::node {

namespace {

using boost::asio::ip::tcp;
using kube::Json;
using kube::Task;

Task<bool> connects(std::string address, unsigned short port, Fd made) {
  tcp::socket socket(co_await boost::asio::this_coro::executor);
  if (made) socket.assign(tcp::v4(), made.release());
  const tcp::endpoint endpoint(boost::asio::ip::make_address(address), port);
  const auto [error] =
      co_await socket.async_connect(endpoint, boost::asio::as_tuple(boost::asio::use_awaitable));
  co_return !error;
}

}  // namespace

std::optional<ReadinessProbe> readiness_probe_of(const Json& container) {
  const Json& probe = container.get("readinessProbe");
  const Json* socket = probe.find("tcpSocket");
  if (socket == nullptr) return std::nullopt;
  ReadinessProbe made;
  made.port = static_cast<unsigned short>(socket->get_int("port"));
  for (const Json& port : container.get_array("ports"))
    if (port.get_string("name") == socket->get_string("port", "-"))
      made.port = static_cast<unsigned short>(port.get_int("containerPort"));
  made.initial_delay = std::chrono::seconds(probe.get_int("initialDelaySeconds"));
  made.period = std::chrono::seconds(std::max<std::int64_t>(probe.get_int("periodSeconds", 10), 1));
  made.timeout =
      std::chrono::seconds(std::max<std::int64_t>(probe.get_int("timeoutSeconds", 1), 1));
  made.success_threshold = static_cast<int>(probe.get_int("successThreshold", 1));
  made.failure_threshold = static_cast<int>(probe.get_int("failureThreshold", 3));
  return made;
}

Task<bool> accepts_connections(std::string address, unsigned short port, kube::Milliseconds limit,
                               Fd socket) {
  auto connecting = connects(std::move(address), port, std::move(socket));
  const auto connected = co_await kube::with_deadline(limit, std::move(connecting));
  co_return connected&&* connected;
}

// The result is empty if the machine's network leads to the pod.
Fd PodRunner::socket_to_pods() const {
  const bool is_in_network = address() != kHostAddress && node_.join_network();
  return is_in_network && node_.network ? node_.network->open_socket(AF_INET, SOCK_STREAM, 0)
                                        : Fd();
}

void PodRunner::start_probes() {
  for (const Json& container : pod_.get("spec").get_array("containers")) {
    const auto probe = readiness_probe_of(container);
    if (!probe) continue;
    std::string name(container.get_string("name"));
    is_ready_[name] = false;
    node_.tasks.spawn("probe", PodRunner::probe(shared_from_this(), std::move(name), *probe));
  }
}

Task<void> PodRunner::probe(std::shared_ptr<PodRunner> self, std::string container,
                            ReadinessProbe probe) {
  kube::Clock& clock = self->node_.client.clock();
  co_await kube::sleep(clock, probe.initial_delay);
  int successes = 0, failures = 0;
  while (!self->is_over() && !self->is_removed_) {
    bool is_up = self->is_running(container);
    if (is_up) {
      Fd of_pods = self->socket_to_pods();
      is_up = co_await accepts_connections(self->address(), probe.port, probe.timeout,
                                           std::move(of_pods));
    }
    successes = is_up ? successes + 1 : 0;
    failures = is_up ? 0 : failures + 1;
    bool& is_ready = self->is_ready_[container];
    const bool was_ready = is_ready;
    if (successes >= probe.success_threshold) is_ready = true;
    if (failures >= probe.failure_threshold) is_ready = false;
    if (is_ready != was_ready) self->touch();
    co_await kube::sleep(clock, probe.period);
  }
}

}  // namespace trainer::node
