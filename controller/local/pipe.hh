// The bytes of a stream on their way from one thread to another.
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

// Runs what other threads post, until its owner closes it: the io_context may end before they do.
// Concurrency: any thread.
class Mailbox {
 public:
  explicit Mailbox(kube::asio::io_context& io) : io_(&io) {}
  void post(std::function<void()> what);
  void close();

 private:
  std::mutex mutex_;
  kube::asio::io_context* io_;
};

// One writer and one reader, each with a thread of its own.
class Pipe {
 public:
  // What a thread waits on for the other end. Only that thread owns it.
  using End = std::shared_ptr<kube::Notifier>;

  struct Side {
    std::shared_ptr<Mailbox> mailbox;  // of its thread
    std::weak_ptr<kube::Notifier> end;
  };
  Pipe(Side writer, Side reader, std::size_t max_bytes = 1U << 20);

  // The writer's thread. Waits while too much is there; false once the reader has gone.
  static kube::Task<bool> write(std::shared_ptr<Pipe> self, End writer, std::string piece);
  void end();

  // The reader's thread.
  struct Taken {
    std::string text;
    bool is_over = false;  // and nothing more will come
  };
  Taken take();
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
