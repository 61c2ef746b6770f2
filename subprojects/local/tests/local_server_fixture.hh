// The server of local mode without a node, and a client of it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "local/server/local_server.hh"
#include "local/tests/local_api.hh"

namespace trainer::test {

struct LocalServerFixture {
  const TemporaryFolder folder;  // the server's files
  kube::Log log{kube::LogLevel::kError, kube::Log::Format::kText};
  kube::asio::io_context io;
  kube::SystemClock clock;
  kube::SystemRandom random;
  std::unique_ptr<LocalServer> server;
  std::unique_ptr<kube::Transport> transport;
  std::unique_ptr<kube::ApiClient> client;

  kube::Result<void> start(kube::server::ServedKinds kinds, LocalServerOptions options) {
    auto state = open_local_state(folder.path, "", clock.now());
    if (!state) return tl::unexpected(state.error());
    server =
        std::make_unique<LocalServer>(std::move(*state), std::move(kinds), std::move(options), log);
    if (auto started = server->start(); !started) return started;
    transport = server->transports()(io, kube::TransportLimits());
    client = std::make_unique<kube::ApiClient>(*transport, clock, random);
    return {};
  }
  void end() {
    client.reset();
    transport.reset();
    server.reset();
  }
  kube::Result<std::string> create(const kube::Resource& resource, kube::Json object,
                                   const std::string& manager = "trainer") {
    return kube::run_task(io, client->create(resource, std::move(object), manager));
  }
};

}  // namespace trainer::test
