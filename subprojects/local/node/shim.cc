#include "local/node/shim.hh"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <optional>
#include <thread>

#include "kube/model/json_text.hh"
#include "kube/model/pod_template.hh"
#include "local/node/container_state.hh"
#include "local/node/launch.hh"
#include "local/node/log_writer.hh"
#include "local/node/network.hh"
#include "local/node/owned.hh"
#include "local/node/pod_config.hh"
#include "local/node/ports.hh"
#include "local/node/sandbox.hh"
#include "local/node/strays.hh"
#include "local/node/tiers.hh"

namespace trainer {
namespace node {
namespace {

using kube::Json;
using Phase = ContainerState::Phase;

constexpr std::size_t kMaxMessage = 4'096;
constexpr std::chrono::seconds kRetry{1};  // the interval of tries to write a status

Moment::Steady steady() {
  return std::chrono::steady_clock::now();
}

Moment now() {
  const auto time = std::chrono::system_clock::now();
  return {kube::Time(std::chrono::time_point_cast<std::chrono::microseconds>(time)), steady()};
}

struct Running : ContainerState {
  bool is_init = false;
  Launched process;
  std::optional<LogWriter> log;
};

class Shim {
 public:
  Shim(std::filesystem::path directory, PodConfig pod, pid_t shim)
      : directory_(std::move(directory)), pod_(std::move(pod)), shim_(shim) {
    for (const ContainerConfig& container : pod_.init_containers) add(container, true);
    for (const ContainerConfig& container : pod_.containers) add(container, false);
  }

  int run();

 private:
  void add(const ContainerConfig& container, bool is_init);
  bool is_over() const;
  void fail_all(const std::string& why);
  // Starts the containers that are due.
  void advance();
  void start(Running& container);
  void wait_for_events();
  int milliseconds_to_wait() const;
  void on_signal();
  void stop(int grace);
  void reap();
  void end(Running& container, int wait_status);
  void drain(Running& container);
  bool copy_output(Fd& from, LogWriter::Stream stream, Running& container);
  std::string last_message(const Running& container, int wait_status) const;
  void write_status();
  void await_status();
  bool has_running() const;

