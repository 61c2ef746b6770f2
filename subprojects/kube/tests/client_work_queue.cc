#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "kube/client/task_group.hh"
#include "kube/client/work_queue.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/fake_clock.hh"
#include "kube/tests/run_task.hh"

using namespace kube;

namespace {

ObjectKey key(const std::string& name) {
  return {"ns", name};
}

struct Fixture {
  asio::io_context io;
  FakeClock clock;
  WorkQueue queue{io, clock};

  // All that next() gives at once, as "NAMESPACE/NAME NAMESPACE/NAME"; each stays worked on.
  std::string ready_in_turn() {
    std::string all;
    while (queue.depth() > 0) {
      if (!all.empty()) all += " ";
      all += run_task(io, queue.next())->to_string();
    }
    return all;
  }
  // Returns what next() returns at once; "-" while it has to wait.
  std::string ready() {
    if (queue.depth() == 0) return "-";
    return run_task(io, queue.next())->name;
  }
  void advance(Milliseconds by) {
    clock.advance(by);
    settle(io);
  }
};

// A worker that never ends its work.
Task<void> take_and_hold(WorkQueue& queue, std::vector<ObjectKey>& taken) {
  if (auto got = co_await queue.next()) taken.push_back(std::move(*got));
}

Task<void> take_one(WorkQueue& queue, std::vector<std::string>& taken) {
  const auto got = co_await queue.next();
  taken.push_back(got ? got->name : "closed");
}

}  // namespace

TEST_CASE_METHOD(Fixture, "a key is queued once and handed out in order") {
  queue.add(key("a"));
  queue.add(key("b"));
  queue.add(key("a"));
  CHECK(queue.depth() == 2);
  CHECK(ready() == "a");
  CHECK(ready() == "b");
  CHECK(ready() == "-");
}

TEST_CASE_METHOD(Fixture, "a key is never worked on twice at a time") {
  queue.add(key("a"));
  CHECK(ready() == "a");
  queue.add(key("a"));
  queue.add(key("a"));
  CHECK(ready() == "-");
  CHECK_FALSE(queue.is_idle());
  queue.done(key("a"));
  CHECK(ready() == "a");
  queue.done(key("a"));
  CHECK(ready() == "-");
  CHECK(queue.is_idle());
}

TEST_CASE_METHOD(Fixture, "a delay beyond what the clock can hold does not end at once") {
  for (const std::int64_t delay : {10'000'000'000'000, 253'402'300'799'000}) {
    queue.add_after(key("a"), Milliseconds(delay));
    CHECK(ready() == "-");
    advance(std::chrono::hours(24));
    CHECK(ready() == "-");
    advance(std::chrono::hours(24 * 29));
    CHECK(ready() == "a");
    queue.done(key("a"));
  }
}

