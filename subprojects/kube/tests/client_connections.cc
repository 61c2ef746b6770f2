// These tests decide which connection makes room for others.
#include "kube/client/connections.hh"
#include "kube/tests/catch.hh"

using namespace kube;
using std::chrono::milliseconds;

namespace {

using Phase = ServerConnection::Phase;

struct OpenStream final : ByteStream {
  Task<IoResult> read_some(char*, std::size_t) override { co_return IoResult(); }
  Task<IoResult> write_all(std::string_view) override { co_return IoResult(); }
  void set_deadline(Deadline) override {}
  bool is_timed_out() const override { return false; }
  bool is_quiet() override { return true; }
  void end_writing() override {}
  void close() override {}
};

struct Fixture {
  OpenStream stream;
  ServerConnections connections;
  const ServerConnection::Steady now{std::chrono::hours(1)};

  ServerConnection* add(const char* peer, Phase phase, int age_ms, std::size_t bytes = 0) {
    ServerConnection made;
    made.peer = asio::ip::make_address(peer);
    made.phase = phase;
    made.since = now - milliseconds(age_ms);
    made.body_bytes = bytes;
    made.stream = &stream;
    return &*connections.insert(connections.end(), made);
  }
  ServerConnection* victim(Scarce what = Scarce::kConnections) {
    return find_victim(connections, what, now, milliseconds(1'000));
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "the oldest unfinished request of the peer with most of them") {
  add("10.0.0.1", Phase::kReading, 9'000);
  add("10.0.0.2", Phase::kNew, 3'000);
  auto* const oldest = add("10.0.0.2", Phase::kReading, 4'000);
  auto* const other = add("10.0.0.2", Phase::kNew, 2'000);
  CHECK(victim() == oldest);
  oldest->is_evicted = true;  // the next ones are closed too, while there is need
  other->is_evicted = true;
  CHECK(victim()->peer.to_string() == "10.0.0.1");
}

TEST_CASE_METHOD(Fixture, "young requests and running handlers are not closed for others") {
  add("10.0.0.1", Phase::kHandled, 9'000);
  for (int i = 0; i < 3; ++i) add("10.0.0.1", Phase::kNew, 999);
  CHECK(victim() == nullptr);
  add("10.0.0.1", Phase::kIdle, 20);
  auto* const greedy = add("10.0.0.2", Phase::kIdle, 10);
  CHECK(victim() == nullptr);  // the idle ones are fewer
  add("10.0.0.2", Phase::kIdle, 5);
  CHECK(victim() == greedy);
  auto* const stale = add("10.0.0.3", Phase::kReading, 1'000);
  CHECK(victim() == stale);
  stale->stream = nullptr;
  CHECK(victim() == greedy);
}

TEST_CASE_METHOD(Fixture, "room for bodies is made by those that hold most of it") {
  add("10.0.0.1", Phase::kIdle, 9'000);
  add("10.0.0.1", Phase::kReading, 9'000);
  add("10.0.0.1", Phase::kReading, 9'000, 10);
  CHECK(victim(Scarce::kBodyBytes)->body_bytes == 10);
  add("10.0.0.2", Phase::kHandled, 9'000, 500);
  add("10.0.0.2", Phase::kReading, 10, 500);
  auto* const slow = add("10.0.0.2", Phase::kReading, 1'000, 50);
  CHECK(victim(Scarce::kBodyBytes) == slow);
}

TEST_CASE_METHOD(Fixture, "what was closed to make room is given back, unless a handler has it") {
  add("10.0.0.1", Phase::kReading, 9'000, 10);
  add("10.0.0.1", Phase::kReading, 9'000, 20)->is_evicted = true;
  add("10.0.0.1", Phase::kNew, 9'000)->is_evicted = true;
  add("10.0.0.1", Phase::kIdle, 9'000)->is_evicted = true;
  add("10.0.0.1", Phase::kHandled, 9'000, 40)->is_evicted = true;
  CHECK(held_by_evicted(connections, Scarce::kBodyBytes) == 20);
  CHECK(held_by_evicted(connections, Scarce::kConnections) == 3);
}

TEST_CASE_METHOD(Fixture, "strangers make room for strangers alone, the oldest first") {
  const auto stranger = [this](Phase phase, int age_ms, bool has_place) {
    auto* const made = add("10.0.0.1", phase, age_ms);
    made->is_stranger = true;
    made->has_place = has_place;
    return made;
  };
  add("10.0.0.1", Phase::kReading, 9'000);
  CHECK(victim(Scarce::kWaiting) == nullptr);
  CHECK(victim(Scarce::kPlaces) == nullptr);
  stranger(Phase::kNew, 999, true);
  stranger(Phase::kHandled, 9'000, true);
  auto* const waiting = stranger(Phase::kNew, 2'000, false);
  stranger(Phase::kNew, 1'000, false);
  CHECK(victim(Scarce::kWaiting) == waiting);
  CHECK(victim(Scarce::kPlaces) == nullptr);
  auto* const idle = stranger(Phase::kIdle, 1'000, true);
  CHECK(victim(Scarce::kPlaces) == idle);
  CHECK(count_strangers(connections, Scarce::kPlaces) == 3);
  CHECK(count_strangers(connections, Scarce::kWaiting) == 2);
  waiting->is_evicted = idle->is_evicted = true;
  CHECK(held_by_evicted(connections, Scarce::kPlaces) == 1);
  CHECK(held_by_evicted(connections, Scarce::kWaiting) == 1);
}

TEST_CASE("a first request counts from when its connection was accepted") {
  ServerConnection connection;
  const ServerConnection::Steady begin{std::chrono::hours(1)};
  connection.since = begin;
  connection.enter(Phase::kReading, begin + milliseconds(10));
  CHECK(connection.since == begin);
  connection.enter(Phase::kIdle, begin + milliseconds(20));
  connection.enter(Phase::kReading, begin + milliseconds(30));
  CHECK(connection.since == begin + milliseconds(30));
}
