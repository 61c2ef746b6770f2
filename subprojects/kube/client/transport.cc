#include "kube/client/transport.hh"

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/fields.hpp>
#include <deque>
#include <optional>
#include <stdexcept>

#include "kube/client/clock.hh"
#include "kube/client/http_reader.hh"
#include "kube/client/kubeconfig.hh"
#include "kube/client/semaphore.hh"
#include "kube/client/token_source.hh"

namespace kube {

namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;

constexpr int kOk = 200;
constexpr int kUnauthorized = 401;
constexpr std::size_t kUsualHeaders = 512;   // bytes
constexpr std::size_t kMaxSpareBuffers = 4;  // more than are read into at a time, as a rule

// A body that is kept, up to a limit, or handed on in pieces.
struct ResponseBody {
  struct value_type {
    std::string text;
    std::size_t limit = 0;
    bool is_drained = false;  // the text is taken out after every read, so that it cannot grow
    const std::function<void(std::string_view)>* on_piece = nullptr;
  };
  class reader {
   public:
    template <bool IsRequest, class Fields>
    reader(http::header<IsRequest, Fields>& header, value_type& body)
        : status_([&header] { return header.result_int(); }), body_(body) {}
    void init(const boost::optional<std::uint64_t>& length, error_code& error) {
      error = {};
      is_ok_ = status_() == kOk;  // the reader is made before the header is read
      if (is_handed_on() || body_.is_drained || !length) return;
      if (*length > body_.limit) {
        error = http::error::body_limit;
      } else {
        body_.text.reserve(static_cast<std::size_t>(*length));
      }
    }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, error_code& error) {
      error = {};
      std::size_t total = 0;
      const auto end = asio::buffer_sequence_end(buffers);
      for (auto at = asio::buffer_sequence_begin(buffers); at != end && !error; ++at) {
        const asio::const_buffer piece(*at);
        take(std::string_view(static_cast<const char*>(piece.data()), piece.size()), error);
        if (!error) total += piece.size();
      }
      return total;
    }
    void finish(error_code& error) { error = {}; }

   private:
    bool is_handed_on() const { return is_ok_ && body_.on_piece != nullptr; }
    void take(std::string_view piece, error_code& error) {
      if (is_handed_on()) {
        (*body_.on_piece)(piece);
      } else if (!body_.is_drained && body_.text.size() + piece.size() > body_.limit) {
        error = http::error::body_limit;
      } else {
        body_.text.append(piece);
      }
    }
    std::function<unsigned()> status_;
    bool is_ok_ = false;
    value_type& body_;
  };
};

using Parser = http::parser<false, ResponseBody>;

void configure(Parser& parser, std::size_t limit,
               const std::function<void(std::string_view)>* on_piece) {
  parser.header_limit(InputBuffer::kSize);
  parser.body_limit(
      boost::none);  // this transport's limit applies: it knows which bodies are only passed on
  parser.eager(true);
  parser.get().body().limit = limit;
  parser.get().body().on_piece = on_piece;
}

Task<tl::expected<void, ReadFailure>> write_request(ByteStream& stream, const HttpRequest& request,
                                                    const std::string& text) {
  ReadFailure failure;
  if (request.on_write) {
    if (auto allowed = request.on_write(); !allowed) {
      failure.error = std::move(allowed.error());
      co_return tl::unexpected(std::move(failure));
    }
  }
  const IoResult written = co_await stream.write_all(text);
  if (!written.error) co_return tl::expected<void, ReadFailure>();
  failure.error = error_of(stream, written, "sending");
  failure.is_cut = failure.error.code == ErrorCode::kNetwork;
  co_return tl::unexpected(std::move(failure));
}

