// Heartbeats of training processes: whose are accepted, how much of them, and what is known after.
#include <memory>
#include <string>

#include "controller/status/heartbeat_store.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/fake_clock.hh"
#include "kube/tests/run_task.hh"
#include "runtimes/stall/saved_stacks.hh"
#include "tests/component/rank_message.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;
using namespace std::chrono_literals;

namespace {

VerifiedPod pod_of(const std::string& job, int number = 0) {
  VerifiedPod pod;
  pod.trainjob_uid = job + "-uid";
  pod.name = job + "-node-0-" + std::to_string(number);
  pod.uid = pod.name + "-uid";
  pod.node = "worker-" + std::to_string(number);
  pod.hang_threshold = "60";
  return pod;
}

// A rank of four that waits in a collective, or does not.
struct Rank {
  std::int64_t rank = 0;
  std::int64_t steps = 10;
  double idle = 0;
  bool waits = true;
  std::int64_t sent = 0;
  double own = -1;

  Json message(const std::string& dump = "") const {
    const std::string line = waits ? "/w/train.py:88 main" : "/w/data.py:7 fetch";
    Json heartbeat = rank_message(rank, sent, steps, idle, line);
    heartbeat.set("own", own);
    if (dump.empty()) return heartbeat;
    Json frames = Json::array();
    if (waits)
      frames.push_back(
          "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py:1321 all_reduce");
    frames.push_back(line);
    Json thread = Json::object({{"name", "MainThread"},
                                {"main", true},
                                {"state", "S"},
                                {"wchan", ""},
                                {"frames", frames}});
    heartbeat.set("dump", Json::object({{"id", dump},
                                        {"threads", Json::array({thread})},
                                        {"children", Json::array()}}));
    return heartbeat;
  }
};

struct HeartbeatFixture {
  kube::asio::io_context io;
  kube::FakeClock clock;
  kube::Log log{kube::LogLevel::kError, kube::Log::Format::kText};
  std::shared_ptr<HeartbeatBoard> board = std::make_shared<HeartbeatBoard>();
  std::vector<std::string> changed;
  HeartbeatStore store{io, clock, board, log};
  int sent = 0;

  HeartbeatFixture() {
    board->listen([this](const kube::ObjectKey& key) { changed.push_back(key.to_string()); });
  }
  ~HeartbeatFixture() { kube::run_task(io, store.stop()); }

  kube::ServerResponse take(const std::string& job, const Json& message, int pod = 0) {
    return store.take({"team-a", job}, pod_of(job, pod), kube::print_json(message));
  }
  // One round of all ranks, which answer requests for stacks at once.
  void beat(const std::string& job, std::int64_t steps, double idle, int first = 0) {
    for (int i = first; i < 4; ++i) {
      Rank rank{i, steps, idle, i != 2, sent++};
      const auto answer = kube::parse_json(take(job, rank.message(), i).body);
      REQUIRE(answer);
      const std::string dump(answer->get_string("dump"));
      rank.sent = sent++;
      if (!dump.empty()) CHECK(take(job, rank.message(dump), i).status == 200);
    }
  }
  void pass(std::chrono::seconds time) {
    for (auto left = time; left > 0s; left -= 1s) {
      kube::settle(io);
      clock.advance(1s);
    }
    kube::settle(io);
  }
};

}  // namespace

TEST_CASE_METHOD(HeartbeatFixture, "the rank that keeps the others waiting is named in time") {
  for (int i = 0; i < 5; ++i) {
    beat("j", i + 1, 0);
    pass(10s);
  }
  // The last step was ten seconds ago.
  int seconds = 10;
  for (; seconds < 200; seconds += 5) {
    if (const auto facts = board->find("j-uid"); facts && facts->stall) break;
    beat("j", 5, seconds);
    pass(5s);
  }
  const auto facts = board->find("j-uid");
  REQUIRE(facts);
  REQUIRE(facts->stall);
  CHECK(seconds >= 60);
  CHECK(seconds <= 75);
  REQUIRE(facts->stall->suspects.size() == 1);
  CHECK(facts->stall->suspects[0].rank == 2);
  CHECK(facts->stall->suspects[0].pod == "j-node-0-2");
  CHECK(facts->stall->suspects[0].node == "worker-2");
  CHECK(facts->stall->suspects[0].line.find("data.py:7") != std::string::npos);
  REQUIRE(facts->stall->since);
  CHECK(clock.now() - *facts->stall->since >= 60s);
  CHECK(clock.now() - *facts->stall->since <= 80s);
  CHECK(changed.back() == "team-a/j");
  REQUIRE(facts->stacks);
  const auto stacks = stall::read_compressed_stacks(facts->stacks->bytes);
  REQUIRE(stacks);
  REQUIRE(stacks->get_array("ranks").size() == 4);
  CHECK(stacks->get_array("ranks")[0].get_int("rank") == 2);
  CHECK_FALSE(stacks->get_array("ranks")[0].get_bool("waiting"));
  CHECK(stacks->get_array("ranks")[1].get_bool("waiting"));

  beat("j", 6, 0);
  pass(10s);
  REQUIRE(board->find("j-uid"));
  CHECK_FALSE(board->find("j-uid")->stall);
  CHECK_FALSE(board->find("j-uid")->stacks);
}

