#include "controller/cli/console.hh"

#include <algorithm>
#include <utility>

#include "controller/cli/terminal_text.hh"

namespace trainer {
namespace {

// Returns how many bytes at the end of a text may belong to the following text: a part of a
// character, or the first half of a line end.
std::size_t length_of_open_end(std::string_view text) {
  if (text.ends_with('\r')) return 1;
  constexpr std::size_t kLongestPart = 3;
  for (std::size_t length = 1; length <= std::min(kLongestPart, text.size()); ++length) {
    const auto first = static_cast<unsigned char>(text[text.size() - length]);
    if (first < 0x80) return 0;
    if (first < 0xc0) continue;  // within a character
    const std::size_t whole = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    return whole > length ? length : 0;
  }
  return 0;
}

}  // namespace

bool PrintableBuffer::print(std::string_view text) {
  pending_ += text;
  const std::size_t open = length_of_open_end(pending_);
  const std::string whole =
      printable(std::string_view(pending_).substr(0, pending_.size() - open), TerminalText::kPlain);
  pending_.erase(0, pending_.size() - open);
  return static_cast<bool>(to_.write(whole.data(), static_cast<std::streamsize>(whole.size())));
}

bool PrintableBuffer::print_pending() {
  const std::string text = printable(std::exchange(pending_, {}), TerminalText::kPlain);
  return text.empty() ||
         static_cast<bool>(to_.write(text.data(), static_cast<std::streamsize>(text.size())));
}

PrintableBuffer::int_type PrintableBuffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char text = traits_type::to_char_type(c);
  return print({&text, 1}) ? c : traits_type::eof();
}

std::streamsize PrintableBuffer::xsputn(const char* text, std::streamsize size) {
  return print({text, static_cast<std::size_t>(size)}) ? size : 0;
}

int PrintableBuffer::sync() {
  return print_pending() && to_.flush() ? 0 : -1;
}

}  // namespace trainer
