// `trainer logs --follow` shows all logs of a job from before its start to its end, across
// restarts.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "controller/cli/log_merge.hh"
#include "kube/client/notifier.hh"
#include "kube/client/object_sink.hh"
#include "kube/client/task_group.hh"

namespace trainer {

// Watches the job and its pods. A task for each container follows its log, across broken
// connections and restarts, and prints every line exactly once. Ends when the job has ended and all
// logs have been read to their end, also those of pods that only a new list brings, or when the job
// is deleted. Concurrency: the io_context thread of the client.
class LogFollower {
 public:
  struct Options {
    kube::Resource resource;  // the resource of the job
    LogsHook hook;
    kube::ObjectKey job;
    std::optional<std::int32_t> node;
    LogQuery first;                    // the first request for each log
    bool ends_when_suspended = false;  // it ends when the pods of a suspended job have ended
    std::function<bool()> is_stopped = [] { return false; };  // it is called once a second
    bool omits_failure = false;  // the caller says why a job has failed
    PrintLine print;
    std::function<void(std::string_view)> report;  // it gets changes of the job, and errors
    Options() {}
    std::string title() const { return resource.kind + " " + job.to_string(); }
  };
  LogFollower(kube::asio::io_context& io, kube::ApiClient& client, Options options);
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  // Returns the job's last state; nullopt if it was deleted.
  kube::Task<kube::Result<std::optional<ObjectState>>> run();

 private:
  struct Followed;
  void pod_seen(LogPod pod);
  void pod_gone(const std::string& uid);
  void job_seen(ObjectState job);
  // Counts one log as followed until the result is destroyed.
  std::shared_ptr<void> count_followed();
  kube::Task<void> follow(std::shared_ptr<Followed> followed, std::string container,
                          std::shared_ptr<void> counted);
  // kBroken says that the log was cut, or could not be opened; kEmpty that it is whole, without any
  // line.
  enum class Read : std::uint8_t { kBroken, kEmpty, kWhole };
  kube::Task<Read> read_stream(std::shared_ptr<Followed> followed, std::string container,
                               LogQuery query, LogCursor& cursor);
  // Waits for a change of the pods or the job, a second at most.
  kube::Task<void> wait_for_change();
  // Lists the pods, then watches them until the job and all known pods are over.
  kube::Task<void> watch_pods_to_the_end();
  // Both watches share this part.
  kube::WatchOptions watch_options() const;
  bool is_over() const;
  bool is_left_over(const Followed& followed) const;

  kube::asio::io_context& io_;
  kube::ApiClient& client_;
  Options options_;
  std::map<std::string, std::shared_ptr<Followed>> pods_;  // by uid
  std::optional<ObjectState> job_;
  bool is_job_listed_ = false;
  bool is_job_deleted_ = false;
  bool are_pods_listed_ = false;
  std::string reported_;          // the state reported last
  std::string reported_failure_;  // the failure of a pod that was reported last
  std::size_t followed_ = 0;      // logs
  bool are_too_many_ = false;
  kube::Notifier changed_;
  kube::ObjectSink pod_sink_;
  kube::ObjectSink job_sink_;
  kube::TaskGroup::OnError on_task_error_;
  kube::TaskGroup tasks_;
};

}  // namespace trainer