  const std::filesystem::path directory_;
  const PodConfig pod_;
  const pid_t shim_;  // the process that the agent knows
  std::vector<Running> containers_;
  std::optional<PortSupervisor> ports_;
  Fd signals_;
  bool is_stopping_ = false;
  std::optional<Moment::Steady> kill_at_;
  bool has_changed_ = false;  // it has changed since the status was written
};

void Shim::add(const ContainerConfig& container, bool is_init) {
  Running& added = containers_.emplace_back();
  added.config = &container;
  added.is_init = is_init;
  if (pod_.init_containers.empty()) added.reason = "ContainerCreating";  // kubelet sets the same
}

bool Shim::has_running() const {
  return std::any_of(containers_.begin(), containers_.end(),
                     [](const Running& each) { return each.phase == Phase::kRunning; });
}

// After advance(), an ended container that restarts waits again, so any other ended one stays
// ended.
bool Shim::is_over() const {
  if (has_running()) return false;
  if (is_stopping_) return true;
  const auto is_done = [](const Running& each) { return each.phase == Phase::kEnded; };
  return std::all_of(containers_.begin(), containers_.end(), is_done) ||
         std::any_of(containers_.begin(), containers_.end(),
                     [](const Running& each) { return each.is_init && each.has_failed(); });
}

// This is final, whatever the restart policy: a container would be started outside of the
// namespaces.
void Shim::fail_all(const std::string& why) {
  is_stopping_ = true;
  for (Running& container : containers_) container.fail_to_start(why, now());
}

int Shim::run() {
  sigset_t awaited;
  sigemptyset(&awaited);
  for (const int signal : {SIGTERM, SIGCHLD, SIGINT, SIGHUP, SIGPIPE}) sigaddset(&awaited, signal);
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  // While there is no status.json, no container has been started, and the agent may start this
  // pod again.
  await_status();
  // The connection is made now: later, this process is in another user namespace, where the folder
  // may be out of reach.
  std::optional<PodNetwork> network;
  if (pod_.has_network) {
    if (auto joined = PodNetwork::join(directory_.parent_path().parent_path()))
      network = std::move(*joined);
    else
      fail_all(joined.error().message);
  }
  if (pod_.tier == Tier::kNamespaces) {
    if (const auto entered = enter_namespaces(pod_); !entered)
      fail_all("namespaces: " + entered.error().message);
  } else {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  signals_ = Fd(signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK));
  in_addr own{};
  if (inet_pton(AF_INET, pod_.address.c_str(), &own) == 1) ports_.emplace(own, std::move(network));
  for (;;) {
    advance();
    if (is_over()) break;
    if (has_changed_) write_status();
    wait_for_events();
  }
  kill_descendants();
  // Without the status, a pod that has succeeded would count as killed.
  await_status();
  return 0;
}

// The disk may be full. The agent kills this process when the pod is deleted meanwhile.
void Shim::await_status() {
  write_status();
  while (has_changed_) {
    std::this_thread::sleep_for(kRetry);
    write_status();
  }
}

void Shim::advance() {
  for (Running& container : containers_) {
    if (is_stopping_) return;
    if (container.phase == Phase::kWaiting && container.start_at.value_or(steady()) <= steady())
      start(container);
    // This includes a container that could not be started.
    if (container.phase == Phase::kEnded &&
        restarts_after(pod_.restart_policy, container, container.is_init)) {
      container.wait_for_restart();
      has_changed_ = true;
    }
    // Init containers start one after the other, and all of them before the others.
    if (container.is_init && (container.phase != Phase::kEnded || container.has_failed())) return;
  }
}

void Shim::start(Running& container) {
  has_changed_ = true;
  const std::string& name = container.config->name;
  const auto file = log_file(directory_, name);
  if (!container.last_state.is_null()) {  // it has run before
    const auto previous = previous_log_file(file);
    rename(older_log_file(file).c_str(), older_log_file(previous).c_str());
    rename(file.c_str(), previous.c_str());
  }
  container.log.emplace(file);
  static_cast<void>(replace_file(termination_file(directory_, name), ""));
  auto launched = launch(pod_, *container.config, directory_);
  if (!launched) {
    container.fail_to_start(launched.error().message, now());
    return;
  }
  container.process = std::move(*launched);
  container.run(now());
}

int Shim::milliseconds_to_wait() const {
  std::optional<Moment::Steady> next = kill_at_;
  for (const Running& container : containers_)
    if (container.start_at && !is_stopping_ && (!next || *container.start_at < *next))
      next = container.start_at;
  if (has_changed_ && (!next || steady() + kRetry < *next)) next = steady() + kRetry;
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - steady());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

void Shim::wait_for_events() {
  std::vector<pollfd> events{{signals_.get(), POLLIN, 0}};
  for (const Running& container : containers_)
    for (const Fd* fd :
         {&container.process.out, &container.process.err, &container.process.listener})
      events.push_back({fd->get(), POLLIN, 0});  // a negative one is ignored
  if (poll(events.data(), events.size(), milliseconds_to_wait()) < 0) return;
  auto event = events.begin() + 1;
  for (Running& container : containers_) {
    Launched& process = container.process;
    if ((event++)->revents != 0) copy_output(process.out, LogWriter::kOut, container);
    if ((event++)->revents != 0) copy_output(process.err, LogWriter::kErr, container);
    const auto listens = (event++)->revents;
    if (listens != 0 && ((listens & POLLIN) == 0 || !ports_->serve(process.listener.get())))
      process.listener.reset();
  }
  if (events.front().revents != 0) on_signal();
  if (kill_at_ && *kill_at_ <= steady()) {
    kill_at_.reset();
    kill_descendants();
    reap();
  }
}

void Shim::on_signal() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == sizeof info)
    if (info.ssi_signo == SIGTERM)
      stop(info.ssi_code == SI_QUEUE ? info.ssi_int : kube::kDefaultGraceSeconds);
  reap();
}

void Shim::stop(int grace) {
  const auto until = steady() + std::chrono::seconds(std::max(grace, 0));
  if (!kill_at_ || until < *kill_at_) kill_at_ = until;
  if (std::exchange(is_stopping_, true)) return;
  for (const Running& container : containers_)
    if (container.phase == Phase::kRunning) kill(container.process.process, SIGTERM);
}

void Shim::reap() {
  int status = 0;
  pid_t process = 0;
  while ((process = waitpid(-1, &status, WNOHANG)) > 0)
    for (Running& container : containers_)
      if (container.phase == Phase::kRunning && container.process.process == process)
        end(container, status);
}

void Shim::end(Running& container, int wait_status) {
  has_changed_ = true;
  kill(-container.process.process, SIGKILL);  // its session
  container.end(wait_status, {}, now());
  // Processes that it has left behind are killed with it, as far as they can be distinguished from
  // other containers'.
  if (!has_running()) kill_descendants();
  drain(container);
  container.message = last_message(container, wait_status);
}

void Shim::drain(Running& container) {
  while (copy_output(container.process.out, LogWriter::kOut, container)) {
  }
  while (copy_output(container.process.err, LogWriter::kErr, container)) {
  }
  container.log->finish(now().time);
  container.process = Launched();
}

// Returns true if there may be more.
bool Shim::copy_output(Fd& from, LogWriter::Stream stream, Running& container) {
  std::array<char, 65'536> piece;
  const ssize_t got = from ? read(from.get(), piece.data(), piece.size()) : 0;
  if (got < 0) return errno == EINTR;
  if (got == 0) {
    from.reset();
    return false;
  }
  container.log->write(stream, {piece.data(), static_cast<std::size_t>(got)}, now().time);
  return true;
}

std::string Shim::last_message(const Running& container, int wait_status) const {
  const auto written = read_head(termination_file(directory_, container.config->name), kMaxMessage);
  if (written && !written->empty()) return *written;
  const bool has_tail = container.config->has_logs_for_message && wait_status != 0;
  return has_tail ? container.log->tail() : std::string();
}

void Shim::write_status() {
  Json init = Json::array(), containers = Json::array();
  for (const Running& container : containers_)
    (container.is_init ? init : containers).push_back(container.status(pod_.uid));
  Json status = Json::object({{"pid", static_cast<std::int64_t>(shim_)}});
  status.set("isOver", is_over());
  status.set("containerStatuses", std::move(containers));
  if (!init.empty()) status.set("initContainerStatuses", std::move(init));
  const auto written = replace_file(directory_ / kStatusFile, kube::print_json(status));
  // Without its directory the pod is about to be removed.
  has_changed_ = !written && written.error().code != kube::ErrorCode::kNotFound;
}

}  // namespace
}  // namespace node

int run_shim(const std::vector<std::string>& words) {
  using namespace node;
  if (words.size() == 2 && words[0] == "bind") {
    std::cout << bind_loopback(static_cast<std::uint16_t>(std::stoi(words[1]))) << std::flush;
    return 0;
  }
  if (words.size() != 1) return 2;
  if (words[0] == "network") return run_network();
  if (words[0] == "tiers") {
    std::cout << kube::print_json(to_json(probe_tiers())) << '\n';
    return 0;
  }
  fcntl(kLockDescriptor, F_SETFD, FD_CLOEXEC);
  const std::filesystem::path directory = words[0];
  const auto text = read_owned_below(directory / kConfigFile);
  const auto config = text ? kube::parse_json(*text) : tl::unexpected(text.error());
  if (!config) {
    std::cerr << "trainer shim: " << config.error().message << '\n';
    return 1;
  }
  return Shim(directory, read_pod_config(*config), getpid()).run();
}

}  // namespace trainer