class WatchStream final : public HttpStream {
 public:
  explicit WatchStream(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {
    configure(parser_, 0, nullptr);
    parser_.get().body().is_drained = true;
  }

  Task<tl::expected<void, ReadFailure>> read_header() {
    while (!parser_.is_header_done()) {
      const auto step = co_await read_step(*stream_, parser_, buffer_, true);
      if (!step) co_return tl::unexpected(step.error());
    }
    co_return tl::expected<void, ReadFailure>();
  }
  int status() const override { return static_cast<int>(parser_.get().result_int()); }
  std::string_view header(std::string_view name) const override {
    const auto value = parser_.get()[boost::beast::string_view(name.data(), name.size())];
    return std::string_view(value.data(), value.size());
  }

  Task<Result<std::string>> read_some(Milliseconds idle) override {
    stream_->set_deadline(SteadyClock::now() + idle);
    std::string& text = parser_.get().body().text;
    // What came together with the header has not been parsed yet.
    if (const error_code refused = feed(parser_, buffer_, false)) {
      co_return fail(ErrorCode::kNetwork, "the stream is malformed: " + refused.message());
    }
    while (text.empty() && !parser_.is_done()) {
      const auto step = co_await read_step(*stream_, parser_, buffer_, false);
      if (!step) co_return tl::unexpected(step.error().error);
    }
    co_return std::exchange(text, std::string());
  }
  bool is_quiet() override { return stream_->is_quiet(); }

 private:
  std::unique_ptr<ByteStream> stream_;
  Parser parser_;
  InputBuffer buffer_;
};

class PooledTransport final : public Transport {
 public:
  PooledTransport(asio::io_context& io, const ClientConfig& config, TransportLimits limits)
      : limits_(limits),
        user_agent_(config.user_agent),
        tokens_(config.token, config.token_file),
        plugin_(config.exec_plugin),
        slots_(limits.max_in_flight),
        sweep_(io) {
    auto server = parse_server_url(config.server);
    if (!server) throw std::runtime_error(server.error().message);
    server_ = std::move(*server);
    if (plugin_) plugin_user_ = config;
    if (!server_.is_tls) return;
    auto tls = ClientTls::make(config, server_.host);
    if (!tls) throw std::runtime_error(config.server + ": " + tls.error().message);
    tls_ = std::move(*tls);
  }

  Task<Result<HttpResponse>> send(HttpRequest request) override {
    if (auto signed_in = sign_in(); !signed_in) co_return tl::unexpected(signed_in.error());
    const Deadline deadline = SteadyClock::now() + request.deadline;
    const auto permit = co_await slots_.acquire(deadline);
    if (!permit) co_return tl::unexpected(permit.error().at(name_of(request)));
    const Secret<std::string> sent = tokens_.authorization(SteadyClock::now());
    auto done = co_await exchange(request, sent, deadline);
    if (done && done->status == kUnauthorized && has_other_than(sent)) {
      const Secret<std::string> other = tokens_.authorization(SteadyClock::now());
      done = co_await exchange(request, other, deadline);
    }
    if (!done) co_return tl::unexpected(done.error().at(name_of(request)));
    co_return std::move(*done);
  }

  Task<Result<std::unique_ptr<HttpStream>>> open(HttpRequest request) override {
    if (auto signed_in = sign_in(); !signed_in) co_return tl::unexpected(signed_in.error());
    const Deadline deadline = SteadyClock::now() + request.deadline;
    const Secret<std::string> sent = tokens_.authorization(SteadyClock::now());
    auto stream = co_await open_once(request, sent, deadline);
    if (stream && (*stream)->status() == kUnauthorized && has_other_than(sent)) {
      const Secret<std::string> other = tokens_.authorization(SteadyClock::now());
      stream = co_await open_once(request, other, deadline);
    }
    if (!stream) co_return tl::unexpected(stream.error().at(name_of(request)));
    co_return std::move(*stream);
  }

 private:
  struct Idle {
    std::unique_ptr<ByteStream> stream;
    Deadline until;
  };

  // Takes the plugin's credential, a new one where the last has expired.
  Result<void> sign_in() {
    if (!plugin_) return {};
    if (auto renewed = plugin_->renew(SystemClock().now()); !renewed) return renewed;
    if (std::exchange(generation_, plugin_->generation()) == plugin_->generation()) return {};
    const ExecCredential& credential = plugin_->credential();
    tokens_.set(credential.token.reveal());
    if (tls_ == nullptr || credential.client_certificate_pem.empty()) return {};
    plugin_user_.client_certificate_pem = credential.client_certificate_pem;
    plugin_user_.client_key_pem = credential.client_key_pem;
    auto tls = ClientTls::make(plugin_user_, server_.host);
    if (!tls) return tl::unexpected(tls.error().at("exec plugin"));
    idle_.clear();
    // Open streams refer to the former one.
    former_tls_.push_back(std::exchange(tls_, std::move(*tls)));
    return {};
  }

