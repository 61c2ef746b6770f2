// A secret is a value that must not be printed.
#pragma once

#include <utility>

namespace kube {

// It has no formatter, no stream operator, no comparison: only reveal() returns the value, so each
// use of it is visible in the code.
template <class T>
class Secret {
 public:
  Secret() = default;
  explicit Secret(T value) : value_(std::move(value)) {}
  const T& reveal() const { return value_; }

 private:
  T value_{};
};

}  // namespace kube
