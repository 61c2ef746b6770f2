#include <vector>

#include "kube/client/json_scan.hh"
#include "kube/client/line_splitter.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/catch.hh"

using namespace kube;

TEST_CASE("a member's text is found without decoding the object") {
  struct Row {
    const char* object;
    const char* name;
    const char* expected;  // nullptr: none
  };
  const Row rows[] = {
      {R"({"type":"ADDED","object":{"a":[1,{"b":"}"}]}})", "object", R"({"a":[1,{"b":"}"}]})"},
      {R"({"type":"ADDED","object":{}})", "type", "\"ADDED\""},
      {R"( { "a" : 12 , "b" : null } )", "a", "12"},
      {R"( { "a" : 12 , "b" : null } )", "b", "null"},
      {R"({"a":-1.5e3})", "a", "-1.5e3"},
      {R"({"a\"":1,"b":2})", "b", "2"},
      {R"({"a":"\\","b":2})", "b", "2"},
      {R"({"a":{"b":1}})", "b", nullptr},
      {R"({"a":"b"})", "b", nullptr},
      {R"({"a":{"b":1)", "a", nullptr},
      {R"({"a":"unended)", "a", nullptr},
      {R"({"a")", "a", nullptr},
      {R"({"a" 1})", "a", nullptr},
      {R"([{"a":1}])", "a", nullptr},
      {"", "a", nullptr},
      {"{}", "a", nullptr},
  };
  for (const Row& row : rows) {
    INFO(row.object << " " << row.name);
    const auto found = scan_member(row.object, row.name);
    REQUIRE(found.has_value() == (row.expected != nullptr));
    if (found) CHECK(*found == row.expected);
  }
  CHECK_FALSE(scan_string(R"({"a":"x\u0041"})", "a").has_value());
}

TEST_CASE("scan_identity finds which object a text is, in any order of its members") {
  struct Row {
    const char* object;
    const char* identity;  // namespace/name@version
  };
  const Row rows[] = {
      {R"({"kind":"X","metadata":{"name":"a","namespace":"n","resourceVersion":"42"}})", "n/a@42"},
      {R"({"metadata":{"resourceVersion":"42","x":[{"name":"b"}],"name":"a"},"name":"c"})",
       "/a@42"},
      {R"({"spec":{"metadata":{"name":"b"}}, "metadata" : { "name" : "a" } })", "/a@"},
      {R"({"metadata":{"name":"\u0041","resourceVersion":42}})", "/@"},
      {R"({"kind":"X"})", "/@"},
      {R"({"metadata":"x"})", "/@"},
      {R"({"metadata":{"name":"a","resourceVer)", "/a@"},
      {R"({"kind":"X","metadata")", "/@"},
      {"[]", "/@"},
      {"", "/@"},
  };
  for (const Row& row : rows) {
    INFO(row.object);
    const auto found = scan_identity(row.object);
    CHECK(std::string(found.ns) + "/" + std::string(found.name) + "@" +
              std::string(found.version) ==
          row.identity);
  }
}

TEST_CASE("scan_event takes a watch's line apart") {
  struct Row {
    const char* line;
    const char* type;  // nullptr: no event
    const char* object = "";
  };
  const Row rows[] = {
      {R"({"type":"ADDED","object":{"a":[1,{"b":"}"}]}})", "ADDED", R"({"a":[1,{"b":"}"}]})"},
      {R"({"object":{"a":1},"type":"DELETED"})", "DELETED", R"({"a":1})"},
      {R"({"type":"ADDED","more":1,"object":{}} )", "ADDED", "{}"},
      // Decoding the object finds that it is broken.
      {R"({"type":"ADDED","object":{"a"})", "ADDED", R"({"a")"},
      {R"({"type":"ADDED","object":{},"more":1})", "ADDED", R"({},"more":1)"},
      {R"({"type":"ADDED","object":})", "ADDED", ""},
      {R"({"type":"ADDED"})", nullptr},
      {R"({"type":3,"object":{}})", nullptr},
      {R"({"object":{}})", nullptr},
      {R"({"type":"ADDED","object":{"a":1)", nullptr},
      {R"("type")", nullptr},
      {"}", nullptr},
      {"", nullptr},
  };
  for (const Row& row : rows) {
    INFO(row.line);
    const auto event = scan_event(row.line);
    REQUIRE(event.has_value() == (row.type != nullptr));
    if (!event) continue;
    CHECK(event->type == row.type);
    CHECK(event->object == row.object);
  }
}

