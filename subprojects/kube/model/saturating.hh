// These functions add and multiply counts that users choose. If the exact result does not fit into
// the type, the nearest number that fits is the result, so that a count never becomes negative or
// small.
#pragma once

#include <concepts>
#include <limits>

namespace kube {

template <std::signed_integral T>
constexpr T saturating_add(T a, T b) {
  T sum{};
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}

template <std::signed_integral T>
constexpr T saturating_multiply(T a, T b) {
  T product{};
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) != (b < 0) ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}

}  // namespace kube
