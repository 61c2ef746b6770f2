// Reads the output of log_writer.hh for GET .../pods/NAME/log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/model/time.hh"
#include "local/node/files.hh"

namespace trainer::node {

struct LogSelection {
  bool has_timestamps = false;
  std::optional<std::int64_t> tail_lines;
  std::optional<std::int64_t> limit_bytes;
  std::optional<kube::Time> since;
};

// Begins with the older file. If the file is renamed while it is read (LogWriter starts a new one),
// it is read to its end, and then the new one is, unless that is of the container's next start.
class LogReader {
 public:
  LogReader(std::filesystem::path file, LogSelection selection);

  bool exists() const { return !files_.empty(); }
  // Returns the next piece, of 64 KiB and one line at most; if it is empty, there is no more for
  // now.
  std::string next();
  // Returns whether the limit is reached: nothing ever follows.
  bool is_full() const { return selection_.limit_bytes && *selection_.limit_bytes <= 0; }
  // Returns whether the container has started again since this was made: this log does not grow
  // then.
  bool is_of_earlier_start() const;

 private:
  void skip_to_tail(std::int64_t lines);
  bool open_successor();
  void add_lines(std::string& out);
  void add_line(std::string_view line, std::string& out);

  std::filesystem::path path_;
  LogSelection selection_;
  std::string since_;      // in the form in which times begin in the file
  std::vector<Fd> files_;  // the files that are still to be read; the first is being read
  std::string rest_;
  bool is_continued_ = false;  // the last line had no end: no time before the next
};

}  // namespace trainer::node
