// A stream of reports is merged into few writes.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kube/client/api_client.hh"
#include "kube/client/notifier.hh"
#include "kube/client/task_group.hh"
#include "kube/client/token_bucket.hh"
#include "kube/manager/log.hh"

namespace trainer {

// These limits say how often reports become writes.
struct StatusLimits {
  // This is the time between two writes to one TrainJob; reports in between are merged, the last
  // one wins.
  kube::Milliseconds min_interval{1'000};
  // This limits all writes together; there is no limit if the configuration sets none.
  std::optional<double> qps;
  std::optional<int> burst;
  StatusLimits() {}
};

// Guarantees: the report that was submitted last for a job is the one written last; two writes to
// one job are at least `min_interval` apart. Concurrency: the io_context thread of `client`.
class ReportWriter {
 public:
  ReportWriter(kube::asio::io_context& io, kube::ApiClient& client, StatusLimits limits,
               const kube::Log& log);
  ReportWriter(const ReportWriter&) = delete;
  ReportWriter& operator=(const ReportWriter&) = delete;

  // Returns when the report has been written, or at once if the job's last write succeeded less
  // than `min_interval` ago: then the report is written later. Errors: the API server's; kNotFound
  // if the TrainJob of this name has another uid, which is never written.
  kube::Task<kube::Result<void>> submit(kube::ObjectKey trainjob, std::string uid,
                                        kube::Json trainer_status);
  // Writes all pending reports now.
  kube::Task<void> flush();

 private:
  // These are the reports of one TrainJob.
  struct Job {
    Job(kube::asio::io_context& io, kube::ObjectKey trainjob, std::string job_uid)
        : key(std::move(trainjob)),
          uid(std::move(job_uid)),
          pause(io.get_executor()),
          write_done(io.get_executor()) {}
    const kube::ObjectKey key;
    const std::string uid;
    // The version of the TrainJob with this uid; "" if it must be read.
    std::string resource_version;
    std::optional<kube::Json> waiting;  // the last report, while it is not being written
    kube::Notifier pause;               // the pause before the next write; notified to end it early
    kube::Notifier write_done;          // notified by every write that has ended
    std::uint64_t submitted = 0;        // the number of reports that came
    // The number of reports that a write, also one that failed, has covered.
    std::uint64_t written = 0;
    bool is_writer_running = false;
    // This is the outcome of the last write.
    kube::Result<void> last = kube::fail(kube::ErrorCode::kInternal, "not written yet");
    std::optional<std::chrono::steady_clock::time_point> written_at;
  };
  kube::Task<void> write_waiting(std::shared_ptr<Job> job);
  kube::Task<kube::Result<void>> write(std::shared_ptr<Job> job, kube::Json trainer_status);
  kube::Task<kube::Result<void>> read_version(std::shared_ptr<Job> job);
  kube::Task<void> wait_for_rate_limit();
  void forget_idle(std::chrono::steady_clock::time_point now);

  kube::asio::io_context& io_;
  kube::ApiClient& client_;
  StatusLimits limits_;
  const kube::Log& log_;
  std::map<std::string, std::shared_ptr<Job>> jobs_;  // by uid
  std::chrono::steady_clock::time_point next_sweep_{};
  std::optional<kube::TokenBucket> rate_limit_;
  bool is_flushing_ = false;
  kube::TaskGroup tasks_;
};

}  // namespace trainer
