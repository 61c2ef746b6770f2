// Makes texts of others fit to be shown in a terminal, an event, a status or a log: characters that
// one does not see, and that change what one reads, become visible.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kube {

// Hidden are control characters but tab and line feed; marks that turn the direction of what
// follows (Unicode's Bidi_Control), so that a text reads otherwise than it is; line and paragraph
// separators; what shows nothing, such as U+200B, U+FEFF, U+3164 and the tags from U+E0000 on.
// Joiners (U+200C, U+200D) and variation selectors are not: words of several languages, and emoji,
// are spelled with them.
struct Character {
  std::size_t bytes = 1;
  char32_t code = 0;  // of a byte that begins no well-formed UTF-8: its value
  bool is_hidden = false;
};

// Reads the first character of a text, which is not empty.
Character first_character(std::string_view text);
// "\x1b", "\u202e" or "\U000e0041".
std::string escaped(const Character& character);
// Whether a text is ASCII without line feeds, as nearly all are: then nothing in it is hidden.
bool is_plain_line(std::string_view text);
// The text with all that is hidden escaped, and the rest as it is. visible_text(visible_text(t)) is
// visible_text(t).
std::string visible_text(std::string text);

}  // namespace kube
