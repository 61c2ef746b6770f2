#include "kube/model/visible_text.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/text.hh"

namespace kube {
namespace {

constexpr std::array<std::pair<char32_t, char32_t>, 18> kHidden{{
    {0x00, 0x08},
    {0x0b, 0x1f},
    {0x7f, 0x9f},
    {0xad, 0xad},        // soft hyphen
    {0x61c, 0x61c},      // Arabic letter mark
    {0x115f, 0x1160},    // Hangul fillers
    {0x17b4, 0x17b5},    // Khmer vowels that nothing shows
    {0x180e, 0x180e},    // Mongolian vowel separator
    {0x200b, 0x200b},    // zero width space
    {0x200e, 0x200f},    // left-to-right and right-to-left mark
    {0x2028, 0x202e},    // separators of lines and paragraphs; embeddings and overrides
    {0x2060, 0x206f},    // word joiner, invisible operators, isolates, deprecated formats
    {0x3164, 0x3164},    // Hangul filler
    {0xfeff, 0xfeff},    // zero width no-break space
    {0xffa0, 0xffa0},    // half-width Hangul filler
    {0xfff9, 0xfffb},    // interlinear annotations
    {0x1d173, 0x1d17a},  // formats of musical notation
    {0xe0000, 0xe007f},  // tags
}};

bool is_hidden(char32_t code) {
  return std::any_of(kHidden.begin(), kHidden.end(), [code](const auto& range) {
    return range.first <= code && code <= range.second;
  });
}

char32_t decode(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence.front());
  if (sequence.size() == 1) return first;
  char32_t code = first & (0x7fU >> sequence.size());
  for (const char c : sequence.substr(1))
    code = (code << 6U) | (static_cast<unsigned char>(c) & 0x3fU);
  return code;
}

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

std::string_view tail_of(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  std::size_t start = text.size() - limit;
  while (start < text.size() && is_continuation(text[start])) ++start;
  return text.substr(start);
}

}  // namespace

Character first_character(std::string_view text) {
  Character found;
  found.bytes = std::max<std::size_t>(utf8_length(text), 1);
  found.code = decode(text.substr(0, found.bytes));
  found.is_hidden = is_hidden(found.code);
  return found;
}

std::string escaped(const Character& character) {
  const auto code = static_cast<std::uint32_t>(character.code);
  if (code < 0x100) return fmt::format("\\x{:02x}", code);
  return code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
}

// Eight bytes are checked at a time, since every status is checked each time that it may change.
bool is_plain_line(std::string_view text) {
  constexpr std::uint64_t kHighs = 0x8080808080808080U;
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  const auto is_plain = [&text](std::size_t at) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof(word));
    // The high bit marks a byte that is not ASCII, below U+0020, or U+007F.
    return ((word | (word - kOnes * 0x20U) | (word + kOnes)) & kHighs) == 0;
  };
  constexpr std::size_t kStep = sizeof(std::uint64_t);
  if (text.size() < kStep)
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c != '\x7f'; });
  for (std::size_t at = 0; at + kStep < text.size(); at += kStep)
    if (!is_plain(at)) return false;
  return is_plain(text.size() - kStep);
}

std::string visible_text(std::string text) {
  if (is_plain_line(text)) return text;
  std::string visible;
  visible.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    const Character next = first_character(rest);
    if (next.is_hidden)
      visible += escaped(next);
    else
      visible += rest.substr(0, next.bytes);
    rest.remove_prefix(next.bytes);
  }
  return visible;
}

std::string keep_head(std::string_view text, std::size_t limit) {
  const std::string_view head = head_of(text, limit);
  if (is_plain_line(head)) return std::string(head);
  return std::string(head_of(visible_text(std::string(head)), limit));
}

std::string keep_tail(std::string_view text, std::size_t limit) {
  const std::string_view tail = tail_of(text, limit);
  if (is_plain_line(tail)) return std::string(tail);
  return std::string(tail_of(visible_text(std::string(tail)), limit));
}

}  // namespace kube
