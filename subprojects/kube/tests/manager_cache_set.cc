// A process has these caches, and the answer of a write enters some of them.
#include <stdexcept>

#include "kube/manager/cache_set.hh"
#include "kube/manager/stored_object.hh"
#include "kube/model/resources.hh"
#include "kube/tests/catch.hh"

using namespace kube;

namespace {

using Names = std::vector<std::string>;

struct Fixture {
  CacheSet caches;
  int made = 0;

  Fixture() {
    for (const char* selector : {"", "job", "job=a", "job!=a", "!job", "job=a,tier"})
      add(kPods, selector);
    add(kServices, "");
  }
  AnyObjectCache& add(const Resource& resource, const std::string& selector,
                      bool is_required = false) {
    const auto make = [this] {
      ++made;
      auto cache = std::make_unique<ObjectCache<StoredObject>>(transform_owner);
      cache->begin_list();
      cache->listed_at("1");
      cache->end_list();
      return cache;
    };
    return caches.add({resource, selector}, make, is_required);
  }
  // The answer of a write to the object `ns/p`.
  void answer(const Resource& resource, const std::string& labels, int version = 5,
              const std::string& kind = "") {
    caches.update_if_newer(
        resource, R"({"kind":")" + (kind.empty() ? resource.kind : kind) +
                      R"(","metadata":{"name":"p","namespace":"ns","uid":"u","resourceVersion":")" +
                      std::to_string(version) + R"(","labels":{)" + labels + "}}}");
  }
  // The selectors of the caches that have the object in this version.
  Names with_object(const Resource& resource, int version = 5) {
    Names found;
    for (const auto& entry : caches.entries()) {
      if (entry->collection.resource != resource) continue;
      const auto object = caches.get<StoredObject>(entry->collection).find(ObjectKey{"ns", "p"});
      if (object && object->resource_version == std::to_string(version))
        found.push_back(entry->collection.label_selector);
    }
    return found;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture,
                 "collections of one resource share a cache where their selectors are equal") {
  CHECK(made == 7);
  CHECK(&add(kPods, "job") == &add(kPods, "job", true));
  CHECK(made == 7);
  CHECK(&add(kPods, "job") != &add(kPods, ""));
  CHECK(&add(kPods, "") != &add(kServices, ""));
  CHECK(caches.entries().size() == 7);
  for (const auto& entry : caches.entries())
    CHECK(entry->is_required == (entry->collection == Collection{kPods, "job"}));
  CHECK_THROWS_AS(caches.get<StoredObject>({kPods, "other"}), std::logic_error);
  CHECK_THROWS_AS(caches.get<Collection>({kPods, "job"}), std::logic_error);
}

TEST_CASE_METHOD(Fixture, "the answer of a write enters each cache whose selector matches it") {
  struct Row {
    const char* labels;
    Names caches;
  };
  int version = 10;
  for (const Row& row :
       std::vector<Row>{{"", {"", "job!=a", "!job"}},
                        {R"("job":"a")", {"", "job", "job=a"}},
                        {R"("job":"b")", {"", "job", "job!=a"}},
                        {R"("job":"a","tier":"")", {"", "job", "job=a", "job=a,tier"}},
                        {R"("tier":"x")", {"", "job!=a", "!job"}}}) {
    INFO(row.labels);
    answer(kPods, row.labels, ++version);
    CHECK(with_object(kPods, version) == row.caches);
    CHECK(with_object(kServices, version).empty());
  }
  answer(kServices, "");
  CHECK(with_object(kServices) == Names{""});
}

TEST_CASE_METHOD(Fixture,
                 "an answer that is older, or no object of the resource, changes nothing") {
  answer(kPods, "", 7);
  answer(kPods, "", 6);
  CHECK(with_object(kPods, 7) == Names{"", "job!=a", "!job"});
  answer(kPods, "", 8, "Status");  // the answer of a delete
  CHECK(with_object(kPods, 8).empty());
  answer(kConfigMaps, "", 9);  // not watched
  for (const auto& resource : {kPods, kServices}) CHECK(with_object(resource, 9).empty());
}
