// These are metrics of jobs of all kinds: how many there are in each phase, and how long they take
// until they run. The controller of a kind keeps a JobRecord for each of its jobs.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kube/client/clock.hh"
#include "kube/manager/manager_metrics.hh"
#include "kube/model/time.hh"
#include "runtimes/lifecycle/facts.hh"

namespace trainer {

// The census counts how many jobs of all kinds there are by phase, namespace and runtime, and how
// many wait by reason, and how many have slow ranks. A series exists while it counts a job. Users
// choose the names of namespaces and runtimes: beyond the bounds, a job that would need a new
// series is counted with `other` as its runtime, or as its runtime and its namespace. Concurrency:
// one thread.
class JobCensus {
 public:
  static constexpr std::size_t kMaxSeries = 700;
  static constexpr std::size_t kMaxSeriesOfNamespace = 100;
  static constexpr std::size_t kMaxCountedNamespaces = 200;
  static constexpr std::size_t kMaxCountedRuntimes = 100;  // in all of these namespaces
  static constexpr std::string_view kOther = "other";

  struct Labels {
    std::string kind;
    std::string phase;
    std::string ns;
    std::string runtime;  // "" for a kind that has none
    friend auto operator<=>(const Labels&, const Labels&) = default;
  };
  struct Wait {
    std::string kind;
    std::string reason;
    friend auto operator<=>(const Wait&, const Wait&) = default;
  };
  using Jobs = std::map<Labels, std::size_t>;
  using Waits = std::map<Wait, std::size_t>;
  using Slow = std::map<std::string, std::size_t>;  // by kind

  const Jobs& jobs() const { return jobs_; }
  const Waits& waits() const { return waits_; }
  const Slow& slow() const { return slow_; }

  // Counts one more job. The result is valid until leave().
  const Labels& enter(Labels labels);
  void leave(const Labels& labels);
  const Wait& enter(Wait wait);
  void leave(const Wait& wait);
  const std::string& enter_slow(const std::string& kind);
  void leave_slow(const std::string& kind);
  // Returns the label of a counter, whose series stays after its jobs and their namespace are gone:
  // `ns` for the first kMaxCountedNamespaces of this process, `other` for the rest.
  std::string_view label_of_counter(const std::string& ns);
  // Does the same for the runtime of a job, whose namespace has this label.
  std::string_view label_of_counter(std::string_view ns_label, std::string_view runtime);

 private:
  bool is_full(const Labels& labels) const;

  Jobs jobs_;
  Waits waits_;
  Slow slow_;
  std::map<std::string, std::size_t, std::less<>> of_namespaces_;  // series
  std::set<std::string> counted_namespaces_;
  std::set<std::pair<std::string, std::string>> counted_runtimes_;  // with their namespaces
};

// This is kept of one job between reconciles. It counts the job in the census while it lives.
class JobRecord {
 public:
  JobRecord() = default;
  JobRecord(const JobRecord&) = delete;
  JobRecord& operator=(const JobRecord&) = delete;
  ~JobRecord();

  // Returns false once the step was seen, and if it was reached before the first facts.
  bool awaits(JobStep step) const { return (awaited_ & static_cast<std::uint8_t>(step)) != 0; }

 private:
  friend class JobMetrics;
  std::shared_ptr<JobCensus> census_;  // null before the first facts
  const JobCensus::Labels* counted_ = nullptr;
  const JobCensus::Wait* waiting_ = nullptr;
  const std::string* slow_ = nullptr;  // its kind, if it is counted as slow
  kube::Time posted_;
  JobRestarts restarts_;
  JobTimes times_;
  std::uint8_t awaited_ = 0xff;
};

// These are the measurements of one kind. Concurrency: the control loops' thread.
class JobMetrics {
 public:
  struct Kind {
    std::string name;        // "TrainJob"
    bool has_jobset = true;  // if it is false, that step is not measured
    // These are the values of JobFacts::failure, so that each is a series from the start.
    std::span<const std::string_view> failures;
    // If it is false, each restart counts as one after a failure.
    bool counts_disruptions = has_jobset;
    bool counts_processes = false;  // torchrun may start them again in their pods
  };
  // `metrics` and `clock` outlive this.
  JobMetrics(std::shared_ptr<JobCensus> census, kube::ManagerMetrics& metrics,
             const kube::Clock& clock, const Kind& kind);

  // Call this in each reconcile, on the leader. If nothing has changed, it costs a few comparisons.
  // Times are measured from the job's POST. Its creationTimestamp has whole seconds only: if the
  // first facts come within that second, their time is used, else the second's end.
  void update(JobRecord& record, const JobFacts& facts) const;
  // Counts restarts that no status counts.
  void restarted(std::string_view cause, std::int32_t times) const;

 private:
  void begin(JobRecord& record, const JobFacts& facts) const;
  void place(JobRecord& record, const JobFacts& facts) const;
  void observe_steps(JobRecord& record, std::uint8_t steps) const;
  void observe(JobStep step, std::optional<std::chrono::duration<double>> took) const;
  void failed(std::string_view reason, std::uint32_t times) const;
  void count_restarts(std::string_view cause, std::uint32_t times) const;
  void count_times(JobRecord& record, const JobFacts& facts) const;

  const std::shared_ptr<JobCensus> census_;
  kube::ManagerMetrics& metrics_;
  const kube::Clock& clock_;
  const std::string kind_;
};

}  // namespace trainer
