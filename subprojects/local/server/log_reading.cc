#include "local/server/log_reading.hh"

#include <utility>

namespace trainer {

using kube::Result;
using kube::Task;

LogReading::LogReading(const kube::asio::any_io_executor& executor)
    : changed_(executor), tasks_(executor, [this](std::string_view, std::string_view what) {
        end(kube::fail(kube::ErrorCode::kInternal, std::string(what)));
      }) {}

void LogReading::end(Result<void> outcome) {
  outcome_ = std::move(outcome);
  changed_.notify();
}

Task<void> LogReading::run(Self self, Read read, kube::server::LogQuery query) {
  kube::WriteBody to_client = [self](std::string piece) { return write(self, std::move(piece)); };
  Result<void> outcome = co_await read(std::move(query), std::move(to_client));
  self->end(std::move(outcome));
}

Task<bool> LogReading::write(Self self, std::string piece) {
  self->has_begun_ = true;
  self->changed_.notify();
  while (!self->pending_.empty() && !self->has_client_left_) co_await self->changed_.wait();
  self->pending_ = std::move(piece);
  self->changed_.notify();
  co_return !self->has_client_left_;
}

Task<void> LogReading::send(Self self, kube::WriteBody to) {
  while (!self->has_client_left_) {
    if (!self->pending_.empty()) {
      std::string piece = std::exchange(self->pending_, std::string());
      self->changed_.notify();
      self->has_client_left_ = !co_await to(std::move(piece));
    } else if (self->outcome_) {
      break;
    } else {
      co_await self->changed_.wait();
    }
  }
  self->changed_.notify();
}

Task<Result<kube::StreamBody>> LogReading::begin(Self self, Read read,
                                                 kube::server::LogQuery query) {
  // The copies of the body share it: the end of the last one ends the reading.
  const std::shared_ptr<void> client(nullptr, [self](void*) { self->tasks_.cancel(); });
  self->tasks_.spawn("log", run(self, std::move(read), std::move(query)));
  while (!self->has_begun_ && !self->outcome_) co_await self->changed_.wait();
  if (!self->has_begun_ && !*self->outcome_) co_return tl::unexpected(self->outcome_->error());
  kube::StreamBody body = [self, client](kube::WriteBody to) { return send(self, std::move(to)); };
  co_return body;
}

}  // namespace trainer
