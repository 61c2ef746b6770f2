#include "kube/client/http_session.hh"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <exception>
#include <optional>
#include <utility>

#include "kube/client/http_reader.hh"
#include "kube/client/streamed_body.hh"

namespace kube {

namespace {

namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;
using Parser = http::request_parser<http::string_body>;
using Phase = ServerConnection::Phase;

constexpr Milliseconds kLingerDeadline{1'000};
constexpr std::size_t kLingerBytes = 1U << 20;
constexpr std::size_t kShortBody = 64U << 10;

// This is a connection in the list of all, from its arrival to its end.
class Entry {
 public:
  Entry(std::shared_ptr<ServerState> state, const tcp::socket& socket) : state_(std::move(state)) {
    at_ = state_->connections.emplace(state_->connections.end());
    error_code ignored;
    at_->peer = socket.remote_endpoint(ignored).address();
    at_->since = SteadyClock::now();
    at_->is_stranger = static_cast<bool>(state_->options.is_known);
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry() {
    give_back();
    state_->connections.erase(at_);
    state_->changed.notify();
    call_next();
  }
  ServerConnection* operator->() { return &*at_; }

  void enter(Phase phase) {
    at_->enter(phase, SteadyClock::now());
    if (phase == Phase::kIdle) state_->changed.notify();
  }
  // Waits until `bytes` of a body fit in; returns false if they do not by the deadline.
  Task<bool> reserve(std::size_t bytes, Deadline deadline) {
    const ServerOptions& options = state_->options;
    const std::size_t most = std::max(options.max_body_bytes_in_flight, options.max_body_bytes);
    while (state_->body_bytes + bytes > most) {
      const bool is_over = state_->is_stopping || SteadyClock::now() >= deadline;
      if (at_->is_evicted || is_over) co_return false;
      co_await state_->make_room(Scarce::kBodyBytes, state_->body_bytes + bytes - most, deadline);
    }
    at_->body_bytes = bytes;
    state_->body_bytes += bytes;
    co_return true;
  }
  // Waits for the first byte of a connection that is a stranger's, then until it may be one of
  // those that are read at the same time. Returns false if it is not served.
  Task<bool> take_place(Deadline deadline) {
    if (!co_await at_->stream->await_bytes()) co_return false;
    const auto executor = state_->acceptor.get_executor();
    Notifier turn(executor);
    at_->turn = &turn;
    while (count_strangers(state_->connections, Scarce::kPlaces) >= state_->options.max_strangers) {
      const bool is_over = state_->is_stopping || SteadyClock::now() >= deadline;
      if (at_->is_evicted || is_over) break;
      if (state_->newest_waiting() == &*at_)
        co_await state_->make_room(Scarce::kPlaces, 1, deadline);
      else
        co_await turn.wait_until(state_->clock, deadline);
    }
    at_->turn = nullptr;
    at_->has_place =
        count_strangers(state_->connections, Scarce::kPlaces) < state_->options.max_strangers;
    at_->since = SteadyClock::now();
    call_next();
    co_return at_->has_place && !at_->is_evicted;
  }
  void become_known() {
    if (!std::exchange(at_->is_stranger, false)) return;
    state_->changed.notify();
    call_next();
  }
  void give_back() {
    if (at_->body_bytes == 0) return;
    state_->body_bytes -= std::exchange(at_->body_bytes, 0);
    state_->changed.notify();
  }

 private:
  void call_next() {
    if (ServerConnection* const next = state_->newest_waiting()) next->turn->notify();
  }

  std::shared_ptr<ServerState> state_;
  ServerConnections::iterator at_;
};

std::string text_of(const ServerResponse& response, const ServerOptions& options, bool keeps_alive,
                    bool has_body) {
  const auto reason =
      http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status)));
  std::string text =
      fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n", response.status,
                  std::string_view(reason.data(), reason.size()), response.content_type);
  text += response.stream ? "Transfer-Encoding: chunked\r\n"
                          : fmt::format("Content-Length: {}\r\n", response.body.size());
  if (response.retry_after > 0)
    text += "Retry-After: " + std::to_string(response.retry_after) + "\r\n";
  for (const auto* headers : {&options.headers, &response.headers})
    for (const auto& [name, value] : *headers) text += name + ": " + value + "\r\n";
  if (!keeps_alive) text += "Connection: close\r\n";
  text += "\r\n";
  if (has_body) text += response.body;
  return text;
}

ServerRequest request_of(Parser& parser) {
  auto message = parser.release();
  const auto text = [](auto view) { return std::string(view.data(), view.size()); };
  ServerRequest request;
  request.method = text(message.method_string());
  const std::string target = text(message.target());
  const auto question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string::npos) request.query = target.substr(question + 1);
  request.content_type = text(message[http::field::content_type]);
  request.accept = text(message[http::field::accept]);
  request.user_agent = text(message[http::field::user_agent]);
  request.host = text(message[http::field::host]);
  request.origin = text(message[http::field::origin]);
  request.fetch_site = text(message["Sec-Fetch-Site"]);
  request.cookie = Secret<std::string>(text(message[http::field::cookie]));
  request.authorization = Secret<std::string>(text(message[http::field::authorization]));
  request.body = std::move(message.body());
  return request;
}

