#include <cstdint>
#include <cstring>

#include "kube/model/json_text.hh"

namespace kube {

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t i, unsigned char low = 0x80, unsigned char high = 0xbf) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    // E0 would allow overlong forms, ED surrogates.
    const bool second = continues(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
    return second && continues(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    // F0 would allow overlong forms, F4 code points above U+10FFFF.
    const bool second = continues(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
    return second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

// Kubernetes objects are nearly all ASCII, so 32 or eight bytes are checked at a time where
// possible.
std::size_t find_bad_utf8(std::string_view text) {
  constexpr std::uint64_t kHighs = 0x8080808080808080U;
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t words[4] = {};
    if (text.size() - at >= sizeof(words)) {
      std::memcpy(words, text.data() + at, sizeof(words));
      if (((words[0] | words[1] | words[2] | words[3]) & kHighs) == 0) {
        at += sizeof(words);
        continue;
      }
    }
    if (text.size() - at >= sizeof(words[0])) {
      std::memcpy(words, text.data() + at, sizeof(words[0]));
      if ((words[0] & kHighs) == 0) {
        at += sizeof(words[0]);
        continue;
      }
    }
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

}  // namespace kube
