#include "controller/core/run.hh"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdlib>
#include <exception>

#include "controller/admission/certificate_keeper.hh"
#include "controller/admission/registration.hh"
#include "controller/admission/serving.hh"
#include "controller/admission/state.hh"
#include "controller/core/control_plane.hh"
#include "controller/core/descriptors.hh"
#include "controller/core/election.hh"
#include "controller/core/endpoints.hh"
#include "controller/core/event_loop.hh"
#include "controller/core/serving_options.hh"
#include "controller/core/throttle.hh"
#include "kube/client/kubeconfig.hh"
#include "kube/client/task_group.hh"
#include "runtimes/plugins/registry.hh"

namespace trainer {
namespace {

using kube::Milliseconds;
using kube::Result;
using kube::Task;

constexpr Milliseconds kDrain{10'000};
// Between attempts to publish webhooks.
constexpr Milliseconds kFirstRetry{1'000};
constexpr Milliseconds kLastRetry{60'000};
const char* const kElectionTask = "leader election";
const char* const kLeadTask = "lead";

LogLevel level_of(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "warn") return LogLevel::kWarn;
  return name == "error" ? LogLevel::kError : LogLevel::kInfo;
}

// How admission requests reach this process.
enum class Webhooks { kNone, kService, kUrl };

Webhooks webhooks_of(const ControllerOptions& options) {
  if (options.no_webhooks) return Webhooks::kNone;
  if (!options.webhook_url.empty()) return Webhooks::kUrl;
  // A pod has a Service in front of it; a process elsewhere must be told how it is reached.
  const bool is_in_pod = std::getenv("KUBERNETES_SERVICE_HOST") && options.kubeconfig.empty();
  return is_in_pod ? Webhooks::kService : Webhooks::kNone;
}

Result<Endpoint> host_of_url(const std::string& url) {
  if (auto parsed = parse_https_url(url)) return *parsed;
  return kube::fail(
      kube::ErrorCode::kInvalid,
      fmt::format("--webhook-url: \"{}\": write https://HOST:PORT as the API server can reach it",
                  url));
}

class Process {
 public:
  Process(const ControllerOptions& options, Configuration configuration, kube::ClientConfig client,
          const Log& log);
  int run();

 private:
  kube::ApiClient::Options client_options();
  Result<void> start_serving();
  Result<void> start_endpoints();
  Result<void> start_metrics(const CertificateBundle* bundle);
  Result<void> use_certificates(const CertificateBundle& bundle);
  Result<void> serve_with(const CertificateBundle& bundle);
  void publish_view();
  Task<void> lead();
  Task<void> elect();
  Task<bool> publish_webhooks();
  Task<void> publish_webhooks_at_last();
  Task<void> await_signal();
  Task<void> shut_down();
  void stop(int exit_code);
  std::string not_ready() const;
  PipelineOptions pipeline_options(const std::string& ca_pem) const;

  const ControllerOptions& options_;
  const Configuration configuration_;
  const kube::ClientConfig client_config_;
  const Log& log_;
  const std::string ns_;
  const Webhooks webhooks_;
  Endpoint url_host_;
  kube::asio::io_context io_{1};
  kube::SystemClock clock_;
  kube::SystemRandom random_;
  Metrics metrics_;
  std::unique_ptr<kube::Transport> transport_;
  kube::ApiClient client_;
  Election election_;
  ControlPlane control_;
  AdmissionState admission_;
  std::unique_ptr<Serving> serving_;
  std::unique_ptr<CertificateKeeper> keeper_;
  std::unique_ptr<CaInjector> injector_;
  std::unique_ptr<WebhookRegistrar> registrar_;
  std::unique_ptr<kube::HttpServer> probes_;
  std::unique_ptr<kube::HttpServer> metrics_server_;
  std::optional<Endpoint> metrics_address_;
  bool is_metrics_tls_ = false;
  std::string ca_pem_;
  kube::TaskGroup tasks_;
  kube::asio::signal_set signals_;
  bool is_stopping_ = false;
  int exit_code_ = 0;
};

std::unique_ptr<kube::Transport> make_limited_transport(kube::asio::io_context& io,
                                                        const kube::ClientConfig& client,
                                                        const Configuration& configuration) {
  kube::TransportLimits limits;
  limits.max_in_flight += ControlPlane::kWritesInFlight;
  auto transport = kube::make_transport(io, client, limits);
  const auto& limit = configuration.clientConnection;
  if (!limit.qps || *limit.qps <= 0) return transport;
  return throttle(io, std::move(transport), *limit.qps, limit.burst.value_or(1));
}

Process::Process(const ControllerOptions& options, Configuration configuration,
                 kube::ClientConfig client, const Log& log)
    : options_(options),
      configuration_(std::move(configuration)),
      client_config_(std::move(client)),
      log_(log),
      ns_(controller_namespace(options)),
      webhooks_(webhooks_of(options)),
      transport_(make_limited_transport(io_, client_config_, configuration_)),
      client_(*transport_, clock_, random_, client_options()),
      election_(io_, client_config_, configuration_.leaderElection, ns_, client_options(), log),
      control_(io_, client_, configuration_, pipeline_options(""), metrics_, log),
      tasks_(io_.get_executor(),
             [this](std::string_view task, std::string_view what) {
               log_.error("task ended", {{"task", std::string(task)}, {"why", std::string(what)}});
               // Without the election two may write, and without the loops nobody does.
               const bool is_vital = task == kElectionTask || task == kLeadTask;
               if (is_vital && !is_stopping_) stop(1);
             }),
      signals_(io_, SIGTERM, SIGINT) {}

kube::ApiClient::Options Process::client_options() {
  kube::ApiClient::Options client;
  client.on_request = [this](const kube::RequestRecord& record) { metrics_.requested(record); };
  return client;
}

PipelineOptions Process::pipeline_options(const std::string& ca_pem) const {
  PipelineOptions pipeline(production_plugins());
  pipeline.cluster_domain = configuration_.clusterDomain;
  pipeline.is_progress_enabled = configuration_.featureGates.TrainJobStatus;
  const std::string host =
      webhooks_ == Webhooks::kUrl
          ? url_host_.host
          : configuration_.certManagement.webhookServiceName + "." + ns_ + ".svc";
  pipeline.status_server_url =
      https_url({host, static_cast<unsigned short>(configuration_.statusServer.port)});
  pipeline.status_server_ca = ca_pem;
  return pipeline;
}

Result<void> Process::start_serving() {
  if (webhooks_ == Webhooks::kNone) {
    log_.info(
        "no webhooks",
        {{"why",
          "the same rules run in the reconcilers; outside a cluster --webhook-url serves them"}});
    return {};
  }
  CertificateOptions certificates;
  std::optional<unsigned short> url_port;
  if (webhooks_ == Webhooks::kUrl) {
    auto host = host_of_url(options_.webhook_url);
    if (!host) return tl::unexpected(host.error());
    url_host_ = *host;
    url_port = host->port;
    certificates.hosts = {host->host};
    registrar_ = std::make_unique<WebhookRegistrar>(client_, log_, options_.webhook_url,
                                                    configuration_.webhook.exclusivePlacement);
  } else {
    const auto& service = configuration_.certManagement.webhookServiceName;
    certificates.hosts = {service + "." + ns_ + ".svc"};
    certificates.secret = {ns_, configuration_.certManagement.webhookSecretName};
    certificates.is_made_here = configuration_.certManagement.enable;
    if (configuration_.certManagement.enable) {
      injector_ = std::make_unique<CaInjector>(io_, client_, log_);
    }
  }
  ServingOptions serving = serving_options(configuration_, url_port);
  serving.client = client_config_;
  serving.on_review = [this](std::string_view path, std::string_view outcome, auto took) {
    metrics_.admitted(path, outcome, took);
  };
  serving.on_request = [this](const kube::RequestRecord& record) { metrics_.requested(record); };
  serving_ = std::make_unique<Serving>(std::move(serving), admission_, log_);
  keeper_ = std::make_unique<CertificateKeeper>(
      io_, client_, log_, std::move(certificates),
      [this](const CertificateBundle& bundle) { return use_certificates(bundle); });
  tasks_.spawn("certificates", keeper_->run());
  return {};
}

Result<void> Process::serve_with(const CertificateBundle& bundle) {
  auto used = serving_->use(bundle);
  if (!used || !is_metrics_tls_) return used;
  return metrics_server_ ? metrics_server_->set_certificate(bundle.certificate, bundle.key)
                         : start_metrics(&bundle);
}

Result<void> Process::use_certificates(const CertificateBundle& bundle) {
  if (auto used = serve_with(bundle); !used) {
    // An address that cannot be listened on. Waiting does not free it, and a leader that waits
    // keeps others from leading.
    if (used.error().code == kube::ErrorCode::kNetwork) {
      log_.error("cannot start", {{"why", used.error().message}});
      stop(1);
    }
    return used;
  }
  ca_pem_ = bundle.trusted();
  control_.set_pipeline_options(pipeline_options(ca_pem_));
  if (injector_) injector_->set_ca(ca_pem_);
  if (registrar_ && control_.is_leading()) {
    tasks_.spawn("webhooks", publish_webhooks_at_last());
  }
  return {};
}

// With the newest CA there is; false where that failed.
Task<bool> Process::publish_webhooks() {
  const auto published = co_await registrar_->publish(ca_pem_);
  if (!published) log_.error("webhooks", {{"why", published.error().message}});
  co_return published.has_value();
}

Task<void> Process::publish_webhooks_at_last() {
  for (auto pause = kFirstRetry; !co_await publish_webhooks();
       pause = std::min(2 * pause, kLastRetry)) {
    co_await kube::sleep(clock_, pause);
  }
}

Result<void> Process::start_endpoints() {
  const auto health = listen_address(
      options_.health_address.value_or(configuration_.health.healthProbeBindAddress));
  if (!health) return tl::unexpected(health.error().at("health.healthProbeBindAddress"));
  if (*health) {
    auto served = serve_probes(io_, **health, [this] { return not_ready(); });
    if (!served) return tl::unexpected(served.error().at("health"));
    probes_ = std::move(*served);
  }
  const auto address =
      listen_address(options_.metrics_address.value_or(configuration_.metrics.bindAddress));
  if (!address) return tl::unexpected(address.error().at("metrics.bindAddress"));
  metrics_address_ = *address;
  // Without webhooks there is no certificate; metrics hold no secrets. With one, it must be there
  // first.
  is_metrics_tls_ = configuration_.metrics.secureServing && webhooks_ != Webhooks::kNone;
  return is_metrics_tls_ ? Result<void>{} : start_metrics(nullptr);
}

Result<void> Process::start_metrics(const CertificateBundle* bundle) {
  if (!metrics_address_) return {};
  kube::ServerOptions server;
  server.min_tls_version = configuration_.tls.minVersion;
  if (bundle) {
    server.is_tls = true;
    server.certificate_pem = bundle->certificate;
    server.private_key_pem = bundle->key;
  }
  auto served = serve_metrics(io_, *metrics_address_, std::move(server), metrics_);
  if (!served) return tl::unexpected(served.error().at("metrics"));
  metrics_server_ = std::move(*served);
  return {};
}

std::string Process::not_ready() const {
  if (!control_.is_ready()) return "the first lists from the API server have not arrived";
  // The metrics server has the same certificate, and comes last.
  if (serving_ && !(serving_->is_listening() && keeper_->has_certificate()))
    return "certificates are not ready";
  return {};
}

void Process::publish_view() {
  auto view = std::make_shared<AdmissionView>();
  const Stores& stores = control_.stores();
  stores.training_runtimes.each([&view](const auto& key, const auto& runtime) {
    view->training_runtimes.emplace(key, runtime);
  });
  stores.cluster_runtimes.each([&view](const auto& key, const auto& runtime) {
    view->cluster_runtimes.emplace(key, runtime);
  });
  admission_.publish(std::move(view));
}

Task<void> Process::lead() {
  if (keeper_) {
    keeper_->lead();
    // Pods are told the CA of the status server: none may be made before it is known.
    co_await keeper_->wait_for_certificate();
    if (injector_) tasks_.spawn("caBundle", injector_->run());
    if (registrar_ && !co_await publish_webhooks()) {
      tasks_.spawn("webhooks", publish_webhooks_at_last());
    }
  }
  co_await control_.start_loops();
}

Task<void> Process::elect() {
  std::function<void()> on_started = [this] { tasks_.spawn(kLeadTask, lead()); };
  std::function<void()> on_stopped = [this] {
    if (is_stopping_) return;
    // Somebody else may be writing by now: the only safe thing is to end at once.
    log_.error("leadership lost", {{"then", "exit, to be started again"}});
    stop(1);
  };
  co_await election_.run(std::move(on_started), std::move(on_stopped));
}

Task<void> Process::await_signal() {
  const int signal = co_await signals_.async_wait(kube::asio::use_awaitable);
  log_.info("stopping", {{"signal", std::to_string(signal)}});
  is_stopping_ = true;
  // A second signal ends the process at once.
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGINT, SIG_DFL);
  signals_.clear();
  co_await shut_down();
  io_.stop();
}

Task<void> Process::shut_down() {
  // First of all: webhooks that nobody serves would refuse every TrainJob.
  if (registrar_) co_await registrar_->withdraw();
  co_await control_.drain(kDrain);
  tasks_.cancel();  // gives the Lease back
  co_await tasks_.join();
  if (serving_) serving_->stop();
  if (probes_) probes_->stop();
  if (metrics_server_) metrics_server_->stop();
  log_.info("stopped");
}

void Process::stop(int exit_code) {
  exit_code_ = exit_code;
  io_.stop();
}

int Process::run() {
  control_.on_stores_changed([this] { publish_view(); });
  // Where another controller expands JobSets, its webhooks judge them.
  control_.on_mode([this](JobSetControllerMode mode) {
    admission_.set_validates_jobsets(mode == JobSetControllerMode::kOwn);
  });
  for (const auto start : {&Process::start_serving, &Process::start_endpoints}) {
    if (auto started = (this->*start)(); !started) {
      log_.error("cannot start", {{"why", started.error().message}});
      return 1;
    }
  }
  control_.start_watching();
  tasks_.spawn(kElectionTask, elect());
  kube::asio::co_spawn(io_, await_signal(), [this](std::exception_ptr error) {
    if (error) stop(1);
  });
  run_event_loop(io_, [this](std::chrono::nanoseconds took) {
    metrics_.loop_stalled(took);
    log_.warn("slow step", {{"ms", std::to_string(took / std::chrono::milliseconds(1))}});
  });
  return exit_code_;
}

}  // namespace

int run_controller(const ControllerOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  const Log log(level_of(options.log_level),
                options.log_format == LogFormat::kJson ? Log::Format::kJson : Log::Format::kText);
  auto parsed = load_configuration(options);
  if (!parsed) {
    log.error("cannot start", {{"why", parsed.error().message}});
    return 1;
  }
  if (!raise_descriptor_limit())
    log.warn("descriptors", {{"why", "the limit of open files could not be raised"}});
  for (const auto& warning : parsed->warnings) log.warn("configuration", {{"what", warning}});
  auto client = kube::load_config(options.kubeconfig, options.context);
  if (!client) {
    log.error("cannot start", {{"why", client.error().message}});
    return 1;
  }
  client->user_agent = "trainer/" TRAINER_VERSION;
  log.info("starting", {{"version", TRAINER_VERSION}, {"server", client->server}});
  try {
    Process process(options, std::move(parsed->configuration), std::move(*client), log);
    return process.run();
  } catch (const std::exception& error) {
    log.error("cannot go on", {{"why", error.what()}});
    return 1;
  }
}

}  // namespace trainer
