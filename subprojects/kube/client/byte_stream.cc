#include "kube/client/byte_stream.hh"

#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <optional>
#include <tuple>
#include <utility>

namespace kube {

namespace {

using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

// A deadline needs both halves. They are kept alive until the timer's handler has run.
struct Link {
  explicit Link(tcp::socket socket_) : socket(std::move(socket_)), timer(socket.get_executor()) {}

  tcp::socket socket;
  asio::steady_timer timer;
  Deadline deadline = Deadline::max();
  Deadline armed_for = Deadline::max();
  bool is_timed_out = false;

  void close() {
    error_code ignored;
    socket.close(ignored);
    timer.cancel();
  }
};

// Deadlines move forward with every read. So the timer is not changed until it fires, and is then
// set to the present deadline.
void set_deadline(const std::shared_ptr<Link>& link, Deadline when) {
  link->deadline = when;
  if (link->armed_for <= when) return;
  link->armed_for = when;
  link->timer.expires_at(when);
  link->timer.async_wait([weak = std::weak_ptr(link)](const error_code& error) {
    const auto strong = weak.lock();
    if (error || !strong) return;
    strong->armed_for = Deadline::max();
    if (std::chrono::steady_clock::now() < strong->deadline)
      return set_deadline(strong, strong->deadline);
    strong->is_timed_out = true;
    strong->close();
  });
}

Error to_error(bool is_timed_out, const error_code& error, std::string_view doing) {
  const std::string what(doing);
  if (is_timed_out) return Error(ErrorCode::kTimeout, what + " took too long");
  if (error == asio::error::operation_aborted) {
    return Error(ErrorCode::kCancelled, what + " was given up");
  }
  return Error(ErrorCode::kNetwork, what + " failed: " + error.message());
}

// A peer that is gone without a FIN is noticed after 30 + 3 * 10 seconds.
void set_options(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const int values[][2] = {{TCP_KEEPIDLE, 30}, {TCP_KEEPINTVL, 10}, {TCP_KEEPCNT, 3}};
  for (const auto& [name, value] : values) {
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, name, &value, sizeof value);
  }
}

class LinkStream : public ByteStream {
 public:
  explicit LinkStream(std::shared_ptr<Link> link) : link_(std::move(link)) {}
  ~LinkStream() override { link_->close(); }
  void set_deadline(Deadline when) final { kube::set_deadline(link_, when); }
  bool is_timed_out() const final { return link_->is_timed_out; }
  bool is_quiet() final {
    char byte = 0;
    const auto got = ::recv(link_->socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
  void end_writing() final {
    error_code ignored;
    link_->socket.shutdown(tcp::socket::shutdown_send, ignored);
  }
  void close() final { link_->close(); }
  Task<bool> await_bytes() final {
    const auto [error] = co_await link_->socket.async_wait(tcp::socket::wait_read, kToken);
    co_return !error;
  }

 protected:
  std::shared_ptr<Link> link_;
};

template <class Stream>
Task<IoResult> read_from(Stream& stream, char* to, std::size_t size) {
  IoResult result;
  std::tie(result.error, result.bytes) =
      co_await stream.async_read_some(asio::buffer(to, size), kToken);
  if (result.error == asio::error::eof) result = IoResult();
  co_return result;
}

template <class Stream>
Task<IoResult> write_to(Stream& stream, std::string_view text) {
  IoResult result;
  std::tie(result.error, result.bytes) =
      co_await asio::async_write(stream, asio::buffer(text.data(), text.size()), kToken);
  co_return result;
}

class PlainStream final : public LinkStream {
 public:
  using LinkStream::LinkStream;
  Task<IoResult> read_some(char* to, std::size_t size) override {
    return read_from(link_->socket, to, size);
  }
  Task<IoResult> write_all(std::string_view text) override { return write_to(link_->socket, text); }
};

class TlsStream final : public LinkStream {
 public:
  TlsStream(std::shared_ptr<Link> link, ClientTls& client)
      : LinkStream(std::move(link)), client_(&client) {
    make_tls(client.context());
  }
  TlsStream(std::shared_ptr<Link> link, ServerTls owner)
      : LinkStream(std::move(link)), owner_(std::move(owner)) {}

  Task<error_code> handshake(asio::ssl::stream_base::handshake_type type) {
    const auto [error] = co_await tls_->async_handshake(type, kToken);
    co_return error;
  }
  Task<IoResult> read_some(char* to, std::size_t size) override {
    IoResult result = co_await read_from(*tls_, to, size);
    // A read ends with its record. Further records that have arrived are read now: each of a
    // server's watch events is a record of its own, and waiting costs more than reading.
    if (!result.error && result.bytes > 0)
      result.bytes += take_received(to + result.bytes, size - result.bytes);
    co_return result;
  }
  Task<IoResult> write_all(std::string_view text) override { return write_to(*tls_, text); }
  Task<Result<void>> handshake() override {
    make_tls(*owner_);
    const error_code error = co_await handshake(asio::ssl::stream_base::server);
    if (!error) co_return Result<void>();
    co_return tl::unexpected(to_error(link_->is_timed_out, error, "the TLS handshake"));
  }
  ClientCertificate client_certificate() override { return kube::client_certificate(native()); }
  const ClientTls* client_tls() const override { return client_; }
  SSL* native() { return tls_->native_handle(); }

 private:
  void make_tls(asio::ssl::context& context) {
    tls_.emplace(link_->socket, context);
    // Asio has OpenSSL free its buffers after each record, and the next one make them again.
    SSL_clear_mode(native(), SSL_MODE_RELEASE_BUFFERS);
  }
  // The cause of the end (half a record, the end of the stream, an error) also ends the next read.
  std::size_t take_received(char* to, std::size_t size) {
    SSL* const ssl = native();
    std::size_t total = 0;
    while (total < size && (SSL_pending(ssl) > 0 || BIO_ctrl_pending(SSL_get_rbio(ssl)) > 0)) {
      std::size_t taken = 0;
      if (SSL_read_ex(ssl, to + total, size - total, &taken) != 1) break;
      total += taken;
    }
    ERR_clear_error();
    return total;
  }

  ServerTls owner_;  // the context of a server may be replaced while its connections live
  const ClientTls* const client_ = nullptr;
  // An accepted connection has this from its handshake on, since its buffers take 80 KiB.
  std::optional<asio::ssl::stream<tcp::socket&>> tls_;
};

struct Lookup {
  explicit Lookup(const asio::any_io_executor& executor, Deadline deadline)
      : resolver(executor), done(executor, deadline) {}
  tcp::resolver resolver;
  asio::steady_timer done;
  bool is_done = false;
  error_code error;
  tcp::resolver::results_type results;
};

// The resolver's thread cannot be interrupted; the result of a lookup that was cancelled is
// ignored.
Task<Result<tcp::resolver::results_type>> look_up(std::string host, std::string port,
                                                  Deadline deadline) {
  const auto executor = co_await asio::this_coro::executor;
  error_code not_an_address;
  const auto address = asio::ip::make_address(host, not_an_address);
  if (!not_an_address) {
    const tcp::endpoint endpoint(address, static_cast<unsigned short>(std::stoul(port)));
    co_return tcp::resolver::results_type::create(endpoint, host, port);
  }
  const auto lookup = std::make_shared<Lookup>(executor, deadline);
  lookup->resolver.async_resolve(
      host, port, [lookup](const error_code& error, tcp::resolver::results_type results) {
        lookup->is_done = true;
        lookup->error = error;
        lookup->results = std::move(results);
        lookup->done.cancel();
      });
  const auto [waited] = co_await lookup->done.async_wait(kToken);
  if (!lookup->is_done) {
    lookup->resolver.cancel();
    co_return waited ? fail(ErrorCode::kCancelled, "looking up " + host + " was given up")
                     : fail(ErrorCode::kTimeout, "the lookup of " + host + " took too long");
  }
  if (lookup->error) {
    co_return fail(ErrorCode::kNetwork,
                   "host " + host + " was not found: " + lookup->error.message());
  }
  co_return std::move(lookup->results);
}

// Opens one connection to the first address that accepts it. Errors name every address that was
// tried, if there were several, and are kTimeout only if no time is left for another try.
Task<Result<std::shared_ptr<Link>>> connect_link(std::vector<tcp::endpoint> addresses,
                                                 Deadline deadline) {
  const auto executor = co_await asio::this_coro::executor;
  Error last(ErrorCode::kNetwork, "connecting failed: the host has no address");
  std::string failures;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto now = std::chrono::steady_clock::now();
    if (i > 0 && now >= deadline) break;
    tcp::socket unconnected(executor);
    auto link = std::make_shared<Link>(std::move(unconnected));
    set_deadline(link, partial_deadline(deadline, now, addresses.size() - i));
    const auto [error] = co_await link->socket.async_connect(addresses[i], kToken);
    if (!error && !link->is_timed_out) {
      set_deadline(link, deadline);
      co_return std::move(link);
    }
    last = to_error(link->is_timed_out, error, "connecting");
    if (last.code == ErrorCode::kCancelled) co_return tl::unexpected(std::move(last));
    failures += (i == 0 ? "" : "; ") + addresses[i].address().to_string() +
                (link->is_timed_out ? " took too long" : ": " + error.message());
  }
  if (addresses.size() > 1) {
    const bool is_over = std::chrono::steady_clock::now() >= deadline;
    last = Error(is_over ? ErrorCode::kTimeout : ErrorCode::kNetwork,
                 "connecting failed: " + failures);
  }
  co_return tl::unexpected(std::move(last));
}

}  // namespace

Deadline partial_deadline(Deadline deadline, Deadline now, std::size_t addresses) {
  constexpr Deadline::duration kLeast = std::chrono::seconds(2);
  if (deadline == Deadline::max()) return deadline;
  const auto left = deadline - now;
  const auto share = left / static_cast<Deadline::rep>(addresses);
  return now + std::min(left, std::max(share, kLeast));
}

Error error_of(const ByteStream& stream, const IoResult& result, std::string_view doing) {
  return to_error(stream.is_timed_out(), result.error, doing);
}

Task<Result<std::unique_ptr<ByteStream>>> connect_stream(ServerUrl server, ClientTls* tls,
                                                         Deadline deadline) {
  auto addresses = co_await look_up(server.host, server.port, deadline);
  if (!addresses) co_return tl::unexpected(addresses.error());
  std::vector<tcp::endpoint> endpoints(addresses->begin(), addresses->end());
  co_return co_await connect_stream(std::move(endpoints), tls, deadline);
}

Task<Result<std::unique_ptr<ByteStream>>> connect_stream(std::vector<tcp::endpoint> addresses,
                                                         ClientTls* tls, Deadline deadline) {
  auto connected = co_await connect_link(std::move(addresses), deadline);
  if (!connected) co_return tl::unexpected(connected.error());
  const std::shared_ptr<Link> link = std::move(*connected);
  set_options(link->socket);
  if (tls == nullptr) co_return std::make_unique<PlainStream>(link);

  auto secure = std::make_unique<TlsStream>(link, *tls);
  if (!tls->prepare(secure->native())) {
    co_return fail(ErrorCode::kInternal, "the TLS connection could not be set up");
  }
  const error_code error = co_await secure->handshake(asio::ssl::stream_base::client);
  if (error) {
    Error refused = to_error(link->is_timed_out, error, "the TLS handshake");
    const std::string reason = verification_error(secure->native());
    if (refused.code == ErrorCode::kNetwork && !reason.empty()) {
      refused.message = "the server's certificate was refused: " + reason;
    }
    co_return tl::unexpected(std::move(refused));
  }
  co_return std::move(secure);
}

std::unique_ptr<ByteStream> accepted_stream(tcp::socket socket, ServerTls tls) {
  auto link = std::make_shared<Link>(std::move(socket));
  set_options(link->socket);
  if (!tls) return std::make_unique<PlainStream>(std::move(link));
  return std::make_unique<TlsStream>(std::move(link), std::move(tls));
}

}  // namespace kube
