#include "controller/process/process_figures.hh"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

namespace trainer {
namespace {

constexpr double kKilobyte = 1'024;
constexpr const char* kStatus = "/proc/self/status";

// Returns the first number after `name` at the begin of a line; 0 without one.
double number_after(const char* path, const std::string& name) {
  std::ifstream file(path);
  double number = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream(line.substr(name.size())) >> number;
    break;
  }
  return number;
}

// Returns the 22nd value of /proc/self/stat, in clock ticks since the boot; the second, the
// program's name, may hold spaces.
double start_seconds() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const auto end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return 0;
  std::istringstream values(text.substr(end_of_name + 1));
  std::string value;
  for (int i = 3; i <= 22; ++i) values >> value;
  double ticks = 0;
  std::istringstream(value) >> ticks;
  return number_after("/proc/stat", "btime ") + ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Reads the limit of cgroup v2 and v1, in the container's own view. Version 2 has "max" if there is
// none, and version 1 a number that no machine has.
double memory_limit() {
  constexpr double kNone = 1e18;
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const double limit = number_after(path, "");
    if (limit > 0 && limit < kNone) return limit;
  }
  return 0;
}

double count_descriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (error) return 0;
  return static_cast<double>(std::distance(begin(files), end(files)));
}

}  // namespace

ProcessFigures read_process_figures() {
  static const double started = start_seconds();
  static const double limit_of_memory = memory_limit();
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  ProcessFigures figures;
  figures.resident_bytes = number_after(kStatus, "VmRSS:") * kKilobyte;
  figures.memory_limit_bytes = limit_of_memory;
  figures.virtual_bytes = number_after(kStatus, "VmSize:") * kKilobyte;
  figures.cpu_seconds = static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
  figures.start_seconds = started;
  figures.open_descriptors = count_descriptors();
  figures.max_descriptors = static_cast<double>(limit.rlim_cur);
  return figures;
}

double read_anonymous_bytes() {
  return number_after(kStatus, "RssAnon:") * kKilobyte;
}

}  // namespace trainer
