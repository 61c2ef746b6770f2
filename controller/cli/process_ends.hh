// Processes that torchrun saw fail, and started again or not, by its own line in the log of its
// pod. Pure.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "controller/cli/log_lines.hh"

namespace trainer {

struct ProcessEnd {
  std::string pod;        // its prefix in merged logs: "[node-2]"
  std::string timestamp;  // the time of the line, a second after the end at most
  int local_rank = 0;
  int exit_code = 0;                    // negative: the signal
  std::vector<std::string> last_lines;  // those that the pod printed before the end
};

// Reads one pod's log. It keeps a few lines, whatever the log has.
class ProcessEndReader {
 public:
  explicit ProcessEndReader(std::string pod) : pod_(std::move(pod)) {}

  void take(const LogLine& line);
  std::vector<ProcessEnd> ends() && { return std::move(ends_); }

 private:
  std::string pod_;
  std::deque<std::string> lines_;
  std::vector<ProcessEnd> ends_;
};

// Returns a paragraph for each, the first end first: others often fail because of it. If there are
// more than a few, the latest are described.
std::vector<std::string> describe_ends(std::vector<ProcessEnd> ends);

}  // namespace trainer
