// The running controller has manager, admission, servers and leader election. It knows no kind;
// kinds come in a registry.
#pragma once

#include <boost/asio/signal_set.hpp>
#include <memory>
#include <optional>
#include <string>

#include "controller/admission/admission_view.hh"
#include "controller/admission/certificate_keeper.hh"
#include "controller/admission/webhook_registrar.hh"
#include "controller/config/configuration.hh"
#include "controller/config/values.hh"
#include "controller/process/election.hh"
#include "controller/process/loop_health.hh"
#include "controller/process/metrics.hh"
#include "controller/process/serving.hh"
#include "controller/registration/kind_registration.hh"
#include "kube/client/api_client.hh"
#include "kube/client/clock.hh"
#include "kube/client/http_server.hh"
#include "kube/client/make_transport.hh"
#include "kube/client/task_group.hh"
#include "kube/manager/event_loop.hh"
#include "kube/manager/log.hh"
#include "kube/manager/manager.hh"

namespace trainer {

// Concurrency: one thread calls run(). All members outlive the io_context's last handler.
class Process {
 public:
  using MakeRegistry = std::function<Registry(const KindOptions& options)>;
  Process(const ControllerOptions& options, Configuration configuration,
          kube::MakeTransport make_transport, const MakeRegistry& make_registry, kube::Log& log);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() { stop_serving(); }

  // Runs until SIGTERM or SIGINT (returns 0), or until an error that ends the process (1). After
  // the signal it is unready at once, gives the Lease back, and serves for five seconds more if a
  // Service still sends it requests. A second signal ends it at once. `run_loop` runs the control
  // loops: kube::run_coalescing_event_loop if many jobs come at once, kube::run_event_loop if a
  // user waits for each step of one.
  using RunLoop = void (*)(kube::asio::io_context& io, const kube::OnSlowStep& on_slow_step);
  int run(RunLoop run_loop);

 private:
  // Admission requests reach this process in one of these ways.
  enum class Webhooks { kNone, kService, kUrl };

  static Webhooks webhooks_of(const ControllerOptions& options, bool is_namespaced);
  kube::ApiClient::Options client_options();
  // The client of the control loops uses these options: it may write only while this process holds
  // the Lease.
  kube::ApiClient::Options writer_options();
  kube::ManagerOptions manager_options();
  kube::Result<void> start_serving();
  kube::ServerTlsOptions tls_options() const;
  ServingOptions serving_options(std::optional<unsigned short> url_port);
  kube::Result<CertificateOptions> certificate_options(std::optional<unsigned short>& url_port);
  kube::Result<void> start_endpoints();
  kube::Result<void> start_metrics(const kube::CertificateBundle* bundle);
  kube::Task<kube::Result<void>> use_certificates(kube::CertificateBundle bundle);
  kube::Task<kube::Result<void>> serve_with(const kube::CertificateBundle& bundle);
  void trust(const std::string& ca_pem);
  // Webhooks read these collections on the serving thread.
  void share_with_admission();
  kube::Task<void> lead();
  kube::Task<void> elect();
  kube::Task<bool> publish_webhooks();
  kube::Task<void> retry_webhooks();
  kube::Task<void> await_signal();
  void begin_shut_down(int exit_code);
  kube::Task<void> shut_down();
  void stop(int exit_code);
  // A task has ended by an exception, and is not started again.
  void lost_task();
  // It runs on the thread of `loop`.
  void step_was_slow(std::string_view loop, std::chrono::nanoseconds took);
  // Ends the process if the serving thread does not end.
  void stop_serving();
  std::string not_live() const;
  std::string not_ready() const;
  // /debug/state shows it.
  kube::Json state() const;
  void show_certificates(const kube::CertificateBundle& bundle);

  const ControllerOptions& options_;
  const Configuration configuration_;
  const kube::MakeTransport make_transport_;
  kube::Log& log_;
  const std::string ns_;
  const Webhooks webhooks_;
  const std::shared_ptr<ServerIdentity> identity_;
  const std::shared_ptr<JobCensus> jobs_ = std::make_shared<JobCensus>();
  Registry registry_;
  kube::SystemClock clock_;
  Metrics metrics_;
  LoopHealth control_health_;
  LoopHealth serving_health_;
  kube::asio::io_context io_{1};
  kube::SystemRandom random_;
  std::unique_ptr<kube::Transport> transport_;
  kube::ApiClient client_;
  // It is used for the reviews of tokens that clients of the metrics server send, also on a replica
  // that does not lead. It is a client of its own, so that the limits of the control loops' client
  // do not count.
  std::unique_ptr<kube::Transport> reviews_transport_;
  kube::ApiClient reviews_;
  Election election_;
  kube::Manager manager_;
  AdmissionState admission_;
  std::unique_ptr<Serving> serving_;
  std::unique_ptr<CertificateKeeper> keeper_;
  std::unique_ptr<CaInjector> injector_;
  std::unique_ptr<WebhookRegistrar> registrar_;
  std::unique_ptr<kube::HttpServer> probes_;
  std::unique_ptr<kube::HttpServer> metrics_server_;
  std::optional<Endpoint> metrics_address_;
  bool is_metrics_tls_ = false;
  kube::TaskGroup tasks_;
  kube::asio::signal_set signals_;
  bool is_stopping_ = false;
  int exit_code_ = 0;
};

}  // namespace trainer
