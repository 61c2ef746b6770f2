// Counters are written at this rate; the test moves the clock.
#include <vector>

#include "kube/manager/status_rate_limiter.hh"
#include "kube/tests/catch.hh"

using kube::StatusRateLimiter;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kWindow{150};

struct Fixture {
  StatusRateLimiter limiter;
  StatusRateLimiter::Time now{std::chrono::hours(1)};
  long long wait(milliseconds window = kWindow) { return limiter.delay("u", now, window).count(); }
  // Counters that change every 10 ms for a while: when each write happens, in ms.
  std::vector<long long> writes(milliseconds during) {
    std::vector<long long> at;
    for (const auto begin = now; now - begin < during; now += milliseconds(10)) {
      if (wait() > 0) continue;
      at.push_back(std::chrono::duration_cast<milliseconds>(now - begin).count());
      limiter.clear_waiting("u", now);
    }
    return at;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a difference waits for related ones, from when it was first seen") {
  CHECK(wait() == 150);
  now += milliseconds(100);
  CHECK(wait() == 50);
  now += milliseconds(50);
  CHECK(wait() == 0);
}

TEST_CASE_METHOD(Fixture, "a difference that another write contains does not wait any more") {
  CHECK(wait() == 150);
  now += milliseconds(100);
  limiter.clear_waiting("u", now);
  CHECK(wait() == 150);
}

TEST_CASE_METHOD(Fixture, "a difference waits from the change of a child") {
  limiter.changed("u", now);
  now += milliseconds(100);
  limiter.changed("u", now);
  CHECK(wait() == 50);
}

TEST_CASE_METHOD(Fixture, "a change after the plan still waits") {
  const auto planned = now;
  now += milliseconds(10);
  limiter.changed("u", now);
  limiter.clear_waiting("u", planned);
  CHECK(wait() == 150);
  now += milliseconds(100);
  CHECK(wait() == 50);
  limiter.clear_waiting("u", now);
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
  // After a pause it may be a few again.
  limiter.clear_waiting("u", now);
  now += milliseconds(5'000);
  CHECK(writes(milliseconds(1'000)) == std::vector<long long>{150, 310, 470});
}

TEST_CASE_METHOD(Fixture, "objects do not wait for one another") {
  writes(milliseconds(4'000));
  CHECK(wait() > 0);
  CHECK(limiter.delay("other", now, milliseconds(0)).count() == 0);
  limiter.forget("u");
  CHECK(wait() == 150);
}

TEST_CASE_METHOD(Fixture, "a wait is rounded up: a write that comes early would come twice") {
  CHECK(wait() == 150);
  now += std::chrono::microseconds(149'001);
  CHECK(wait() == 1);
  now += std::chrono::microseconds(999);
  CHECK(wait() == 0);
}

TEST_CASE_METHOD(Fixture, "a clear of an object that does not wait changes nothing") {
  limiter.clear_waiting("u", now);
  limiter.forget("u");
  CHECK(wait() == 150);
  limiter.clear_waiting("other", now + kWindow);
  now += kWindow;
  CHECK(wait() == 0);
}
