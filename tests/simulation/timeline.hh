// Time is virtual: everything in a simulation happens at a moment of this clock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "kube/client/clock.hh"

namespace trainer::simulation {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A clock that moves only from one appointment to the next. Appointments of the same moment are
// kept in the order in which they were made, so that a run depends on nothing but its seed.
class Timeline final : public kube::Clock {
 public:
  Timeline();
  kube::Time now() const override;
  Steady steady() const override { return steady_; }
  std::unique_ptr<kube::Timer> wake_at(kube::asio::any_io_executor executor, Steady when,
                                       std::function<void()> wake) override;

  // Returns the time since the simulation began.
  microseconds elapsed() const;
  void after(std::chrono::steady_clock::duration delay, std::function<void()> act);
  // Moves to the earliest appointment and keeps it. False where there is none.
  bool step();

 private:
  struct Appointment {
    std::function<void()> act;
    bool is_called_off = false;
  };
  class Handle;
  std::shared_ptr<Appointment> add(Steady when, std::function<void()> act);

  Steady steady_;
  std::map<std::pair<Steady, std::uint64_t>, std::shared_ptr<Appointment>> appointments_;
  std::uint64_t made_ = 0;
};

}  // namespace trainer::simulation
