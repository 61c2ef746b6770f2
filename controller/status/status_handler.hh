// Training pods send progress reports (Kubeflow Trainer, pkg/statusserver).
#pragma once

#include "controller/registration/request_handler.hh"
#include "controller/status/heartbeat_store.hh"
#include "controller/status/report_writer.hh"
#include "controller/status/token_verifier.hh"
#include "kube/client/api_client.hh"
#include "kube/client/http_server.hh"

namespace trainer {

// The request is `POST /apis/trainer.kubeflow.org/v1alpha1/namespaces/NS/trainjobs/NAME/status`,
// with the body `{"trainerStatus": {...}}`. A heartbeat has `heartbeat` in place of `status`
// (docs/reporter-protocol.md).
//
// Guarantees: a report is accepted only from a pod of that TrainJob (TokenVerifier), and never
// written to a later TrainJob of the same name. The first report of a job, and any after a pause,
// is answered when it has been written; one that follows sooner is answered at once and written
// later (ReportWriter). A metric that the API would refuse is left out, so that the rest of the
// report is written; anything else that the API would refuse is answered 422. Errors: a `Status`
// without kind and apiVersion; upstream's server sends the same. Concurrency: the io_context thread
// of `client`.
class StatusHandler final : public RequestHandler {
 public:
  StatusHandler(kube::asio::io_context& io, kube::ApiClient& client, StatusLimits limits,
                std::shared_ptr<HeartbeatBoard> board, const kube::Log& log)
      : verifier_(client),
        writer_(io, client, limits, log),
        board_(std::move(board)),
        heartbeats_(io, client.clock(), board_, log),
        log_(log) {}

  kube::Task<kube::ServerResponse> handle(kube::ServerRequest request) override;
  kube::Task<void> flush() override;

 private:
  kube::Task<kube::Result<VerifiedPod>> verify(kube::Secret<std::string> authorization,
                                               kube::ObjectKey trainjob,
                                               std::chrono::seconds trust_for);
  kube::Task<kube::ServerResponse> take_report(kube::ServerRequest request,
                                               kube::ObjectKey trainjob);
  kube::Task<kube::ServerResponse> take_heartbeat(kube::ServerRequest request,
                                                  kube::ObjectKey trainjob);

  TokenVerifier verifier_;
  ReportWriter writer_;
  const std::shared_ptr<HeartbeatBoard> board_;
  HeartbeatStore heartbeats_;
  const kube::Log& log_;
};

}  // namespace trainer
