// Training processes of local mode send progress reports and heartbeats here, like to the status
// server of a cluster.
#pragma once

#include <memory>
#include <thread>

#include "controller/registration/kind_registration.hh"
#include "kube/client/api_client.hh"
#include "kube/client/clock.hh"
#include "kube/client/http_server.hh"
#include "kube/manager/log.hh"
#include "local/server/local_server.hh"

namespace trainer {

// It serves the handler that a kind has registered, on 127.0.0.1 with the certificate of the API,
// on a thread of its own. It keeps its port over starts of the daemon, since pods that run know it.
// Lifecycle: listen(), use(), start(), stop(); it ends before `server`. Concurrency: one thread for
// all members.
class ReportServer {
 public:
  // `server` and `log` outlive this.
  ReportServer(LocalServer& server, const kube::Log& log);
  ~ReportServer() { stop(); }
  ReportServer(const ReportServer&) = delete;
  ReportServer& operator=(const ReportServer&) = delete;

  // Errors are a sentence for a person: it cannot listen, or cannot store its port.
  kube::Result<void> listen();
  unsigned short port() const { return http_->port(); }
  // Takes the servers of a registry, of which there is one; pods find this server by `identity`.
  void use(const Registry& registry, std::shared_ptr<ServerIdentity> identity);
  // Requests are answered from now on. The identity gets the address and the CA, so the process
  // that has made it exists, and does not run yet.
  void start();
  // Waits for running requests, and writes pending reports.
  void stop();

 private:
  kube::Result<std::unique_ptr<kube::HttpServer>> serve(unsigned short port);
  kube::Task<void> drain();
  void run();

  LocalServer& server_;
  const kube::Log& log_;
  kube::asio::io_context io_{1};
  kube::asio::executor_work_guard<kube::asio::io_context::executor_type> work_;
  kube::SystemClock clock_;
  kube::SystemRandom random_;
  std::unique_ptr<kube::Transport> transport_;
  kube::ApiClient client_;
  std::shared_ptr<ServerIdentity> identity_;
  std::unique_ptr<RequestHandler> handler_;
  std::unique_ptr<kube::HttpServer> http_;
  std::thread thread_;
};

}  // namespace trainer
