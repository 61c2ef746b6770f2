#include "kube/model/websocket.hh"

#include <utility>

#include "kube/model/digest.hh"

namespace kube {
namespace {

constexpr std::uint8_t kLast = 0x80;      // FIN
constexpr std::uint8_t kReserved = 0x70;  // RSV1 to RSV3: no extension was asked for
constexpr std::uint8_t kIsMasked = 0x80;
constexpr std::size_t kShort = 125;      // the most that one byte says, and a control frame has
constexpr std::uint8_t kTwoBytes = 126;  // the length follows in two bytes
constexpr std::uint8_t kEightBytes = 127;

void append_number(std::string& text, std::uint64_t number, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(number >> (8 * i) & 0xff);
}

std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t number = 0;
  for (const char c : bytes.substr(at, size)) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

bool is_control(WebSocketOpcode opcode) {
  return opcode >= WebSocketOpcode::kClose;
}

bool is_known(std::uint8_t opcode) {
  return opcode <= static_cast<std::uint8_t>(WebSocketOpcode::kBinary) ||
         (opcode >= static_cast<std::uint8_t>(WebSocketOpcode::kClose) &&
          opcode <= static_cast<std::uint8_t>(WebSocketOpcode::kPong));
}

tl::unexpected<Error> malformed(std::string_view why) {
  return fail(ErrorCode::kNetwork, "the server sent no frame of a WebSocket: {}", why);
}

}  // namespace

std::string websocket_frame(WebSocketOpcode opcode, std::string_view payload, std::uint32_t mask) {
  std::string frame;
  frame.reserve(payload.size() + 14);
  frame += static_cast<char>(kLast | static_cast<std::uint8_t>(opcode));
  if (payload.size() <= kShort) {
    frame += static_cast<char>(kIsMasked | payload.size());
  } else {
    const bool is_long = payload.size() > 0xffff;
    frame += static_cast<char>(kIsMasked | (is_long ? kEightBytes : kTwoBytes));
    append_number(frame, payload.size(), is_long ? 8 : 2);
  }
  append_number(frame, mask, 4);
  for (std::size_t i = 0; i < payload.size(); ++i)
    frame += static_cast<char>(payload[i] ^ static_cast<char>(mask >> (8 * (3 - i % 4)) & 0xff));
  return frame;
}

std::string websocket_accept(std::string_view key) {
  // RFC 6455, section 1.3.
  return base64_encode(sha1_raw(std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
}

Result<std::optional<WebSocketReader::Frame>> WebSocketReader::next_frame() {
  if (bytes_.size() < 2) return std::nullopt;
  const auto first = static_cast<std::uint8_t>(bytes_[0]);
  const auto second = static_cast<std::uint8_t>(bytes_[1]);
  const auto opcode = static_cast<std::uint8_t>(first & 0x0f);
  if ((first & kReserved) != 0 || !is_known(opcode))
    return malformed(fmt::format("it begins with byte {}", first));
  if ((second & kIsMasked) != 0) return malformed("a server must not mask its frames");
  Frame frame{static_cast<WebSocketOpcode>(opcode), (first & kLast) != 0, {}};
  if (is_control(frame.opcode) && (second > kShort || !frame.is_last))
    return malformed("a control frame has more than 125 bytes, or is in parts");
  const std::size_t more = second == kTwoBytes ? 2 : second == kEightBytes ? 8 : 0;
  if (bytes_.size() < 2 + more) return std::nullopt;
  const std::uint64_t size = more == 0 ? second : number_at(bytes_, 2, more);
  const std::size_t begun = begun_ ? begun_->payload.size() : 0;
  if (size > max_message_ || begun + size > max_message_)
    return fail(ErrorCode::kTooLarge, "the server sent a message of more than {} bytes",
                max_message_);
  if (bytes_.size() < 2 + more + size) return std::nullopt;
  frame.payload = bytes_.substr(2 + more, size);
  bytes_.erase(0, 2 + more + size);
  return frame;
}

Result<std::optional<WebSocketMessage>> WebSocketReader::next() {
  for (;;) {
    auto frame = next_frame();
    if (!frame) return tl::unexpected(frame.error());
    if (!*frame) return std::nullopt;
    Frame& part = **frame;
    if (is_control(part.opcode)) return WebSocketMessage{part.opcode, std::move(part.payload)};
    const bool continues = part.opcode == WebSocketOpcode::kContinuation;
    if (continues != begun_.has_value())
      return malformed(continues ? "it continues a message that has not begun"
                                 : "it begins a message within another one");
    if (!continues) begun_ = WebSocketMessage{part.opcode, {}};
    begun_->payload += part.payload;
    if (!part.is_last) continue;
    return std::exchange(begun_, std::nullopt);
  }
}

}  // namespace kube
