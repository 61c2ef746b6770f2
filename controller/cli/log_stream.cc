#include "controller/cli/log_stream.hh"

namespace trainer {

using kube::Result;
using kube::Task;

Task<Result<LogStream>> LogStream::open(kube::ApiClient& client, std::string path,
                                        std::optional<kube::Milliseconds> deadline) {
  auto stream = co_await client.stream(std::move(path), deadline);
  if (!stream) co_return tl::unexpected(stream.error());
  co_return LogStream(std::move(*stream));
}

Task<Result<std::optional<LogLine>>> LogStream::next(kube::Milliseconds idle) {
  while (true) {
    const bool is_continued = splitter_.is_within_line();
    if (auto line = splitter_.next(is_over_)) {
      // A later part of a line has no time.
      LogLine part{"", "", true};
      if (is_continued) part.text = std::move(*line);
      co_return is_continued ? std::move(part) : read_log_line(*line);
    }
    if (is_over_) co_return std::optional<LogLine>();
    const auto piece = co_await stream_->read_some(idle);
    if (!piece) co_return tl::unexpected(piece.error());
    is_over_ = piece->empty();
    splitter_.add(*piece);
  }
}

}  // namespace trainer
