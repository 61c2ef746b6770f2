#include "local/server/transport.hh"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <optional>
#include <utility>

#include "local/server/pipe.hh"

namespace trainer {

using kube::ErrorCode;
using kube::HttpRequest;
using kube::HttpResponse;
using kube::Milliseconds;
using kube::Result;
using kube::Task;
using Steady = kube::Clock::Steady;

namespace {

constexpr int kOk = 200;
// These are user agents; the part before '/' is the default field manager.
constexpr const char* kControllerAgent = "trainer/" TRAINER_VERSION;
constexpr const char* kNodeAgent = "kubelet/" TRAINER_VERSION;

// Waits until the notifier is notified, or until the deadline; callers check for their condition.
// Returns an error if the deadline was over already, or after a cancellation.
Task<std::optional<kube::Error>> wait(kube::Notifier& notifier, Steady deadline, std::string what) {
  kube::SystemClock clock;
  if (clock.steady() >= deadline)
    co_return kube::Error(ErrorCode::kTimeout, what + " took too long");
  co_await notifier.wait_until(clock, deadline);
  const auto state = co_await kube::asio::this_coro::cancellation_state;
  if (state.cancelled() != kube::asio::cancellation_type::none)
    co_return kube::Error(ErrorCode::kCancelled, what + " was cancelled");
  co_return std::nullopt;
}

// This is the answer that the caller waits for. Only the caller's thread owns it.
template <class T>
struct Pending {
  explicit Pending(const kube::asio::any_io_executor& executor) : arrived(executor) {}
  kube::Notifier arrived;
  std::optional<T> value;
};

template <class T>
void hand_over(Mailbox& mailbox, std::weak_ptr<Pending<T>> to, T value) {
  mailbox.post([to = std::move(to), value = std::move(value)]() mutable {
    const auto pending = to.lock();
    if (!pending) return;
    pending->value = std::move(value);
    pending->arrived.notify();
  });
}

// The server's thread has this part of a stream.
struct Writing {
  Writing(const kube::asio::any_io_executor& executor, kube::TaskGroup::OnError on_error)
      : end(std::make_shared<kube::Notifier>(executor)), tasks(executor, std::move(on_error)) {}
  Pipe::End end;
  kube::TaskGroup tasks;
};

// The caller has this part of a stream, on any thread. Its destructor ends the writing.
struct Reading {
  int status = 0;
  std::shared_ptr<Pipe> pipe;
  std::weak_ptr<Writing> writing;
  std::shared_ptr<Mailbox> to_server;

  Reading(int status_, std::shared_ptr<Pipe> pipe_, std::weak_ptr<Writing> writing_,
          std::shared_ptr<Mailbox> to_server_)
      : status(status_),
        pipe(std::move(pipe_)),
        writing(std::move(writing_)),
        to_server(std::move(to_server_)) {}
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() {
    pipe->leave();
    to_server->post([writing = writing] {
      if (const auto left = writing.lock()) left->tasks.cancel();
    });
  }
};
using Opened = std::shared_ptr<Reading>;

// This is a request on its way to the server's thread.
template <class T>
struct Call {
  kube::server::Request request;
  Caller caller = Caller::kController;
  std::shared_ptr<Mailbox> to_server;
  std::shared_ptr<Mailbox> to_caller;
  std::weak_ptr<Pending<T>> pending;
  std::weak_ptr<kube::Notifier> reader;  // the reader of a stream
};

// ---- on the server's thread

Task<bool> append(std::string& body, std::string piece) {
  body += piece;
  co_return true;
}

Task<void> answer_whole(ApiServer& server, Call<HttpResponse> call) {
  Answer answer = co_await server.answer(std::move(call.request), call.caller);
  HttpResponse response;
  response.status = answer.response.status;
  response.body = std::move(answer.response.body);
  if (answer.stream) {
    kube::WriteBody collect = [&response](std::string piece) {
      return append(response.body, std::move(piece));
    };
    co_await answer.stream(std::move(collect));
  }
  hand_over(*call.to_caller, std::move(call.pending), std::move(response));
}

// The reader must not wait for more when the writing has ended, in whatever way.
struct EndOfPipe {
  Pipe& pipe;
  explicit EndOfPipe(Pipe& of) : pipe(of) {}
  EndOfPipe(const EndOfPipe&) = delete;
  EndOfPipe& operator=(const EndOfPipe&) = delete;
  ~EndOfPipe() { pipe.end(); }
};

Task<void> write_stream(ApiServer& server, Call<Opened> call, std::shared_ptr<Writing> writing) {
  Answer answer = co_await server.answer(std::move(call.request), call.caller);
  Pipe::Side writer{call.to_server, writing->end};
  Pipe::Side reader{call.to_caller, call.reader};
  const auto pipe = std::make_shared<Pipe>(std::move(writer), std::move(reader));
  const EndOfPipe end(*pipe);
  hand_over(*call.to_caller, std::move(call.pending),
            std::make_shared<Reading>(answer.response.status, pipe, writing, call.to_server));
  if (answer.stream) {
    kube::WriteBody write = [pipe, own = writing->end](std::string piece) {
      return Pipe::write(pipe, own, std::move(piece));
    };
    co_await answer.stream(std::move(write));
  } else {
    co_await Pipe::write(pipe, writing->end, std::move(answer.response.body));
  }
}

Task<void> answer_stream(ApiServer& server, Call<Opened> call) {
  const auto executor = server.io().get_executor();
  kube::TaskGroup::OnError on_error = [&server](auto, std::string_view what) {
    server.report(what);
  };
  const auto writing = std::make_shared<Writing>(executor, std::move(on_error));
  writing->tasks.spawn("stream", write_stream(server, std::move(call), writing));
  co_await writing->tasks.join();
}

// ---- on the caller's thread

class LocalStream final : public kube::HttpStream {
 public:
  LocalStream(Opened reading, Pipe::End end) : reading_(std::move(reading)), end_(std::move(end)) {}
  int status() const override { return reading_->status; }
  bool is_quiet() override { return reading_->pipe->is_quiet(); }

