// A value that must not be printed.
#pragma once

#include <utility>

namespace kube {

// No formatter, no stream operator, no comparison: the only way to the value is reveal(), which
// reads as what it is.
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
