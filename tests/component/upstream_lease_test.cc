// Whether the upstream JobSet controller runs, told by its Lease at a scripted API server.
#include "controller/core/upstream_lease.hh"

#include <fmt/format.h>

#include <algorithm>

#include "kube/client/task_group.hh"
#include "kube/tests/run_task.hh"
#include "tests/component/peer.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using std::chrono::seconds;

namespace {

const std::string kPath = "/apis/coordination.k8s.io/v1/leases";

std::string lease(int version, kube::Time renewed) {
  return fmt::format(
      R"({{"metadata":{{"name":"6d4f6a47.jobset.x-k8s.io","namespace":"jobset-system","resourceVersion":"{}"}},
          "spec":{{"holderIdentity":"them","leaseDurationSeconds":15,"renewTime":"{}"}}}})",
      version, renewed.to_micro_string());
}

std::string one_line(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
  return text + "\n";
}

struct Fixture : trainer::test::ScriptedPeer {
  std::vector<bool> told;
  bool is_synced = false;
  kube::TaskGroup tasks{io.get_executor(),
                        [](std::string_view, std::string_view what) { FAIL(std::string(what)); }};

  ~Fixture() {
    tasks.cancel();
    kube::run_task(io, tasks.join());
  }
  void list(const std::string& item) {
    api.on("GET", kPath)
        .answer(200, R"({"metadata":{"resourceVersion":"5"},"items":[)" + item + "]}");
  }
  void follow() {
    tasks.spawn("lease", follow_upstream_lease(
                             client, [this](bool is_held) { told.push_back(is_held); },
                             [this] { is_synced = true; }));
    REQUIRE(kube::run_until(io, [this] { return is_synced && api.log().size() >= 2; }));
  }
  // Second by second, so that every check in between is made.
  void wait(int count) {
    for (int i = 0; i < count; ++i) {
      clock.advance(seconds(1));
      kube::settle(io);
    }
  }
  bool is_held() const { return !told.empty() && told.back(); }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a Lease is held until its duration has passed without a renewal") {
  list(lease(4, clock.now()));
  api.on("GET", kPath).stream({}).stay_open();
  follow();
  CHECK(is_held());
  wait(13);
  CHECK(is_held());
  wait(4);
  CHECK_FALSE(is_held());
}

TEST_CASE_METHOD(Fixture, "a Lease that nobody has renewed for long is not held") {
  list(lease(4, clock.now() + (-seconds(60))));
  api.on("GET", kPath).stream({}).stay_open();
  follow();
  CHECK_FALSE(is_held());
}

TEST_CASE_METHOD(Fixture,
                 "a renewal counts from when it is seen, whatever its holder's clock says") {
  list(lease(4, clock.now() + (-seconds(60))));
  const std::string renewed =
      one_line(R"({"type":"MODIFIED","object":)" + lease(6, clock.now() + (-seconds(58))) + "}");
  api.on("GET", kPath).stream({renewed}).stay_open();
  follow();
  REQUIRE(kube::run_until(io, [this] {
    wait(1);
    return is_held();
  }));
  wait(10);
  CHECK(is_held());
}

TEST_CASE_METHOD(Fixture, "a list that fails takes nothing for released") {
  list(lease(4, clock.now()));
  // History is gone, and the list that must follow is refused.
  api.on("GET", kPath).answer(410, R"({"kind":"Status","reason":"Expired","code":410})");
  api.on("GET", kPath).always().answer(403, R"({"kind":"Status","reason":"Forbidden","code":403})");
  follow();
  // Long enough for the list to be asked for, short of the Lease's end.
  wait(3);
  REQUIRE(kube::run_until(io, [this] { return api.log().size() >= 3; }));
  wait(5);
  CHECK(told == std::vector<bool>(told.size(), true));
  CHECK(is_held());
}
