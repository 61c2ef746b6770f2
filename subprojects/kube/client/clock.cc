#include "kube/client/clock.hh"

#include <time.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <utility>

#include "kube/client/notifier.hh"

namespace kube {

namespace {

class SteadyTimer final : public Timer {
 public:
  SteadyTimer(const asio::any_io_executor& executor, Clock::Steady when, std::function<void()> wake)
      : timer_(executor, when), wake_(std::make_shared<std::function<void()>>(std::move(wake))) {
    // A handler that was queued before the timer was cancelled must not run after it.
    timer_.async_wait([weak = std::weak_ptr(wake_)](const boost::system::error_code& error) {
      const auto strong = weak.lock();
      if (!error && strong) (*strong)();
    });
  }

 private:
  asio::steady_timer timer_;
  std::shared_ptr<std::function<void()>> wake_;
};

}  // namespace

std::unique_ptr<Timer> Clock::wake_at(asio::any_io_executor executor, Steady when,
                                      std::function<void()> wake) {
  return std::make_unique<SteadyTimer>(executor, when, std::move(wake));
}

Clock::Steady SystemClock::since_boot() const {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return Steady(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

Task<void> sleep(Clock& clock, std::chrono::steady_clock::duration duration) {
  const auto executor = co_await asio::this_coro::executor;
  Notifier woken(executor);
  bool is_over = false;
  const auto timer = clock.wake_at(executor, clock.steady() + duration, [&woken, &is_over] {
    is_over = true;
    woken.notify();
  });
  co_await woken.wait();
  if (!is_over) throw boost::system::system_error(asio::error::operation_aborted);
}

SystemRandom::SystemRandom() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device()};
  engine_.seed(seed);
}

}  // namespace kube
