#include <string>
#include <string_view>
#include <vector>

#include "kube/model/json_cursor.hh"
#include "kube/tests/catch.hh"

namespace {

using kube::JsonCursor;

// Returns "name=value" of each child, and "." at the end or "!" if the text is not complete.
std::vector<std::string> children_of(std::string_view text, int levels = 100) {
  std::vector<std::string> found;
  JsonCursor children(text, levels);
  while (children.next()) {
    const auto value = children.value();
    found.push_back(std::string(children.name()) + "=" + std::string(value.value_or("?")));
  }
  found.push_back(children.length() ? "." + std::to_string(*children.length()) : "!");
  return found;
}

using List = std::vector<std::string>;

TEST_CASE("json_cursor: members and items, one after the other") {
  struct Row {
    std::string_view text;
    List children;
  };
  const Row rows[] = {
      {"{}", {".2"}},
      {" { } ", {".4"}},
      {"[]", {".2"}},
      {R"({"a":1,"b":{"c":[]}},7)", {"a=1", R"(b={"c":[]})", ".20"}},
      {R"( { "a" : "}" , "b" : null } )", {"a=\"}\"", "b=null", ".27"}},
      {R"({"a\"b":1})", {R"(a\"b=1)", ".10"}},
      {R"([1,"x",{"a":2},[]]])", {"=1", "=\"x\"", R"(={"a":2})", "=[]", ".18"}},
      {"", {"!"}},
      {"1", {"!"}},
      {"{", {"!"}},
      {"[", {"!"}},
      {R"({"a")", {"!"}},
      {R"({"a":)", {"!"}},
      {R"({"a" 1})", {"!"}},
      {R"({"a":1)", {"a=?", "!"}},
      {R"({"a":1,)", {"a=1", "!"}},
      {R"({"a":1,})", {"a=1", "!"}},
      {R"({"a":1])", {"a=1", "!"}},
      {R"({"a":1 "b":2})", {"a=1", "!"}},
      {R"({1:2})", {"!"}},
      {"[1,]", {"=1", "=?", "!"}},
      {"[,1]", {"=?", "!"}},
      {"[1}", {"=1", "!"}},
      {R"({"a":[1})", {"a=[1}", "!"}},  // brackets are counted, not distinguished
  };
  for (const Row& row : rows) {
    INFO(row.text);
    CHECK(children_of(row.text) == row.children);
  }
}

TEST_CASE("json_cursor: a value that is not asked for is skipped") {
  JsonCursor members(R"({"a":{"b":[1,2]},"c":"x","d":4})");
  REQUIRE(members.next());
  REQUIRE(members.next());
  CHECK(members.name() == "c");
  CHECK(members.rest() == R"("x","d":4})");
  REQUIRE(members.next());
  CHECK(members.name() == "d");
  CHECK(members.value() == "4");
  CHECK(members.value() == "4");
  CHECK_FALSE(members.next());
  CHECK_FALSE(members.next());
  CHECK(members.length() == 31U);
}

TEST_CASE("json_cursor: a value may be skipped where its length is known") {
  JsonCursor items("[ {} ,2]");
  REQUIRE(items.next());
  items.skip(2);
  REQUIRE(items.next());
  CHECK(items.value() == "2");
}

TEST_CASE("json_cursor: no more levels than allowed") {
  CHECK(children_of("[[[]]]", 2) == List{"=[[]]", ".6"});
  CHECK(children_of("[[[]]]", 1) == List{"=?", "!"});
  CHECK(children_of("[1]", 0) == List{"=1", ".3"});
}

}  // namespace
