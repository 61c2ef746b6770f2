// A tenant whose pods send whatever they like: no other job's answers and verdicts change.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "controller/status/heartbeat_store.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/fake_clock.hh"
#include "kube/tests/run_task.hh"
#include "tests/component/rank_message.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;
using namespace std::chrono_literals;

namespace {

constexpr int kVictims = 4;  // ranks of each honest job

VerifiedPod pod_in(const std::string& ns, const std::string& job, int number) {
  VerifiedPod pod;
  pod.trainjob_uid = ns + "-" + job + "-uid";
  pod.name = fmt::format("{}-node-0-{}", job, number);
  pod.uid = ns + "-" + pod.name;
  pod.node = "worker";
  pod.hang_threshold = "60";
  return pod;
}

Json stacks(const std::string& id, const std::string& line, int threads) {
  Json list = Json::array();
  for (int i = 0; i < threads; ++i)
    list.push_back(Json::object({{"name", "thread"},
                                 {"main", i == 0},
                                 {"state", "S"},
                                 {"wchan", ""},
                                 {"frames", Json::array({line})}}));
  return Json::object({{"id", id}, {"threads", std::move(list)}, {"children", Json::array()}});
}

// The hostile job `evil` of the namespace team-a. Its pods are verified as its own: nothing else
// can reach the store.
class Attacker {
 public:
  Attacker(HeartbeatStore& store, std::uint32_t seed) : store_(store), random_(seed) {}

  // A message that an honest rank has sent, to be sent again.
  void hear(std::string message) { heard_.push_back(std::move(message)); }

  // One second of a pod that floods, of one that lies and of one that replays.
  void attack(int second) {
    const std::string mine = kube::print_json(rank_message(0, sent_++, second, 0, "/e.py:1 f"));
    for (int i = 0; i < 30; ++i) send(0, mine);
    send(1, lie(second));
    if (!heard_.empty()) send(2, heard_[draw(heard_.size())]);
    if (!said_.empty()) send(2, said_[draw(said_.size())]);
    send(3, rubbish());
    said_.push_back(mine);
  }
  // Answers with each status.
  const std::map<int, int>& answers() const { return answers_; }

 private:
  std::size_t draw(std::size_t below) { return random_() % below; }

  void send(int pod, const std::string& body) {
    const auto answer = store_.take({"team-a", "evil"}, pod_in("team-a", "evil", pod), body);
    ++answers_[answer.status];
  }