TEST_CASE_METHOD(Fixture, "of several delays the earliest wins") {
  queue.add_after(key("a"), Milliseconds(300));
  queue.add_after(key("a"), Milliseconds(100));
  queue.add_after(key("a"), Milliseconds(200));
  queue.add_after(key("b"), Milliseconds(50));
  queue.add_after(key("c"), Milliseconds(0));
  CHECK(ready() == "c");
  advance(Milliseconds(49));
  CHECK(ready() == "-");
  advance(Milliseconds(1));
  CHECK(ready() == "b");
  advance(Milliseconds(50));
  CHECK(ready() == "a");
  queue.done(key("a"));
  advance(Milliseconds(1'000));
  CHECK(ready() == "-");
  CHECK(clock.timers() == 0);
}

TEST_CASE_METHOD(Fixture,
                 "a delay that is pending when its key is handed out is answered with it") {
  queue.add_after(key("a"), Milliseconds(100));
  queue.add(key("a"));
  CHECK(ready() == "a");
  queue.add_after(key("a"), Milliseconds(300));  // something that happened since then adds this
  advance(Milliseconds(200));
  queue.forget(key("a"));
  queue.done(key("a"));
  CHECK(ready() == "-");
  advance(Milliseconds(100));
  CHECK(ready() == "a");
  queue.forget(key("a"));
  queue.done(key("a"));
  advance(Milliseconds(1'000));
  CHECK(ready() == "-");
  CHECK(clock.timers() == 0);
}

TEST_CASE_METHOD(Fixture,
                 "a delay that is pending when its key is handed out counts where work fails") {
  queue.add_after(key("a"), Milliseconds(100));
  queue.add(key("a"));
  CHECK(ready() == "a");
  queue.add_after(key("a"),
                  Milliseconds(5'000));  // for example, the server asked to wait this long
  queue.done(key("a"));
  advance(Milliseconds(99));
  CHECK(ready() == "-");
  advance(Milliseconds(1));
  CHECK(ready() == "a");
}

TEST_CASE_METHOD(Fixture, "a delay of another key stays when a key is handed out") {
  queue.add_after(key("a"), Milliseconds(100));
  queue.add(key("b"));
  CHECK(ready() == "b");
  queue.forget(key("b"));
  queue.done(key("b"));
  advance(Milliseconds(100));
  CHECK(ready() == "a");
}

TEST_CASE_METHOD(Fixture, "a failing key backs off from 5 ms to 1000 s until it is forgotten") {
  std::int64_t expected = 5;
  for (int i = 0; i < 20; ++i) {
    queue.add_rate_limited(key("a"));
    advance(Milliseconds(expected - 1));
    REQUIRE(ready() == "-");
    advance(Milliseconds(1));
    REQUIRE(ready() == "a");
    queue.done(key("a"));
    expected = std::min<std::int64_t>(expected * 2, 1'000'000);
  }
  CHECK(queue.failures(key("a")) == 20);
  queue.add_rate_limited(key("a"), Milliseconds(60'000));
  advance(Milliseconds(60'000));
  REQUIRE(ready() == "a");
  queue.done(key("a"));
  queue.forget(key("a"));
  CHECK(queue.failures(key("a")) == 0);
  queue.add_rate_limited(key("a"));
  advance(Milliseconds(5));
  CHECK(ready() == "a");
}

TEST_CASE_METHOD(Fixture, "waiting workers are served in the order they came") {
  std::vector<std::string> first;
  std::vector<std::string> second;
  TaskGroup group(io.get_executor(), nullptr);
  group.spawn("first", take_one(queue, first));
  group.spawn("second", take_one(queue, second));
  settle(io);
  queue.add(key("a"));
  settle(io);
  CHECK(first == std::vector<std::string>{"a"});
  queue.close();
  settle(io);
  CHECK(second == std::vector<std::string>{"closed"});
  CHECK_FALSE(run_task(io, queue.next()).has_value());
}

TEST_CASE_METHOD(Fixture, "a closed queue is idle as soon as nothing is being worked on") {
  queue.add(key("a"));
  CHECK(ready() == "a");
  queue.add(key("a"));
  queue.add(key("b"));
  queue.add_after(key("c"), Milliseconds(100));
  queue.close();
  CHECK(queue.depth() == 0);
  CHECK(clock.timers() == 0);
  CHECK_FALSE(queue.is_idle());
  queue.done(key("a"));
  CHECK(queue.is_idle());
  queue.add(key("d"));
  advance(Milliseconds(100));
  CHECK(queue.is_idle());
  CHECK_FALSE(run_task(io, queue.next()).has_value());
}

TEST_CASE_METHOD(Fixture, "a worker that was cancelled takes no key along") {
  std::vector<std::string> first;
  std::vector<std::string> second;
  TaskGroup leaving(io.get_executor(), nullptr);
  leaving.spawn("first", take_one(queue, first));
  settle(io);
  leaving.cancel();
  settle(io);
  queue.add(key("a"));
  settle(io);
  CHECK(queue.depth() == 1);
  TaskGroup staying(io.get_executor(), nullptr);
  staying.spawn("second", take_one(queue, second));
  settle(io);
  CHECK(second == std::vector<std::string>{"a"});
}

TEST_CASE_METHOD(Fixture,
                 "a worker that is cancelled with a key on its way gives it back or has it") {
  std::vector<std::string> taken;
  TaskGroup leaving(io.get_executor(), nullptr);
  leaving.spawn("first", take_one(queue, taken));
  settle(io);
  leaving.cancel();
  queue.add(key("a"));
  settle(io);
  const bool was_taken = taken == std::vector<std::string>{"a"};
  CHECK(queue.depth() == (was_taken ? 0U : 1U));
}

TEST_CASE_METHOD(Fixture, "the wait of a key is reported when it is handed out") {
  std::vector<Milliseconds> waits;
  queue.on_wait = [&waits](std::chrono::steady_clock::duration wait) {
    waits.push_back(std::chrono::duration_cast<Milliseconds>(wait));
  };
  queue.add(key("a"));
  advance(Milliseconds(40));
  CHECK(ready() == "a");
  CHECK(waits == std::vector<Milliseconds>{Milliseconds(40)});
}

TEST_CASE_METHOD(Fixture, "a key counts when it is added, not while it waits already") {
  queue.add(key("a"));
  queue.add(key("a"));
  CHECK(queue.adds() == 1);
  CHECK(ready() == "a");
  queue.add(key("a"));
  queue.add(key("a"));
  CHECK(queue.adds() == 2);
  queue.done(key("a"));
  CHECK(ready() == "a");
  CHECK(queue.adds() == 2);
  CHECK(queue.retries() == 0);
  queue.add_rate_limited(key("a"));
  queue.done(key("a"));
  CHECK(queue.retries() == 1);
  CHECK(queue.adds() == 2);
  advance(Milliseconds(5));
  CHECK(queue.adds() == 3);
  queue.close();
  queue.add(key("b"));
  CHECK(queue.adds() == 3);
}

TEST_CASE_METHOD(Fixture, "namespaces take turns, within one the first that was ready goes first") {
  for (const char* name : {"1", "2", "3", "4"}) queue.add({"many", name});
  queue.add({"few", "1"});
  queue.add({"few", "2"});
  queue.add({"", "cluster-scoped"});
  CHECK(ready_in_turn() == "many/1 few/1 cluster-scoped many/2 few/2 many/3 many/4");
}

TEST_CASE_METHOD(Fixture,
                 "a key that is added again while it is worked on goes behind its namespace") {
  queue.add({"a", "slices"});
  CHECK(ready() == "slices");
  queue.add({"a", "1"});
  queue.add({"a", "2"});
  queue.add({"b", "1"});
  queue.add_after({"a", "slices"}, Milliseconds(0));  // the next slice
  queue.forget({"a", "slices"});
  queue.done({"a", "slices"});
  CHECK(ready_in_turn() == "a/1 b/1 a/2 a/slices");
}

TEST_CASE_METHOD(Fixture, "one namespace never holds all workers") {
  struct Row {
    std::size_t workers;
    std::vector<std::size_t> held;  // by a namespace each, all with many keys
  };
  const Row rows[] = {
      {32, {28}}, {32, {15, 14}}, {32, {10, 10, 10}}, {5, {4}},
      {4, {3}},   {3, {2}},       {2, {1}},           {1, {1}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.workers, row.held.size());
    Fixture world;
    world.queue.share_workers(row.workers, 7);
    for (std::size_t i = 0; i < 64; ++i) {
      for (std::size_t ns = 0; ns < row.held.size(); ++ns)
        world.queue.add({"ns" + std::to_string(ns), std::to_string(i)});
    }
    std::vector<ObjectKey> taken;
    TaskGroup group(world.io.get_executor(), nullptr);
    for (std::size_t i = 0; i < row.workers; ++i)
      group.spawn("worker", take_and_hold(world.queue, taken));
    settle(world.io);
    std::vector<std::size_t> held(row.held.size());
    for (const ObjectKey& each : taken) ++held.at(static_cast<std::size_t>(each.ns.back() - '0'));
    CHECK(held == row.held);

    world.queue.add({"other", "1"});
    settle(world.io);
    CHECK((taken.back().ns == "other") == (row.workers > 1));
    group.cancel();
    run_task(world.io, group.join());
  }
}

TEST_CASE_METHOD(
    Fixture, "a namespace that is held back gets a waiting worker once one of its own is done") {
  queue.share_workers(3, 7);
  for (const char* name : {"1", "2", "3", "4"}) queue.add({"a", name});
  std::vector<ObjectKey> taken;
  TaskGroup group(io.get_executor(), nullptr);
  for (int i = 0; i < 3; ++i) group.spawn("worker", take_and_hold(queue, taken));
  settle(io);
  REQUIRE(taken.size() == 2);
  queue.done({"a", "1"});
  settle(io);
  REQUIRE(taken.size() == 3);
  CHECK(taken.back().name == "3");
  CHECK(queue.depth() == 1);
}

TEST_CASE_METHOD(Fixture, "the last free worker is for a namespace that holds none") {
  queue.share_workers(3, 7);
  for (const char* name : {"1", "2", "3"}) queue.add({"a", name});
  CHECK(ready() == "1");
  CHECK(ready() == "2");
  queue.add({"b", "1"});
  queue.add({"b", "2"});
  CHECK(run_task(io, queue.next())->ns == "b");
  queue.done({"a", "1"});
  CHECK(queue.depth() == 2);
  queue.close();
  CHECK(queue.depth() == 0);
  queue.done({"a", "2"});
  queue.done({"b", "1"});
  CHECK(queue.is_idle());
}

TEST_CASE_METHOD(Fixture, "keys that wait can be shown, a bounded number of them") {
  for (const char* name : {"a", "b", "c"}) queue.add(key(name));
  queue.add({"other", "d"});
  queue.add_after(key("later"), Milliseconds(1'000));
  CHECK(queue.delayed() == 1);
  CHECK(queue.ready_keys(10) ==
        std::vector<ObjectKey>{key("a"), key("b"), key("c"), {"other", "d"}});
  CHECK(queue.ready_keys(2).size() == 2);
  CHECK(queue.depth() == 4);
}
