#include "local/node/spawn.hh"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "kube/client/argv.hh"
#include "kube/model/json_text.hh"
#include "local/node/owned.hh"
#include "local/node/pod_config.hh"

extern char** environ;

namespace trainer::node {

namespace {

constexpr int kProbeLimit = 15'000;  // milliseconds

// The child has nothing of this process except `inherited` as descriptor 3, and standard input.
kube::Result<pid_t> spawn(Command words, std::vector<std::string> variables, int output,
                          int inherited) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, inherited, kLockDescriptor);
  // Asio's sockets are inherited otherwise, and the server's port would be in use after its end.
  posix_spawn_file_actions_addclosefrom_np(&actions, kLockDescriptor + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t child = -1;
  const auto argv = kube::pointers_to(words);
  const auto envp = kube::pointers_to(variables);
  errno = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (errno != 0) return system_failure(words[0]);
  return child;
}

std::vector<std::string> own_variables() {
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  return variables;
}

}  // namespace

Fd lock_pod(const std::filesystem::path& directory) {
  auto lock = open_owned_below(directory / kLockFile, O_RDWR | O_CREAT);
  return lock && flock(lock->get(), LOCK_EX | LOCK_NB) == 0 ? std::move(*lock) : Fd();
}

kube::Result<pid_t> spawn_shim(const Command& shim, const std::filesystem::path& directory,
                               const std::string& pod_uid, const Fd& lock) {
  const auto log = open_owned_below(directory / "shim.log", O_WRONLY | O_CREAT | O_APPEND);
  if (!log) return tl::unexpected(log.error());
  Command words = shim;
  words.push_back(directory);
  // The pod is found by the marker if only one of its processes was killed.
  std::vector<std::string> variables = own_variables();
  const std::string marker = std::string(kPodMarker) + "=";
  std::erase_if(variables, [&marker](const std::string& each) { return each.starts_with(marker); });
  variables.push_back(marker + pod_uid);
  return spawn(std::move(words), std::move(variables), log->get(), lock.get());
}

kube::Result<void> spawn_network(const Command& shim, const Fd& listening) {
  const Fd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
  Command words = shim;
  words.emplace_back("network");
  // No one waits for its end: as a rule it ends after this process.
  const auto child = spawn(std::move(words), own_variables(), null.get(), listening.get());
  if (!child) return tl::unexpected(child.error());
  return {};
}

void stop_shim(int pidfd, int grace) {
  siginfo_t info{};
  info.si_signo = SIGTERM;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = grace;
  syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, &info, 0);
}

kube::Result<TierProbe> probe_tiers_by(const Command& shim) {
  auto pipe = Pipe::make();
  if (!pipe) return tl::unexpected(pipe.error());
  const Fd& output = pipe->read;
  Command words = shim;
  words.emplace_back("tiers");
  const auto child = spawn(std::move(words), own_variables(), pipe->write.get(), pipe->write.get());
  pipe->write.reset();
  if (!child) return tl::unexpected(child.error());
  std::string text;
  std::array<char, 4'096> piece;
  pollfd event{output.get(), POLLIN, 0};
  ssize_t got = 0;
  while (poll(&event, 1, kProbeLimit) > 0 &&
         (got = read(output.get(), piece.data(), piece.size())) > 0)
    text.append(piece.data(), static_cast<std::size_t>(got));
  kill(*child, SIGKILL);
  waitpid(*child, nullptr, 0);
  const auto value = kube::parse_json(text);
  if (!value) return tl::unexpected(value.error().at("trainer shim tiers"));
  return read_tier_probe(*value);
}

}  // namespace trainer::node
