#include "controller/cli/terminal_text.hh"

#include <random>

#include "kube/model/visible_text.hh"
#include "tests/support/catch.hh"

using namespace trainer;

TEST_CASE("control characters and escape sequences are visible, colours and text stay") {
  struct Case {
    const char* what;
    std::string text;
    std::string log;
    std::string plain;
  };
  const Case cases[] = {
      {"nothing", "", "", ""},
      {"text", "loss 0.5\t\xc3\x80\xe2\x82\xac\n", "loss 0.5\t\xc3\x80\xe2\x82\xac\n",
       "loss 0.5\t\xc3\x80\xe2\x82\xac\n"},
      {"colours", "\x1b[1;38:5:9mred\x1b[m", "\x1b[1;38:5:9mred\x1b[m", "red"},
      {"a progress bar", "10%\r20%\r\n", "10%\r20%\r\n", "10%\n20%\n"},
      {"a cursor movement", "\x1b[2Aup", "\\x1b[2Aup", "\\x1b[2Aup"},
      {"what only begins as a colour", "\x1b[31\x1b[31", "\\x1b[31\\x1b[31", "\\x1b[31\\x1b[31"},
      {"a private sequence that ends with m", "\x1b[>4m", "\\x1b[>4m", "\\x1b[>4m"},
      {"a title, ended by BEL", "\x1b]0;t\x07", "\\x1b]0;t\\x07", "\\x1b]0;t\\x07"},
      {"a link, ended by ST", "\x1b]8;;http://x\x1b\\", "\\x1b]8;;http://x\\x1b\\",
       "\\x1b]8;;http://x\\x1b\\"},
      {"a reset",
       "\x1b"
       "c",
       "\\x1bc", "\\x1bc"},
      {"an escape at the end", "a\x1b", "a\\x1b", "a\\x1b"},
      {"C0 and DEL", std::string("\0\x08\x0b\x7f", 4), "\\x00\\x08\\x0b\\x7f",
       "\\x00\\x08\\x0b\\x7f"},
      {"C1 as UTF-8",
       "\xc2\x9b"
       "2J\xc2\x9d\xc2\xa0",
       "\\x9b2J\\x9d\xc2\xa0", "\\x9b2J\\x9d\xc2\xa0"},
      {"C1 as bytes",
       "\x9b"
       "2J",
       "\\x9b2J", "\\x9b2J"},
      {"C1 as an overlong form", "\xe0\x82\x9b", "\xe0\\x82\\x9b", "\xe0\\x82\\x9b"},
      {"a carriage return in a log, and a text that reads backwards",
       "a\r\xe2\x80\xae"
       "txt.exe",
       "a\r\\u202etxt.exe", "a\n\\u202etxt.exe"},
      {"a tag, between words of Persian and an emoji",
       "\xd9\x85\xe2\x80\x8c\xd9\x85\xf3\xa0\x81\x81\xe2\x9d\xa4\xef\xb8\x8f",
       "\xd9\x85\xe2\x80\x8c\xd9\x85\\U000e0041\xe2\x9d\xa4\xef\xb8\x8f",
       "\xd9\x85\xe2\x80\x8c\xd9\x85\\U000e0041\xe2\x9d\xa4\xef\xb8\x8f"},
      {"Latin-1, and a cut sequence", "\xe9t\xe9\xc2", "\xe9t\xe9\xc2", "\xe9t\xe9\xc2"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    CHECK(printable(c.text, TerminalText::kLog) == c.log);
    CHECK(printable(c.text, TerminalText::kPlain) == c.plain);
  }
}

TEST_CASE("of random bytes nothing that is hidden comes through but colours and ends of lines") {
  std::mt19937 random(5);
  const std::string pieces[] = {"a",    "\x1b[31m",         "\x1b[",        "m",    "\r",
                                "\n",   "\xe2\x80\xae",     "\xc2\x9b",     "\x9b", "\xe2",
                                "\x80", "\xf3\xa0\x80\xa1", "\xe4\xb8\xad", "\x07", "7;"};
  for (int run = 0; run < 20'000; ++run) {
    std::string text;
    for (std::size_t i = random() % 12; i > 0; --i) text += pieces[random() % std::size(pieces)];
    std::string plain = printable(text, TerminalText::kPlain);
    CAPTURE(text, plain);
    CHECK(kube::visible_text(plain) == plain);
    // Only whole colours and carriage returns are left of a log.
    std::string log = printable(text, TerminalText::kLog);
    for (std::size_t at = 0; (at = log.find('\x1b', at)) != std::string::npos;) {
      const std::size_t end = log.find_first_not_of("0123456789;:", at + 2);
      REQUIRE((end != std::string::npos && log[at + 1] == '[' && log[end] == 'm'));
      log.erase(at, end - at + 1);
    }
    std::erase(log, '\r');
    CHECK(kube::visible_text(log) == log);
  }
}
