#include "controller/core/slots.hh"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

namespace trainer {

kube::Task<Slots::Holder> Slots::acquire(Class priority) {
  if (free_ > 0) {
    --free_;
    co_return Holder(this);
  }
  auto& queue = priority == Class::kChildren ? children_ : statuses_;
  const auto waiter = std::make_shared<Waiter>(io_);
  waiter->timer.expires_at(std::chrono::steady_clock::time_point::max());
  queue.push_back(waiter);
  boost::system::error_code error;
  co_await waiter->timer.async_wait(kube::asio::redirect_error(kube::asio::use_awaitable, error));
  if (!waiter->is_granted) {  // cancelled: nobody may hand a slot to it any more
    queue.erase(std::remove(queue.begin(), queue.end(), waiter), queue.end());
    throw boost::system::system_error(kube::asio::error::operation_aborted);
  }
  co_return Holder(this);
}

void Slots::release() {
  auto& queue = children_.empty() ? statuses_ : children_;
  if (queue.empty()) {
    ++free_;
    return;
  }
  const auto next = queue.front();
  queue.pop_front();
  next->is_granted = true;
  next->timer.cancel();
}

}  // namespace trainer
