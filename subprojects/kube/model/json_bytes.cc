#include "kube/model/json_bytes.hh"

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

// The index of the first byte that matches, 16 where there is none.
int first_of(Matches matches) {
  const auto zeros = [](std::uint64_t half) {
    return std::endian::native == std::endian::little ? std::countr_zero(half)
                                                      : std::countl_zero(half);
  };
  std::uint64_t halves[2];
  std::memcpy(halves, &matches, sizeof(halves));
  if (halves[0] != 0) return zeros(halves[0]) / 8;
  return halves[1] != 0 ? 8 + zeros(halves[1]) / 8 : 16;
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

const char* find_value_end(const char* at, const char* end, int levels) {
  int depth = 0;
  while (at != end) {
    switch (*at) {
      case '"':
        at = find_string_end(at + 1, end);
        if (at == nullptr || depth == 0) return at;
        break;
      case '{':
      case '[':
        if (++depth > levels) return nullptr;
        ++at;
        break;
      case '}':
      case ']':
        if (depth == 0) return at;
        ++at;
        if (--depth == 0) return at;
        break;
      default:
        if (depth == 0 && (*at == ',' || is_json_space(*at))) return at;
        ++at;
    }
  }
  return nullptr;
}

}  // namespace kube
