// The answer of one connection that has no other use until the answer has ended. Only the files
// that know Beast include it.
#pragma once

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <string>
#include <utility>

#include "kube/client/http_reader.hh"
#include "kube/client/transport.hh"

namespace kube {

using ResponseParser = boost::beast::http::response_parser<boost::beast::http::string_body>;

// No limit for the body: the caller checks its length, except where the body goes to on_body.
inline void configure(ResponseParser& parser) {
  parser.header_limit(InputBuffer::kSize);
  parser.body_limit(boost::none);
  parser.eager(true);
}

// A piece of what is sent may take so long.
inline constexpr std::chrono::seconds kSendingTakes{30};

class ConnectionStream final : public HttpStream {
 public:
  explicit ConnectionStream(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {
    configure(parser_);
  }

  Task<tl::expected<void, ReadFailure>> read_header() {
    while (!parser_.is_header_done()) {
      const auto step = co_await read_step(*stream_, parser_, buffer_);
      if (!step) co_return tl::unexpected(step.error());
    }
    co_return tl::expected<void, ReadFailure>();
  }
  int status() const override { return static_cast<int>(parser_.get().result_int()); }
  std::string_view header(std::string_view name) const override {
    const auto value = parser_.get()[boost::beast::string_view(name.data(), name.size())];
    return std::string_view(value.data(), value.size());
  }

  Task<Result<std::string>> read_some(Milliseconds idle) override {
    stream_->set_deadline(std::chrono::steady_clock::now() + idle);
    if (is_upgraded()) co_return co_await read_bytes();
    std::string& text = parser_.get().body();

    while (text.empty() && !parser_.is_done()) {
      const auto step = co_await read_step(*stream_, parser_, buffer_);
      if (!step) co_return tl::unexpected(step.error().error);
    }
    co_return std::exchange(text, std::string());
  }
  bool is_quiet() override { return stream_->is_quiet(); }

  Task<Result<void>> write(std::string_view text) override {
    if (!is_upgraded()) co_return co_await HttpStream::write(text);
    stream_->set_deadline(std::chrono::steady_clock::now() + kSendingTakes);
    const IoResult written = co_await stream_->write_all(text);
    if (written.error) co_return tl::unexpected(error_of(*stream_, written, "sending"));
    co_return Result<void>();
  }

 private:
  bool is_upgraded() const {
    return parser_.get().result() == boost::beast::http::status::switching_protocols;
  }

  // The first bytes may have come with the header.
  Task<Result<std::string>> read_bytes() {
    if (buffer_.size() == 0) {
      const IoResult got = co_await stream_->read_some(buffer_.space(), buffer_.space_left());
      if (got.error) co_return tl::unexpected(error_of(*stream_, got, "reading"));
      buffer_.filled(got.bytes);
    }
    std::string text(buffer_.data(), buffer_.size());
    buffer_.consume(buffer_.size());
    co_return text;
  }

  std::unique_ptr<ByteStream> stream_;
  ResponseParser parser_;
  InputBuffer buffer_;
};

}  // namespace kube
