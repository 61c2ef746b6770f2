#include <algorithm>

#include "kube/server/field_set.hh"
#include "kube/server/typed.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/random_json.hh"
#include "kube/tests/server_world.hh"

using kube::Json;
using kube::server::Comparison;
using kube::server::FieldPath;
using kube::server::FieldSchema;
using kube::server::FieldSet;
using kube::test::json;
using kube::test::World;

namespace {

FieldSet set_of(std::string_view text) {
  auto set = FieldSet::read(json(text));
  REQUIRE(set);
  return std::move(*set);
}

std::string print(const FieldSet& set) {
  std::string text = kube::print_json(set.to_json());
  std::replace(text.begin(), text.end(), '"', '\'');
  return text;
}

std::string paths(const FieldSet& set) {
  std::string text;
  set.for_each([&text](const FieldPath& path) { text += kube::server::print_path(path) + " "; });
  return text;
}

}  // namespace

TEST_CASE("field_set: text in and out") {
  for (const auto* text : {"{}", "{'f:a':{}}", "{'f:a':{'.':{},'f:b':{}}}", "{'f:a':{'f:b':{}}}",
                           "{'f:a':{'v:1':{},'v:2':{}}}"}) {
    CAPTURE(text);
    CHECK(print(set_of(text)) == text);
  }
  CHECK(print(set_of("{'f:a':{'x:b':{}}}")) == "{'f:a':{}}");  // elements of unknown kinds
  CHECK_FALSE(FieldSet::read(json("{'a':{}}")));
  CHECK_FALSE(FieldSet::read(json("[]")));
  CHECK(paths(set_of(R"({'f:a':{'.':{},'f:c':{},'f:b':{'v:1':{}}},'f:d':{'k:{\'n\':1,\'o\':2}':{}},
                         'f:z':{}})")) == ".a .z .a.c .a.b[=1] .d[n=1,o=2] ");
}

TEST_CASE("field_set: sets") {
  struct Case {
    std::string_view a, b, both, common, rest, trees;
  };
  const Case cases[] = {
      {"{'f:a':{}}", "{'f:b':{}}", "{'f:a':{},'f:b':{}}", "{}", "{'f:a':{}}", "{'f:a':{}}"},
      {"{'f:a':{}}", "{'f:a':{}}", "{'f:a':{}}", "{'f:a':{}}", "{}", "{}"},
      // A field and one below it are two.
      {"{'f:a':{}}", "{'f:a':{'f:b':{}}}", "{'f:a':{'.':{},'f:b':{}}}", "{}", "{'f:a':{}}",
       "{'f:a':{}}"},
      {"{'f:a':{'f:b':{}}}", "{'f:a':{}}", "{'f:a':{'.':{},'f:b':{}}}", "{}", "{'f:a':{'f:b':{}}}",
       "{}"},
      {"{'f:a':{'.':{},'f:b':{},'f:c':{}}}", "{'f:a':{'f:b':{}}}",
       "{'f:a':{'.':{},'f:b':{},'f:c':{}}}", "{'f:a':{'f:b':{}}}", "{'f:a':{'.':{},'f:c':{}}}",
       "{'f:a':{'.':{},'f:c':{}}}"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.a, c.b);
    const FieldSet a = set_of(c.a);
    const FieldSet b = set_of(c.b);
    CHECK(print(a | b) == c.both);
    CHECK(print(a & b) == c.common);
    CHECK(print(a - b) == c.rest);
    CHECK(print(a.without_trees(b)) == c.trees);
  }
}

TEST_CASE("typed: comparisons") {
  struct Case {
    std::string_view before, after, added, removed, modified;
  };
  const Case cases[] = {
      {"{}", "{}", "", "", ""},
      {"{'spec':{'size':1}}", "{'spec':{'size':2}}", "", "", ".spec.size "},
      {"{}", "{'spec':{'size':1}}", ".spec .spec.size ", "", ""},
      {"{'spec':{'size':1}}", "{'spec':{}}", "", ".spec.size ", ""},
      {"{'spec':{'size':1}}", "{}", "", ".spec .spec.size ", ""},
      {"{'spec':{'labels':{'a':'1'}}}", "{'spec':{'labels':{'a':'2','b':'1'}}}", ".spec.labels.b ",
       "", ".spec.labels.a "},
      {"{'spec':{'labels':{}}}", "{'spec':{}}", "", ".spec.labels ", ""},
      {"{'spec':{'order':['a']}}", "{'spec':{'order':['a','b']}}", "", "", ".spec.order "},
      {"{'spec':{'tags':['a','b']}}", "{'spec':{'tags':['b','c']}}", ".spec.tags[=\"c\"] ",
       ".spec.tags[=\"a\"] ", ""},
      {"{'spec':{'point':{'x':1}}}", "{'spec':{'point':{'y':1}}}", "", "", ".spec.point "},
      {"{'spec':{'parts':[{'name':'p','count':1}]}}",
       "{'spec':{'parts':[{'name':'q'},{'name':'p','count':2}]}}",
       ".spec.parts[name=\"q\"] .spec.parts[name=\"q\"].name ", "",
       ".spec.parts[name=\"p\"].count "},
      // The same item twice counts as one that is replaced whole.
      {"{'spec':{'tags':['a','a']}}", "{'spec':{'tags':['a']}}", ".spec.tags[=\"a\"] ",
       ".spec.tags[=\"a\"] ", ""},
      // Without a schema, lists are replaced whole.
      {"{'other':{'l':[1,2]}}", "{'other':{'l':[1,3]}}", "", "", ".other.l "},
  };
  const World world;
  const FieldSchema schema = FieldSchema::of(world.kinds.back());
  for (const auto& c : cases) {
    CAPTURE(c.before, c.after);
    const Comparison changes = kube::server::compare(json(c.before), json(c.after), schema);
    CHECK(paths(changes.added) == c.added);
    CHECK(paths(changes.removed) == c.removed);
    CHECK(paths(changes.modified) == c.modified);
  }
}

TEST_CASE("typed: random objects") {
  const World world;
  // The schema of Secrets: they have none.
  const FieldSchema schema = FieldSchema::of(world.kinds[1]);
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    kube::test::RandomJson random(seed);
    const Json a = random.object();
    const Json b = random.object();
    // An unchanged field is in no comparison, and a merge has all fields of both.
    const Comparison same = kube::server::compare(a, a, schema);
    CHECK((same.added | same.removed | same.modified).empty());
    const Json merged = kube::server::merge_typed(a, b, schema);
    CHECK(kube::server::merge_typed(merged, b, schema) == merged);
    CHECK(kube::server::compare(a, merged, schema).removed.empty());
    // Without its fields only the object itself is left.
    const FieldSet fields = kube::server::fields_of(a, schema);
    CHECK(print(set_of(print(fields))) == print(fields));
    CHECK(kube::server::without_fields(a, fields, schema).empty());
  }
}
