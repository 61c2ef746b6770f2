#include "kube/model/error.hh"

namespace kube {

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
