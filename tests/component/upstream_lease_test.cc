// These tests find out, by its Lease on a scripted API server, whether the upstream JobSet
// controller runs.
#include "controller/kinds/common/upstream_lease.hh"

#include <fmt/format.h>

#include <algorithm>

#include "controller/kinds/jobset/jobset_ownership.hh"
#include "kube/client/task_group.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_peer.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using std::chrono::seconds;

namespace {

const std::string kLeasesPath = "/apis/coordination.k8s.io/v1/leases";

const std::string kLeaseWebhooks =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"
    "jobset-validating-webhook-configuration";

std::string lease(int version, kube::Time renewed, const std::string& ns = "jobset-system",
                  int duration = 15) {
  return fmt::format(
      R"({{"metadata":{{"name":"6d4f6a47.jobset.x-k8s.io","namespace":"{}","resourceVersion":"{}"}},
          "spec":{{"holderIdentity":"them","leaseDurationSeconds":{},"renewTime":"{}"}}}})",
      ns, version, duration, renewed.to_micro_string());
}

std::string one_line(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
  return text + "\n";
}

struct UpstreamLeaseFixture : kube::test::ScriptedPeer {
  std::vector<bool> reported;
  bool is_synced = false;
  std::size_t ignored = 0;
  kube::TaskGroup tasks{io.get_executor(),
                        [](std::string_view, std::string_view what) { FAIL(std::string(what)); }};

  ~UpstreamLeaseFixture() {
    tasks.cancel();
    kube::run_task(io, tasks.join());
  }
  static std::string list_of(const std::string& item) {
    return R"({"metadata":{"resourceVersion":"5"},"items":[)" + item + "]}";
  }
  void list(const std::string& item) { api.on("GET", kLeasesPath).answer(200, list_of(item)); }
  void follow(std::set<std::string, std::less<>> namespaces = {}) {
    UpstreamLeaseOptions options;
    options.upstream = kUpstreamJobSetController;
    options.namespaces = std::move(namespaces);
    options.on_change = [this](bool is_held) { reported.push_back(is_held); };
    options.on_synced = [this] { is_synced = true; };
    options.on_ignored = [this](std::string_view, std::size_t count) { ignored = count; };
    tasks.spawn("lease", follow_upstream_lease(client, std::move(options), log));
    REQUIRE(kube::run_until(io, [this] { return is_synced && api.log().size() >= 2; }));
  }
  // Time moves second by second, so that every check in between is made.
  void wait(int count) {
    for (int i = 0; i < count; ++i) {
      clock.advance(seconds(1));
      kube::settle(io);
    }
  }
  // Time moves second by second, for as long as it takes.
  template <class Condition>
  bool until(Condition condition) {
    for (int i = 0; i < 500 && !condition(); ++i) {
      wait(1);
      io.restart();
      io.run_for(std::chrono::milliseconds(1));  // answers arrive
    }
    return condition();
  }
  bool is_held() const { return !reported.empty() && reported.back(); }
};

}  // namespace

TEST_CASE_METHOD(UpstreamLeaseFixture,
                 "a Lease is held until its duration has passed without a renewal") {
  list(lease(4, clock.now()));
  api.on("GET", kLeasesPath).stream({}).stay_open();
  list(lease(4, clock.now()));  // the former version
  follow();
  CHECK(is_held());
  wait(13);
  CHECK(is_held());
  CHECK(api.log().size() == 2);
  REQUIRE(until([this] { return !is_held(); }));
  CHECK_THAT(api.lines().at(2),
             Catch::Contains("fieldSelector=metadata.name%3D6d4f6a47.jobset.x-k8s.io"));
  // The Lease is over now, and is not listed again.
  wait(40);
  CHECK(api.log().size() == 3);
}

TEST_CASE_METHOD(UpstreamLeaseFixture,
                 "a Lease that is renewed stays held while the watch's connection is dead") {
  list(lease(4, clock.now()));
  api.on("GET", kLeasesPath).stream({}).stay_open();
  bool is_alive = true;
  kube::Time last;
  api.on("GET", kLeasesPath).always().reply([&](const kube::ReceivedRequest&) {
    if (is_alive) last = clock.now();
    return kube::ScriptedReply(200, list_of(lease(6, last)));
  });
  follow();
  REQUIRE(until([this] { return api.log().size() == 6; }));
  CHECK(reported == std::vector<bool>(reported.size(), true));
  is_alive = false;
  REQUIRE(until([this] { return !is_held(); }));
}

TEST_CASE_METHOD(UpstreamLeaseFixture, "a Lease that cannot be looked up stays held") {
  list(lease(4, clock.now()));
  api.on("GET", kLeasesPath).stream({}).stay_open();
  api.on("GET", kLeasesPath).answer(403, R"({"kind":"Status","code":403})").times(3);
  list(lease(4, clock.now()));
  follow();
  REQUIRE(until([this] { return api.log().size() == 5; }));
  CHECK(reported == std::vector<bool>(reported.size(), true));
  REQUIRE(until([this] { return !is_held(); }));
  CHECK(api.log().size() == 6);
}