TEST_CASE_METHOD(HeartbeatFixture, "a rank whose own work takes longer is named") {
  const auto run = [this](int rounds, double own) {
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < 4; ++i) {
        Rank rank{i, 100 + sent, 0, true, sent, i == 2 ? own : 0.1};
        CHECK(take("j", rank.message(), i).status == 200);
        ++sent;
      }
      pass(10s);
    }
  };
  run(1, 0.3);
  REQUIRE(board->find("j-uid"));
  CHECK_FALSE(board->find("j-uid")->stragglers);
  run(15, 0.3);
  auto facts = board->find("j-uid");
  REQUIRE(facts->stragglers);
  REQUIRE(facts->stragglers->size() == 1);
  const StragglerStatus& slow = facts->stragglers->front();
  CHECK(slow.rank == 2);
  CHECK(slow.pod == "j-node-0-2");
  CHECK(slow.node == "worker-2");
  CHECK(slow.times == "3.0");
  CHECK_FALSE(facts->stall);
  // Nothing is posted while nothing changes.
  const std::size_t posted = changed.size();
  run(30, 0.5);
  CHECK(changed.size() == posted);
  run(10, 0.1);
  CHECK(changed.size() == posted + 1);
  CHECK(board->find("j-uid")->stragglers->empty());
}

TEST_CASE_METHOD(HeartbeatFixture, "how far the ranks are is known, and their first step is news") {
  const auto send = [this](std::int64_t steps, std::int64_t saved, const char* restart) {
    for (int i = 0; i < 4; ++i) {
      Json message = Rank{i, steps, 0, true, sent++}.message();
      message.set("saved", i == 0 ? saved : -1).set("loaded", -1).set("restart", restart);
      CHECK(take("j", message, i).status == 200);
    }
    pass(10s);
  };
  send(0, -1, "0");
  REQUIRE(board->find("j-uid"));
  CHECK_FALSE(board->find("j-uid")->stepped_at);
  std::size_t posted = changed.size();
  send(3, -1, "0");
  REQUIRE(board->find("j-uid")->stepped_at);
  CHECK(changed.size() == posted + 1);
  send(40, 30, "0");
  CHECK(board->find("j-uid")->position.steps == 40);
  CHECK(board->find("j-uid")->position.saved == 30);
  CHECK(changed.size() == posted + 1);
  // torchrun has started the processes again.
  send(5, -1, "1");
  CHECK(board->find("j-uid")->position.steps == 5);
  CHECK(board->find("j-uid")->previous.steps == 40);
  CHECK(changed.size() == posted + 2);
}

TEST_CASE_METHOD(HeartbeatFixture, "the period of a short threshold is short") {
  const auto answer = kube::parse_json(take("j", Rank().message()).body);
  REQUIRE(answer);
  CHECK(answer->get_int("period") == 10);
}

TEST_CASE_METHOD(HeartbeatFixture, "what one pod sends is bounded, and other jobs do not notice") {
  Rank rank;
  int accepted = 0;
  for (int i = 0; i < 1'000; ++i) {
    rank.sent = i;
    accepted += take("flood", rank.message()).status == 200;
  }
  CHECK(accepted == HeartbeatStore::kMaxMessages);
  CHECK(take("flood", rank.message()).status == 429);
  CHECK(take("j", Rank().message()).status == 200);
  pass(HeartbeatStore::kWindow);
  rank.sent = 2'000;
  CHECK(take("flood", rank.message()).status == 200);
}

TEST_CASE_METHOD(HeartbeatFixture, "pods of earlier attempts do not take the room of later ones") {
  Rank rank;
  for (int pod = 0; pod < stall::kMaxRanks; ++pod) take("j", rank.message(), pod);
  CHECK(take("j", rank.message(), stall::kMaxRanks).status == 429);
  clock.advance(HeartbeatStore::kWindow);
  CHECK(take("j", rank.message(), stall::kMaxRanks).status == 200);
}

TEST_CASE_METHOD(HeartbeatFixture, "a namespace cannot take the room of others") {
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < HeartbeatStore::kMaxJobsOfNamespace + 10; ++i)
    accepted += take("j" + std::to_string(i), Rank().message()).status == 200;
  CHECK(accepted == HeartbeatStore::kMaxJobsOfNamespace);
  CHECK(store.take({"team-b", "j"}, pod_of("other"), kube::print_json(Rank().message())).status ==
        200);
  // Jobs that send nothing more make room.
  clock.advance(31min);
  pass(2s);
  CHECK(take("late", Rank().message()).status == 200);
}

TEST_CASE_METHOD(HeartbeatFixture, "namespaces that take all the room leave a part to others") {
  const auto send = [this](const std::string& ns, std::size_t i) {
    const std::string name = ns + std::to_string(i);
    const auto body = kube::print_json(Rank().message());
    return store.take({ns, name}, pod_of(name), body).status == 200;
  };
  std::size_t taken = 0;
  for (const char* ns : {"a", "b", "c", "d", "e"})
    for (std::size_t i = 0; i < HeartbeatStore::kMaxJobsOfNamespace; ++i) taken += send(ns, i);
  CHECK(taken >= HeartbeatStore::kMaxJobs);
  CHECK(taken <= 2 * HeartbeatStore::kMaxJobs);
  std::size_t left = 0;
  for (std::size_t i = 0; i < HeartbeatStore::kMaxJobsOfNamespace; ++i) left += send("victim", i);
  CHECK(left >= HeartbeatStore::kMaxJobs / 6);
  CHECK_FALSE(send("a", HeartbeatStore::kMaxJobsOfNamespace));
}

TEST_CASE_METHOD(HeartbeatFixture, "bad messages are refused and change nothing") {
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  std::string wide = "[";
  for (int i = 0; i < 20'000; ++i) wide += "1,";
  wide += "1]";
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("{\"v\":2}"), deep, wide,
        std::string("{\"v\":1,\"role\":\"rank\",\"rank\":1e999}")}) {
    INFO(body.substr(0, 40));
    CHECK(store.take({"team-a", "j"}, pod_of("j"), body).status == 422);
  }
  pass(10s);
  const auto facts = board->find("j-uid");
  CHECK((!facts || !facts->stall));
}
