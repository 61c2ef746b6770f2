// The thread on which this process answers others: webhooks and progress reports.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "controller/admission/certificates.hh"
#include "controller/admission/handler.hh"
#include "controller/admission/state.hh"
#include "controller/core/log.hh"
#include "controller/status/status_handler.hh"
#include "kube/client/kubeconfig.hh"

namespace trainer {

struct ServingOptions {
  kube::ClientConfig client;    // for reads that no store answers, and for progress reports
  std::string webhook_address;  // as kube::ServerOptions::address, of all servers
  unsigned short webhook_port = 9443;
  bool serves_status = false;  // gate TrainJobStatus
  unsigned short status_port = 10443;
  StatusLimits status_limits;
  std::string min_tls_version = "1.2";
  jobset::Gates gates;
  AdmissionHandler::OnReview on_review;                        // called on the serving thread
  std::function<void(const kube::RequestRecord&)> on_request;  // likewise
  ServingOptions() {}
};

// Has a thread, an io_context and an API client of its own, so that a long plan in the control
// loops never delays an admission, and the other way round. Lifecycle: nothing listens before the
// first certificate; the destructor stops the servers, lets running requests end and joins the
// thread. Concurrency: all members from any thread but the serving one.
class Serving {
 public:
  // `state` and `log` outlive this.
  Serving(ServingOptions options, const AdmissionState& state, const Log& log);
  ~Serving();
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  // Starts listening with the first certificate, changes to later ones without closing connections.
  // Waits for the serving thread (milliseconds). Errors: kInvalid for an unusable certificate,
  // kNetwork when an address cannot be listened on.
  kube::Result<void> use(const CertificateBundle& bundle);
  // For readiness: all servers accept connections.
  bool is_listening() const { return is_listening_; }
  // The ports in use once is_listening(); for tests with port 0.
  unsigned short webhook_port() const;
  unsigned short status_port() const;
  void stop();

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
  std::atomic<bool> is_listening_{false};
  std::thread thread_;
};

}  // namespace trainer
