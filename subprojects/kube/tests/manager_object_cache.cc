#include <stdexcept>

#include "kube/client/json_scan.hh"
#include "kube/manager/object_cache.hh"
#include "kube/tests/catch.hh"

using namespace kube;

namespace {

struct Thing {
  std::string name;
  std::string resource_version;
  ObjectKey key() const { return {"ns", name}; }
};

std::string text_of(const std::string& name, int version) {
  return R"({"metadata":{"name":")" + name + R"(","namespace":"ns","resourceVersion":")" +
         std::to_string(version) + "\"}}";
}

std::shared_ptr<Thing> transform(std::string_view object) {
  const auto metadata = scan_member(object, "metadata");
  if (!metadata) return nullptr;
  const auto name = scan_string(*metadata, "name");
  if (!name) throw std::runtime_error("no name");
  return std::make_shared<Thing>(
      Thing{std::string(*name), std::string(scan_identity(object).version)});
}

struct Fixture {
  std::vector<std::string> changes;
  int transformed = 0;
  ObjectCache<Thing> cache{[this](std::string_view object) {
    ++transformed;
    return transform(object);
  }};

  Fixture() {
    cache.add_event_handler([this](const auto& before, const auto& after) {
      std::string change = before ? before->name + before->resource_version : "-";
      change += ">";
      change += after ? after->name + after->resource_version : "-";
      changes.push_back(change);
    });
  }

  void list(int version, std::vector<std::string> items) {
    cache.begin_list();
    for (const auto& item : items) cache.upsert(item);
    finish_list(version);
  }
  void finish_list(int version) {
    cache.listed_at(std::to_string(version));
    cache.end_list();
  }
  void update_if_newer(const std::string& name, int version) {
    cache.update_if_newer(std::make_shared<Thing>(Thing{name, std::to_string(version)}));
  }
  std::vector<std::string> take_changes() { return std::exchange(changes, {}); }
  std::string version_of(const std::string& name) {
    const auto found = cache.find(ObjectKey{"ns", name});
    return found ? found->resource_version : "-";
  }
};

using Changes = std::vector<std::string>;

}  // namespace

TEST_CASE_METHOD(Fixture, "a list becomes visible whole and notifies of what it changed") {
  cache.begin_list();
  cache.upsert(text_of("b", 2));
  cache.upsert(text_of("a", 1));
  CHECK(cache.size() == 0);
  CHECK_FALSE(cache.is_synced());
  finish_list(5);
  CHECK(cache.is_synced());
  CHECK(take_changes() == Changes{"->a1", "->b2"});

  list(9, {text_of("b", 7), text_of("c", 8)});
  CHECK(take_changes() == Changes{"a1>-", "b2>b7", "->c8"});
}

TEST_CASE_METHOD(Fixture, "handlers are notified of what is gone first, and of all in order") {
  list(5, {text_of("d", 1), text_of("b", 2), text_of("c", 3), text_of("a", 4)});
  CHECK(take_changes() == Changes{"->a4", "->b2", "->c3", "->d1"});
  list(9, {text_of("e", 8), text_of("a", 7)});
  CHECK(take_changes() == Changes{"b2>-", "c3>-", "d1>-", "a4>a7", "->e8"});
}

TEST_CASE_METHOD(Fixture, "of an object that pages of a list hold twice the newer stays") {
  list(5, {text_of("a", 1)});
  list(9, {text_of("b", 6), text_of("a", 7), text_of("b", 8), text_of("a", 3)});
  CHECK(version_of("a") == "7");
  CHECK(version_of("b") == "8");
}

TEST_CASE_METHOD(Fixture, "a list that failed midway leaves nothing behind") {
  list(5, {text_of("a", 1)});
  cache.begin_list();
  cache.upsert(text_of("ghost", 6));
  list(7, {text_of("a", 1)});
  CHECK(version_of("ghost") == "-");
  CHECK(take_changes() == Changes{"->a1"});
}

TEST_CASE_METHOD(Fixture, "an unchanged object keeps its projection through a relist") {
  list(5, {text_of("a", 1)});
  const auto before = cache.find(ObjectKey{"ns", "a"});
  list(9, {text_of("a", 1)});
  CHECK(cache.find(ObjectKey{"ns", "a"}) == before);
}

TEST_CASE_METHOD(Fixture, "events: newer wins, older is ignored, the end removes") {
  list(5, {text_of("a", 1)});
  cache.upsert(text_of("a", 7));
  cache.upsert(text_of("a", 6));
  cache.upsert(text_of("b", 8));
  cache.remove(text_of("a", 9));
  cache.remove(text_of("a", 9));
  CHECK(take_changes() == Changes{"->a1", "a1>a7", "->b8", "a7>-"});
}

TEST_CASE_METHOD(Fixture, "what is known in its version is not read again") {
  list(5, {text_of("a", 3), text_of("b", 4)});
  update_if_newer("c", 6);
  CHECK(transformed == 2);
  CHECK(cache.upsert(text_of("c", 6)));  // the echo of the offered version
  list(7, {text_of("a", 3), text_of("b", 4), text_of("c", 6)});
  CHECK(transformed == 2);
  CHECK(cache.upsert(text_of("c", 8)));
  CHECK(transformed == 3);
  // An echo counts as seen: if an older version is not held, its object was deleted.
  update_if_newer("d", 9);
  cache.remove(text_of("d", 9));
  update_if_newer("c", 12);
  CHECK(cache.upsert(text_of("c", 12)));
  update_if_newer("d", 9);
  CHECK(version_of("d") == "-");
}

