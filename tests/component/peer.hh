// A client of a scripted API server, with a clock that only moves on request: the base of fixtures.
#pragma once

#include <memory>

#include "kube/client/api_client.hh"
#include "kube/manager/log.hh"
#include "kube/tests/fake_clock.hh"
#include "kube/tests/scripted_server.hh"

namespace trainer::test {

struct ScriptedPeer {
  kube::asio::io_context io;
  kube::FakeClock clock;
  kube::FakeRandom random;
  kube::ScriptedServer api{io};
  std::unique_ptr<kube::Transport> transport =
      kube::make_transport(io, api.config(), kube::TransportLimits());
  bool may_write = true;
  kube::ApiClient client;
  kube::Log log{kube::LogLevel::kError, kube::Log::Format::kText};

  explicit ScriptedPeer(kube::ApiClient::Options options = {})
      : client(*transport, clock, random, fenced(std::move(options))) {}

 private:
  kube::ApiClient::Options fenced(kube::ApiClient::Options options) {
    options.may_write = [this] { return may_write; };
    return options;
  }
};

}  // namespace trainer::test
