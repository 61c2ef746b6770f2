#include "kube/model/quantity.hh"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

#include "kube/model/json_text.hh"

namespace kube {
namespace {

__extension__ using Int128 = __int128;

constexpr Int128 kNano = 1'000'000'000;
constexpr Int128 kLargestInt64 = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMaxDigits = 37;  // the digits of an amount in nanos; a sum of two still fits

constexpr Int128 power_of_ten(std::size_t exponent) {
  Int128 power = 1;
  while (exponent-- > 0) power *= 10;
  return power;
}
constexpr Int128 kMost = power_of_ten(kMaxDigits);

// These are the powers of 1000, from -3, and of 1024, from 0.
constexpr std::string_view kDecimal[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
constexpr std::string_view kBinary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

struct Scale {
  Quantity::Format format = Quantity::Format::kDecimalSI;
  int exponent = 0;  // the exponent of ten, or of 1024 for the binary ones
};

std::optional<Scale> read_suffix(std::string_view text) {
  if (const auto at = std::ranges::find(kDecimal, text); at != std::end(kDecimal))
    return Scale{Quantity::Format::kDecimalSI, static_cast<int>(at - kDecimal) * 3 - 9};
  if (const auto at = std::ranges::find(kBinary, text); at != std::end(kBinary))
    return Scale{Quantity::Format::kBinarySI, static_cast<int>(at - kBinary)};
  if (text.front() != 'e' && text.front() != 'E') return std::nullopt;
  text.remove_prefix(1);
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  int exponent = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, exponent);
  if (text.empty() || result.ptr != end) return std::nullopt;
  // Values beyond these bounds are rounded up to one nano, or capped.
  constexpr int kBound = 1'000'000;
  if (result.ec == std::errc::result_out_of_range)
    exponent = text.front() == '-' ? -kBound : kBound;
  return Scale{Quantity::Format::kDecimalExponent, std::clamp(exponent, -kBound, kBound)};
}

// This is a non-negative number as decimal digits, so that suffixes and rounding are exact for
// texts of any length.
struct Digits {
  std::string digits;
  std::int64_t exponent = 0;  // the exponent of ten

  void multiply_by_1024() {
    int carry = 0;
    for (auto at = digits.rbegin(); at != digits.rend(); ++at) {
      const int product = (*at - '0') * 1024 + carry;
      *at = static_cast<char>('0' + product % 10);
      carry = product / 10;
    }
    if (carry > 0) digits.insert(0, std::to_string(carry));
  }

  // Returns nanos, rounded up; kMost if it is more than that.
  Int128 to_nanos() const {
    std::string_view kept(digits);
    kept.remove_prefix(std::min(kept.find_first_not_of('0'), kept.size()));
    if (kept.empty()) return 0;
    const std::int64_t shift = exponent + 9;
    const auto dropped = static_cast<std::size_t>(
        std::clamp<std::int64_t>(-shift, 0, static_cast<std::int64_t>(kept.size())));
    const bool rounds_up = kept.substr(kept.size() - dropped).find_first_not_of('0') != kept.npos;
    kept.remove_suffix(dropped);
    const auto zeros = static_cast<std::size_t>(std::max<std::int64_t>(shift, 0));
    if (kept.size() + zeros > kMaxDigits) return kMost;
    Int128 nanos = 0;
    for (const char digit : kept) nanos = nanos * 10 + (digit - '0');
    return nanos * power_of_ten(zeros) + (rounds_up ? 1 : 0);
  }
};

// Takes "12.5" off the front of the text; nullopt without any digit.
std::optional<Digits> take_number(std::string_view& text) {
  constexpr std::string_view kDigits = "0123456789";
  const auto take_digits = [&] {
    const std::string_view digits = text.substr(0, text.find_first_not_of(kDigits));
    text.remove_prefix(digits.size());
    return digits;
  };
  Digits number;
  number.digits = take_digits();
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    const std::string_view fraction = take_digits();
    number.digits += fraction;
    number.exponent = -static_cast<std::int64_t>(fraction.size());
  }
  if (number.digits.empty()) return std::nullopt;
  return number;
}

// Prints the shortest mantissa with an exponent that is a multiple of three.
std::string print_decimal(Int128 nanos, Quantity::Format format) {
  int exponent = -9;
  for (; nanos % 1000 == 0; nanos /= 1000) exponent += 3;
  if (format == Quantity::Format::kDecimalExponent)
    return exponent == 0 ? fmt::format("{}", nanos) : fmt::format("{}e{}", nanos, exponent);
  // There is no suffix above "E".
  for (; exponent > 18; exponent -= 3) nanos *= 1000;
  return fmt::format("{}{}", nanos, kDecimal[(exponent + 9) / 3]);
}

std::string print_binary(Int128 units) {
  std::size_t power = 0;
  for (; units % 1024 == 0 && power + 1 < std::size(kBinary); units /= 1024) ++power;
  return fmt::format("{}{}", units, kBinary[power]);
}

}  // namespace

