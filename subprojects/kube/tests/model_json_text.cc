#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <random>

#include "kube/model/json_text.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/random_json.hh"

using kube::Json;
using kube::parse_json;
using kube::print_json;

namespace {

std::string error_of(std::string_view text, const kube::JsonLimits& limits = {}) {
  const auto result = parse_json(text, limits);
  return result ? "no error" : result.error().message;
}

using kube::JsonFilter;
using enum kube::JsonFilter::Members;

// Returns what the selection must be: the whole text is read, and the rest is erased.
Json selected(const Json& value, const JsonFilter& filter) {
  if (filter.below.empty()) return value;
  if (value.is_array()) {
    Json items = Json::array();
    for (const Json& item : value.as_array())
      items.push_back(item.is_array() ? item : selected(item, filter));
    return items;
  }
  if (!value.is_object()) return value;
  Json object = Json::object();
  for (const auto& [name, member] : value.as_object()) {
    const bool is_only = filter.members == kInclude;
    const JsonFilter* listed = nullptr;
    for (const auto& each : filter.below) {
      if (!listed && (each.name == name || (is_only && each.name == "*"))) listed = &each;
    }
    const bool is_left_out = is_only ? !listed : listed && listed->below.empty();
    if (!is_left_out) object.set(name, listed ? selected(member, *listed) : member);
  }
  return object;
}

// About some members of the value, at any depth. The names are the value's own.
JsonFilter some_of(const Json& value, kube::test::RandomJson& random) {
  JsonFilter filter;
  filter.members = random.below(2) == 0 ? kInclude : kExclude;
  if (value.is_array() && !value.empty()) return some_of(value.as_array().front(), random);
  if (!value.is_object()) return filter;
  for (const auto& [name, member] : value.as_object()) {
    if (random.below(3) == 0) continue;
    JsonFilter below = some_of(member, random);
    below.name = random.below(20) == 0 ? "*" : std::string_view(name);
    filter.below.push_back(std::move(below));
  }
  return filter;
}

}  // namespace

TEST_CASE("parse_json reads every kind of value") {
  const auto object = parse_json(R"( {"b": [1, -2.5, "x", true, null, {}], "a": false} )");
  REQUIRE(object);
  CHECK(*object ==
        Json::object(
            {{"a", false}, {"b", Json::array({1, -2.5, "x", true, nullptr, Json::object()})}}));
  CHECK(*parse_json("null") == Json());
  CHECK(*parse_json("\"\"") == Json(""));
  CHECK(*parse_json("[]") == Json::array());
}

TEST_CASE("parse_json decodes escapes to UTF-8") {
  CHECK(parse_json(R"("\"\\\/\b\f\n\r\t\u00e9\u20ac\ud83d\ude00")")->as_string() ==
        "\"\\/\b\f\n\r\té€😀");
  CHECK(parse_json(R"("a\u0000b")")->as_string() == std::string("a\0b", 3));
  CHECK(parse_json("{\"k\\u0031\": 1}")->get_int("k1") == 1);
}

TEST_CASE("parse_json keeps integers exact and rounds other numbers correctly") {
  struct Case {
    std::string_view text;
    Json value;
  };
  const Case cases[] = {
      {"0", 0},
      {"-0", 0},
      {"9223372036854775807", std::numeric_limits<std::int64_t>::max()},
      {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()},
      {"9223372036854775808", 9223372036854775808.0},
      {"-9223372036854775809", -9223372036854775808.0},
      {"18446744073709551616", 18446744073709551616.0},
      {"1.0", 1.0},
      {"1e3", 1000.0},
      {"1E-2", 0.01},
      {"0.1", 0.1},
      {"1.7976931348623157e308", std::numeric_limits<double>::max()},
      {"2.2250738585072011e-308", 2.2250738585072011e-308},
      {"5e-324", 5e-324},
      {"1e-400", 0.0},
      // Reads out of bounds in RapidJSON's own conversion.
      {"0.00000000001e-2147483639", 0.0},
      {"9007199254740993.0", 9007199254740992.0},
      {"123456789012345678901234567890", 123456789012345678901234567890.0},
  };
  for (const auto& c : cases) {
    INFO(c.text);
    const auto value = parse_json(c.text);
    REQUIRE(value);
    CHECK(*value == c.value);
  }
  CHECK(std::signbit(parse_json("-0.0")->as_double()));
}

