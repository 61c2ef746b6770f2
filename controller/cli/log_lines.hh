// A log is split into lines, and those are found that were not printed yet. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace trainer {

// This is a line in the form that the API server sends with `timestamps=true`.
struct LogLine {
  using Instant = std::pair<std::int64_t, std::int32_t>;  // seconds and nanoseconds
  std::string timestamp;  // "2026-08-20T10:00:00.000000001Z"; "" if the line has none
  std::string text;
  bool is_continued = false;  // not the first part of its line
  std::optional<Instant> instant() const;
};

LogLine read_log_line(std::string_view line);

// Splits pieces of text into lines. A line above 1 MB is returned in parts.
class LineSplitter {
 public:
  void add(std::string_view piece) { text_ += piece; }
  // Returns the next line; nullopt if more text is needed, or at the end. `is_over` says that no
  // more text comes, so a rest without a line end is the last line.
  std::optional<std::string> next(bool is_over);
  // Returns whether next() goes on with the line whose first part it has returned.
  bool is_within_line() const { return is_within_line_; }

 private:
  std::string text_;
  std::size_t begin_ = 0;  // the begin of the next line
  bool is_within_line_ = false;
};

// This is the position in one container's log, so that a broken stream can be opened again and each
// line is printed once. `sinceTime` has whole seconds, and several lines may share a timestamp.
class LogCursor {
 public:
  // Call this before every stream, also the first: lines that were seen may come again.
  void begin_stream();
  // Returns true for a line not seen before; it counts as seen from now on.
  bool is_new(const LogLine& line);
  // Returns, for the query of the next stream, the second in which the last line was written;
  // nullopt before any.
  std::optional<std::string> since_time() const;

 private:
  bool is_new_start(const LogLine& line);

  std::optional<LogLine::Instant> last_;
  std::int64_t seen_ = 0;     // lines with the last timestamp
  std::int64_t to_skip_ = 0;  // the number of these that are to be skipped
  bool is_catching_up_ = false;
  bool was_new_ = true;  // the last line
};

}  // namespace trainer
