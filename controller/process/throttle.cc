#include "controller/process/throttle.hh"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "kube/client/token_bucket.hh"

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;

class Throttled final : public kube::Transport {
 public:
  Throttled(kube::asio::io_context& io, std::unique_ptr<kube::Transport> inner, double qps,
            int burst)
      : io_(io), inner_(std::move(inner)), bucket_(qps, burst) {}

  kube::Task<kube::Result<kube::HttpResponse>> send(kube::HttpRequest request) override {
    const auto now = Clock::now();
    const auto due = bucket_.take(now);
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
  kube::TokenBucket bucket_;
};

}  // namespace

std::unique_ptr<kube::Transport> throttle(kube::asio::io_context& io,
                                          std::unique_ptr<kube::Transport> transport, double qps,
                                          int burst) {
  return std::make_unique<Throttled>(io, std::move(transport), qps, burst);
}

}  // namespace trainer
