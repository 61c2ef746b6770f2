#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kube/client/notifier.hh"
#include "kube/client/semaphore.hh"
#include "kube/client/task_group.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/error_name.hh"
#include "kube/tests/run_task.hh"

using namespace kube;
using Log = std::vector<std::string>;

namespace {

// Takes a slot, says so, and holds it until it is asked to release it.
struct Holders {
  asio::io_context io;
  Semaphore slots{1, 3};
  Log log;
  TaskGroup group{io.get_executor(), nullptr};
  Notifier work{io.get_executor()};

  static Task<void> hold(Holders& all, std::string name, Semaphore::Priority priority,
                         std::chrono::steady_clock::time_point deadline, std::string ns = "") {
    const auto permit = co_await all.slots.acquire(deadline, priority, ns);
    if (!permit) {
      all.log.push_back(name + ": " + std::string(test::name_of(permit.error().code)));
      co_return;
    }
    all.log.push_back(name);
    co_await all.work.wait();
  }
  void start(const std::string& name, Semaphore::Priority priority = Semaphore::Priority::kHigh,
             std::chrono::steady_clock::time_point deadline = Semaphore::kNoDeadline) {
    group.spawn(name, hold(*this, name, priority, deadline));
    settle(io);
  }
  void start_in(const std::string& ns, const std::string& name,
                Semaphore::Priority priority = Semaphore::Priority::kHigh) {
    group.spawn(name, hold(*this, ns + "/" + name, priority, Semaphore::kNoDeadline, ns));
    settle(io);
  }
  // The holder of the slot is done with it.
  void finish() {
    work.notify();
    settle(io);
  }
};

Task<void> take(Semaphore& slots, std::optional<Semaphore::Permit>& taken) {
  auto permit = co_await slots.acquire(Semaphore::kNoDeadline);
  if (permit) taken.emplace(std::move(*permit));
}

}  // namespace

TEST_CASE("slots are given in order of arrival, high before low") {
  Holders holders;
  holders.start("first", Semaphore::Priority::kLow);
  holders.start("low 1", Semaphore::Priority::kLow);
  holders.start("high 1");
  holders.start("low 2", Semaphore::Priority::kLow);
  holders.start("high 2");
  CHECK(holders.slots.waiting() == 4);
  for (int i = 0; i < 5; ++i) holders.finish();
  CHECK(holders.log == Log{"first", "high 1", "high 2", "low 1", "low 2"});
  CHECK(holders.slots.waiting() == 0);
}

TEST_CASE("without a share low waits until no high does") {
  Holders holders{.slots = Semaphore(1)};
  holders.start("first");
  for (const char* name : {"low 1", "low 2"}) holders.start(name, Semaphore::Priority::kLow);
  for (const char* name : {"high 1", "high 2"}) holders.start(name);
  for (int i = 0; i < 5; ++i) holders.finish();
  CHECK(holders.log == Log{"first", "high 1", "high 2", "low 1", "low 2"});
}

TEST_CASE("where both wait, low gets its share") {
  Holders holders;
  holders.start("first");
  for (const char* name : {"low 1", "low 2", "low 3"})
    holders.start(name, Semaphore::Priority::kLow);
  for (const char* name : {"high 1", "high 2", "high 3", "high 4", "high 5"}) holders.start(name);
  for (int i = 0; i < 8; ++i) holders.finish();
  CHECK(holders.log ==
        Log{"first", "high 1", "high 2", "low 1", "high 3", "high 4", "low 2", "high 5", "low 3"});
}

TEST_CASE("what went before low waited does not count for its share") {
  Holders holders;
  holders.start("first");
  for (const char* name : {"high 1", "high 2", "high 3", "high 4", "high 5"}) holders.start(name);
  holders.finish();
  holders.finish();
  holders.start("low", Semaphore::Priority::kLow);
  for (int i = 0; i < 4; ++i) holders.finish();
  CHECK(holders.log == Log{"first", "high 1", "high 2", "high 3", "high 4", "low", "high 5"});
}

TEST_CASE("namespaces take turns, whatever each waits for") {
  Holders holders;
  holders.start_in("a", "first");
  for (const char* name : {"1", "2", "3"}) holders.start_in("a", name);
  holders.start_in("b", "status", Semaphore::Priority::kLow);
  holders.start_in("c", "status", Semaphore::Priority::kLow);
  holders.start_in("c", "1");
  CHECK(holders.slots.waiting() == 6);
  for (int i = 0; i < 6; ++i) holders.finish();
  CHECK(holders.log == Log{"a/first", "a/1", "b/status", "c/1", "a/2", "c/status", "a/3"});
  CHECK(holders.slots.waiting() == 0);
}

TEST_CASE("a namespace whose only waiter was cancelled loses its turn, and gets one again") {
  Holders holders;
  holders.start_in("a", "first");
  {
    TaskGroup others(holders.io.get_executor(), nullptr);
    others.spawn("cancelled", Holders::hold(holders, "cancelled", Semaphore::Priority::kHigh,
                                            Semaphore::kNoDeadline, "b"));
    settle(holders.io);
    others.cancel();
    run_task(holders.io, others.join());
  }
  holders.start_in("a", "1");
  holders.finish();
  holders.start_in("b", "1");
  holders.start_in("a", "2");
  holders.finish();
  holders.finish();
  holders.finish();
  holders.start_in("b", "2");  // a free slot
  CHECK(holders.log == Log{"a/first", "cancelled: Cancelled", "a/1", "b/1", "a/2", "b/2"});
}

TEST_CASE("who waits for a slot too long, or is cancelled, leaves the queue") {
  Holders holders;
  holders.start("first");
  holders.start("late", Semaphore::Priority::kLow,
                std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
  CHECK(run_until(holders.io, [&] { return holders.log.size() == 2; }));
  CHECK(holders.log == Log{"first", "late: Timeout"});
  {
    TaskGroup others(holders.io.get_executor(), nullptr);
    others.spawn("cancelled", Holders::hold(holders, "cancelled", Semaphore::Priority::kHigh,
                                            Semaphore::kNoDeadline));
    settle(holders.io);
    CHECK(holders.slots.waiting() == 1);
    others.cancel();
    run_task(holders.io, others.join());
  }
  CHECK(holders.slots.waiting() == 0);
  holders.start("next");
  holders.finish();
  CHECK(holders.log.back() == "next");
  holders.finish();
  holders.start("free");  // a slot without a holder is free
  CHECK(holders.log.back() == "free");
  holders.finish();
}

TEST_CASE("a permit may outlive its slots") {
  asio::io_context io;
  auto slots = std::make_unique<Semaphore>(1);
  std::optional<Semaphore::Permit> first;
  std::optional<Semaphore::Permit> second;
  run_task(io, take(*slots, first));
  REQUIRE(first);
  SECTION("where no one waits") {
    slots.reset();
    first.reset();
  }
  SECTION("and goes to who waits all the same") {
    TaskGroup group(io.get_executor(), nullptr);
    group.spawn("second", take(*slots, second));
    settle(io);
    REQUIRE(slots->waiting() == 1);
    slots.reset();
    CHECK_FALSE(second);
    first.reset();
    run_task(io, group.join());
    CHECK(second);
  }
}

TEST_CASE("what holds a slot or waits for one may end with the io_context, after the slots") {
  Holders holders;  // its io_context is destroyed last, and the frames with it
  holders.start("holds");
  holders.start("waits");
  holders.start("waits behind", Semaphore::Priority::kLow);
  CHECK(holders.slots.waiting() == 2);
  CHECK(holders.log == Log{"holds"});
}
