// HTTP/1.1 over TLS is behind two small interfaces. Only transport.cc, http_session.cc and
// http_reader.hh know Beast.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/client/task.hh"

namespace kube {

struct HttpRequest {
  std::string method = "GET";
  std::string target;    // path and query, escaped
  std::string resource;  // the subject of the request, for records: plural, or "" for a raw path
  std::string subresource;
  std::string content_type;  // the type of the body; empty without one
  std::string accept = "application/json";
  std::string more_headers;  // further lines of the header, "Name: value\r\n" each
  std::string body;
  // Such a request may be sent again if the connection was reset before the first byte of an
  // answer.
  bool is_idempotent = true;
  Milliseconds deadline{30'000};  // the time of the whole exchange, connecting included
  // If it is set, the body of a 200 goes there in pieces as it arrives, not into
  // HttpResponse::body, and no size limit holds. It is called on the io thread; after the first
  // piece the request is not sent again.
  std::function<void(std::string_view piece)> on_body;
  // It is called before the first byte is sent: an exchange that failed without this call had no
  // effect at all. If it returns an error, nothing is sent, and the exchange fails with it.
  std::function<Result<void>()> on_write;

  HttpRequest() = default;
  HttpRequest(std::string method_, std::string target_)
      : method(std::move(method_)), target(std::move(target_)) {}
};

struct HttpResponse {
  int status = 0;
  std::string body;

  // Returns the first header of this name, in upper or lower case; "" if there is none.
  std::string_view header(std::string_view name) const;
  // Returns the texts of all headers Warning: 299 - "TEXT" (RFC 7234, section 5.5).
  std::vector<std::string> warnings() const;
  void add_header(std::string_view name, std::string_view value);

 private:
  // Returns the first header of `rest`, which is then the text behind it.
  static std::string_view take_header(std::string_view& rest, std::string_view name);

  std::string headers_;  // "name: value\n" each: they are many, and rarely read
};

// The answer to a watch or a followed log is read in pieces as they arrive. After a 101 the bytes
// of the connection are those of another protocol.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  virtual int status() const = 0;
  // Returns a header of the answer, "" if there is none.
  virtual std::string_view header(std::string_view) const { return {}; }
  // Returns the next bytes; an empty string at the end of the body. kTimeout says that nothing
  // arrived within `idle`. After an error the stream is over.
  virtual Task<Result<std::string>> read_some(Milliseconds idle) = 0;
  // Returns whether a read would have to wait: the socket has no bytes and no end of the stream.
  // Bytes that were taken from the socket already (a part of a TLS record) do not count.
  virtual bool is_quiet() = 0;
  // Writes all of `text`, which outlives the call. Errors: kNetwork, kTimeout, kCancelled;
  // kInternal if the status is not 101.
  virtual Task<Result<void>> write(std::string_view) {
    co_return fail(ErrorCode::kInternal, "only a stream of another protocol can be written");
  }
};

// Concurrency: one io_context thread. It is a bug to destroy a transport while calls are pending;
// cancel and await them first.
class Transport {
 public:
  virtual ~Transport() = default;
  // Does one exchange on a pooled connection. An answer of any status is a value; an error is
  // kNetwork, kTimeout, kTooLarge or kCancelled.
  virtual Task<Result<HttpResponse>> send(HttpRequest request) = 0;
  // The stream has a connection to itself until it ends: an idle one of the pool if there is one.
  // For a status other than 200, the body is read with read_some like any other.
  virtual Task<Result<std::unique_ptr<HttpStream>>> open(HttpRequest request) = 0;
};

struct ClientConfig;  // kubeconfig.hh

struct TransportLimits {
  std::size_t max_in_flight = 16;  // further requests wait their turn, in order
  std::size_t max_response_bytes = 64U << 20;
  Milliseconds idle_connection{60'000};  // below the API server's 90 s
};

// Makes keep-alive connections to the one server of `config`. TLS is verified against its CA unless
// `config` says otherwise. Token files and files of a client certificate are read again when they
// change (checked at most once a minute, and at once after a 401; a request that met the 401 is
// then sent again). An exec plugin runs before the first request, when its credential has expired,
// and after a 401; the io thread waits for it. Throws std::runtime_error if `config` is unusable: a
// malformed server, certificate or key. load_config() refuses such.
std::unique_ptr<Transport> make_transport(asio::io_context& io, const ClientConfig& config,
                                          TransportLimits limits);

}  // namespace kube