  Task<Result<std::string>> read_some(Milliseconds idle) override {
    const auto deadline = std::chrono::steady_clock::now() + idle;
    for (;;) {
      Pipe::Taken taken = reading_->pipe->take();
      if (!taken.text.empty() || taken.is_over) co_return std::move(taken.text);
      if (auto error = co_await wait(*end_, deadline, "reading")) co_return tl::unexpected(*error);
    }
  }

 private:
  Opened reading_;
  Pipe::End end_;
};

class LocalTransport final : public kube::Transport {
 public:
  LocalTransport(kube::asio::io_context& io, ApiServer& server, Caller caller)
      : server_(server),
        caller_(caller),
        to_server_(std::make_shared<Mailbox>(server.io())),
        to_caller_(std::make_shared<Mailbox>(io)) {}
  ~LocalTransport() override { to_caller_->close(); }

  Task<Result<HttpResponse>> send(HttpRequest request) override {
    auto sent = co_await exchange<HttpResponse>(request, &answer_whole, nullptr);
    if (!sent) co_return tl::unexpected(sent.error());
    if (request.on_body && sent->status == kOk) {
      request.on_body(sent->body);
      sent->body.clear();
    }
    co_return std::move(*sent);
  }

  Task<Result<std::unique_ptr<kube::HttpStream>>> open(HttpRequest request) override {
    const auto end = std::make_shared<kube::Notifier>(co_await kube::asio::this_coro::executor);
    auto opened = co_await exchange<Opened>(request, &answer_stream, end);
    if (!opened) co_return tl::unexpected(opened.error());
    co_return std::make_unique<LocalStream>(std::move(*opened), end);
  }

 private:
  template <class T>
  Task<Result<T>> exchange(HttpRequest& request, Task<void> (*answer)(ApiServer&, Call<T>),
                           Pipe::End reader) {
    const std::string what =
        request.method + " " + request.target.substr(0, request.target.find('?'));
    const auto deadline = std::chrono::steady_clock::now() + request.deadline;
    if (request.deadline.count() <= 0)
      co_return kube::fail(ErrorCode::kTimeout, what + ": no time is left for it");
    if (request.on_write) {
      if (auto allowed = request.on_write(); !allowed) co_return tl::unexpected(allowed.error());
    }
    const auto pending = std::make_shared<Pending<T>>(co_await kube::asio::this_coro::executor);
    Call<T> call;
    call.request.method = request.method;
    call.request.target = request.target;
    call.request.content_type = request.content_type;
    call.request.accept = request.accept;
    call.request.user_agent = caller_ == Caller::kNode ? kNodeAgent : kControllerAgent;
    call.request.body = std::move(request.body);
    call.caller = caller_;
    call.to_server = to_server_;
    call.to_caller = to_caller_;
    call.pending = pending;
    call.reader = reader;
    kube::asio::post(server_.io(), [&server = server_, answer, call = std::move(call)]() mutable {
      server.tasks().spawn("request", answer(server, std::move(call)));
    });
    while (!pending->value) {
      if (auto error = co_await wait(pending->arrived, deadline, what))
        co_return tl::unexpected(std::move(*error));
    }
    co_return std::move(*pending->value);
  }

  ApiServer& server_;
  const Caller caller_;
  const std::shared_ptr<Mailbox> to_server_;
  const std::shared_ptr<Mailbox> to_caller_;
};

}  // namespace

std::unique_ptr<kube::Transport> make_local_transport(kube::asio::io_context& io, ApiServer& server,
                                                      Caller caller) {
  return std::make_unique<LocalTransport>(io, server, caller);
}

}  // namespace trainer
