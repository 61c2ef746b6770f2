// HTTP runs over one TCP connection, plain or TLS, with a deadline.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include "kube/client/task.hh"
#include "kube/client/tls.hh"
#include "kube/client/url.hh"

namespace kube {

using Deadline = std::chrono::steady_clock::time_point;

struct IoResult {
  boost::system::error_code error;
  std::size_t bytes = 0;  // 0 without an error: the peer ended the stream in order
};

// Guarantees: once the deadline has passed the connection is closed, and all pending operations end
// with an error and is_timed_out(). Concurrency: one thread; at most one read and one write at a
// time. After an error or a cancellation only close() may be called.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual Task<IoResult> read_some(char* to, std::size_t size) = 0;  // `to` outlives the call
  virtual Task<IoResult> write_all(std::string_view text) = 0;       // `text` outlives the call
  virtual void set_deadline(Deadline when) = 0;                      // Deadline::max(): none
  virtual bool is_timed_out() const = 0;
  // Returns true while a read would have to wait: the socket has no bytes (a TLS alert is some), no
  // error and no end of the stream.
  virtual bool is_quiet() = 0;
  // Reports to the peer that nothing more will come; reading goes on.
  virtual void end_writing() = 0;
  virtual void close() = 0;
  // It is called for an accepted connection before its handshake. Waits until the peer has sent
  // something, or is gone; until then the connection has no buffers. Returns false if it was
  // closed.
  virtual Task<bool> await_bytes() { co_return true; }
  // Performs the TLS handshake of an accepted connection, if it has one. Errors: kNetwork,
  // kTimeout, kCancelled.
  virtual Task<Result<void>> handshake() { co_return Result<void>(); }
  virtual ClientCertificate client_certificate() { return ClientCertificate::kNone; }
  // Returns the settings with which a connection was made; nullptr for a plain one.
  virtual const ClientTls* client_tls() const { return nullptr; }
};

// Connects, with the handshake. `tls` is nullptr for a plain connection and outlives the stream.
// The addresses of the host are tried in their order. Errors: kNetwork, kTimeout, kCancelled.
Task<Result<std::unique_ptr<ByteStream>>> connect_stream(ServerUrl server, ClientTls* tls,
                                                         Deadline deadline);
// Does the same with addresses that are known.
Task<Result<std::unique_ptr<ByteStream>>> connect_stream(
    std::vector<asio::ip::tcp::endpoint> addresses, ClientTls* tls, Deadline deadline);
// Returns until when the first of `addresses` may be waited for: its even share of the time that is
// left, but two seconds if there are as many. Go's dialer has the same rule (net/dial.go:
// partialDeadline). An address that drops packets leaves time for the others.
Deadline partial_deadline(Deadline deadline, Deadline now, std::size_t addresses);
// Makes a stream of an accepted socket, before its handshake(); `tls` is empty for a plain
// connection.
std::unique_ptr<ByteStream> accepted_stream(asio::ip::tcp::socket socket, ServerTls tls);

// Returns the Error that an I/O error on `stream` means.
Error error_of(const ByteStream& stream, const IoResult& result, std::string_view doing);

}  // namespace kube
