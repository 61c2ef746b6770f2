// The input is one quantity, or two on a line each.
#include "kube/model/quantity.hh"

#include <limits>

#include "tests/fuzz/fuzz.hh"

namespace {

// Sums and products of binary amounts may exceed what a binary text can express.
bool is_beyond_text(const kube::Quantity& quantity) {
  using Limits = std::numeric_limits<std::int64_t>;
  return quantity.value() == Limits::max() || quantity.value() <= -Limits::max();
}

void check_alone(const kube::Quantity& quantity, std::string_view text) {
  const std::string canonical = quantity.to_string();
  const auto again = kube::Quantity::parse(canonical);
  hold(again.has_value() && *again == quantity, "the canonical form has the same amount", text,
       canonical);
  // A binary amount without a suffix is read as a decimal one: "1000" becomes "1k", as in
  // Kubernetes.
  const auto third = kube::Quantity::parse(again->to_string());
  hold(third.has_value() && third->to_string() == again->to_string(), "the canonical form settles",
       text, canonical);
  hold(canonical.find('.') == canonical.npos, "the canonical form has no fraction", text,
       canonical);
  hold(quantity.is_zero() == (canonical == "0"), "zero is \"0\"", text, canonical);
  hold((quantity < kube::Quantity()) == (canonical.front() == '-'), "the sign is kept", text,
       canonical);
  const bool is_sign_kept =
      quantity < kube::Quantity() ? quantity.value() < 0 : quantity.value() >= 0;
  hold(is_sign_kept, "the value has the quantity's sign", text, canonical);
}

void check_pair(const kube::Quantity& a, const kube::Quantity& b, std::string_view text) {
  hold((a < b) + (b < a) + (a == b) == 1, "quantities are ordered", text);
  kube::Quantity sum = a;
  sum += b;
  kube::Quantity other = b;
  other += a;
  hold(sum == other, "a + b = b + a", text);
  hold(b < kube::Quantity() ? !(a < sum) : !(sum < a), "sums do not wrap", text);
  if (!is_beyond_text(sum)) check_alone(sum, text);
  kube::Quantity product = a;
  product *= b.value();
  if (!is_beyond_text(product)) check_alone(product, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text(data, size);
  const std::size_t line = text.find('\n');
  const auto a = kube::Quantity::parse(text.substr(0, line));
  if (!a) return 0;
  check_alone(*a, text);
  if (line == text.npos) return 0;
  const auto b = kube::Quantity::parse(text.substr(line + 1));
  if (b) check_pair(*a, *b, text);
  return 0;
}