// Returns the answer to a request that could not be read; nothing for a connection that simply
// ended.
std::optional<ServerResponse> refusal_of(const ReadFailure& failure, std::size_t max_body) {
  if (failure.error.code == ErrorCode::kTooManyRequests) {
    ServerResponse busy = ServerResponse::text(503, failure.error.message + "\n");
    busy.retry_after = 1;
    return busy;
  }
  if (!failure.code) return std::nullopt;
  if (failure.code == http::error::body_limit) {
    return ServerResponse::text(413,
                                "the body is longer than " + std::to_string(max_body) + " bytes\n");
  }
  if (failure.code == http::error::header_limit)
    return ServerResponse::text(431, "the header is too long\n");
  return ServerResponse::text(400, "the request is malformed: " + failure.code.message() + "\n");
}

class Session {
 public:
  Session(std::shared_ptr<ServerState> state, Entry& entry, ByteStream& stream)
      : state_(std::move(state)), entry_(entry), stream_(&stream) {}

  Task<void> run() {
    while (!state_->is_stopping && co_await wait_for_request()) {
      if (!co_await serve_one()) break;
    }
  }

 private:
  // Returns false if the connection ended, or was idle for too long.
  Task<bool> wait_for_request() {
    if (buffer_.size() > 0) co_return true;
    if (entry_->phase != Phase::kNew) entry_.enter(Phase::kIdle);
    // This also holds for a new connection: Go's client opens connections ahead, and a request that
    // meets their end is lost. So the server's deadline is the longer one (net/http:
    // IdleConnTimeout).
    stream_->set_deadline(SteadyClock::now() + state_->options.idle_deadline);
    const IoResult got = co_await stream_->read_some(buffer_.space(), buffer_.space_left());
    buffer_.filled(got.bytes);
    co_return !got.error && got.bytes > 0;
  }

  // Returns true if another request may follow.
  Task<bool> serve_one() {
    entry_.enter(Phase::kReading);
    Parser parser;
    parser.header_limit(InputBuffer::kSize);
    parser.body_limit(state_->options.max_body_bytes);
    parser.eager(true);
    auto read = co_await read_head(parser);
    auto refusal = read ? refusal_of_client() : std::nullopt;
    const bool is_known = read && is_of_known_client(parser);
    if (is_known) entry_.become_known();
    if (is_known && !refusal) read = co_await read_body(parser);
    if (!read) refusal = refusal_of(read.error(), state_->options.max_body_bytes);
    if (refusal) {
      co_await answer(*refusal, false, true);
      co_await linger();
    }
    if (refusal || !read) co_return false;
    const bool is_whole = parser.is_done();
    const bool keeps_alive = is_known && parser.get().keep_alive() && state_->options.keeps_alive &&
                             !state_->is_stopping;
    const bool has_body = parser.get().method() != http::verb::head;
    stream_->set_deadline(Deadline::max());  // a handler has deadlines of its own
    entry_.enter(Phase::kHandled);
    ServerRequest request = request_of(parser);
    if (!is_whole) request.body.clear();
    const ServerResponse response = co_await handle(std::move(request));
    entry_.enter(Phase::kReading);
    entry_.give_back();
    if (response.stream) {
      if (co_await answer(response, false, false) && has_body && !state_->is_stopping)
        co_await stream_body(response.stream);
      co_return false;
    }
    const bool is_sent = co_await answer(response, keeps_alive && !state_->is_stopping, has_body);
    if (is_sent && !is_whole) co_await linger();
    co_return is_sent&& keeps_alive;
  }

  using Read = tl::expected<void, ReadFailure>;

  Task<Read> read_head(Parser& parser) {
    stream_->set_deadline(SteadyClock::now() + state_->options.header_deadline);
    const error_code refused = feed(parser, buffer_);
    if (refused) co_return tl::unexpected(ReadFailure(Error(), false, refused));
    while (!parser.is_header_done()) {
      const auto step = co_await read_step(*stream_, parser, buffer_);
      if (!step) co_return tl::unexpected(step.error());
    }
    co_return Read();
  }

  Task<Read> read_body(Parser& parser) {
    if (parser.is_done()) co_return Read();
    const auto now = SteadyClock::now();
    stream_->set_deadline(now + state_->options.read_deadline);
    // This bounds the body's length; a body that is too long is refused when it is read.
    const std::size_t max = state_->options.max_body_bytes;
    const auto length = static_cast<std::size_t>(
        std::min<std::uint64_t>(parser.chunked() ? max : parser.content_length().value_or(0), max));
    // A body may wait for memory for half of the deadline; the rest is for reading it.
    if (length > kShortBody &&
        !co_await entry_.reserve(length, now + state_->options.read_deadline / 2)) {
      co_return tl::unexpected(ReadFailure(
          Error(ErrorCode::kTooManyRequests, "too many long requests are under way, try again")));
    }
    if (boost::beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      co_await stream_->write_all("HTTP/1.1 100 Continue\r\n\r\n");
    }
    while (!parser.is_done()) {
      const auto step = co_await read_step(*stream_, parser, buffer_);
      if (!step) co_return tl::unexpected(step.error());
    }
    co_return Read();
  }

