#include "kube/manager/wake_coalescer.hh"

#include "kube/manager/pacing.hh"

namespace kube {

WakeCoalescer::Nanoseconds WakeCoalescer::pause_after(Nanoseconds now, Nanoseconds worked) {
  worked_in_window_ += worked;
  const Nanoseconds passed = now - window_begin_;
  if (passed >= Pacing::kBusyWindow) {
    is_busy_ = static_cast<double>(worked_in_window_.count()) >
               Pacing::kBusyShare * static_cast<double>(passed.count());
    window_begin_ = now;
    worked_in_window_ = Nanoseconds(0);
  }
  return is_busy_ && worked < Pacing::kLongWake ? Nanoseconds(Pacing::kWakePause) : Nanoseconds(0);
}

}  // namespace kube
