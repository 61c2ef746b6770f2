#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/random_json.hh"

using kube::Json;
using kube::parse_json;
using kube::parse_yaml;
using kube::parse_yaml_documents;
using kube::print_json;
using kube::print_yaml;

namespace {

std::string as_json(std::string_view yaml) {
  const auto value = parse_yaml(yaml);
  return value ? print_json(*value) : value.error().message;
}

std::string times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

// Each expectation is what sigs.k8s.io/yaml v1.6 answers.
TEST_CASE("plain scalars have the types kubectl gives them") {
  struct Case {
    std::string_view text;
    std::string_view json;
  };
  const Case cases[] = {
      {"y", "true"},
      {"Y", "true"},
      {"N", "false"},
      {"yes", "true"},
      {"On", "true"},
      {"off", "false"},
      {"TRUE", "true"},
      {"tRUE", "\"tRUE\""},
      {"null", "null"},
      {"NULL", "null"},
      {"~", "null"},
      {"", "null"},
      {"nULL", "\"nULL\""},
      {"12", "12"},
      {"+1", "1"},
      {"-7", "-7"},
      {"++1", "\"++1\""},
      {"0x1F", "31"},
      {"0X1F", "31"},
      {"0x", "\"0x\""},
      {"0x_1", "1"},
      {"017", "15"},
      {"-017", "-15"},
      {"0o17", "15"},
      {"0O17", "15"},
      {"0b101", "5"},
      {"-0b101", "-5"},
      {"08", "8"},
      {"019", "19"},
      {"0_7", "7"},
      {"1_000", "1000"},
      {"1__0", "10"},
      {"_1", "\"_1\""},
      {"1_0.5", "10.5"},
      {"1.0", "1"},
      {"1e3", "1000"},
      {"12e03", "12000"},
      {"-0.0", "0"},
      {"1.", "1"},
      {".5", "0.5"},
      {"+.5", "0.5"},
      {"-.5", "-0.5"},
      {"0.1e1_0", "1000000000"},
      {"1e", "\"1e\""},
      {"1e400", "\"1e400\""},
      {"1e-7", "1e-07"},
      {"1e21", "1e+21"},
      {"9223372036854775807", "9223372036854775807"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"9223372036854775808", "9223372036854775808.0"},
      {"123456789012345678901234567890", "1.2345678901234568e+29"},
      {"1:30", "\"1:30\""},
      {"2026-08-20", "\"2026-08-20\""},
      {"2026-08-20T10:00:00Z", "\"2026-08-20T10:00:00Z\""},
      {"=", "\"=\""},
      {"1.2.3", "\"1.2.3\""},
      {"5Gi", "\"5Gi\""},
      {"'1'", "\"1\""},
      {"\"yes\"", "\"yes\""},
      {"!!str 5", "\"5\""},
      {"!!str", "\"\""},
      {"!!str ~", "\"~\""},
      {"! 5", "\"5\""},
      {"!!int \"5\"", "5"},
      {"!!int 0x1F", "31"},
      {"!!bool yes", "true"},
      {"!!null ~", "null"},
      {"!foo z", "\"z\""},
      {"!!timestamp 2026-08-20", "\"2026-08-20\""},
      {"!!float 5", "5.0"},
  };
  for (const auto& c : cases) {
    INFO(c.text);
    CHECK(as_json("a: " + std::string(c.text)) == "{\"a\":" + std::string(c.json) + "}");
  }
}

TEST_CASE("member names become strings") {
  CHECK(as_json("1.5: x") == "{\"1.5\":\"x\"}");
  CHECK(as_json("0x10: x") == "{\"16\":\"x\"}");
  CHECK(as_json("yes: x") == "{\"true\":\"x\"}");
  CHECK(as_json("1e3: x") == "{\"1000\":\"x\"}");
  CHECK(as_json("100000000.5: x") == "{\"1e+08\":\"x\"}");
  CHECK(as_json("1.23456789: x") == "{\"1.2345679\":\"x\"}");
  CHECK(as_json("!!str 1: x") == "{\"1\":\"x\"}");
}

TEST_CASE("collections, block scalars and several documents") {
  CHECK(
      as_json("a:\n- 1\n- b: [x, {y z: w}]\n  c: |\n    l1\n     l2\n  d: >-\n    f1\n    f2\n") ==
      R"({"a":[1,{"b":["x",{"y z":"w"}],"c":"l1\n l2\n","d":"f1 f2"}]})");
  CHECK(as_json("a: !!map {b: 1}\nc: !!set {d, e}") == R"({"a":{"b":1},"c":{"d":null,"e":null}})");
  CHECK(as_json("a: \"\\u00e9\\x41\\t\"\r\nb: 1\r\n") == R"({"a":"éA\t","b":1})");
  CHECK(as_json("\xef\xbb\xbf"
                "a: 1") == R"({"a":1})");
  const auto documents =
      parse_yaml_documents("# c\n---\na: 1\n---\n---\n# nothing\n--- [2]\n...\n# x\nb: 3\n");
  REQUIRE(documents);
  CHECK(print_json(Json(*documents)) == R"([{"a":1},[2],{"b":3}])");
  CHECK(parse_yaml_documents("")->empty());
  CHECK(parse_yaml_documents("---\n# nothing\n")->empty());
  CHECK(as_json("") == "bad YAML: expected one document, found none");
  CHECK(as_json("a: 1\n---\n---\n~\n") == R"({"a":1})");
  for (const char* const second : {"b: 1", "- [", "*x", "1"}) {
    const std::string error = as_json("a: 1\n---\n" + std::string(second));
    CHECK_THAT(error, Catch::StartsWith("bad YAML at line 3, column 1: "));
    if (*second != '*')
      CHECK_THAT(error, Catch::EndsWith("expected one document, and this is the second"));
  }
}

TEST_CASE("every escape gives UTF-8") {
  CHECK(as_json(R"("\N\_\L\P\e\a\v\0 é\_é")") ==
        "\"\xc2\x85\xc2\xa0\xe2\x80\xa8\xe2\x80\xa9\\u001b\\u0007\\u000b\\u0000 é\xc2\xa0é\"");
}

TEST_CASE("members without a value are null") {
  CHECK(as_json("a:\nfoo:") == R"({"a":null,"foo":null})");
  CHECK(as_json("a: 1\n? foo") == R"({"a":1,"foo":null})");
  CHECK(as_json("{foo}") == R"({"foo":null})");
  CHECK(as_json("{a: 1, foo: , ? b}") == R"({"a":1,"b":null,"foo":null})");
  CHECK(as_json("foo: ~") == R"({"foo":null})");
}

TEST_CASE("quotes at the end of the text") {
  CHECK(as_json("a: &x \"\\\\\"") == R"({"a":"\\"})");
  CHECK(as_json("a: 'it''s'") == R"({"a":"it's"})");
  CHECK(as_json("a: !!str \n  'x'") == R"({"a":"x"})");
  CHECK(as_json("a: it's") == R"({"a":"it's"})");
  CHECK(as_json("a: |\n  \"") == R"({"a":"\""})");
}

TEST_CASE("JSON is read as JSON") {
  CHECK(as_json(" {\"a\": \"\\ud83d\\ude00\", \"b\": 1.0}\n") == "{\"a\":\"😀\",\"b\":1.0}");
  CHECK(as_json("{a: yes}") == "{\"a\":true}");
}

TEST_CASE("anchors, aliases and merge keys") {
  CHECK(as_json("a: &x {b: 1}\nc: *x\nd: [*x, *x]") ==
        R"({"a":{"b":1},"c":{"b":1},"d":[{"b":1},{"b":1}]})");
  CHECK(as_json("&k a: &v 1\nb: *v\nc: *k\n*k : 2").find("has the member \"a\" twice") !=
        std::string::npos);
  CHECK(as_json("- &k a\n- {*k : 2}") == R"(["a",{"a":2}])");
  CHECK(as_json("b: &b {x: 1, z: 2}\na: {<<: *b, x: 5}") ==
        R"({"a":{"x":5,"z":2},"b":{"x":1,"z":2}})");
  // The order counts for go-yaml v2.
  CHECK(as_json("a: {x: 5, <<: {x: 2, z: 3}}") == R"({"a":{"x":2,"z":3}})");
  CHECK(as_json("- &a {x: 1, z: 1}\n- &b {x: 2, w: 2}\n- {<<: [*a, *b]}") ==
        R"([{"x":1,"z":1},{"w":2,"x":2},{"w":2,"x":1,"z":1}])");
  CHECK(as_json("!!merge <<: {a: 1}") == R"({"a":1})");
  CHECK(as_json("\"<<\": {a: 1}") == R"({"<<":{"a":1}})");
}

TEST_CASE("errors name line and column") {
  struct Case {
    std::string_view text;
    std::string_view error;
  };
  const Case cases[] = {
      {"a: 1\nb: 2\na: 3", "bad YAML at line 3, column 1: the mapping has the member \"a\" twice"},
      {"a: 1\n'a': 3", "bad YAML at line 2, column 1: the mapping has the member \"a\" twice"},
      {"true: 1\nyes: 3",
       "bad YAML at line 2, column 1: the mapping has the member \"true\" twice"},
      {"a: 1\nfoo\n", "bad YAML at line 2, column 1: expected ':' after the member name"},
      {"a: 1\n\"b\\n\": 1\n\"b\\n\": 2",
       "bad YAML at line 3, column 1: the mapping has the member \"b\\n\" twice"},
      {"a: \"b\nc: d\n", "bad YAML at line 1, column 4: the quoted text is not closed"},
      {"é: 'b''\nc: d\n", "bad YAML at line 1, column 5: the quoted text is not closed"},
      {"a: 1\nb: !!str \"c\n", "bad YAML at line 2, column 4: the quoted text is not closed"},
      {"a: {<<: 1}", "bad YAML at line 1, column 9: \"<<\" takes a mapping or a list of mappings"},
      {"a: &x {b: *x}",
       "bad YAML at line 1, column 11: the alias stands within the value it names"},
      {"? [a]\n: b", "bad YAML at line 1, column 3: a member name must be a scalar"},
      {"~: x", "bad YAML at line 1, column 1: a member name must be a string, not null; quote it"},
      {"a: .inf",
       "bad YAML at line 1, column 4: infinity and NaN have no form in JSON; quote the text if a "
       "string is meant"},
      {"a: !!float .nan",
       "bad YAML at line 1, column 4: infinity and NaN have no form in JSON; quote the text if a "
       "string is meant"},
      {"a: !!int 5.5",
       "bad YAML at line 1, column 4: \"5.5\" is no !!int; write a value that is, or leave the tag "
       "away"},
      {"a: !!binary aGVsbG8=",
       "bad YAML at line 1, column 4: !!binary has no form in JSON; write the base64 text without "
       "the tag"},
      {"- 1\nb: 2\n",
       "bad YAML at line 2, column 1: expected the end of the document; is the indentation right, "
       "or a \"---\" missing?"},
      {"{a: 1} x",
       "bad YAML at line 1, column 8: expected the end of the document; is the indentation right, "
       "or a \"---\" missing?"},
      {"--- {a: 1} x",
       "bad YAML at line 1, column 12: expected the end of the document; is the indentation right, "
       "or a \"---\" missing?"},
  };
  for (const auto& c : cases) {
    INFO(c.text);
    CHECK(as_json(c.text) == c.error);
  }
  // The parser would read these without end.
  CHECK(as_json(",").find("bad YAML at line 1, column 1: expected the end") == 0);
  CHECK(as_json("a: 1\n...\n,") == "bad YAML at line 3, column 1: expected a value");
  // The parser's own errors are passed on with their place.
  CHECK(as_json("a: 1\nb: c: d").substr(0, 31) == "bad YAML at line 2, column 5: i");
  CHECK(as_json("a: *b").substr(0, 30) == "bad YAML at line 1, column 4: ");
  CHECK(as_json("a:\n\t- b").substr(0, 29) == "bad YAML at line 2, column 2:");
  CHECK(as_json(std::string_view("a: \0", 4)) == "bad YAML: the text holds a NUL byte");
  CHECK(as_json("a: \xff") == "bad YAML: the text is not UTF-8");
}

TEST_CASE("documents cannot exhaust the process") {
  const auto is_copied_too_often = Catch::EndsWith(
      "anchors, aliases, merge keys and tags multiply the text beyond 1,000,000 nodes");
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + below;
    for (int k = 1; k < 10; ++k) bomb += "," + below;
    bomb += "]\n";
  }
  CHECK_THAT(as_json(bomb), is_copied_too_often);
  // One long text, many times.
  std::string texts = "a: &a " + std::string(1'000'000, 'x') + "\nb: [";
  for (int i = 0; i < 100; ++i) texts += "*a,";
  CHECK_THAT(as_json(texts + "1]"), is_copied_too_often);
  // Anchors without any alias, each within another: width by depth.
  CHECK_THAT(as_json(times(190, "&a [") + "0" + times(10'000, ",0") + times(190, "]")),
             is_copied_too_often);
  CHECK_THAT(as_json(times(190, "&a {b: ") + "&c [0" + times(10'000, ",0") + "]" + times(190, "}")),
             is_copied_too_often);
  // The same of merge keys, and of names and texts that are long.
  std::string members;
  for (int i = 0; i < 10'000; ++i) members += std::to_string(i) + ": ,";
  CHECK_THAT(as_json(times(190, "{<<: ") + "{" + members + "}" + times(190, "}")),
             is_copied_too_often);
  CHECK_THAT(as_json(times(190, "&a {? b\n: ") + "{? " + std::string(200'000, 'k') + "\n: 1}" +
                     times(190, "}")),
             is_copied_too_often);
  // A tag means the text that its "%TAG" gives.
  CHECK_THAT(
      as_json("%TAG !e! " + std::string(100'000, 'x') + "\n---\n" + times(1'000, "- !e!a 1\n")),
      is_copied_too_often);
  // The copies of all documents count together.
  std::string document = "a: &a [0" + times(99, ",0") + "]\nb: &b [*a" + times(99, ",*a") + "]\n";
  document += "c: [*b" + times(9, ",*b") + "]\n---\n";
  CHECK(parse_yaml_documents(times(5, document)));
  const auto too_many = parse_yaml_documents(times(20, document));
  REQUIRE_FALSE(too_many);
  CHECK_THAT(too_many.error().message, is_copied_too_often);
  // The parser takes 250 bytes for each of these.
  const std::string marks = times(1'000'001, "[");
  CHECK_THAT(as_json(marks), Catch::StartsWith("bad YAML: more than 1000000 brackets, braces"));
  // Aliases that nest.
  std::string nest = "- &a0 [x]\n";
  for (int i = 1; i < 300; ++i)
    nest += "- &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  CHECK(as_json(nest).find("nested deeper than 200") != std::string::npos);
  CHECK(as_json(std::string(100'000, '[')).substr(0, 8) == "bad YAML");
  CHECK(as_json(std::string(17U << 20, ' ')) ==
        "bad YAML: 17825792 bytes, more than the limit of 16777216");
}

TEST_CASE("a text of others may be less than one of the user's own") {
  const kube::YamlLimits limits{.max_bytes = 1'000, .max_nodes = 10};
  const auto refusal = [&limits](const std::string& text) {
    const auto value = parse_yaml(text, limits);
    return value ? std::string() : value.error().message;
  };
  CHECK(
      refusal("a: 1\nb: [2, {c: 3}]\n").empty());  // two mappings, a list, three names and scalars
  CHECK_THAT(refusal(times(10, "- a\n")), Catch::EndsWith("there are more than 10 nodes"));
  CHECK_THAT(refusal("{" + times(10, "\"a\":1,") + "\"b\":[]}"), Catch::StartsWith("bad YAML"));
  CHECK_THAT(refusal(times(11, "[")),
             Catch::StartsWith("bad YAML: more than 10 brackets, braces and commas"));
  CHECK(refusal(std::string(1'001, ' ')) == "bad YAML: 1001 bytes, more than the limit of 1000");
}

TEST_CASE("ordinary use of anchors and merge keys stays far from the limit") {
  std::string text = "base: &base {image: train, args: [a, b, c], env: {x: 1, y: 2}}\njobs:\n";
  for (int i = 0; i < 5'000; ++i) text += "- <<: *base\n  name: job-" + std::to_string(i) + "\n";
  const auto value = parse_yaml(text);
  REQUIRE(value);
  CHECK(value->get_array("jobs").size() == 5'000);
}

// "-c" is quoted, unlike there, since such a text could be read as a number.
TEST_CASE("print_yaml looks as kubectl's output does") {
  const auto value = parse_json(
      R"x({"kind":"Job","spec":{"n":3,"on":true,"empty":{},"none":[],"nothing":null,"r":0.5,
    "args":["--nodes=2","-c","python train.py\necho done\n",{"name":"a","value":"yes"},[1,[2]]],
    "texts":{"a":"", "b":"1", "c":"true", "d":"1:30", "e":"a: b", "f":" x", "g":"x:", "h":"#", "i":"a #b","j":"2026-08-20",
             "k":"é", "l":"<<", "m":"tab\there", "n":"no", "o":"$(X)", "p":"*x", "q":"1.5Gi", "r":"a\nb", "s":"a\n\n"},
    "yes":"~"
}
})x");
  REQUIRE(value);
  CHECK(print_yaml(*value) == R"x(kind: Job
spec:
  args:
  - --nodes=2
  - "-c"
  - |
    python train.py
    echo done
  - name: a
    value: "yes"
  - - 1
    - - 2
  empty: {}
  "n": 3
  none: []
  nothing: null
  "on": true
  r: 0.5
  texts:
    a: ""
    b: "1"
    c: "true"
    d: "1:30"
    e: "a: b"
    f: " x"
    g: "x:"
    h: "#"
    i: "a #b"
    j: "2026-08-20"
    k: "é"
    l: "<<"
    m: "tab\there"
    "n": "no"
    o: $(X)
    p: "*x"
    q: 1.5Gi
    r: |-
      a
      b
    s: |+
      a

  "yes": "~"
)x");
}

TEST_CASE("printing and parsing YAML are inverse") {
  kube::test::RandomJson random(11);
  for (int i = 0; i < 3000; ++i) {
    const Json value = random.object();
    const std::string text = print_yaml(value);
    INFO(text);
    INFO(print_json(value));
    const auto again = parse_yaml(text);
    if (!again) FAIL(again.error().message);
    REQUIRE(print_json(*again) == print_json(value));
  }
}

TEST_CASE("every string survives YAML") {
  kube::test::RandomJson random(12);
  for (int i = 0; i < 5000; ++i) {
    const Json value = random.text();
    for (const Json& document : {value, Json::array({value, value}),
                                 Json::object({{value.as_string(), value}, {"z", 1}})}) {
      const std::string text = print_yaml(document);
      INFO(text);
      INFO(print_json(document));
      const auto again = parse_yaml(text);
      if (!again) FAIL(again.error().message);
      REQUIRE(print_json(*again) == print_json(document));
    }
  }
}

TEST_CASE("long names survive YAML") {
  for (const std::size_t size : {900U, 1000U, 1023U, 1024U, 1025U, 5000U}) {
    const Json value =
        Json::object({{std::string(size, 'k'),
                       Json::array({1, Json::object({{std::string(size, 'q'), "a\nb\n"}})})},
                      {"m" + std::string(size, 'k'), Json::object({{"a", 1}})},
                      {"n" + std::string(size, 'k'), 1}});
    const auto again = parse_yaml(print_yaml(value));
    REQUIRE(again);
    CHECK(*again == value);
  }
}
