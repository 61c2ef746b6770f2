// A client of a scripted API server, with a clock that only moves on request: the base of fixtures.
#pragma once

#include <memory>

#include "kube/client/api_client.hh"
#include "kube/manager/log.hh"
#include "kube/tests/fake_clock.hh"
#include "kube/tests/scripted_server.hh"

namespace kube::test {

struct ScriptedPeer {
  asio::io_context io;
  FakeClock clock;
  FakeRandom random;
  ScriptedServer api{io};
  std::unique_ptr<Transport> transport = make_transport(io, api.config(), TransportLimits());
  bool may_write = true;
  ApiClient client;
  Log log{LogLevel::kError, Log::Format::kText};

  explicit ScriptedPeer(ApiClient::Options options = {})
      : client(*transport, clock, random, fenced(std::move(options))) {}

 private:
  ApiClient::Options fenced(ApiClient::Options options) {
    options.may_write = [this] { return may_write; };
    return options;
  }
};

}  // namespace kube::test
