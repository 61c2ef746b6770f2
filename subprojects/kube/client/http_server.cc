#include "kube/client/http_server.hh"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <exception>
#include <list>
#include <optional>
#include <utility>

#include "kube/client/http_reader.hh"
#include "kube/client/listen.hh"
#include "kube/client/notifier.hh"
#include "kube/client/semaphore.hh"
#include "kube/client/task_group.hh"
#include "kube/client/tls.hh"

namespace kube {

namespace {

namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;
using Parser = http::request_parser<http::string_body>;

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr Milliseconds kAcceptPause{100};
constexpr Milliseconds kLingerDeadline{1'000};
constexpr std::size_t kLingerBytes = 1U << 20;
constexpr std::size_t kShortBody = 64U << 10;
constexpr int kRetryAfter = 1;  // second

// What the acceptor and all sessions share. Every session holds it, so it outlives the HttpServer
// where a handler still runs.
struct Shared {
  Shared(asio::io_context& io, ServerOptions options_, HttpServer::Handler handler_)
      : options(std::move(options_)),
        handler(std::move(handler_)),
        long_bodies(std::max<std::size_t>(
            1, options.max_bytes_under_way / std::max(options.max_body_bytes, kShortBody))),
        acceptor(io),
        changed(io.get_executor()),
        tasks(io.get_executor(), [on_error = options.on_error](auto, std::string_view what) {
          if (on_error) on_error(what);
        }) {}

  ServerOptions options;
  HttpServer::Handler handler;
  Semaphore long_bodies;
  tcp::acceptor acceptor;
  Notifier changed;  // rung when a connection ends or falls idle
  ServerTls tls;
  std::list<ByteStream*> idle;  // longest idle first
  std::size_t connections = 0;
  bool is_stopping = false;
  TaskGroup tasks;

  void stop() {
    is_stopping = true;
    error_code ignored;
    acceptor.close(ignored);
    changed.notify();
    for (ByteStream* const stream : idle) stream->close();
  }
};

// Counts a connection for as long as its session lives.
class Counted {
 public:
  explicit Counted(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {
    ++shared_->connections;
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() {
    --shared_->connections;
    shared_->changed.notify();
  }

 private:
  std::shared_ptr<Shared> shared_;
};

// Marks a connection as one that may be closed without harm.
class Idle {
 public:
  Idle(Shared& shared, ByteStream& stream)
      : shared_(shared), at_(shared.idle.insert(shared.idle.end(), &stream)) {
    shared_.changed.notify();
  }
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;
  ~Idle() { shared_.idle.erase(at_); }

 private:
  Shared& shared_;
  std::list<ByteStream*>::iterator at_;
};

std::string text_of(const ServerResponse& response, bool keeps_alive, bool has_body) {
  const auto reason =
      http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status)));
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " " +
                     std::string(reason.data(), reason.size()) + "\r\n";
  text += "Content-Type: " + response.content_type + "\r\n";
  text += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  if (response.retry_after > 0)
    text += "Retry-After: " + std::to_string(response.retry_after) + "\r\n";
  if (!keeps_alive) text += "Connection: close\r\n";
  text += "\r\n";
  if (has_body) text += response.body;
  return text;
}

ServerRequest request_of(Parser& parser) {
  auto message = parser.release();
  const auto text = [](boost::beast::string_view view) {
    return std::string(view.data(), view.size());
  };
  ServerRequest request;
  request.method = text(message.method_string());
  const std::string target = text(message.target());
  const auto question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string::npos) request.query = target.substr(question + 1);
  request.content_type = text(message[http::field::content_type]);
  request.authorization = Secret<std::string>(text(message[http::field::authorization]));
  request.body = std::move(message.body());
  return request;
}

ServerResponse plain(int status, std::string body) {
  ServerResponse response;
  response.status = status;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::move(body);
  return response;
}

// The answer to a request that could not be read; nothing for a connection that simply ended.
std::optional<ServerResponse> refusal_of(const ReadFailure& failure, std::size_t max_body) {
  if (failure.error.code == ErrorCode::kTooManyRequests) {
    ServerResponse busy = plain(503, failure.error.message + "\n");
    busy.retry_after = kRetryAfter;
    return busy;
  }
  if (!failure.code) return std::nullopt;
  if (failure.code == http::error::body_limit) {
    return plain(413, "the body is longer than " + std::to_string(max_body) + " bytes\n");
  }
  if (failure.code == http::error::header_limit) return plain(431, "the header is too long\n");
  return plain(400, "the request is malformed: " + failure.code.message() + "\n");
}

// Not known in advance of one that comes in chunks.
bool is_body_long(const Parser& parser) {
  const auto length = parser.content_length();
  return parser.chunked() || (length && *length > kShortBody);
}

class Session {
 public:
  Session(std::shared_ptr<Shared> shared, std::unique_ptr<ByteStream> stream)
      : shared_(std::move(shared)), stream_(std::move(stream)) {}