TEST_CASE("parse_json names the place of an error") {
  using namespace std::literals;
  struct Case {
    std::string_view text;
    std::string_view error;
  };
  const Case cases[] = {
      {"", "bad JSON at byte 0: there is no value"},
      {"  ", "bad JSON at byte 2: there is no value"},
      {"{} x", "bad JSON at byte 3: there is text after the value"},
      {"{}{}", "bad JSON at byte 2: there is text after the value"},
      {"[1,]", "bad JSON at byte 3: expected a value"},
      {"{\"a\":1,}", "bad JSON at byte 7: expected a member name in quotes"},
      {"{a:1}", "bad JSON at byte 1: expected a member name in quotes"},
      {"{\"a\" 1}", "bad JSON at byte 5: expected ':' after the member name"},
      {"{\"a\":1", "bad JSON at byte 6: expected ',' or '}'"},
      {"[1 2]", "bad JSON at byte 3: expected ',' or ']'"},
      {"\"abc", "bad JSON at byte 4: the string is not closed"},
      {"\"\\u12g4\"", "bad JSON at byte 1: expected four hexadecimal digits after \\u"},
      {"\"\\ud800x\"", "bad JSON at byte 1: a \\u escape names half of a surrogate pair"},
      {"\"\\x\"", "bad JSON at byte 1: a bad escape or an unescaped control character in a string"},
      {"\"a\nb\"",
       "bad JSON at byte 2: a bad escape or an unescaped control character in a string"},
      {"1.", "bad JSON at byte 2: expected a digit after the decimal point"},
      {"1e", "bad JSON at byte 2: expected a digit in the exponent"},
      {"01", "bad JSON at byte 1: there is text after the value"},
      {"+1", "bad JSON at byte 0: expected a value"},
      {"NaN", "bad JSON at byte 0: expected a value"},
      {"tru", "bad JSON at byte 3: expected a value"},
      {"1e400", "bad JSON at byte 0: the number is out of range"},
      {"[2e308]", "bad JSON at byte 1: the number is out of range"},
      {"// c\n1", "bad JSON at byte 0: expected a value"},
      {"\xef\xbb\xbf{}", "bad JSON at byte 0: expected a value"},
      {"\"\xf0\"", "bad JSON at byte 1: the text is not UTF-8"},
      {"{\"a\":1,\"b\":{\"c\":1,\"c\":2}}",
       "bad JSON at byte 23: the object ending here has the member \"c\" twice"},
      {"{}\0"sv, "bad JSON at byte 2: the text holds a NUL byte"},
      {"\0{}"sv, "bad JSON at byte 0: the text holds a NUL byte"},
      {"\"a\0b\""sv, "bad JSON at byte 2: the text holds a NUL byte"},
      {"[1,\0]"sv, "bad JSON at byte 3: the text holds a NUL byte"},
      {"1\0002"sv, "bad JSON at byte 1: the text holds a NUL byte"},
  };
  for (const auto& c : cases) {
    INFO(c.text);
    CHECK(error_of(c.text) == c.error);
  }
  // RapidJSON alone would let the second half of a pair pass, as bytes that are not UTF-8.
  CHECK(error_of("[\"\\udc00\"]").find("half of a surrogate pair") != std::string::npos);
  CHECK(error_of("{\"\\udc00\":1}").find("half of a surrogate pair") != std::string::npos);
}

TEST_CASE("parse_json holds to its limits") {
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  CHECK(parse_json(deep));
  CHECK(error_of("[" + deep + "]") ==
        "bad JSON at byte 200: containers are nested deeper than 200");
  CHECK(error_of(std::string(3'000'000, '[')) ==
        "bad JSON at byte 200: containers are nested deeper than 200");
  CHECK(error_of("[1,2]", {.max_bytes = 4}) == "bad JSON: 5 bytes, more than the limit of 4");
  CHECK(error_of("[[1]]", {.max_depth = 1}) ==
        "bad JSON at byte 1: containers are nested deeper than 1");
  CHECK(parse_json("[1,{\"a\":2}]", {.max_values = 4}));
  CHECK(error_of("[1,{\"a\":2}]", {.max_values = 3}) ==
        "bad JSON at byte 10: there are more than 3 values");
  CHECK(error_of("[0,0,0]", {.max_values = 2}) ==
        "bad JSON at byte 5: there are more than 2 values");
}

