#include "kube/client/pod_exec.hh"

#include <algorithm>

#include "kube/client/url.hh"
#include "kube/model/digest.hh"
#include "kube/model/resources.hh"
#include "kube/model/websocket.hh"

namespace kube {
namespace {

// The first byte of a message is its channel (k8s.io/apimachinery/pkg/util/remotecommand).
constexpr char kStdin = 0;
constexpr char kStdout = 1;
constexpr char kStderr = 2;
constexpr char kStatus = 3;  // its message ends the output
constexpr std::string_view kProtocols = "v5.channel.k8s.io, v4.channel.k8s.io";
constexpr std::size_t kOneProtocol = std::string_view("v5.channel.k8s.io").size();

constexpr std::size_t kPiece = std::size_t{32} << 10;
constexpr std::size_t kMaxMessage = std::size_t{1} << 20;

std::uint32_t random_mask(Random& random) {
  return static_cast<std::uint32_t>(random.next());
}

std::string random_key(Random& random) {
  std::string bytes;
  for (int i = 0; i < 16; ++i) bytes += static_cast<char>(random.next() & 0xff);
  return base64_encode(bytes);
}

Result<void> check_handshake(const HttpStream& stream, std::string_view key) {
  const std::string_view protocol = stream.header("Sec-WebSocket-Protocol");
  if (stream.header("Sec-WebSocket-Accept") != websocket_accept(key))
    return fail(ErrorCode::kNetwork, "the server has not agreed to a WebSocket");
  if (protocol != kProtocols.substr(0, kOneProtocol) &&
      protocol != kProtocols.substr(kProtocols.size() - kOneProtocol))
    return fail(ErrorCode::kNetwork, "the server speaks \"{}\", and one of {} is needed", protocol,
                kProtocols);
  return {};
}

// Concurrency: one task.
class Session {
 public:
  Session(HttpStream& stream, Random& random) : stream_(stream), random_(random) {}

  Task<Result<void>> send_input(std::string_view input) {
    while (!input.empty()) {
      const std::string piece = kStdin + std::string(input.substr(0, kPiece));
      auto sent = co_await send(WebSocketOpcode::kBinary, piece);
      if (!sent) co_return sent;
      input.remove_prefix(piece.size() - 1);
    }
    co_return Result<void>();
  }

  Task<Result<PodCommandEnd>> read_to_end(Clock& clock, Milliseconds limit) {
    const auto end = clock.steady() + limit;
    for (;;) {
      auto message = reader_.next();
      if (!message) co_return tl::unexpected(message.error());
      if (*message) {
        const auto done = co_await take(std::move(**message));
        if (!done) co_return tl::unexpected(done.error());
        if (!*done) continue;
        // The peer may be gone already, which changes nothing.
        co_await send(WebSocketOpcode::kClose, "");
        co_return std::move(end_);
      }
      const auto left = std::chrono::duration_cast<Milliseconds>(end - clock.steady());
      const auto bytes = co_await stream_.read_some(std::max(left, Milliseconds(0)));
      if (!bytes) co_return tl::unexpected(bytes.error());
      if (bytes->empty())
        co_return fail(ErrorCode::kNetwork, "the connection was closed before the command ended");
      reader_.feed(*bytes);
    }
  }

 private:
  Task<Result<void>> send(WebSocketOpcode opcode, std::string_view payload) {
    const std::string frame = websocket_frame(opcode, payload, random_mask(random_));
    co_return co_await stream_.write(frame);
  }

  // Returns whether the command has ended.
  Task<Result<bool>> take(WebSocketMessage message) {
    if (message.opcode == WebSocketOpcode::kPing) {
      const auto sent = co_await send(WebSocketOpcode::kPong, message.payload);
      if (!sent) co_return tl::unexpected(sent.error());
      co_return false;
    }
    if (message.opcode == WebSocketOpcode::kClose)
      co_return fail(ErrorCode::kNetwork, "the server ended the session before the command ended");
    if (message.opcode == WebSocketOpcode::kPong || message.payload.empty()) co_return false;
    const char channel = message.payload[0];
    const std::string_view text = std::string_view(message.payload).substr(1);
    if (channel == kStdout || channel == kStderr)
      end_.output +=
          text.substr(0, kMaxCommandOutput - std::min(end_.output.size(), kMaxCommandOutput));
    if (channel != kStatus) co_return false;
    const auto code = exit_code_of(text);
    if (!code) co_return tl::unexpected(code.error());
    end_.exit_code = *code;
    co_return true;
  }

  HttpStream& stream_;
  Random& random_;
  WebSocketReader reader_{kMaxMessage};
  PodCommandEnd end_;
};

}  // namespace

std::string exec_path(const PodCommand& command) {
  std::string path = api_path(kPods, command.pod, "exec");
  path += "?container=" + percent_encode(command.container);
  for (const std::string& word : command.words) path += "&command=" + percent_encode(word);
  path += "&stdout=true&stderr=true";
  if (!command.input.empty()) path += "&stdin=true";
  return path;
}

Result<int> exit_code_of(std::string_view status) {
  const auto object = parse_json(status);
  if (!object) return tl::unexpected(object.error().at("the end of the command"));
  if (object->get_string("status") == "Success") return 0;
  for (const Json& cause : object->get("details").get_array("causes")) {
    if (cause.get_string("reason") != "ExitCode") continue;
    const std::string_view text = cause.get_string("message");
    const bool is_number =
        !text.empty() && text.size() <= 3 && text.find_first_not_of("0123456789") == text.npos;
    if (is_number) return std::stoi(std::string(text));
  }
  return fail(ErrorCode::kServerError, "{}", object->get_string("message"));
}

Task<Result<PodCommandEnd>> run_in_pod(ApiClient& client, PodCommand command) {
  const std::string key = random_key(client.random());
  std::string headers =
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
  headers += "Sec-WebSocket-Key: " + key + "\r\n";
  headers += "Sec-WebSocket-Protocol: " + std::string(kProtocols) + "\r\n";
  const auto stream = co_await client.upgrade(exec_path(command), std::move(headers));
  if (!stream) co_return tl::unexpected(stream.error());
  if (auto agreed = check_handshake(**stream, key); !agreed)
    co_return tl::unexpected(agreed.error());
  Session session(**stream, client.random());
  // A command that has ended does not read its input: how it ended says more.
  const auto sent = co_await session.send_input(command.input);
  auto end = co_await session.read_to_end(client.clock(), command.limit);
  if (!end && !sent) co_return tl::unexpected(sent.error());
  co_return std::move(end);
}

}  // namespace kube
