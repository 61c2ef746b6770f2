// These tests check whether a thread that hangs is noticed.
#include "controller/process/loop_health.hh"

#include <vector>

#include "kube/client/task_group.hh"
#include "kube/tests/fake_clock.hh"
#include "kube/tests/run_task.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using namespace std::chrono_literals;

TEST_CASE("a loop that runs is alive, and one that does not is dead after fifteen seconds") {
  kube::asio::io_context io;
  kube::FakeClock clock;
  std::vector<LoopHealth::Steady::duration> lags;
  LoopHealth health(
      "serving", clock.steady(),
      [&](std::string_view, LoopHealth::Steady::duration lag) { lags.push_back(lag); });
  kube::TaskGroup tasks(io.get_executor(), nullptr);
  tasks.spawn("health", health.run(clock));
  kube::settle(io);
  for (int i = 0; i < 30; ++i) {
    clock.advance(1s);
    kube::settle(io);
  }
  CHECK(health.problem(clock.steady()).empty());
  clock.advance(14s);  // the loop does not run
  CHECK(health.problem(clock.steady()).empty());
  clock.advance(1s);
  CHECK(health.problem(clock.steady()) == "the serving thread has not run for 15 s");
  kube::settle(io);
  CHECK(health.problem(clock.steady()).empty());
  REQUIRE(lags.size() == 31);
  CHECK(lags.front() == 0s);
  CHECK(lags.back() == 14s);
  tasks.cancel();
  kube::run_task(io, tasks.join());
}
