#include "controller/status/status_handler.hh"

#include "controller/status/report.hh"
#include "kube/model/json_text.hh"

namespace trainer {

using kube::Json;
using kube::ObjectKey;
using kube::Result;
using kube::ServerResponse;
using kube::Task;

namespace {

constexpr std::size_t kMaxBody = 65'536;
constexpr std::chrono::seconds kTrustForReports{60};
// Each heartbeat comes again soon, and changes nothing but the verdict on its own job.
constexpr std::chrono::seconds kTrustForHeartbeats{1'500};

ServerResponse failure(int code, const char* reason, std::string message) {
  ServerResponse response;
  response.status = code;
  response.body = kube::print_json(Json::object({{"metadata", Json::object()},
                                                 {"status", "Failure"},
                                                 {"message", std::move(message)},
                                                 {"reason", reason},
                                                 {"code", code}}));
  return response;
}

ServerResponse echo(const Json& trainer_status) {
  Json body = Json::object();
  if (!trainer_status.is_null()) body.set("trainerStatus", trainer_status);
  ServerResponse response;
  response.body = kube::print_json(body);
  return response;
}

ServerResponse answer_to(const kube::Error& error) {
  if (error.code == kube::ErrorCode::kInvalid || error.code == kube::ErrorCode::kBadRequest) {
    return failure(422, "Invalid", error.message);
  }
  if (error.code == kube::ErrorCode::kNotFound)
    return failure(404, "NotFound", "Train job not found");
  return failure(500, "InternalError", "Internal error");
}

ServerResponse answer_to_unverified(const kube::Error& error) {
  if (is_token_refused(error)) return failure(403, "Forbidden", "Forbidden");
  return failure(500, "InternalError", "Internal error");
}

}  // namespace

Task<ServerResponse> StatusHandler::handle(kube::ServerRequest request) {
  const auto reported = read_report_path(request.path, "status");
  const auto alive = read_report_path(request.path, "heartbeat");
  if ((!reported && !alive) || request.method != "POST")
    co_return failure(404, "NotFound", "Not found");
  if (request.body.size() > kMaxBody)
    co_return failure(413, "RequestEntityTooLarge", "Payload too large");
  if (reported) co_return co_await take_report(std::move(request), *reported);
  co_return co_await take_heartbeat(std::move(request), *alive);
}

Task<Result<VerifiedPod>> StatusHandler::verify(kube::Secret<std::string> authorization,
                                                ObjectKey trainjob,
                                                std::chrono::seconds trust_for) {
  kube::Secret<std::string> token(bearer_token(authorization.reveal()));
  auto verified = co_await verifier_.verify(std::move(token), trainjob, trust_for);
  if (verified) co_return verified;
  const std::string& why = verified.error().message;
  // A refusal is logged at debug: otherwise a client without access could fill the log.
  if (is_token_refused(verified.error()))
    log_.debug("report refused", {{"trainjob", trainjob.to_string()}, {"why", why}});
  else
    log_.info("report not checked", {{"trainjob", trainjob.to_string()}, {"why", why}});
  co_return verified;
}

Task<ServerResponse> StatusHandler::take_report(kube::ServerRequest request, ObjectKey trainjob) {
  const auto verified =
      co_await verify(std::move(request.authorization), trainjob, kTrustForReports);
  if (!verified) co_return answer_to_unverified(verified.error());
  auto report = read_report(request.body, trainjob.name);
  if (!report) {
    const bool is_unreadable = report.error().code == kube::ErrorCode::kParse;
    co_return failure(422, "Invalid", is_unreadable ? "Invalid payload" : report.error().message);
  }
  if (report->trainer_status.is_null()) co_return echo(report->trainer_status);
  if (report->dropped_metrics > 0) {
    log_.debug("metrics left out", {{"trainjob", trainjob.to_string()},
                                    {"count", std::to_string(report->dropped_metrics)}});
  }
  const auto written =
      co_await writer_.submit(trainjob, verified->trainjob_uid, report->trainer_status);
  if (!written) co_return answer_to(written.error());
  co_return echo(report->trainer_status);
}

Task<ServerResponse> StatusHandler::take_heartbeat(kube::ServerRequest request,
                                                   ObjectKey trainjob) {
  // Another replica leads, and the next connection may reach it.
  if (!board_->is_leading()) co_return failure(421, "Misdirected", "This replica does not lead");
  const auto verified =
      co_await verify(std::move(request.authorization), trainjob, kTrustForHeartbeats);
  if (!verified) co_return answer_to_unverified(verified.error());
  co_return heartbeats_.take(trainjob, *verified, request.body);
}

Task<void> StatusHandler::flush() {
  co_await heartbeats_.stop();
  co_await writer_.flush();
}

}  // namespace trainer
