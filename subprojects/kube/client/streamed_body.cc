#include "kube/client/streamed_body.hh"

#include <fmt/format.h>

#include <array>
#include <boost/asio/this_coro.hpp>
#include <string>
#include <utility>

#include "kube/client/task_group.hh"

namespace kube {
namespace {

// These are both tasks of one body, and the state that they share.
struct Sender {
  ByteStream& stream;
  Milliseconds limit;
  TaskGroup tasks;
  bool is_broken = false;

  Task<bool> write_text(std::string text) {
    stream.set_deadline(std::chrono::steady_clock::now() + limit);
    const IoResult written = co_await stream.write_all(text);
    stream.set_deadline(Deadline::max());
    is_broken = is_broken || written.error.failed();
    co_return !is_broken;
  }

  // An empty chunk would end the body.
  Task<bool> write(std::string piece) {
    if (piece.empty() || is_broken) co_return !is_broken;
    std::string chunk = fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
    co_return co_await write_text(std::move(chunk));
  }

  Task<void> send(StreamBody body) {
    WriteBody to_client = [this](std::string piece) { return write(std::move(piece)); };
    co_await body(std::move(to_client));
    std::string end = "0\r\n\r\n";
    if (!is_broken) co_await write_text(std::move(end));
    tasks.cancel();
  }

  // The client sends nothing more on this connection: any bytes are read and ignored.
  Task<void> await_client() {
    std::array<char, 512> passed_over;
    IoResult got;
    do {
      got = co_await stream.read_some(passed_over.data(), passed_over.size());
    } while (!got.error && got.bytes > 0);
    is_broken = true;
    tasks.cancel();
  }
};

}  // namespace

Task<void> send_in_chunks(ByteStream& stream, StreamBody body, Milliseconds limit,
                          std::function<void(std::string_view)> on_error) {
  const auto executor = co_await asio::this_coro::executor;
  Sender* self = nullptr;
  TaskGroup::OnError on_failure = [&self, &on_error](std::string_view, std::string_view what) {
    if (on_error) on_error(what);
    self->tasks.cancel();
  };
  Sender sender{stream, limit, TaskGroup(executor, std::move(on_failure))};
  self = &sender;
  stream.set_deadline(Deadline::max());
  sender.tasks.spawn("client", sender.await_client());
  sender.tasks.spawn("body", sender.send(std::move(body)));
  co_await sender.tasks.join();
}

}  // namespace kube
