#include "controller/cli/log_stream.hh"

namespace trainer {

using kube::Result;
using kube::Task;

namespace {

// A training job may print nothing for hours; TCP keep-alive detects a dead connection.
constexpr kube::Milliseconds kIdle{24LL * 3'600'000};

}  // namespace

Task<Result<LogStream>> LogStream::open(kube::ApiClient& client, std::string path) {
  auto stream = co_await client.stream(std::move(path));
  if (!stream) co_return tl::unexpected(stream.error());
  co_return LogStream(std::move(*stream));
}

Task<Result<std::optional<LogLine>>> LogStream::next() {
  while (lines_.empty() && !is_over_) {
    const auto piece = co_await stream_->read_some(kIdle);
    if (!piece) co_return tl::unexpected(piece.error());
    if (piece->empty()) {
      is_over_ = true;
      std::string rest = splitter_.finish();
      if (!rest.empty()) lines_.push_back(std::move(rest));
      break;
    }
    for (std::string& line : splitter_.add(*piece)) lines_.push_back(std::move(line));
  }
  if (lines_.empty()) co_return std::optional<LogLine>();
  LogLine line = read_log_line(lines_.front());
  lines_.pop_front();
  co_return std::optional<LogLine>(std::move(line));
}

}  // namespace trainer
