#include "kube/model/error.hh"

namespace kube {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kBadRequest:
      return "BadRequest";
    case ErrorCode::kUnauthorized:
      return "Unauthorized";
    case ErrorCode::kForbidden:
      return "Forbidden";
    case ErrorCode::kNotFound:
      return "NotFound";
    case ErrorCode::kAlreadyExists:
      return "AlreadyExists";
    case ErrorCode::kConflict:
      return "Conflict";
    case ErrorCode::kGone:
      return "Gone";
    case ErrorCode::kTooLarge:
      return "TooLarge";
    case ErrorCode::kUnsupported:
      return "Unsupported";
    case ErrorCode::kInvalid:
      return "Invalid";
    case ErrorCode::kTooManyRequests:
      return "TooManyRequests";
    case ErrorCode::kServerError:
      return "ServerError";
    case ErrorCode::kTimeout:
      return "Timeout";
    case ErrorCode::kNetwork:
      return "Network";
    case ErrorCode::kCancelled:
      return "Cancelled";
    case ErrorCode::kParse:
      return "Parse";
    case ErrorCode::kInternal:
      return "Internal";
  }
  return "Unknown";
}

bool Error::is_transient() const {
  switch (code) {
    case ErrorCode::kTooManyRequests:
    case ErrorCode::kServerError:
    case ErrorCode::kTimeout:
    case ErrorCode::kNetwork:
    case ErrorCode::kConflict:
    case ErrorCode::kGone:
      return true;
    case ErrorCode::kBadRequest:
    case ErrorCode::kUnauthorized:
    case ErrorCode::kForbidden:
    case ErrorCode::kNotFound:
    case ErrorCode::kAlreadyExists:
    case ErrorCode::kTooLarge:
    case ErrorCode::kUnsupported:
    case ErrorCode::kInvalid:
    case ErrorCode::kCancelled:
    case ErrorCode::kParse:
    case ErrorCode::kInternal:
      return false;
  }
  return false;
}

Error Error::at(std::string_view where) const {
  Error copy = *this;
  copy.message = std::string(where) + ": " + message;
  return copy;
}

}  // namespace kube
