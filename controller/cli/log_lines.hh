// Splits a log into lines, and finds those that were not printed yet. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace trainer {

// A line as the API server sends it with `timestamps=true`.
struct LogLine {
  using Instant = std::pair<std::int64_t, std::int32_t>;  // seconds and nanoseconds
  std::string timestamp;  // "2026-08-20T10:00:00.000000001Z"; "" where the line has none
  std::string text;
  bool is_continued = false;  // not the first part of its line
  std::optional<Instant> instant() const;
};

LogLine read_log_line(std::string_view line);

// Splits pieces of text into lines. A line above 1 MB is returned in parts.
class LineSplitter {
 public:
  void add(std::string_view piece) { text_ += piece; }
  // The next line; nullopt where more text is needed, or at the end. `is_over`: no more text comes,
  // so a rest without a line end is the last line.
  std::optional<std::string> next(bool is_over);
  // Whether next() goes on with the line whose first part it has returned.
  bool is_within_line() const { return is_within_line_; }

 private:
  std::string text_;
  std::size_t begin_ = 0;  // of the next line
  bool is_within_line_ = false;
};

// The position in one container's log, so that a broken stream can be opened again and each line is
// printed once. `sinceTime` has whole seconds, and several lines may share a timestamp.
class LogCursor {
 public:
  // Call before every stream, also the first: lines that were seen may come again.
  void begin_stream();
  // True for a line not seen before; it counts as seen from now on.
  bool is_new(const LogLine& line);
  // For the query of the next stream: the second in which the last line was written; nullopt before
  // any.
  std::optional<std::string> since_time() const;

 private:
  bool is_new_start(const LogLine& line);

  std::optional<LogLine::Instant> last_;
  std::int64_t seen_ = 0;     // lines with the last timestamp
  std::int64_t to_skip_ = 0;  // of these, how many are to be skipped
  bool is_catching_up_ = false;
  bool was_new_ = true;  // the last line
};

}  // namespace trainer
