#include "controller/process/process.hh"

#include <signal.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdlib>
#include <exception>
#include <utility>

#include "controller/process/memory.hh"
#include "controller/process/other_leaders.hh"
#include "controller/process/throttle.hh"
#include "kube/client/with_deadline.hh"
#include "kube/manager/pacing.hh"
#include "kube/manager/stored_object.hh"

namespace trainer {
namespace {

using kube::Milliseconds;
using kube::Result;
using kube::Task;

constexpr Milliseconds kDrain{10'000};
// The Service, and each node's proxy, need this time to notice that this process is not ready.
constexpr Milliseconds kGrace{5'000};
// A shutdown takes this long at most; a kubelet waits for 45 s.
constexpr Milliseconds kEnd{40'000};
// These are the times between attempts to publish webhooks.
constexpr Milliseconds kFirstRetry{1'000};
constexpr Milliseconds kLastRetry{60'000};

Result<Endpoint> host_of_url(const std::string& url) {
  if (auto parsed = parse_https_url(url)) return *parsed;
  return kube::fail(kube::ErrorCode::kInvalid,
                    "--webhook-url: \"{}\": write https://HOST:PORT as the API server can reach it",
                    url);
}

// Makes the transport of the control loops: it allows reads while all writes are in flight.
std::unique_ptr<kube::Transport> control_transport(const kube::MakeTransport& make_transport,
                                                   kube::asio::io_context& io,
                                                   const Configuration& configuration) {
  kube::TransportLimits limits;
  limits.max_in_flight += kube::Pacing::kWritesInFlight;
  auto transport = make_transport(io, limits);
  const auto& limit = configuration.clientConnection;
  if (!limit.qps || *limit.qps <= 0) return transport;
  return throttle(io, std::move(transport), *limit.qps, limit.burst.value_or(1));
}

}  // namespace

Process::Webhooks Process::webhooks_of(const ControllerOptions& options, bool is_namespaced) {
  if (options.no_webhooks) return Webhooks::kNone;
  if (!options.webhook_url.empty()) return Webhooks::kUrl;
  if (is_namespaced) return Webhooks::kNone;  // their configurations are cluster-scoped
  // A pod has a Service in front of it. A process elsewhere needs a URL.
  const bool is_in_pod = std::getenv("KUBERNETES_SERVICE_HOST") && options.kubeconfig.empty() &&
                         options.context.empty();
  return is_in_pod ? Webhooks::kService : Webhooks::kNone;
}

Process::Process(const ControllerOptions& options, Configuration configuration,
                 kube::MakeTransport make_transport, const MakeRegistry& make_registry,
                 kube::Log& log)
    : options_(options),
      configuration_(std::move(configuration)),
      make_transport_(std::move(make_transport)),
      log_(log),
      ns_(controller_namespace(options)),
      webhooks_(webhooks_of(options, configuration_.namespaced)),
      identity_(std::make_shared<ServerIdentity>()),
      registry_(make_registry({configuration_, identity_, ns_, jobs_})),
      control_health_("control", clock_.steady(),
                      [this](auto loop, auto lag) { metrics_.loop_lagged(loop, lag); }),
      serving_health_("serving", clock_.steady(),
                      [this](auto loop, auto lag) { metrics_.loop_lagged(loop, lag); }),
      transport_(control_transport(make_transport_, io_, configuration_)),
      client_(*transport_, clock_, random_, writer_options()),
      reviews_transport_(make_transport_(io_, kube::TransportLimits())),
      reviews_(*reviews_transport_, clock_, random_, client_options()),
      election_(make_transport_, io_, configuration_.leaderElection, ns_, client_options(), log),
      manager_(io_, client_, controllers_of(registry_), manager_options(), metrics_, log),
      tasks_(io_.get_executor(),
             [this](std::string_view task, std::string_view what) {
               log_.error("task ended", {{"task", std::string(task)}, {"why", std::string(what)}});
               lost_task();
             }),
      signals_(io_, SIGTERM, SIGINT) {
  identity_->host = configuration_.certManagement.webhookServiceName + "." + ns_ + ".svc";
  metrics_.set_leader(configuration_.leaderElection.resourceName, false);
  metrics_.on_collect([this] { manager_.collect(); });
  metrics_.set_jobs(jobs_);
}

kube::ApiClient::Options Process::client_options() {
  kube::ApiClient::Options client;
  client.on_request = [this](const kube::RequestRecord& record) { metrics_.requested(record); };
  return client;
}

kube::ApiClient::Options Process::writer_options() {
  kube::ApiClient::Options client = client_options();
  client.may_write = [this] { return election_.may_write(); };
  return client;
}

kube::ManagerOptions Process::manager_options() {
  kube::ManagerOptions options;
  options.on_task_lost = [this] { lost_task(); };
  options.component = "trainer";
  options.ns = configuration_.watchNamespace;
  options.concurrency = [this](std::string_view group_kind, int otherwise) {
    return configuration_.concurrency_of(group_kind, otherwise);
  };
  return options;
}

Result<CertificateOptions> Process::certificate_options(std::optional<unsigned short>& url_port) {
  CertificateOptions certificates;
  const auto& management = configuration_.certManagement;
  if (webhooks_ == Webhooks::kUrl) {
    const auto host = host_of_url(options_.webhook_url);
    if (!host) return tl::unexpected(host.error());
    identity_->host = host->host;
    url_port = host->port;
  } else {
    certificates.secret = {ns_, management.webhookSecretName};
    certificates.is_made_here = management.enable;
  }
  certificates.hosts = {identity_->host};
  return certificates;
}

ServingOptions Process::serving_options(std::optional<unsigned short> url_port) {
  const auto& webhook = configuration_.webhook;
  ServingOptions serving;
  serving.make_transport = make_transport_;
  serving.address = webhook.host;
  serving.webhook_port = static_cast<unsigned short>(webhook.port);
  // The port is that of --webhook-url, unless the file names another: behind a tunnel the two
  // differ.
  if (url_port && !webhook.is_port_set) serving.webhook_port = *url_port;
  serving.tls = tls_options();
  serving.client_ca_pem = webhook.client_ca_pem;
  serving.health = &serving_health_;
  for (const KindRegistration& kind : registry_) {
    for (const WebhookHandler& each : kind.admission.handlers) serving.handlers.push_back(each);
    for (const ServerRegistration& each : kind.servers) serving.servers.push_back(each);
  }
  serving.on_review_begin = [this](std::string_view path) { metrics_.review_began(path); };
  serving.on_review = [this](std::string_view path, std::string_view outcome, auto took) {
    metrics_.admitted(path, outcome, took);
  };
  serving.on_request = [this](const kube::RequestRecord& record) { metrics_.requested(record); };
  serving.on_eviction = [this](std::string_view server) { metrics_.connection_evicted(server); };
  serving.on_slow_step = [this](auto took) { step_was_slow("serving", took); };
  serving.on_exception = [this] { metrics_.serving_failed(); };
  return serving;
}

Result<void> Process::start_serving() {
  if (webhooks_ == Webhooks::kNone) {
    log_.info(
        "no webhooks",
        {{"why",
          "the same rules run in the reconcilers; outside a cluster --webhook-url serves them"}});
    return {};
  }
  std::optional<unsigned short> url_port;
  auto certificates = certificate_options(url_port);
  if (!certificates) return tl::unexpected(certificates.error());
  if (webhooks_ == Webhooks::kUrl) {
    registrar_ = std::make_unique<WebhookRegistrar>(client_, log_, options_.webhook_url,
                                                    published_webhooks(registry_));
  } else if (configuration_.certManagement.enable) {
    injector_ = std::make_unique<CaInjector>(io_, client_, configuration_names(registry_), log_,
                                             has_mutating_webhooks(registry_));
  }
  serving_ = std::make_unique<Serving>(serving_options(url_port), admission_, log_);
  keeper_ = std::make_unique<CertificateKeeper>(
      io_, client_, log_, std::move(*certificates),
      [this](kube::CertificateBundle bundle) { return use_certificates(std::move(bundle)); },
      [this](const std::string& ca_pem) { trust(ca_pem); });
  tasks_.spawn("certificates", keeper_->run());
  return {};
}

Task<Result<void>> Process::serve_with(const kube::CertificateBundle& bundle) {
  auto used = co_await serving_->set_certificates(bundle);
  if (!used || !is_metrics_tls_) co_return used;
  co_return metrics_server_ ? metrics_server_->set_certificate(bundle.certificate, bundle.key)
                            : start_metrics(&bundle);
}

Task<Result<void>> Process::use_certificates(kube::CertificateBundle bundle) {
  auto used = co_await serve_with(bundle);
  metrics_.certificates_read(used.has_value());
  if (!used) {
    // The process cannot listen on the address. Waiting does not help, and a leader that waits
    // would keep other replicas from leading.
    if (used.error().code == kube::ErrorCode::kNetwork) {
      log_.error("cannot start", {{"why", used.error().message}});
      stop(1);
    }
    co_return used;
  }
  show_certificates(bundle);
  trust(bundle.trusted());
  co_return Result<void>();
}

// Lets the API server and pods trust these CAs.
void Process::trust(const std::string& ca_pem) {
  identity_->set_ca(ca_pem);
  if (injector_) injector_->set_ca(ca_pem);
  if (registrar_ && manager_.is_leading()) tasks_.spawn("webhooks", retry_webhooks());
}

// Publishes them with the current CA. Returns false if that failed.
Task<bool> Process::publish_webhooks() {
  const auto published = co_await registrar_->publish(identity_->ca_pem);
  if (!published) log_.error("webhooks", {{"why", published.error().message}});
  co_return published.has_value();
}

Task<void> Process::retry_webhooks() {
  for (auto pause = kFirstRetry; !co_await publish_webhooks();
       pause = std::min(2 * pause, kLastRetry)) {
    co_await kube::sleep(clock_, pause);
  }
}

void Process::share_with_admission() {
  for (const KindRegistration& kind : registry_) {
    for (const kube::Resource& resource : kind.admission.reads) {
      manager_.on_change<kube::StoredObject>(
          {resource, ""}, [this, resource](const auto& before, const auto& after) {
            admission_.set(resource, (after ? after : before)->object_key, after);
          });
    }
  }
}

Task<void> Process::lead() {
  if (!configuration_.namespaced) {
    std::function<void(std::string_view, std::size_t)> on_count = [this](auto name, auto count) {
      metrics_.set_unexpected_leases(name, count);
    };
    tasks_.spawn("other leaders",
                 look_for_other_leaders(client_, election_.key(), std::move(on_count), log_));
  }
  if (keeper_) {
    keeper_->lead();
    // Pods get the CA of the servers, so none may be created before there is one.
    co_await keeper_->wait_for_certificate();
    if (injector_) tasks_.spawn("caBundle", injector_->run());
    if (registrar_ && !co_await publish_webhooks()) tasks_.spawn("webhooks", retry_webhooks());
  }
  co_await manager_.start_workers();
  metrics_.set_leader(configuration_.leaderElection.resourceName, true);
}

Task<void> Process::elect() {
  std::function<void()> on_started = [this] { tasks_.spawn("lead", lead()); };
  const auto end_at_once = [this](std::string_view what, std::string_view why) {
    if (is_stopping_) return;
    log_.error(what, {{"why", std::string(why)}, {"then", "exit, to be started again"}});
    if (registrar_) log_.error("webhooks are left", {{"then", registrar_->removal()}});
    stop(1);
  };
  std::function<void()> on_stopped = [end_at_once] {
    end_at_once("leadership lost", "another replica may be writing");
  };
  // No write may follow from caches with objects that no longer exist.
  std::function<void()> on_restored = [end_at_once] {
    end_at_once("cannot go on",
                "the Lease went back to an older version: the API server was restored from a "
                "backup");
  };
  co_await election_.run(std::move(on_started), std::move(on_stopped), std::move(on_restored));
}

Task<void> Process::await_signal() {
  const int signal = co_await signals_.async_wait(kube::asio::use_awaitable);
  log_.info("stopping", {{"signal", std::to_string(signal)}});
  // A second signal ends the process at once.
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGINT, SIG_DFL);
  signals_.clear();
  begin_shut_down(0);
}

void Process::begin_shut_down(int exit_code) {
  if (std::exchange(is_stopping_, true)) return;
  exit_code_ = exit_code;
  kube::asio::co_spawn(io_, kube::with_deadline(kEnd, shut_down()),
                       [this](auto error, const auto&) {
                         if (error) std::rethrow_exception(error);
                         io_.stop();
                       });
}

Task<void> Process::shut_down() {
  const auto signalled_at = clock_.steady();
  // This comes first: with webhooks that no process serves, the API server would refuse every
  // request.
  if (registrar_) co_await registrar_->withdraw();
  co_await manager_.drain(kDrain);
  tasks_.cancel();  // releases the Lease
  co_await tasks_.join();
  if (webhooks_ == Webhooks::kService)
    co_await kube::sleep(clock_, std::max(signalled_at + kGrace - clock_.steady(), {}));
  stop_serving();
  if (probes_) probes_->stop();
  if (metrics_server_) metrics_server_->stop();
  log_.info("stopped");
}

void Process::stop(int exit_code) {
  exit_code_ = exit_code;
  io_.stop();
}

// Without a watch the caches become outdated, without the election two replicas may write, without
// the certificates' task they expire. A new process has all of them. Another replica need not wait
// for the Lease to expire.
void Process::lost_task() {
  if (is_stopping_) return;
  log_.error("cannot go on", {{"why", "a task has ended"}, {"then", "exit, to be started again"}});
  begin_shut_down(1);
}

void Process::stop_serving() {
  if (!serving_ || serving_->stop()) return;
  log_.error("serving thread is stuck", {{"then", "exit without waiting for it"}});
  std::_Exit(1);
}

void Process::step_was_slow(std::string_view loop, std::chrono::nanoseconds took) {
  metrics_.loop_stalled(loop);
  log_.warn("slow step", {{"loop", std::string(loop)},
                          {"ms", std::to_string(took / std::chrono::milliseconds(1))}});
}

int Process::run(RunLoop run_loop) {
  for (const auto start : {&Process::start_serving, &Process::start_endpoints}) {
    if (auto started = (this->*start)(); !started) {
      log_.error("cannot start", {{"why", started.error().message}});
      return 1;
    }
  }
  share_with_admission();
  manager_.start_watching();
  tasks_.spawn("control loop's health", control_health_.run(clock_));
  tasks_.spawn("memory", give_back_memory(clock_));
  tasks_.spawn("leader election", elect());
  kube::asio::co_spawn(io_, await_signal(), [](std::exception_ptr error) {
    if (error) std::rethrow_exception(error);
  });
  run_loop(io_, [this](auto took) { step_was_slow("control", took); });
  return exit_code_;
}

}  // namespace trainer
