// Ranks are named as slow if they are so for a time.
#include "runtimes/stall/stragglers.hh"

#include <utility>

#include "tests/support/catch.hh"

namespace trainer::stall::test {
namespace {

using namespace std::chrono_literals;
using Owns = std::vector<double>;
using Named = std::vector<std::int32_t>;

// Ranks that say how long their own work takes, each every 15 seconds, with a decision every 5.
struct Pacing {
  explicit Pacing(Owns owns) { set(std::move(owns)); }

  void set(const Owns& owns) {
    for (std::size_t i = 0; i < owns.size(); ++i) {
      RankReport& report = ranks[static_cast<std::int32_t>(i)];
      report.pod = "pod";
      report.node = "machine";
      report.own = owns[i];
      report.steps = std::max<std::int64_t>(report.steps, 100);
    }
  }
  // Returns how often the answer has changed.
  int run(std::chrono::seconds time) {
    int changes = 0;
    for (auto left = time; left > 0s; left -= 5s) {
      if ((now - Stragglers::Time()) % 15s == 0s && has_heartbeats)
        for (auto& [rank, report] : ranks) ++report.sent;
      changes += slow.decide(ranks, now) ? 1 : 0;
      now += 5s;
    }
    return changes;
  }
  Named named() const {
    Named ranks_named;
    for (const Straggler& each : slow.named()) ranks_named.push_back(each.rank);
    return ranks_named;
  }

