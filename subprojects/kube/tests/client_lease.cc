#include "kube/client/lease.hh"
#include "kube/client/task_group.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/fake_clock.hh"
#include "kube/tests/merge_patch.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_server.hh"

using namespace kube;

namespace {

const char* const kAll = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";
const char* const kOne = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/lead";

// One Lease as the API server keeps it, optimistic locking included.
struct Fixture {
  asio::io_context io;
  FakeClock clock;
  FakeRandom random;  // a jitter of 1 + 1.2 / 2
  ScriptedServer server{io};
  std::unique_ptr<Transport> transport = make_transport(io, server.config(), TransportLimits());
  ApiClient client{*transport, clock, random};
  Json lease;
  std::int64_t version = 0;
  bool is_failing = false;
  bool holds_answers = false;  // holds answers of writes, which happen nevertheless
  Milliseconds write_takes{0};

  Fixture() {
    server.on("GET", kOne).reply([this](const ReceivedRequest&) { return read(); }).always();
    server.on("POST", kAll)
        .reply([this](const ReceivedRequest& request) {
          return lease.is_null() ? store(*parse_json(request.body)) : refuse(409, "AlreadyExists");
        })
        .always();
    server.on("PATCH", kOne)
        .reply([this](const ReceivedRequest& request) {
          const Json patch = *parse_json(request.body);
          const Json* const desired = patch.find_path({"metadata", "resourceVersion"});
          if (desired == nullptr || desired->as_string() != std::to_string(version)) {
            return refuse(409, "Conflict");
          }
          return store(test::merge_patch(lease, patch));
        })
        .always();
  }

  ScriptedReply refuse(int status, const std::string& reason) const {
    return ScriptedReply(
        status,
        print_json(Json::object({{"kind", "Status"}, {"reason", reason}, {"message", reason}})));
  }
  ScriptedReply read() const {
    if (is_failing) return refuse(403, "Forbidden");
    return lease.is_null() ? refuse(404, "NotFound") : ScriptedReply(200, print_json(lease));
  }
  ScriptedReply store(Json changed) {
    if (is_failing) return refuse(403, "Forbidden");
    lease = std::move(changed);
    lease["metadata"].set("resourceVersion", std::to_string(++version));
    clock.advance(std::exchange(write_takes, Milliseconds(0)));
    ScriptedReply reply(200, print_json(lease));
    reply.is_held = std::exchange(holds_answers, false);
    return reply;
  }
  const Json& spec() const { return *lease.find("spec"); }
  std::string holder() const {
    return lease.is_null() ? "-" : std::string(spec().get_string("holderIdentity"));
  }

  // Moves time until nothing more happens within it.
  void pass(Milliseconds time) {
    for (auto left = time; left.count() > 0; left -= Milliseconds(100)) {
      clock.advance(Milliseconds(100));
      quiesce();
    }
  }
  // Lets requests that are under way end: the loopback needs a moment.
  void quiesce() {
    std::size_t seen = 0;
    do {
      seen = server.log().size();
      run_until(
          io, [this, seen] { return server.log().size() != seen || clock.timers() >= runners; },
          std::chrono::seconds(5));
    } while (server.log().size() != seen);
  }
  std::size_t runners = 0;  // candidates, each of which sleeps when it has nothing to do
};

struct Candidate {
  Fixture& world;
  std::vector<std::string> log;
  Clock::Steady may_write_until{};
  TaskGroup group;

  Candidate(Fixture& world_, const std::string& name)
      : world(world_), group(world_.io.get_executor(), [this](auto, std::string_view what) {
          log.push_back("!" + std::string(what));
        }) {
    LeaseOptions options;
    options.key = ObjectKey{"ns", "lead"};
    options.identity = name;
    options.on_holder = [this](std::string_view holder) {
      log.push_back("sees " + std::string(holder));
    };
    options.on_renewed = [this](Clock::Steady until) { may_write_until = until; };
    options.on_restored = [this] { log.push_back("restored"); };
    options.on_error = [this](std::string_view what) {
      log.push_back("error " + std::string(what));
    };
    group.spawn(name, run_leader_election(
                          world.client, options, [this] { log.push_back("started"); },
                          [this] { log.push_back("stopped"); }));
    if (world.holds_answers) return;  // it has something to wait for
    ++world.runners;
    world.quiesce();
  }
  void cancel() {
    if (world.runners > 0) --world.runners;
    group.cancel();
    run_task(world.io, group.join());
  }
};

using Log = std::vector<std::string>;

}  // namespace

