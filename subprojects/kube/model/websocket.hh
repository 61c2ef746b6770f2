// Frames of a WebSocket (RFC 6455), as a client writes and reads them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kube/model/error.hh"

namespace kube {

enum class WebSocketOpcode : std::uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10,
};

// Returns one whole message in one frame. `mask` is random: a client must use one.
std::string websocket_frame(WebSocketOpcode opcode, std::string_view payload, std::uint32_t mask);

// Returns the value of Sec-WebSocket-Accept with which a server answers this Sec-WebSocket-Key.
std::string websocket_accept(std::string_view key);

struct WebSocketMessage {
  WebSocketOpcode opcode = WebSocketOpcode::kBinary;  // never kContinuation
  std::string payload;
};

// Finds the messages in the bytes that a server sends. Messages in several frames are put together.
class WebSocketReader {
 public:
  explicit WebSocketReader(std::size_t max_message) : max_message_(max_message) {}

  void feed(std::string_view bytes) { bytes_ += bytes; }
  // Returns the next message; nullopt if more bytes are needed. Errors: kNetwork, the bytes are no
  // frame that a server may send; kTooLarge. After an error it must not be called again.
  Result<std::optional<WebSocketMessage>> next();

 private:
  struct Frame {
    WebSocketOpcode opcode;
    bool is_last;
    std::string payload;
  };
  Result<std::optional<Frame>> next_frame();

  const std::size_t max_message_;
  std::string bytes_;
  std::optional<WebSocketMessage> begun_;  // its last frame has not come
};

}  // namespace kube
