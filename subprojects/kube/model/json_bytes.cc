#include "kube/model/json_bytes.hh"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kube {

const char* find_string_stop(const char* at, const char* end) {
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  constexpr std::uint64_t kHighs = 0x80U * kOnes;
  for (std::uint64_t block = 0; end - at >= 8; at += 8) {
    std::memcpy(&block, at, sizeof(block));
    const std::uint64_t quotes = block ^ ('"' * kOnes);
    const std::uint64_t slashes = block ^ ('\\' * kOnes);
    const std::uint64_t stops = (((quotes - kOnes) & ~quotes) | ((slashes - kOnes) & ~slashes) |
                                 ((block - 0x20U * kOnes) & ~block)) &
                                kHighs;
    // A borrow reaches only the bytes behind the first that is found, which is the lowest one.
    if (stops != 0 && std::endian::native == std::endian::little)
      return at + std::countr_zero(stops) / 8;
    if (stops != 0) break;
  }
  while (at != end && *at != '"' && *at != '\\' && static_cast<unsigned char>(*at) >= 0x20) ++at;
  return at;
}

const char* find_string_end(const char* at, const char* end) {
  for (;;) {
    at = find_string_stop(at, end);
    if (at == end) return nullptr;
    if (*at == '"') return at + 1;
    const std::ptrdiff_t length = *at == '\\' ? 2 : 1;
    if (end - at < length) return nullptr;
    at += length;
  }
}

const char* find_value_end(const char* at, const char* end) {
  int depth = 0;
  while (at != end) {
    switch (*at) {
      case '"':
        at = find_string_end(at + 1, end);
        if (at == nullptr || depth == 0) return at;
        break;
      case '{':
      case '[':
        ++depth;
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
