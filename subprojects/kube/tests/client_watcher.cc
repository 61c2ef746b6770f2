#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>

#include "kube/client/json_scan.hh"
#include "kube/client/task_group.hh"
#include "kube/client/watcher.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/fake_clock.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_server.hh"

using namespace kube;

namespace {

const Resource kThings{"example.com", "v1", "things", "Thing", true};
const char* const kPath = "/apis/example.com/v1/things";

std::string object(const std::string& name, int version, const std::string& more = "") {
  return R"({"metadata":{"name":")" + name + R"(","resourceVersion":")" + std::to_string(version) +
         "\"}" + more + "}";
}

std::string event(const std::string& type, const std::string& of) {
  return R"({"type":")" + type + R"(","object":)" + of + "}\n";
}

std::string list_of(int version, const std::vector<std::string>& items) {
  std::string text =
      R"({"metadata":{"resourceVersion":")" + std::to_string(version) + R"("},"items":[)";
  for (const auto& item : items) text += (text.back() == '[' ? "" : ",") + item;
  return text + "]}";
}

// Records its calls: "[" and "]" around lists.
class LogSink final : public WatchSink {
 public:
  std::vector<std::string> log;
  void begin_list() override { log.push_back("["); }
  bool upsert(std::string_view text) override { return note("+", text); }
  void listed_at(std::string_view version) override { log.push_back("@" + std::string(version)); }
  void end_list() override { log.push_back("]"); }
  bool remove(std::string_view text) override { return note("-", text); }

 private:
  bool note(const char* what, std::string_view text) {
    const auto parsed = parse_json(text);
    if (!parsed || parsed->find("broken") != nullptr) return false;
    const auto identity = scan_identity(text);
    log.push_back(what + std::string(identity.name.empty() ? "?" : identity.name) +
                  std::string(identity.version));
    return true;
  }
};

struct Fixture {
  asio::io_context io;
  FakeClock clock;
  FakeRandom random;  // jitter factor 1
  ScriptedServer server{io};
  std::unique_ptr<Transport> transport = make_transport(io, server.config(), TransportLimits());
  ApiClient client{*transport, clock, random};
  LogSink sink;
  WatchOptions options;
  std::vector<std::string> notes;
  TaskGroup group{io.get_executor(), nullptr};

  // Lists come as requests without "watch"; both kinds are scripted apart by asking this order.
  ScriptedServer::Script& next() { return server.on("GET", kPath); }
  void start() {
    options.on_note = [this](std::string_view what, std::string_view) { notes.emplace_back(what); };
    group.spawn("watch", run_watch(client, kThings, sink, options));
  }
  bool until_requests(std::size_t count) {
    return run_until(io, [this, count] { return server.log().size() >= count; });
  }
  bool until_log(const std::string& last) {
    return run_until(io, [this, &last] { return !sink.log.empty() && sink.log.back() == last; });
  }
  bool until_pause() {
    return run_until(io, [this] { return clock.timers() > 0; });
  }
  Milliseconds skip_pause() {
    const auto pause = std::chrono::duration_cast<Milliseconds>(clock.until_next());
    clock.advance(pause);
    return pause;
  }
  std::size_t noted(const std::string& what) const {
    return static_cast<std::size_t>(std::count(notes.begin(), notes.end(), what));
  }
  std::string query(std::size_t request) const { return server.log().at(request).query; }
  void finish() {
    group.cancel();
    run_task(io, group.join());
  }
};

using Log = std::vector<std::string>;

bool asks_from(const std::string& query, const std::string& version) {
  return query.find("resourceVersion=" + version + "&") != std::string::npos;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "a list, a stream that opens and what it brings are signs of life") {
  int signs = 0;
  options.on_sign_of_life = [&signs] { ++signs; };
  next().answer(500, "{}");
  next().answer(200, list_of(5, {}));
  next().stream({event("BOOKMARK", object("", 20))}).stay_open();
  start();
  REQUIRE(until_pause());
  CHECK(signs == 0);
  skip_pause();
  REQUIRE(run_until(io, [&signs] { return signs >= 3; }));
  finish();
}

