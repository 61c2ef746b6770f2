// The serving thread hangs, and the control thread goes on.
#include "controller/process/serving.hh"

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <future>

#include "kube/tests/free_port.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_peer.hh"
#include "tests/component/admission_fixture.hh"
#include "tests/support/catch.hh"

using namespace trainer;

namespace {

// Keeps the thread until it is released.
class StuckHandler final : public RequestHandler {
 public:
  StuckHandler(std::atomic<bool>& is_stuck, std::shared_future<void> released)
      : is_stuck_(is_stuck), released_(std::move(released)) {}
  kube::Task<kube::ServerResponse> handle(kube::ServerRequest) override {
    is_stuck_ = true;
    released_.wait();
    co_return kube::ServerResponse();
  }
  kube::Task<void> flush() override { co_return; }

 private:
  std::atomic<bool>& is_stuck_;
  std::shared_future<void> released_;
};

}  // namespace

TEST_CASE_METHOD(kube::test::ScriptedPeer,
                 "a stuck serving thread holds up neither certificates nor the end") {
  std::atomic<bool> is_stuck{false};
  std::promise<void> release;
  ServingOptions options;
  options.make_transport = [config = api.config()](kube::asio::io_context& on,
                                                   const kube::TransportLimits& limits) {
    return kube::make_transport(on, config, limits);
  };
  options.address = "127.0.0.1";
  options.webhook_port = 0;
  options.certificates_limit = std::chrono::seconds(2);
  options.stop_limit = std::chrono::milliseconds(50);
  ServerRegistration server;
  server.name = "stuck server";
  const unsigned short port = kube::free_port();
  server.port = port;
  server.max_body_bytes = 1'000;
  server.make = [&is_stuck, released = release.get_future().share()](auto&, auto&, const auto&) {
    return std::make_unique<StuckHandler>(is_stuck, released);
  };
  options.servers = {server};
  const AdmissionState state;
  Serving serving(std::move(options), state, log);
  const kube::CertificateBundle bundle = test::certificates();
  REQUIRE(kube::run_task(io, serving.set_certificates(bundle)));

  kube::ClientConfig config;
  config.server = "https://127.0.0.1:" + std::to_string(port);
  config.ca_pem = bundle.ca_certificate;
  const auto to_server = kube::make_transport(io, config, kube::TransportLimits());
  bool is_answered = false;
  kube::asio::co_spawn(io, to_server->send(kube::HttpRequest("GET", "/")),
                       [&is_answered](auto, const auto&) { is_answered = true; });
  REQUIRE(kube::run_until(io, [&is_stuck] { return is_stuck.load(); }));

  const auto used = kube::run_task(io, serving.set_certificates(bundle));
  REQUIRE_FALSE(used);
  CHECK(used.error().code == kube::ErrorCode::kTimeout);
  CHECK_FALSE(serving.stop());
  release.set_value();
  CHECK(kube::run_until(io, [&serving] { return serving.stop(); }));
  CHECK(kube::run_until(io, [&is_answered] { return is_answered; }));
}
