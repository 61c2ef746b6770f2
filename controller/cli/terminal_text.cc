#include "controller/cli/terminal_text.hh"

#include "kube/model/visible_text.hh"

namespace trainer {
namespace {

// Returns the length of the colour sequence (ECMA-48, SGR) that the text begins with, or 0.
std::size_t length_of_colour(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;:", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

}  // namespace

std::string printable(std::string_view text, TerminalText kind) {
  std::string out;
  while (!text.empty()) {
    const kube::Character next = kube::first_character(text);
    std::size_t length = next.bytes;
    if (const std::size_t colour = length_of_colour(text)) {
      length = colour;
      if (kind == TerminalText::kLog) out += text.substr(0, colour);
    } else if (next.code == '\r' && kind == TerminalText::kPlain) {
      if (!text.substr(1).starts_with('\n')) out += '\n';
    } else if (next.is_hidden && next.code != '\r') {
      out += kube::escaped(next);
    } else {
      out += text.substr(0, next.bytes);
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace trainer