  // After a 401. Where the plugin fails its error is that of the next request.
  bool has_other_than(const Secret<std::string>& sent) {
    const auto now = SteadyClock::now();
    if (!plugin_ || tokens_.authorization(now).reveal() != sent.reveal())
      return tokens_.has_other_than(sent, now);
    plugin_->expire();
    return sign_in().has_value();
  }

  std::string name_of(const HttpRequest& request) const {
    return request.method + " " + server_.authority() + server_.base_path +
           request.target.substr(0, request.target.find('?'));
  }

  std::string text_of(const HttpRequest& request, const Secret<std::string>& token) const {
    std::string text;
    text.reserve(512 + request.target.size() + request.body.size());
    text += request.method + " " + server_.base_path + request.target + " HTTP/1.1\r\n";
    text += "Host: " + server_.authority() + "\r\n";
    text += "User-Agent: " + user_agent_ + "\r\n";
    text += "Accept: " + request.accept + "\r\n";
    if (!token.reveal().empty()) text += "Authorization: " + token.reveal() + "\r\n";
    if (!request.content_type.empty()) text += "Content-Type: " + request.content_type + "\r\n";
    if (!request.body.empty() || request.method == "POST" || request.method == "PUT" ||
        request.method == "PATCH") {
      text += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
    }
    text += "\r\n";
    text += request.body;
    return text;
  }

  // A connection that was used before may have been closed by the server just now, so one reset is
  // forgiven there.
  Task<Result<HttpResponse>> exchange(const HttpRequest& request, const Secret<std::string>& token,
                                      Deadline deadline) {
    const std::string text = text_of(request, token);
    if (auto reused = take_idle()) {
      bool has_answer = false;
      auto done = co_await exchange_on(std::move(reused), request, text, deadline, has_answer);
      if (done) co_return std::move(*done);
      const ReadFailure& failure = done.error();
      if (!request.is_idempotent || !failure.is_cut || has_answer) {
        co_return tl::unexpected(failure.error);
      }
    }
    auto fresh = co_await connect_stream(server_, tls_.get(), deadline);
    if (!fresh) co_return tl::unexpected(fresh.error());
    bool has_answer = false;
    auto done = co_await exchange_on(std::move(*fresh), request, text, deadline, has_answer);
    if (!done) co_return tl::unexpected(done.error().error);
    co_return std::move(*done);
  }

  // `has_answer` says whether any byte of an answer came.
  Task<tl::expected<HttpResponse, ReadFailure>> exchange_on(std::unique_ptr<ByteStream> stream,
                                                            const HttpRequest& request,
                                                            const std::string& text,
                                                            Deadline deadline, bool& has_answer) {
    stream->set_deadline(deadline);
    const auto sent = co_await write_request(*stream, request, text);
    if (!sent) co_return tl::unexpected(sent.error());
    Parser parser;
    configure(parser, limits_.max_response_bytes, request.on_body ? &request.on_body : nullptr);
    InputBuffer buffer = take_buffer();
    while (!parser.is_done()) {
      const auto step = co_await read_step(*stream, parser, buffer, false);
      if (!step) co_return tl::unexpected(step.error());
      has_answer = true;
    }
    auto& message = parser.get();
    HttpResponse response;
    response.status = static_cast<int>(message.result_int());
    for (const auto& field : message) {
      const auto name = field.name_string();
      const auto value = field.value();
      response.add_header({name.data(), name.size()}, {value.data(), value.size()});
    }
    response.body = std::move(message.body().text);
    if (message.keep_alive() && !message.need_eof() && buffer.size() == 0) {
      give_back(std::move(stream));
      if (spare_.size() < kMaxSpareBuffers) spare_.push_back(std::move(buffer));
    }
    co_return std::move(response);
  }

