#include "tests/bench/controller_process.hh"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace trainer::bench {
namespace {

std::string proc(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

}  // namespace

ControllerProcess::ControllerProcess(std::vector<std::string> command, const std::string& log) {
  std::vector<char*> argv;
  for (auto& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  const int failed = posix_spawn(&pid_, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed) throw std::runtime_error("cannot start " + command[0]);
}

Usage ControllerProcess::usage() const {
  Usage usage;
  std::ifstream stat(proc(pid_, "stat"));
  std::string text((std::istreambuf_iterator<char>(stat)), std::istreambuf_iterator<char>());
  // The name in parentheses may hold anything; the numbers follow the last one.
  std::istringstream rest(text.substr(text.rfind(')') + 1));
  std::string word;
  for (int field = 3; rest >> word; ++field) {
    if (field == 14 || field == 15)
      usage.cpu_seconds += std::stod(word) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  std::ifstream status(proc(pid_, "status"));
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) usage.rss_mb = std::stod(line.substr(6)) / 1024;
    if (line.rfind("VmHWM:", 0) == 0) usage.peak_mb = std::stod(line.substr(6)) / 1024;
  }
  return usage;
}

void ControllerProcess::reset_peak() const {
  std::ofstream(proc(pid_, "clear_refs")) << "5";
}

bool ControllerProcess::is_running() const {
  return pid_ > 0 && ::kill(pid_, 0) == 0;
}

void ControllerProcess::stop() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
}

}  // namespace trainer::bench
