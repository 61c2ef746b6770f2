#include "controller/process/throttle.hh"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;

class Throttled final : public kube::Transport {
 public:
  Throttled(kube::asio::io_context& io, std::unique_ptr<kube::Transport> inner, double qps,
            int burst)
      : io_(io),
        inner_(std::move(inner)),
        interval_(
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / qps))),
        burst_(std::max(burst, 1)) {}

  kube::Task<kube::Result<kube::HttpResponse>> send(kube::HttpRequest request) override {
    // Every request takes the next free time slot; after a pause `burst` slots are free.
    const auto now = Clock::now();
    next_ = std::max(next_, now - interval_ * (burst_ - 1));
    const auto due = next_;
    next_ += interval_;
    if (due > now) {
      kube::asio::steady_timer timer(io_, due);
      co_await timer.async_wait(kube::asio::use_awaitable);
    }
    co_return co_await inner_->send(std::move(request));
  }
  kube::Task<kube::Result<std::unique_ptr<kube::HttpStream>>> open(
      kube::HttpRequest request) override {
    return inner_->open(std::move(request));
  }

 private:
  kube::asio::io_context& io_;
  std::unique_ptr<kube::Transport> inner_;
  Clock::duration interval_;
  int burst_;
  Clock::time_point next_{};
};

}  // namespace

std::unique_ptr<kube::Transport> throttle(kube::asio::io_context& io,
                                          std::unique_ptr<kube::Transport> transport, double qps,
                                          int burst) {
  return std::make_unique<Throttled>(io, std::move(transport), qps, burst);
}

}  // namespace trainer