TEST_CASE_METHOD(Fixture, "an answer to a write that overtakes its event") {
  list(5, {text_of("a", 1)});
  update_if_newer("a", 8);
  cache.upsert(text_of("a", 6));
  cache.upsert(text_of("a", 8));
  CHECK(take_changes() == Changes{"->a1", "a1>a8"});
}

TEST_CASE_METHOD(Fixture,
                 "an answer that arrives after the event of the deletion revives nothing") {
  list(5, {});
  cache.upsert(text_of("a", 6));
  cache.remove(text_of("a", 8));
  update_if_newer("a", 7);
  CHECK(version_of("a") == "-");
  update_if_newer("a", 9);  // created again since
  CHECK(version_of("a") == "9");
}

TEST_CASE_METHOD(Fixture, "what was created during a relist survives a list that is older") {
  list(5, {text_of("a", 1)});
  cache.begin_list();
  cache.upsert(text_of("a", 1));
  update_if_newer("b", 12);  // after the list's version
  update_if_newer("c", 9);   // before it, and gone again: otherwise the list would have it
  finish_list(10);
  CHECK(version_of("b") == "12");
  CHECK(version_of("c") == "-");
}

TEST_CASE_METHOD(Fixture, "a newer state offered during a relist is not undone by it") {
  list(5, {text_of("a", 1)});
  cache.begin_list();
  cache.upsert(text_of("a", 1));
  update_if_newer("a", 12);
  finish_list(10);
  CHECK(version_of("a") == "12");
}

TEST_CASE_METHOD(Fixture, "a list older than what the watch brought is the truth all the same") {
  list(5, {text_of("a", 1), text_of("same", 2)});
  cache.upsert(text_of("a", 20));
  cache.upsert(text_of("late", 21));
  cache.remove(text_of("none", 22));
  update_if_newer("answered", 30);
  take_changes();
  list(10, {text_of("a", 9), text_of("same", 2), text_of("back", 3)});
  CHECK(take_changes() == Changes{"answered30>-", "late21>-", "a20>a9", "->back3"});
  // From here on versions count from the list's.
  cache.upsert(text_of("a", 11));
  cache.upsert(text_of("late", 12));
  update_if_newer("late", 13);
  CHECK(take_changes() == Changes{"a9>a11", "->late12", "late12>late13"});
  list(14, {text_of("a", 11), text_of("back", 3), text_of("same", 2)});
  CHECK(take_changes() == Changes{"late13>-"});
}

TEST_CASE_METHOD(Fixture, "answers to writes alone do not make a list an old one") {
  list(5, {text_of("a", 1)});
  update_if_newer("a", 30);
  update_if_newer("b", 31);
  list(10, {text_of("a", 9)});
  CHECK(version_of("a") == "30");
  CHECK(version_of("b") == "31");
}

TEST_CASE_METHOD(Fixture, "the end of a predecessor does not remove its successor") {
  list(5, {text_of("a", 1)});
  update_if_newer("a", 12);  // this process has deleted and created it again
  cache.remove(text_of("a", 11));
  CHECK(version_of("a") == "12");
}

TEST_CASE_METHOD(Fixture, "malformed objects stop nothing") {
  cache.begin_list();
  CHECK_FALSE(cache.upsert("{}"));
  CHECK_FALSE(cache.upsert(R"({"metadata":{}})"));  // the transform throws
  CHECK(cache.upsert(text_of("a", 1)));
  finish_list(5);
  CHECK_FALSE(cache.upsert("nonsense"));
  CHECK_FALSE(cache.remove("nonsense"));
  CHECK(cache.size() == 1);
  // The transform throws: the object lacks what it reads, and is removed nevertheless.
  CHECK(cache.remove(R"({"metadata":{"namespace":"ns","name":"a","resourceVersion":"7","x":1}})"));
  CHECK(cache.size() == 0);
}

TEST_CASE_METHOD(Fixture, "an index finds items by namespace and value, in the order of names") {
  cache.add_index("version",
                  [](const Thing& thing) { return std::string_view(thing.resource_version); });
  const auto names = [this](std::string_view ns, std::string_view value) {
    std::string found;
    for (const Thing* each : cache.find_by("version", ns, value)) found += each->name;
    return found;
  };
  list(5, {text_of("b", 3), text_of("a", 3), text_of("c", 4)});
  CHECK(names("ns", "3") == "ab");
  CHECK(names("ns", "4") == "c");
  CHECK(names("other", "3").empty());
  CHECK(cache.find_by("none", "ns", "3").empty());
  cache.upsert(text_of("a", 6));
  CHECK(names("ns", "3") == "b");
  CHECK(names("ns", "6") == "a");
  cache.remove(text_of("a", 7));
  CHECK(names("ns", "6").empty());
  list(8, {text_of("c", 4)});  // "b" is gone
  CHECK(names("ns", "3").empty());
  CHECK(names("ns", "4") == "c");
}
