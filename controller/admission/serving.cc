#include "controller/admission/serving.hh"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <optional>

#include "kube/client/with_deadline.hh"

namespace trainer {

using kube::Milliseconds;
using kube::Result;
using kube::Task;

namespace {

// The API server waits ten seconds for a webhook; an answer after that is of no use to anybody.
constexpr Milliseconds kLookupDeadline{8'000};
constexpr Milliseconds kDrain{5'000};
// As controller-runtime: etcd takes 1.5 MB, and a review holds the object twice.
constexpr std::size_t kMaxReview = 7U << 20;
constexpr std::size_t kMaxReport = 1U << 20;

kube::ApiClient::Options client_options(const ServingOptions& options) {
  kube::ApiClient::Options client;
  client.deadline = kLookupDeadline;
  client.on_request = options.on_request;
  return client;
}

}  // namespace

// Everything that lives on the serving thread.
struct Serving::Inside {
  Inside(ServingOptions given, const AdmissionState& state, const Log& used_log)
      : options(std::move(given)),
        log(used_log),
        work(io.get_executor()),
        transport(kube::make_transport(io, options.client, kube::TransportLimits())),
        client(*transport, clock, random, client_options(options)),
        admission(client, state, options.gates, log, options.on_review) {
    if (options.serves_status) status.emplace(io, client, options.status_limits, log);
  }

  Result<void> use(const CertificateBundle& bundle);
  Result<std::unique_ptr<kube::HttpServer>> listen(const CertificateBundle& bundle,
                                                   unsigned short port, std::size_t max_body,
                                                   kube::HttpServer::Handler handler);
  Task<void> drain();
  void run();

  ServingOptions options;
  const Log& log;
  kube::asio::io_context io{1};
  kube::asio::executor_work_guard<kube::asio::io_context::executor_type> work;
  kube::SystemClock clock;
  kube::SystemRandom random;
  std::unique_ptr<kube::Transport> transport;
  kube::ApiClient client;
  AdmissionHandler admission;
  std::optional<StatusHandler> status;
  std::unique_ptr<kube::HttpServer> webhook_server;
  std::unique_ptr<kube::HttpServer> status_server;
};

Result<std::unique_ptr<kube::HttpServer>> Serving::Inside::listen(
    const CertificateBundle& bundle, unsigned short port, std::size_t max_body,
    kube::HttpServer::Handler handler) {
  kube::ServerOptions server;
  server.address = options.webhook_address;
  server.port = port;
  server.is_tls = true;
  server.certificate_pem = bundle.certificate;
  server.private_key_pem = bundle.key;
  server.min_tls_version = options.min_tls_version;
  server.max_body_bytes = max_body;
  server.on_error = [this](std::string_view what) {
    log.error("handler", {{"why", std::string(what)}});
  };
  return kube::serve(io, std::move(server), std::move(handler));
}

Result<void> Serving::Inside::use(const CertificateBundle& bundle) {
  for (kube::HttpServer* server : {webhook_server.get(), status_server.get()}) {
    if (server == nullptr) continue;
    if (auto changed = server->set_certificate(bundle.certificate, bundle.key); !changed)
      return changed;
  }
  if (!webhook_server) {
    auto server = listen(
        bundle, options.webhook_port, kMaxReview,
        [this](kube::ServerRequest request) { return admission.handle(std::move(request)); });
    if (!server) return tl::unexpected(server.error().at("webhook server"));
    webhook_server = std::move(*server);
    log.info("webhook server listens", {{"port", std::to_string(webhook_server->port())}});
  }
  if (status && !status_server) {
    auto server =
        listen(bundle, options.status_port, kMaxReport,
               [this](kube::ServerRequest request) { return status->handle(std::move(request)); });
    if (!server) return tl::unexpected(server.error().at("status server"));
    status_server = std::move(*server);
    log.info("status server listens", {{"port", std::to_string(status_server->port())}});
  }
  return {};
}

// Running requests end, waiting reports are written; then the thread ends, whatever still hangs.
Task<void> Serving::Inside::drain() {
  for (kube::HttpServer* server : {webhook_server.get(), status_server.get()}) {
    if (server != nullptr) server->stop();
  }
  for (kube::HttpServer* server : {webhook_server.get(), status_server.get()}) {
    if (server != nullptr) co_await kube::with_deadline(kDrain, server->drained());
  }
  if (status) co_await kube::with_deadline(kDrain, status->flush());
}

void Serving::Inside::run() {
  while (true) {
    try {
      io.run();
      return;
    } catch (const std::exception& error) {
      // A bug in one handler; the others go on.
      log.error("serving", {{"why", error.what()}});
    }
  }
}

Serving::Serving(ServingOptions options, const AdmissionState& state, const Log& log)
    : inside_(std::make_unique<Inside>(std::move(options), state, log)),
      thread_([inside = inside_.get()] { inside->run(); }) {}

Serving::~Serving() {
  stop();
}

Result<void> Serving::use(const CertificateBundle& bundle) {
  if (!thread_.joinable()) return kube::fail(kube::ErrorCode::kCancelled, "serving has ended");
  auto answer = std::make_shared<std::promise<Result<void>>>();
  auto future = answer->get_future();
  kube::asio::post(inside_->io, [inside = inside_.get(), bundle, answer] {
    answer->set_value(inside->use(bundle));
  });
  auto used = future.get();
  if (used) is_listening_ = true;
  return used;
}

unsigned short Serving::webhook_port() const {
  return inside_->webhook_server ? inside_->webhook_server->port() : inside_->options.webhook_port;
}

unsigned short Serving::status_port() const {
  return inside_->status_server ? inside_->status_server->port() : inside_->options.status_port;
}

void Serving::stop() {
  if (!thread_.joinable()) return;
  is_listening_ = false;
  kube::asio::co_spawn(inside_->io, inside_->drain(),
                       [inside = inside_.get()](std::exception_ptr) { inside->io.stop(); });
  thread_.join();
}

}  // namespace trainer
