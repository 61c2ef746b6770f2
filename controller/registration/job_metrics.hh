// Metrics of jobs of all kinds: how many there are in each phase, and how long they take until they
// run. The controller of a kind keeps a JobRecord for each of its jobs.
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

#include "kube/client/clock.hh"
#include "kube/manager/manager_metrics.hh"
#include "kube/model/time.hh"

namespace trainer {

// How many jobs of all kinds there are by phase, namespace and runtime, and how many wait by
// reason. A series is there while it counts a job. Users choose the names of namespaces and
// runtimes: beyond the bounds, a job that would need a new series is counted with `other` as its
// runtime, or as its runtime and its namespace.
// Concurrency: one thread.
class JobCensus {
 public:
  static constexpr std::size_t kMaxSeries = 700;
  static constexpr std::size_t kMaxSeriesOfNamespace = 100;
  static constexpr std::size_t kMaxCountedNamespaces = 200;
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

  const Jobs& jobs() const { return jobs_; }
  const Waits& waits() const { return waits_; }

  // Counts one job more. The result is valid until leave().
  const Labels& enter(Labels labels);
  void leave(const Labels& labels);
  const Wait& enter(Wait wait);
  void leave(const Wait& wait);
  // The label of a counter, whose series stays after its jobs and their namespace are gone: `ns`
  // for the first kMaxCountedNamespaces of this process, `other` for the rest.
  std::string_view label_of_counter(const std::string& ns);

 private:
  bool is_full(const Labels& labels) const;

  Jobs jobs_;
  Waits waits_;
  std::map<std::string, std::size_t, std::less<>> of_namespaces_;  // series
  std::set<std::string> counted_namespaces_;
};

// What happens to a job until it runs, as bits: its JobSet exists, its first pod exists, it runs.
// The time of each is measured.
enum class JobStep : std::uint8_t { kJobSet = 1, kFirstPod = 2, kRunning = 4 };

// The restarts of a job so far: those that count towards its limit, and those that do not, such as
// after disruptions.
struct JobRestarts {
  std::int32_t failures = 0;
  std::int32_t disruptions = 0;
};

// What one job's stored status says, and what exists of it.
struct JobFacts {
  std::string_view ns;
  std::string_view runtime;
  std::string_view phase;
  std::string_view waiting;  // why it neither runs nor has ended; "" for one that does. Bounded
  std::string_view failure;  // why it has failed; "" for one that has not. Bounded
  kube::Time created;
  std::uint8_t steps = 0;  // of JobStep, that it has reached
  // In the record's first facts: it has run before, so that no time until it runs is measured.
  bool has_run = false;
  // nullopt: not known now. What was before the record's first facts is not counted.
  std::optional<JobRestarts> restarts;

  void reach(JobStep step, bool is_reached) {
    if (is_reached) steps |= static_cast<std::uint8_t>(step);
  }
};

// What is kept of one job between reconciles. Counts it in the census while it lives.
class JobRecord {
 public:
  JobRecord() = default;
  JobRecord(const JobRecord&) = delete;
  JobRecord& operator=(const JobRecord&) = delete;
  ~JobRecord();

  // False once the step was seen; also where it was reached before the first facts.
  bool awaits(JobStep step) const { return (awaited_ & static_cast<std::uint8_t>(step)) != 0; }

 private:
  friend class JobMetrics;
  std::shared_ptr<JobCensus> census_;  // null before the first facts
  const JobCensus::Labels* counted_ = nullptr;
  const JobCensus::Wait* waiting_ = nullptr;
  kube::Time posted_;
  JobRestarts restarts_;
  std::uint8_t awaited_ = 0xff;
};

// The measurements of one kind. Concurrency: the control loops' thread.
class JobMetrics {
 public:
  struct Kind {
    std::string name;        // "TrainJob"
    bool has_jobset = true;  // else that step is not measured
    // The values of JobFacts::failure, so that each is a series from the start.
    std::span<const std::string_view> failures;
    bool counts_disruptions = has_jobset;  // else each restart counts as one after a failure
  };
  // `metrics` and `clock` outlive this.
  JobMetrics(std::shared_ptr<JobCensus> census, kube::ManagerMetrics& metrics,
             const kube::Clock& clock, const Kind& kind);

  // Call in each reconcile, on the leader. Where nothing has changed it costs a few comparisons.
  // Times are measured from the job's POST. Its creationTimestamp has whole seconds only: where the
  // first facts come within that second, their time is taken, else the second's end.
  void update(JobRecord& record, const JobFacts& facts) const;
  // Restarts that no status counts.
  void restarted(std::string_view cause, std::int32_t times) const;

 private:
  void begin(JobRecord& record, const JobFacts& facts) const;
  void place(JobRecord& record, const JobFacts& facts) const;
  void observe_steps(JobRecord& record, std::uint8_t steps) const;
  void observe(JobStep step, std::optional<std::chrono::duration<double>> took) const;
  void failed(std::string_view reason, std::uint32_t times) const;
  void count_restarts(std::string_view cause, std::uint32_t times) const;

  const std::shared_ptr<JobCensus> census_;
  kube::ManagerMetrics& metrics_;
  const kube::Clock& clock_;
  const std::string kind_;
};

}  // namespace trainer
