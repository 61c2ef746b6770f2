// Error codes as text, for logs of tests.
#pragma once

#include <string_view>

#include "kube/model/error.hh"

namespace kube::test {

inline std::string_view name_of(ErrorCode code) {
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

}  // namespace kube::test
