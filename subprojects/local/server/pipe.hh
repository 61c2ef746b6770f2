// The bytes of a stream go from one thread to another.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "kube/client/clock.hh"
#include "kube/client/notifier.hh"
#include "kube/client/task.hh"

namespace trainer {

// Posts to an io_context from other threads, until its owner closes it: these threads may go on
// when the io_context has ended. Concurrency: any thread.
class Mailbox {
 public:
  explicit Mailbox(kube::asio::io_context& io) : io_(&io) {}
  void post(std::function<void()> what);
  void close();

 private:
  std::mutex mutex_;
  kube::asio::io_context* io_;
};

// A pipe has one writer and one reader, each with a thread of its own.
class Pipe {
 public:
  // The thread of one end waits on this. Only that thread owns it.
  using End = std::shared_ptr<kube::Notifier>;

  struct Side {
    std::shared_ptr<Mailbox> mailbox;  // the mailbox of its thread
    std::weak_ptr<kube::Notifier> end;
  };
  Pipe(Side writer, Side reader, std::size_t max_bytes = 1U << 20);

  // It is called on the writer's thread. Waits while `max_bytes` or more were not taken; returns
  // false once the reader has left.
  static kube::Task<bool> write(std::shared_ptr<Pipe> self, End writer, std::string piece);
  // Nothing more is written after this.
  void end();

  // These are called on the reader's thread.
  struct Taken {
    std::string text;
    bool is_over = false;  // nothing comes after `text`
  };
  Taken take();
  // Returns whether take() would return nothing now, and the writer has not ended.
  bool is_quiet();
  void leave();

 private:
  bool is_full() const { return text_.size() >= max_bytes_; }
  static void wake(const Side& side);

  const Side writer_;
  const Side reader_;
  const std::size_t max_bytes_;
  std::mutex mutex_;
  std::string text_;
  bool is_ended_ = false;
  bool has_reader_ = true;
};

}  // namespace trainer