TEST_CASE_METHOD(Fixture, "a lease that does not exist is created, as the API wants it") {
  Candidate a(*this, "a");
  CHECK(a.log == Log{"sees a", "started"});
  CHECK(spec().get_string("acquireTime") == "2026-01-01T00:00:00.000000Z");
  CHECK(spec().get_string("renewTime") == "2026-01-01T00:00:00.000000Z");
  CHECK(spec().get_int("leaseDurationSeconds") == 15);
  CHECK(spec().get_int("leaseTransitions") == 0);

  pass(Milliseconds(10'000));
  CHECK(spec().get_string("renewTime") == "2026-01-01T00:00:10.000000Z");
  CHECK(spec().get_string("acquireTime") == "2026-01-01T00:00:00.000000Z");
  // A renewal is one request: the holder knows the version.
  const auto lines = server.lines();
  CHECK(std::count(lines.begin(), lines.end(), std::string("GET ") + kOne) == 1);
  CHECK(lines.size() == 2 + 5);
  a.cancel();
}

TEST_CASE_METHOD(Fixture, "a holder that leaves gives the lease back, and the next one starts") {
  Candidate a(*this, "a");
  Candidate b(*this, "b");
  pass(Milliseconds(30'000));
  CHECK(b.log == Log{"sees a"});
  a.cancel();
  CHECK(a.log == Log{"sees a", "started", "stopped"});
  CHECK(a.may_write_until == Clock::Steady{});
  CHECK(holder().empty());
  CHECK(spec().get_int("leaseDurationSeconds") == 1);
  pass(Milliseconds(4'000));
  CHECK(b.log == Log{"sees a", "sees ", "sees b", "started"});
  CHECK(spec().get_int("leaseTransitions") == 1);
  b.cancel();
}

// The write shows in no answer that the holder has seen: its version is an old one.
TEST_CASE_METHOD(Fixture, "a holder that leaves while it renews gives the lease back, too") {
  Candidate a(*this, "a");
  holds_answers = true;
  clock.advance(Milliseconds(2'000));
  REQUIRE(run_until(io, [this] { return version == 2; }));
  a.cancel();
  CHECK(a.log == Log{"sees a", "started", "stopped"});
  CHECK(version == 3);
  CHECK(holder().empty());
}

TEST_CASE_METHOD(Fixture, "who leaves while it takes the lease gives it back") {
  const bool is_new = GENERATE(true, false);
  CAPTURE(is_new);
  if (!is_new) {
    lease = *parse_json(
        R"({"metadata":{"resourceVersion":"0"},"spec":{"holderIdentity":"","leaseDurationSeconds":1}})");
  }
  holds_answers = true;
  Candidate a(*this, "a");
  REQUIRE(run_until(io, [this] { return version == 1; }));
  CHECK(holder() == "a");
  a.cancel();
  CHECK(a.log == (is_new ? Log{"sees a"} : Log{"sees ", "sees a"}));
  CHECK(holder().empty());
}

TEST_CASE_METHOD(Fixture, "who leaves while another takes the lease leaves it alone") {
  Candidate a(*this, "a");
  lease["spec"].set("holderIdentity", "thief");
  lease["metadata"].set("resourceVersion", std::to_string(++version));
  a.cancel();
  CHECK(a.log == Log{"sees a", "started", "stopped", "sees thief"});
  CHECK(holder() == "thief");
}

TEST_CASE_METHOD(Fixture, "a holder that has vanished is followed after its time") {
  lease = *parse_json(
      R"({"metadata":{"resourceVersion":"7"},"spec":{"holderIdentity":"lost",)"
      R"("leaseDurationSeconds":15,"leaseTransitions":4,"renewTime":"1999-01-01T00:00:00Z"}})");
  version = 7;
  Candidate b(*this, "b");
  pass(Milliseconds(14'000));
  CHECK(b.log == Log{"sees lost"});  // its clock is not trusted
  pass(Milliseconds(6'000));
  CHECK(b.log == Log{"sees lost", "sees b", "started"});
  CHECK(spec().get_int("leaseTransitions") == 5);
  b.cancel();
}

TEST_CASE_METHOD(Fixture, "a holder that cannot renew stops before its lease is over") {
  Candidate a(*this, "a");
  is_failing = true;
  --runners;  // it ends by itself
  std::int64_t waited = 0;
  while (a.log.back() != "stopped" && waited < 20'000) {
    clock.advance(Milliseconds(100));
    waited += 100;
    run_until(io, [&] { return a.log.back() == "stopped" || clock.timers() > 0; });
  }
  CHECK(a.log.back() == "stopped");
  CHECK(waited >= 8'000);
  CHECK(waited < 15'000);
  CHECK(std::count(a.log.begin(), a.log.end(), "error Forbidden") > 0);
  run_task(io, a.group.join());
}

TEST_CASE_METHOD(Fixture, "how long a holder may write counts from when its renewal was sent") {
  const auto begin = clock.since_boot();
  write_takes = Milliseconds(3'000);
  Candidate a(*this, "a");
  CHECK(clock.since_boot() == begin + Milliseconds(3'000));
  CHECK(a.may_write_until == begin + Milliseconds(12'500));
  pass(Milliseconds(2'000));
  CHECK(a.may_write_until == begin + Milliseconds(5'000 + 12'500));
  a.cancel();
}

TEST_CASE_METHOD(Fixture,
                 "a holder that was stopped for longer may not write until it has renewed") {
  Candidate a(*this, "a");
  const bool is_asleep = GENERATE(true, false);  // the machine, or the process alone
  CAPTURE(is_asleep);
  if (is_asleep) {
    clock.suspend(std::chrono::seconds(30));
  } else {
    clock.advance(std::chrono::seconds(30));
  }
  CHECK(a.may_write_until < clock.since_boot());
  SECTION("nothing has changed") {
    pass(Milliseconds(2'000));
    CHECK(a.log == Log{"sees a", "started"});
    CHECK(a.may_write_until > clock.since_boot());
    a.cancel();
  }
  SECTION("another has taken the lease") {
    lease["spec"].set("holderIdentity", "thief");
    lease["metadata"].set("resourceVersion", std::to_string(++version));
    --runners;
    clock.advance(Milliseconds(2'000));
    REQUIRE(run_until(io, [&a] { return a.log.back() == "stopped"; }));
    CHECK(a.may_write_until < clock.since_boot());
    run_task(io, a.group.join());
  }
}

TEST_CASE_METHOD(Fixture, "holders and others notice an API server of an earlier state") {
  Candidate a(*this, "a");
  Candidate b(*this, "b");
  pass(Milliseconds(10'000));
  REQUIRE(version > 3);
  CHECK(std::count(a.log.begin(), a.log.end(), "restored") == 0);
  CHECK(std::count(b.log.begin(), b.log.end(), "restored") == 0);
  version = 2;
  lease["metadata"].set("resourceVersion", "2");
  pass(Milliseconds(6'000));
  CHECK(std::count(a.log.begin(), a.log.end(), "restored") == 1);
  CHECK(std::count(b.log.begin(), b.log.end(), "restored") == 1);
  a.cancel();
  b.cancel();
}

TEST_CASE_METHOD(Fixture, "a holder whose lease another has taken stops at once") {
  Candidate a(*this, "a");
  lease["spec"].set("holderIdentity", "thief");
  lease["metadata"].set("resourceVersion", std::to_string(++version));
  --runners;
  clock.advance(Milliseconds(2'000));
  REQUIRE(run_until(io, [&a] { return a.log.back() == "stopped"; }));
  CHECK(a.log == Log{"sees a", "started", "sees thief", "stopped"});
  run_task(io, a.group.join());
  CHECK(holder() == "thief");
}