TEST_CASE_METHOD(Fixture, "list, then events, then on from the last version seen") {
  options.label_selector = "a=b";
  next().answer(200, list_of(5, {object("a", 1), object("b", 2)}));
  next().stream({event("ADDED", object("c", 6)), event("MODIFIED", object("a", 7)),
                 event("DELETED", object("b", 8)), event("BOOKMARK", object("", 20))});
  next().stream({event("MODIFIED", object("c", 21))}).stay_open();
  start();
  // The first stream was brief, but it brought something.
  REQUIRE(run_until(io, [this] { return server.log().size() >= 3 || clock.timers() > 0; }));
  if (clock.timers() > 0) skip_pause();
  REQUIRE(until_log("+c21"));
  CHECK(sink.log == Log{"[", "+a1", "+b2", "@5", "]", "+c6", "+a7", "-b8", "+c21"});
  CHECK(query(0) == "labelSelector=a%3Db&limit=500");
  CHECK(asks_from(query(1), "5"));
  CHECK(asks_from(query(2), "20"));
  CHECK_THAT(query(1), Catch::Contains("watch=true&allowWatchBookmarks=true") &&
                           Catch::Contains("timeoutSeconds=290") &&
                           Catch::Contains("labelSelector=a%3Db"));
  finish();
}

TEST_CASE_METHOD(Fixture, "410 as an answer lists again") {
  next().answer(200, list_of(5, {}));
  next().answer(410, R"({"kind":"Status","code":410,"reason":"Expired","message":"old"})");
  next().answer(200, list_of(9, {object("a", 8)}));
  next().stream({}).stay_open();
  start();
  REQUIRE(until_pause());
  CHECK(skip_pause() == Milliseconds(500));  // the list was fresh, so this is a failure
  REQUIRE(until_requests(4));
  CHECK(sink.log == Log{"[", "@5", "]", "[", "+a8", "@9", "]"});
  CHECK(asks_from(query(3), "9"));
  CHECK(noted("gone") == 1);
  finish();
}

TEST_CASE_METHOD(Fixture, "410 as an event lists again, at once where the watch had been going") {
  next().answer(200, list_of(5, {}));
  next().stream({event("ADDED", object("a", 6)),
                 event("ERROR", R"({"kind":"Status","code":410,"reason":"Expired"})"),
                 event("ADDED", object("never", 7))});
  next().answer(200, list_of(9, {object("a", 8)}));
  next().stream({}).stay_open();
  start();
  REQUIRE(until_requests(4));
  CHECK(sink.log == Log{"[", "@5", "]", "+a6", "[", "+a8", "@9", "]"});
  finish();
}

