// From the bytes of a log to lines that are printed once. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainer {

// A line as the API server sends it with `timestamps=true`.
struct LogLine {
  using Instant = std::pair<std::int64_t, std::int32_t>;  // seconds and nanoseconds
  std::string timestamp;  // "2026-08-20T10:00:00.000000001Z"; "" where the line has none
  std::string text;
  std::optional<Instant> instant() const;
};

LogLine read_log_line(std::string_view line);

// Cuts pieces into lines. A line above 1 MB is given out in parts.
class LineSplitter {
 public:
  std::vector<std::string> add(std::string_view piece);
  // What is left without a line end; "" where nothing is.
  std::string finish();

 private:
  std::string rest_;
};

// Where one container's log has been read to, so that a stream that broke can be opened again
// without losing or doubling a line. The server counts in whole seconds, and several lines may
// share a timestamp.
class LogCursor {
 public:
  // Before every stream, also the first: lines that were seen already are about to come again.
  void begin_stream();
  // True for a line not seen before; it counts as seen from now on.
  bool is_new(const LogLine& line);
  // For the query of the next stream: the second in which the last line was written; nullopt before
  // any.
  std::optional<std::string> since_time() const;

 private:
  std::optional<LogLine::Instant> last_;
  std::int64_t seen_ = 0;     // lines with the last timestamp
  std::int64_t to_skip_ = 0;  // of these, how many are still to come again
  bool is_catching_up_ = false;
};

}  // namespace trainer
