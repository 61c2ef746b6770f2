#include "local/node/launch.hh"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "kube/client/argv.hh"
#include "local/node/ports.hh"
#include "local/node/sandbox.hh"

extern char** environ;

namespace trainer::node {

namespace {

using kube::Result;

// A message of the new process is this, with its listener, or the text of an error.
constexpr std::string_view kListener("\0", 1);
constexpr std::size_t kLongestError = 4'000;

void use_output(int descriptor, int target) {
  dup2(descriptor, target);  // without O_CLOEXEC
}

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

kube::Error start_error(std::string message) {
  return {kube::ErrorCode::kInvalid, std::move(message)};
}

// The reason is in errno.
tl::unexpected<kube::Error> exec_failure(const std::string& program) {
  if (errno == ENOENT && program.find('/') == std::string::npos)
    return tl::unexpected(start_error("exec: \"" + program +
                                      "\": executable file not found in $PATH: activate the "
                                      "environment that has it, or install it"));
  return system_failure("exec: \"" + program + "\"");
}

// The controller puts `sh` before a program, which extends a variable and becomes the program
// (runtimes/plugins/reporter). Returns the program, or nullptr.
const std::string* program_behind_sh(const std::vector<std::string>& words) {
  constexpr std::string_view kBecomes = "exec \"$0\" \"$@\"";
  const bool is_of_sh =
      words.size() > 3 && words[0] == "sh" && words[1] == "-c" && words[2].ends_with(kBecomes);
  return is_of_sh ? &words[3] : nullptr;
}

// Sets errno if there is no such program.
bool is_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0;
  const char* const found = std::getenv("PATH");
  std::string_view path = found != nullptr ? found : "/bin:/usr/bin";
  while (!name.empty()) {
    const auto end = std::min(path.find(':'), path.size());
    const std::string file = std::string(path.substr(0, end)) + "/" + name;
    if (access((end == 0 ? name : file).c_str(), X_OK) == 0) return true;
    if (end == path.size()) break;
    path.remove_prefix(end + 1);
  }
  errno = ENOENT;
  return false;
}

// The new process does this. It returns only if it fails.
Result<void> become(const PodConfig& pod, const ContainerConfig& container,
                    const std::filesystem::path& directory, int socket) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string cwd = container.working_dir.empty()
                              ? directory / kScratch
                              : std::filesystem::path(container.working_dir);
  if (pod.tier == Tier::kNamespaces) {
    std::vector<Mount> mounts = container.mounts;
    if (!container.working_dir.empty()) mounts.push_back({"", container.working_dir, false});
    if (auto done = enter_tree(directory / kRoot, std::move(mounts)); !done) return done;
  }
  if (chdir(cwd.c_str()) != 0) return system_failure("working directory " + cwd);
  if (!pod.address.empty() && pod.tier != Tier::kPlain) {
    const auto listener = install_port_filter();
    if (!listener) return tl::unexpected(listener.error());
    if (!send_message(socket, kListener, listener->get())) return system_failure("port filter");
  }
  umask(022);
  std::vector<std::string> words = container.argv, variables = container.env;
  const std::vector<char*> argv = kube::pointers_to(words);
  std::vector<char*> envp = kube::pointers_to(variables);
  environ = envp.data();  // its PATH decides which program is found
  reset_signals();
  // `sh` would say less of a program that is missing.
  const std::string* const program = program_behind_sh(words);
  if (program != nullptr && !is_program(*program)) return exec_failure(*program);
  execvp(argv[0], argv.data());
  return exec_failure(words[0]);
}

[[noreturn]] void run_child(const PodConfig& pod, const ContainerConfig& container,
                            const std::filesystem::path& directory, int socket, int out, int err) {
  const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  use_output(null.get(), STDIN_FILENO);
  use_output(out, STDOUT_FILENO);
  use_output(err, STDERR_FILENO);
  const auto failed = become(pod, container, directory, socket);
  send_message(socket, failed.error().message.substr(0, kLongestError), -1);
  _exit(128);
}

}  // namespace

Result<Launched> launch(const PodConfig& pod, const ContainerConfig& container,
                        const std::filesystem::path& directory) {
  auto out = Pipe::make();
  auto err = Pipe::make();
  int ends[2];
  if (!out || !err || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return system_failure("pipe");
  const Fd here(ends[0]);
  Fd there(ends[1]);
  Launched launched;
  launched.process = fork();
  if (launched.process < 0) return system_failure("fork");
  if (launched.process == 0)
    run_child(pod, container, directory, there.get(), out->write.get(), err->write.get());
  there.reset();
  std::string error;
  // The end comes when the program runs, or the process is gone.
  std::array<char, kLongestError> bytes{};
  for (ssize_t got = 0;
       (got = receive_message(here.get(), bytes.data(), bytes.size(), launched.listener)) > 0;) {
    const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
    if (text != kListener) error = text;
  }
  if (!error.empty()) {
    waitpid(launched.process, nullptr, 0);
    return tl::unexpected(start_error(std::move(error)));
  }
  fcntl(out->read.get(), F_SETFL, O_NONBLOCK);
  fcntl(err->read.get(), F_SETFL, O_NONBLOCK);
  launched.out = std::move(out->read);
  launched.err = std::move(err->read);
  return launched;
}

}  // namespace trainer::node
