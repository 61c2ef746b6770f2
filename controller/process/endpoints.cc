#include "controller/process/endpoints.hh"

#include <fmt/format.h>

namespace trainer {
namespace {

using kube::ServerRequest;
using kube::ServerResponse;

// Requests to these servers have no body.
constexpr std::size_t kMaxBody = 1U << 10;

ServerResponse text(int status, std::string body) {
  ServerResponse response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::move(body);
  return response;
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

kube::Result<std::unique_ptr<kube::HttpServer>> serve_probes(
    kube::asio::io_context& io, const Endpoint& address, std::function<std::string()> not_ready) {
  kube::ServerOptions options;
  options.address = address.host;
  options.port = address.port;
  options.max_body_bytes = kMaxBody;
  const auto answer = [not_ready = std::move(not_ready)](const ServerRequest& request) {
    if (request.path == "/healthz") return text(200, "ok\n");
    if (request.path != "/readyz") return text(404, "not found: ask /healthz or /readyz\n");
    const std::string missing = not_ready();
    return missing.empty() ? text(200, "ok\n") : text(503, missing + "\n");
  };
  return kube::serve(io, std::move(options),
                     [answer](ServerRequest request) -> kube::Task<ServerResponse> {
                       return [](ServerResponse response) -> kube::Task<ServerResponse> {
                         co_return response;
                       }(answer(request));
                     });
}

kube::Result<std::unique_ptr<kube::HttpServer>> serve_metrics(kube::asio::io_context& io,
                                                              const Endpoint& address,
                                                              kube::ServerOptions options,
                                                              Metrics& metrics) {
  options.address = address.host;
  options.port = address.port;
  options.max_body_bytes = kMaxBody;
  return kube::serve(io, std::move(options),
                     [&metrics](ServerRequest request) -> kube::Task<ServerResponse> {
                       return [](ServerResponse response) -> kube::Task<ServerResponse> {
                         co_return response;
                       }(request.path == "/metrics" ? text(200, metrics.render())
                                                    : text(404, "not found: ask /metrics\n"));
                     });
}

}  // namespace trainer