TEST_CASE_METHOD(Fixture, "a server that says when to come again is obeyed, jitter or not") {
  random = FakeRandom(0);  // jitter factor 0.75
  next().answer(200, list_of(5, {}));
  next().answer(429, "later").header("Retry-After", "7");
  next().stream({}).stay_open();
  start();
  REQUIRE(until_pause());
  CHECK(skip_pause() == Milliseconds(7'000));
  REQUIRE(until_requests(3));
  CHECK(asks_from(query(2), "5"));
  finish();
}

TEST_CASE_METHOD(Fixture, "another error as an event resumes after a pause") {
  next().answer(200, list_of(5, {}));
  next().stream({event("ADDED", object("a", 6)),
                 event("ERROR", R"({"kind":"Status","code":500,"message":"etcd is slow"})")});
  next().stream({}).stay_open();
  start();
  REQUIRE(until_pause());
  CHECK(skip_pause() == Milliseconds(500));
  REQUIRE(until_requests(3));
  CHECK(asks_from(query(2), "6"));
  finish();
}

TEST_CASE_METHOD(Fixture,
                 "404 as an event, when a definition goes away, asks again from the list on") {
  next().answer(200, list_of(5, {}));
  next().stream({event("ADDED", object("a", 6)),
                 event("ERROR", R"({"kind":"Status","code":404,"reason":"NotFound"})"),
                 event("ADDED", object("never", 7))});
  next().answer(404, "404 page not found");
  next().answer(200, list_of(9, {object("b", 8)}));
  next().stream({}).stay_open();
  start();
  REQUIRE(until_pause());
  CHECK(skip_pause() == Milliseconds(500));
  REQUIRE(until_requests(3));
  REQUIRE(until_pause());
  CHECK(skip_pause() == Milliseconds(1'000));
  REQUIRE(until_requests(5));
  CHECK(sink.log == Log{"[", "@5", "]", "+a6", "[", "[", "+b8", "@9", "]"});
  CHECK(noted("unserved") == 2);
  finish();
}

TEST_CASE_METHOD(Fixture, "half a line and a cut in mid-chunk lose nothing") {
  next().answer(200, list_of(5, {}));
  const std::string second = event("ADDED", object("b", 7));
  next()
      .stream({event("ADDED", object("a", 6)) + second.substr(0, 20), second.substr(20)})
      .cut_in_last_chunk();
  next().stream({second}).stay_open();
  start();
  REQUIRE(until_pause());
  skip_pause();
  REQUIRE(until_log("+b7"));
  CHECK(sink.log == Log{"[", "@5", "]", "+a6", "+b7"});
  CHECK(asks_from(query(2), "6"));
  finish();
}

TEST_CASE_METHOD(Fixture, "an event in many small pieces, and one of 1.4 MB") {
  const std::string large = object("large", 7, R"(,"x":")" + std::string(1'400'000, 'y') + "\"");
  std::vector<std::string> pieces;
  for (const char c : event("ADDED", object("small", 6))) pieces.emplace_back(1, c);
  pieces.push_back(event("ADDED", large));
  next().answer(200, list_of(5, {large}));
  next().stream(pieces).stay_open();
  start();
  REQUIRE(until_log("+large7"));
  CHECK(sink.log == Log{"[", "+large7", "@5", "]", "+small6", "+large7"});
  finish();
}

TEST_CASE_METHOD(Fixture, "malformed objects and lines are noted and left out") {
  next().answer(200, list_of(5, {object("a", 1), object("bad", 2, R"(,"broken":1)")}));
  next()
      .stream({"nonsense\n",
               R"({"type":"ADDED"})"
               "\n",
               event("ADDED", object("bad", 6, R"(,"broken":1)")), event("ADDED", object("b", 7))})
      .stay_open();
  start();
  REQUIRE(until_log("+b7"));
  CHECK(sink.log == Log{"[", "+a1", "@5", "]", "+b7"});
  CHECK(noted("malformed") == 4);
  finish();
}

namespace {

// A watch whose pieces lie in the connection until they are read, one at a time.
class PiecewiseTransport final : public Transport {
 public:
  explicit PiecewiseTransport(asio::io_context& io)
      : arrived_(io, std::chrono::steady_clock::time_point::max()) {}

  void arrive(std::vector<std::string> pieces) {
    for (auto& piece : pieces) pieces_.push_back(std::move(piece));
    arrived_.cancel();
  }

  Task<Result<HttpResponse>> send(HttpRequest request) override {
    HttpResponse list;
    list.status = 200;
    request.on_body(list_of(5, {}));
    co_return std::move(list);
  }
  Task<Result<std::unique_ptr<HttpStream>>> open(HttpRequest) override {
    co_return std::make_unique<Stream>(*this);
  }

 private:
  class Stream final : public HttpStream {
   public:
    explicit Stream(PiecewiseTransport& owner) : owner_(owner) {}
    int status() const override { return 200; }
    bool is_quiet() override { return owner_.pieces_.empty(); }
    Task<Result<std::string>> read_some(Milliseconds) override {
      auto& pieces = owner_.pieces_;
      while (pieces.empty()) {
        co_await owner_.arrived_.async_wait(asio::as_tuple(asio::use_awaitable));
        const auto cancelled = co_await asio::this_coro::cancellation_state;
        if (cancelled.cancelled() != asio::cancellation_type::none) {
          co_return fail(ErrorCode::kCancelled, "given up");
        }
      }
      std::string piece = std::move(pieces.front());
      pieces.pop_front();
      co_return std::move(piece);
    }

   private:
    PiecewiseTransport& owner_;
  };

  std::deque<std::string> pieces_;
  asio::steady_timer arrived_;
};

struct PiecewiseFixture : Fixture {
  PiecewiseTransport pieces{io};
  ApiClient watching{pieces, clock, random};

  PiecewiseFixture() {
    options.batch = Milliseconds(20);
    group.spawn("watch", run_watch(watching, kThings, sink, options));
  }
};

}  // namespace

TEST_CASE_METHOD(PiecewiseFixture,
                 "what follows an event soon is gathered; the first is not held up") {
  pieces.arrive({event("ADDED", object("a", 6))});
  REQUIRE(until_log("+a6"));  // the clock does not move meanwhile
  REQUIRE(until_pause());
  pieces.arrive({event("ADDED", object("b", 7)), event("ADDED", object("c", 8))});
  io.poll();
  CHECK(sink.log.back() == "+a6");
  CHECK(skip_pause() == Milliseconds(20));
  REQUIRE(until_log("+c8"));
  finish();
}

TEST_CASE_METHOD(PiecewiseFixture, "events that wait already are read without a pause") {
  std::vector<std::string> events;
  for (int i = 0; i < 100; ++i) events.push_back(event("ADDED", object("a", 10 + i)));
  pieces.arrive(std::move(events));
  REQUIRE(until_log("+a109"));  // the clock does not move meanwhile
  REQUIRE(until_pause());       // the watch waits for the next piece
  finish();
}

TEST_CASE_METHOD(Fixture, "a line that is too long lists again") {
  options.max_event_bytes = 1'000;
  next().answer(200, list_of(5, {}));
  next().stream({event("ADDED", object("a", 6)),
                 event("ADDED", object("b", 7, R"(,"x":")" + std::string(2'000, 'y') + "\""))});
  next().answer(200, list_of(9, {object("a", 6)}));
  next().stream({}).stay_open();
  start();
  REQUIRE(until_requests(4));
  CHECK(sink.log == Log{"[", "@5", "]", "+a6", "[", "+a6", "@9", "]"});
  CHECK(noted("malformed") == 1);
  finish();
}

TEST_CASE_METHOD(Fixture, "a kind that is not served is asked for soon, then less and less often") {
  next().answer(404, "404 page not found").times(2);
  next().answer(200, list_of(5, {}));
  next().stream({}).stay_open();
  start();
  REQUIRE(until_pause());
  CHECK(skip_pause() == Milliseconds(500));
  REQUIRE(until_requests(2));
  REQUIRE(until_pause());
  CHECK(skip_pause() == Milliseconds(1'000));
  REQUIRE(until_requests(4));
  CHECK(noted("unserved") == 2);
  CHECK(sink.log.back() == "]");
  finish();
}

TEST_CASE_METHOD(Fixture, "a stream that ends at once, again and again, slows down") {
  next().answer(200, list_of(5, {}));
  next().stream({}).times(3);
  next().stream({}).stay_open();
  start();
  std::vector<Milliseconds> pauses;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(until_pause());
    pauses.push_back(skip_pause());
    settle(io);
  }
  REQUIRE(until_requests(5));
  CHECK(pauses ==
        std::vector<Milliseconds>{Milliseconds(500), Milliseconds(1'000), Milliseconds(2'000)});
  finish();
}

TEST_CASE_METHOD(Fixture, "a list that fails midway is begun again") {
  const std::string page = list_of(5, {object("a", 1), object("b", 2)});
  next().answer(200, page).cut_after(page.size() + 30).times(4);
  next().answer(200, page);
  next().stream({}).stay_open();
  start();
  REQUIRE(until_pause());
  skip_pause();
  REQUIRE(run_until(io, [this] {
    if (clock.timers() > 0) skip_pause();
    return !sink.log.empty() && sink.log.back() == "]";
  }));
  const Log whole{"[", "+a1", "+b2", "@5", "]"};
  REQUIRE(sink.log.size() >= whole.size());
  CHECK(Log(sink.log.end() - 5, sink.log.end()) == whole);
  finish();
}

TEST_CASE_METHOD(Fixture, "silence beyond the timeout ends a stream, and the next one resumes") {
  options.timeout = Milliseconds(1'000);
  options.idle_margin = Milliseconds(1);
  next().answer(200, list_of(5, {}));
  next().stream({event("ADDED", object("a", 6))}).stay_open();
  next().stream({}).stay_open();
  start();
  REQUIRE(until_log("+a6"));
  clock.advance(std::chrono::minutes(1));  // the stream was not a brief one
  REQUIRE(until_requests(3));
  CHECK(asks_from(query(2), "6"));
  CHECK(noted("error") == 0);
  finish();
}
