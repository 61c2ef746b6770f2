#include "kube/model/error.hh"

#include <algorithm>
#include <iterator>

namespace kube {

bool Error::is_transient() const {
  using enum ErrorCode;
  constexpr ErrorCode kTransient[] = {kTooManyRequests, kServerError, kTimeout,
                                      kNetwork,         kConflict,    kGone};
  return std::ranges::find(kTransient, code) != std::end(kTransient);
}

Error Error::at(std::string_view where) const {
  Error copy = *this;
  copy.message = std::string(where) + ": " + message;
  return copy;
}

}  // namespace kube