TEST_CASE("values that are left out do not count") {
  const JsonFilter filter{"", kExclude, {{"a"}}};
  const std::string_view text = R"({"a":[0,0,0,0],"b":1})";
  CHECK(parse_json(text, {.max_values = 2}, filter));
  CHECK_FALSE(parse_json(text, {.max_values = 2}));
}

TEST_CASE("print_json escapes what must be escaped and nothing else") {
  CHECK(print_json(Json("a\"\\/\b\f\n\r\t\x01\x1f\x7f é€😀 <&>")) ==
        "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f é€😀 <&>\"");
  CHECK(print_json(Json(std::string("\0", 1))) == "\"\\u0000\"");
  CHECK(print_json(Json("a\xff\xf0z")) == "\"a\xef\xbf\xbd\xef\xbf\xbdz\"");
}

TEST_CASE("print_json writes the shortest exact numbers") {
  CHECK(print_json(Json::array({1, -7, 1.0, 0.1, 1e300, 5e-324, -0.0, 100000.0, 1e21})) ==
        "[1,-7,1.0,0.1,1e+300,5e-324,-0.0,100000.0,1e+21]");
  CHECK(print_json(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(print_json(std::numeric_limits<double>::quiet_NaN()) == "null");
  CHECK(print_json(std::numeric_limits<double>::infinity()) == "null");
}

TEST_CASE("print_json_pretty indents") {
  const Json value = Json::object({{"b", Json::array({1, Json::object()})}, {"a", Json::array()}});
  CHECK(kube::print_json_pretty(value) == "{\n  \"a\": [],\n  \"b\": [\n    1,\n    {}\n  ]\n}");
}

TEST_CASE("printing and parsing are inverse") {
  kube::test::RandomJson random(1);
  for (int i = 0; i < 3000; ++i) {
    const Json value = random.value();
    const std::string text = print_json(value);
    INFO(text);
    const auto again = parse_json(text);
    REQUIRE(again);
    REQUIRE(*again == value);
    REQUIRE(print_json(*again) == text);
    REQUIRE(*parse_json(kube::print_json_pretty(value)) == value);
  }
}

TEST_CASE("every double survives") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bits = random();
    double value = 0;
    static_assert(sizeof(value) == sizeof(bits));
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isfinite(value)) continue;
    INFO(value);
    const auto again = parse_json(print_json(value));
    REQUIRE(again);
    REQUIRE(again->is_double());
    REQUIRE(again->as_double() == value);
  }
}

