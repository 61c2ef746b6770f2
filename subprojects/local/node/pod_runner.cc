#include "local/node/pod_runner.hh"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"
#include "local/node/files.hh"
#include "local/node/owned.hh"
#include "local/node/pod_start.hh"
#include "local/node/spawn.hh"
#include "local/node/strays.hh"

namespace trainer::node {

namespace {

using kube::ErrorCode;
using kube::Json;
using kube::Milliseconds;
using kube::Result;
using kube::Task;

constexpr Milliseconds kRetry{500};
// The state is checked at this interval if no descriptor or watch reports a change.
constexpr Milliseconds kPoll{1'000};
constexpr Milliseconds kBrief{50};

// Only these parts are read here: not who has written a field, and only the names of a finished
// pod, which may stay for long.
Json shortened(Json pod) {
  pod["metadata"].erase("managedFields");
  if (!kube::is_pod_over(pod)) return pod;
  Json spec = Json::object();
  for (const char* name : {"nodeName", "hostNetwork"})
    if (const Json* value = pod["spec"].find(name)) spec.set(name, *value);
  for (const char* list : {"initContainers", "containers"}) {
    Json names = Json::array();
    for (const Json& container : pod["spec"].get_array(list))
      names.push_back(Json::object({{"name", container.get("name")}}));
    spec.set(list, std::move(names));
  }
  Json phase = pod["status"].get("phase");
  pod.set("spec", std::move(spec)).set("status", Json::object({{"phase", std::move(phase)}}));
  return pod;
}

}  // namespace

PodRunner::PodRunner(NodeContext& node, Json pod)
    : node_(node),
      pod_(shortened(std::move(pod))),
      uid_(pod_.get("metadata").get_string("uid")),
      key_(kube::ObjectMeta::of(pod_).key()),
      name_(PodName::of(pod_)),
      directory_(node.pods() / uid_),
      changed_(node.io.get_executor()) {
  note_start();
}

void PodRunner::touch() {
  ++changes_;
  changed_.notify();
}

void PodRunner::update(Json pod) {
  const auto version = [](const Json& object) {
    return object.get("metadata").get_string("resourceVersion");
  };
  if (kube::is_newer_version(version(pod), version(pod_))) pod_ = shortened(std::move(pod));
  note_start();
  touch();
}

void PodRunner::remove() {
  is_removed_ = true;
  touch();
}

std::string PodRunner::address() const {
  if (node_.facts.tier == Tier::kPlain || is_on_host_network(pod_)) return kHostAddress;
  return node_.addresses.address_of(name_);
}

StatusFacts PodRunner::status_facts() const {
  return {kHostAddress, address(), is_ready_, deadline(), is_late_};
}

// The result is null if the shim has not reported it yet.
const Json& PodRunner::report_on(std::string_view container) const {
  for (const char* list : {"initContainerStatuses", "containerStatuses"})
    for (const Json& status : report_.get_array(list))
      if (status.get_string("name") == container) return status;
  return Json::null();
}

bool PodRunner::is_running(std::string_view container) const {
  return report_on(container).get("state").find("running") != nullptr;
}

bool PodRunner::is_restarting(std::string_view container) const {
  const Json& status = report_on(container);
  return status.get("state").find("waiting") != nullptr && !status.get("lastState").empty();
}

Task<void> PodRunner::run() {
  const auto self = shared_from_this();
  if (!kube::is_pod_over(pod_) && co_await start()) co_await follow();
  co_await await_removal();
}

Task<void> PodRunner::pause(Milliseconds time) {
  co_await changed_.wait_for(node_.client.clock(), time);
}

// ---- start

Task<bool> PodRunner::start() {
  for (;;) {
    if (is_removed_) co_return false;
    if (adopt()) co_return true;
    if (is_deleting()) co_return false;
    const auto started = co_await try_start();
    if (started) co_return true;
    if (is_removed_ || is_deleting()) continue;
    const kube::Error& error = started.error();
    const kube::Time now = node_.client.clock().now();
    const bool is_late = deadline().value_or(now + kPoll) <= now;
    if (is_late || error.code == ErrorCode::kUnsupported) {
      const std::string reason(is_late ? kDeadlineExceeded : "NotSupported");
      const std::string message(is_late ? kActiveForTooLong : error.message);
      record("Warning", reason, message);
      Json refused = refused_status(pod_, reason, message, status_facts(), now);
      while (!is_removed_ && !co_await write(refused)) co_await pause(kRetry);
      co_return false;
    }
    Json waiting = waiting_status(pod_, "ContainerCreating", error.message, status_facts(), now);
    co_await write(std::move(waiting));
    const bool is_brief = error.code == ErrorCode::kConflict;
    if (!is_brief) record("Warning", "FailedMount", error.message);
    co_await pause(is_brief ? kBrief : kPoll);
  }
}

// Returns whether the pod has been started before, by this process or an earlier one; then its shim
// is followed. A pod whose shim was killed before it wrote a report counts as not started.
bool PodRunner::adopt() {
  if (access((directory_ / kConfigFile).c_str(), F_OK) != 0) return false;
  const Fd lock = lock_pod(directory_);
  is_alive_ = !lock;
  read_report();
  if (lock && report_.is_null()) return false;
  const auto text = read_owned_below(directory_ / kConfigFile);
  const auto config = text ? kube::parse_json(*text) : tl::unexpected(text.error());
  const std::string address(config ? config->get_string("address") : "");
  if (!address.empty()) node_.addresses.keep(name_, address);
  if (lock && !is_over()) end_as_killed();
  return true;
}

Task<Result<void>> PodRunner::try_start() {
  // The pod that it replaces has its name and its address until its end.
  if (address() != kHostAddress && node_.is_taken(address(), uid_))
    co_return kube::fail(ErrorCode::kConflict, "the processes of another pod of this name end");
  const auto sources = co_await fetch_sources(node_.client, pod_);
  if (!sources) co_return tl::unexpected(sources.error());
  if (is_removed_ || is_deleting())
    co_return kube::fail(ErrorCode::kCancelled, "the pod is being deleted");
  co_return launch(*sources);
}

Result<void> NodeContext::join_network() {
  if (!facts.has_network || (network && network->open_socket(AF_INET, SOCK_STREAM, 0))) return {};
  auto joined = PodNetwork::open(options.state, options.shim);
  if (!joined) return tl::unexpected(joined.error());
  network = std::move(*joined);
  return {};
}

Result<void> PodRunner::launch(const Sources& sources) {
  if (auto joined = node_.join_network(); !joined) return joined;
  PodContext place;
  place.volumes = {directory_, node_.claims.unclaimed()};
  for (const auto& [name, claim] : sources.claims)
    place.volumes.claims[name] = node_.claims.folder_of(kube::ObjectMeta::of(claim).uid);
  place.name = name_;
  place.facts = {node_.options.name, kHostAddress, address(), node_.allocatable};
  if (node_.facts.tier != Tier::kNamespaces) {
    place.names = node_.replacements(name_);
    place.names.merge(aliases_of(pod_));
  }
  const auto child = start_shim(pod_, sources, place, node_.facts, hosts(), node_.options.shim);
  if (!child) return tl::unexpected(child.error());
  is_alive_ = true;
  tokens_due_ = renewal_of(sources.tokens);
  child_ = *child;
  observe_shim(*child);
  return {};
}

std::string PodRunner::hosts() const {
  return hosts_text(name_, address(), node_.neighbours(name_), aliases_of(pod_),
                    read_file("/etc/hosts").value_or(""));
}

void PodRunner::refresh_hosts() const {
  if (access((directory_ / kHostsFile).c_str(), F_OK) != 0) return;
  const std::string text = hosts();
  // The file is written in place, since it is mounted.
  if (read_file(directory_ / kHostsFile).value_or("") != text)
    static_cast<void>(write_file(directory_ / kHostsFile, text, 0644));
}

// The pod's config decides, which an earlier process may have written.
bool PodRunner::uses(const std::filesystem::path& folder) const {
  if (kube::is_pod_over(pod_)) return false;
  const auto text = read_owned_below(directory_ / kConfigFile);
  const auto json = text ? kube::parse_json(*text) : tl::unexpected(text.error());
  return json && mounts_below(read_pod_config(*json), folder);
}

// ---- life

void PodRunner::observe_shim(pid_t pid) {
  Fd process = open_process(pid);
  if (!process) return;
  shim_.emplace(node_.io.get_executor(), process.release());
  await_exit();
}

void PodRunner::await_exit() {
  shim_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [self = shared_from_this()](const boost::system::error_code& error) {
                      if (error) return;
                      // Asio may be awake for a descriptor that was closed meanwhile.
                      pollfd process{self->shim_->native_handle(), POLLIN, 0};
                      if (poll(&process, 1, 0) <= 0) return self->await_exit();
                      self->has_exited_ = true;
                      if (self->child_ > 0) waitpid(self->child_, nullptr, WNOHANG);
                      self->check_shim();
                      self->touch();
                    });
}

// The lock is checked, which only the shim can hold. With namespaces, the shim consists of two
// processes; the second one ends with the one that is observed.
void PodRunner::check_shim() {
  is_alive_ = is_alive_ && !lock_pod(directory_);
  if (is_alive_ && has_exited_) kill_marked(uid_);
}

void PodRunner::read_report() {
  const auto text = read_owned_below(directory_ / kStatusFile);
  auto report = text ? kube::parse_json(*text) : tl::unexpected(text.error());
  if (!report) return;
  // The report of an adopted pod was known before.
  const bool is_first = report_.is_null() && child_ < 0;
  const Json before = std::exchange(report_, std::move(*report));
  if (is_first) return;
  for (PodEvent& event : events_of(before, report_))
    record(event.type, event.reason, std::move(event.message));
}

void PodRunner::end_as_killed() {
  kill_marked(uid_);
  const kube::Time now = node_.client.clock().now();
  if (report_.is_null())
    report_ = waiting_status(pod_, "ContainerCreating", "", status_facts(), now);
  report_ = report_of_killed(std::move(report_), now);
  static_cast<void>(replace_file(directory_ / kStatusFile, kube::print_json(report_)));
}

Task<void> PodRunner::follow() {
  const auto self = shared_from_this();
  const int watch = node_.directories.watch(directory_, [self] { self->touch(); });
  is_followed_ = true;
  start_probes();
  while (!is_removed_) {
    const std::uint64_t seen = changes_;
    check_shim();
    read_report();
    if (is_alive_ && !shim_) observe_shim(static_cast<pid_t>(report_.get_int("pid", -1)));
    if (!is_alive_ && !is_over()) end_as_killed();
    bool is_written = true;
    if (!report_.is_null()) {
      Json status = pod_status(pod_, report_, status_facts(), node_.client.clock().now());
      is_written = co_await write(std::move(status));
    }
    if (is_over() && is_written) break;
    const kube::Time now = node_.client.clock().now();
    const auto end = deadline();
    if (is_deleting()) stop(grace());
    is_late_ = is_late_ || (end && *end <= now && is_alive_);
    if (is_late_) stop(own_grace());
    const bool is_watched = watch >= 0 && shim_.has_value();
    if (!is_written || !is_watched || has_exited_)
      co_await pause(!is_written ? kRetry : has_exited_ ? kBrief : kPoll);
    else if (changes_ == seen && end && *end > now)
      co_await pause(std::chrono::ceil<Milliseconds>(*end - now));
    else if (changes_ == seen)
      co_await changed_.wait();
  }
  is_followed_ = false;
  node_.directories.forget(watch);
}

void PodRunner::stop(int grace) {
  if (!is_alive_ || !shim_ || (asked_grace_ && *asked_grace_ <= grace)) return;
  if (!asked_grace_) record("Normal", "Killing", "Stopping the containers of the pod");
  asked_grace_ = grace;
  stop_shim(shim_->native_handle(), grace);
}

Task<bool> PodRunner::write(Json status) {
  Json patch = status_patch(pod_, status);
  if (patch.is_null()) co_return true;
  const auto written =
      co_await node_.client.merge_patch(kube::kPods, key_, std::move(patch), "status");
  if (written) {
    if (auto pod = kube::parse_json(*written)) update(std::move(*pod));
    co_return true;
  }
  // The pod is gone, or another of its name exists: the watch says so.
  const ErrorCode code = written.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kConflict) co_return true;
  node_.note(fmt::format("pod {}: its status cannot be written: {}", key_.to_string(),
                         written.error().message));
  co_return false;
}

