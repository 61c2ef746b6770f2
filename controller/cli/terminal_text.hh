// Text of pods and other objects is made safe for a terminal. Pure.
#pragma once

#include <string>
#include <string_view>

namespace trainer {

// Control characters (C0, DEL, and C1 as UTF-8 or as single bytes), and with them every escape
// sequence, become visible: "\x1b]0;". Line ends and tabs stay.
enum class TerminalText {
  kLog,    // colours (SGR sequences) and "\r" stay, too
  kPlain,  // colours are left out, and "\r" is a line end: no text can overwrite another
};
std::string printable(std::string_view text, TerminalText kind);

}  // namespace trainer