TEST_CASE("parse_json leaves out what is listed, or what is not") {
  const JsonFilter but{"", kExclude, {{"a"}, {"b", kExclude, {{"a"}, {"c", kExclude, {{"d"}}}}}}};
  const JsonFilter only{
      "",
      kInclude,
      {{"a"}, {"b", kInclude, {{"a"}, {"*", kExclude, {{"d"}}}}}, {"c", kInclude, {{"*"}}}}};
  struct Case {
    const JsonFilter& filter;
    std::string_view text;
    std::string_view left;
  };
  const Case cases[] = {
      {but, R"({"a":1})", R"({})"},
      {but, R"({"a":null,"b":2,"z":{"a":1}})", R"({"b":2,"z":{"a":1}})"},
      {but, R"({"a":{"b":[{"c":[[]]},2.5,"x"]},"c":3})", R"({"c":3})"},
      {but, R"({"a":[],"b":{"a":[{}],"b":{"a":true}},"d":"e"})",
       R"({"b":{"b":{"a":true}},"d":"e"})"},
      {but, R"({"b":{"c":{"d":{},"e":[{"d":1}]},"d":4}})", R"({"b":{"c":{"e":[{"d":1}]},"d":4}})"},
      {but, R"({"b":[{"a":1,"b":2},3,[{"a":4}]]})", R"({"b":[{"b":2},3,[{"a":4}]]})"},
      {but, R"([{"a":1,"c":2},{"c":3}])", R"([{"c":2},{"c":3}])"},
      {but, R"("a")", R"("a")"},
      {only, R"({"x":{"a":1},"y":[1,{}]})", R"({})"},
      {only, R"({"a":{"x":[{"y":1}]},"x":1})", R"({"a":{"x":[{"y":1}]}})"},
      {only, R"({"b":{"a":{"d":1},"x":{"d":1,"e":2},"y":3}})",
       R"({"b":{"a":{"d":1},"x":{"e":2},"y":3}})"},
      {only, R"({"b":1,"c":{"x":{"y":[0]}}})", R"({"b":1,"c":{"x":{"y":[0]}}})"},
      {only, R"([{"x":1,"a":2},[{"x":3}],null])", R"([{"a":2},[{"x":3}],null])"},
      {only, R"( {"x" : [ {"y":0} ] , "c":{ } , "a" : -1.5e3 } )", R"({"a":-1500.0,"c":{}})"},
      {only, R"({"\u0061":1,"\u0078":2,"b":{"\u0061":3,"\"":4}})", R"({"a":1,"b":{"\"":4,"a":3}})"},
      {but, R"({"\u0061":1,"\u0078":2,"\"":3})", R"({"\"":3,"x":2})"},
      {only, R"({"a":[],"x":[[]],"b":{}})", R"({"a":[],"b":{}})"},
  };
  for (const auto& [filter, text, left] : cases) {
    INFO(text);
    const auto read = parse_json(text, {}, filter);
    REQUIRE(read);
    CHECK(print_json(*read) == left);
  }
}

TEST_CASE("of what is left out only the end is looked for, and how deep it is") {
  const JsonFilter filter{"", kExclude, {{"a"}}};
  struct Case {
    std::string_view text;
    bool is_read;
  };
  const Case cases[] = {
      {R"({"a":"\udc00","b":1})", true},
      {R"({"a":{"b" 1},"b":1})", true},
      {R"({"a":[[],{"x":1}],"b":1})",
       true},  // three levels with the object's own: as many as may be
      {R"({"a":[[[]]],"b":1})", false},
      {R"({"a":[[],{"x":[]}],"b":1})", false},
      {R"({"a" : "}\"]\\" , "b":1})", true},
      {R"({ "a" :5 ,"b":1})", true},
      {R"({"a":-2.5e7,"b":1})", true},
      {"{\"a\":\n[\"\x01\"]\t,\"b\":1}", true},
      {R"({"a":})", false},
      {R"({"a"})", false},
      {R"({"a" 1,"b":1})", false},
      {R"({"a":[1,})", false},
      {R"({"a":[})", false},
      {R"({"a":"x)", false},
      {R"({"a":"x\)", false},
      {R"({"a":[1,2)", false},
      {R"({"a":1}{})", false},
      {R"({"a":1)", false},
      {R"({"a":)", false},
      {R"({"a")", false},
      {"{\"a\":\"\xff\",\"b\":1}", false},
      {R"({"a":1,})", false},
      {R"({"a":1,"b":1,})", false},
      {R"({"a":1,"b":1)", false},
      {R"({"a":1,"b":1]", false},
      {R"({"a":1 "b":1})",
       false},
      {R"({,"b":1})", false},
      {R"({a:1,"b":1})", false},
      {R"({"a":1,"b":1}  )", true},
      {R"({"a":1,"b":1} x)", false},
      {R"({"\u12":1,"b":1})", false},
  };
  for (const auto& [text, is_read] : cases) {
    INFO(text);
    const auto read = parse_json(text, {1000, 3}, filter);
    REQUIRE(read.has_value() == is_read);
    if (read) CHECK(print_json(*read) == R"({"b":1})");
  }
}

