#include <deque>
#include <optional>
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
    ServerTlsOptions options;
    options.min_version = "1.3";
    auto accepted = *make_server_tls(made.certificate, Secret<std::string>(made.key), options);
    asio::co_spawn(io, accept(acceptor, accepted), [](std::exception_ptr) {});
    auto connected = run_task(io, connect_stream(url, tls.get(), soon()));
    REQUIRE(connected);
    client = std::move(*connected);
    REQUIRE(run_until(io, [this] { return server != nullptr; }));
  }

  Task<void> accept(asio::ip::tcp::acceptor& acceptor, ServerTls context) {
    auto socket = co_await acceptor.async_accept(asio::use_awaitable);
    auto stream = accepted_stream(std::move(socket), context);
    stream->set_deadline(soon());
    if (co_await stream->handshake()) server = std::move(stream);
  }

  // Sends every text in a record of its own, all of them before anything is read.
  void say(const std::vector<std::string>& texts) {
    for (const auto& text : texts) {
      const IoResult written = run_task(io, server->write_all(text));
      REQUIRE_FALSE(written.error);
    }
  }
};

// The queue of the listener is full: packets of later connections are dropped without an answer.
struct SilentListener {
  explicit SilentListener(asio::io_context& io) : acceptor(io) {
    const asio::ip::tcp::endpoint any(asio::ip::make_address("127.0.0.2"), 0);
    acceptor.open(any.protocol());
    acceptor.bind(any);
    acceptor.listen(0);
    for (int i = 0; i < 4; ++i) {
      waiting.emplace_back(io).async_connect(acceptor.local_endpoint(), [](const auto&) {});
    }
    io.run_for(std::chrono::milliseconds(50));
  }
  asio::ip::tcp::acceptor acceptor;
  std::deque<asio::ip::tcp::socket> waiting;
};

// An address where no server listens.
asio::ip::tcp::endpoint deserted(asio::io_context& io) {
  return asio::ip::tcp::acceptor(io, {asio::ip::make_address("127.0.0.3"), 0}).local_endpoint();
}

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

TEST_CASE("the addresses of a host share the time there is") {
  using std::chrono::milliseconds;
  struct Row {
    int left;
    std::size_t addresses;
    int share;
  };
  // The last of three gets too little of five seconds.
  const Row rows[] = {{30'000, 1, 30'000}, {30'000, 3, 10'000}, {5'000, 3, 2'000},
                      {2'000, 4, 2'000},   {500, 2, 500},       {0, 2, 0},
                      {-100, 2, -100}};
  const Deadline now(std::chrono::hours(1));
  for (const Row& row : rows) {
    CAPTURE(row.left, row.addresses);
    CHECK(partial_deadline(now + milliseconds(row.left), now, row.addresses) ==
          now + milliseconds(row.share));
  }
  CHECK(partial_deadline(Deadline::max(), now, 3) == Deadline::max());
}

TEST_CASE("an address that refuses or is silent leaves time for the next") {
  asio::io_context io;
  asio::ip::tcp::acceptor healthy(io, {asio::ip::address_v4::loopback(), 0});
  std::vector<asio::ip::tcp::endpoint> addresses{deserted(io)};
  std::optional<SilentListener> silent;
  std::chrono::milliseconds time(600);
  SECTION("refused") {}
  SECTION("silent") {
    time += std::chrono::seconds(2);  // an address is waited for at least this long
    silent.emplace(io);
    addresses.push_back(silent->acceptor.local_endpoint());
  }
  addresses.push_back(healthy.local_endpoint());
  const auto limit = std::chrono::steady_clock::now() + time;
  auto connected = run_task(io, connect_stream(addresses, nullptr, limit));
  REQUIRE(connected);
  const asio::ip::tcp::socket accepted = healthy.accept();
  // The time of the connection is not cut to the share from now on.
  char byte = 0;
  CHECK(run_task(io, (*connected)->read_some(&byte, 1)).error);
  CHECK((*connected)->is_timed_out());
  CHECK(std::chrono::steady_clock::now() >= limit);
}

TEST_CASE("addresses that all fail are all named") {
  asio::io_context io;
  const auto failed = run_task(io, connect_stream({deserted(io), deserted(io)}, nullptr, soon()));
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::kNetwork);
  CHECK(failed.error().message ==
        "connecting failed: 127.0.0.3: Connection refused; 127.0.0.3: Connection refused");
  const auto alone = run_task(io, connect_stream({deserted(io)}, nullptr, soon()));
  CHECK(alone.error().message == "connecting failed: Connection refused");
  SilentListener silent(io);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  const auto late = run_task(
      io, connect_stream({silent.acceptor.local_endpoint(), deserted(io)}, nullptr, limit));
  CHECK(late.error().code == ErrorCode::kTimeout);
  CHECK(late.error().message == "connecting failed: 127.0.0.2 took too long");
}

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
