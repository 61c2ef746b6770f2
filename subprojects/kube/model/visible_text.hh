// A terminal, an event, a status or a log may show texts of other users: characters that one does
// not see, and that change what one reads, become visible here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kube {

// These characters are hidden: control characters except tab and line feed; marks that turn the
// direction of the text (Unicode's Bidi_Control), so that it is read differently; line and
// paragraph separators; characters that show nothing, such as U+200B, U+FEFF, U+3164 and the tags
// from U+E0000 on. Joiners (U+200C, U+200D) and variation selectors are not hidden: words of
// several languages, and emoji, are spelled with them.
struct Character {
  std::size_t bytes = 1;
  char32_t code = 0;  // the code point; if a byte begins no well-formed UTF-8, its value
  bool is_hidden = false;
};

// Reads the first character of a text, which is not empty.
Character first_character(std::string_view text);
// Returns "\x1b", "\u202e" or "\U000e0041".
std::string escaped(const Character& character);
// Returns whether a text is ASCII without line feeds, as nearly all are: nothing in it is hidden
// then.
bool is_plain_line(std::string_view text);
// Returns the text with all hidden characters escaped, and the rest unchanged.
// visible_text(visible_text(t)) is visible_text(t).
std::string visible_text(std::string text);
// These return the first or the last `limit` bytes at most, cut between characters, with all hidden
// characters escaped.
std::string keep_head(std::string_view text, std::size_t limit);
std::string keep_tail(std::string_view text, std::size_t limit);

}  // namespace kube
