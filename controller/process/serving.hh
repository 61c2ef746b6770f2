// On this thread the process answers requests: webhooks and the servers of kinds.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "controller/admission/admission.hh"
#include "controller/admission/admission_view.hh"
#include "controller/process/loop_health.hh"
#include "controller/registration/request_handler.hh"
#include "kube/client/certificates.hh"
#include "kube/client/make_transport.hh"
#include "kube/manager/event_loop.hh"
#include "kube/manager/log.hh"

namespace trainer {

struct ServingOptions {
  // It reads objects that are not cached, and writes progress reports.
  kube::MakeTransport make_transport;
  std::string address;  // kube::ServerOptions::address of all servers
  unsigned short webhook_port = 9443;
  kube::ServerTlsOptions tls;
  // Clients that may send reviews have a certificate that one of these CAs has signed; if it is
  // empty, all may.
  std::string client_ca_pem;
  std::vector<WebhookHandler> handlers;
  std::vector<ServerRegistration> servers;
  Admission::OnReview on_review;                               // called on the serving thread
  Admission::OnBegin on_review_begin;                          // called on the serving thread
  std::function<void(const kube::RequestRecord&)> on_request;  // called on the serving thread
  std::function<void(std::string_view server)> on_eviction;    // called on the serving thread
  kube::OnSlowStep on_slow_step;                               // called on the serving thread
  // It is called on the serving thread, after an exception (a bug) that ended a request or a task;
  // the thread goes on.
  std::function<void()> on_exception;
  LoopHealth* health = nullptr;  // the health of the serving thread
  kube::Milliseconds certificates_limit{
      5'000};  // set_certificates() waits this long for the thread
  // stop() waits this long for the thread: longer than the thread's own three waits of five seconds
  // for requests and reports.
  kube::Milliseconds stop_limit{20'000};
  ServingOptions() {}
};

// It has its own thread, io_context and API client, so that a long plan in the control loops never
// delays a review, and a review never delays a plan. Lifecycle: no server listens before the first
// certificate; the destructor stops the servers, waits for running requests and joins the thread,
// without a limit: stop() has one. Concurrency: all members from any thread except the serving
// thread.
class Serving {
 public:
  // `state` and `log` outlive this.
  Serving(ServingOptions options, const AdmissionState& state, const kube::Log& log);
  ~Serving();
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  // Starts listening with the first certificate, changes to later ones without closing connections.
  // Errors: kInvalid for an unusable certificate, kNetwork if the server cannot listen on an
  // address, kTimeout if the serving thread is busy for longer than `certificates_limit`.
  kube::Task<kube::Result<void>> set_certificates(kube::CertificateBundle bundle);
  // Readiness needs it: all servers accept connections.
  bool is_listening() const { return is_listening_; }
  // Returns the port in use once is_listening(); for tests with port 0.
  unsigned short webhook_port() const;
  // Returns false if the thread has not ended within `stop_limit`.
  bool stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::atomic<bool> is_listening_{false};
  std::future<void> ended_;
  std::thread thread_;
};

}  // namespace trainer
