#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/json.hh"
#include "kube/tests/merge_patch.hh"
#include "kube/tests/random_json.hh"

using kube::apply_json_patch;
using kube::ErrorCode;
using kube::Json;
using kube::json_patch_diff;
using kube::merge_diff;
using kube::pointer_get;
using kube::print_json;
using kube::test::json;
using kube::test::merge_patch;

namespace {

// RFC 6902's add, remove and replace, written independently of the code under test: a step of
// recursion per token.
Json apply(const Json& document, std::string_view op, std::string_view path, const Json& value) {
  if (path.empty()) return value;
  const std::string_view rest = path.substr(1);
  const std::string_view token = rest.substr(0, rest.find('/'));
  const std::string_view below = rest.substr(token.size());
  std::string name;
  for (std::size_t i = 0; i < token.size(); ++i)
    name += token[i] != '~' ? token[i] : token[++i] == '0' ? '~' : '/';

  if (document.is_array()) {
    Json::Array items = document.as_array();
    const auto at = items.begin() + std::stol(name);
    if (!below.empty()) {
      REQUIRE(at < items.end());
      *at = apply(*at, op, below, value);
    } else if (op == "add") {
      REQUIRE(at <= items.end());
      items.insert(at, value);
    } else {
      REQUIRE(at < items.end());
      if (op == "remove") items.erase(at);
      if (op == "replace") *at = value;
    }
    return items;
  }
  Json::Object members = document.as_object();
  if (!below.empty()) {
    REQUIRE(members.contains(name));
    members[name] = apply(members[name], op, below, value);
  } else if (op == "remove") {
    REQUIRE(members.erase(name));
  } else {
    REQUIRE(members.contains(name) == (op == "replace"));
    members[name] = value;
  }
  return members;
}

Json apply_all(Json document, const Json& operations) {
  for (const Json& operation : operations.as_array()) {
    const Json* value = operation.find("value");
    document = apply(document, operation.get_string("op"), operation.get_string("path"),
                     value ? *value : Json());
  }
  return document;
}

// Members that are null count as absent for merge patches; lists are compared as they are.
Json without_nulls(const Json& value) {
  if (!value.is_object()) return value;
  Json result = Json::object();
  for (const auto& [name, member] : value.as_object()) {
    if (!member.is_null()) result.set(name, without_nulls(member));
  }
  return result;
}

// A document that shares much with another one.
Json mutate(kube::test::RandomJson& random, const Json& value) {
  if (random.below(6) == 0) return random.value(2);
  if (value.is_object()) {
    Json result = Json::object();
    for (const auto& [name, member] : value.as_object()) {
      if (random.below(5) != 0) result.set(name, mutate(random, member));
    }
    if (random.below(3) == 0) result.set(random.name(), random.value(2));
    return result;
  }
  if (value.is_array()) {
    Json result = Json::array();
    for (const Json& item : value.as_array()) {
      if (random.below(5) != 0) result.push_back(mutate(random, item));
      if (random.below(5) == 0) result.push_back(random.value(1));
    }
    return result;
  }
  return value;
}

}  // namespace

TEST_CASE("pointer_get follows RFC 6901") {
  const Json document =
      json(R"({"foo":["bar",{"x":null}],"":0,"a/b":1,"m~n":8,"k\"l":6," ":7,"~1":9})");
  CHECK(pointer_get(document, "") == &document);
  CHECK(*pointer_get(document, "/foo/0") == Json("bar"));
  CHECK(pointer_get(document, "/foo/1/x")->is_null());
  CHECK(*pointer_get(document, "/") == Json(0));
  CHECK(*pointer_get(document, "/a~1b") == Json(1));
  CHECK(*pointer_get(document, "/m~0n") == Json(8));
  CHECK(*pointer_get(document, "/~01") == Json(9));
  CHECK(*pointer_get(document, "/k\"l") == Json(6));
  CHECK(*pointer_get(document, "/ ") == Json(7));
  for (const auto absent :
       {"foo", "/nope", "/foo/2", "/foo/-", "/foo/00", "/foo/01", "/foo/+1", "/foo/1x", "/foo/",
        "/foo/99999999999999999999", "/foo/0/x", "/foo/1/x/y", "/m~n", "/m~2n", "/m~"}) {
    INFO(absent);
    CHECK(pointer_get(document, absent) == nullptr);
  }
  CHECK(kube::pointer_join("/a", "m~n/x") == "/a/m~0n~1x");
}