// ---- end

Task<void> PodRunner::await_removal() {
  bool is_asked = false;
  while (!is_removed_) {
    const std::uint64_t seen = changes_;
    if (is_deleting() && !is_asked) {
      kube::DeleteOptions options;
      options.uid = uid_;
      options.grace_seconds = 0;
      const auto done = co_await node_.client.remove(kube::kPods, key_, options);
      is_asked = done || done.error().code == ErrorCode::kNotFound ||
                 done.error().code == ErrorCode::kConflict;
    }
    if (is_deleting() && !is_asked)
      co_await pause(kRetry);
    else if (changes_ == seen)
      co_await changed_.wait();
  }
  co_await end_processes();
  node_.remove_later(directory_);
}

Task<void> PodRunner::end_processes() {
  constexpr int kRounds = 50;
  constexpr Milliseconds kRound{100};
  asked_grace_.reset();
  check_shim();
  stop(0);
  for (int round = 0; round < kRounds && is_alive_; ++round) {
    co_await pause(kRound);
    check_shim();
  }
  // The processes are ended twice: a process may have started another one meanwhile.
  if (is_alive_ || !report_.get_bool("isOver"))
    for (int round = 0; round < 2 && !kill_marked(uid_); ++round) co_await pause(kRound);
  is_alive_ = false;
}

// ---- events

void PodRunner::record(std::string_view type, std::string_view reason, std::string message) {
  kube::Event event;
  event.regarding.api_version = "v1";
  event.regarding.kind = "Pod";
  event.regarding.key = key_;
  event.regarding.uid = uid_;
  event.type = type;
  event.reason = reason;
  event.message = std::move(message);
  node_.events.record(std::move(event));
}

}  // namespace trainer::node