  bool is_of_known_client(Parser& parser) const {
    if (!state_->options.is_known) return true;
    const auto text = parser.get()[http::field::authorization];
    return state_->options.is_known(Secret<std::string>(std::string(text.data(), text.size())));
  }

  // A client without the certificate that the options ask for is refused before its body is read.
  std::optional<ServerResponse> refusal_of_client() {
    const auto certificate = stream_->client_certificate();
    if (state_->options.tls.client_ca_pem.empty() || certificate == ClientCertificate::kTrusted)
      return std::nullopt;
    return certificate == ClientCertificate::kNone
               ? ServerResponse::text(401, "a client certificate is required here\n")
               : ServerResponse::text(
                     403, "the client certificate is not signed by a CA that is trusted here\n");
  }

  Task<ServerResponse> handle(ServerRequest request) {
    std::string failure;
    try {
      co_return co_await state_->handler(std::move(request));
    } catch (const boost::system::system_error& error) {
      if (error.code() == asio::error::operation_aborted) throw;
      failure = error.what();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (state_->options.on_error) state_->options.on_error(failure);
    co_return ServerResponse::text(500, "internal error\n");
  }

  Task<bool> answer(const ServerResponse& response, bool keeps_alive, bool has_body) {
    stream_->set_deadline(SteadyClock::now() + state_->options.read_deadline);
    const std::string text = text_of(response, state_->options, keeps_alive, has_body);
    const IoResult written = co_await stream_->write_all(text);
    co_return !written.error;
  }

  Task<void> stream_body(StreamBody body) {
    entry_.enter(Phase::kStreaming);
    co_await send_in_chunks(*stream_, std::move(body), state_->options.stream_deadline,
                            state_->options.on_error);
  }

  // If a connection is closed over unread bytes, it is reset, and the peer may lose the answer. So
  // some more of what the peer sends is read.
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

  std::shared_ptr<ServerState> state_;
  Entry& entry_;
  ByteStream* stream_;
  InputBuffer buffer_;
};

}  // namespace

ServerState::ServerState(asio::io_context& io, ServerOptions options_, HttpServer::Handler handler_)
    : options(std::move(options_)),
      handler(std::move(handler_)),
      acceptor(io),
      changed(io.get_executor()),
      tasks(io.get_executor(), [on_error = options.on_error](auto, std::string_view what) {
        if (on_error) on_error(what);
      }) {}

void ServerState::stop() {
  is_stopping = true;
  error_code ignored;
  acceptor.close(ignored);
  changed.notify();
  for (ServerConnection& each : connections) {
    const bool is_waiting =
        each.phase == Phase::kNew || each.phase == Phase::kIdle || each.phase == Phase::kStreaming;
    if (is_waiting && each.stream != nullptr) each.stream->close();
    if (each.turn != nullptr) each.turn->notify();
  }
}

ServerConnection* ServerState::newest_waiting() {
  const auto found = std::find_if(connections.rbegin(), connections.rend(),
                                  [](const auto& each) { return each.turn != nullptr; });
  return found == connections.rend() ? nullptr : &*found;
}

Task<void> ServerState::make_room(Scarce what, std::size_t missing, Deadline deadline) {
  const auto now = SteadyClock::now();
  const Milliseconds grace = what == Scarce::kWaiting  ? Milliseconds(0)
                             : what == Scarce::kPlaces ? options.stranger_grace
                                                       : options.grace;
  ServerConnection* const victim = held_by_evicted(connections, what) >= missing
                                       ? nullptr
                                       : find_victim(connections, what, now, grace);
  if (victim != nullptr) {
    victim->is_evicted = true;
    victim->stream->close();
    if (victim->turn != nullptr) victim->turn->notify();
    changed.notify();  // it may wait for room itself
    if (options.on_eviction) options.on_eviction();
  }
  // The grace of a connection may end without another change.
  constexpr Milliseconds kLeast{10};
  co_await changed.wait_until(clock, std::min(deadline, now + std::max(grace / 10, kLeast)));
}

Task<void> run_session(std::shared_ptr<ServerState> state, tcp::socket socket) {
  Entry entry(state, socket);
  const auto stream = accepted_stream(std::move(socket), state->tls);
  const Deadline deadline = SteadyClock::now() + state->options.header_deadline;
  stream->set_deadline(deadline);
  entry->stream = stream.get();
  if (entry->is_stranger && !co_await entry.take_place(deadline)) co_return;
  if (!co_await stream->handshake()) co_return;
  Session session(state, entry, *stream);
  co_await session.run();
}

}  // namespace kube
