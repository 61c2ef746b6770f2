#include <string>

#include "kube/client/byte_stream.hh"
#include "kube/client/kubeconfig.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/certificates.hh"
#include "kube/tests/run_task.hh"

using namespace kube;

namespace {

Deadline soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(20);
}

// Both ends of one TLS connection on the loopback interface.
struct TlsPair {
  asio::io_context io;
  std::unique_ptr<ClientTls> tls;
  std::unique_ptr<ByteStream> client;
  std::unique_ptr<ByteStream> server;

  TlsPair() {
    const Certificate& made = test_certificate();
    ClientConfig config;
    config.ca_pem = made.certificate;
    tls = *ClientTls::make(config, "127.0.0.1");
    asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    ServerUrl url;
    url.host = "127.0.0.1";
    url.port = std::to_string(acceptor.local_endpoint().port());
    auto accepted = *make_server_tls(made.certificate, Secret<std::string>(made.key), "1.3");
    asio::co_spawn(io, accept(acceptor, accepted), [](std::exception_ptr) {});
    auto connected = run_task(io, connect_stream(url, tls.get(), soon()));
    REQUIRE(connected);
    client = std::move(*connected);
    REQUIRE(run_until(io, [this] { return server != nullptr; }));
  }

  Task<void> accept(asio::ip::tcp::acceptor& acceptor, ServerTls context) {
    auto socket = co_await acceptor.async_accept(asio::use_awaitable);
    auto stream = co_await accept_stream(std::move(socket), context, soon());
    if (stream) server = std::move(*stream);
  }

  // Every text in a record of its own, all of them sent before anything is read.
  void say(const std::vector<std::string>& texts) {
    for (const auto& text : texts) {
      const IoResult written = run_task(io, server->write_all(text));
      REQUIRE_FALSE(written.error);
    }
  }
};

std::vector<std::string> numbered(int count, std::size_t size) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    std::string text = std::to_string(i) + ":";
    text.resize(size, static_cast<char>('a' + i % 26));
    texts.push_back(std::move(text));
  }
  return texts;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const auto& text : texts) all += text;
  return all;
}

}  // namespace

TEST_CASE_METHOD(TlsPair, "one read takes all records that have come, in order") {
  const auto texts = numbered(10, 500);
  say(texts);
  std::string room(64U << 10, '\0');
  const IoResult read = run_task(io, client->read_some(room.data(), room.size()));
  REQUIRE_FALSE(read.error);
  CHECK(room.substr(0, read.bytes) == joined(texts));
}

TEST_CASE_METHOD(TlsPair, "a record that has come in part, or finds too little room, is read on") {
  const auto texts = numbered(100, 1'000);  // more than is taken from the socket at once
  const std::string all = joined(texts);
  say(texts);
  const std::size_t size = GENERATE(std::size_t{64} << 10, std::size_t{333});
  CAPTURE(size);
  std::string got;
  while (got.size() < all.size()) {
    std::string room(size, '\0');
    const IoResult read = run_task(io, client->read_some(room.data(), room.size()));
    REQUIRE_FALSE(read.error);
    REQUIRE(read.bytes > 0);
    got += room.substr(0, read.bytes);
  }
  CHECK(got == all);
}

TEST_CASE_METHOD(TlsPair, "an end that came along with a record is met by the next read") {
  say({"last words"});
  server->close();
  std::string room(100, '\0');
  const IoResult read = run_task(io, client->read_some(room.data(), room.size()));
  REQUIRE_FALSE(read.error);
  CHECK(room.substr(0, read.bytes) == "last words");
  CHECK(run_task(io, client->read_some(room.data(), room.size())).bytes == 0);
}
