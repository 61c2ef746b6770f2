#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "kube/client/http_server.hh"
#include "kube/client/kubeconfig.hh"
#include "kube/client/task_group.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/certificates.hh"
#include "kube/tests/fake_clock.hh"
#include "kube/tests/run_task.hh"

using namespace kube;

namespace {

using asio::ip::tcp;

struct Fixture {
  asio::io_context io;
  FakeClock clock;
  std::vector<std::string> errors;
  ServerOptions options;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<Transport> transport;
  struct Streamed {
    bool is_open = false;  // it waits after its second piece
    bool has_ended = false;
  };
  Streamed streamed;

  Fixture() {
    options.address = "127.0.0.1";
    options.on_error = [this](std::string_view what) { errors.emplace_back(what); };
  }

  static ServerResponse text(int status, std::string body) {
    ServerResponse response;
    response.status = status;
    response.body = std::move(body);
    return response;
  }
  static Task<void> write_pieces(Streamed& streamed, FakeClock& clock, WriteBody write) {
    struct End {
      bool& flag;
      explicit End(bool& of) : flag(of) {}
      ~End() { flag = true; }
    };
    const End end(streamed.has_ended);
    co_await write("one\n");
    co_await write("");
    co_await write(std::string(100'000, 'x') + "\n");
    while (streamed.is_open) co_await sleep(clock, std::chrono::hours(1));
  }
  static Task<ServerResponse> handle_streamed(Streamed& streamed, FakeClock& clock) {
    ServerResponse response;
    response.headers = {{"Warning", "299 - \"w\""}};
    response.stream = [&streamed, &clock](WriteBody write) {
      return write_pieces(streamed, clock, std::move(write));
    };
    co_return response;
  }
  static Task<void> write_without_end(Streamed& streamed, WriteBody write) {
    while (co_await write(std::string(100'000, 'x'))) {
    }
    streamed.has_ended = true;
  }
  static Task<void> write_long(Streamed& streamed, std::size_t bytes, WriteBody write) {
    for (std::size_t left = bytes; left > 0;) {
      const std::size_t size = std::min<std::size_t>(left, 100'000);
      if (!co_await write(std::string(size, 'x'))) co_return;
      left -= size;
    }
    streamed.has_ended = true;
  }
  static Task<ServerResponse> handle_long(Streamed& streamed, std::size_t bytes) {
    ServerResponse response;
    response.stream = [&streamed, bytes](WriteBody write) {
      return write_long(streamed, bytes, std::move(write));
    };
    co_return response;
  }
  static Task<ServerResponse> handle_endless(Streamed& streamed) {
    ServerResponse response;
    response.stream = [&streamed](WriteBody write) {
      return write_without_end(streamed, std::move(write));
    };
    co_return response;
  }
  void start_streamed() {
    auto started =
        serve(io, options, [this](ServerRequest) { return handle_streamed(streamed, clock); });
    REQUIRE(started);
    server = std::move(*started);
    ClientConfig config;
    config.server = "http://127.0.0.1:" + std::to_string(server->port());
    connect_as(config);
  }
  // The first `bytes` of what a stream brings, or all of it.
  static Task<std::string> read_first(HttpStream& stream, std::size_t bytes) {
    std::string text;
    while (text.size() < bytes) {
      const auto piece = co_await stream.read_some(Milliseconds(5'000));
      if (!piece || piece->empty()) break;
      text += *piece;
    }
    co_return text;
  }
  static Task<ServerResponse> handle(FakeClock& clock, ServerRequest request) {
    if (request.path == "/throw") throw std::runtime_error("a bug");
    if (request.path == "/slow") co_await sleep(clock, std::chrono::seconds(1));
    co_return text(200, request.method + " " + request.path + " " + request.query + " " +
                            request.content_type + " " + request.authorization.reveal() + " " +
                            request.body);
  }

  void start() {
    auto started = serve(
        io, options, [this](ServerRequest request) { return handle(clock, std::move(request)); });
    REQUIRE(started);
    server = std::move(*started);
    ClientConfig config;
    config.server = std::string(options.is_tls ? "https" : "http") +
                    "://127.0.0.1:" + std::to_string(server->port());
    config.ca_pem = options.certificate_pem;
    connect_as(config);
  }
  void start_with_token() {
    options.is_known = [](const Secret<std::string>& text) { return text.reveal() == "token"; };
    start();
  }
  static Task<std::string> read_answer(tcp::socket& socket) {
    std::string text(1'000, '\0');
    const auto [error, bytes] =
        co_await socket.async_read_some(asio::buffer(text), asio::as_tuple(asio::use_awaitable));
    co_return text.substr(0, bytes);
  }
  void connect_as(const ClientConfig& config) {
    transport = make_transport(io, config, TransportLimits());
  }
  ClientConfig tls_config(const Certificate& trusted) const {
    ClientConfig config;
    config.server = "https://127.0.0.1:" + std::to_string(server->port());
    config.ca_pem = trusted.certificate;
    return config;
  }
  Result<HttpResponse> send(HttpRequest request) {
    return run_task(io, transport->send(std::move(request)));
  }
  Result<HttpResponse> get(const std::string& path) { return send(HttpRequest("GET", path)); }

  // Sends `text` on a connection of its own and reads until the server closes it.
  std::string raw(std::string text) { return run_task(io, talk(server->port(), std::move(text))); }
  // Sends `text` from this address of the loopback, and leaves the connection open.
  tcp::socket say_from(const std::string& address, const std::string& text) {
    tcp::socket socket(io);
    socket.open(tcp::v4());
    socket.bind(tcp::endpoint(asio::ip::make_address(address), 0));
    socket.connect(tcp::endpoint(asio::ip::address_v4::loopback(), server->port()));
    asio::write(socket, asio::buffer(text));
    return socket;
  }
  static Task<std::string> talk(unsigned short port, std::string text) {
    constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
    tcp::socket socket(co_await asio::this_coro::executor);
    const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
    co_await socket.async_connect(endpoint, kToken);
    co_await asio::async_write(socket, asio::buffer(text), kToken);
    std::string answer;
    co_await asio::async_read(socket, asio::dynamic_buffer(answer), kToken);
    co_return answer;
  }
};

HttpRequest post(std::string path, std::string body) {
  HttpRequest request("POST", std::move(path));
  request.content_type = "application/json";
  request.body = std::move(body);
  return request;
}

Task<void> note_status(Transport& transport, HttpRequest request, std::vector<int>& statuses) {
  const auto done = co_await transport.send(std::move(request));
  statuses.push_back(done ? done->status : 0);
}

// Announces a body and waits until the server asks for it.
Task<void> announce(tcp::socket& socket, unsigned short port, std::size_t length) {
  constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
  const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
  co_await socket.async_connect(endpoint, kToken);
  const std::string header =
      "POST /long HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: " + std::to_string(length) +
      "\r\n\r\n";
  co_await asio::async_write(socket, asio::buffer(header), kToken);
  std::string answer;
  co_await asio::async_read_until(socket, asio::dynamic_buffer(answer), "\r\n\r\n", kToken);
}

Task<std::string> read_to_end(tcp::socket& socket) {
  std::string rest;
  co_await asio::async_read(socket, asio::dynamic_buffer(rest),
                            asio::as_tuple(asio::use_awaitable));
  co_return rest;
}

bool has_ipv6() {
  asio::io_context io;
  boost::system::error_code error;
  tcp::acceptor acceptor(io);
  acceptor.open(tcp::v6(), error);
  if (!error) acceptor.bind(tcp::endpoint(asio::ip::address_v6::loopback(), 0), error);
  return !error;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "a request reaches the handler and its answer the client") {
  start();
  const auto done = send(post("/a/b?x=1&y", "{}"));
  REQUIRE(done);
  CHECK(done->status == 200);
  CHECK(done->body == "POST /a/b x=1&y application/json  {}");
  CHECK(done->header("content-type") == "application/json");
  CHECK_THAT(raw("HEAD /a HTTP/1.1\r\nAuthorization: Bearer t\r\nConnection: close\r\n\r\n"),
             Catch::Contains("Content-Length: 19") && Catch::EndsWith("\r\n\r\n"));
}

TEST_CASE_METHOD(Fixture, "requests in a row, also in one write") {
  start();
  const std::string answer =
      raw("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\nConnection: close\r\n\r\n");
  CHECK_THAT(answer, Catch::Contains("GET /1") && Catch::Contains("GET /2"));
}

TEST_CASE_METHOD(Fixture, "a handler that throws is a 500, and the next request is served") {
  start();
  CHECK(get("/throw")->status == 500);
  CHECK_THAT(get("/throw")->body, !Catch::Contains("a bug"));
  CHECK(get("/a")->status == 200);
  CHECK(errors == std::vector<std::string>{"a bug", "a bug"});
}

TEST_CASE_METHOD(Fixture, "an answer may be sent as it comes, with headers of its own") {
  start_streamed();
  const auto done = get("/watch");
  REQUIRE(done);
  CHECK(done->body == "one\n" + std::string(100'000, 'x') + "\n");
  CHECK(done->header("warning") == "299 - \"w\"");
  CHECK_THAT(raw("GET / HTTP/1.1\r\n\r\n"), Catch::Contains("Transfer-Encoding: chunked\r\n") &&
                                                Catch::Contains("\r\n\r\n4\r\none\n\r\n") &&
                                                Catch::EndsWith("\r\n0\r\n\r\n"));
  CHECK_THAT(raw("HEAD / HTTP/1.1\r\n\r\n"), Catch::EndsWith("\r\n\r\n"));
  CHECK(errors.empty());
}

TEST_CASE_METHOD(Fixture, "a streamed answer ends with its client, and with the server") {
  streamed.is_open = true;
  start_streamed();
  auto stream = run_task(io, transport->open(HttpRequest("GET", "/watch")));
  REQUIRE(stream);
  CHECK(run_task(io, Fixture::read_first(**stream, 100'005)).size() == 100'005);
  settle(io);
  CHECK_FALSE(streamed.has_ended);
  SECTION("the client") {
    stream->reset();
  }
  SECTION("the server") {
    server->stop();
    run_task(io, server->drained());
    CHECK(run_task(io, Fixture::read_first(**stream, 1)).empty());
  }
  CHECK(run_until(io, [this] { return streamed.has_ended; }));
  CHECK(errors.empty());
}

TEST_CASE_METHOD(Fixture, "a client that does not read its stream loses it") {
  options.stream_deadline = Milliseconds(50);
  auto started = serve(io, options, [this](ServerRequest) { return handle_endless(streamed); });
  REQUIRE(started);
  server = std::move(*started);
  const auto slow = say_from("127.0.0.2", "GET / HTTP/1.1\r\n\r\n");
  CHECK(run_until(io, [this] { return streamed.has_ended; }));
}

TEST_CASE_METHOD(Fixture, "a client may pause in a stream for as long as its deadline allows") {
  options.read_deadline = Milliseconds(20);
  options.stream_deadline = Milliseconds(60'000);
  constexpr std::size_t kBytes = 30'000'000;  // more than the sockets hold
  auto started = serve(
      io, options, [this](ServerRequest) { return handle_long(streamed, std::size_t{kBytes}); });
  REQUIRE(started);
  server = std::move(*started);
  auto slow = say_from("127.0.0.2", "GET / HTTP/1.1\r\n\r\n");
  asio::steady_timer pause(io, 10 * options.read_deadline);
  bool is_over = false;
  pause.async_wait([&is_over](const boost::system::error_code&) { is_over = true; });
  CHECK(run_until(io, [&is_over] { return is_over; }));
  CHECK_FALSE(streamed.has_ended);
  const std::string text = run_task(io, read_to_end(slow));
  CHECK(text.size() > kBytes);
  CHECK(text.ends_with("\r\n0\r\n\r\n"));
}

TEST_CASE_METHOD(Fixture, "what is too long or malformed is refused") {
  options.max_body_bytes = 1'000;
  start();
  CHECK(send(post("/a", std::string(1'000, 'x')))->status == 200);
  CHECK(send(post("/a", std::string(1'001, 'x')))->status == 413);
  CHECK(send(post("/a", std::string(500'000, 'x')))->status == 413);
  CHECK_THAT(raw("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" +
                 std::string(2'000, 'x') + "\r\n0\r\n\r\n"),
             Catch::StartsWith("HTTP/1.1 413"));
  CHECK_THAT(raw("nonsense\r\n\r\n"), Catch::StartsWith("HTTP/1.1 400"));
  CHECK_THAT(raw("GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"),
             Catch::StartsWith("HTTP/1.1 431"));
  CHECK(get("/a")->status == 200);
}

TEST_CASE_METHOD(Fixture, "a client that waits to be asked for its body is asked") {
  options.read_deadline = Milliseconds(500);  // for the body, which never comes
  start();
  const std::string answer = raw(
      "POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n");
  CHECK_THAT(answer, Catch::StartsWith("HTTP/1.1 100 Continue\r\n\r\n"));
}

TEST_CASE_METHOD(Fixture,
                 "a request that does not come to its end, and an idle connection, are closed") {
  options.header_deadline = Milliseconds(30);
  options.idle_deadline = Milliseconds(30);
  start();
  CHECK_THAT(raw("GET /a HTTP/1.1\r\n\r\n"), Catch::StartsWith("HTTP/1.1 200"));
  CHECK(raw("GET /a HTT").empty());
  CHECK(raw("").empty());
}

TEST_CASE_METHOD(Fixture, "a connection that is opened ahead stays as long as an idle one") {
  options.header_deadline = Milliseconds(10);
  options.idle_deadline = Milliseconds(100);
  start();
  const auto begin = std::chrono::steady_clock::now();
  CHECK(raw("").empty());
  CHECK(std::chrono::steady_clock::now() - begin >= options.idle_deadline);
}

TEST_CASE_METHOD(Fixture, "with all connections taken the oldest without a request makes room") {
  options.max_connections = 2;
  options.grace = Milliseconds(20);
  start();
  std::vector<tcp::socket> sockets;
  for (int i = 0; i < 5; ++i) {
    sockets.emplace_back(io);
    sockets.back().connect(tcp::endpoint(asio::ip::address_v4::loopback(), server->port()));
  }
  CHECK(get("/a")->status == 200);
  char byte = 0;
  boost::system::error_code error;
  sockets.front().read_some(asio::buffer(&byte, 1), error);
  CHECK(error == asio::error::eof);
}

TEST_CASE_METHOD(Fixture, "half a request of one peer makes room for a request of another") {
  options.max_connections = 8;
  options.grace = Milliseconds(20);
  int evictions = 0;
  options.on_eviction = [&] { ++evictions; };
  start();
  REQUIRE(get("/a"));  // a connection that stays idle
  std::vector<tcp::socket> flood;
  for (int i = 0; i < 60; ++i) flood.push_back(say_from("127.0.0.2", "GET /a HTT"));
  const auto begin = std::chrono::steady_clock::now();
  CHECK(get("/a")->status == 200);  // the idle connection is still there
  CHECK_THAT(raw("GET /b HTTP/1.1\r\nConnection: close\r\n\r\n"),
             Catch::StartsWith("HTTP/1.1 200"));
  CHECK(std::chrono::steady_clock::now() - begin < options.header_deadline);
  CHECK(evictions >= 53);
}

TEST_CASE_METHOD(Fixture, "a client that is not known is answered before its body is read") {
  start_with_token();
  const std::string head = "POST /a HTTP/1.1\r\nContent-Length: 60000\r\nAuthorization: ";
  CHECK_THAT(raw(head + "wrong\r\nExpect: 100-continue\r\n\r\nxx"),
             Catch::StartsWith("HTTP/1.1 200") && Catch::EndsWith(" wrong "));
  CHECK_THAT(raw("POST /a HTTP/1.1\r\nContent-Length: 2\r\nConnection: close\r\n"
                 "Authorization: token\r\n\r\nxx"),
             Catch::EndsWith(" token xx"));
  // One request each.
  CHECK_THAT(raw("GET /a HTTP/1.1\r\n\r\n"), Catch::Contains("Connection: close"));
}

TEST_CASE_METHOD(Fixture, "strangers have few places, and keep no known client waiting") {
  options.max_strangers = 2;
  options.max_waiting = 8;
  options.stranger_grace = Milliseconds(20);
  int evictions = 0;
  options.on_eviction = [&] { ++evictions; };
  start_with_token();
  const std::string known = "GET /a HTTP/1.1\r\nAuthorization: token\r\n\r\n";
  std::vector<tcp::socket> kept;
  for (int i = 0; i < 5; ++i) {  // these are no longer strangers'
    kept.push_back(say_from("127.0.0.3", known));
    CHECK_THAT(run_task(io, read_answer(kept.back())), Catch::StartsWith("HTTP/1.1 200"));
  }
  CHECK(evictions == 0);
  const char* said = GENERATE("", "GET /a HTT");
  std::vector<tcp::socket> flood;
  for (int i = 0; i < 60; ++i) flood.push_back(say_from("127.0.0.2", said));
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THAT(raw(known.substr(0, known.size() - 2) + "Connection: close\r\n\r\n"),
             Catch::StartsWith("HTTP/1.1 200"));
  CHECK(std::chrono::steady_clock::now() - begin < options.header_deadline / 2);
  CHECK(evictions >= 60 - 2 - 8);
  for (tcp::socket& socket : kept) {
    asio::write(socket, asio::buffer(known));
    CHECK_THAT(run_task(io, read_answer(socket)), Catch::StartsWith("HTTP/1.1 200"));
  }
}

TEST_CASE_METHOD(Fixture, "known clients that come all at once are all served") {
  options.max_strangers = 2;
  options.max_waiting = 100;
  start_with_token();
  std::vector<tcp::socket> all;
  for (int i = 0; i < 100; ++i)
    all.push_back(say_from("127.0.0.2", "GET /a HTTP/1.1\r\nAuthorization: token\r\n\r\n"));
  for (tcp::socket& socket : all)
    CHECK_THAT(run_task(io, read_answer(socket)), Catch::StartsWith("HTTP/1.1 200"));
}

TEST_CASE_METHOD(Fixture, "a peer that opens too many connections is cut off, others are served") {
  options.max_new_per_peer = 3;
  options.max_new = 5;
  options.keeps_alive = false;
  int closed = 0;
  options.on_eviction = [&closed] { ++closed; };
  start();
  std::vector<tcp::socket> sockets;
  for (int i = 0; i < 20; ++i) sockets.push_back(say_from("127.0.0.2", ""));
  CHECK(run_until(io, [&closed] { return closed >= 14; }));  // 17, or a second went by
  CHECK(get("/a")->status == 200);
  // One request a connection, and of all peers together no more than `max_new`.
  int served = 0;
  while (served < 100 && get("/b")) ++served;
  CHECK(served < 100);
}

TEST_CASE_METHOD(Fixture, "an exception while a connection is accepted does not end the server") {
  options.max_connections = 1;
  options.grace = Milliseconds(20);
  bool has_thrown = false;
  options.on_eviction = [&] {
    if (!std::exchange(has_thrown, true)) throw std::runtime_error("no memory");
  };
  start();
  const auto first = say_from("127.0.0.2", "GET /a HTT");
  const auto second = say_from("127.0.0.2", "GET /b HTT");
  REQUIRE(run_until(io, [&] { return !errors.empty(); }));
  CHECK_THAT(raw("GET /c HTTP/1.1\r\nConnection: close\r\n\r\n"),
             Catch::StartsWith("HTTP/1.1 200"));
  CHECK(errors == std::vector<std::string>{"no memory"});
}

TEST_CASE_METHOD(Fixture, "slow bodies of one peer make room for a long body of another") {
  options.max_body_bytes = 100'000;
  options.max_body_bytes_in_flight = 300'000;
  options.grace = Milliseconds(20);
  start();
  std::vector<tcp::socket> flood;
  for (int i = 0; i < 12; ++i) {
    flood.push_back(
        say_from("127.0.0.2", "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"));
  }
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) CHECK(send(post("/a", std::string(100'000, 'x')))->status == 200);
  CHECK(std::chrono::steady_clock::now() - begin < options.read_deadline / 2);
}

TEST_CASE_METHOD(Fixture, "no more slow bodies are closed than make room for those that wait") {
  options.max_body_bytes = options.max_body_bytes_in_flight = 600'000;
  options.grace = Milliseconds(50);
  int evictions = 0;
  options.on_eviction = [&] { ++evictions; };
  start();
  std::vector<tcp::socket> slow;
  for (int i = 0; i < 3; ++i) {
    slow.emplace_back(io);
    run_task(io, announce(slow.back(), server->port(), 200'000));
  }
  std::vector<int> statuses;
  TaskGroup group(io.get_executor(), nullptr);
  for (int i = 0; i < 2; ++i)  // both fit into the room of one
    group.spawn("long", note_status(*transport, post("/a", std::string(70'000, 'x')), statuses));
  run_task(io, group.join());
  CHECK(statuses == std::vector<int>{200, 200});
  CHECK(evictions == 1);
}

TEST_CASE_METHOD(Fixture, "stopping: running handlers finish, nothing new is accepted") {
  start();
  std::vector<int> statuses;
  TaskGroup group(io.get_executor(), nullptr);
  REQUIRE(get("/warm"));
  group.spawn("slow", note_status(*transport, HttpRequest("GET", "/slow"), statuses));
  REQUIRE(run_until(io, [this] { return clock.timers() == 1; }));
  server->stop();
  settle(io);
  CHECK(statuses.empty());
  clock.advance(std::chrono::seconds(1));
  run_task(io, server->drained());
  run_task(io, group.join());
  CHECK(statuses == std::vector<int>{200});
  CHECK_FALSE(get("/a"));
}

TEST_CASE_METHOD(Fixture, "where no address is named, every one is listened on") {
  options.address = GENERATE("", "::", "0.0.0.0");
  CAPTURE(options.address);
  start();
  CHECK(get("/a")->status == 200);
  if (!has_ipv6()) {
    WARN("this machine has no IPv6: only 127.0.0.1 was tried");
    return;
  }
  ClientConfig config;
  config.server = "http://[::1]:" + std::to_string(server->port());
  connect_as(config);
  const auto done = get("/a");
  REQUIRE(done);
  CHECK(done->status == 200);
}

TEST_CASE_METHOD(Fixture, "one address is listened on alone, and may be given by its name") {
  options.address = "localhost";
  start();
  const auto done = get("/a");
  REQUIRE(done);
  CHECK(done->status == 200);
  ClientConfig config;
  config.server = "http://127.0.0.2:" + std::to_string(server->port());
  connect_as(config);
  CHECK_FALSE(get("/a"));
}

TEST_CASE_METHOD(Fixture, "no more long bodies are under way than fit in, and short ones pass") {
  options.max_body_bytes = options.max_body_bytes_in_flight = 200'000;
  options.grace = Milliseconds(60'000);
  start();
  tcp::socket first(io);
  run_task(io, announce(first, server->port(), 120'000));
  std::vector<int> statuses;
  TaskGroup group(io.get_executor(), nullptr);
  group.spawn("second", note_status(*transport, post("/b", std::string(100'000, 'x')), statuses));
  CHECK(send(post("/a", std::string(60'000, 'x')))->status == 200);
  CHECK(statuses.empty());
  first.close();
  run_task(io, group.join());
  CHECK(statuses == std::vector<int>{200});
  CHECK(send(post("/a", std::string(100'000, 'x')))->status == 200);
}

TEST_CASE_METHOD(Fixture, "a long body that waits for too long is to be sent again") {
  options.max_body_bytes = options.max_body_bytes_in_flight = 200'000;
  options.read_deadline = Milliseconds(1'500);
  start();
  tcp::socket first(io);
  run_task(io, announce(first, server->port(), 120'000));
  const std::string body(100'000, 'x');
  CHECK_THAT(raw("POST /b HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + body),
             Catch::StartsWith("HTTP/1.1 503") && Catch::Contains("Retry-After: 1\r\n"));
  run_task(io, read_to_end(first));  // its own deadline is over then
  CHECK(send(post("/a", body))->status == 200);
}

TEST_CASE("an address that cannot be had, and a certificate that cannot be used") {
  asio::io_context io;
  const HttpServer::Handler none;
  ServerOptions options;
  options.address = std::string(64, 'x');  // longer than a label may be: no name server is queried
  CHECK_THAT(serve(io, options, none).error().message, kube::test::contains(options.address));
  CHECK(serve(io, options, none).error().code == ErrorCode::kNetwork);
  options.address = "127.0.0.1";
  const auto first = serve(io, options, none);
  REQUIRE(first);
  options.port = (*first)->port();
  CHECK(serve(io, options, none).error().code == ErrorCode::kNetwork);
  options.port = 0;
  options.is_tls = true;
  CHECK(serve(io, options, none).error().code == ErrorCode::kInvalid);
  const Certificate one = make_certificate("one");
  options.certificate_pem = one.certificate;
  options.private_key_pem = Secret<std::string>(make_certificate("two").key);
  CHECK(serve(io, options, none).error().code == ErrorCode::kInvalid);
  options.private_key_pem = Secret<std::string>(one.key);
  options.tls.min_version = "1.0";
  CHECK(serve(io, options, none).error().code == ErrorCode::kInvalid);
  options.tls.min_version = "1.2";
  options.tls.ciphers = "NONE-SUCH";
  CHECK_THAT(serve(io, options, none).error().message, Catch::Contains("NONE-SUCH"));
  options.tls.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256";
  options.tls.client_ca_pem = "nonsense";
  CHECK_THAT(serve(io, options, none).error().message,
             Catch::Contains("CA certificate of clients"));
}

namespace {

struct TlsFixture : Fixture {
  const Certificate& made = test_certificate();
  TlsFixture() {
    options.is_tls = true;
    options.certificate_pem = made.certificate;
    options.private_key_pem = Secret<std::string>(made.key);
  }
};

}  // namespace

TEST_CASE_METHOD(TlsFixture, "TLS is verified: authority, host name, server name") {
  start();
  CHECK(get("/a")->status == 200);

  connect_as(tls_config(make_certificate("test.local", "127.0.0.1")));
  const auto stranger = get("/a");
  REQUIRE_FALSE(stranger);
  CHECK_THAT(stranger.error().message, Catch::Contains("certificate was refused"));

  ClientConfig config = tls_config(made);
  config.tls_server_name = "other.local";
  connect_as(config);
  CHECK_THAT(get("/a").error().message, Catch::Contains("certificate was refused"));
  config.tls_server_name = "test.local";
  connect_as(config);
  CHECK(get("/a")->status == 200);
  config.tls_server_name = "other.local";
  config.insecure_skip_tls_verify = true;
  connect_as(config);
  CHECK(get("/a")->status == 200);
}

TEST_CASE_METHOD(TlsFixture, "where clients need a certificate, others are refused with a reason") {
  const Certificate known = make_certificate("client");
  options.tls.client_ca_pem = known.certificate;
  start();
  const auto ask = [this](const Certificate* own) {
    ClientConfig config = tls_config(made);
    if (own != nullptr) {
      config.client_certificate_pem = own->certificate;
      config.client_key_pem = Secret<std::string>(own->key);
    }
    connect_as(config);
    return send(post("/a", "{}"));
  };
  for (int i = 0; i < 2; ++i) {  // on a second connection, too
    CHECK(ask(nullptr)->status == 401);
    CHECK_THAT(ask(nullptr)->body, Catch::Contains("client certificate is required"));
    const Certificate stranger = make_certificate("client");
    CHECK(ask(&stranger)->status == 403);
    CHECK(ask(&known)->status == 200);
  }
}

TEST_CASE_METHOD(TlsFixture,
                 "an authority that another has signed is trusted, and a CN is no name") {
  const Certificate root = make_certificate("root");
  const Certificate between = make_certificate("between", "", &root);
  const Certificate own = make_certificate("test.local", "127.0.0.1", &between);
  options.certificate_pem = own.certificate;
  options.private_key_pem = Secret<std::string>(own.key);
  options.tls.client_ca_pem = between.certificate;
  start();
  const Certificate client = make_certificate("client", "", &between);
  ClientConfig config = tls_config(between);
  config.client_certificate_pem = client.certificate;
  config.client_key_pem = Secret<std::string>(client.key);
  connect_as(config);
  const auto done = send(post("/a", "{}"));
  REQUIRE(done);
  CHECK(done->status == 200);

  const Certificate nameless = make_certificate("test.local", "", &between, false);
  REQUIRE(server->set_certificate(nameless.certificate, Secret<std::string>(nameless.key)));
  config.tls_server_name = "test.local";
  connect_as(config);
  CHECK_THAT(send(post("/a", "{}")).error().message, Catch::Contains("certificate was refused"));
}

TEST_CASE_METHOD(TlsFixture, "files of a client certificate are read again after a 401") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("kube-client-" + std::to_string(::getpid()));
  const auto write = [&folder](const Certificate& pair) {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "crt", std::ios::binary) << pair.certificate;
    std::ofstream(folder / "key", std::ios::binary) << pair.key;
  };
  const Certificate old = make_certificate("client");
  const Certificate next = make_certificate("client");
  write(old);
  int asked = 0;
  std::function<void()> renew = [&] { write(next); };
  auto started = serve(io, options, [&](ServerRequest) -> Task<ServerResponse> {
    return [](int number, std::function<void()> act) -> Task<ServerResponse> {
      if (number == 1) act();
      co_return text(number == 1 ? 401 : 200, "");
    }(++asked, renew);
  });
  REQUIRE(started);
  server = std::move(*started);
  ClientConfig config = tls_config(made);
  config.client_certificate_pem = old.certificate;
  config.client_key_pem = Secret<std::string>(old.key);
  config.client_certificate_file = folder / "crt";
  config.client_key_file = folder / "key";
  connect_as(config);

  SECTION("with another certificate the request is sent again") {
    CHECK(get("/a")->status == 200);
    CHECK(asked == 2);
  }
  SECTION("with the same it is not") {
    renew = [] {};
    CHECK(get("/a")->status == 401);
    CHECK(asked == 1);
  }
  SECTION("one that is being written is no other") {
    renew = [&] { write({next.certificate, old.key}); };
    CHECK(get("/a")->status == 401);
    CHECK(get("/a")->status == 200);  // with the former certificate
    CHECK(asked == 2);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("cipher suites have OpenSSL's names") {
  CHECK(openssl_cipher("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256") ==
        "ECDHE-ECDSA-AES128-GCM-SHA256");
  CHECK(openssl_cipher("TLS_AES_128_GCM_SHA256") == "");  // always offered with TLS 1.3
  CHECK_FALSE(openssl_cipher("TLS_RSA_WITH_NOTHING"));
}

TEST_CASE_METHOD(TlsFixture, "large bodies pass through TLS both ways") {
  start();
  const std::string body(3'000'000, 'x');
  const auto done = send(post("/a", body));
  REQUIRE(done);
  CHECK(done->body.size() > body.size());
}

TEST_CASE_METHOD(TlsFixture, "a new certificate holds for connections from then on") {
  start();
  REQUIRE(get("/a"));
  const Certificate next = make_certificate("test.local", "127.0.0.1");
  REQUIRE(server->set_certificate(next.certificate, Secret<std::string>(next.key)));
  CHECK(get("/a"));  // the former connection
  connect_as(tls_config(made));
  CHECK_FALSE(get("/a"));
  connect_as(tls_config(next));
  CHECK(get("/a"));
  CHECK_FALSE(server->set_certificate("nonsense", Secret<std::string>(next.key)));
  connect_as(tls_config(next));
  CHECK(get("/a"));
}

TEST_CASE_METHOD(TlsFixture, "plain talk to a TLS server ends without harm") {
  start();
  raw("GET / HTTP/1.1\r\n\r\n");
  CHECK(get("/a")->status == 200);
}

TEST_CASE("a transport cannot be made from an unusable configuration") {
  asio::io_context io;
  ClientConfig config;
  config.server = "host:6443";
  CHECK_THROWS_WITH(make_transport(io, config, TransportLimits()), Catch::Contains("host:6443"));
  config.server = "https://host:6443";
  config.ca_pem = "nonsense";
  CHECK_THROWS_WITH(make_transport(io, config, TransportLimits()),
                    Catch::Contains("CA certificate"));
}