  // The connection of the list that came before is taken where it is free, as by an exchange.
  Task<Result<std::unique_ptr<WatchStream>>> open_once(const HttpRequest& request,
                                                       const Secret<std::string>& token,
                                                       Deadline deadline) {
    const std::string text = text_of(request, token);
    if (auto reused = take_idle()) {
      reused->set_deadline(deadline);
      auto opened = co_await open_on(std::move(reused), request, text);
      if (opened) co_return std::move(*opened);
      if (!opened.error().is_cut) co_return tl::unexpected(opened.error().error);
    }
    auto fresh = co_await connect_stream(server_, tls_.get(), deadline);
    if (!fresh) co_return tl::unexpected(fresh.error());
    auto opened = co_await open_on(std::move(*fresh), request, text);
    if (!opened) co_return tl::unexpected(opened.error().error);
    co_return std::move(*opened);
  }

  static Task<tl::expected<std::unique_ptr<WatchStream>, ReadFailure>> open_on(
      std::unique_ptr<ByteStream> connection, const HttpRequest& request, const std::string& text) {
    const auto sent = co_await write_request(*connection, request, text);
    if (!sent) co_return tl::unexpected(sent.error());
    auto stream = std::make_unique<WatchStream>(std::move(connection));
    const auto header = co_await stream->read_header();
    if (!header) co_return tl::unexpected(header.error());
    co_return std::move(stream);
  }

  // The one used last: the others may then grow old and go.
  std::unique_ptr<ByteStream> take_idle() {
    while (!idle_.empty()) {
      Idle last = std::move(idle_.back());
      idle_.pop_back();
      if (last.until > SteadyClock::now() && last.stream->is_quiet()) return std::move(last.stream);
    }
    return nullptr;
  }

  // The one used last: the caches still have it.
  InputBuffer take_buffer() {
    if (spare_.empty()) return InputBuffer();
    InputBuffer last = std::move(spare_.back());
    spare_.pop_back();
    return last;
  }

  void give_back(std::unique_ptr<ByteStream> stream) {
    stream->set_deadline(Deadline::max());
    idle_.push_back(Idle{std::move(stream), SteadyClock::now() + limits_.idle_connection});
    if (!is_sweeping_) sweep();
  }

  // Closes connections as their time comes; sleeps while there are none.
  void sweep() {
    const Deadline now = SteadyClock::now();
    while (!idle_.empty() && idle_.front().until <= now) idle_.pop_front();
    is_sweeping_ = !idle_.empty();
    if (!is_sweeping_) {
      spare_.clear();
      return;
    }
    sweep_.expires_at(idle_.front().until);
    sweep_.async_wait([this, weak = std::weak_ptr(alive_)](const error_code& error) {
      if (!error && weak.lock()) sweep();
    });
  }

  TransportLimits limits_;
  std::string user_agent_;
  ServerUrl server_;
  std::unique_ptr<ClientTls> tls_;
  std::vector<std::unique_ptr<ClientTls>> former_tls_;
  TokenSource tokens_;
  std::shared_ptr<ExecPlugin> plugin_;
  ClientConfig plugin_user_;  // with a plugin only
  std::uint64_t generation_ = 0;
  Semaphore slots_;
  std::deque<Idle> idle_;           // oldest first
  std::vector<InputBuffer> spare_;  // empty ones
  asio::steady_timer sweep_;
  bool is_sweeping_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::string_view HttpResponse::header(std::string_view name) const {
  std::string_view rest = headers_;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    const auto colon = line.find(": ");
    if (boost::beast::iequals(line.substr(0, colon), name)) return line.substr(colon + 2);
  }
  return {};
}

void HttpResponse::add_header(std::string_view name, std::string_view value) {
  if (headers_.empty()) headers_.reserve(kUsualHeaders);
  headers_.append(name).append(": ").append(value).append("\n");
}

std::unique_ptr<Transport> make_transport(asio::io_context& io, const ClientConfig& config,
                                          TransportLimits limits) {
  return std::make_unique<PooledTransport>(io, config, limits);
}

}  // namespace kube
