#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "kube/model/json_text.hh"
#include "kube/model/visible_text.hh"
#include "kube/model/yaml.hh"
#include "kube/tests/catch.hh"

using namespace kube;

namespace {

std::string encode(char32_t code) {
  std::string text;
  const auto add = [&text](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0U | (code >> 6U));
    add(0x80U | (code & 0x3fU));
  } else if (code < 0x10000) {
    add(0xe0U | (code >> 12U));
    add(0x80U | ((code >> 6U) & 0x3fU));
    add(0x80U | (code & 0x3fU));
  } else {
    add(0xf0U | (code >> 18U));
    add(0x80U | ((code >> 12U) & 0x3fU));
    add(0x80U | ((code >> 6U) & 0x3fU));
    add(0x80U | (code & 0x3fU));
  }
  return text;
}

// Unicode 15: Cc, Bidi_Control, Zl, Zp, Cf without the joiners and Arabic's number signs, and
// letters that are Default_Ignorable_Code_Point.
bool must_be_escaped(char32_t code) {
  const auto in = [code](char32_t from, char32_t to) { return from <= code && code <= to; };
  if (code == '\t' || code == '\n') return false;
  return in(0, 0x1f) || in(0x7f, 0x9f) || code == 0xad || code == 0x61c || code == 0x180e ||
         code == 0x200b || in(0x200e, 0x200f) || in(0x2028, 0x202e) || in(0x2060, 0x206f) ||
         in(0x115f, 0x1160) || in(0x17b4, 0x17b5) || code == 0x3164 || code == 0xffa0 ||
         code == 0xfeff || in(0xfff9, 0xfffb) || in(0x1d173, 0x1d17a) || in(0xe0000, 0xe007f);
}

// Half of the characters are near a hidden one.
char32_t draw(std::mt19937& random) {
  const std::vector<char32_t> near{0x00,   0x7f,   0xa0,   0x61c,   0x1150,  0x17b0,
                                   0x180e, 0x2000, 0x2020, 0x2030,  0x2060,  0x3160,
                                   0xfef8, 0xff98, 0xfff8, 0x1d170, 0xe0000, 0xe0070};
  for (;;) {
    const auto code = static_cast<char32_t>(
        random() % 2 == 0 ? near[random() % near.size()] + random() % 24 : random() % 0x110000);
    if (code < 0xd800 || (code > 0xdfff && code < 0x110000)) return code;
  }
}

}  // namespace

TEST_CASE("a random text comes through unchanged but for what is hidden in it") {
  std::mt19937 random(1);
  for (int run = 0; run < 20'000; ++run) {
    std::string text;
    std::string wanted;
    for (std::size_t i = random() % 20; i > 0; --i) {
      const char32_t code = draw(random);
      const std::string character = encode(code);
      REQUIRE(is_utf8(character));
      text += character;
      char escape[16];
      const auto number = static_cast<unsigned>(code);
      std::snprintf(escape, sizeof(escape),
                    number < 0x100     ? "\\x%02x"
                    : number < 0x10000 ? "\\u%04x"
                                       : "\\U%08x",
                    number);
      wanted += must_be_escaped(code) ? std::string(escape) : character;
    }
    CAPTURE(text);
    const std::string visible = visible_text(text);
    CHECK(visible == wanted);
    CHECK(visible_text(visible) == visible);
  }
}

TEST_CASE("documents for people show what is hidden, and read as the same value") {
  std::mt19937 random(2);
  for (int run = 0; run < 3'000; ++run) {
    Json value = Json::object();
    for (std::size_t i = random() % 4; i > 0; --i) {
      const auto text = [&random] {
        std::string drawn;
        for (std::size_t length = random() % 6; length > 0; --length)
          drawn += random() % 4 == 0 ? "\n" : random() % 3 == 0 ? "a" : encode(draw(random));
        return drawn;
      };
      value.set(text(), random() % 2 == 0 ? Json(text()) : Json::array({text()}));
    }
    const std::string yaml = print_visible_yaml(value);
    const std::string json = print_json_pretty(value);
    CAPTURE(yaml, json);
    CHECK(visible_text(yaml) == yaml);
    CHECK(visible_text(json) == json);
    const auto from_yaml = parse_yaml(yaml);
    REQUIRE(from_yaml);
    CHECK(*from_yaml == value);
    const auto from_json = parse_json(json);
    REQUIRE(from_json);
    CHECK(*from_json == value);
  }
  CHECK(print_visible_yaml(Json::object({{"a", "x\xe2\x80\xaey"}})) == "a: \"x\\u202ey\"\n");
}

TEST_CASE("a text that reads otherwise than it is, and bytes that are no text") {
  CHECK(visible_text("cat \xe2\x80\xae"
                     "txt.exe") == "cat \\u202etxt.exe");
  CHECK(visible_text("\xe2\x81\xa6"
                     "a\xe2\x81\xa9") == "\\u2066a\\u2069");
  CHECK(visible_text("a\xf3\xa0\x81\x81") == "a\\U000e0041");
  CHECK(visible_text("\x9b"
                     "2J\xff\xe2\x80") == "\\x9b2J\xff\xe2\\x80");
  CHECK(visible_text("a\tb\nc") == "a\tb\nc");
  CHECK(is_plain_line("a longer text ~"));
  for (const char c : {'\x1f', '\x7f', '\n', '\x80', '\xff', '\0'})
    for (std::size_t size = 1; size < 20; ++size)
      for (std::size_t at = 0; at < size; ++at) {
        std::string text(size, ' ');
        CHECK(is_plain_line(text));
        text[at] = c;
        CHECK_FALSE(is_plain_line(text));
      }
}