TEST_CASE_METHOD(UpstreamLeaseFixture, "a Lease that is gone when it is looked up is not held") {
  list(lease(4, clock.now()));
  api.on("GET", kLeasesPath).stream({}).stay_open();
  list("");
  follow();
  REQUIRE(until([this] { return !is_held(); }));
}

TEST_CASE_METHOD(UpstreamLeaseFixture,
                 "a Lease that is released is not held at once, and not looked up") {
  list(lease(4, clock.now()));
  std::string released = lease(6, clock.now());
  released.replace(released.find("them"), 4, "");
  api.on("GET", kLeasesPath)
      .stream({one_line(R"({"type":"MODIFIED","object":)" + released + "}")})
      .stay_open();
  follow();
  REQUIRE(until([this] { return !is_held(); }));
  CHECK(api.log().size() == 2);
}

TEST_CASE_METHOD(UpstreamLeaseFixture, "a Lease that was not renewed for long is not held") {
  list(lease(4, clock.now() + (-seconds(60))));
  api.on("GET", kLeasesPath).stream({}).stay_open();
  follow();
  CHECK_FALSE(is_held());
}

TEST_CASE_METHOD(UpstreamLeaseFixture,
                 "a renewal counts from when it is seen, whatever its holder's clock says") {
  list(lease(4, clock.now() + (-seconds(60))));
  const std::string renewed =
      one_line(R"({"type":"MODIFIED","object":)" + lease(6, clock.now() + (-seconds(58))) + "}");
  api.on("GET", kLeasesPath).stream({renewed}).stay_open();
  follow();
  REQUIRE(until([this] { return is_held(); }));
  wait(10);
  CHECK(is_held());
}

TEST_CASE_METHOD(UpstreamLeaseFixture, "a list that fails changes nothing") {
  list(lease(4, clock.now()));
  // The changes since then are gone, and the list that must follow is refused.
  api.on("GET", kLeasesPath).answer(410, R"({"kind":"Status","reason":"Expired","code":410})");
  api.on("GET", kLeasesPath)
      .always()
      .answer(403, R"({"kind":"Status","reason":"Forbidden","code":403})");
  follow();
  // This is long enough for the list to be requested, and ends before the Lease.
  wait(3);
  REQUIRE(kube::run_until(io, [this] { return api.log().size() >= 3; }));
  wait(5);
  CHECK(reported == std::vector<bool>(reported.size(), true));
  CHECK(is_held());
}

TEST_CASE_METHOD(UpstreamLeaseFixture, "a Lease that a tenant has created changes nothing") {
  list(lease(4, clock.now(), "team-a"));
  api.on("GET", kLeasesPath).stream({}).stay_open();
  follow({"team-b"});
  REQUIRE(until([this] { return ignored == 1; }));
  CHECK(reported == std::vector<bool>{false});
  const auto lines = api.lines();
  CHECK(std::count(lines.begin(), lines.end(), "GET " + kLeaseWebhooks) == 1);
  // Upstream's webhooks are read again while it is there, and nothing else is.
  wait(12);
  CHECK(reported == std::vector<bool>{false});
  REQUIRE(until([this] { return ignored == 0; }));
  CHECK(api.log().size() <= 5);
}

TEST_CASE_METHOD(UpstreamLeaseFixture, "a Lease is believed where upstream can be") {
  SECTION("a namespace that is configured") {
    list(lease(4, clock.now(), "team-a"));
    api.on("GET", kLeasesPath).stream({}).stay_open();
    follow({"team-a"});
    CHECK(api.log().size() == 2);
  }
  SECTION("that of upstream's webhooks, which are read before anything is reported") {
    list(lease(4, clock.now(), "queues"));
    api.on("GET", kLeasesPath).stream({}).stay_open();
    api.on("GET", kLeaseWebhooks).answer(200, R"({"webhooks":[{"clientConfig":{"url":"https://x"}},
                         {"clientConfig":{"service":{"namespace":"queues","name":"s"}}}]})");
    follow();
  }
  CHECK(reported == std::vector<bool>{true});
  CHECK(ignored == 0);
}

TEST_CASE_METHOD(UpstreamLeaseFixture, "webhooks that may not be read name no namespace") {
  list(lease(4, clock.now(), "team-a"));
  api.on("GET", kLeasesPath).stream({}).stay_open();
  api.on("GET", kLeaseWebhooks).always().answer(403, R"({"kind":"Status","code":403})");
  follow();
  CHECK(reported == std::vector<bool>{false});
}

TEST_CASE_METHOD(UpstreamLeaseFixture,
                 "a Lease for 68 years is over a minute after its last renewal") {
  list(lease(4, clock.now(), "jobset-system", 2147483647));
  api.on("GET", kLeasesPath).stream({}).stay_open();
  list(lease(4, clock.now(), "jobset-system", 2147483647));
  follow();
  wait(58);
  CHECK(is_held());
  const auto begin = clock.steady();
  REQUIRE(until([this] { return !is_held(); }));
  CHECK(clock.steady() - begin < seconds(10));
}
