// Workers take keys, and go on after each result of a reconcile.
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include "kube/client/notifier.hh"
#include "kube/manager/worker_pool.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/recorded_metrics.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_peer.hh"

using namespace kube;
using std::chrono::seconds;

namespace {

using Lines = std::vector<std::string>;
using Outcome = std::function<Result<Requeue>()>;

// Every reconcile ends as the test says, which may be an exception.
struct Fixture : test::ScriptedPeer {
  test::RecordedMetrics metrics;
  WorkQueue queue{io, clock};
  Outcome outcome = [] { return Requeue{}; };
  bool is_held = false;  // reconciles do not end
  Lines reconciled;      // keys, in the order in which their reconciles began
  Reconcile reconcile = [this](const ObjectKey& key) {
    reconciled.push_back(key.to_string());
    return answer();
  };
  WorkerPool pool{"widget", queue, reconcile, metrics, log};
  Notifier release{io.get_executor()};
  TaskGroup group{io.get_executor(), [](auto, std::string_view what) { FAIL(what); }};

  void start(int count = 1) { start_workers(group, pool, count); }
  ~Fixture() {
    group.cancel();
    run_task(io, group.join());
  }
  Task<Result<Requeue>> answer() {
    while (is_held) co_await release.wait();
    co_return outcome();
  }
  // Runs until so many reconciles have begun and their results are known.
  bool reconciles(std::size_t count) {
    return run_until(io, [&] {
      return reconciled.size() == count && metrics.lines.size() >= count && queue.is_idle();
    });
  }
};

Result<Requeue> failed(Error error) {
  return tl::unexpected(std::move(error));
}

Error due(Error error) {
  error.retry_within = seconds(30);
  return error;
}

Error after(Milliseconds wait, Error error) {
  error.retry_after = wait;
  return error;
}

}  // namespace

