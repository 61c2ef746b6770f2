#include "kube/model/json.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/random_json.hh"

using kube::Json;
using kube::JsonObject;

TEST_CASE("objects do not depend on the order in which members were added") {
  Json a;
  a.set("x", 1).set("a", 2).set("m", 3);
  Json b;
  b.set("m", 3).set("x", 1).set("a", 2);
  CHECK(a == b);
  CHECK(a == Json::object({{"a", 2}, {"m", 3}, {"x", 1}}));
  std::string names;
  for (const auto& [name, value] : a.as_object()) names += name;
  CHECK(names == "amx");
  CHECK(a.erase("m"));
  CHECK_FALSE(a.erase("m"));
  CHECK(a.size() == 2);
}

TEST_CASE("members in any order are sorted, and of equal names the last one stays") {
  CHECK(JsonObject::of({{"b", 1}, {"a", 2}}).begin()->first == "a");
  const JsonObject object = JsonObject::of({{"b", 1}, {"a", 2}, {"b", 3}});
  CHECK(object.size() == 2);
  CHECK(*object.find("b") == Json(3));
  CHECK(JsonObject::of({}).empty());
}

TEST_CASE("members at once agree with members one by one") {
  kube::test::RandomJson random(61);
  for (int i = 0; i < 2000; ++i) {
    JsonObject::Members members;
    JsonObject expected;
    for (auto count = random.below(40); count > 0; --count) {
      std::string name = random.below(3) == 0 ? random.name() : std::to_string(random.below(30));
      const Json value = static_cast<int>(count);
      expected[name] = value;
      members.emplace_back(std::move(name), value);
    }
    REQUIRE(JsonObject::of(std::move(members)) == expected);
  }
}

TEST_CASE("integers and doubles differ") {
  CHECK(Json(1) != Json(1.0));
  CHECK(Json(1).as_double() == 1.0);
  CHECK(Json(1).is_number());
  CHECK(Json(true) != Json(1));
  CHECK(Json() != Json(false));
}

TEST_CASE("lookups never throw") {
  const Json value = Json::object(
      {{"s", "x"}, {"n", 1}, {"b", true}, {"o", Json::object({{"i", Json::array({1})}})}});
  CHECK(value.get_string("s") == "x");
  CHECK(value.get_string("n", "d") == "d");
  CHECK(value.get_int("n") == 1);
  CHECK(value.get_int("s", 7) == 7);
  CHECK(value.get_bool("b"));
  CHECK(value.get_bool("none", true));
  CHECK(value.get_array("s").empty());
  CHECK(value.get_object("o").size() == 1);
  CHECK(value.find_path({"o", "i"})->size() == 1);
  CHECK(value.find_path({"o", "i", "x"}) == nullptr);
  CHECK(Json(1).find("x") == nullptr);
  CHECK(Json().get_object("x").empty());
  CHECK_THROWS_AS(Json(1).as_string(), std::bad_variant_access);
}

TEST_CASE("emptiness and types") {
  CHECK(Json().empty());
  CHECK(Json("").empty());
  CHECK(Json::object().empty());
  CHECK_FALSE(Json(0).empty());
  CHECK_FALSE(Json(false).empty());
  CHECK(Json().type_name() == "null");
  CHECK(Json(1).type_name() == "integer");
  CHECK(Json(1.5).type_name() == "number");
  CHECK(Json::array().type_name() == "array");
  Json list;
  list.push_back(1);
  list.push_back("x") = 2;
  CHECK(list == Json::array({1, 2}));
}

TEST_CASE("the weight of a value counts its values, its names and its text") {
  CHECK(weight_of(Json()) == 1);
  CHECK(weight_of(Json(std::string(64, 'x'))) == 2);
  CHECK(weight_of(Json::array({1, Json::array({2, 3})})) == 5);
  Json object = Json::object({{"a", 1}});
  CHECK(weight_of(object) == 2);
  object.set(std::string(6400, 'n'), "");
  CHECK(weight_of(object) == 103);
}