Quantity Quantity::of(std::int64_t amount, Format format) {
  Quantity quantity;
  quantity.nanos_ = amount * kNano;
  quantity.format_ = format;
  return quantity;
}

Result<Quantity> Quantity::parse(std::string_view text) {
  const auto malformed = [whole = text] {
    return fail(ErrorCode::kInvalid,
                "{} is no quantity; write a number with an "
                "optional suffix: n, u, m, k, M, G, T, P, "
                "E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent like e3",
                print_json(whole));
  };
  const bool negative = !text.empty() && text.front() == '-';
  if (negative || (!text.empty() && text.front() == '+')) text.remove_prefix(1);
  auto number = take_number(text);
  if (!number) return malformed();
  const auto scale = read_suffix(text);
  if (!scale) return malformed();

  Quantity quantity;
  quantity.format_ = scale->format;
  if (scale->format == Format::kBinarySI) {
    for (int i = 0; i < scale->exponent; ++i) number->multiply_by_1024();
    quantity.nanos_ = std::min(number->to_nanos(), kLargestInt64 * kNano);
    if (quantity.nanos_ < kNano) quantity.format_ = Format::kDecimalSI;
  } else {
    number->exponent += scale->exponent;
    quantity.nanos_ = number->to_nanos();
  }
  if (negative) quantity.nanos_ = -quantity.nanos_;
  return quantity;
}

Result<Quantity> Quantity::read(const Json& value) {
  if (value.is_int()) return of(value.as_int());
  if (value.is_double()) return parse(print_json(value));
  if (!value.is_string())
    return fail(ErrorCode::kInvalid, "a quantity must be a string or a number, not {}",
                value.type_name());
  std::string_view text = value.as_string();
  constexpr std::string_view kSpace = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  text.remove_suffix(text.size() - text.find_last_not_of(kSpace) - 1);
  return parse(text);
}

std::string Quantity::to_string() const {
  if (nanos_ == 0) return "0";
  const std::string sign = nanos_ < 0 ? "-" : "";
  const Int128 size = nanos_ < 0 ? -nanos_ : nanos_;
  // Small and fractional amounts have no exact binary form.
  if (format_ == Format::kBinarySI && size >= 1024 * kNano && size % kNano == 0)
    return sign + print_binary(size / kNano);
  return sign + print_decimal(size, format_);
}

std::int64_t Quantity::value() const {
  Int128 whole = nanos_ / kNano;
  if (nanos_ % kNano != 0) whole += nanos_ < 0 ? -1 : 1;
  return static_cast<std::int64_t>(std::clamp(whole, -kLargestInt64 - 1, kLargestInt64));
}

Quantity& Quantity::operator+=(const Quantity& other) {
  if (nanos_ == 0) format_ = other.format_;
  nanos_ = std::clamp(nanos_ + other.nanos_, -kMost, kMost);
  return *this;
}

Quantity& Quantity::operator*=(std::int64_t factor) {
  const auto size_of = [](Int128 number) { return number < 0 ? -number : number; };
  // The product is not checked by __builtin_mul_overflow: on arm64 clang calls a function for it
  // that libgcc lacks.
  const bool is_too_much = factor != 0 && size_of(nanos_) > kMost / size_of(factor);
  const bool is_negative = (nanos_ < 0) != (factor < 0);
  nanos_ = !is_too_much ? nanos_ * factor : is_negative ? -kMost : kMost;
  return *this;
}

}  // namespace kube
