#include "kube/model/resources.hh"
#include "kube/server/object_store.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/server_world.hh"

using kube::Json;
using kube::kConfigMaps;
using kube::kSecrets;
using kube::ObjectKey;
using kube::server::Change;
using kube::server::ObjectStore;
using kube::test::json;

namespace {

Json config_map(std::string_view name, std::string_view value) {
  Json object = json("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'namespace':'n'}}");
  object["metadata"].set("name", name).set("uid", "uid-of-" + std::string(name));
  object.set("data", Json::object({{"a", value}}));
  return object;
}

std::string_view version_of(const kube::server::Object& object) {
  return object->get("metadata").get_string("resourceVersion");
}

}  // namespace

TEST_CASE("object_store: each change has the next version, and an equal object is none") {
  ObjectStore store(5);
  store.add_collection(kConfigMaps);
  CHECK(version_of(*store.put(kConfigMaps, config_map("a", "1"))) == "6");
  CHECK(version_of(*store.put(kConfigMaps, config_map("b", "1"))) == "7");
  CHECK(version_of(*store.put(kConfigMaps, config_map("a", "1"))) == "6");
  CHECK(version_of(*store.put(kConfigMaps, config_map("a", "2"))) == "8");
  CHECK(store.version() == 8);
  CHECK(store.all(kConfigMaps).size() == 2);
  CHECK(version_of(store.erase(kConfigMaps, {"n", "a"})) == "9");
  CHECK(store.erase(kConfigMaps, {"n", "a"}) == nullptr);
  CHECK(store.find(kConfigMaps, {"n", "a"}) == nullptr);
  CHECK(store.version() == 9);
}

TEST_CASE("object_store: places are found by uid") {
  ObjectStore store;
  store.add_collection(kConfigMaps);
  store.put(kConfigMaps, config_map("a", "1"));
  REQUIRE(store.find_uid("uid-of-a"));
  CHECK(store.find_uid("uid-of-a")->key == ObjectKey{"n", "a"});
  Json other = config_map("a", "1");
  other["metadata"].set("uid", "another");
  store.put(kConfigMaps, other);
  CHECK_FALSE(store.find_uid("uid-of-a"));
  store.erase(kConfigMaps, {"n", "a"});
  CHECK_FALSE(store.find_uid("another"));
}

TEST_CASE("object_store: observers see changes as they happen") {
  ObjectStore store;
  store.add_collection(kConfigMaps);
  std::string seen;
  store.subscribe([&seen](const Change& change) {
    seen += std::string(change.type()) + " " + change.key.name + " " +
            std::string(version_of(change.state)) + "\n";
  });
  store.put(kConfigMaps, config_map("a", "1"));
  store.put(kConfigMaps, config_map("a", "2"));
  store.put(kConfigMaps, config_map("a", "2"));
  store.erase(kConfigMaps, {"n", "a"});
  CHECK(seen == "ADDED a 2\nMODIFIED a 3\nDELETED a 4\n");
}

TEST_CASE("object_store: the history of a collection is finite") {
  ObjectStore store(1, 2);
  store.add_collection(kConfigMaps);
  store.add_collection(kSecrets);
  for (const char* name : {"a", "b", "c"}) store.put(kConfigMaps, config_map(name, "1"));
  CHECK_FALSE(store.changes_since(kConfigMaps, 1));
  REQUIRE(store.changes_since(kConfigMaps, 2));
  CHECK(store.changes_since(kConfigMaps, 2)->size() == 2);
  CHECK(store.changes_since(kConfigMaps, 3)->front().key.name == "c");
  CHECK(store.changes_since(kConfigMaps, 4)->empty());
  CHECK(store.changes_since(kSecrets, 1)->empty());
  store.compact(kConfigMaps);
  CHECK_FALSE(store.changes_since(kConfigMaps, 3));
  CHECK(store.changes_since(kConfigMaps, 4)->empty());
}

TEST_CASE("object_store: versions go on after a restart, and there is no older history") {
  ObjectStore store(20);
  store.add_collection(kConfigMaps);
  Json kept = config_map("a", "1");
  kept["metadata"].set("resourceVersion", "31");
  store.subscribe([](const Change&) { FAIL("a restored object is no change"); });
  REQUIRE(store.restore(kConfigMaps, {"n", "a"}, kube::print_json(kept)));
  CHECK(store.version() == 31);
  CHECK(version_of(store.find(kConfigMaps, {"n", "a"})) == "31");
  CHECK(store.find_uid("uid-of-a"));
  CHECK_FALSE(store.changes_since(kConfigMaps, 30));
  CHECK(store.changes_since(kConfigMaps, 31)->empty());
}

