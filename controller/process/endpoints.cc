#include "controller/process/endpoints.hh"

#include <fmt/format.h>

#include "controller/status/token_verifier.hh"

namespace trainer {
namespace {

using kube::ServerRequest;
using kube::ServerResponse;

// Requests to these servers have no body, and few clients send them. Any pod can send some: without
// limits a few could keep the control loops' thread busy.
constexpr std::size_t kMaxBody = 1U << 10;
constexpr std::size_t kMaxConnections = 64;
constexpr std::size_t kMaxProbesPerPeer = 100;  // a second; a kubelet is one peer
constexpr std::size_t kMaxScrapesPerPeer = 20;  // a second
constexpr std::size_t kMaxScrapes = 60;         // with their handshakes a tenth of a processor

kube::ServerOptions limited(const Endpoint& address, kube::ServerOptions options,
                            std::size_t max_new_per_peer, std::size_t max_new) {
  options.address = address.host;
  options.port = address.port;
  options.max_body_bytes = kMaxBody;
  options.max_connections = kMaxConnections;
  options.max_new_per_peer = max_new_per_peer;
  options.max_new = max_new;
  options.keeps_alive = false;
  return options;
}

kube::Task<ServerResponse> at_once(ServerResponse response) {
  co_return response;
}

// As controller-runtime's filter: 500 where the check itself failed.
ServerResponse refusal_of(const kube::Error& error) {
  if (!is_verdict(error)) return ServerResponse::text(500, "the token could not be checked\n");
  const bool is_unauthorized = error.code == kube::ErrorCode::kUnauthorized;
  return ServerResponse::text(is_unauthorized ? 401 : 403, error.message + "\n");
}

kube::Task<ServerResponse> answer_metrics(ServerRequest request, Metrics& metrics,
                                          std::shared_ptr<MetricsAccess> access) {
  if (request.path != "/metrics") co_return ServerResponse::text(404, "not found: ask /metrics\n");
  if (access) {
    kube::Secret<std::string> token(bearer_token(request.authorization.reveal()));
    const auto checked = co_await access->check(std::move(token));
    if (!checked) co_return refusal_of(checked.error());
  }
  co_return ServerResponse::text(200, metrics.render());
}

}  // namespace

kube::Result<std::optional<Endpoint>> listen_address(std::string_view text) {
  if (text.empty() || text == "0") return std::optional<Endpoint>();
  auto parsed = parse_endpoint(text);
  if (!parsed) {
    return kube::fail(
        kube::ErrorCode::kInvalid,
        fmt::format("\"{}\" is no address to listen on: write HOST:PORT, :PORT, or 0 for none",
                    text));
  }
  return parsed;
}

kube::ServerOptions endpoint_options(const char* name, Metrics& metrics, const kube::Log& log) {
  kube::ServerOptions options;
  options.on_error = [name, &log](std::string_view what) {
    log.error("handler", {{"server", name}, {"why", std::string(what)}});
  };
  options.on_eviction = [name, &metrics] { metrics.connection_evicted(name); };
  return options;
}

kube::Result<std::unique_ptr<kube::HttpServer>> serve_probes(
    kube::asio::io_context& io, const Endpoint& address, kube::ServerOptions options,
    std::function<std::string()> not_live, std::function<std::string()> not_ready) {
  const auto answer = [not_live = std::move(not_live),
                       not_ready = std::move(not_ready)](const ServerRequest& request) {
    const bool is_live = request.path == "/healthz";
    if (!is_live && request.path != "/readyz")
      return ServerResponse::text(404, "not found: ask /healthz or /readyz\n");
    const std::string problem = is_live ? not_live() : not_ready();
    return problem.empty() ? ServerResponse::text(200, "ok\n")
                           : ServerResponse::text(503, problem + "\n");
  };
  return kube::serve(io, limited(address, std::move(options), kMaxProbesPerPeer, 0),
                     [answer](ServerRequest request) { return at_once(answer(request)); });
}

kube::Result<std::unique_ptr<kube::HttpServer>> serve_metrics(
    kube::asio::io_context& io, const Endpoint& address, kube::ServerOptions options,
    Metrics& metrics, std::shared_ptr<MetricsAccess> access) {
  return kube::serve(io, limited(address, std::move(options), kMaxScrapesPerPeer, kMaxScrapes),
                     [&metrics, access = std::move(access)](ServerRequest request) {
                       return answer_metrics(std::move(request), metrics, access);
                     });
}

}  // namespace trainer
