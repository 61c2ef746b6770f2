#include "controller/core/endpoints.hh"

#include <fmt/format.h>

#include <charconv>

namespace trainer {
namespace {

using kube::ServerRequest;
using kube::ServerResponse;

ServerResponse text(int status, std::string body) {
  ServerResponse response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::move(body);
  return response;
}

}  // namespace

kube::Result<std::optional<ListenAddress>> parse_listen_address(const std::string& address) {
  if (address.empty() || address == "0") return std::optional<ListenAddress>();
  const auto colon = address.rfind(':');
  ListenAddress parsed;
  unsigned port = 0;
  const char* begin = address.data() + (colon == std::string::npos ? 0 : colon + 1);
  const char* end = address.data() + address.size();
  const auto read = std::from_chars(begin, end, port);
  if (colon == std::string::npos || read.ec != std::errc() || read.ptr != end || port > 65535) {
    return kube::fail(
        kube::ErrorCode::kInvalid,
        fmt::format("\"{}\" is no address to listen on: write HOST:PORT, :PORT, or 0 for none",
                    address));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (!host.empty()) parsed.host = std::move(host);
  parsed.port = static_cast<unsigned short>(port);
  return std::optional<ListenAddress>(std::move(parsed));
}

kube::Result<std::unique_ptr<kube::HttpServer>> serve_probes(
    kube::asio::io_context& io, const ListenAddress& address,
    std::function<std::string()> not_ready) {
  kube::ServerOptions options;
  options.address = address.host;
  options.port = address.port;
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
                                                              const ListenAddress& address,
                                                              kube::ServerOptions options,
                                                              Metrics& metrics) {
  options.address = address.host;
  options.port = address.port;
  return kube::serve(io, std::move(options),
                     [&metrics](ServerRequest request) -> kube::Task<ServerResponse> {
                       return [](ServerResponse response) -> kube::Task<ServerResponse> {
                         co_return response;
                       }(request.path == "/metrics" ? text(200, metrics.render())
                                                    : text(404, "not found: ask /metrics\n"));
                     });
}

}  // namespace trainer
