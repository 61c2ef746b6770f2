// Blocks of bytes must find what byte by byte is found.
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "kube/model/json_bytes.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/random_json.hh"

namespace {

constexpr std::size_t kNone = std::string_view::npos;
constexpr int kAnyLevels = std::numeric_limits<int>::max();

// Returns the result of the functions as an index into their text.
std::size_t index_in(std::string_view text, const char* found) {
  return found == nullptr ? kNone : static_cast<std::size_t>(found - text.data());
}
std::size_t value_end(std::string_view text, int levels = kAnyLevels) {
  return index_in(text, kube::find_value_end(text.data(), text.data() + text.size(), levels));
}
std::size_t string_end(std::string_view text) {
  return index_in(text, kube::find_string_end(text.data(), text.data() + text.size()));
}
std::size_t string_stop(std::string_view text) {
  return index_in(text, kube::find_string_stop(text.data(), text.data() + text.size()));
}

// The same, the plain way.
std::size_t plain_string_end(std::string_view text, std::size_t at = 0) {
  for (; at < text.size(); ++at) {
    if (text[at] == '"') return at + 1;
    if (text[at] == '\\') ++at;
  }
  return kNone;
}
std::size_t plain_value_end(std::string_view text, int levels = kAnyLevels) {
  constexpr std::string_view kMarks = "{}[]\", \t\r\n";
  if (text.empty()) return kNone;
  if (text[0] == '"') return plain_string_end(text, 1);
  if (text[0] != '{' && text[0] != '[') {
    for (std::size_t at = 0; at < text.size(); ++at)
      if (kMarks.find(text[at]) != kNone) return at;
    return kNone;
  }
  int depth = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    // A backslash outside of strings is an error. It escapes what it would escape within a string,
    // except brackets.
    const bool is_escape =
        c == '\\' && at + 1 < text.size() && (text[at + 1] == '"' || text[at + 1] == '\\');
    at = c == '"' ? plain_string_end(text, at + 1) : at + (is_escape ? 2 : 1);
    if (at == kNone) return kNone;
    if ((c == '{' || c == '[') && ++depth > levels) return kNone;
    if ((c == '}' || c == ']') && --depth == 0) return at;
  }
  return kNone;
}
std::size_t plain_string_stop(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && text[at] != '"' && text[at] != '\\' &&
         static_cast<unsigned char>(text[at]) >= 0x20)
    ++at;
  return at;
}

// Everything, from every place of the text on.
void check_all(std::string_view text) {
  for (std::size_t from = 0; from <= text.size(); ++from) {
    const std::string_view rest = text.substr(from);
    INFO("from byte " << from << " of " << text);
    REQUIRE(value_end(rest) == plain_value_end(rest));
    REQUIRE(string_end(rest) == plain_string_end(rest));
    REQUIRE(string_stop(rest) == plain_string_stop(rest));
    for (const int levels : {0, 1, 2, 3})
      REQUIRE(value_end(rest, levels) == plain_value_end(rest, levels));
  }
}

TEST_CASE("json_bytes: values end where their brackets and strings say") {
  struct Row {
    std::string_view text;
    std::size_t end;
  };
  const Row rows[] = {
      {"", kNone},
      {"{}", 2},
      {"{},1", 2},
      {"[[],[]]]", 7},
      {"\"a\\\"b\",", 6},
      {"12 ", 2},
      {"12", kNone},  // more digits may follow
      {"true}", 4},
      {"}", 0},
      {"1\"a\"", 1},
      {"1{}", 1},
      {R"({"a":"}"})", 9},
      {R"({"a":"{"})", 9},
      {R"({"aaaaaaaaaaaa":"]]]]]]]]]]]]]]]]]]","b":[1]},)", 45},
      {R"({"a":"\\"},)", 10},
      {R"({"a":"\\\"}"},)", 13},
      {"{\"a\":[", kNone},
      {"{\"a", kNone},
      {"{\"a\\", kNone},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    CHECK(value_end(row.text) == row.end);
  }
}

TEST_CASE("json_bytes: an escape may be anywhere in a block") {
  for (std::size_t before = 0; before < 140; ++before) {
    const std::string filler(before, 'x');
    for (const char* const escape : {R"(\")", R"(\\)", R"(\\\")", R"(\u0022)"}) {
      const std::string text = "{\"" + filler + escape + "}\":[\"" + filler + "\"]},";
      INFO(text);
      CHECK(value_end(text) == text.size() - 1);
    }
  }
}

TEST_CASE("json_bytes: no more levels than allowed") {
  for (int depth = 1; depth < 150; ++depth) {
    const auto size = static_cast<std::size_t>(depth);
    const std::string text = std::string(size, '[') + std::string(size, ']');
    CHECK(value_end(text, depth) == 2 * size);
    CHECK(value_end(text, depth - 1) == kNone);
  }
}

TEST_CASE("json_bytes: random documents, whole and broken") {
  kube::test::RandomJson random(7);
  for (int i = 0; i < 300; ++i) {
    std::string text = kube::print_json(random.value()) + ",";
    if (text.size() > 600) text.resize(600);
    check_all(text);
  }
}

TEST_CASE("json_bytes: random bytes of those that count") {
  constexpr std::string_view kBytes = "{}[]\"\\\\,: a1\n";
  std::mt19937 engine(11);
  for (int i = 0; i < 300; ++i) {
    std::string text(engine() % 200, ' ');
    for (char& c : text) c = kBytes[engine() % kBytes.size()];
    check_all(text);
  }
}

TEST_CASE("json_bytes: a container's end is found wherever its pieces end") {
  constexpr std::string_view kBytes = "{}[]\"\\\\,: a1";
  std::mt19937 engine(13);
  for (int i = 0; i < 3000; ++i) {
    std::string text(engine() % 300, ' ');
    for (char& c : text) c = kBytes[engine() % (i % 2 == 0 ? kBytes.size() : 7)];
    kube::ContainerEnd container;
    std::optional<std::size_t> length;
    std::size_t at = 0;
    while (!length && at < text.size()) {
      const std::string_view piece = std::string_view(text).substr(at, engine() % 100);
      length = container.take(piece);
      if (!length) at += piece.size();
    }
    INFO(text);
    const std::size_t found = length ? at + *length + 1 : kNone;
    REQUIRE(found == value_end("{" + text));
  }
}

}  // namespace
