#include <string>
#include <string_view>

#include "kube/model/json_cursor.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/random_json.hh"

namespace {

using kube::JsonFilter;
using enum kube::JsonFilter::Members;

constexpr int kMaxDepth = 4;

TEST_CASE("filter_json copies what is selected as it is spelled") {
  const JsonFilter without{
      "", kExclude, {{"a"}, {"m", kExclude, {{"f"}, {"n", kExclude, {{"x.y/z"}}}}}}};
  const JsonFilter only{"", kInclude, {{"a"}, {"m", kInclude, {{"f"}}}}};
  struct Row {
    const JsonFilter& filter;
    std::string_view text;
    const char* selected;  // nullptr: refused
  };
  const Row rows[] = {
      {without, R"({"a":1,"b":2,"c":3})", R"({"b":2,"c":3})"},
      {without, R"({"b":2,"a":1,"c":3})", R"({"b":2,"c":3})"},
      {without, R"({"b":2,"c":3,"a":1})", R"({"b":2,"c":3})"},
      {without, R"({"a":1,"a":2,"b":3})", R"({"b":3})"},
      {without, R"({"b":1,"b":2})", R"({"b":1,"b":2})"},  // its reader refuses it
      {without, R"({"a":1})", "{}"},
      {without, R"( { "a" : [1, "}"] , "b" : { "a" : 1 } } )", R"({"b":{ "a" : 1 }})"},
      {without, R"({"m":{"f":{"g":"\"}"},"k":[],"n":{"x.y/z":1,"x":"\u0061"}}})",
       R"({"m":{"k":[],"n":{"x":"\u0061"}}})"},
      {without, R"({"m":"f"})", R"({"m":"f"})"},
      {without, R"({"m":[{"f":1,"g":2},[{"f":3}],"f"]})", R"({"m":[{"g":2},[{"f":3}],"f"]})"},
      {without, R"({"b":nonsense})", R"({"b":nonsense})"},  // the same
      {without, R"({"a":nonsense,"b":1})", R"({"b":1})"},
      {only, R"({"x":{"a":1},"m":{"g":1,"f":2,"h":3},"a":[]})", R"({"m":{"f":2},"a":[]})"},
      {only, R"({"x":1})", "{}"},
      {only, "[]", "[]"},
      {only, R"([{"x":1},2,{"a":3}])", R"([{},2,{"a":3}])"},
      {only, R"("x")", R"("x")"},
      {only, R"({"\u0061":1,"\u0062":2})", R"({"\u0061":1})"},
      {only, R"({"\q":1})", R"({"\q":1})"},  // the same
      // Deep as the whole is deep, wherever.
      {only, R"({"a":[[[]]]})", R"({"a":[[[]]]})"},
      {only, R"({"x":[[[]]]})", "{}"},
      {only, R"({"a":[[[[]]]]})", nullptr},
      {only, R"({"x":[[[[]]]]})", nullptr},
      {only, R"([{"m":[{"f":1}]}])", R"([{"m":[{"f":1}]}])"},
      {only, R"([{"m":[{"f":[]}]}])", nullptr},
      {only, "", nullptr},
      {only, " \n", nullptr},
      {only, "12", nullptr},  // more digits may follow: not checked here
      {only, R"({"a":1)", nullptr},
      {only, R"({"a":1,})", nullptr},
      {only, R"({"a":})", nullptr},
      {only, R"({"a"})", nullptr},
      {only, R"({"m":{"f":1})", nullptr},
      {only, R"({"m":{"f":1]})", nullptr},
      {only, R"({"x":1)", nullptr},
      {only, R"({"a":1}})", nullptr},
      {only, R"({"a":1} {})", nullptr},
      {only, "[1,]", nullptr},
      {only, "[1", nullptr},
      {only, "}", nullptr},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const auto selected = kube::filter_json(row.text, row.filter, kMaxDepth);
    REQUIRE(selected.has_value() == (row.selected != nullptr));
    if (selected) CHECK(*selected == row.selected);
  }
}

TEST_CASE("filter_json takes every document whole where nothing is listed") {
  kube::test::RandomJson random(5);
  for (int i = 0; i < 500; ++i) {
    const std::string text = kube::print_json(random.object(4));
    CHECK(kube::filter_json(text, {}, 100) == text);
  }
}

TEST_CASE("a text of nothing but openings neither takes long nor deep") {
  const JsonFilter only{"", kInclude, {{"a", kInclude, {{"a", kInclude, {{"b"}}}}}}};
  for (const std::string_view piece : {"[", R"({"a":)", R"({"a":[)", R"([{"a":)"}) {
    std::string text;
    while (text.size() < 1U << 20U) text += piece;
    CHECK_FALSE(kube::filter_json(text, only, 200));
    CHECK_FALSE(kube::filter_json(text, only, 1 << 30));
  }
}

}  // namespace
