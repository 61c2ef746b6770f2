#include "controller/process/serving.hh"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <optional>

#include "kube/client/notifier.hh"
#include "kube/client/with_deadline.hh"

namespace trainer {

using kube::Milliseconds;
using kube::Result;
using kube::Task;

namespace {

// The API server waits ten seconds for a webhook, so a lookup must end earlier.
constexpr Milliseconds kLookupDeadline{8'000};
constexpr Milliseconds kDrain{5'000};
// The limit is controller-runtime's: etcd takes 1.5 MB, and a review holds the object twice.
constexpr std::size_t kMaxReview = 7U << 20;

kube::ApiClient::Options client_options(const ServingOptions& options) {
  kube::ApiClient::Options client;
  client.deadline = kLookupDeadline;
  client.on_request = options.on_request;
  return client;
}

}  // namespace

// This is all state of the serving thread.
struct Serving::Impl {
  Impl(ServingOptions given, const AdmissionState& state, const kube::Log& used_log)
      : options(std::move(given)),
        log(used_log),
        work(io.get_executor()),
        transport(options.make_transport(io, kube::TransportLimits())),
        client(*transport, clock, random, client_options(options)),
        admission(options.handlers, client, state, log, options.on_review,
                  options.on_review_begin) {
    for (const ServerRegistration& each : options.servers)
      servers.push_back({each, each.make(io, client, log), nullptr});
    if (options.health) kube::asio::co_spawn(io, options.health->run(clock), kube::asio::detached);
  }

  // This is a server that a kind registered, once it listens.
  struct Served {
    ServerRegistration registration;
    std::unique_ptr<RequestHandler> handler;
    std::unique_ptr<kube::HttpServer> server;
  };

  std::vector<kube::HttpServer*> listening() const;
  Result<void> set_certificates(const kube::CertificateBundle& bundle);
  kube::ServerOptions server_options(const kube::CertificateBundle& bundle, std::string name,
                                     unsigned short port, std::size_t max_body);
  Task<void> drain();
  void run();
  void caught(const char* where, std::string_view what) {
    log.error(where, {{"why", std::string(what)}});
    if (options.on_exception) options.on_exception();
  }

  ServingOptions options;
  const kube::Log& log;
  kube::asio::io_context io{1};
  kube::asio::executor_work_guard<kube::asio::io_context::executor_type> work;
  kube::SystemClock clock;
  kube::SystemRandom random;
  std::unique_ptr<kube::Transport> transport;
  kube::ApiClient client;
  Admission admission;
  std::unique_ptr<kube::HttpServer> webhook_server;
  std::vector<Served> servers;
  std::promise<void> ended;  // set by its thread when it ends
};

kube::ServerOptions Serving::Impl::server_options(const kube::CertificateBundle& bundle,
                                                  std::string name, unsigned short port,
                                                  std::size_t max_body) {
  kube::ServerOptions server;
  server.address = options.address;
  server.port = port;
  server.is_tls = true;
  server.certificate_pem = bundle.certificate;
  server.private_key_pem = bundle.key;
  server.tls = options.tls;
  server.max_body_bytes = max_body;
  server.on_error = [this](std::string_view what) { caught("handler", what); };
  server.on_eviction = [this, name = std::move(name)] {
    if (options.on_eviction) options.on_eviction(name);
  };
  return server;
}

std::vector<kube::HttpServer*> Serving::Impl::listening() const {
  std::vector<kube::HttpServer*> all;
  if (webhook_server) all.push_back(webhook_server.get());
  for (const Served& each : servers) {
    if (each.server) all.push_back(each.server.get());
  }
  return all;
}

Result<void> Serving::Impl::set_certificates(const kube::CertificateBundle& bundle) {
  for (kube::HttpServer* server : listening()) {
    if (auto changed = server->set_certificate(bundle.certificate, bundle.key); !changed)
      return changed;
  }
  if (!webhook_server) {
    auto webhooks = server_options(bundle, "webhook server", options.webhook_port, kMaxReview);
    webhooks.tls.client_ca_pem = options.client_ca_pem;
    auto server = kube::serve(io, std::move(webhooks), [this](kube::ServerRequest request) {
      return admission.handle(std::move(request));
    });
    if (!server) return tl::unexpected(server.error().at("webhook server"));
    webhook_server = std::move(*server);
    log.info("webhook server listens", {{"port", std::to_string(webhook_server->port())}});
  }
  for (Served& each : servers) {
    if (each.server) continue;
    const ServerRegistration& registration = each.registration;
    auto server = kube::serve(
        io,
        server_options(bundle, registration.name, registration.port, registration.max_body_bytes),
        [handler = each.handler.get()](kube::ServerRequest request) {
          return handler->handle(std::move(request));
        });
    if (!server) return tl::unexpected(server.error().at(registration.name));
    each.server = std::move(*server);
    log.info(registration.name + " listens", {{"port", std::to_string(each.server->port())}});
  }
  return {};
}

// Waits for running requests and writes pending reports, each for kDrain at most.
Task<void> Serving::Impl::drain() {
  for (kube::HttpServer* server : listening()) server->stop();
  for (kube::HttpServer* server : listening())
    co_await kube::with_deadline(kDrain, server->drained());
  for (Served& each : servers) co_await kube::with_deadline(kDrain, each.handler->flush());
}

void Serving::Impl::run() {
  const kube::OnSlowStep on_slow_step = [this](auto took) {
    if (options.on_slow_step) options.on_slow_step(took);
  };
  while (true) {
    try {
      kube::run_event_loop(io, on_slow_step);
      return;
    } catch (const std::exception& error) {
      // A bug in one handler must not stop the others.
      caught("serving", error.what());
    }
  }
}

Serving::Serving(ServingOptions options, const AdmissionState& state, const kube::Log& log)
    : impl_(std::make_unique<Impl>(std::move(options), state, log)),
      ended_(impl_->ended.get_future()),
      thread_([impl = impl_.get()] {
        impl->run();
        impl->ended.set_value();
      }) {}

Serving::~Serving() {
  if (!stop()) thread_.join();
}

Task<Result<void>> Serving::set_certificates(kube::CertificateBundle bundle) {
  if (!thread_.joinable()) co_return kube::fail(kube::ErrorCode::kCancelled, "serving has ended");
  struct Answer {
    explicit Answer(const kube::asio::any_io_executor& on) : arrived(on) {}
    kube::Notifier arrived;
    std::optional<Result<void>> used;
  };
  const auto executor = co_await kube::asio::this_coro::executor;
  const auto answer = std::make_shared<Answer>(executor);
  kube::asio::post(
      impl_->io, [impl = impl_.get(), bundle = std::move(bundle), to = answer, executor]() mutable {
        // It is moved, since it must not be destroyed on the serving thread.
        kube::asio::post(executor, [to = std::move(to), used = impl->set_certificates(bundle)] {
          to->used = used;
          to->arrived.notify();
        });
      });
  co_await answer->arrived.wait_for(impl_->clock, impl_->options.certificates_limit);
  if (!answer->used) {
    co_return kube::fail(kube::ErrorCode::kTimeout,
                         "the serving thread is busy and has not taken the certificates");
  }
  if (*answer->used) is_listening_ = true;
  co_return std::move(*answer->used);
}

unsigned short Serving::webhook_port() const {
  return impl_->webhook_server ? impl_->webhook_server->port() : impl_->options.webhook_port;
}

bool Serving::stop() {
  if (!thread_.joinable()) return true;
  is_listening_ = false;
  kube::asio::co_spawn(impl_->io, impl_->drain(),
                       [impl = impl_.get()](std::exception_ptr) { impl->io.stop(); });
  if (ended_.wait_for(impl_->options.stop_limit) != std::future_status::ready) return false;
  thread_.join();
  return true;
}

}  // namespace trainer
