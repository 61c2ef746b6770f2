#include "kube/model/json_bytes.hh"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <bit>
#include <cstring>

namespace kube {
namespace {

// Sixteen bytes are compared at once, in a type of GCC and Clang that every processor has.
using Block = unsigned char __attribute__((vector_size(16)));
// A comparison of blocks yields this: all bits of each byte for which it holds.
using Matches = decltype(Block() == Block());

Block load(const char* at) {
  Block block;
  std::memcpy(&block, at, sizeof(block));
  return block;
}

// Returns a bit for each byte that matches, the first byte's lowest. (g++ builds the libraries for
// their tests only, and so tests the code for other processors.)
unsigned bits_of(Matches matches) {
#if defined(__SSE2__) && defined(__clang__)
  return static_cast<unsigned>(_mm_movemask_epi8(reinterpret_cast<__m128i>(matches)));
#else
  constexpr Matches kWeights = {1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128};
  matches &= kWeights;
  std::uint64_t halves[2];
  std::memcpy(halves, &matches, sizeof(halves));
  // The product's highest byte is the sum of all bytes, in any byte order.
  const auto sum = [](std::uint64_t half) {
    return static_cast<unsigned>((half * 0x0101'0101'0101'0101U) >> 56U);
  };
  return sum(halves[0]) | sum(halves[1]) << 8U;
#endif
}

// Returns the index of the first byte that matches, 16 if there is none.
int first_of(Matches matches) {
  return std::countr_zero(bits_of(matches) | 1U << 16U);
}

// Returns the first byte that `matches`, or `end`. It compares a block, or one byte.
template <class Match>
const char* find_first(const char* at, const char* end, const Match& matches) {
  while (end - at >= 16) {
    const int found = first_of(matches(load(at)));
    at += found;
    if (found < 16) return at;
  }
  while (at != end && !matches(static_cast<unsigned char>(*at))) ++at;
  return at;
}

constexpr std::size_t kStride = 64;

// Sets each bit if an odd number of bits is set among it and the lower ones.
std::uint64_t parity_up_to(std::uint64_t bits) {
  for (unsigned distance = 1; distance < kStride; distance *= 2) bits ^= bits << distance;
  return bits;
}

bool ends_word(char c) {
  return c == ',' || c == '}' || c == ']' || c == '{' || c == '[' || c == '"' || is_json_space(c);
}

}  // namespace

const char* find_string_stop(const char* at, const char* end) {
  return find_first(at, end, [](auto c) { return (c == '"') | (c == '\\') | (c < 0x20); });
}

const char* find_string_end(const char* at, const char* end) {
  for (;;) {
    at = find_first(at, end, [](auto c) { return (c == '"') | (c == '\\'); });
    if (at == end) return nullptr;
    if (*at == '"') return at + 1;
    if (end - at < 2) return nullptr;
    at += 2;
  }
}

// These are the bytes that count among sixty-four, a bit for each, the first byte's lowest.
struct ContainerEnd::Marks {
  explicit Marks(const char* at) {
    for (unsigned offset = 0; offset < kStride; offset += 16) {
      const Block block = load(at + offset);
      const Block braces = block | 0x20;  // brackets and braces differ by this bit
      quotes |= std::uint64_t{bits_of(block == '"')} << offset;
      slashes |= std::uint64_t{bits_of(block == '\\')} << offset;
      openings |= std::uint64_t{bits_of(braces == '{')} << offset;
      closings |= std::uint64_t{bits_of(braces == '}')} << offset;
    }
  }
  std::uint64_t quotes = 0;
  std::uint64_t slashes = 0;
  std::uint64_t openings = 0;  // { and [
  std::uint64_t closings = 0;  // } and ]
};

// Returns the bytes that a backslash before them escapes. A backslash outside of strings is an
// error that does not matter here.
std::uint64_t ContainerEnd::escaped_by(std::uint64_t slashes, std::size_t first) {
  std::uint64_t escaped = is_escaped_ ? std::uint64_t{1} << first : 0;
  is_escaped_ = false;
  for (; slashes != 0; slashes &= slashes - 1) {
    const std::uint64_t slash = slashes & -slashes;
    if ((slash & escaped) != 0) continue;
    escaped |= slash << 1U;
    is_escaped_ = slash >> 63U != 0;
  }
  return escaped;
}

// Returns how many of the sixty-four bytes belong to the container; the bytes before `first` are
// spaces.
inline std::optional<std::size_t> ContainerEnd::take_block(const char* at, std::size_t first) {
  Marks marks(at);
  if (marks.slashes != 0 || is_escaped_) marks.quotes &= ~escaped_by(marks.slashes, first);
  const std::uint64_t inside = parity_up_to(marks.quotes) ^ (is_in_string_ ? ~std::uint64_t{0} : 0);
  is_in_string_ = inside >> 63U != 0;
  marks.openings &= ~inside;
  marks.closings &= ~inside;
  const int openings = std::popcount(marks.openings);
  const int closings = std::popcount(marks.closings);
  // Whatever their order is, these brackets neither end the container nor go too deep.
  if (closings < depth_ && openings <= levels_ - depth_) {
    depth_ += openings - closings;
    return std::nullopt;
  }
  for (std::uint64_t brackets = marks.openings | marks.closings; brackets != 0;
       brackets &= brackets - 1) {
    const bool is_opening = (brackets & -brackets & marks.openings) != 0;
    depth_ += is_opening ? 1 : -1;
    if (depth_ == 0) return static_cast<std::size_t>(std::countr_zero(brackets)) + 1;
    if (depth_ > levels_) break;
  }
  return std::nullopt;
}

std::optional<std::size_t> ContainerEnd::take(std::string_view piece) {
  std::size_t at = 0;
  for (; piece.size() - at >= kStride && depth_ <= levels_; at += kStride) {
    if (const auto length = take_block(piece.data() + at, 0)) return at + *length;
  }
  if (at == piece.size() || depth_ > levels_) return std::nullopt;
  const std::size_t first = kStride - (piece.size() - at);
  char rest[kStride];
  std::memset(rest, ' ', sizeof(rest));
  std::memcpy(rest + first, piece.data() + at, piece.size() - at);
  const auto length = take_block(rest, first);
  if (!length) return std::nullopt;
  return at + *length - first;
}

const char* find_value_end(const char* at, const char* end, int levels) {
  if (at == end) return nullptr;
  if (*at == '"') return find_string_end(at + 1, end);
  if (*at == '{' || *at == '[') {
    const auto length = ContainerEnd(levels).take({at + 1, static_cast<std::size_t>(end - at - 1)});
    return length ? at + 1 + *length : nullptr;
  }
  while (at != end && !ends_word(*at)) ++at;
  return at == end ? nullptr : at;
}

}  // namespace kube
