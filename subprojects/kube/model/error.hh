// Outcomes that a caller must react to are values of these types; bugs are exceptions.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace kube {

// Callers branch by these codes. The first block mirrors the reasons of a Kubernetes `Status`.
enum class ErrorCode {
  kBadRequest,       // 400
  kUnauthorized,     // 401
  kForbidden,        // 403
  kNotFound,         // 404
  kAlreadyExists,    // 409 of a create
  kConflict,         // 409 of a write with resourceVersion, uid or field managers
  kGone,             // 410: the resourceVersion is too old, list again
  kTooLarge,         // 413
  kUnsupported,      // 415, 405
  kInvalid,          // 422
  kTooManyRequests,  // 429
  kServerError,      // 5xx
  kTimeout,          // the deadline of this program, or 504
  kNetwork,          // could not connect, connection cut, TLS failure
  kCancelled,        // the caller cancelled it
  kParse,            // a text could not be decoded
  kInternal,  // an expectation of this program did not hold; the operation was abandoned, nothing
              // else is affected
};

// An error says what happened, where, and whether asking again can help.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;                                   // a whole sentence, without secrets
  int status = 0;                                        // the HTTP status, 0 when no answer came
  std::optional<std::chrono::milliseconds> retry_after;  // the time that the server asked for
  // The backoff is at most this long: something is due then (Plan::due_after).
  std::optional<std::chrono::milliseconds> retry_within;

  Error() = default;
  Error(ErrorCode c, std::string m, int http_status = 0)
      : code(c), message(std::move(m)), status(http_status) {}

  // Returns true if the same request may succeed later without any change.
  bool is_transient() const;
  // Returns the same error with "`where`: " in front of its message.
  Error at(std::string_view where) const;
};

template <class T>
using Result = tl::expected<T, Error>;

// `return fail(ErrorCode::kParse, "...")` from a function that returns a Result.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error(code, std::move(message)));
}
template <class First, class... Rest>
tl::unexpected<Error> fail(ErrorCode code, fmt::format_string<First, Rest...> message,
                           First&& first, Rest&&... rest) {
  return fail(code, fmt::format(message, std::forward<First>(first), std::forward<Rest>(rest)...));
}

}  // namespace kube
