// A connection may send anything: the server answers in HTTP or closes, and serves the next one.
// The first byte says how long the pieces of the rest are.
#include "kube/client/http_server.hh"

#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "tests/fuzz/fuzz.hh"

namespace {

using kube::asio::ip::tcp;

kube::Task<kube::ServerResponse> echo(kube::ServerRequest request) {
  kube::ServerResponse response;
  response.body = request.method + " " + request.path + " " + std::to_string(request.body.size());
  co_return response;
}

struct Server {
  kube::asio::io_context io;
  std::unique_ptr<kube::HttpServer> http;
  Server() {
    kube::ServerOptions options;
    options.address = "127.0.0.1";
    options.max_body_bytes = 512;
    auto served = kube::serve(io, std::move(options), echo);
    hold(served.has_value(), "the server serves");
    http = std::move(*served);
  }
};

Server& server() {
  static Server instance;
  return instance;
}

// Returns the server's answer to these bytes, after which the client sends nothing more.
std::string answer_to(std::string_view bytes, std::size_t piece) {
  auto& io = server().io;
  boost::system::error_code error;
  tcp::socket socket(io);
  socket.connect({kube::asio::ip::address_v4::loopback(), server().http->port()});
  // The connection is closed by a reset, so that no port stays in TIME_WAIT.
  socket.set_option(kube::asio::socket_base::linger(true, 0));
  while (!bytes.empty() && !error) {
    const auto part = bytes.substr(0, piece);
    kube::asio::write(socket, kube::asio::buffer(part), error);
    bytes.remove_prefix(part.size());
    io.restart();
    io.poll();
  }
  socket.shutdown(tcp::socket::shutdown_send, error);
  std::string answer;
  std::array<char, 4096> buffer{};
  bool is_over = false;
  const std::function<void()> read = [&] {
    socket.async_read_some(kube::asio::buffer(buffer), [&](auto failure, std::size_t count) {
      answer.append(buffer.data(), count);
      if (failure) {
        is_over = true;
      } else {
        read();
      }
    });
  };
  read();
  io.restart();
  while (!is_over) {
    if (io.run_one() == 0) io.restart();
  }
  return answer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = as_text(data + 1, size - 1);
  const std::string answer = answer_to(bytes, data[0] + 1U);
  hold(answer.empty() || answer.starts_with("HTTP/1."), "an answer is HTTP", bytes, answer);
  const std::string next = answer_to("GET /next HTTP/1.1\r\n\r\n", 64);
  hold(next.starts_with("HTTP/1.1 200"), "the next request is served", bytes, next);
  return 0;
}
