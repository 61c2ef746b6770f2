#include "controller/cli/local_daemon.hh"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/algorithm/string/trim.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "controller/local/state_directory.hh"
#include "controller/node/files.hh"
#include "kube/client/argv.hh"
#include "kube/model/json_text.hh"

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;
using kube::Result;
using std::chrono::milliseconds;

constexpr std::string_view kDaemonsName = "trainer local: ";  // before its refusals
constexpr std::chrono::seconds kLongestStart{30};
constexpr std::chrono::seconds kLongestEnd{60};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "" where it cannot be read.
std::string text_of(const std::filesystem::path& file) {
  return node::read_file(file).value_or("");
}

// The process id alone may belong to another process by now. The command line of a zombie is empty.
bool is_daemon(pid_t pid) {
  const std::string words = text_of(fmt::format("/proc/{}/cmdline", pid));
  return words.find(std::string_view("\0local\0up\0", 10)) != words.npos;
}

// A daemon holds the lock of its state directory. After a crash, or a restart of the machine, the
// process of daemon.json may be the daemon of another directory.
bool is_locked(const std::filesystem::path& lock) {
  const node::Fd file(open(lock.c_str(), O_RDONLY | O_CLOEXEC));
  return file && flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace

std::filesystem::path default_local_state() {
  const std::string state = variable("XDG_STATE_HOME");
  if (!state.empty()) return std::filesystem::path(state) / "trainer";
  const std::string home = variable("HOME");
  return std::filesystem::path(home.empty() ? "/" : home) / ".local/state/trainer";
}

std::string callers_path() {
  const std::string path = variable("PATH");
  const std::string environment = variable("VIRTUAL_ENV");
  if (environment.empty()) return path;
  const std::string programs = environment + "/bin";
  if ((":" + path + ":").find(":" + programs + ":") != std::string::npos) return path;
  return programs + (path.empty() ? "" : ":" + path);
}

LocalDaemon::LocalDaemon(std::filesystem::path state)
    : state_(std::filesystem::absolute(state).lexically_normal()) {}

std::optional<DaemonStatus> LocalDaemon::status() const {
  auto json = kube::parse_json(text_of(state_ / "daemon.json"));
  if (!json) return std::nullopt;
  DaemonStatus status;
  status.pid = static_cast<pid_t>(json->get_int("pid"));
  if (status.pid <= 0 || !is_daemon(status.pid) || !is_locked(state_ / "lock")) return std::nullopt;
  status.address = json->get_string("address");
  status.version = json->get_string("version");
  if (json->find("tier") != nullptr) status.tier = json->get_int("tier");
  status.path = json->get_string("path");
  for (const kube::Json& notice : json->get_array("notices"))
    if (notice.is_string()) status.notices.push_back(notice.as_string());
  status.json = std::move(*json);
  return status;
}

Result<DaemonStatus> LocalDaemon::start(const std::vector<std::string>& options) const {
  std::error_code error;
  const bool is_made = std::filesystem::create_directories(state_, error);
  if (!error && is_made)
    std::filesystem::permissions(state_, std::filesystem::perms::owner_all, error);
  if (error) {
    return kube::fail(kube::ErrorCode::kInternal, "{}: the state cannot be kept there: {}",
                      state_.string(), error.message());
  }
  // If two commands start a daemon at the same time, the second one finds that it runs.
  const node::Fd lock(
      open((state_ / "start.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!lock || flock(lock.get(), LOCK_EX) != 0)
    return node::system_failure((state_ / "start.lock").string());
  if (auto running = status()) return *running;
  return spawn(options);
}

Result<DaemonStatus> LocalDaemon::spawn(const std::vector<std::string>& options) const {
  const std::string log = state_ / "daemon.log";
  std::error_code ignored;
  std::filesystem::rename(log, log + ".old", ignored);
  keep_options(options);
  std::vector<std::string> words{"trainer",      "local",   "up",
                                 "--foreground", "--state", state_.string()};
  words.insert(words.end(), options.begin(), options.end());
  const std::vector<char*> argv = kube::pointers_to(words);
  const node::Fd changes(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  inotify_add_watch(changes.get(), state_.c_str(), IN_MOVED_TO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, S_IRUSR | S_IWUSR);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  // Otherwise the caller's directory could not be unmounted while the daemon runs.
  posix_spawn_file_actions_addchdir_np(&actions, "/");
  pid_t pid = 0;
  errno = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (errno != 0) return node::system_failure("the daemon cannot be started");

  const auto end = Clock::now() + kLongestStart;
  while (Clock::now() < end) {
    if (auto running = status(); running && running->pid == pid) return *running;
    if (waitpid(pid, nullptr, WNOHANG) == pid) {
      const std::string last_line = last_words();
      return kube::fail(
          kube::ErrorCode::kInternal, "{}",
          last_line.empty() ? "the daemon ended at once; its log is " + log : last_line);
    }
    // Waits for the file that says that the daemon is ready, and checks now and then that it still
    // runs.
    pollfd ready{changes.get(), POLLIN, 0};
    poll(&ready, 1, 20);
    char events[4096];
    while (read(changes.get(), events, sizeof events) > 0) {
    }
  }
  kill(pid, SIGKILL);
  return kube::fail(kube::ErrorCode::kTimeout,
                    "the daemon was not ready within {} s and was killed; its log is {}",
                    kLongestStart.count(), log);
}

void LocalDaemon::keep_options(const std::vector<std::string>& options) const {
  std::ofstream(state_ / "options") << fmt::format("{}", fmt::join(options, "\n"));
}

std::vector<std::string> LocalDaemon::options() const {
  std::vector<std::string> options;
  std::istringstream text(text_of(state_ / "options"));
  for (std::string option; std::getline(text, option);) options.push_back(option);
  return options;
}

Result<DaemonStatus> LocalDaemon::restart() const {
  return start(options());
}

Result<void> LocalDaemon::stay(const std::vector<std::string>& options) const {
  keep_options(options);
  return node::replace_file(state_ / kStaysFile, "");
}

bool LocalDaemon::has_file(const char* name) const {
  std::error_code another_users;
  return std::filesystem::exists(state_ / name, another_users);
}

std::string LocalDaemon::last_words() const {
  std::string text = text_of(state_ / "daemon.log");
  boost::algorithm::trim_right(text);
  text.erase(0, text.rfind('\n') + 1);
  if (text.starts_with(kDaemonsName)) text.erase(0, kDaemonsName.size());
  return text;
}

Result<void> LocalDaemon::stop(const DaemonStatus& running) const {
  if (kill(running.pid, SIGTERM) != 0) return node::system_failure("the daemon cannot be stopped");
  for (const auto end = Clock::now() + kLongestEnd; Clock::now() < end;) {
    if (!is_daemon(running.pid)) return {};
    std::this_thread::sleep_for(milliseconds(10));
  }
  return kube::fail(kube::ErrorCode::kTimeout,
                    "the daemon (process {}) has not ended within {} s; its log is {}", running.pid,
                    kLongestEnd.count(), (state_ / "daemon.log").string());
}

}  // namespace trainer
