// The small servers of the control loops' thread: probes and metrics.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/core/metrics.hh"
#include "kube/client/http_server.hh"

namespace trainer {

struct ListenAddress {
  std::string host = "0.0.0.0";
  unsigned short port = 0;
};

// "HOST:PORT", ":PORT" or "[V6]:PORT". "0" and "" are nullopt: do not listen. Errors (kInvalid)
// quote the text.
kube::Result<std::optional<ListenAddress>> parse_listen_address(const std::string& text);

// /healthz answers 200 while the thread runs; /readyz answers 503 and what is missing while
// `not_ready` says so.
kube::Result<std::unique_ptr<kube::HttpServer>> serve_probes(
    kube::asio::io_context& io, const ListenAddress& address,
    std::function<std::string()> not_ready);

// /metrics, on the address given.
kube::Result<std::unique_ptr<kube::HttpServer>> serve_metrics(kube::asio::io_context& io,
                                                              const ListenAddress& address,
                                                              kube::ServerOptions options,
                                                              Metrics& metrics);

}  // namespace trainer
