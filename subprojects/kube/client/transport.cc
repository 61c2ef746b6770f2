#include "kube/client/transport.hh"

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/string_body.hpp>
#include <deque>
#include <stdexcept>

#include "kube/client/certificate_source.hh"
#include "kube/client/clock.hh"
#include "kube/client/http_reader.hh"
#include "kube/client/http_stream.hh"
#include "kube/client/kubeconfig.hh"
#include "kube/client/semaphore.hh"
#include "kube/client/token_source.hh"

namespace kube {

namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;

constexpr int kUnauthorized = 401;
constexpr std::size_t kUsualHeaders = 512;   // bytes
constexpr std::size_t kMaxSpareBuffers = 4;  // this is more than are usually read into at a time

Task<tl::expected<void, ReadFailure>> write_request(ByteStream& stream, const HttpRequest& request,
                                                    const std::string& text) {
  if (request.on_write) {
    if (auto allowed = request.on_write(); !allowed)
      co_return tl::unexpected(ReadFailure(std::move(allowed.error())));
  }
  const IoResult written = co_await stream.write_all(text);
  if (!written.error) co_return tl::expected<void, ReadFailure>();
  Error error = error_of(stream, written, "sending");
  const bool is_cut = error.code == ErrorCode::kNetwork;
  co_return tl::unexpected(ReadFailure(std::move(error), is_cut));
}

class PooledTransport final : public Transport {
 public:
  PooledTransport(asio::io_context& io, const ClientConfig& config, TransportLimits limits)
      : limits_(limits),
        user_agent_(config.user_agent),
        tokens_(config.token, config.token_file),
        plugin_(config.exec_plugin),
        certificates_(config.client_certificate_file, config.client_key_file, SteadyClock::now()),
        slots_(limits.max_in_flight),
        sweep_(io) {
    auto server = parse_server_url(config.server);
    if (!server) throw std::runtime_error(server.error().message);
    server_ = std::move(*server);
    if (plugin_ || !config.client_certificate_file.empty()) user_ = config;
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
    co_return co_await authorized(&PooledTransport::exchange_on, request, deadline);
  }

  Task<Result<std::unique_ptr<HttpStream>>> open(HttpRequest request) override {
    if (auto signed_in = sign_in(); !signed_in) co_return tl::unexpected(signed_in.error());
    const Deadline deadline = SteadyClock::now() + request.deadline;
    co_return co_await authorized(&PooledTransport::open_on, request, deadline);
  }

 private:
  struct Idle {
    std::unique_ptr<ByteStream> stream;
    Deadline until;
  };

  // This is done on one connection; `text` is the request in the form in which it is sent.
  template <class T>
  using Exchange = Task<tl::expected<T, ReadFailure>> (PooledTransport::*)(
      std::unique_ptr<ByteStream> stream, const HttpRequest& request, const std::string& text);

  static int status_of(const HttpResponse& response) { return response.status; }
  static int status_of(const std::unique_ptr<HttpStream>& stream) { return stream->status(); }

  // The request is sent again after a 401, if there is another credential.
  template <class T>
  Task<Result<T>> authorized(Exchange<T> exchange, const HttpRequest& request, Deadline deadline) {
    const Secret<std::string> sent = tokens_.authorization(SteadyClock::now());
    const ClientTls* const used = tls_.get();
    auto done = co_await on_connection(exchange, request, sent, deadline);
    if (done && status_of(*done) == kUnauthorized && has_other_than(sent, used)) {
      const Secret<std::string> other = tokens_.authorization(SteadyClock::now());
      done = co_await on_connection(exchange, request, other, deadline);
    }
    if (!done) co_return tl::unexpected(done.error().at(name_of(request)));
    co_return std::move(done);
  }

  // The server may have closed a connection of the pool just before it is used. So after one reset
  // the request is sent again.
  template <class T>
  Task<Result<T>> on_connection(Exchange<T> exchange, const HttpRequest& request,
                                const Secret<std::string>& token, Deadline deadline) {
    const std::string text = text_of(request, token);
    if (auto reused = take_idle()) {
      reused->set_deadline(deadline);
      auto done = co_await (this->*exchange)(std::move(reused), request, text);
      if (done) co_return std::move(*done);
      const ReadFailure& failure = done.error();
      if (!request.is_idempotent || !failure.is_cut || failure.has_answer)
        co_return tl::unexpected(failure.error);
    }
    auto fresh = co_await connect_stream(server_, tls_.get(), deadline);
    if (!fresh) co_return tl::unexpected(fresh.error());
    auto done = co_await (this->*exchange)(std::move(*fresh), request, text);
    if (!done) co_return tl::unexpected(done.error().error);
    co_return std::move(*done);
  }

  // Takes the plugin's credential, a new one if the last has expired, or that of the files.
  Result<void> sign_in() {
    if (!plugin_) {
      if (certificates_.is_due(SteadyClock::now())) has_other_certificate();
      return {};
    }
    if (auto renewed = plugin_->renew(SystemClock().now()); !renewed) return renewed;
    if (std::exchange(generation_, plugin_->generation()) == plugin_->generation()) return {};
    const ExecCredential& credential = plugin_->credential();
    tokens_.set(credential.token.reveal());
    if (tls_ == nullptr || credential.client_certificate_pem.empty()) return {};
    user_.client_certificate_pem = credential.client_certificate_pem;
    user_.client_key_pem = credential.client_key_pem;
    return use_certificate().map_error([](const Error& error) { return error.at("exec plugin"); });
  }

  // Makes new connections with the certificate of `user_`. Connections in use keep the former one.
  Result<void> use_certificate() {
    auto tls = ClientTls::make(user_, server_.host);
    if (!tls) return tl::unexpected(tls.error());
    idle_.clear();
    former_tls_.push_back(std::exchange(tls_, std::move(*tls)));
    return {};
  }

