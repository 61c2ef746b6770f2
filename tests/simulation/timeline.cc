#include "tests/simulation/timeline.hh"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace trainer::simulation {
namespace {

constexpr kube::Clock::Steady kBeginning{std::chrono::hours(1)};
constexpr std::int64_t kWallBeginning = 1'767'225'600;  // 2026-01-01T00:00:00Z

}  // namespace

class Timeline::Handle final : public kube::Timer {
 public:
  explicit Handle(std::shared_ptr<Appointment> appointment)
      : appointment_(std::move(appointment)) {}
  ~Handle() override { appointment_->is_called_off = true; }

 private:
  std::shared_ptr<Appointment> appointment_;
};

Timeline::Timeline() : steady_(kBeginning) {}

microseconds Timeline::elapsed() const {
  return std::chrono::duration_cast<microseconds>(steady_ - kBeginning);
}

kube::Time Timeline::now() const {
  return kube::Time::from_seconds(kWallBeginning) + elapsed();
}

std::shared_ptr<Timeline::Appointment> Timeline::add(Steady when, std::function<void()> act) {
  auto appointment = std::make_shared<Appointment>();
  appointment->act = std::move(act);
  appointments_.emplace(std::pair(std::max(when, steady_), made_++), appointment);
  return appointment;
}

std::unique_ptr<kube::Timer> Timeline::wake_at(kube::asio::any_io_executor executor, Steady when,
                                               std::function<void()> wake) {
  auto appointment = add(when, {});
  // A timer that was cancelled after it fired must not wake either.
  appointment->act = [executor = std::move(executor), wake = std::move(wake),
                      weak = std::weak_ptr(appointment)] {
    const auto strong = weak.lock();
    kube::asio::post(executor, [wake, strong] {
      if (!strong->is_called_off) wake();
    });
  };
  return std::make_unique<Handle>(std::move(appointment));
}

void Timeline::after(std::chrono::steady_clock::duration delay, std::function<void()> act) {
  add(steady_ + delay, std::move(act));
}

bool Timeline::step() {
  while (!appointments_.empty()) {
    const auto at = appointments_.begin();
    const auto when = at->first.first;
    const auto appointment = std::move(at->second);
    appointments_.erase(at);
    if (appointment->is_called_off) continue;
    steady_ = when;
    appointment->act();
    return true;
  }
  return false;
}

}  // namespace trainer::simulation
