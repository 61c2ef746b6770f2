#include "controller/node/launch.hh"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "controller/node/ports.hh"
#include "controller/node/sandbox.hh"
#include "kube/client/argv.hh"

extern char** environ;

namespace trainer::node {

namespace {

using kube::Result;

// A message of the new process: its listener, or the text of an error.
bool send_message(int socket, std::string_view text, int descriptor) {
  char byte = 0;
  iovec data{text.empty() ? &byte : const_cast<char*>(text.data()), text.empty() ? 1 : text.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) > 0;
}

// False at the end: the program runs, or the process is gone.
bool receive_message(int socket, std::string& text, Fd& descriptor) {
  std::array<char, 4'096> bytes{};
  iovec data{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int received = -1;
    std::memcpy(&received, CMSG_DATA(header), sizeof received);
    descriptor = Fd(received);
  } else {
    text.assign(bytes.data(), static_cast<std::size_t>(got));
  }
  return true;
}

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

// What the new process does. It returns only if it fails.
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
    if (!send_message(socket, {}, listener->get())) return system_failure("port filter");
  }
  umask(022);
  std::vector<std::string> words = container.argv, variables = container.env;
  const std::vector<char*> argv = kube::pointers_to(words);
  std::vector<char*> envp = kube::pointers_to(variables);
  environ = envp.data();  // its PATH decides what is found
  reset_signals();
  execvp(argv[0], argv.data());
  if (errno == ENOENT && words[0].find('/') == std::string::npos)
    return tl::unexpected(start_error("exec: \"" + words[0] +
                                      "\": executable file not found in $PATH: activate the "
                                      "environment that has it, or install it"));
  return system_failure("exec: \"" + words[0] + "\"");
}

[[noreturn]] void run_child(const PodConfig& pod, const ContainerConfig& container,
                            const std::filesystem::path& directory, int socket, int out, int err) {
  const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  use_output(null.get(), STDIN_FILENO);
  use_output(out, STDOUT_FILENO);
  use_output(err, STDERR_FILENO);
  const auto failed = become(pod, container, directory, socket);
  send_message(socket, failed.error().message.substr(0, 4'000), -1);
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
  while (receive_message(here.get(), error, launched.listener)) {
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
