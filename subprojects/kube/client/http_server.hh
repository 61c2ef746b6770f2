// This is a small HTTPS or HTTP server for webhooks, health, metrics and status reports, and for
// the API of local mode.
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

// Sends a piece of a body. The result is false if the client has closed the connection, or does not
// read; nothing more is sent then.
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
  // A server for browsers decides by these four.
  std::string host;
  std::string origin;
  std::string fetch_site;  // Sec-Fetch-Site
  Secret<std::string> cookie;
  Secret<std::string> authorization;
};

struct ServerResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  int retry_after = 0;  // seconds, sent to the client; 0: no such header
  std::vector<std::pair<std::string, std::string>> headers;  // further headers
  // If it is set, it writes the body, which is sent as it comes. It is cancelled when the client or
  // the server ends. When it ends itself, the body is complete. The connection is closed after it.
  StreamBody stream;
  static ServerResponse text(int status, std::string body) {
    return {status, "text/plain; charset=utf-8", std::move(body)};
  }
};

struct ServerOptions {
  // This is an IP address, or a host name. For a name the server uses the first of its addresses,
  // an IPv4 one before others. Empty, 0.0.0.0 and :: all mean every address of this machine, of
  // both families, like in Go. If the machine has no IPv6, they mean IPv4 alone.
  std::string address;
  unsigned short port = 0;  // 0: any free one, see HttpServer::port()
  bool is_tls = false;
  std::string certificate_pem;  // used with is_tls; set_certificate() can change it later
  Secret<std::string> private_key_pem;
  ServerTlsOptions tls;  // with tls.client_ca_pem; other clients are answered 401 or 403
  std::size_t max_body_bytes = 8U << 20;  // a longer body is answered 413
  // This bounds all long bodies together, from their arrival until they are answered. A body counts
  // with its announced length, and a body in chunks with the maximum. If it does not fit in, an
  // unfinished request makes room (connections.hh), or the body waits for half of `read_deadline`
  // at most. Then it is answered 503, to be tried again. Short bodies never wait, since
  // `max_connections` bounds them.
  std::size_t max_body_bytes_in_flight = 32U << 20;
  Milliseconds header_deadline{5'000};   // the TLS handshake, and the headers of a begun request
  Milliseconds read_deadline{10'000};    // the body, and the writing of the answer
  Milliseconds stream_deadline{10'000};  // each piece of an answer with a stream
  Milliseconds idle_deadline{120'000};
  // If all are taken, one of them is closed to make room (connections.hh); if none may be closed,
  // new connections wait.
  std::size_t max_connections = 250;
  // An unfinished request is not closed to make room before this time.
  Milliseconds grace{1'000};
  // This bounds the new connections in a second, of one address and of all. Further ones are closed
  // before their handshake. 0 is no limit.
  std::size_t max_new_per_peer = 0;
  std::size_t max_new = 0;
  bool keeps_alive = true;  // false: one request for each connection
  // These are in every answer, also where a request could not be read.
  std::vector<std::pair<std::string, std::string>> headers;
  // Returns whether a request is one of a known client, by its header Authorization. If it is
  // empty, all are. Other requests are handled without their bodies, and their connection is closed
  // after the answer. A connection is a stranger's until its first request of a known client. At
  // most `max_strangers` of these are read at the same time. A further one waits, with its first
  // byte unread. It waits until the one that has been read for longest, and for `stranger_grace` at
  // least, is closed to make room. The newest that waits is read next: in a flood, the client that
  // came last is served. At most `max_waiting` wait: the oldest of them makes room at once.
  std::function<bool(const Secret<std::string>& authorization)> is_known;
  std::size_t max_strangers = 64;
  std::size_t max_waiting = 512;
  Milliseconds stranger_grace{250};
  std::function<void()> on_eviction;  // it is called when a connection makes room; may be empty
  // It is called on the io thread with a sentence about a handler that threw, or about a connection
  // that could not be accepted; may be empty.
  std::function<void(std::string_view)> on_error;
  ServerOptions() {}
};

// The server runs on the io_context of its constructor. A handler that throws is answered 500, and
// its message is logged; other handlers are not affected.
class HttpServer {
 public:
  using Handler = std::function<Task<ServerResponse>(ServerRequest)>;
  virtual ~HttpServer() = default;
  virtual unsigned short port() const = 0;
  // The certificate is used for connections that are accepted from now on.
  virtual Result<void> set_certificate(const std::string& certificate_pem,
                                       const Secret<std::string>& key_pem) = 0;
  // Stops accepting, and closes idle connections and streams; running handlers finish.
  virtual void stop() = 0;
  // Waits, after stop(), for the handlers that still run.
  virtual Task<void> drained() = 0;
};

// The call blocks while a host name is looked up. Errors: kInvalid for an unusable certificate,
// kNetwork if the address cannot be found or bound.
Result<std::unique_ptr<HttpServer>> serve(asio::io_context& io, ServerOptions options,
                                          HttpServer::Handler handler);

}  // namespace kube