  Task<void> run() {
    while (!shared_->is_stopping && co_await wait_for_request()) {
      if (!co_await serve_one()) break;
    }
  }

 private:
  // False where the connection ended, or was idle for too long.
  Task<bool> wait_for_request() {
    if (buffer_.size() > 0) co_return true;
    const Idle idle(*shared_, *stream_);
    stream_->set_deadline(SteadyClock::now() + shared_->options.idle_deadline);
    const IoResult got = co_await stream_->read_some(buffer_.space(), buffer_.space_left());
    buffer_.filled(got.bytes);
    co_return !got.error && got.bytes > 0;
  }

  // True where another request may follow.
  Task<bool> serve_one() {
    stream_->set_deadline(SteadyClock::now() + shared_->options.read_deadline);
    Parser parser;
    parser.header_limit(InputBuffer::kSize);
    parser.body_limit(shared_->options.max_body_bytes);
    parser.eager(true);
    std::optional<Semaphore::Permit> turn;  // of a long body
    const auto read = co_await read_request(parser, turn);
    if (!read) {
      if (const auto refusal = refusal_of(read.error(), shared_->options.max_body_bytes)) {
        co_await answer(*refusal, false, true);
        co_await linger();
      }
      co_return false;
    }
    const bool keeps_alive = parser.get().keep_alive() && !shared_->is_stopping;
    const bool has_body = parser.get().method() != http::verb::head;
    stream_->set_deadline(Deadline::max());  // a handler has deadlines of its own
    const ServerResponse response = co_await handle(request_of(parser));
    co_return co_await answer(response, keeps_alive && !shared_->is_stopping, has_body) &&
        keeps_alive;
  }

  Task<tl::expected<void, ReadFailure>> read_request(Parser& parser,
                                                     std::optional<Semaphore::Permit>& turn) {
    bool was_announced = false;
    if (const error_code refused = feed(parser, buffer_, false)) {
      ReadFailure failure;
      failure.code = refused;
      co_return tl::unexpected(std::move(failure));
    }
    while (!parser.is_done()) {
      if (parser.is_header_done() && !was_announced) {
        was_announced = true;
        if (is_body_long(parser) && !co_await take(turn)) {
          ReadFailure failure;
          failure.error =
              Error(ErrorCode::kTooManyRequests, "too many long requests are under way, try again");
          co_return tl::unexpected(std::move(failure));
        }
        if (boost::beast::iequals(parser.get()[http::field::expect], "100-continue")) {
          co_await stream_->write_all("HTTP/1.1 100 Continue\r\n\r\n");
        }
      }
      const auto step = co_await read_step(*stream_, parser, buffer_, false);
      if (!step) co_return tl::unexpected(step.error());
    }
    co_return tl::expected<void, ReadFailure>();
  }

  // What is left of the deadline is for the body.
  Task<bool> take(std::optional<Semaphore::Permit>& turn) {
    auto permit = co_await shared_->long_bodies.acquire(SteadyClock::now() +
                                                        shared_->options.read_deadline / 2);
    if (permit) turn.emplace(std::move(*permit));
    co_return turn.has_value();
  }