// The test cases of RFC 7396, appendix A.
TEST_CASE("merge_patch follows RFC 7396") {
  struct Case {
    std::string_view target, patch, result;
  };
  const Case cases[] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", R"({})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
      {R"({"a":"b"})", R"(["c"])", R"(["c"])"},
      {R"({"a":"foo"})", R"(null)", R"(null)"},
      {R"({"a":"foo"})", R"("bar")", R"("bar")"},
      {R"({"e":null})", R"({"a":1})", R"({"a":1,"e":null})"},
      {R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
  };
  for (const auto& c : cases) {
    INFO(c.target << " + " << c.patch);
    CHECK(print_json(merge_patch(json(c.target), json(c.patch))) == c.result);
  }
}

TEST_CASE("merge_diff finds the smallest patch") {
  struct Case {
    std::string_view from, to, patch;
  };
  const Case cases[] = {
      {R"({"a":1,"b":{"c":1,"d":2}})", R"({"a":1,"b":{"c":1,"d":2}})", "null"},
      {R"({"a":1,"b":{"c":1,"d":2}})", R"({"a":1,"b":{"c":1,"d":3}})", R"({"b":{"d":3}})"},
      {R"({"a":1,"b":2})", R"({"b":2})", R"({"a":null})"},
      {R"({"a":1})", R"({"a":null})", R"({"a":null})"},
      {R"({"a":null})", R"({})", "null"},
      {R"({})", R"({"a":null})", "null"},
      {R"({"a":[1,2]})", R"({"a":[1,2,3]})", R"({"a":[1,2,3]})"},
      {R"({"a":1})", R"({"a":{"b":null,"c":{"d":null}}})", R"({"a":{"c":{}}})"},
      {R"({"a":1})", R"({"a":1.0})", R"({"a":1.0})"},
      {R"({})", R"({"a":{}})", R"({"a":{}})"},
      {R"({"a":{"b":1}})", R"({"a":{}})", R"({"a":{"b":null}})"},
      {R"([1])", R"([1])", "null"},
      {R"(1)", R"({"a":null})", "{}"},
  };
  for (const auto& c : cases) {
    INFO(c.from << " -> " << c.to);
    CHECK(print_json(merge_diff(json(c.from), json(c.to))) == c.patch);
  }
}

TEST_CASE("applying merge_diff gives the document it was made for") {
  kube::test::RandomJson random(21);
  for (int i = 0; i < 3000; ++i) {
    const Json from = random.object();
    const Json to = random.below(4) == 0 ? random.object() : mutate(random, from);
    if (!to.is_object()) continue;
    const Json patch = merge_diff(from, to);
    INFO(print_json(from) << " -> " << print_json(to) << " by " << print_json(patch));
    const Json result = patch.is_null() ? from : merge_patch(from, patch);
    REQUIRE(without_nulls(result) == without_nulls(to));
    // Nothing is left to change after it, and a second time it changes nothing.
    REQUIRE(merge_diff(result, to).is_null());
    if (!patch.is_null()) REQUIRE(merge_patch(result, patch) == result);
  }
}

TEST_CASE("json_patch_diff names each change") {
  struct Case {
    std::string_view from, to, operations;
  };
  const Case cases[] = {
      {R"({"a":1})", R"({"a":1})", "[]"},
      {R"({"a":1,"b":2})", R"({"b":3,"c":4})",
       R"([{"op":"remove","path":"/a"},{"op":"replace","path":"/b","value":3},{"op":"add","path":"/c","value":4}])"},
      {R"({"a":{"x/y":1}})", R"({"a":{"x/y":null}})",
       R"([{"op":"replace","path":"/a/x~1y","value":null}])"},
      {R"([1,2,3])", R"([1,9,2,3])", R"([{"op":"add","path":"/1","value":9}])"},
      {R"([1,2,3,4])", R"([1,4])", R"([{"op":"remove","path":"/2"},{"op":"remove","path":"/1"}])"},
      {R"([{"n":1,"m":1},2])", R"([{"n":1,"m":2},2])",
       R"([{"op":"replace","path":"/0/m","value":2}])"},
      {R"([1,1])", R"([1,1,1])", R"([{"op":"add","path":"/2","value":1}])"},
      {"1", "2", R"([{"op":"replace","path":"","value":2}])"},
      {"{}", "[]", R"([{"op":"replace","path":"","value":[]}])"},
  };
  for (const auto& c : cases) {
    INFO(c.from << " -> " << c.to);
    const Json operations = json_patch_diff(json(c.from), json(c.to));
    CHECK(print_json(operations) == c.operations);
    CHECK(apply_all(json(c.from), operations) == json(c.to));
  }
}

