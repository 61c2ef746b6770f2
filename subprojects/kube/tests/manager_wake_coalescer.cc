// A busy loop sleeps between wakes.
#include <boost/asio/post.hpp>
#include <ctime>
#include <vector>

#include "kube/manager/event_loop.hh"
#include "kube/manager/wake_coalescer.hh"
#include "kube/tests/catch.hh"

using namespace kube;
using namespace std::chrono_literals;

namespace {

// Wakes every `every`, for a second; each wake takes `worked`. Returns the pauses after them,
// counted once the first window has passed.
struct Load {
  WakeCoalescer coalescer;
  std::chrono::nanoseconds now = 1h;

  int pauses(std::chrono::nanoseconds every, std::chrono::nanoseconds worked, int wakes) {
    int paused = 0;
    for (int i = 0; i < wakes; ++i) {
      now += every;
      const auto pause = coalescer.pause_after(now, worked);
      if (pause.count() > 0) ++paused;
      now += pause;
    }
    return paused;
  }
};

}  // namespace

TEST_CASE("a loop that is not busy does not sleep") {
  Load load;
  CHECK(load.pauses(1s, 40us, 10) == 0);
  // A job a second: some fifty wakes within a tenth of a second.
  for (int second = 0; second < 10; ++second) {
    CHECK(load.pauses(2ms, 80us, 50) == 0);
    load.now += 900ms;
  }
}

TEST_CASE("a busy loop sleeps after each wake, until it is idle again") {
  Load load;
  CHECK(load.pauses(1s, 40us, 1) == 0);
  load.pauses(1ms, 100us, 250);  // the window in which it became busy
  CHECK(load.pauses(1ms, 1ms, 100) == 100);
  SECTION("a long wake is followed by the next one at once") {
    CHECK(load.pauses(1ms, 12ms, 100) == 0);
    CHECK(load.pauses(1ms, 1ms, 10) == 10);
  }
  SECTION("nothing to do for a while") {
    load.now += 1s;
    load.pauses(1ms, 40us, 1);
    CHECK(load.pauses(10ms, 40us, 100) == 0);
  }
}

TEST_CASE("a loop is busy above a fiftieth of a processor, and a long wake has no pause") {
  const struct {
    const char* about;
    std::chrono::nanoseconds window;  // until the second wake
    std::chrono::nanoseconds before;  // work of the first wake
    std::chrono::nanoseconds worked;  // the work of the second
    std::chrono::nanoseconds pause;
  } rows[] = {
      {"a fiftieth", 250ms, 4ms, 1ms, 0ms},
      {"more than that", 250ms, 4ms, 1ms + 1ns, Pacing::kWakePause},
      {"more than that in a longer window", 500ms, 5ms, 5ms + 1ns, Pacing::kWakePause},
      {"the same work in a longer window", 500ms, 4ms, 1ms + 1ns, 0ms},
      {"before the window ends", 250ms - 1ns, 9ms, 9ms, 0ms},
      {"a wake that is nearly long", 250ms, 0ms, 10ms - 1ns, Pacing::kWakePause},
      {"a long wake", 250ms, 0ms, 10ms, 0ms},
  };
  for (const auto& row : rows) {
    CAPTURE(row.about);
    WakeCoalescer coalescer;
    const std::chrono::nanoseconds begin = 1h;
    coalescer.pause_after(begin, 0ns);  // a window begins
    CHECK(coalescer.pause_after(begin, row.before) == 0ns);
    CHECK(coalescer.pause_after(begin + row.window, row.worked) == row.pause);
  }
}

TEST_CASE("loops report slow steps, and end when they are stopped") {
  const auto run = GENERATE(run_event_loop, run_coalescing_event_loop);
  boost::asio::io_context io;
  const auto spin = [](std::chrono::milliseconds time) {
    const auto begin = std::clock();
    while (std::clock() - begin < time.count() * CLOCKS_PER_SEC / 1000) {
    }
  };
  boost::asio::post(io, [&] { spin(1ms); });
  boost::asio::post(io, [&] { spin(15ms); });
  boost::asio::post(io, [&] { io.stop(); });
  std::vector<std::chrono::nanoseconds> slow;
  run(io, [&slow](std::chrono::nanoseconds took) { slow.push_back(took); });
  REQUIRE(slow.size() == 1);
  CHECK(slow.front() >= kSlowStep);
  CHECK(slow.front() < 10 * kSlowStep);
}
