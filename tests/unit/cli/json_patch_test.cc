#include "controller/cli/json_patch.hh"

#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

Json json(std::string_view text) {
  return *kube::parse_json(text);
}

}  // namespace

TEST_CASE("applying a difference gives the new document") {
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
    const auto result =
        apply_json_patch(json(c.from), kube::json_patch_diff(json(c.from), json(c.to)));
    REQUIRE(result);
    CHECK(*result == json(c.to));
  }
}

TEST_CASE("an answer without a patch changes nothing") {
  CHECK(*apply_json_patch(json("{\"a\":1}"), Json()) == json("{\"a\":1}"));
}

TEST_CASE("an operation that cannot be applied is refused with its path") {
  const Json document = json(R"({"l":[1],"s":"x"})");
  for (const char* operations :
       {R"([{"op":"replace","path":"/nope","value":1}])", R"([{"op":"remove","path":"/l/1"}])",
        R"([{"op":"add","path":"/l/3","value":1}])", R"([{"op":"add","path":"/l/x","value":1}])",
        R"([{"op":"add","path":"/s/x","value":1}])", R"([{"op":"add","path":"/a/b","value":1}])",
        R"([{"op":"add","path":"nope","value":1}])", R"([{"op":"move","from":"/s","path":"/t"}])",
        R"({"op":"add"})", R"([7])"}) {
    CAPTURE(operations);
    CHECK_FALSE(apply_json_patch(document, json(operations)));
  }
  CHECK(apply_json_patch(document, json(R"([{"op":"remove","path":"/x"}])")).error().message ==
        "/x: there is no such place");
}