TEST_CASE("applying json_patch_diff gives the document it was made for") {
  kube::test::RandomJson random(22);
  for (int i = 0; i < 3000; ++i) {
    const Json from = random.value();
    const Json to = random.below(4) == 0 ? random.value() : mutate(random, from);
    const Json operations = json_patch_diff(from, to);
    INFO(print_json(from) << " -> " << print_json(to) << " by " << print_json(operations));
    REQUIRE(apply_all(from, operations) == to);
    REQUIRE(apply_json_patch(from, operations) == to);
    REQUIRE(operations.empty() == (from == to));
  }
}

TEST_CASE("apply_json_patch does what json_patch_diff says") {
  struct Case {
    const char* from;
    const char* to;
  };
  const Case cases[] = {
      {"{}", "{}"},
      {R"({"a":1})", R"({"b":{"c":[1,2]}})"},
      {R"({"a":{"x/y":1,"~":2}})", R"({"a":{"x/y":3,"~":4,"~1":5}})"},
      {R"({"l":[1,2,3]})", R"({"l":[2]})"},
      {R"({"l":[]})", R"({"l":[{"n":1},{"n":2}]})"},
      {R"({"l":[{"n":1},{"n":2}]})", R"({"l":[{"n":1,"m":[0]},{"n":3},4]})"},
      {"1", "[]"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.from, c.to);
    const auto result = apply_json_patch(json(c.from), json_patch_diff(json(c.from), json(c.to)));
    REQUIRE(result);
    CHECK(*result == json(c.to));
  }
}

TEST_CASE("apply_json_patch without operations changes nothing") {
  CHECK(*apply_json_patch(json("{\"a\":1}"), Json()) == json("{\"a\":1}"));
}

TEST_CASE("apply_json_patch refuses what it cannot apply, with its path") {
  const Json document = json(R"({"l":[1],"s":"x"})");
  for (const char* operations :
       {R"([{"op":"replace","path":"/nope","value":1}])", R"([{"op":"remove","path":"/l/1"}])",
        R"([{"op":"add","path":"/l/3","value":1}])", R"([{"op":"add","path":"/l/x","value":1}])",
        R"([{"op":"add","path":"/s/x","value":1}])", R"([{"op":"add","path":"/a/b","value":1}])",
        R"([{"op":"add","path":"nope","value":1}])", R"([{"op":"move","from":"/n","path":"/t"}])",
        R"([{"op":"test","path":"/s","value":"y"}])", R"([{"op":"copy","from":"/n","path":"/t"}])",
        R"({"op":"add"})", R"([7])"}) {
    CAPTURE(operations);
    CHECK_FALSE(apply_json_patch(document, json(operations)));
  }
  CHECK(apply_json_patch(document, json(R"([{"op":"remove","path":"/x"}])")).error().message ==
        "/x: there is no such place");
}

TEST_CASE("apply_json_patch refuses copies that double a list again and again") {
  Json operations = Json::array();
  for (int i = 0; i < 40; ++i)
    operations.push_back(Json::object({{"op", "copy"}, {"from", "/l"}, {"path", "/l/-"}}));
  const auto result = apply_json_patch(json(R"({"l":[1]})"), operations);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kTooLarge);
}

TEST_CASE("apply_json_patch refuses what would be too deep for functions that recurse") {
  const Json doubled = json(R"([{"op":"copy","from":"","path":"/a/a"}])");
  Json document = json(R"({"a":{"a":1}})");
  int copies = 0;
  while (copies < 100) {
    auto patched = apply_json_patch(document, doubled);
    if (!patched) {
      CHECK(patched.error().code == ErrorCode::kTooLarge);
      CHECK_THAT(patched.error().message, Catch::Contains("deeper than 200"));
      break;
    }
    document = std::move(*patched);
    ++copies;
  }
  CHECK(copies == 99);
}

TEST_CASE("apply_json_patch tests, copies and moves") {
  const Json document = json(R"({"l":[1,2],"s":"x"})");
  struct Case {
    std::string_view operations, result;
  };
  const Case cases[] = {
      {R"([{"op":"test","path":"/s","value":"x"}])", R"({"l":[1,2],"s":"x"})"},
      {R"([{"op":"test","path":"/n","value":null}])", R"({"l":[1,2],"s":"x"})"},
      {R"([{"op":"copy","from":"/s","path":"/t"}])", R"({"l":[1,2],"s":"x","t":"x"})"},
      {R"([{"op":"move","from":"/s","path":"/l/0"}])", R"({"l":["x",1,2]})"},
      {R"([{"op":"move","from":"/l/1","path":"/l/0"}])", R"({"l":[2,1],"s":"x"})"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.operations);
    CHECK(*apply_json_patch(document, json(c.operations)) == json(c.result));
  }
}
