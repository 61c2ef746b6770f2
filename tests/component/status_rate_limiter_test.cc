// How often counters are written, by a clock that stands still until it is moved.
#include "kube/manager/status_rate_limiter.hh"

#include <vector>

#include "tests/support/catch.hh"

using kube::StatusRateLimiter;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kWindow{150};

struct Fixture {
  StatusRateLimiter pace;
  StatusRateLimiter::Time now{std::chrono::hours(1)};
  long long wait(milliseconds window = kWindow) { return pace.delay("u", now, window).count(); }
  // Counters that change every 10 ms for a while: when each write happens, in ms.
  std::vector<long long> writes(milliseconds during) {
    std::vector<long long> at;
    for (const auto begin = now; now - begin < during; now += milliseconds(10)) {
      if (wait() > 0) continue;
      at.push_back(std::chrono::duration_cast<milliseconds>(now - begin).count());
      pace.settled("u", now);
    }
    return at;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a difference waits for its companions, from when it was first seen") {
  CHECK(wait() == 150);
  now += milliseconds(100);
  CHECK(wait() == 50);
  now += milliseconds(50);
  CHECK(wait() == 0);
}

TEST_CASE_METHOD(Fixture, "what is written with something else waits no more") {
  CHECK(wait() == 150);
  now += milliseconds(100);
  pace.settled("u", now);
  CHECK(wait() == 150);
}

TEST_CASE_METHOD(Fixture, "what is known to have changed waits since then") {
  pace.changed("u", now);
  now += milliseconds(100);
  pace.changed("u", now);
  CHECK(wait() == 50);
}

TEST_CASE_METHOD(Fixture, "what changed after the plan is not settled by it") {
  const auto planned = now;
  now += milliseconds(10);
  pace.changed("u", now);
  pace.settled("u", planned);
  CHECK(wait() == 150);
  now += milliseconds(100);
  CHECK(wait() == 50);
  pace.settled("u", now);
  CHECK(wait() == 150);
}

TEST_CASE_METHOD(Fixture, "while the API server is busy it waits longer, and no longer than that") {
  CHECK(wait(milliseconds(5'000)) == 5'000);
  now += milliseconds(1'000);
  CHECK(wait(milliseconds(5'000)) == 4'000);
  CHECK(wait() == 0);  // no longer busy
}

TEST_CASE_METHOD(Fixture, "a few writes may follow one another, then one a second") {
  CHECK(writes(milliseconds(4'000)) == std::vector<long long>{150, 310, 470, 1'150, 2'150, 3'150});
  // After a rest it may be a few again.
  pace.settled("u", now);
  now += milliseconds(5'000);
  CHECK(writes(milliseconds(1'000)) == std::vector<long long>{150, 310, 470});
}

TEST_CASE_METHOD(Fixture, "objects do not wait for one another") {
  writes(milliseconds(4'000));
  CHECK(wait() > 0);
  CHECK(pace.delay("other", now, milliseconds(0)).count() == 0);
  pace.forget("u");
  CHECK(wait() == 150);
}
