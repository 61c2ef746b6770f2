#include "controller/cli/log_follow.hh"

#include <fmt/format.h>

#include <set>

#include "api/api.hh"
#include "controller/core/stores.hh"
#include "kube/model/json_text.hh"

namespace trainer {

using kube::Json;
using kube::Result;
using kube::Task;

namespace {

constexpr kube::Milliseconds kTick{1'000};
// How often the log of a container that has ended is asked for in vain: its machine may be gone.
constexpr int kMaxFailures = 5;
// A connection each; who has more nodes than this wants --node.
constexpr std::size_t kMaxFollowed = 200;

// Lists and watches both give whole objects; what vanished between two lists is told as removed.
class KeyedSink : public kube::WatchSink {
 public:
  void begin_list() override { listed_.emplace(); }
  bool put(std::string_view text) override {
    const auto object = kube::parse_json(text);
    if (!object) return false;
    const std::string uid = kube::ObjectMeta::of(*object).uid;
    if (listed_) listed_->insert(uid);
    known_.insert(uid);
    seen(*object);
    return true;
  }
  void end_list() override {
    for (const std::string& uid : std::set<std::string>(known_)) {
      if (!listed_->contains(uid)) forget(uid);
    }
    listed_.reset();
    listed();
  }
  bool remove(std::string_view text) override {
    const auto object = kube::parse_json(text);
    if (!object) return false;
    forget(kube::ObjectMeta::of(*object).uid);
    return true;
  }

 protected:
  virtual void seen(const Json& object) = 0;
  virtual void gone(const std::string& uid) = 0;
  virtual void listed() {}

 private:
  void forget(const std::string& uid) {
    known_.erase(uid);
    gone(uid);
  }
  std::set<std::string> known_;
  std::optional<std::set<std::string>> listed_;
};

}  // namespace

struct LogFollower::Followed {
  LogPod pod;
  std::map<std::string, bool> containers;  // by name: whether a task follows it or has followed it
};

class LogFollower::PodSink final : public KeyedSink {
 public:
  explicit PodSink(LogFollower& follower) : follower_(follower) {}

 private:
  void seen(const Json& object) override {
    if (auto pod = LogPod::read(object)) follower_.pod_seen(std::move(*pod));
  }
  void gone(const std::string& uid) override { follower_.pod_gone(uid); }
  void listed() override {
    follower_.are_pods_listed_ = true;
    follower_.news_.ring();
  }
  LogFollower& follower_;
};

class LogFollower::JobSink final : public KeyedSink {
 public:
  explicit JobSink(LogFollower& follower) : follower_(follower) {}

