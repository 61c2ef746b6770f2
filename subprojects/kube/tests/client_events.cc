#include "kube/client/events.hh"
#include "kube/client/task_group.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/fake_clock.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_server.hh"

using namespace kube;

namespace {

const char* const kEvents = "/api/v1/namespaces/ns/events";

struct Fixture {
  asio::io_context io;
  FakeClock clock;
  FakeRandom random{0xab};
  ScriptedServer server{io};
  std::unique_ptr<Transport> transport = make_transport(io, server.config(), TransportLimits());
  ApiClient::Options once() {
    ApiClient::Options options;
    options.max_attempts = 1;
    return options;
  }
  ApiClient client{*transport, clock, random, once()};
  EventRecorder recorder{client, "trainer"};
  TaskGroup group{io.get_executor(), nullptr};

  void start() { group.spawn("events", recorder.run()); }
  void finish() {
    group.cancel();
    run_task(io, group.join());
  }
  bool until_sent() {
    return run_until(io, [this] { return recorder.pending() == 0; });
  }
  Json body(std::size_t request) const { return *parse_json(server.log().at(request).body); }
  std::string one_path() const { return std::string(kEvents) + "/job.00000000000000ab"; }
};

Event event(const std::string& reason, const std::string& message = "so it is") {
  Event made;
  made.regarding.api_version = "batch/v1";
  made.regarding.kind = "Job";
  made.regarding.key = ObjectKey{"ns", "job"};
  made.regarding.uid = "u-1";
  made.reason = reason;
  made.message = message;
  return made;
}

Event terminal(const std::string& reason) {
  Event made = event(reason);
  made.is_terminal = true;
  return made;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "an event as the API wants it") {
  server.on("POST", kEvents).answer(201, "{}");
  start();
  recorder.record(event("Running"));
  REQUIRE(until_sent());
  CHECK(
      print_json(body(0)) ==
      R"({"apiVersion":"v1","count":1,"firstTimestamp":"2026-01-01T00:00:00Z",)"
      R"("involvedObject":{"apiVersion":"batch/v1","kind":"Job","name":"job","namespace":"ns","uid":"u-1"},)"
      R"("kind":"Event","lastTimestamp":"2026-01-01T00:00:00Z","message":"so it is",)"
      R"("metadata":{"name":"job.00000000000000ab","namespace":"ns"},"reason":"Running",)"
      R"("reportingComponent":"trainer","reportingInstance":"","source":{"component":"trainer"},)"
      R"("type":"Normal"})");
  finish();
}

TEST_CASE_METHOD(Fixture, "an event may have a source of its own") {
  server.on("POST", kEvents).answer(201, "{}");
  start();
  Event made = event("Running");
  made.component = "pytorchjob-controller";
  recorder.record(std::move(made));
  REQUIRE(until_sent());
  CHECK(body(0).get("source").get_string("component") == "pytorchjob-controller");
  CHECK(body(0).get_string("reportingComponent") == "pytorchjob-controller");
  finish();
}

TEST_CASE_METHOD(Fixture, "equal events are counted, before they are sent and after") {
  server.on("POST", kEvents).answer(201, "{}").always();
  server.on("PATCH", one_path()).answer(200, "{}");
  recorder.record(event("A"));
  clock.advance(std::chrono::seconds(5));
  recorder.record(event("A"));
  CHECK(recorder.pending() == 1);
  start();
  REQUIRE(until_sent());
  CHECK(body(0).get_int("count") == 2);
  CHECK(body(0).get_string("firstTimestamp") == "2026-01-01T00:00:00Z");
  CHECK(body(0).get_string("lastTimestamp") == "2026-01-01T00:00:05Z");

  clock.advance(std::chrono::minutes(9));
  recorder.record(event("A"));
  REQUIRE(until_sent());
  CHECK(print_json(body(1)) == R"({"count":3,"lastTimestamp":"2026-01-01T00:09:05Z"})");

  clock.advance(std::chrono::minutes(10));
  recorder.record(event("A"));
  REQUIRE(until_sent());
  CHECK(body(2).get_int("count") == 1);
  finish();
}

TEST_CASE_METHOD(Fixture, "an event that the server has forgotten is written again") {
  server.on("POST", kEvents).answer(201, "{}").always();
  server.on("PATCH", one_path()).answer(404, R"({"kind":"Status","reason":"NotFound"})");
  start();
  recorder.record(event("A"));
  REQUIRE(until_sent());
  recorder.record(event("A"));
  REQUIRE(until_sent());
  REQUIRE(server.log().size() == 3);
  CHECK(server.log()[2].method == "POST");
  finish();
}

TEST_CASE_METHOD(Fixture, "objects without a namespace have their events in default") {
  server.on("POST", "/api/v1/namespaces/default/events").answer(201, "{}");
  Event made = event("A");
  made.regarding.key = ObjectKey{"", "runtime"};
  start();
  recorder.record(made);
  REQUIRE(until_sent());
  CHECK(body(0).find_path({"involvedObject", "namespace"}) == nullptr);
  CHECK(body(0).find_path({"metadata", "namespace"})->as_string() == "default");
  finish();
}

TEST_CASE_METHOD(Fixture, "a message is cut at a character's end") {
  server.on("POST", kEvents).answer(201, "{}");
  start();
  recorder.record(event("A", std::string(1'023, 'x') + "\xc3\xa4tail"));
  REQUIRE(until_sent());
  CHECK(body(0).get_string("message") == std::string(1'023, 'x'));
  finish();
}

TEST_CASE_METHOD(Fixture, "under load the oldest go first, terminal ones never") {
  recorder.record(terminal("Complete"));
  for (int i = 0; i < 1'500; ++i) recorder.record(event("A" + std::to_string(i)));
  CHECK(recorder.pending() == 1'000);
  CHECK(recorder.dropped() == 501);
  std::vector<std::string> reasons;
  server.on("POST", kEvents)
      .reply([&reasons](const ReceivedRequest& request) {
        reasons.emplace_back(parse_json(request.body)->get_string("reason"));
        return ScriptedReply(201, "{}");
      })
      .always();
  start();
  REQUIRE(until_sent());
  CHECK(reasons.front() == "Complete");
  CHECK(reasons[1] == "A501");
  CHECK(reasons.back() == "A1499");
  finish();
}

TEST_CASE_METHOD(Fixture, "of more than 2,000 events the newer are still counted") {
  server.on("POST", kEvents).answer(201, "{}").always();
  server.on("PATCH", one_path()).answer(200, "{}").always();
  start();
  for (int i = 0; i <= 2'000; ++i) {
    recorder.record(event("A" + std::to_string(i)));
    clock.advance(Milliseconds(1));
    if (i % 500 == 0) REQUIRE(until_sent());
  }
  const auto sent_again = [this](const std::string& reason) {
    recorder.record(event(reason));
    const bool is_sent = until_sent();
    return is_sent ? server.log().back().method : "";
  };
  CHECK(sent_again("A2000") == "PATCH");
  CHECK(sent_again("A1500") == "PATCH");
  CHECK(sent_again("A0") == "POST");
  finish();
}

TEST_CASE_METHOD(Fixture, "a write that fails: three tries, or for ever where it is terminal") {
  server.on("POST", kEvents).answer(503, "").times(6);
  server.on("POST", kEvents).answer(201, "{}");
  start();
  const auto skip_pauses = [this](std::size_t requests) {
    return run_until(io, [this, requests] {
      if (clock.timers() > 0) clock.advance(std::chrono::minutes(1));
      return server.log().size() >= requests && recorder.pending() == 0;
    });
  };
  recorder.record(event("A"));
  REQUIRE(skip_pauses(3));
  CHECK(recorder.dropped() == 1);
  recorder.record(terminal("Complete"));
  REQUIRE(skip_pauses(7));
  CHECK(recorder.dropped() == 1);
  finish();
}

TEST_CASE_METHOD(Fixture, "a create whose answer was lost makes no second object") {
  server.on("POST", kEvents).reply([this](const ReceivedRequest&) {
    random = FakeRandom(0xcd);  // every other name would be this one
    ScriptedReply lost;
    lost.is_reset = true;
    return lost;
  });
  server.on("POST", kEvents).answer(409, R"({"kind":"Status","reason":"AlreadyExists"})");
  server.on("PATCH", one_path()).answer(200, "{}");
  start();
  recorder.record(event("A"));
  REQUIRE(run_until(io, [this] { return clock.timers() > 0; }));
  recorder.record(event("A"));
  clock.advance(std::chrono::seconds(1));
  REQUIRE(until_sent());
  REQUIRE(server.log().size() == 3);
  CHECK(body(0).find_path({"metadata", "name"})->as_string() == "job.00000000000000ab");
  CHECK(body(1).find_path({"metadata", "name"})->as_string() == "job.00000000000000ab");
  CHECK(body(2).get_int("count") == 2);
  CHECK(recorder.dropped() == 0);
  finish();
}

TEST_CASE_METHOD(Fixture, "a refusal for good ends even a terminal event") {
  server.on("POST", kEvents).answer(403, R"({"kind":"Status","message":"is being terminated"})");
  start();
  recorder.record(terminal("Complete"));
  REQUIRE(until_sent());
  CHECK(recorder.dropped() == 1);
  finish();
}

TEST_CASE_METHOD(Fixture, "an API server that starts may not know its clients yet") {
  server.on("POST", kEvents).answer(401, R"({"kind":"Status","message":"Unauthorized"})");
  server.on("POST", kEvents).answer(201, "{}");
  start();
  recorder.record(terminal("Complete"));
  REQUIRE(run_until(io, [this] { return server.log().size() == 1 && clock.timers() == 1; }));
  clock.advance(Milliseconds(60'000));
  REQUIRE(until_sent());
  CHECK(server.log().size() == 2);
  CHECK(recorder.dropped() == 0);
  finish();
}

TEST_CASE_METHOD(Fixture, "draining waits for what was recorded, within a deadline") {
  server.on("POST", kEvents).answer(201, "{}");
  start();
  recorder.record(event("A"));
  run_task(io, recorder.drain(Milliseconds(1'000)));
  CHECK(recorder.pending() == 0);

  server.on("POST", kEvents).hold();
  recorder.record(event("B"));
  bool is_over = false;
  TaskGroup waiter(io.get_executor(), nullptr);
  waiter.spawn("drain", [](EventRecorder& of, bool& done) -> Task<void> {
    co_await of.drain(Milliseconds(1'000));
    done = true;
  }(recorder, is_over));
  REQUIRE(run_until(io, [this] { return server.log().size() == 2; }));
  CHECK_FALSE(is_over);
  clock.advance(Milliseconds(1'000));
  CHECK(run_until(io, [&is_over] { return is_over; }));
  CHECK(recorder.pending() == 1);
  finish();
}