namespace {

struct Split {
  std::vector<std::string> items;
  Result<std::string> envelope;
};

Split split(std::string_view text, std::size_t piece, std::size_t max_item = 1'000) {
  Split out;
  ListSplitter splitter([&out](std::string_view item) { out.items.emplace_back(item); }, max_item);
  for (std::size_t at = 0; at < text.size(); at += piece) splitter.feed(text.substr(at, piece));
  out.envelope = splitter.envelope();
  return out;
}

}  // namespace

TEST_CASE("a list is cut into its items wherever the pieces end") {
  const std::string text =
      R"({"kind":"items","items2":[{"no":1}],"metadata":{"resourceVersion":"5","continue":"x","items":[3]},)"
      R"( "items" : [ {"a":"]}\"\\"} ,{"b":{"items":[{},{}]}},{}],"z":[{"c":1}]})";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    INFO(piece);
    const Split got = split(text, piece);
    REQUIRE(got.items ==
            std::vector<std::string>{R"({"a":"]}\"\\"})", R"({"b":{"items":[{},{}]}})", "{}"});
    REQUIRE(got.envelope);
    const auto rest = parse_json(*got.envelope);
    REQUIRE(rest);
    CHECK(rest->get_array("items").empty());
    CHECK(rest->get_array("z").size() == 1);
    CHECK(rest->find_path({"metadata", "resourceVersion"})->as_string() == "5");
  }
}

TEST_CASE("a list without items, broken off, or no list at all") {
  CHECK(split(R"({"metadata":{},"items":null})", 3).envelope);
  CHECK(split(R"({"metadata":{},"items":[]})", 3).envelope);
  for (const char* const text : {"", R"({"metadata":{},"items":[{"a":1})", R"({"items":[{"a":)",
                                 R"({"items":[1,2]})", R"({"metadata":)"}) {
    INFO(text);
    const auto got = split(text, 2);
    REQUIRE_FALSE(got.envelope);
    CHECK(got.envelope.error().code == ErrorCode::kParse);
  }
}

TEST_CASE("an item above the limit is cut short and stops no other") {
  const std::string large = R"({"x":")" + std::string(5'000, 'y') + "\"}";
  const std::string text = R"({"items":[{"a":1},)" + large + R"(,{"b":2}]})";
  for (const std::size_t piece : std::vector<std::size_t>{1, 7, 900, 100'000}) {
    const Split got = split(text, piece, 2'000);
    REQUIRE(got.items.size() == 3);
    CHECK(got.items[0] == R"({"a":1})");
    CHECK_FALSE(parse_json(got.items[1]));
    CHECK(got.items[1].size() <= 2'000);
    CHECK(got.items[2] == R"({"b":2})");
    CHECK(got.envelope);
  }
}

TEST_CASE("lines come whole out of pieces that end anywhere") {
  const std::string text = "one\n\ntwo\nthree\nfo";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    INFO(piece);
    LineSplitter lines(100);
    std::vector<std::string> got;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      REQUIRE(lines.feed(std::string_view(text).substr(at, piece), [&got](std::string_view line) {
        got.emplace_back(line);
        return true;
      }));
    }
    CHECK(got == std::vector<std::string>{"one", "two", "three"});
    CHECK(lines.is_within_line());
  }
}

TEST_CASE("a line above the limit ends the stream") {
  int lines_seen = 0;
  const auto count = [&lines_seen](std::string_view) {
    ++lines_seen;
    return true;
  };
  LineSplitter lines(10);
  CHECK(lines.feed("0123456789\n", count));
  CHECK(lines.feed("01234", count));
  CHECK_FALSE(lines.feed("567890", count));
  CHECK_FALSE(LineSplitter(10).feed("0123456789x\n", count));
  CHECK(lines_seen == 1);
}
