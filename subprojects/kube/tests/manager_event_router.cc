// Events reach the queues of the controllers that have the owner.
#include <string>
#include <vector>

#include "kube/manager/event_router.hh"
#include "kube/tests/catch.hh"

using namespace kube;

TEST_CASE(
    "each controller has an owner index of its own, since versions of a resource share uids") {
  EventRouter router;
  std::vector<std::string> enqueued;
  const auto add = [&](std::string name) {
    return router.add_controller([&enqueued, name](const ObjectKey& key, Debounce) {
      enqueued.push_back(name + " " + key.to_string());
    });
  };
  const std::size_t old_version = add("v1");
  const std::size_t new_version = add("v2");
  router.set_owner(old_version, "u", {"ns", "j"});
  router.set_owner(new_version, "u", {"ns", "j"});
  CHECK(router.enqueue_owner(old_version, "ns", "u", Debounce::kNone));
  CHECK(router.enqueue_owner(new_version, "ns", "u", Debounce::kNone));
  CHECK(enqueued == std::vector<std::string>{"v1 ns/j", "v2 ns/j"});
  // An owner reference counts in its own namespace only.
  CHECK_FALSE(router.enqueue_owner(new_version, "other", "u", Debounce::kNone));
  router.remove_owner(old_version, "u");
  CHECK(router.find_owner(old_version, "ns", "u") == nullptr);
  CHECK(router.find_owner(new_version, "ns", "u") != nullptr);
}
