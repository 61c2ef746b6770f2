// A small HTTPS or HTTP server for webhooks, health, metrics and status reports, and for the API of
// local mode.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/client/tls.hh"
#include "kube/client/transport.hh"
#include "kube/model/secret.hh"

namespace kube {

// Sends a piece of a body; false: the client has closed the connection, or does not read, and
// nothing more is sent.
using WriteBody = std::function<Task<bool>(std::string piece)>;
using StreamBody = std::function<Task<void>(WriteBody write)>;

struct ServerRequest {
  std::string method;
  std::string path;  // without query
  std::string query;
  std::string body;
  std::string content_type;
  std::string accept;
  std::string user_agent;
  Secret<std::string> authorization;
};

struct ServerResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  int retry_after = 0;  // seconds, sent to the client; 0: no header
  std::vector<std::pair<std::string, std::string>> headers;  // further ones
  // With it the body is what this writes, sent as it comes. It is cancelled when the client or the
  // server ends; when it ends itself, the body is complete. The connection is closed after it.
  StreamBody stream;
  static ServerResponse text(int status, std::string body) {
    return {status, "text/plain; charset=utf-8", std::move(body)};
  }
};

struct ServerOptions {
  // An IP address, or a host name: then the first of its addresses, an IPv4 one before others.
  // Empty, 0.0.0.0 and :: all mean every address of this machine, of both families, as in Go; IPv4
  // alone where the machine has no IPv6.
  std::string address;
  unsigned short port = 0;  // 0: any free one, see HttpServer::port()
  bool is_tls = false;
  std::string certificate_pem;  // with is_tls; changeable later with set_certificate
  Secret<std::string> private_key_pem;
  ServerTlsOptions tls;  // with tls.client_ca_pem, other clients are answered 401 or 403
  std::size_t max_body_bytes = 8U << 20;  // more is answered 413
  // Bounds all long bodies together, from their arrival until they are answered. A body counts with
  // the length that it announces, one in chunks as the longest. Where it does not fit in, an
  // unfinished request makes room (connections.hh), or it waits, for half of `read_deadline` at
  // most: then it is answered 503, to be tried again. Short ones never wait: `max_connections`
  // bounds them.
  std::size_t max_body_bytes_in_flight = 32U << 20;
  Milliseconds header_deadline{5'000};   // for the TLS handshake, and for a begun request's headers
  Milliseconds read_deadline{10'000};    // for the body, and for the writing of the answer
  Milliseconds stream_deadline{10'000};  // for each piece of an answer with a stream
  Milliseconds idle_deadline{120'000};
  // When all are taken, one makes room (connections.hh); where none may, new connections wait.
  std::size_t max_connections = 250;
  // For how long an unfinished request is safe from making room for others.
  Milliseconds grace{1'000};
  // New connections in a second, of one address and of all; further ones are closed before their
  // handshake. 0: no limit.
  std::size_t max_new_per_peer = 0;
  std::size_t max_new = 0;
  bool keeps_alive = true;  // false: one request a connection
  // Whether a request is one of a known client, by its header Authorization; empty: all are. Others
  // are handled without their bodies, and their connection is closed after the answer. Until its
  // first request of a known client a connection is a stranger's, and `max_strangers` of these are
  // read at the same time. A further one waits, with its first byte unread, until the one that has
  // been read for longest, and for `stranger_grace` at least, is closed to make room. The newest
  // that waits is read next: in a flood the client that is served is the one that came after it.
  // More than `max_waiting` never wait: the oldest of them makes room at once.
  std::function<bool(const Secret<std::string>& authorization)> is_known;
  std::size_t max_strangers = 64;
  std::size_t max_waiting = 512;
  Milliseconds stranger_grace{250};
  std::function<void()> on_eviction;  // called when a connection makes room; may be empty
  // Called on the io thread with a sentence about a handler that threw, or about a connection that
  // could not be accepted; may be empty.
  std::function<void(std::string_view)> on_error;
  ServerOptions() {}
};

// Runs on the io_context it is given. A handler that throws is answered 500 and logged by its
// message; others are not affected.
class HttpServer {
 public:
  using Handler = std::function<Task<ServerResponse>(ServerRequest)>;
  virtual ~HttpServer() = default;
  virtual unsigned short port() const = 0;
  // For connections accepted from now on.
  virtual Result<void> set_certificate(const std::string& certificate_pem,
                                       const Secret<std::string>& key_pem) = 0;
  // Stops accepting, and closes idle connections and streams; running handlers finish.
  virtual void stop() = 0;
  // After stop(): waits for the handlers that still run.
  virtual Task<void> drained() = 0;
};

// Blocks while a host name is looked up. Errors: kInvalid for an unusable certificate, kNetwork
// when the address cannot be found or bound.
Result<std::unique_ptr<HttpServer>> serve(asio::io_context& io, ServerOptions options,
                                          HttpServer::Handler handler);

}  // namespace kube
