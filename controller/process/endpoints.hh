// These are the small servers of the control loops' thread: probes and metrics. endpoint_options()
// makes their options; serve_probes() and serve_metrics() set address, port and limits in them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controller/config/values.hh"
#include "controller/process/metrics.hh"
#include "controller/process/metrics_access.hh"
#include "kube/client/http_server.hh"
#include "kube/manager/log.hh"
#include "kube/model/json.hh"

namespace trainer {

// Returns the address to listen on, from a text for parse_endpoint; nullopt for "0" and "": no
// server. Errors (kInvalid) quote the text.
kube::Result<std::optional<Endpoint>> listen_address(std::string_view text);

// Returns options that log exceptions of the server's handlers, and count connections that it
// closes, with `name` as the server's name.
kube::ServerOptions endpoint_options(const char* name, Metrics& metrics, const kube::Log& log);

// /healthz answers 503 with the text of `not_live`, and /readyz with that of `not_ready`.
kube::Result<std::unique_ptr<kube::HttpServer>> serve_probes(
    kube::asio::io_context& io, const Endpoint& address, kube::ServerOptions options,
    std::function<std::string()> not_live, std::function<std::string()> not_ready);

// /debug/ needs this: it is for a person who debugs the running process.
struct DebugOptions {
  kube::Log* log = nullptr;           // the log whose level can be changed
  std::function<kube::Json()> state;  // queues, caches, leadership
};

// Serves GET /metrics, on the given address; with `debug` also GET /debug/state, and GET and PUT
// /debug/loglevel with "error", "warn", "info" or "debug" as its body. `access` decides who may use
// them. If it is nullptr, every client may read the metrics, and clients of this machine alone may
// use the others, so these are refused (401) unless the address is a loopback one.
kube::Result<std::unique_ptr<kube::HttpServer>> serve_metrics(
    kube::asio::io_context& io, const Endpoint& address, kube::ServerOptions options,
    Metrics& metrics, std::shared_ptr<MetricsAccess> access, DebugOptions debug = {});

}  // namespace trainer
