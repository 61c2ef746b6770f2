#include "controller/cli/log_follow.hh"

#include <fmt/format.h>

#include "kube/model/resources.hh"

namespace trainer {

using kube::Json;
using kube::Result;
using kube::Task;

namespace {

constexpr kube::Milliseconds kTick{1'000};
// After its grace period a pod is taken for lost only after this time.
constexpr std::chrono::seconds kOverdue{30};
// The log of a container that has ended, or of a pod that is deleted when its job has ended, may
// fail to be read this often: its node may be gone.
constexpr int kMaxFailures = 5;
// Each log needs a connection; with more nodes than this a user chooses one with --node.
constexpr std::size_t kMaxFollowed = 200;

}  // namespace

struct LogFollower::Followed {
  LogPod pod;
  std::map<std::string, bool> containers;  // by name: whether a task follows it or has followed it
  // The pod's node has not ended it by then, so it is lost.
  std::optional<kube::Clock::Steady> lost_at;
};

LogFollower::LogFollower(kube::asio::io_context& io, kube::ApiClient& client, Options options)
    : io_(io),
      client_(client),
      options_(std::move(options)),
      changed_(io.get_executor()),
      pod_sink_({[this](const Json& object) {
                   if (auto pod = LogPod::read(object, options_.hook)) pod_seen(std::move(*pod));
                 },
                 [this](const std::string& uid) { pod_gone(uid); },
                 [this] {
                   are_pods_listed_ = true;
                   changed_.notify();
                 }}),
      job_sink_({[this](const Json& object) {
                   is_job_listed_ = true;
                   if (auto job = options_.hook.read_state(object, "")) job_seen(std::move(*job));
                 },
                 [this](const std::string&) {
                   is_job_deleted_ = true;
                   changed_.notify();
                 },
                 // The job may be deleted before the watch begins.
                 [this] {
                   is_job_deleted_ = is_job_deleted_ || !is_job_listed_;
                   changed_.notify();
                 }}),
      on_task_error_([this](std::string_view task, std::string_view what) {
        options_.report(fmt::format("{}: {}", task, what));
      }),
      tasks_(io.get_executor(), on_task_error_) {}

void LogFollower::pod_seen(LogPod pod) {
  if (!is_chosen(pod, options_.node)) return;
  auto& slot = pods_[pod.uid];
  if (!slot) slot = std::make_shared<Followed>();
  // A Job tries a pod that a node refuses again and again, without a line in any log.
  if (!pod.failure.empty() && slot->pod.failure.empty() && reported_failure_ != pod.failure) {
    reported_failure_ = pod.failure;
    options_.report(fmt::format("pod {} failed: {}", pod.name, pod.failure));
  }
  if (pod.ends_within && !slot->lost_at)
    slot->lost_at = client_.clock().steady() + *pod.ends_within + kOverdue;
  slot->pod = std::move(pod);
  for (const LogContainer& container : slot->pod.containers) {
    if (!container.has_log || slot->containers[container.name]) continue;
    if (followed_ >= kMaxFollowed) {
      if (!are_too_many_) {
        options_.report(fmt::format("only the first {} logs are followed: choose one with --node",
                                    kMaxFollowed));
      }
      are_too_many_ = true;
      continue;
    }
    slot->containers[container.name] =
        tasks_.spawn("log of " + slot->pod.name, follow(slot, container.name, count_followed()));
  }
  changed_.notify();
}

void LogFollower::pod_gone(const std::string& uid) {
  const auto at = pods_.find(uid);
  if (at == pods_.end()) return;
  at->second->pod.is_gone = true;
  pods_.erase(at);
  changed_.notify();
}

void LogFollower::job_seen(ObjectState job) {
  std::string state = job.phase.empty() ? "not started" : job.phase;
  const bool is_omitted = job.is_failed && options_.omits_failure;
  if (!job.phase.empty() && job.phase != "Running" && !job.message.empty() && !is_omitted)
    state += ": " + job.message;
  if (state != reported_) {
    options_.report(fmt::format("{}: {}", options_.title(), state));
    reported_ = std::move(state);
  }
  job_ = std::move(job);
  changed_.notify();
}

bool LogFollower::is_over() const {
  if (is_job_deleted_ || options_.is_stopped()) return true;
  if (!job_ || !are_pods_listed_ || followed_ > 0) return false;
  const bool is_suspended = options_.ends_when_suspended && job_->phase == "Suspended";
  if (!job_->is_finished && !is_suspended) return false;
  // The pods' last states may come after the job's. A suspended Job keeps the pods that failed. A
  // pod of a node that is lost stays in deletion.
  for (const auto& [uid, followed] : pods_) {
    if (!followed->pod.is_over && !followed->pod.is_gone && !is_left_over(*followed)) return false;
  }
  return true;
}

Task<void> LogFollower::wait_for_change() {
  return changed_.wait_for(client_.clock(), kTick);
}

// The log is counted before its task runs: a job is not over while the task of its last log has not
// started.
std::shared_ptr<void> LogFollower::count_followed() {
  ++followed_;
  return {nullptr, [this](void*) {
            --followed_;
            changed_.notify();
          }};
}

Task<LogFollower::Read> LogFollower::read_stream(std::shared_ptr<Followed> followed,
                                                 std::string container, LogQuery query,
                                                 LogCursor& cursor) {
  if (const auto since = cursor.since_time()) query.since_time = *since;
  auto stream = co_await LogStream::open(client_, log_path(followed->pod, container, query));
  if (!stream) co_return Read::kBroken;
  cursor.begin_stream();
  for (bool is_empty = true;; is_empty = false) {
    const auto line = co_await stream->next();
    if (!line) co_return Read::kBroken;
    if (!*line) co_return is_empty ? Read::kEmpty : Read::kWhole;
    if (cursor.is_new(**line)) options_.print(followed->pod, container, **line);
  }
}

bool LogFollower::is_left_over(const Followed& followed) const {
  return job_ && job_->is_finished && followed.lost_at &&
         client_.clock().steady() >= *followed.lost_at;
}

// A container is read run by run (it may restart). A stream that ends may have been cut. So the log
// of each run is read again to its end after the container's status says that it has ended; the
// cursor skips lines that were printed. containerd writes the log asynchronously, so the log of a
// container that has just ended may still be empty. Then it is read again.
Task<void> LogFollower::follow(std::shared_ptr<Followed> followed, std::string container,
                               std::shared_ptr<void> /*counted*/) {
  LogCursor cursor;
  std::int32_t start = -1;  // the last one that was read to its end
  std::int32_t empty = -1;  // the last one that was found empty at its end
  int failures = 0;
  while (true) {
    const LogContainer* state = followed->pod.find(container);
    if (state == nullptr) co_return;
    const std::int32_t current = state->restarts;
    if (current <= start || !state->has_log) {
      if (followed->pod.is_over || followed->pod.is_gone || is_left_over(*followed)) co_return;
      co_await wait_for_change();
      continue;
    }
    LogQuery query = options_.first;
    query.is_followed = !state->is_ended;
    const bool was_ended = state->is_ended;
    const Read read = co_await read_stream(followed, container, query, cursor);
    state = followed->pod.find(container);
    if (followed->pod.is_gone || state == nullptr) co_return;
    if (state->restarts > current) {
      // The container restarted meanwhile: the lines that the broken stream missed are now in the
      // previous log.
      LogQuery previous = options_.first;
      previous.is_previous = true;
      co_await read_stream(followed, container, previous, cursor);
      start = state->restarts - 1;
    } else if (was_ended && read == Read::kEmpty && empty < current) {
      empty = current;
      co_await kube::sleep(client_.clock(), kTick);
    } else if (was_ended && read != Read::kBroken) {
      start = current;
      if (state->exit_code.value_or(0) != 0) {
        options_.report(fmt::format("{} ended with exit code {} ({})",
                                    followed->pod.prefix(container), *state->exit_code,
                                    state->reason));
      }
    } else if (read == Read::kBroken && (was_ended || is_left_over(*followed)) &&
               ++failures >= kMaxFailures) {
      options_.report(
          fmt::format("{}: its log cannot be read any more", followed->pod.prefix(container)));
      co_return;
    } else {
      co_await wait_for_change();
    }
  }
}

// A watch that fails is started again; its error is reported, to explain why no lines come.
kube::WatchOptions LogFollower::watch_options() const {
  kube::WatchOptions watched;
  watched.ns = options_.job.ns;
  watched.on_note = [this](std::string_view what, std::string_view detail) {
    if (what == "error" || what == "malformed") options_.report(detail);
  };
  return watched;
}

Task<void> LogFollower::watch_pods_to_the_end() {
  kube::WatchOptions pods = watch_options();
  pods.label_selector = std::string(options_.hook.pod_label) + "=" + options_.job.name;
  are_pods_listed_ = false;
  kube::TaskGroup watch(io_.get_executor(), on_task_error_);
  watch.spawn("watch of pods", kube::run_watch(client_, kube::kPods, pod_sink_, std::move(pods)));
  while (!is_over()) co_await wait_for_change();
  watch.cancel();
  co_await watch.join();
}

Task<Result<std::optional<ObjectState>>> LogFollower::run() {
  // The object is read first, so that a name that does not exist is an error instead of an endless
  // wait.
  const auto object = co_await client_.get(options_.resource, options_.job);
  if (!object) co_return tl::unexpected(object.error());
  kube::WatchOptions jobs = watch_options();
  jobs.field_selector = "metadata.name=" + options_.job.name;
  kube::TaskGroup watch(io_.get_executor(), on_task_error_);
  watch.spawn("watch of the job",
              kube::run_watch(client_, options_.resource, job_sink_, std::move(jobs)));
  co_await watch_pods_to_the_end();
  // The watch of pods may be later than that of the job and miss the last pods.
  co_await watch_pods_to_the_end();
  watch.cancel();
  co_await watch.join();
  tasks_.cancel();
  co_await tasks_.join();
  if (is_job_deleted_) co_return std::optional<ObjectState>();
  co_return job_;
}

}  // namespace trainer