  Task<ServerResponse> handle(ServerRequest request) {
    std::string failure;
    try {
      co_return co_await shared_->handler(std::move(request));
    } catch (const boost::system::system_error& error) {
      if (error.code() == asio::error::operation_aborted) throw;
      failure = error.what();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (shared_->options.on_error) shared_->options.on_error(failure);
    co_return plain(500, "internal error\n");
  }

  Task<bool> answer(const ServerResponse& response, bool keeps_alive, bool has_body) {
    stream_->set_deadline(SteadyClock::now() + shared_->options.read_deadline);
    const std::string text = text_of(response, keeps_alive, has_body);
    const IoResult written = co_await stream_->write_all(text);
    co_return !written.error;
  }

  // A connection closed over unread bytes is reset, and the peer may lose our answer: read some
  // more of what it sends.
  Task<void> linger() {
    stream_->end_writing();
    stream_->set_deadline(SteadyClock::now() + kLingerDeadline);
    buffer_ = InputBuffer();
    for (std::size_t total = 0; total < kLingerBytes;) {
      const IoResult got = co_await stream_->read_some(buffer_.space(), buffer_.space_left());
      if (got.error || got.bytes == 0) co_return;
      total += got.bytes;
    }
  }

  std::shared_ptr<Shared> shared_;
  std::unique_ptr<ByteStream> stream_;
  InputBuffer buffer_;
};

Task<void> run_session(std::shared_ptr<Shared> shared, tcp::socket socket) {
  const Counted counted(shared);
  auto stream = co_await accept_stream(std::move(socket), shared->tls,
                                       SteadyClock::now() + shared->options.read_deadline);
  if (!stream) co_return;
  Session session(shared, std::move(*stream));
  co_await session.run();
}

// Waits until a newcomer fits in.
Task<void> make_room(std::shared_ptr<Shared> shared) {
  while (shared->connections >= shared->options.max_connections && !shared->is_stopping) {
    if (!shared->idle.empty()) shared->idle.front()->close();
    co_await shared->changed.wait();
  }
}

Task<void> accept_all(std::shared_ptr<Shared> shared) {
  while (!shared->is_stopping) {
    auto [error, socket] = co_await shared->acceptor.async_accept(kToken);
    if (shared->is_stopping) co_return;
    if (error) {
      // Out of descriptors, most likely: sessions that end give some back.
      asio::steady_timer pause(shared->acceptor.get_executor(), kAcceptPause);
      co_await pause.async_wait(kToken);
      continue;
    }
    co_await make_room(shared);
    if (shared->is_stopping) co_return;
    shared->tasks.spawn("session", run_session(shared, std::move(socket)));
  }
}

class Server final : public HttpServer {
 public:
  explicit Server(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {
    port_ = shared_->acceptor.local_endpoint().port();
    shared_->tasks.spawn("acceptor", accept_all(shared_));
  }
  ~Server() override { shared_->stop(); }
  unsigned short port() const override { return port_; }
  Result<void> set_certificate(const std::string& certificate_pem,
                               const Secret<std::string>& key_pem) override {
    auto tls = make_server_tls(certificate_pem, key_pem, shared_->options.min_tls_version);
    if (!tls) return tl::unexpected(tls.error());
    shared_->tls = std::move(*tls);
    return {};
  }
  void stop() override { shared_->stop(); }
  Task<void> drained() override {
    const auto shared = shared_;
    co_await shared->tasks.join();
  }

 private:
  std::shared_ptr<Shared> shared_;
  unsigned short port_ = 0;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> serve(asio::io_context& io, ServerOptions options,
                                          HttpServer::Handler handler) {
  auto shared = std::make_shared<Shared>(io, std::move(options), std::move(handler));
  if (shared->options.is_tls) {
    auto tls = make_server_tls(shared->options.certificate_pem, shared->options.private_key_pem,
                               shared->options.min_tls_version);
    if (!tls) return tl::unexpected(tls.error());
    shared->tls = std::move(*tls);
  }
  const auto listening = listen(shared->acceptor, shared->options.address, shared->options.port);
  if (!listening) return tl::unexpected(listening.error());
  return std::make_unique<Server>(std::move(shared));
}

}  // namespace kube
