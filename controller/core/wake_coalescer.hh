// How often a busy event loop looks for what has happened.
#pragma once

#include <chrono>

namespace trainer {

// Every wake begins with cold caches, since the processor did something else meanwhile: under load
// that is a quarter of what a wake costs, or more. So while the loop is busy it stays away for a
// moment after each wake, and the next one finds what has happened meanwhile together. (Network
// cards call this adaptive interrupt coalescing.) A loop that is not busy answers at once.
//
// Pure; one thread.
class WakeCoalescer {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  static constexpr std::chrono::milliseconds kPause{25};
  // Busy: more than this share of a processor. A job a second needs half a percent.
  static constexpr double kBusyShare = 0.02;
  // A wake that took this long has found many events: nothing is gained by waiting for more.
  static constexpr std::chrono::milliseconds kLongWake{10};

  // How long to stay away after a wake that ended at `now` (of a steady clock) and took `worked`
  // of processor time.
  Nanoseconds pause_after(Nanoseconds now, Nanoseconds worked);

 private:
  // The share is that of the last whole window.
  static constexpr std::chrono::milliseconds kWindow{250};
  Nanoseconds window_begin_{0};
  Nanoseconds worked_in_window_{0};
  bool is_busy_ = false;
};

}  // namespace trainer
