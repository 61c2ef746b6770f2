#include "controller/core/event_loop.hh"

#include <time.h>

#include <thread>

#include "controller/core/loop_pacer.hh"

namespace trainer {
namespace {

using std::chrono::nanoseconds;

// Processor time, not the clock's: waiting for events, or for a busy machine, holds nobody up.
nanoseconds processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

}  // namespace

void run_event_loop(boost::asio::io_context& io,
                    const std::function<void(nanoseconds took)>& on_slow_step) {
  LoopPacer pacer;
  while (!io.stopped()) {
    const auto begin = processor_time();
    auto end = begin;
    for (auto ran = io.run_one(); ran > 0; ran = io.poll_one()) {
      const auto took = processor_time() - end;
      end += took;
      if (took > kSlowStep) on_slow_step(took);
    }
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const auto pause = pacer.pause_after(now, end - begin);
    if (pause.count() > 0 && !io.stopped()) std::this_thread::sleep_for(pause);
  }
}

}  // namespace trainer
