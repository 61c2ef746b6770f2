// The controller under measurement, as a process of its own, and what the kernel counts about it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace trainer::bench {

struct Usage {
  double cpu_seconds = 0;  // user and system, since the start
  double rss_mb = 0;       // now
  double peak_mb = 0;      // VmHWM
};

// Lifecycle: started by the constructor, ended with SIGTERM by stop() or the destructor, which
// waits for it.
class ControllerProcess {
 public:
  // Standard output and error go to `log`. Throws std::runtime_error when the program cannot be
  // started.
  ControllerProcess(std::vector<std::string> command, const std::string& log);
  ~ControllerProcess() { stop(); }
  ControllerProcess(const ControllerProcess&) = delete;
  ControllerProcess& operator=(const ControllerProcess&) = delete;

  Usage usage() const;
  // VmHWM counts from here on.
  void reset_peak() const;
  bool is_running() const;
  void stop();

 private:
  pid_t pid_ = -1;
};

}  // namespace trainer::bench
