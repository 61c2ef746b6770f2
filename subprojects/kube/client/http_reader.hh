// Reads one HTTP message from a stream, piece by piece. Only the files that know Beast include it.
#pragma once

#include <array>
#include <boost/beast/http/parser.hpp>
#include <cstring>
#include <memory>
#include <utility>

#include "kube/client/byte_stream.hh"

namespace kube {

// Beast's parsers want their input in one piece up to the end of a header or chunk line. So there
// is one flat buffer: it bounds how long those may be, and is all the memory that a waiting reader
// holds.
class InputBuffer {
 public:
  static constexpr std::size_t kSize = 16U << 10;
  InputBuffer() : bytes_(std::make_unique_for_overwrite<std::array<char, kSize>>()) {}
  char* space() { return bytes_->data() + size_; }
  std::size_t space_left() const { return kSize - size_; }
  void filled(std::size_t count) { size_ += count; }
  const char* data() const { return bytes_->data(); }
  std::size_t size() const { return size_; }
  void consume(std::size_t count) {
    size_ -= count;
    std::memmove(bytes_->data(), bytes_->data() + count, size_);
  }

 private:
  std::unique_ptr<std::array<char, kSize>> bytes_;
  std::size_t size_ = 0;
};

// This says how a step of reading a message failed.
struct ReadFailure {
  Error error;
  bool is_cut = false;             // the connection ended or was reset
  bool has_answer = false;         // some of an answer to a request had come before
  boost::system::error_code code;  // the parser's error, if it refused the message
  explicit ReadFailure(Error e, bool cut = false, boost::system::error_code c = {})
      : error(std::move(e)), is_cut(cut), code(c) {}
};

// Passes the buffer's bytes to the parser until it wants more or is done.
template <class Parser>
boost::system::error_code feed(Parser& parser, InputBuffer& buffer) {
  namespace http = boost::beast::http;
  while (buffer.size() > 0 && !parser.is_done()) {
    boost::system::error_code error;
    const std::size_t used = parser.put(asio::buffer(buffer.data(), buffer.size()), error);
    buffer.consume(used);
    if (error == http::error::need_more) break;
    if (error) return error;
    if (used == 0) break;
  }
  return {};
}

// Reads once and passes the bytes to the parser. Returns how many bytes came; 0 is the end of the
// stream if the message allows it.
template <class Parser>
Task<tl::expected<std::size_t, ReadFailure>> read_step(ByteStream& stream, Parser& parser,
                                                       InputBuffer& buffer) {
  using http_error = boost::beast::http::error;
  if (buffer.space_left() == 0) {
    Error error(ErrorCode::kTooLarge, "a header of the message is too long");
    co_return tl::unexpected(ReadFailure(std::move(error), false, http_error::header_limit));
  }
  const IoResult got = co_await stream.read_some(buffer.space(), buffer.space_left());
  if (got.error) {
    Error error = error_of(stream, got, "reading");
    const bool is_cut = error.code == ErrorCode::kNetwork;
    co_return tl::unexpected(ReadFailure(std::move(error), is_cut));
  }
  boost::system::error_code refused;
  if (got.bytes == 0) {
    if (parser.got_some()) parser.put_eof(refused);
    if (!refused && parser.got_some()) co_return 0;
    Error error(ErrorCode::kNetwork, "the connection was closed before the message ended");
    co_return tl::unexpected(ReadFailure(std::move(error), true));
  }
  buffer.filled(got.bytes);
  refused = feed(parser, buffer);
  if (!refused) co_return got.bytes;
  const bool is_size = refused == http_error::body_limit || refused == http_error::header_limit;
  Error error = is_size
                    ? Error(ErrorCode::kTooLarge, "the message is too long")
                    : Error(ErrorCode::kNetwork, "the message is malformed: " + refused.message());
  co_return tl::unexpected(ReadFailure(std::move(error), false, refused));
}

}  // namespace kube
