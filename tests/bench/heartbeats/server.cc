#include "tests/bench/heartbeats/server.hh"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "controller/status/status_handler.hh"
#include "kube/client/certificates.hh"
#include "kube/client/kubeconfig.hh"
#include "tests/bench/heartbeats/job.hh"

namespace trainer::bench {
namespace {

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void say_verdict(const HeartbeatBoard& board) {
  const auto facts = board.find(kJobUid);
  if (!facts || !facts->stall) return;
  const auto& suspects = facts->stall->suspects;
  say(fmt::format("stalled {} {}", suspects.empty() ? -1 : suspects.front().rank,
                  std::chrono::steady_clock::now().time_since_epoch().count()));
}

}  // namespace

void serve_heartbeats(const std::string& api) {
  kube::asio::io_context io{1};
  kube::ClientConfig config;
  config.server = api;
  const auto transport = kube::make_transport(io, config, kube::TransportLimits());
  kube::SystemClock clock;
  kube::SystemRandom random;
  kube::ApiClient client(*transport, clock, random);
  const kube::Log log(kube::LogLevel::kInfo, kube::Log::Format::kText);
  const auto board = std::make_shared<HeartbeatBoard>();
  board->set_leading();
  board->listen([&io, board](const kube::ObjectKey&) {
    kube::asio::post(io, [board] { say_verdict(*board); });
  });
  StatusHandler handler(io, client, StatusLimits(), board, log);
  const auto made = kube::make_certificates({"127.0.0.1"}, clock.now());
  if (!made) throw std::runtime_error(made.error().message);
  kube::ServerOptions options;
  options.address = "127.0.0.1";
  options.is_tls = true;
  options.certificate_pem = made->certificate;
  options.private_key_pem = made->key;
  const auto server = kube::serve(io, std::move(options), [&handler](kube::ServerRequest request) {
    return handler.handle(std::move(request));
  });
  if (!server) throw std::runtime_error(server.error().message);
  say(fmt::format("listening {}", (*server)->port()));
  io.run();
}

}  // namespace trainer::bench
