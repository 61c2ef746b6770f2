// The coalescer limits how often a busy event loop wakes.
#pragma once

#include <chrono>

#include "kube/manager/pacing.hh"

namespace kube {

// Every wake begins with cold processor caches: under load, that is a quarter of a wake's cost or
// more. So a busy loop sleeps briefly after each wake, and the next wake processes all events of
// that time together. (Network cards call this adaptive interrupt coalescing.) A loop that is not
// busy does not sleep. The figures are in Pacing.
//
// Pure; one thread.
class WakeCoalescer {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  // Returns how long to sleep after a wake that ended at `now` (of a steady clock) and took
  // `worked` of processor time.
  Nanoseconds pause_after(Nanoseconds now, Nanoseconds worked) {
    worked_in_window_ += worked;
    const Nanoseconds passed = now - window_begin_;
    if (passed >= Pacing::kBusyWindow) {
      is_busy_ = static_cast<double>(worked_in_window_.count()) >
                 Pacing::kBusyShare * static_cast<double>(passed.count());
      window_begin_ = now;
      worked_in_window_ = Nanoseconds(0);
    }
    const bool is_pause = is_busy_ && worked < Pacing::kLongWake;
    return is_pause ? Nanoseconds(Pacing::kWakePause) : Nanoseconds(0);
  }

 private:
  Nanoseconds window_begin_{0};
  Nanoseconds worked_in_window_{0};
  bool is_busy_ = false;
};

}  // namespace kube
