#include "controller/cli/terminal_text.hh"

#include <fmt/format.h>

#include "kube/model/json_text.hh"

namespace trainer {
namespace {

// The length of the colour sequence (ECMA-48, SGR) that the text begins with, or 0.
std::size_t length_of_colour(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;:", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

std::string escaped(char c) {
  return fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

// `text`: well-formed UTF-8.
void add_printable(std::string& out, std::string_view text, TerminalText kind) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto code = static_cast<unsigned char>(c);
    if (const std::size_t length = length_of_colour(text.substr(i))) {
      if (kind == TerminalText::kLog) out += text.substr(i, length);
      i += length - 1;
    } else if (c == '\r' && kind == TerminalText::kPlain) {
      if (!text.substr(i + 1).starts_with('\n')) out += '\n';
    } else if (c == '\xc2' && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      out += escaped(text[++i]);
    } else if (c == '\t' || c == '\n' || c == '\r' || (code >= 0x20 && code != 0x7f)) {
      out += c;
    } else {
      out += escaped(c);
    }
  }
}

}  // namespace

std::string printable(std::string_view text, TerminalText kind) {
  std::string out;
  for (;;) {
    const std::size_t bad = kube::find_bad_utf8(text);
    add_printable(out, text.substr(0, bad), kind);
    if (bad == std::string_view::npos) return out;
    const char c = text[bad];
    const bool is_control = static_cast<unsigned char>(c) < 0xa0;
    out += is_control ? escaped(c) : std::string(1, c);
    text.remove_prefix(bad + 1);
  }
}

}  // namespace trainer
