// Writes the output of a container as the container runtime interface has it, one line each:
//   2026-08-20T10:00:00.000000000Z stdout F text of a line
// "P" instead of "F": the line goes on in the next one of its stream.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "kube/model/time.hh"
#include "local/node/files.hh"

namespace trainer::node {

// These are files of a container in a pod's directory: the present output, the output before that
// file was full, and the same of the container's previous start.
std::filesystem::path log_file(const std::filesystem::path& pod, std::string_view container,
                               bool is_previous = false);
std::filesystem::path older_log_file(const std::filesystem::path& log);
// Returns that of the start before, if `log` is the current one.
std::filesystem::path previous_log_file(const std::filesystem::path& log);

// There are a file and an older one, of 64 MiB each at most. Output that cannot be written, for
// example to a full disk, is dropped: the program goes on, and so does the log once there is room.
class LogWriter {
 public:
  enum Stream { kOut, kErr };
  static constexpr std::int64_t kMaxBytes = std::int64_t{64} << 20;
  static constexpr std::size_t kMaxLine = std::size_t{16} << 10;

  explicit LogWriter(std::filesystem::path file, std::int64_t max_bytes = kMaxBytes);

  void write(Stream stream, std::string_view bytes, kube::Time now);
  // A text without an end of line yet is a line, too.
  void finish(kube::Time now);
  // Returns the end of the output, without times, for a termination message: 80 lines or 2 KiB.
  std::string tail() const;

 private:
  void add_line(Stream stream, std::string_view text, bool is_whole, kube::Time now);
  void flush();

  std::filesystem::path path_;
  std::int64_t max_bytes_;
  Fd file_;
  std::int64_t size_ = 0;
  bool is_cut_ = false;  // the last line in the file has no end: the rest was not written
  std::array<std::string, 2> rest_;  // the unfinished line of each stream
  std::string pending_;
  std::string tail_;
};

}  // namespace trainer::node