  // Returns true if the files have another certificate now. If a file is not whole, because it is
  // being written, the last good certificate stays in use.
  bool has_other_certificate() {
    auto pair = certificates_.read(SteadyClock::now());
    if (!pair || tls_ == nullptr ||
        (pair->certificate_pem == user_.client_certificate_pem &&
         pair->key_pem.reveal() == user_.client_key_pem.reveal()))
      return false;
    const auto put = [this](KeyPair& other) {
      std::swap(user_.client_certificate_pem, other.certificate_pem);
      std::swap(user_.client_key_pem, other.key_pem);
    };
    put(*pair);
    if (use_certificate()) return true;
    put(*pair);
    return false;
  }

  // It is called after a 401. If the plugin fails, its error is that of the next request.
  bool has_other_than(const Secret<std::string>& sent, const ClientTls* used) {
    const auto now = SteadyClock::now();
    if (tls_.get() != used || (!plugin_ && has_other_certificate())) return true;
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
    text += request.more_headers;
    if (!request.content_type.empty()) text += "Content-Type: " + request.content_type + "\r\n";
    if (!request.body.empty() || request.method == "POST" || request.method == "PUT" ||
        request.method == "PATCH") {
      text += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
    }
    text += "\r\n";
    text += request.body;
    return text;
  }

  Task<tl::expected<HttpResponse, ReadFailure>> exchange_on(std::unique_ptr<ByteStream> stream,
                                                            const HttpRequest& request,
                                                            const std::string& text) {
    const auto sent = co_await write_request(*stream, request, text);
    if (!sent) co_return tl::unexpected(sent.error());
    ResponseParser parser;
    configure(parser);
    if (!request.on_body) parser.body_limit(limits_.max_response_bytes);
    InputBuffer buffer = take_buffer();
    for (bool has_answer = false; !parser.is_done(); has_answer = true) {
      auto step = co_await read_step(*stream, parser, buffer);
      std::string& body = parser.get().body();
      const bool is_handed_on = request.on_body && parser.get().result() == http::status::ok;
      if (step && is_handed_on && !body.empty()) {
        request.on_body(body);
        body.clear();
      }
      if (step && body.size() > limits_.max_response_bytes)
        step = tl::unexpected(ReadFailure(Error(ErrorCode::kTooLarge, "the message is too long")));
      if (step) continue;
      step.error().has_answer = has_answer;
      co_return tl::unexpected(std::move(step.error()));
    }
    auto& message = parser.get();
    HttpResponse response;
    response.status = static_cast<int>(message.result_int());
    for (const auto& field : message) {
      const auto name = field.name_string();
      const auto value = field.value();
      response.add_header({name.data(), name.size()}, {value.data(), value.size()});
    }
    response.body = std::move(message.body());
    if (message.keep_alive() && !message.need_eof() && buffer.size() == 0) {
      give_back(std::move(stream));
      if (spare_.size() < kMaxSpareBuffers) spare_.push_back(std::move(buffer));
    }
    co_return std::move(response);
  }

  // A watch is usually on the connection of the list before it.
  Task<tl::expected<std::unique_ptr<HttpStream>, ReadFailure>> open_on(
      std::unique_ptr<ByteStream> connection, const HttpRequest& request, const std::string& text) {
    const auto sent = co_await write_request(*connection, request, text);
    if (!sent) co_return tl::unexpected(sent.error());
    auto stream = std::make_unique<ConnectionStream>(std::move(connection));
    const auto header = co_await stream->read_header();
    if (!header) co_return tl::unexpected(header.error());
    co_return std::move(stream);
  }

  // It takes the connection that was used last, so that connections that are not needed stay idle
  // and are closed.
  std::unique_ptr<ByteStream> take_idle() {
    while (!idle_.empty()) {
      Idle last = std::move(idle_.back());
      idle_.pop_back();
      if (last.until > SteadyClock::now() && last.stream->is_quiet()) return std::move(last.stream);
    }
    return nullptr;
  }

  // It takes the buffer that was used last: the processor's caches still have its memory.
  InputBuffer take_buffer() {
    if (spare_.empty()) return InputBuffer();
    InputBuffer last = std::move(spare_.back());
    spare_.pop_back();
    return last;
  }

  void give_back(std::unique_ptr<ByteStream> stream) {
    if (stream->client_tls() != tls_.get()) return;  // it has a former certificate
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
  CertificateSource certificates_;
  ClientConfig user_;  // it is kept if the certificate may change
  std::uint64_t generation_ = 0;
  Semaphore slots_;
  std::deque<Idle> idle_;           // oldest first
  std::vector<InputBuffer> spare_;  // empty ones
  asio::steady_timer sweep_;
  bool is_sweeping_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::string_view HttpResponse::take_header(std::string_view& rest, std::string_view name) {
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    const auto colon = line.find(": ");
    if (boost::beast::iequals(line.substr(0, colon), name)) return line.substr(colon + 2);
  }
  return {};
}

std::string_view HttpResponse::header(std::string_view name) const {
  std::string_view rest = headers_;
  return take_header(rest, name);
}

std::vector<std::string> HttpResponse::warnings() const {
  std::vector<std::string> texts;
  std::string_view rest = headers_;
  while (!rest.empty()) {
    const std::string_view value = take_header(rest, "Warning");
    std::string text;
    for (std::size_t i = value.find('"') + 1; i != 0 && i < value.size() && value[i] != '"'; ++i) {
      if (value[i] == '\\' && i + 1 < value.size()) ++i;
      text.push_back(value[i]);
    }
    if (!text.empty()) texts.push_back(std::move(text));
  }
  return texts;
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
