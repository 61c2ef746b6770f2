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
#include <sstream>
#include <thread>

#include "controller/cli/log_print.hh"
#include "kube/client/argv.hh"
#include "kube/model/json_text.hh"
#include "local/node/owned.hh"
#include "local/server/reserve.hh"
#include "local/server/state_directory.hh"

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;
using kube::Result;
using std::chrono::milliseconds;

constexpr std::string_view kDaemonsName = "trainer local: ";  // its refusals begin with this
constexpr const char* kLog = "daemon.log";
constexpr std::chrono::seconds kLongestStart{30};
constexpr std::chrono::seconds kLongestEnd{60};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

using node::OwnedDirectory;

bool is_missing(const kube::Error& error) {
  return error.code == kube::ErrorCode::kNotFound;
}

// The process id alone may belong to another process by now. The command line of a zombie is empty.
bool is_daemon(pid_t pid) {
  const auto words = node::read_file(fmt::format("/proc/{}/cmdline", pid)).value_or("");
  return words.find(std::string_view("\0local\0up\0", 10)) != words.npos;
}

// A daemon holds the lock of its state directory. After a crash, or a restart of the machine, the
// process of daemon.json may be the daemon of another directory.
bool is_locked(const OwnedDirectory& state) {
  const auto file = state.open_file("lock", O_RDONLY);
  return file && flock(file->get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
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

Result<void> LocalDaemon::check() const {
  const auto folder = OwnedDirectory::open(state_);
  if (!folder && is_missing(folder.error())) return {};
  if (!folder) return tl::unexpected(folder.error());
  for (const char* name : {"kubeconfig", "daemon.json", "options", "lock"})
    if (const auto file = folder->open_file(name, O_RDONLY); !file && !is_missing(file.error()))
      return tl::unexpected(file.error());
  return {};
}

std::optional<DaemonStatus> LocalDaemon::status() const {
  const auto folder = OwnedDirectory::open(state_);
  if (!folder) return std::nullopt;
  auto json = kube::parse_json(folder->read("daemon.json").value_or(""));
  if (!json) return std::nullopt;
  DaemonStatus status;
  status.pid = static_cast<pid_t>(json->get_int("pid"));
  if (status.pid <= 0 || !is_daemon(status.pid) || !is_locked(*folder)) return std::nullopt;
  status.address = json->get_string("address");
  status.version = json->get_string("version");
  if (json->find("tier") != nullptr) status.tier = json->get_int("tier");
  status.path = json->get_string("path");
  for (const auto& [member, texts] :
       {std::pair("notices", &status.notices), std::pair("changes", &status.changes),
        std::pair("unreadable", &status.unreadable)})
    for (const kube::Json& text : json->get_array(member))
      if (text.is_string()) texts->push_back(text.as_string());
  // The disk is checked now, not at the start of the daemon.
  if (Reserve(*folder).is_disk_full())
    status.notices.push_back(fmt::format(
        "the disk of {} is full: objects can be deleted, others may be refused: make room there",
        state_.native()));
  json->erase("changes");
  json->set("notices", kube::Json::Array(status.notices.begin(), status.notices.end()));
  status.json = std::move(*json);
  return status;
}

Result<DaemonStatus> LocalDaemon::start(const std::vector<std::string>& options) const {
  const auto folder = OwnedDirectory::make(state_);
  if (!folder) return tl::unexpected(folder.error().at("the state cannot be kept there"));
  if (auto checked = check(); !checked) return tl::unexpected(checked.error());
  // If two commands start a daemon at the same time, the second one finds that it runs.
  const auto lock = folder->open_file("start.lock", O_RDWR | O_CREAT);
  if (!lock) return tl::unexpected(lock.error());
  if (flock(lock->get(), LOCK_EX) != 0)
    return node::system_failure((state_ / "start.lock").string());
  if (auto running = status()) return *running;
  return spawn(*folder, options);
}

Result<DaemonStatus> LocalDaemon::spawn(const OwnedDirectory& folder,
                                        const std::vector<std::string>& options) const {
  Reserve(folder).make_room_for_start();
  const std::string log = state_ / kLog;
  folder.rename(kLog, std::string(kLog) + ".old");
  const auto output = folder.open_file(kLog, O_WRONLY | O_CREAT | O_APPEND);
  if (!output) return tl::unexpected(output.error());
  if (auto kept = keep_options(folder, options); !kept) return tl::unexpected(kept.error());
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
  posix_spawn_file_actions_adddup2(&actions, output->get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  // The daemon runs in another directory. Otherwise the caller's directory could not be unmounted
  // while it runs.
  posix_spawn_file_actions_addchdir_np(&actions, "/");
  pid_t pid = 0;
  errno = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (errno != 0) return node::system_failure("the daemon cannot be started");

  const auto end = Clock::now() + kLongestStart;
  while (Clock::now() < end) {
    if (auto running = status(); running && running->pid == pid) return *running;
    int ended = 0;
    if (waitpid(pid, &ended, WNOHANG) == pid)
      return kube::fail(kube::ErrorCode::kInternal, "{}", reason_of_end(folder, ended));
    // Waits for the file that says that the daemon is ready, and checks at intervals that it still
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

Result<void> LocalDaemon::keep_options(const OwnedDirectory& folder,
                                       const std::vector<std::string>& options) {
  return Reserve(folder).replace("options", fmt::format("{}", fmt::join(options, "\n")));
}

std::vector<std::string> LocalDaemon::options() const {
  std::vector<std::string> options;
  const auto folder = OwnedDirectory::open(state_);
  std::istringstream text(folder ? folder->read("options").value_or("") : "");
  for (std::string option; std::getline(text, option);) options.push_back(option);
  return options;
}

Result<DaemonStatus> LocalDaemon::restart() const {
  return start(options());
}

Result<void> LocalDaemon::stay(const std::vector<std::string>& options) const {
  const auto folder = OwnedDirectory::open(state_);
  if (!folder) return tl::unexpected(folder.error());
  if (auto kept = keep_options(*folder, options); !kept) return kept;
  return folder->replace(kStaysFile, "");
}

bool LocalDaemon::has_file(const char* name) const {
  const auto folder = OwnedDirectory::open(state_);
  return folder && folder->has(name);
}

// The reason is the last line of the daemon's log. If there is none, for example after a signal,
// the reason is how it ended, and the rest of its log.
std::string LocalDaemon::reason_of_end(const OwnedDirectory& folder, int wait_status) {
  constexpr int kLines = 5;
  std::string text = folder.read(kLog).value_or("");
  boost::algorithm::trim_right(text);
  const auto last = text.rfind('\n') + 1;
  if (text.compare(last, kDaemonsName.size(), kDaemonsName) == 0)
    return text.substr(last + kDaemonsName.size());
  std::size_t from = text.size();
  for (int i = 0; i < kLines && from != std::string::npos && from > 0; ++i)
    from = text.rfind('\n', from - 1);
  std::string lines = text.substr(from == std::string::npos ? 0 : from);
  boost::algorithm::trim_left(lines);
  if (lines.empty() && Reserve(folder).is_disk_full())
    return fmt::format(
        "the daemon has ended without a word, for the disk of {} is full: make room there",
        folder.path().native());
  return fmt::format("the daemon ended with {} {} before it served; {}: {}",
                     WIFSIGNALED(wait_status) ? "signal" : "exit status",
                     WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status),
                     (folder.path() / kLog).string(),
                     lines.empty() ? "it has said nothing" : "\n" + plain_text(lines));
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