 private:
  void seen(const Json& object) override {
    if (auto job = read_trainjob(object)) follower_.job_seen(std::move(*job));
  }
  void gone(const std::string&) override {
    follower_.is_job_deleted_ = true;
    follower_.news_.ring();
  }
  LogFollower& follower_;
};

LogFollower::LogFollower(kube::asio::io_context& io, kube::ApiClient& client, Options options)
    : io_(io),
      client_(client),
      options_(std::move(options)),
      news_(io.get_executor()),
      pod_sink_(std::make_unique<PodSink>(*this)),
      job_sink_(std::make_unique<JobSink>(*this)),
      tasks_(io.get_executor(), [this](std::string_view task, std::string_view what) {
        options_.tell(fmt::format("{}: {}", task, what));
      }) {}

LogFollower::~LogFollower() = default;

void LogFollower::pod_seen(LogPod pod) {
  if (!is_chosen(pod, options_.node)) return;
  auto& slot = pods_[pod.uid];
  if (!slot) slot = std::make_shared<Followed>();
  slot->pod = std::move(pod);
  for (const LogContainer& container : slot->pod.containers) {
    if (!container.has_log || slot->containers[container.name]) continue;
    if (running_ >= kMaxFollowed) {
      if (!are_too_many_) {
        options_.tell(fmt::format("only the first {} logs are followed: choose one with --node",
                                  kMaxFollowed));
      }
      are_too_many_ = true;
      continue;
    }
    slot->containers[container.name] =
        tasks_.spawn("log of " + slot->pod.name, follow(slot, container.name));
  }
  news_.ring();
}

void LogFollower::pod_gone(const std::string& uid) {
  const auto at = pods_.find(uid);
  if (at == pods_.end()) return;
  at->second->pod.is_gone = true;
  pods_.erase(at);
  news_.ring();
}

void LogFollower::job_seen(TrainJob job) {
  const TrainJobStatus& status = job.status;
  std::string state = status.phase.empty() ? "not started" : status.phase;
  if (status.phase != "Running" && !status.message.empty()) state += ": " + status.message;
  if (state != told_) {
    options_.tell(fmt::format("TrainJob {}: {}", options_.job.to_string(), state));
    told_ = std::move(state);
  }
  job_ = std::move(job);
  news_.ring();
}

bool LogFollower::is_over() const {
  if (is_job_deleted_) return true;
  if (!job_ || !job_->is_finished() || !are_pods_listed_ || running_ > 0) return false;
  // The pods' last states may come after the job's.
  for (const auto& [uid, followed] : pods_) {
    if (!followed->pod.is_over && !followed->pod.is_gone) return false;
  }
  return true;
}

Task<void> LogFollower::wait_for_news() {
  return news_.wait_for(client_.clock(), kTick);
}

Task<bool> LogFollower::read_stream(std::shared_ptr<Followed> followed, std::string container,
                                    LogQuery query, LogCursor& cursor) {
  if (const auto since = cursor.since_time()) query.since_time = *since;
  auto stream = co_await LogStream::open(client_, log_path(followed->pod, container, query));
  if (!stream) co_return false;
  cursor.begin_stream();
  while (true) {
    const auto line = co_await stream->next();
    if (!line) co_return false;
    if (!*line) co_return true;
    if (cursor.is_new(**line)) options_.print(followed->pod, container, **line);
  }
}

// A container is read start by start. A stream that ends may have been cut, so each start is read
// once more to its end after the container's status says that it has ended; the cursor leaves out
// what was printed.
Task<void> LogFollower::follow(std::shared_ptr<Followed> followed, std::string container) {
  ++running_;
  const std::shared_ptr<void> end(nullptr, [this](void*) {
    --running_;
    news_.ring();
  });
  LogCursor cursor;
  std::int32_t start = -1;  // the last one that was read to its end
  int failures = 0;
  while (true) {
    const LogContainer* state = followed->pod.find(container);
    if (state == nullptr) co_return;
    const std::int32_t current = state->restarts;
    if (current <= start || !state->has_log) {
      if (followed->pod.is_over || followed->pod.is_gone) co_return;
      co_await wait_for_news();
      continue;
    }
    LogQuery query = options_.first;
    query.is_followed = !state->is_ended;
    const bool was_ended = state->is_ended;
    const bool is_whole = co_await read_stream(followed, container, query, cursor);
    state = followed->pod.find(container);
    if (followed->pod.is_gone || state == nullptr) co_return;
    if (state->restarts > current) {
      // Started again meanwhile: what the broken stream missed is now the log before the present
      // one.
      LogQuery previous = options_.first;
      previous.is_previous = true;
      co_await read_stream(followed, container, previous, cursor);
      start = state->restarts - 1;
    } else if (was_ended && is_whole) {
      start = current;
      if (state->exit_code.value_or(0) != 0) {
        options_.tell(fmt::format("{} ended with exit code {} ({})",
                                  followed->pod.prefix(container), *state->exit_code,
                                  state->reason));
      }
    } else if (was_ended && ++failures >= kMaxFailures) {
      options_.tell(
          fmt::format("{}: its log cannot be read any more", followed->pod.prefix(container)));
      co_return;
    } else {
      co_await wait_for_news();
    }
  }
}

Task<Result<std::optional<TrainJob>>> LogFollower::run() {
  // Asked first, so that a name that does not exist is an error instead of an endless wait.
  const auto object = co_await client_.get(kTrainJobs, options_.job);
  if (!object) co_return tl::unexpected(object.error());
  kube::WatchOptions jobs;
  jobs.ns = options_.job.ns;
  jobs.field_selector = "metadata.name=" + options_.job.name;
  kube::WatchOptions pods;
  pods.ns = options_.job.ns;
  pods.label_selector = "jobset.sigs.k8s.io/jobset-name=" + options_.job.name;
  kube::TaskGroup watches(io_.get_executor(), [this](std::string_view task, std::string_view what) {
    options_.tell(fmt::format("{}: {}", task, what));
  });
  watches.spawn("watch of pods", kube::run_watch(client_, kPods, *pod_sink_, std::move(pods)));
  watches.spawn("watch of the job",
                kube::run_watch(client_, kTrainJobs, *job_sink_, std::move(jobs)));
  while (!is_over()) co_await wait_for_news();
  watches.cancel();
  co_await watches.join();
  tasks_.cancel();
  co_await tasks_.join();
  if (is_job_deleted_) co_return std::optional<TrainJob>();
  co_return job_;
}

}  // namespace trainer
