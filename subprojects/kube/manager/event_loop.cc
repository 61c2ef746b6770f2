#include "kube/manager/event_loop.hh"

#include <time.h>

#include <thread>

#include "kube/manager/wake_coalescer.hh"

namespace kube {
namespace {

using std::chrono::nanoseconds;

// Shorter handlers are timed together, so the measured time of a slow one may be too long by this
// much.
constexpr std::chrono::milliseconds kReadEvery{1};

// The loop measures processor time, not wall time: a handler is not slow because it waits for
// events, or for the processor.
nanoseconds processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

// Waits for a handler, and runs it and all others that are ready.
void run_ready(boost::asio::io_context& io, nanoseconds begin, const OnSlowStep& on_slow_step) {
  auto read = begin;
  auto read_at = std::chrono::steady_clock::now();
  for (auto ran = io.run_one(); ran > 0; ran = io.poll_one()) {
    // The steady clock needs no system call, and processor time is never longer than wall time.
    const auto now = std::chrono::steady_clock::now();
    if (now - read_at < kReadEvery) continue;
    const auto took = processor_time() - read;
    read += took;
    read_at = now;
    if (took > kSlowStep) on_slow_step(took);
  }
}

}  // namespace

void run_event_loop(boost::asio::io_context& io, const OnSlowStep& on_slow_step) {
  while (!io.stopped()) run_ready(io, processor_time(), on_slow_step);
}

void run_coalescing_event_loop(boost::asio::io_context& io, const OnSlowStep& on_slow_step) {
  WakeCoalescer coalescer;
  while (!io.stopped()) {
    const auto begin = processor_time();
    run_ready(io, begin, on_slow_step);
    const auto worked = processor_time() - begin;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const auto pause = coalescer.pause_after(now, worked);
    if (pause.count() > 0 && !io.stopped()) std::this_thread::sleep_for(pause);
  }
}

}  // namespace kube