  // It claims to be any rank, of any number of ranks, in any attempt, with any progress.
  std::string lie(int second) {
    Json message =
        rank_message(static_cast<std::int64_t>(draw(5'000)), sent_++, second,
                     static_cast<double>(draw(10'000)), std::string(draw(2'000), 'x') + ":7 f");
    message.set("world", static_cast<std::int64_t>(5'000 + draw(11'000)))
        .set("attempt", std::to_string(draw(3)))
        .set("born", std::string(draw(1'000), 'b'))
        .set("pid", static_cast<std::int64_t>(1 + draw(1'000'000)))
        .set("gap", static_cast<double>(draw(1'000'000)))
        .set("seq", std::int64_t(random_()));
    if (draw(2) == 0) message.set("dump", stacks(std::string(draw(500), 's'), "/x.py:1 f", 32));
    if (draw(9) == 0) message.set("bye", true);
    return kube::print_json(message);
  }

  std::string rubbish() {
    const std::int64_t giant = std::numeric_limits<std::int64_t>::max();
    Json message = rank_message(0, giant, giant, 1e9, "/x.py:1 f");
    switch (draw(7)) {
      case 0:
        message.set("rank", giant);
        break;
      case 1:
        message.set("world", giant);
        break;
      case 2:
        message.set("attempt", std::string(60'000, '9'));
        break;
      case 3:
        message.set("pid", giant);
        break;
      case 4:
        message.set("dump", stacks(std::string(50'000, 'i'), "/x.py:1 f", 400));
        break;
      case 5:
        return std::string(65'000, '[');
      default:
        message.set("steps", 1e300);
        break;
    }
    return kube::print_json(message);
  }

  HeartbeatStore& store_;
  std::mt19937 random_;
  std::int64_t sent_ = 0;
  std::vector<std::string> heard_, said_;
  std::map<int, int> answers_;
};

// Two honest jobs, one in the attacker's namespace and one in another. They train, and then hang
// because of rank 2.
class Honest {
 public:
  Honest(HeartbeatStore& store, std::string ns) : store_(store), ns_(std::move(ns)) {}

  void beat(int second, Attacker* listener) {
    for (int rank = 0; rank < kVictims; ++rank) {
      if ((second + rank) % 10 != 0) continue;
      const std::string dump = send(rank, second, "", listener);
      if (!dump.empty()) send(rank, second, dump, listener);
    }
  }
  std::string uid() const { return pod_in(ns_, "j", 0).trainjob_uid; }

  std::vector<std::string> seen;  // each answer, and each change of the verdict

 private:
  std::string send(int rank, int second, const std::string& dump, Attacker* listener) {
    const int last = std::min(second, 100);
    const std::string line = rank == 2 ? "/w/data.py:7 fetch" : "/w/train.py:88 main";
    Json message = rank_message(rank, sent_++, last, second - last, line);
    const std::string frame =
        rank == 2 ? line : "/usr/lib/python3/dist-packages/torch/distributed/c10d.py:9 all_reduce";
    if (!dump.empty()) message.set("dump", stacks(dump, frame, 1));
    std::string body = kube::print_json(message);
    const auto answer = store_.take({ns_, "j"}, pod_in(ns_, "j", rank), body);
    if (listener != nullptr) listener->hear(std::move(body));
    seen.push_back(fmt::format("{} s: {} {}", second, answer.status, answer.body));
    const auto json = kube::parse_json(answer.body);
    return json ? std::string(json->get_string("dump")) : std::string();
  }

  HeartbeatStore& store_;
  const std::string ns_;
  std::int64_t sent_ = 0;
};

struct Heard {
  std::vector<std::string> seen;  // by both honest jobs
  std::vector<std::int32_t> suspects;
  std::map<int, int> answers;  // to the attacker
};

Heard run_both(bool has_attacker, std::uint32_t seed) {
  kube::asio::io_context io;
  kube::FakeClock clock;
  const kube::Log log(kube::LogLevel::kError, kube::Log::Format::kText);
  const auto board = std::make_shared<HeartbeatBoard>();
  HeartbeatStore store(io, clock, board, log);
  Attacker attacker(store, seed);
  Honest jobs[] = {Honest(store, "team-a"), Honest(store, "team-b")};
  for (int second = 0; second < 250; ++second) {
    if (has_attacker) attacker.attack(second);
    for (Honest& job : jobs) job.beat(second, has_attacker ? &attacker : nullptr);
    kube::settle(io);
    clock.advance(1s);
    kube::settle(io);
    for (Honest& job : jobs) {
      const auto facts = board->find(job.uid());
      job.seen.push_back(!facts          ? "nothing"
                         : !facts->stall ? "runs"
                                         : facts->stall->reason + facts->stall->message);
    }
  }
  Heard outcome;
  for (Honest& job : jobs) {
    outcome.seen.insert(outcome.seen.end(), job.seen.begin(), job.seen.end());
    const auto facts = board->find(job.uid());
    if (!facts || !facts->stall) continue;
    for (const auto& suspect : facts->stall->suspects) outcome.suspects.push_back(suspect.rank);
  }
  outcome.answers = attacker.answers();
  kube::run_task(io, store.stop());
  return outcome;
}

}  // namespace

TEST_CASE("a job that floods, lies and replays changes no answer and no verdict of other jobs") {
  const Heard quiet = run_both(false, 0);
  CHECK(quiet.suspects == std::vector<std::int32_t>{2, 2});
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    CAPTURE(seed);
    Heard attacked = run_both(true, seed);
    CHECK(attacked.seen == quiet.seen);
    CHECK(attacked.suspects == quiet.suspects);
    // The attacker was heard, refused and held back.
    CHECK(attacked.answers[200] > 1'000);
    CHECK(attacked.answers[422] > 100);
    CHECK(attacked.answers[429] > 1'000);
  }
}
