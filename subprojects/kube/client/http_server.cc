#include "kube/client/http_server.hh"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <map>
#include <utility>

#include "kube/client/http_session.hh"

namespace kube {

namespace {

using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr Milliseconds kAcceptPause{100};
constexpr std::size_t kMaxClosed = 1'000;  // in a second, if `max_new` is set

// These connections were opened in the current second.
class Arrivals {
 public:
  // Returns whether the options allow one more, which then counts.
  bool admit(const asio::ip::address& peer, const ServerOptions& options) {
    const auto now = std::chrono::steady_clock::now();
    if (now - begin_ >= std::chrono::seconds(1)) {
      begin_ = now;
      all_ = admitted_ = 0;
      of_peers_.clear();
    }
    ++all_;
    if (options.max_new > 0 && admitted_ >= options.max_new) return false;
    if (options.max_new_per_peer > 0 && ++of_peers_[peer] > options.max_new_per_peer) return false;
    ++admitted_;
    return true;
  }
  // Returns whether even closing them takes too much time.
  bool are_too_many(const ServerOptions& options) const {
    return options.max_new > 0 && all_ > kMaxClosed;
  }

 private:
  std::chrono::steady_clock::time_point begin_{};
  std::size_t all_ = 0;
  std::size_t admitted_ = 0;
  std::map<asio::ip::address, std::size_t> of_peers_;
};

void report(const ServerState& state, std::string_view what) noexcept {
  try {
    if (state.options.on_error) state.options.on_error(what);
  } catch (...) {  // memory may still be short
  }
}

// Returns false if there must be a pause before the next one.
Task<bool> accept_one(std::shared_ptr<ServerState> state, Arrivals& arrivals) {
  auto [error, socket] = co_await state->acceptor.async_accept(kToken);
  if (error) co_return false;  // most likely no descriptors are left: sessions that end free some
  error_code ignored;
  if (!arrivals.admit(socket.remote_endpoint(ignored).address(), state->options)) {
    if (state->options.on_eviction) state->options.on_eviction();
    co_return !arrivals.are_too_many(state->options);
  }
  while (state->connections.size() >= state->options.max_connections && !state->is_stopping)
    co_await state->make_room(Scarce::kConnections, 1, Deadline::max());
  while (state->options.is_known && !state->is_stopping &&
         count_strangers(state->connections, Scarce::kWaiting) >= state->options.max_waiting)
    co_await state->make_room(Scarce::kWaiting, 1, Deadline::max());
  if (!state->is_stopping) state->tasks.spawn("session", run_session(state, std::move(socket)));
  co_return true;
}

// No exception ends it, such as one of a callback or for lack of memory: the process would seem
// ready and answer no one.
Task<void> accept_all(std::shared_ptr<ServerState> state) {
  Arrivals arrivals;
  asio::steady_timer pause(state->acceptor.get_executor());
  while (!state->is_stopping) {
    bool is_accepted = false;
    try {
      is_accepted = co_await accept_one(state, arrivals);
    } catch (const std::exception& error) {
      if (!state->is_stopping) report(*state, error.what());
    }
    if (is_accepted || state->is_stopping) continue;
    pause.expires_after(kAcceptPause);
    co_await pause.async_wait(kToken);
  }
}

// The unspecified IPv6 address means every address.
asio::ip::address address_of(tcp::acceptor& acceptor, const std::string& host, error_code& error) {
  const asio::ip::address everywhere = asio::ip::address_v6::any();
  if (host.empty()) return everywhere;
  const auto written = asio::ip::make_address(host, error);
  if (!error) return written.is_unspecified() ? everywhere : written;
  tcp::resolver resolver(acceptor.get_executor());
  // The lookup has no flag AI_ADDRCONFIG: with it, only those families count with which another
  // machine can be reached.
  const auto found = resolver.resolve(host, "", tcp::resolver::passive, error);
  if (error) return everywhere;
  const auto v4 = std::find_if(found.begin(), found.end(), [](const auto& entry) {
    return entry.endpoint().address().is_v4();
  });
  return (v4 == found.end() ? found.begin() : v4)->endpoint().address();
}

// Opens the acceptor, and returns the address to which it must be bound.
tcp::endpoint open(tcp::acceptor& acceptor, const asio::ip::address& address, unsigned short port,
                   error_code& error) {
  const tcp::endpoint endpoint(address, port);
  acceptor.open(endpoint.protocol(), error);
  if (!address.is_unspecified()) return endpoint;
  if (!error) acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) return endpoint;
  // The kernel has no IPv6.
  error_code ignored;
  acceptor.close(ignored);
  acceptor.open(tcp::v4(), error);
  return {tcp::v4(), port};
}

// Opens, binds and starts the acceptor.
Result<void> listen(tcp::acceptor& acceptor, const std::string& host, unsigned short port) {
  error_code error;
  const auto address = address_of(acceptor, host, error);
  tcp::endpoint endpoint;
  if (!error) endpoint = open(acceptor, address, port, error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (!error) return {};
  return fail(ErrorCode::kNetwork, "cannot listen on " + (host.empty() ? "" : host + " ") +
                                       "port " + std::to_string(port) + ": " + error.message());
}

class Server final : public HttpServer {
 public:
  explicit Server(std::shared_ptr<ServerState> state) : state_(std::move(state)) {
    port_ = state_->acceptor.local_endpoint().port();
    state_->tasks.spawn("acceptor", accept_all(state_));
  }
  ~Server() override { state_->stop(); }
  unsigned short port() const override { return port_; }
  Result<void> set_certificate(const std::string& certificate_pem,
                               const Secret<std::string>& key_pem) override {
    auto tls = make_server_tls(certificate_pem, key_pem, state_->options.tls);
    if (!tls) return tl::unexpected(tls.error());
    state_->tls = std::move(*tls);
    return {};
  }
  void stop() override { state_->stop(); }
  Task<void> drained() override {
    const auto state = state_;
    co_await state->tasks.join();
  }

 private:
  std::shared_ptr<ServerState> state_;
  unsigned short port_ = 0;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> serve(asio::io_context& io, ServerOptions options,
                                          HttpServer::Handler handler) {
  auto state = std::make_shared<ServerState>(io, std::move(options), std::move(handler));
  if (state->options.is_tls) {
    auto tls = make_server_tls(state->options.certificate_pem, state->options.private_key_pem,
                               state->options.tls);
    if (!tls) return tl::unexpected(tls.error());
    state->tls = std::move(*tls);
  }
  const auto listening = listen(state->acceptor, state->options.address, state->options.port);
  if (!listening) return tl::unexpected(listening.error());
  return std::make_unique<Server>(std::move(state));
}

}  // namespace kube
