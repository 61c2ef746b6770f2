#include "kube/model/json_bytes.hh"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

// Of each bit, whether an odd number of bits is set up to it and with it.
unsigned parity_up_to(unsigned bits) {
  for (unsigned distance = 1; distance < 16; distance *= 2) bits ^= bits << distance;
  return bits & 0xFFFFU;
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

// Finds where the container ends that the text begins with.
class ContainerEnd {
 public:
  ContainerEnd(const char* at, const char* end, int levels) : at_(at), end_(end), levels_(levels) {}

  const char* find() {
    while (!is_found_ && end_ - at_ >= 16) {
      const Block block = load(at_);
      const bool goes_on = bits_of(block == '\\') == 0 ? take_block(block) : take_bytes(at_ + 16);
      if (!goes_on) return nullptr;
    }
    if (!is_found_ && !take_bytes(end_)) return nullptr;
    return is_found_ ? at_ : nullptr;
  }

 private:
  // Sixteen bytes without an escape. False where containers are nested too deep.
  bool take_block(Block block) {
    const unsigned inside = parity_up_to(bits_of(block == '"')) ^ (is_in_string_ ? 0xFFFFU : 0U);
    // Brackets differ from braces by this bit.
    const Block braces = block | 0x20;
    for (unsigned bits = bits_of((braces == '{') | (braces == '}')) & ~inside; bits != 0;
         bits &= bits - 1) {
      const char* const bracket = at_ + std::countr_zero(bits);
      if (!step(*bracket)) return false;
      if (is_found_) {
        at_ = bracket + 1;
        return true;
      }
    }
    is_in_string_ = (inside & 0x8000U) != 0;
    at_ += 16;
    return true;
  }

  // Byte by byte up to `stop`, and on to where a string ends. False where the text ends before, or
  // containers are nested too deep.
  bool take_bytes(const char* stop) {
    while (is_in_string_ || at_ < stop) {
      if (is_in_string_ || *at_ == '"') {
        at_ = find_string_end(at_ + (is_in_string_ ? 0 : 1), end_);
        if (at_ == nullptr) return false;
        is_in_string_ = false;
        continue;
      }
      const char c = *at_++;
      const bool is_bracket = c == '{' || c == '[' || c == '}' || c == ']';
      if (is_bracket && !step(c)) return false;
      if (is_found_) return true;
    }
    return true;
  }

  bool step(char bracket) {
    if (bracket == '{' || bracket == '[') return ++depth_ <= levels_;
    is_found_ = --depth_ == 0;
    return true;
  }

  const char* at_;
  const char* end_;
  int levels_;
  int depth_ = 0;
  bool is_in_string_ = false;
  bool is_found_ = false;  // `at_` is behind it
};

bool ends_word(char c) {
  return c == ',' || c == '}' || c == ']' || c == '{' || c == '[' || c == '"' || is_json_space(c);
}

}  // namespace

const char* find_value_end(const char* at, const char* end, int levels) {
  if (at == end) return nullptr;
  if (*at == '"') return find_string_end(at + 1, end);
  if (*at == '{' || *at == '[') return ContainerEnd(at, end, levels).find();
  while (at != end && !ends_word(*at)) ++at;
  return at == end ? nullptr : at;
}

}  // namespace kube
