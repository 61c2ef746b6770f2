#include <algorithm>

#include "kube/client/api_client.hh"
#include "kube/model/json_text.hh"

namespace kube {

namespace {

// The reasons of metav1.Status that say more than the HTTP status does.
ErrorCode code_of(int status, std::string_view reason) {
  switch (status) {
    case 400:
      return ErrorCode::kBadRequest;
    case 401:
      return ErrorCode::kUnauthorized;
    case 403:
      return ErrorCode::kForbidden;
    case 404:
      return ErrorCode::kNotFound;
    case 405:
    case 406:
    case 415:
      return ErrorCode::kUnsupported;
    case 409:
      return reason == "AlreadyExists" ? ErrorCode::kAlreadyExists : ErrorCode::kConflict;
    case 410:
      return ErrorCode::kGone;
    case 413:
      return ErrorCode::kTooLarge;
    case 422:
      return ErrorCode::kInvalid;
    case 429:
      return ErrorCode::kTooManyRequests;
    case 504:
      return ErrorCode::kTimeout;
    default:
      break;
  }
  return status >= 500 ? ErrorCode::kServerError : ErrorCode::kBadRequest;
}

// More seconds than fit into milliseconds would overflow there, and no caller waits for longer.
constexpr std::chrono::seconds kLongestWait = std::chrono::hours(24);

// Retry-After in whole seconds; the form with a date is not used by Kubernetes.
std::optional<Milliseconds> seconds_of(std::string_view text) {
  const bool is_number =
      !text.empty() && text.size() <= 6 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) return std::nullopt;
  return std::min(kLongestWait, std::chrono::seconds(std::stol(std::string(text))));
}

}  // namespace

Error error_of(const HttpResponse& response) {
  constexpr std::size_t kExcerpt = 300;
  const auto body = parse_json(response.body);
  const bool is_status = body && body->get_string("kind") == "Status";
  Error error;
  error.status = response.status;
  error.code =
      code_of(response.status, is_status ? body->get_string("reason") : std::string_view());
  error.retry_after = seconds_of(response.header("retry-after"));
  if (is_status) {
    error.message = body->get_string("message");
    if (const Json* const after = body->find_path({"details", "retryAfterSeconds"});
        !error.retry_after && after != nullptr && after->is_int() && after->as_int() > 0) {
      error.retry_after =
          std::chrono::seconds(std::min<std::int64_t>(after->as_int(), kLongestWait.count()));
    }
  }
  if (error.message.empty()) {
    error.message = "the server answered " + std::to_string(response.status);
    if (!is_status && !response.body.empty())
      error.message += ": " + response.body.substr(0, kExcerpt);
  }
  return error;
}

}  // namespace kube
