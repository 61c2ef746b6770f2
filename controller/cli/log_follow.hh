// `trainer logs --follow`: from before the start to after the end, across restarts.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/trainjob.hh"
#include "controller/cli/log_merge.hh"
#include "kube/client/bell.hh"
#include "kube/client/task_group.hh"
#include "kube/client/watcher.hh"

namespace trainer {

// Watches the job and its pods; every container's log is followed by a task of its own, over broken
// connections and restarts, without losing or doubling a line. Ends when the job has ended and all
// logs have been read to their end, or when the job is deleted. Concurrency: the io_context thread
// of the client.
class LogFollower {
 public:
  struct Options {
    kube::ObjectKey job;
    std::optional<std::int32_t> node;
    LogQuery first;  // what the first request for each log asks for
    PrintLine print;
    std::function<void(std::string_view)> tell;  // what happens to the job, in between
    Options() {}
  };
  LogFollower(kube::asio::io_context& io, kube::ApiClient& client, Options options);
  ~LogFollower();
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  // The job's last state; nullopt when it was deleted.
  kube::Task<kube::Result<std::optional<TrainJob>>> run();

 private:
  class PodSink;
  class JobSink;
  struct Followed;
  void pod_seen(LogPod pod);
  void pod_gone(const std::string& uid);
  void job_seen(TrainJob job);
  kube::Task<void> follow(std::shared_ptr<Followed> followed, std::string container);
  // Reads one stream to its end. False: it broke, or could not be opened.
  kube::Task<bool> read_stream(std::shared_ptr<Followed> followed, std::string container,
                               LogQuery query, LogCursor& cursor);
  // Waits for news of pods or job, a second at most.
  kube::Task<void> wait_for_news();
  bool is_over() const;

  kube::asio::io_context& io_;
  kube::ApiClient& client_;
  Options options_;
  std::map<std::string, std::shared_ptr<Followed>> pods_;  // by uid
  std::optional<TrainJob> job_;
  bool is_job_deleted_ = false;
  bool are_pods_listed_ = false;
  std::string told_;         // the state told last
  std::size_t running_ = 0;  // logs being followed
  bool are_too_many_ = false;
  kube::Bell news_;
  std::unique_ptr<PodSink> pod_sink_;
  std::unique_ptr<JobSink> job_sink_;
  kube::TaskGroup tasks_;
};

}  // namespace trainer
