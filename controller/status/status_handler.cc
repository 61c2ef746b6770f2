#include "controller/status/status_handler.hh"

#include "controller/status/report.hh"
#include "kube/model/json_text.hh"

namespace trainer {

using kube::Json;
using kube::ServerResponse;
using kube::Task;

namespace {

constexpr std::size_t kMaxBody = 65'536;

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

}  // namespace

Task<ServerResponse> StatusHandler::handle(kube::ServerRequest request) {
  const auto trainjob = read_report_path(request.path);
  if (!trainjob || request.method != "POST") co_return failure(404, "NotFound", "Not found");
  if (request.body.size() > kMaxBody) {
    co_return failure(413, "RequestEntityTooLarge", "Payload too large");
  }
  kube::Secret<std::string> token(bearer_token(request.authorization.reveal()));
  const auto verified = co_await verifier_.verify(std::move(token), *trainjob);
  if (!verified) {
    const std::string why = verified.error().message;
    if (is_token_refused(verified.error())) {
      // It is logged at debug: otherwise a client without access could fill the log.
      log_.debug("progress report refused", {{"trainjob", trainjob->to_string()}, {"why", why}});
      co_return failure(403, "Forbidden", "Forbidden");
    }
    log_.info("progress report not checked", {{"trainjob", trainjob->to_string()}, {"why", why}});
    co_return answer_to(kube::Error());
  }
  auto report = read_report(request.body, trainjob->name);
  if (!report) {
    const bool is_unreadable = report.error().code == kube::ErrorCode::kParse;
    co_return failure(422, "Invalid", is_unreadable ? "Invalid payload" : report.error().message);
  }
  if (report->trainer_status.is_null()) co_return echo(report->trainer_status);
  if (report->dropped_metrics > 0) {
    log_.debug("metrics left out", {{"trainjob", trainjob->to_string()},
                                    {"count", std::to_string(report->dropped_metrics)}});
  }
  const auto written = co_await writer_.submit(*trainjob, *verified, report->trainer_status);
  if (!written) co_return answer_to(written.error());
  co_return echo(report->trainer_status);
}

}  // namespace trainer
