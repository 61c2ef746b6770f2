#include "controller/local/report_server.hh"

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <string>
#include <utility>

#include "kube/client/with_deadline.hh"
#include "local/server/access.hh"

namespace trainer {

using kube::Result;
using kube::Task;

namespace {

constexpr const char* kHost = "127.0.0.1";
// Any user of the machine can send bytes here, and StatusHandler reads no longer report.
constexpr std::size_t kMaxReport = 65'536;
constexpr std::size_t kMaxReports = 4U << 20;
constexpr kube::Milliseconds kDrain{2'000};

}  // namespace

ReportServer::ReportServer(LocalServer& server, const kube::Log& log)
    : server_(server),
      log_(log),
      work_(io_.get_executor()),
      transport_(server.transports()(io_, kube::TransportLimits())),
      client_(*transport_, clock_, random_) {}

Result<std::unique_ptr<kube::HttpServer>> ReportServer::serve(unsigned short port) {
  const kube::CertificateBundle& certificates = server_.access().certificates;
  kube::ServerOptions options;
  options.address = kHost;
  options.port = port;
  options.is_tls = true;
  options.certificate_pem = certificates.certificate;
  options.private_key_pem = certificates.key;
  options.max_body_bytes = kMaxReport;
  options.max_body_bytes_in_flight = kMaxReports;
  options.on_error = [this](std::string_view what) {
    log_.error("report", {{"why", std::string(what)}});
  };
  return kube::serve(io_, std::move(options), [this](kube::ServerRequest request) {
    return handler_->handle(std::move(request));
  });
}

Result<void> ReportServer::listen() {
  const unsigned short kept = kept_port(server_.state(), kReportsPortFile);
  // Jobs that run report nothing any more if another program has the port.
  auto http = listen_on_kept(kept, [this](unsigned short wanted) { return serve(wanted); });
  if (!http) return tl::unexpected(http.error());
  http_ = std::move(*http);
  if (port() == kept) return {};
  return keep_port(server_.state(), port(), kReportsPortFile);
}

void ReportServer::use(const Registry& registry, std::shared_ptr<ServerIdentity> identity) {
  identity_ = std::move(identity);
  for (const KindRegistration& kind : registry)
    for (const ServerRegistration& each : kind.servers) handler_ = each.make(io_, client_, log_);
}

void ReportServer::start() {
  if (!handler_) return http_.reset();
  identity_->host = kHost;
  identity_->set_ca(server_.access().certificates.trusted());
  thread_ = std::thread([this] { run(); });
}

void ReportServer::run() {
  while (true) {
    try {
      io_.run();
      return;
    } catch (const std::exception& error) {
      // A bug in one handler must not stop the others.
      log_.error("report", {{"why", error.what()}});
    }
  }
}

Task<void> ReportServer::drain() {
  http_->stop();
  co_await kube::with_deadline(kDrain, http_->drained());
  co_await kube::with_deadline(kDrain, handler_->flush());
}

void ReportServer::stop() {
  if (!thread_.joinable()) return;
  kube::asio::co_spawn(io_, drain(), [this](std::exception_ptr) { io_.stop(); });
  thread_.join();
}

}  // namespace trainer
