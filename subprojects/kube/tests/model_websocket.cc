#include "kube/model/websocket.hh"
#include "kube/tests/catch.hh"

using namespace kube;
using Opcode = WebSocketOpcode;

namespace {

std::string bytes_of(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

// Returns "2:text 9:ping", the messages in `bytes`, or "kNetwork: ..." at an error. They are fed in
// pieces of `piece` bytes.
std::string messages_in(const std::string& bytes, std::size_t piece) {
  WebSocketReader reader(100'000);
  std::string said;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.feed(std::string_view(bytes).substr(at, piece));
    for (;;) {
      const auto message = reader.next();
      if (!message) return message.error().message;
      if (!*message) break;
      if (!said.empty()) said += ' ';
      said += std::to_string(static_cast<int>((*message)->opcode)) + ":" + (*message)->payload;
    }
  }
  return said;
}

}  // namespace

TEST_CASE("a client masks its frames") {
  // RFC 6455, section 5.7.
  CHECK(websocket_frame(Opcode::kText, "Hello", 0x37fa213d) ==
        bytes_of({0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58}));
  CHECK(websocket_frame(Opcode::kClose, "", 0) == bytes_of({0x88, 0x80, 0, 0, 0, 0}));
  const std::string medium = websocket_frame(Opcode::kBinary, std::string(126, 'x'), 0);
  CHECK(medium.substr(0, 8) == bytes_of({0x82, 0xfe, 0, 126, 0, 0, 0, 0}));
  CHECK(medium.size() == 8 + 126);
  const std::string large = websocket_frame(Opcode::kBinary, std::string(70'000, 'x'), 0);
  CHECK(large.substr(0, 10) == bytes_of({0x82, 0xff, 0, 0, 0, 0, 0, 1, 0x11, 0x70}));
}

TEST_CASE("a server proves that it knows the protocol") {
  // RFC 6455, section 1.3.
  CHECK(websocket_accept("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST_CASE("messages are found, however their bytes arrive") {
  struct Row {
    std::string bytes;
    std::string messages;
  };
  const Row rows[] = {
      {bytes_of({0x82, 2}) + "ab", "2:ab"},
      {bytes_of({0x82, 0, 0x82, 1}) + "x", "2: 2:x"},
      {bytes_of({0x82, 126, 0, 130}) + std::string(130, 'y'), "2:" + std::string(130, 'y')},
      {bytes_of({0x82, 127, 0, 0, 0, 0, 0, 0, 0, 3}) + "abc", "2:abc"},
      // Frames of one message, and a control frame between them.
      {bytes_of({0x02, 1}) + "a" + bytes_of({0x89, 1}) + "p" + bytes_of({0x00, 1}) + "b" +
           bytes_of({0x80, 1}) + "c",
       "9:p 2:abc"},
      {bytes_of({0x88, 2, 3, 0xe8}), "8:" + bytes_of({3, 0xe8})},
  };
  for (const Row& row : rows)
    for (const std::size_t piece : {1U, 3U, 1'000U}) {
      INFO(row.messages << " in pieces of " << piece);
      CHECK(messages_in(row.bytes, piece) == row.messages);
    }
}

TEST_CASE("frames that no server may send are refused") {
  struct Row {
    std::string bytes;
    const char* message;
  };
  const Row rows[] = {
      {bytes_of({0xc2, 1}) + "a", "it begins with byte 194"},
      {bytes_of({0x83, 1}) + "a", "it begins with byte 131"},
      {bytes_of({0x8b, 0}), "it begins with byte 139"},
      {bytes_of({0x82, 0x81, 0, 0, 0, 0}) + "a", "a server must not mask its frames"},
      {bytes_of({0x09, 0}), "a control frame"},
      {bytes_of({0x89, 126, 0, 126}), "a control frame"},
      {bytes_of({0x80, 1}) + "a", "it continues a message that has not begun"},
      {bytes_of({0x02, 1}) + "a" + bytes_of({0x82, 1}) + "b", "begins a message within another"},
      {bytes_of({0x82, 127, 0, 0, 0, 0, 0, 2, 0, 0}), "a message of more than 100000 bytes"},
      {bytes_of({0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255}), "a message of more than"},
  };
  for (const Row& row : rows) {
    INFO(row.message);
    CHECK_THAT(messages_in(row.bytes, 1), test::contains(row.message));
  }
  // Parts of a message are counted together.
  WebSocketReader reader(3);
  reader.feed(bytes_of({0x02, 2}) + "ab" + bytes_of({0x80, 2}) + "cd");
  const auto message = reader.next();
  REQUIRE_FALSE(message);
  CHECK(message.error().code == ErrorCode::kTooLarge);
}