TEST_CASE("each result of a reconcile: what is counted, and when the object is reconciled again") {
  constexpr auto kNever = std::chrono::steady_clock::duration::max();
  const Error conflict{ErrorCode::kConflict, "modified", 409};
  const Error busy{ErrorCode::kTooManyRequests, "busy", 429};
  const struct {
    const char* about;
    Outcome outcome;
    Lines counted;
    std::chrono::steady_clock::duration again;
  } rows[] = {
      {"all is done", [] { return Requeue{}; }, {"reconciled widget success"}, kNever},
      {"it asks for a time",
       [] { return Requeue(Milliseconds(1'500)); },
       {"reconciled widget requeue_after"},
       Milliseconds(1'500)},
      {"another client wrote in between",
       [&] { return failed(conflict); },
       {"reconciled widget error"},
       Milliseconds(5)},
      {"the API server asks to wait",
       [&] { return failed(after(seconds(7), busy)); },
       {"reconciled widget error"},
       seconds(7)},
      {"the API server asks to wait for very long",
       [&] { return failed(after(seconds(3'600), busy)); },
       {"reconciled widget error"},
       seconds(300)},
      {"the API server asks to wait for longer than until something is due",
       [&] { return failed(due(after(seconds(200), busy))); },
       {"reconciled widget error"},
       seconds(30)},
      {"a bug",
       []() -> Result<Requeue> { throw std::out_of_range("at"); },
       {"panicked widget", "reconciled widget error"},
       Milliseconds(5)},
      {"it is aborted although nobody has asked for that",
       []() -> Result<Requeue> {
         throw boost::system::system_error(asio::error::operation_aborted);
       },
       {"panicked widget", "reconciled widget error"},
       Milliseconds(5)},
  };
  for (const auto& row : rows) {
    INFO(row.about);
    Fixture world;
    world.outcome = row.outcome;
    world.start();
    world.queue.add({"n", "w"});
    REQUIRE(world.reconciles(1));
    CHECK(world.metrics.lines == row.counted);
    CHECK(world.clock.until_next() == row.again);
    CHECK_FALSE(world.pool.work.at(0));
    if (row.again == kNever) continue;
    world.clock.advance(std::chrono::ceil<std::chrono::microseconds>(row.again));
    CHECK(world.reconciles(2));
  }
}

TEST_CASE_METHOD(Fixture, "the backoff of an object doubles, and starts again once it succeeds") {
  const Outcome succeeds = outcome;
  const Outcome fails = [] { return failed({ErrorCode::kInvalid, "spec: Required value", 422}); };
  start();
  queue.add({"n", "w"});
  std::size_t count = 0;
  outcome = fails;
  for (const int wait : {5, 10, 20, 40}) {
    REQUIRE(reconciles(++count));
    CHECK(clock.until_next() == Milliseconds(wait));
    if (wait == 40) outcome = succeeds;
    clock.advance(Milliseconds(wait));
  }
  REQUIRE(reconciles(++count));
  CHECK(queue.failures({"n", "w"}) == 0);
  outcome = fails;
  queue.add({"n", "w"});
  REQUIRE(reconciles(++count));
  CHECK(clock.until_next() == Milliseconds(5));
}

TEST_CASE("what an outage has failed is tried again a minute after its end at the latest") {
  const struct {
    const char* about;
    Error error;
    seconds longest;
  } rows[] = {
      {"no API server", {ErrorCode::kNetwork, "connection refused"}, seconds(60)},
      {"etcd is full", {ErrorCode::kServerError, "etcdserver: no space", 500}, seconds(60)},
      {"its token counts no more", {ErrorCode::kUnauthorized, "Unauthorized", 401}, seconds(60)},
      {"a right is gone",
       {ErrorCode::kForbidden,
        R"(jobs.batch is forbidden: User "system:serviceaccount:s:m" cannot create)", 403},
       seconds(60)},
      {"no quota is left",
       {ErrorCode::kForbidden, R"(jobs.batch "j" is forbidden: exceeded quota: q)", 403},
       seconds(1'000)},
      {"the object is wrong", {ErrorCode::kInvalid, "spec: Required value", 422}, seconds(1'000)},
      {"something is due", due({ErrorCode::kInvalid, "spec: Required value", 422}), seconds(30)},
      {"something is due, in an outage", due({ErrorCode::kNetwork, "refused"}), seconds(30)},
  };
  for (const auto& row : rows) {
    INFO(row.about);
    Fixture world;
    world.outcome = [&row] { return failed(row.error); };
    world.start();
    world.queue.add({"n", "w"});
    std::chrono::steady_clock::duration wait{};
    for (std::size_t tries = 1; tries <= 20; ++tries) {
      REQUIRE(world.reconciles(tries));
      wait = world.clock.until_next();
      world.clock.advance(std::chrono::ceil<std::chrono::microseconds>(wait));
    }
    CHECK(wait == row.longest);
  }
}

TEST_CASE_METHOD(Fixture, "as many objects as there are workers are reconciled at a time") {
  is_held = true;
  for (const char* ns : {"a", "b", "c"}) queue.add({ns, "w"});
  start(2);
  REQUIRE(run_until(io, [this] { return reconciled.size() == 2; }));
  settle(io);
  CHECK(reconciled == Lines{"a/w", "b/w"});
  REQUIRE(pool.work.size() == 2);
  for (const auto& work : pool.work) {
    REQUIRE(work);
    CHECK(work->key.name == "w");
  }
  queue.add({"a", "w"});  // it has changed meanwhile: no other worker takes it
  settle(io);
  CHECK(reconciled.size() == 2);
  is_held = false;
  release.notify();
  CHECK(reconciles(4));
  CHECK(reconciled == Lines{"a/w", "b/w", "c/w", "a/w"});
  CHECK_FALSE(pool.work[0]);
  CHECK_FALSE(pool.work[1]);
}

TEST_CASE_METHOD(Fixture, "workers end when the queue is closed, with what they have begun") {
  is_held = true;
  start(2);
  queue.add({"n", "w"});
  REQUIRE(run_until(io, [this] { return reconciled.size() == 1; }));
  queue.close();
  is_held = false;
  release.notify();
  run_task(io, group.join());
  CHECK(metrics.lines == Lines{"reconciled widget success"});
}

TEST_CASE_METHOD(Fixture, "a cancelled reconcile is no bug, and its worker ends") {
  is_held = true;
  start();
  queue.add({"n", "w"});
  REQUIRE(run_until(io, [this] { return reconciled.size() == 1; }));
  group.cancel();
  run_task(io, group.join());
  CHECK(metrics.lines.empty());
  CHECK(reconciled.size() == 1);
}