TEST_CASE("an error names its place in the whole text") {
  const JsonFilter filter{"", kInclude, {{"b"}}};
  struct Case {
    std::string_view text;
    std::string_view message;
  };
  const Case cases[] = {
      {R"({"a":{"x":1},"b":tru})", "bad JSON at byte 20: expected a value"},
      {R"({"a":{"x":1},"b":1}})", "bad JSON at byte 19: there is text after the value"},
      {R"({"a":{"x":1},"b":{"c":1,"c":2}})",
       "bad JSON at byte 29: the object ending here has the member \"c\" twice"},
      {R"({"a":{"x":1},"b":1,"b":2})",
       "bad JSON at byte 24: the object ending here has the member \"b\" twice"},
      {R"({"a":[[[]]],"b":1})", "bad JSON at byte 7: containers are nested deeper than 3"},
      {"", "bad JSON at byte 0: there is no value"},
      {"  ", "bad JSON at byte 2: there is no value"},
  };
  for (const auto& [text, message] : cases) {
    INFO(text);
    const auto read = parse_json(text, {1000, 3}, filter);
    REQUIRE_FALSE(read);
    CHECK(read.error().message == message);
  }
}

TEST_CASE("members come sorted, however many there are") {
  for (const int count : {0, 1, 2, 5, 24, 25, 100}) {
    INFO(count);
    Json expected = Json::object();
    std::string text = "{";
    for (int i = 0; i < count; ++i) {
      const std::string name = "n" + std::to_string((i * 7919) % 1009);
      text += (i > 0 ? ",\"" : "\"") + name + "\":" + std::to_string(i);
      expected.set(name, i);
    }
    const auto read = parse_json(text + "}");
    REQUIRE(read);
    CHECK(*read == expected);
    if (count == 0) continue;
    CHECK_FALSE(parse_json(text + ",\"n0\":1}"));  // twice
  }
}

TEST_CASE("strings of any length end where they end") {
  // Every length and every place of a stop, so that each byte of a block has its turn.
  for (std::size_t length = 0; length < 40; ++length) {
    std::string text(length, 'x');
    REQUIRE(parse_json("\"" + text + "\"")->as_string() == text);
    for (std::size_t at = 0; at < length; ++at) {
      for (const char stop : {'"', '\\', '\n', '\x1f', '\x01'}) {
        std::string whole = text;
        whole[at] = stop;
        const auto again = parse_json(print_json(whole));
        REQUIRE(again);
        REQUIRE(again->as_string() == whole);
        // Without a backslash none of these may be in a string; behind a backslash they may.
        if (stop != '\\') REQUIRE_FALSE(parse_json("[\"" + whole + "\"]"));
      }
      for (const char* wide : {"\xc3\xa9", "\x7f", " "}) {
        const std::string whole = text.substr(0, at) + wide + text.substr(at);
        REQUIRE(parse_json("\"" + whole + "\"")->as_string() == whole);
        REQUIRE(print_json(whole) == "\"" + whole + "\"");
      }
    }
  }
}

TEST_CASE("selecting is reading and erasing") {
  kube::test::RandomJson random(11);
  for (int i = 0; i < 2000; ++i) {
    const Json whole = random.object(6);
    const auto filter = some_of(whole, random);
    const auto read = parse_json(print_json(whole), {}, filter);
    REQUIRE(read);
    REQUIRE(*read == selected(whole, filter));
  }
}

TEST_CASE("truncated and mutated documents are refused or parsed, never worse") {
  kube::test::RandomJson random(3);
  std::mt19937 bytes(4);
  for (int i = 0; i < 2000; ++i) {
    std::string text = print_json(random.value());
    text[bytes() % text.size()] = static_cast<char>(bytes());
    text.resize(text.size() - bytes() % (text.size() / 4 + 1));
    const auto value = parse_json(text);
    if (value) REQUIRE(*parse_json(print_json(*value)) == *value);
  }
}

TEST_CASE("is_utf8 follows the Unicode table of well-formed sequences") {
  for (const auto good : {"", "abcdefgh", "é", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                          "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "12345678é1234567é"}) {
    INFO(good);
    CHECK(kube::is_utf8(good));
  }
  for (const auto bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x20", "\xe0\x9f\xbf",
                         "\xed\xa0\x80", "\xe1\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                         "\xf5\x80\x80\x80", "\xff", "12345678\xff", "1234567\xe9"}) {
    INFO(bad);
    CHECK_FALSE(kube::is_utf8(bad));
  }
  CHECK(kube::is_utf8(std::string_view("\0", 1)));
}
