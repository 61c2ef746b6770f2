#include "controller/process/endpoints.hh"

#include <fmt/format.h>

#include <boost/asio/ip/address.hpp>
#include <utility>

#include "controller/status/token_verifier.hh"
#include "kube/model/json_text.hh"

namespace trainer {
namespace {

using kube::ServerRequest;
using kube::ServerResponse;

// Requests to these servers have a word as their body at most, and few clients send them. Any pod
// can send some: without limits a few could keep the control loops' thread busy.
constexpr std::size_t kMaxBody = 1U << 10;
constexpr std::size_t kMaxConnections = 64;
constexpr std::size_t kMaxProbesPerPeer = 100;  // a second; a kubelet is one peer
constexpr std::size_t kMaxScrapesPerPeer = 20;  // a second
constexpr std::size_t kMaxScrapes = 60;         // their handshakes take a tenth of a processor

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

// The answers are those of controller-runtime's filter: 500 if the check itself failed.
ServerResponse refusal_of(const kube::Error& error) {
  if (!is_token_refused(error))
    return ServerResponse::text(500, "the token could not be checked\n");
  const bool is_unauthorized = error.code == kube::ErrorCode::kUnauthorized;
  return ServerResponse::text(is_unauthorized ? 401 : 403, error.message + "\n");
}

constexpr std::string_view kState = "/debug/state";
constexpr std::string_view kLogLevel = "/debug/loglevel";

// The metrics server needs this to answer. Its requests share it.
struct MetricsServer {
  Metrics& metrics;
  std::shared_ptr<MetricsAccess> access;
  DebugOptions debug;
  bool is_local = false;
};

bool is_loopback(const std::string& host) {
  boost::system::error_code error;
  const auto address = kube::asio::ip::make_address(host, error);
  return host == "localhost" || (!error && address.is_loopback());
}

// Returns nullopt if the request asks for something that exists.
std::optional<ServerResponse> problem_of(const ServerRequest& request,
                                         const MetricsServer& server) {
  const bool is_debug =
      server.debug.log != nullptr && (request.path == kState || request.path == kLogLevel);
  if (!is_debug && request.path != "/metrics")
    return ServerResponse::text(404, "not found: ask /metrics\n");
  if (!is_debug) return std::nullopt;
  if (request.method != "GET" && (request.method != "PUT" || request.path != kLogLevel))
    return ServerResponse::text(405, "GET /debug/state, or GET and PUT /debug/loglevel\n");
  if (server.access || server.is_local) return std::nullopt;
  return ServerResponse::text(
      401,
      "only with metrics.auth.enabled, which checks tokens, or on a loopback address "
      "(metrics.bindAddress)\n");
}

ServerResponse answer_log_level(const ServerRequest& request, kube::Log& log) {
  if (request.method == "GET")
    return ServerResponse::text(200, std::string(kube::name_of(log.level())) + "\n");
  const std::string wanted = request.body.substr(0, request.body.find_last_not_of("\r\n") + 1);
  const auto level = kube::parse_log_level(wanted);
  if (!level) return ServerResponse::text(400, "write error, warn, info or debug\n");
  // The change is logged once at a level that shows it: a reader of a log must see where it becomes
  // silent.
  log.warn("log level", {{"from", std::string(kube::name_of(log.level()))}, {"to", wanted}});
  log.set_level(*level);
  return ServerResponse::text(200, wanted + "\n");
}

kube::Task<ServerResponse> answer_metrics(ServerRequest request,
                                          std::shared_ptr<const MetricsServer> server) {
  if (auto problem = problem_of(request, *server)) co_return std::move(*problem);
  if (server->access) {
    kube::Secret<std::string> token(bearer_token(request.authorization.reveal()));
    NonResourceAccess access;
    access.verb = request.method == "PUT" ? "put" : "get";
    access.path = request.path;
    const auto checked = co_await server->access->check(std::move(token), std::move(access));
    if (!checked) co_return refusal_of(checked.error());
  }
  if (request.path == kLogLevel) co_return answer_log_level(request, *server->debug.log);
  if (request.path == "/metrics") co_return ServerResponse::text(200, server->metrics.render());
  ServerResponse response;
  response.body = kube::print_json(server->debug.state()) + "\n";
  co_return response;
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
    Metrics& metrics, std::shared_ptr<MetricsAccess> access, DebugOptions debug) {
  const auto server = std::make_shared<const MetricsServer>(
      MetricsServer{metrics, std::move(access), std::move(debug), is_loopback(address.host)});
  return kube::serve(
      io, limited(address, std::move(options), kMaxScrapesPerPeer, kMaxScrapes),
      [server](ServerRequest request) { return answer_metrics(std::move(request), server); });
}

}  // namespace trainer
