#include "controller/core/wake_coalescer.hh"

namespace trainer {

WakeCoalescer::Nanoseconds WakeCoalescer::pause_after(Nanoseconds now, Nanoseconds worked) {
  worked_in_window_ += worked;
  const Nanoseconds passed = now - window_begin_;
  if (passed >= kWindow) {
    is_busy_ = static_cast<double>(worked_in_window_.count()) >
               kBusyShare * static_cast<double>(passed.count());
    window_begin_ = now;
    worked_in_window_ = Nanoseconds(0);
  }
  return is_busy_ && worked < kLongWake ? Nanoseconds(kPause) : Nanoseconds(0);
}

}  // namespace trainer
