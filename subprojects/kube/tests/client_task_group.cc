#include <boost/system/system_error.hpp>
#include <stdexcept>

#include "kube/client/task_group.hh"
#include "kube/client/with_deadline.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/fake_clock.hh"
#include "kube/tests/run_task.hh"

using namespace kube;

namespace {

Task<void> sleeper(Clock& clock, std::vector<std::string>& log) {
  struct OnExit {
    std::vector<std::string>& log;
    ~OnExit() { log.push_back("gone"); }
  } on_exit{log};
  co_await sleep(clock, std::chrono::hours(1));
  log.push_back("slept");
}

Task<void> thrower() {
  co_await asio::this_coro::executor;
  throw std::runtime_error("a bug");
}

Task<void> aborted() {
  co_await asio::this_coro::executor;
  throw boost::system::system_error(asio::error::operation_aborted);
}

Task<Result<int>> answer(Clock& clock, Milliseconds after, int value) {
  co_await sleep(clock, after);
  co_return value;
}

}  // namespace

TEST_CASE("a group reports exceptions, cancels together and joins") {
  asio::io_context io;
  FakeClock clock;
  std::vector<std::string> log;
  TaskGroup group(io.get_executor(), [&log](std::string_view task, std::string_view what) {
    log.push_back(std::string(task) + ": " + std::string(what));
  });
  CHECK(group.spawn("bad", thrower()));
  CHECK(group.spawn("aborted", aborted()));
  CHECK(group.spawn("one", sleeper(clock, log)));
  CHECK(group.spawn("two", sleeper(clock, log)));
  settle(io);
  REQUIRE(log.size() == 2);
  CHECK(log[0] == "bad: a bug");
  CHECK_THAT(log[1], Catch::StartsWith("aborted: "));  // although it was not cancelled
  log.clear();
  group.cancel();
  run_task(io, group.join());
  CHECK(log == std::vector<std::string>{"gone", "gone"});
  CHECK_FALSE(group.spawn("late", thrower()));
}

TEST_CASE("a group whose owner is cancelled ends before its owner does") {
  asio::io_context io;
  FakeClock clock;
  std::vector<std::string> log;
  TaskGroup inner(io.get_executor(), nullptr);
  inner.spawn("child", sleeper(clock, log));
  TaskGroup outer(io.get_executor(), nullptr);
  outer.spawn("owner", inner.join());
  settle(io);
  outer.cancel();
  settle(io);
  CHECK(log == std::vector<std::string>{"gone"});
}

TEST_CASE("a sleeper wakes by its clock") {
  asio::io_context io;
  FakeClock clock;
  std::vector<std::string> log;
  TaskGroup group(io.get_executor(), nullptr);
  group.spawn("one", sleeper(clock, log));
  settle(io);
  clock.advance(std::chrono::minutes(59));
  settle(io);
  CHECK(log.empty());
  clock.advance(std::chrono::minutes(1));
  settle(io);
  CHECK(log == std::vector<std::string>{"slept", "gone"});
}

TEST_CASE("a deadline passes results on, and ends what takes too long") {
  asio::io_context io;
  SystemClock clock;
  const auto in_time =
      run_task(io, with_deadline(Milliseconds(5'000), answer(clock, Milliseconds(1), 7)));
  CHECK(in_time.value() == 7);
  FakeClock stopped;
  const auto late =
      run_task(io, with_deadline(Milliseconds(5), answer(stopped, Milliseconds(1), 7)));
  REQUIRE_FALSE(late);
  CHECK(late.error().code == ErrorCode::kTimeout);
  CHECK_THROWS_WITH(run_task(io, with_deadline(Milliseconds(5'000), thrower())), "a bug");
}

TEST_CASE("a cancellation passes through a deadline") {
  asio::io_context io;
  FakeClock clock;
  std::vector<std::string> log;
  TaskGroup group(io.get_executor(), nullptr);
  group.spawn("one", [](FakeClock& stopped, std::vector<std::string>& out) -> Task<void> {
    co_await with_deadline(Milliseconds(1'000'000), sleeper(stopped, out));
    out.push_back("went on");
  }(clock, log));
  settle(io);
  group.cancel();
  settle(io);
  CHECK(log == std::vector<std::string>{"gone"});
}