  std::map<std::int32_t, RankReport> ranks;
  Stragglers slow;
  Stragglers::Time now{1h};
  bool has_heartbeats = true;
};

TEST_CASE("a rank is slow above one and a half medians", "[stall]") {
  struct Row {
    const char* what;
    Owns owns;
    Named named;
  };
  const Row rows[] = {
      {"one of four", {1.0, 1.0, 1.6, 1.0}, {2}},
      {"exactly the limit", {1.0, 1.0, 1.5, 1.0}, {}},
      {"two of six", {1.0, 2.0, 1.0, 1.1, 3.0, 0.9}, {1, 4}},
      {"all alike", {1.0, 1.1, 0.9, 1.2}, {}},
      {"a half is no exception", {1.0, 1.0, 2.0, 2.0}, {}},
      {"two ranks", {1.0, 9.0}, {}},
      {"three ranks", {1.0, 9.0, 1.0}, {1}},
      {"unknown ones do not count", {1.0, 9.0, -1, -1}, {}},
      {"the noise of short steps", {0.002, 0.002, 0.0069, 0.002}, {}},
      {"short steps", {0.002, 0.002, 0.0071, 0.002}, {2}},
      {"no time at all", {0, 0, 0, 0}, {}},
      {"one that works alone", {0, 0, 0, 5.0}, {3}},
      {"absurd values", {0, 0, 0, 1e9}, {3}},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    Pacing job(row.owns);
    job.run(120s);
    CHECK(job.named() == row.named);
  }
}

TEST_CASE("the figure of a straggler is bounded, and says its medians", "[stall]") {
  Pacing job({1.0, 1.0, 1.8, 1.0});
  job.run(65s);
  REQUIRE(job.named() == Named{2});
  CHECK(job.slow.named()[0].times == 1.8);
  CHECK(job.slow.named()[0].pod == "pod");
  CHECK(job.slow.named()[0].node == "machine");
  // The figure stays while it is named.
  job.set({1.0, 1.0, 4.0, 1.0});
  CHECK(job.run(30s) == 0);
  CHECK(job.slow.named()[0].times == 1.8);
  Pacing absurd({0, 0, 0, 1e9});
  absurd.run(65s);
  REQUIRE(absurd.named() == Named{3});
  CHECK(absurd.slow.named()[0].times == 999);
}

TEST_CASE("a rank is named after a minute, and no longer after another one", "[stall]") {
  Pacing job({1.0, 1.0, 2.0, 1.0});
  job.run(60s);
  CHECK(job.named().empty());
  CHECK(job.run(5s) == 1);
  CHECK(job.named() == Named{2});
  // Once it is named, less than the limit does not suffice.
  job.set({1.0, 1.0, 1.4, 1.0});
  job.run(10min);
  CHECK(job.named() == Named{2});
  job.set({1.0, 1.0, 1.2, 1.0});
  job.run(60s);
  CHECK(job.named() == Named{2});
  CHECK(job.run(5s) == 1);
  CHECK(job.named().empty());
  // The same does not name it.
  job.set({1.0, 1.0, 1.4, 1.0});
  CHECK(job.run(10min) == 0);
}

TEST_CASE("a rank that is slow for moments is not named", "[stall]") {
  Pacing job({1.0, 1.0, 1.0, 1.0});
  for (int i = 0; i < 20; ++i) {
    job.set({1.0, 1.0, 9.0, 1.0});
    job.run(55s);
    job.set({1.0, 1.0, 1.4, 1.0});
    job.run(5s);
  }
  CHECK(job.named().empty());
  // If it is well for moments, it stays named.
  job.set({1.0, 1.0, 9.0, 1.0});
  job.run(65s);
  REQUIRE(job.named() == Named{2});
  for (int i = 0; i < 20; ++i) {
    job.set({1.0, 1.0, 1.0, 1.0});
    job.run(55s);
    job.set({1.0, 1.0, 1.4, 1.0});
    CHECK(job.run(5s) == 0);
  }
}

TEST_CASE("what is not heard again names no rank", "[stall]") {
  Pacing job({1.0, 1.0, 9.0, 1.0});
  job.has_heartbeats = false;
  job.run(10min);
  CHECK(job.named().empty());
  job.has_heartbeats = true;
  job.run(45s);
  CHECK(job.named() == Named{2});
}

TEST_CASE("the first steps, and ranks that have ended, do not count", "[stall]") {
  Pacing job({1.0, 1.0, 9.0, 1.0});
  job.ranks[2].steps = 49;
  job.run(120s);
  CHECK(job.named().empty());
  job.ranks[2].steps = 50;
  job.run(65s);
  REQUIRE(job.named() == Named{2});
  SECTION("it ends") {
    job.ranks[2].has_ended = true;
  }
  SECTION("another process takes its place") {
    job.ranks[2].steps = 1;
    job.ranks[2].own = -1;
  }
  SECTION("the job goes on without it") {
    job.ranks.erase(2);
  }
  SECTION("too few are left") {
    for (const std::int32_t rank : {0, 1}) job.ranks[rank].has_ended = true;
  }
  CHECK(job.run(5s) == 1);
  CHECK(job.named().empty());
}

TEST_CASE("no more are named than a status takes, the slowest first, in the order of ranks",
          "[stall]") {
  Owns owns(100, 1.0);
  for (std::size_t i = 0; i < 40; ++i) owns[i] = 2.0 + static_cast<double>(i % 20);
  Pacing job(owns);
  job.run(65s);
  CHECK(job.named() == Named{12, 13, 14, 15, 16, 17, 18, 19, 32, 33, 34, 35, 36, 37, 38, 39});
  // Others that become slower do not take their places.
  for (std::size_t i = 0; i < 12; ++i) owns[i] = 100;
  job.set(owns);
  job.run(60s);  // until it is known
  CHECK(job.run(10min) == 0);
  owns[39] = 1;
  job.set(owns);
  job.run(70s);
  CHECK(job.named() == Named{0, 12, 13, 14, 15, 16, 17, 18, 19, 32, 33, 34, 35, 36, 37, 38});
}

TEST_CASE("a new process says nothing before it had time to compare", "[stall]") {
  Pacing job({1.0, 1.0, 2.0, 1.0});
  job.run(120s);
  CHECK(job.named() == Named{2});
  CHECK_FALSE(job.slow.is_known());
  CHECK(job.run(5s) == 1);
  CHECK(job.slow.is_known());
  CHECK(job.run(10min) == 0);
  CHECK(job.slow.clear());
  CHECK_FALSE(job.slow.clear());
  CHECK_FALSE(job.slow.is_known());
  CHECK(job.named().empty());
}

TEST_CASE("ranks of which half change their pace at random take bounded memory", "[stall]") {
  Pacing job(Owns(10'000, 1.0));
  for (int round = 0; round < 30; ++round) {
    for (auto& [rank, report] : job.ranks) report.own = (rank * 7 + round) % 5 < 2 ? 9.0 : 1.0;
    job.run(15s);
  }
  CHECK(job.slow.bytes() < 1'000'000);
}

}  // namespace
}  // namespace trainer::stall::test