TEST_CASE("object_store: as texts, objects are read again when no one has them") {
  ObjectStore store(5, 10, ObjectStore::Form::kTexts);
  store.add_collection(kConfigMaps);
  std::string_view seen;
  store.subscribe([&seen](const Change& change) { seen = change.type(); });
  kube::server::Object put = *store.put(kConfigMaps, config_map("a", "1"));
  CHECK(store.find(kConfigMaps, {"n", "a"}) == put);  // in use: not read again
  const Json before = *put;
  put = nullptr;
  CHECK(*store.find(kConfigMaps, {"n", "a"}) == before);
  CHECK(version_of(*store.put(kConfigMaps, config_map("a", "1"))) == "6");  // equal
  store.put(kConfigMaps, config_map("a", "2"));
  CHECK(seen == "MODIFIED");
  store.erase(kConfigMaps, {"n", "a"});
  const auto changes = store.changes_since(kConfigMaps, 6);
  REQUIRE(changes);
  REQUIRE(changes->size() == 2);
  CHECK(*changes->front().before == before);
  CHECK(version_of(changes->front().after) == "7");
  CHECK(changes->back().type() == "DELETED");
  CHECK(version_of(changes->back().state) == "8");
}

TEST_CASE("object_store: what could not be read back is not stored") {
  ObjectStore store(5, 10, ObjectStore::Form::kTexts);
  store.add_collection(kConfigMaps);
  int journaled = 0;
  store.set_journal([&journaled](const Change& change) {
    journaled += change.text != nullptr && kube::parse_json(*change.text).has_value();
  });
  const kube::JsonLimits limits{.max_bytes = 1'000, .max_depth = 20, .max_values = 100};
  const auto code_of = [&](Json value) -> std::optional<kube::ErrorCode> {
    Json object = config_map("a", "1");
    object.set("value", std::move(value));
    const auto stored = store.put(kConfigMaps, std::move(object), limits);
    return stored ? std::nullopt : std::optional(stored.error().code);
  };
  Json deep;
  for (int i = 0; i < 20; ++i) deep = Json::array({std::move(deep)});
  CHECK(code_of(std::move(deep)) == kube::ErrorCode::kInvalid);
  CHECK(code_of(Json(Json::Array(100))) == kube::ErrorCode::kInvalid);
  CHECK(code_of("\xff") == kube::ErrorCode::kInvalid);
  CHECK(code_of(std::string(1'000, 'x')) == kube::ErrorCode::kTooLarge);
  CHECK(journaled == 0);
  CHECK(store.version() == 5);
  CHECK(store.all(kConfigMaps).empty());
  CHECK_FALSE(code_of("fits"));
  CHECK(journaled == 1);
}

TEST_CASE("object_store: a text that is no object of its kind and key is not restored") {
  ObjectStore store;
  store.add_collection(kConfigMaps);
  const auto why = [&store](const std::string& text, const char* name = "a") {
    const auto restored = store.restore(kConfigMaps, {"n", name}, text);
    return restored ? "" : restored.error().message;
  };
  Json whole = config_map("a", "1");
  whole["metadata"].set("resourceVersion", "7");
  CHECK_THAT(why("{"), Catch::Contains("bad JSON"));
  for (const char* text : {"5", "{}", "[]", "null"}) CHECK(why(text) == "kind is not ConfigMap");
  CHECK(why(print_json(whole), "b") == "metadata does not name n/b");
  struct Row {
    const char* member;
    const char* value;
    const char* problem;
  };
  const Row rows[] = {
      {"kind", "'Secret'", "kind is not ConfigMap"},
      {"apiVersion", "null", "apiVersion is not one of v1"},
      {"apiVersion", "'apps/v1'", "apiVersion is not one of v1"},
      {"metadata", "[]", "metadata does not name n/a"},
      {"metadata.name", "5", "metadata does not name n/a"},
      {"metadata.namespace", "'b'", "metadata does not name n/a"},
      {"metadata.uid", "null", "metadata.uid is missing or no text"},
      {"metadata.resourceVersion", "null", "metadata.resourceVersion is missing or no number"},
      {"metadata.resourceVersion", "7", "metadata.resourceVersion is missing or no number"},
      {"metadata.resourceVersion", "'x'", "metadata.resourceVersion is missing or no number"},
  };
  for (const Row& row : rows) {
    Json damaged = whole;
    const std::string_view member(row.member);
    const std::size_t dot = member.find('.');
    Json& owner = dot == member.npos ? damaged : damaged["metadata"];
    owner.set(member.substr(dot == member.npos ? 0 : dot + 1), json(row.value));
    CHECK(why(print_json(damaged)) == row.problem);
  }
  CHECK(store.all(kConfigMaps).empty());
  CHECK(why(print_json(whole)) == "");
  Json same_uid = whole;
  same_uid["metadata"].set("name", "b");
  CHECK(why(print_json(same_uid), "b") == "metadata.uid is that of ConfigMap n/a");
}
