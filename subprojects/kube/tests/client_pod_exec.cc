#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "kube/client/kubeconfig.hh"
#include "kube/client/pod_exec.hh"
#include "kube/client/task_group.hh"
#include "kube/model/websocket.hh"
#include "kube/tests/catch.hh"
#include "kube/tests/error_name.hh"
#include "kube/tests/run_task.hh"

using namespace kube;
using asio::ip::tcp;
using Opcode = WebSocketOpcode;

namespace {

// A server's frame has no mask, which these texts are short enough for.
std::string frame_of(Opcode opcode, const std::string& payload) {
  return std::string{static_cast<char>(0x80 | static_cast<int>(opcode)),
                     static_cast<char>(payload.size())} +
         payload;
}
std::string on_channel(int channel, const std::string& text) {
  return frame_of(Opcode::kBinary, static_cast<char>(channel) + text);
}

constexpr const char* kSuccess = R"({"status":"Success"})";

// It serves one session: it answers the handshake, reads `input` bytes of the command's standard
// input, and sends `frames`.
struct Peer {
  asio::io_context io;
  tcp::acceptor acceptor{io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  std::string refusal;  // it is sent instead of the handshake
  std::string accept;   // Sec-WebSocket-Accept; "": the right one
  std::string protocol = "v5.channel.k8s.io";
  std::vector<std::string> frames;
  std::size_t input = 0;
  bool stays_open = true;
  // This is what came.
  std::string head;
  std::string read;
  std::vector<std::string> others;  // control frames of the client

  std::string header(const std::string& name) const {
    const auto at = head.find("\r\n" + name + ": ");
    if (at == head.npos) return "";
    const auto begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }

  Task<void> read_frame(tcp::socket& socket, std::string& buffer) {
    const auto need = [&](std::size_t size) -> Task<void> {
      while (buffer.size() < size) {
        std::string piece(1'024, '\0');
        const std::size_t got =
            co_await socket.async_read_some(asio::buffer(piece), asio::use_awaitable);
        buffer.append(piece, 0, got);
      }
    };
    co_await need(2);
    std::size_t size = static_cast<unsigned char>(buffer[1]) & 0x7fU;
    std::size_t at = 2;
    if (size == 126) {
      co_await need(4);
      size = static_cast<std::size_t>(static_cast<unsigned char>(buffer[2])) << 8 |
             static_cast<unsigned char>(buffer[3]);
      at = 4;
    }
    co_await need(at + 4 + size);
    std::string payload;
    for (std::size_t i = 0; i < size; ++i)
      payload += static_cast<char>(buffer[at + 4 + i] ^ buffer[at + i % 4]);
    const int opcode = buffer[0] & 0x0f;
    buffer.erase(0, at + 4 + size);
    if (opcode == static_cast<int>(Opcode::kBinary))
      read += payload.substr(1);
    else
      others.push_back(std::to_string(opcode) + ":" + payload);
  }

  Task<void> serve() {
    tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
    std::string buffer;
    const std::size_t size = co_await asio::async_read_until(socket, asio::dynamic_buffer(buffer),
                                                             "\r\n\r\n", asio::use_awaitable);
    head = buffer.substr(0, size);
    buffer.erase(0, size);
    std::string answer = refusal;
    if (answer.empty())
      answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
               std::string("Sec-WebSocket-Accept: ") +
               (accept.empty() ? websocket_accept(header("Sec-WebSocket-Key")) : accept) +
               "\r\nSec-WebSocket-Protocol: " + protocol + "\r\n\r\n";
    // The first frame comes in one piece with the handshake if nothing is read before.
    if (input == 0)
      for (const std::string& frame : frames) answer += frame;
    co_await asio::async_write(socket, asio::buffer(answer), asio::use_awaitable);
    while (read.size() < input) co_await read_frame(socket, buffer);
    if (input > 0)
      for (const std::string& frame : frames)
        co_await asio::async_write(socket, asio::buffer(frame), asio::use_awaitable);
    if (!stays_open || !refusal.empty()) co_return;
    for (;;) co_await read_frame(socket, buffer);
  }

  Result<PodCommandEnd> run(std::string text = "") {
    SystemClock clock;
    SystemRandom random;
    ClientConfig config;
    config.server = "http://127.0.0.1:" + std::to_string(acceptor.local_endpoint().port());
    const auto transport = make_transport(io, config, TransportLimits());
    ApiClient client(*transport, clock, random);
    TaskGroup tasks(io.get_executor(), [](std::string_view, std::string_view) {});
    tasks.spawn("peer", serve());
    input = text.size();
    PodCommand command;
    command.pod = {"team", "a-0"};
    command.container = "node";
    command.words = {"sh", "-c", "echo $0 & true", "a b"};
    command.input = std::move(text);
    command.limit = Milliseconds(2'000);
    auto end = run_task(io, run_in_pod(client, std::move(command)));
    settle(io);
    tasks.cancel();
    run_task(io, tasks.join());
    return end;
  }
};

}  // namespace

TEST_CASE("a command runs in a container, and its output and exit code come back") {
  Peer peer;
  peer.frames = {on_channel(1, "out\n"), frame_of(Opcode::kPing, "p"), on_channel(2, "err\n"),
                 on_channel(3, kSuccess)};
  const auto end = peer.run();
  REQUIRE(end);
  CHECK(end->exit_code == 0);
  CHECK(end->output == "out\nerr\n");
  CHECK_THAT(peer.head,
             test::starts_with("GET /api/v1/namespaces/team/pods/a-0/exec?container=node&command=sh"
                               "&command=-c&command=echo%20%240%20%26%20true&command=a%20b"
                               "&stdout=true&stderr=true HTTP/1.1\r\n"));
  CHECK(peer.header("Upgrade") == "websocket");
  CHECK(peer.header("Sec-WebSocket-Protocol") == "v5.channel.k8s.io, v4.channel.k8s.io");
  CHECK(peer.others.at(0) == "10:p");
}

TEST_CASE("a long input arrives whole") {
  std::string input;
  for (int i = 0; i < 20'000; ++i) input += std::to_string(i);
  Peer peer;
  peer.protocol = "v4.channel.k8s.io";
  peer.frames = {on_channel(3, kSuccess)};
  REQUIRE(peer.run(input));
  CHECK(peer.read == input);
  CHECK_THAT(peer.head, test::contains("&stdin=true HTTP/1.1"));
}

TEST_CASE("how a command ends is read from its status") {
  CHECK(exit_code_of(kSuccess) == 0);
  CHECK(exit_code_of(R"({"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[)"
                     R"({"reason":"ExitCode","message":"3"}]}})") == 3);
  for (const char* cause : {"", "x", "1234"}) {
    const std::string status =
        std::string(R"({"status":"Failure","message":"no sh","details":{"causes":[)") +
        R"({"reason":"ExitCode","message":")" + cause + R"("}]}})";
    const auto code = exit_code_of(status);
    REQUIRE_FALSE(code);
    CHECK(code.error().message == "no sh");
  }
  CHECK_FALSE(exit_code_of("{"));
}

TEST_CASE("a session that does not come about, or breaks, is an error") {
  struct Row {
    const char* what;
    void (*change)(Peer& peer);
    ErrorCode code;
    const char* message;
  };
  const Row rows[] = {
      {"forbidden",
       [](Peer& peer) {
         const std::string body =
             R"({"kind":"Status","reason":"Forbidden","message":"no pods/exec for you"})";
         peer.refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: " + std::to_string(body.size()) +
                        "\r\n\r\n" + body;
       },
       ErrorCode::kForbidden, "no pods/exec for you"},
      {"a server without WebSockets",
       [](Peer& peer) { peer.refusal = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"; },
       ErrorCode::kBadRequest, "the server answered 200"},
      {"another key", [](Peer& peer) { peer.accept = "x"; }, ErrorCode::kNetwork,
       "has not agreed to a WebSocket"},
      {"another protocol", [](Peer& peer) { peer.protocol = "v3.channel.k8s.io"; },
       ErrorCode::kNetwork, "the server speaks \"v3.channel.k8s.io\""},
      {"no status", [](Peer& peer) { peer.stays_open = false; }, ErrorCode::kNetwork,
       "closed before the command ended"},
      {"a close", [](Peer& peer) { peer.frames = {frame_of(Opcode::kClose, "")}; },
       ErrorCode::kNetwork, "the server ended the session"},
      {"a malformed frame", [](Peer& peer) { peer.frames = {"\xff\x01z"}; }, ErrorCode::kNetwork,
       "no frame of a WebSocket"},
      {"silence", [](Peer&) {}, ErrorCode::kTimeout, ""},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    Peer peer;
    row.change(peer);
    const auto end = peer.run();
    REQUIRE_FALSE(end);
    CHECK(test::name_of(end.error().code) == test::name_of(row.code));
    if (*row.message != '\0') CHECK_THAT(end.error().message, test::contains(row.message));
  }
}
