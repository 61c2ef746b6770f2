// How often a busy event loop wakes.
#pragma once

#include <chrono>

namespace kube {

// Every wake begins with cold caches, since the processor did something else meanwhile: under load
// that is a quarter of what a wake costs, or more. So a busy loop sleeps for a moment after each
// wake, and the next wake finds what has happened meanwhile together. (Network cards call this
// adaptive interrupt coalescing.) A loop that is not busy answers at once. Figures: Pacing.
//
// Pure; one thread.
class WakeCoalescer {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  // How long to sleep after a wake that ended at `now` (of a steady clock) and took `worked` of
  // processor time.
  Nanoseconds pause_after(Nanoseconds now, Nanoseconds worked);

 private:
  Nanoseconds window_begin_{0};
  Nanoseconds worked_in_window_{0};
  bool is_busy_ = false;
};

}  // namespace kube
