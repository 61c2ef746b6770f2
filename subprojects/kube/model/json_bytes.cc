#include "kube/model/json_bytes.hh"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace kube {
namespace {

// Sixteen bytes that are looked at in one go: a type of GCC's and Clang's, whatever the processor.
using Block = unsigned char __attribute__((vector_size(16)));
// What a comparison of blocks yields: all bits of each byte for which it holds.
using Matches = decltype(Block() == Block());

Block load(const char* at) {
  Block block;
  std::memcpy(&block, at, sizeof(block));
  return block;
}

// A bit for each byte that matches, the first byte's lowest. (g++ builds the libraries for their
// tests only, which so cover what other processors do.)
unsigned bits_of(Matches matches) {
#if defined(__SSE2__) && defined(__clang__)
  return static_cast<unsigned>(_mm_movemask_epi8(reinterpret_cast<__m128i>(matches)));
#else
  constexpr Matches kWeights = {1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128};
  matches &= kWeights;
  std::uint64_t halves[2];
  std::memcpy(halves, &matches, sizeof(halves));
  // The product's highest byte is the sum of all bytes, in whatever order they lie.
  const auto sum = [](std::uint64_t half) {
    return static_cast<unsigned>((half * 0x0101'0101'0101'0101U) >> 56U);
  };
  return sum(halves[0]) | sum(halves[1]) << 8U;
#endif
}

// The index of the first byte that matches, 16 where there is none.
int first_of(Matches matches) {
  return std::countr_zero(bits_of(matches) | 1U << 16U);
}

// A quotation mark or a backslash, or `end`.
const char* find_quote_or_slash(const char* at, const char* end) {
  while (end - at >= 16) {
    const Block block = load(at);
    const int found = first_of((block == '"') | (block == '\\'));
    at += found;
    if (found < 16) return at;
  }
  while (at != end && *at != '"' && *at != '\\') ++at;
  return at;
}

}  // namespace

const char* find_string_stop(const char* at, const char* end) {
  while (end - at >= 16) {
    const Block block = load(at);
    const int found = first_of((block == '"') | (block == '\\') | (block < 0x20));
    at += found;
    if (found < 16) return at;
  }
  while (at != end && *at != '"' && *at != '\\' && static_cast<unsigned char>(*at) >= 0x20) ++at;
  return at;
}

const char* find_string_end(const char* at, const char* end) {
  for (;;) {
    at = find_quote_or_slash(at, end);
    if (at == end) return nullptr;
    if (*at == '"') return at + 1;
    if (end - at < 2) return nullptr;
    at += 2;
  }
}

namespace {

// What counts among sixty-four bytes, a bit for each, the first byte's lowest.
struct Marks {
  std::uint64_t quotes = 0;
  std::uint64_t slashes = 0;
  std::uint64_t openings = 0;  // { and [
  std::uint64_t closings = 0;  // } and ]
};
constexpr std::ptrdiff_t kStride = 64;

Marks marks_of(const char* at) {
  Marks marks;
  for (unsigned offset = 0; offset < kStride; offset += 16) {
    const Block block = load(at + offset);
    const Block braces = block | 0x20;  // by this bit brackets differ from them
    marks.quotes |= std::uint64_t{bits_of(block == '"')} << offset;
    marks.slashes |= std::uint64_t{bits_of(block == '\\')} << offset;
    marks.openings |= std::uint64_t{bits_of(braces == '{')} << offset;
    marks.closings |= std::uint64_t{bits_of(braces == '}')} << offset;
  }
  return marks;
}

// Of each bit, whether an odd number of bits is set up to it and with it.
std::uint64_t parity_up_to(std::uint64_t bits) {
  for (unsigned distance = 1; distance < kStride; distance *= 2) bits ^= bits << distance;
  return bits;
}

// Finds where a container ends.
class ContainerEnd {
 public:
  // Begins behind the opening bracket.
  explicit ContainerEnd(int levels) : levels_(levels) {}

  // Takes the next bytes. How many of them belong to the container; nullopt where it goes on
  // behind them, and where containers are nested too deep.
  std::optional<std::ptrdiff_t> take(const char* at) {
    Marks marks = marks_of(at);
    if (marks.slashes != 0 || is_escaped_) marks.quotes &= ~escaped_by(marks.slashes);
    const std::uint64_t inside =
        parity_up_to(marks.quotes) ^ (is_in_string_ ? ~std::uint64_t{0} : 0);
    is_in_string_ = inside >> 63U != 0;
    marks.openings &= ~inside;
    marks.closings &= ~inside;
    const int openings = std::popcount(marks.openings);
    const int closings = std::popcount(marks.closings);
    // Whatever the order, the end is not here, nor too deep a place.
    if (closings < depth_ && openings <= levels_ - depth_) {
      depth_ += openings - closings;
      return std::nullopt;
    }
    return step_through(marks);
  }
  bool is_too_deep() const { return depth_ > levels_; }

 private:
  // The bytes that a backslash before them escapes. One outside of strings is an error that does
  // not matter here.
  std::uint64_t escaped_by(std::uint64_t slashes) {
    std::uint64_t escaped = is_escaped_ ? 1 : 0;
    is_escaped_ = false;
    for (; slashes != 0; slashes &= slashes - 1) {
      const std::uint64_t slash = slashes & -slashes;
      if ((slash & escaped) != 0) continue;
      escaped |= slash << 1U;
      is_escaped_ = slash >> 63U != 0;
    }
    return escaped;
  }

  std::optional<std::ptrdiff_t> step_through(const Marks& marks) {
    for (std::uint64_t brackets = marks.openings | marks.closings; brackets != 0;
         brackets &= brackets - 1) {
      const bool is_opening = (brackets & -brackets & marks.openings) != 0;
      depth_ += is_opening ? 1 : -1;
      if (depth_ == 0) return std::countr_zero(brackets) + 1;
      if (is_too_deep()) return std::nullopt;
    }
    return std::nullopt;
  }

  int levels_;
  int depth_ = 1;
  bool is_in_string_ = false;
  bool is_escaped_ = false;  // the next byte
};

// `at` is behind the opening bracket.
const char* find_container_end(const char* at, const char* end, int levels) {
  ContainerEnd container(levels);
  while (end - at >= kStride && !container.is_too_deep()) {
    if (const auto length = container.take(at)) return at + *length;
    at += kStride;
  }
  if (container.is_too_deep()) return nullptr;
  // Nothing counts among the spaces that the rest is filled up with.
  char rest[kStride];
  std::memset(rest, ' ', sizeof(rest));
  std::memcpy(rest, at, static_cast<std::size_t>(end - at));
  const auto length = container.take(rest);
  return length ? at + *length : nullptr;
}

bool ends_word(char c) {
  return c == ',' || c == '}' || c == ']' || c == '{' || c == '[' || c == '"' || is_json_space(c);
}

}  // namespace

const char* find_value_end(const char* at, const char* end, int levels) {
  if (at == end) return nullptr;
  if (*at == '"') return find_string_end(at + 1, end);
  if (*at == '{' || *at == '[') return find_container_end(at + 1, end, levels);
  while (at != end && !ends_word(*at)) ++at;
  return at == end ? nullptr : at;
}

}  // namespace kube
