// resource.Quantity is an exact decimal amount with an SI or binary suffix.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kube/model/error.hh"
#include "kube/model/json.hh"

namespace kube {

// The amount is exact: an integer number of nanos. Amounts finer than 1n are rounded away from
// zero. Binary amounts (Ki, Mi, ...) above 2^63-1 are capped there, like upstream's, and all others
// at 10^28. Value type; equality and order compare amounts, not spellings. A sum keeps the format
// of its first term that is not zero.
class Quantity {
 public:
  enum class Format { kDecimalSI, kBinarySI, kDecimalExponent };

  Quantity() = default;
  static Quantity of(std::int64_t amount, Format format = Format::kDecimalSI);
  // Errors (kInvalid) quote the text.
  static Result<Quantity> parse(std::string_view text);
  // Reads a JSON number, or a string, in which white space around the amount is dropped.
  static Result<Quantity> read(const Json& value);

  // Returns the canonical form: no fraction, the largest suffix possible ("1500m", "1Gi", "0").
  std::string to_string() const;
  // Returns whole units, rounded away from zero ("2500m" is 3), like Quantity.Value(); at most
  // 2^63-1.
  std::int64_t value() const;
  bool is_zero() const { return nanos_ == 0; }

  Quantity& operator+=(const Quantity& other);
  Quantity& operator*=(std::int64_t factor);
  friend bool operator==(const Quantity& a, const Quantity& b) { return a.nanos_ == b.nanos_; }
  friend bool operator<(const Quantity& a, const Quantity& b) { return a.nanos_ < b.nanos_; }

 private:
  __extension__ using Int128 = __int128;
  Int128 nanos_ = 0;
  Format format_ = Format::kDecimalSI;
};

}  // namespace kube
