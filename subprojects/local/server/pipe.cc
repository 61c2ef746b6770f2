#include "local/server/pipe.hh"

#include <boost/asio/post.hpp>
#include <utility>

namespace trainer {

void Mailbox::post(std::function<void()> what) {
  const std::lock_guard lock(mutex_);
  if (io_ != nullptr) kube::asio::post(*io_, std::move(what));
}

void Mailbox::close() {
  const std::lock_guard lock(mutex_);
  io_ = nullptr;
}

Pipe::Pipe(Side writer, Side reader, std::size_t max_bytes)
    : writer_(std::move(writer)), reader_(std::move(reader)), max_bytes_(max_bytes) {}

// The notifier of the other thread is only used on that thread, since its timer belongs to that
// thread's io_context.
void Pipe::wake(const Side& side) {
  side.mailbox->post([end = side.end] {
    if (const auto notifier = end.lock()) notifier->notify();
  });
}

kube::Task<bool> Pipe::write(std::shared_ptr<Pipe> self, End writer, std::string piece) {
  for (;;) {
    {
      const std::lock_guard lock(self->mutex_);
      if (!self->has_reader_) co_return false;
      if (!self->is_full()) {
        const bool was_empty = self->text_.empty();
        self->text_ += piece;
        if (was_empty && !piece.empty()) wake(self->reader_);
        co_return true;
      }
    }
    co_await writer->wait();
  }
}

void Pipe::end() {
  const std::lock_guard lock(mutex_);
  is_ended_ = true;
  wake(reader_);
}

Pipe::Taken Pipe::take() {
  const std::lock_guard lock(mutex_);
  if (is_full()) wake(writer_);
  Taken taken;
  taken.text = std::exchange(text_, std::string());
  taken.is_over = is_ended_;
  return taken;
}

bool Pipe::is_quiet() {
  const std::lock_guard lock(mutex_);
  return text_.empty() && !is_ended_;
}

void Pipe::leave() {
  const std::lock_guard lock(mutex_);
  has_reader_ = false;
  wake(writer_);
}

}  // namespace trainer
