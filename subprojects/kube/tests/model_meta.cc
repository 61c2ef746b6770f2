#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/model/json_text.hh"
#include "kube/model/meta.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/json.hh"

using kube::Condition;
using kube::Json;
using kube::ObjectMeta;
using kube::print_json;
using kube::StringMap;
using kube::Time;
using kube::test::json;

namespace {}  // namespace

TEST_CASE("ObjectMeta reads what controllers decide by") {
  const auto meta =
      ObjectMeta::of(json(R"({"metadata":{"name":"n","generateName":"g-","namespace":"ns","uid":"u",
    "resourceVersion":"12","generation":3,"creationTimestamp":"2026-08-20T10:00:00Z","deletionTimestamp":null,
    "labels":{"a":"1","b":2},"annotations":{"c":"d"},"finalizers":["f",1],
    "ownerReferences":[{"apiVersion":"v1","kind":"A","name":"x","uid":"1"},
      {"apiVersion":"batch/v1","kind":"Job","name":"y","uid":"2","controller":true,"blockOwnerDeletion":true}]}})"));
  CHECK(meta.key() == kube::ObjectKey{"ns", "n"});
  CHECK(meta.key().to_string() == "ns/n");
  CHECK(meta.generate_name == "g-");
  CHECK(meta.uid == "u");
  CHECK(meta.resource_version == "12");
  CHECK(meta.generation == 3);
  CHECK(meta.creation_timestamp->to_string() == "2026-08-20T10:00:00Z");
  CHECK_FALSE(meta.deletion_timestamp);
  CHECK(meta.labels == StringMap{{"a", "1"}});
  CHECK(meta.annotations == StringMap{{"c", "d"}});
  CHECK(meta.finalizers == std::vector<std::string>{"f"});
  REQUIRE(meta.controller());
  CHECK(
      print_json(meta.controller()->to_json()) ==
      R"({"apiVersion":"batch/v1","blockOwnerDeletion":true,"controller":true,"kind":"Job","name":"y","uid":"2"})");
  CHECK(print_json(meta.owner_references[0].to_json()) ==
        R"({"apiVersion":"v1","kind":"A","name":"x","uid":"1"})");
}

TEST_CASE("ObjectMeta takes anything") {
  for (const auto text : {"null", "[]", "{}", R"({"metadata":[]})",
                          R"({"metadata":{"labels":[],"name":1,"ownerReferences":[1]}})"}) {
    INFO(text);
    const auto meta = ObjectMeta::of(json(text));
    CHECK(meta.name.empty());
    CHECK(meta.labels.empty());
    CHECK(meta.controller() == nullptr);
  }
}

TEST_CASE("string maps") {
  const StringMap map{{"b", "2"}, {"a", "1"}};
  CHECK(print_json(kube::to_json(map)) == R"({"a":"1","b":"2"})");
  const Json back = kube::to_json(map);
  CHECK(kube::read_string_map(&back) == map);
  CHECK(kube::read_string_map(nullptr).empty());
}

TEST_CASE("conditions are read and written") {
  const Json value = json(R"({"type":"Complete","status":"True","reason":"R","message":"m",
                             "lastTransitionTime":"2026-08-20T10:00:00Z","observedGeneration":2})");
  const Condition condition = Condition::read(value);
  CHECK(condition.is_true());
  CHECK(condition.to_json() == value);
  CHECK(print_json(Condition{}.to_json()) == R"({"message":"","reason":"","status":"","type":""})");
  CHECK(Condition::read(Json()) == Condition{});
}

TEST_CASE("set_condition moves the transition time only when the status flips") {
  const Time t1 = Time::from_seconds(1);
  const Time t2 = Time::from_seconds(2);
  std::vector<Condition> conditions;
  const auto make = [](std::string status, std::string reason, std::string message = "m") {
    Condition condition;
    condition.type = "Ready";
    condition.status = std::move(status);
    condition.reason = std::move(reason);
    condition.message = std::move(message);
    return condition;
  };
  CHECK(kube::set_condition(conditions, make("False", "A"), t1));
  REQUIRE(conditions.size() == 1);
  CHECK(conditions[0].last_transition_time == t1);
  CHECK_FALSE(kube::set_condition(conditions, make("False", "A"), t2));
  CHECK(kube::set_condition(conditions, make("False", "B"), t2));
  CHECK(conditions[0].reason == "B");
  CHECK(kube::set_condition(conditions, make("False", "B", "other"), t2));
  CHECK(conditions[0].message == "other");
  CHECK(conditions[0].last_transition_time == t1);
  CHECK(kube::set_condition(conditions, make("True", "B"), t2));
  CHECK(conditions[0].last_transition_time == t2);
  Condition dated = make("False", "B");
  dated.last_transition_time = Time::from_seconds(9);
  dated.observed_generation = 4;
  CHECK(kube::set_condition(conditions, dated, t2));
  CHECK(conditions[0] == dated);
  CHECK(conditions.size() == 1);
  CHECK(kube::is_condition_true(conditions, "Ready") == false);
  CHECK(kube::find_condition(conditions, "Other") == nullptr);
}

TEST_CASE("resource versions compare as numbers of any length") {
  CHECK(kube::is_newer_version("10", "9"));
  CHECK_FALSE(kube::is_newer_version("9", "10"));
  CHECK_FALSE(kube::is_newer_version("9", "9"));
  CHECK(kube::is_newer_version("100000000000000000000000000001", "100000000000000000000000000000"));
  CHECK(kube::is_newer_version("1", "0"));
  CHECK_FALSE(kube::is_newer_version("007", "7"));
  CHECK_FALSE(kube::is_newer_version("", "1"));
  CHECK_FALSE(kube::is_newer_version("1", ""));
  CHECK_FALSE(kube::is_newer_version("2a", "1"));
  CHECK_FALSE(kube::is_newer_version("-2", "-3"));
}

namespace kube {

TEST_CASE("keys differ where either half does") {
  std::set<std::size_t> hashes;
  for (int i = 0; i < 1'000; ++i) {
    hashes.insert(ObjectKeyHash()(ObjectKey{"same", "n" + std::to_string(i)}));
    hashes.insert(ObjectKeyHash()(ObjectKey{"n" + std::to_string(i), "same"}));
  }
  CHECK(hashes.size() == 2'000);
}

TEST_CASE("a key is found by a view of it") {
  const ObjectKey key{"ns", "name"};
  CHECK(ObjectKeyHash()(key) == ObjectKeyHash()(ObjectKeyView{"ns", "name"}));
  CHECK(key == ObjectKeyView{"ns", "name"});
  CHECK_FALSE(key == ObjectKeyView{"ns", "other"});
  CHECK_FALSE(key == ObjectKeyView{"other", "name"});
}

}  // namespace kube

TEST_CASE("any text becomes a reason that the API accepts") {
  for (const auto& [text, reason] : std::vector<std::pair<std::string, std::string>>{
           {"Rule_a,b:c", "Rule_a,b:c"},
           {"Rule_x-y z", "Rule_x_y_z"},
           {"Rule:", "Rule_"},
           {std::string(2'000, 'a'), std::string(1'024, 'a')}}) {
    CHECK(kube::condition_reason(text) == reason);
  }
}
