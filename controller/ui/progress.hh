// The status of a job has the last progress report. The page keeps those that it has seen, and
// draws them as curves. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/ui/html.hh"
#include "kube/model/json.hh"
#include "kube/model/time.hh"

namespace trainer::ui {

// This is `status.trainerStatus` of an object of any kind.
struct ProgressReport {
  std::optional<std::int64_t> percent;
  std::optional<std::int64_t> remaining_seconds;
  std::vector<std::pair<std::string, std::string>> metrics;
  std::optional<kube::Time> at;  // nullopt: there was no report

  static ProgressReport read(const kube::Json& job);
};

struct Point {
  kube::Time at;
  double value = 0;
};
using Series = std::vector<Point>;  // from the oldest to the newest

// The curves of one job: progress, and metrics that are numbers.
struct Curves {
  Series percent;
  std::map<std::string, Series> metrics;
};

// Where a series is full, every second point is left out. Where there are too many jobs, the one
// whose last report is the oldest is forgotten.
class ProgressHistory {
 public:
  static constexpr std::size_t kMaxPoints = 240;
  static constexpr std::size_t kMaxMetrics = 8;
  static constexpr std::size_t kMaxJobs = 200;

  void add(const std::string& uid, const ProgressReport& report);
  // Returns nothing for a job without reports.
  Curves of(const std::string& uid) const;

 private:
  struct Kept {
    Curves curves;
    kube::Time last;
  };
  std::map<std::string, Kept> jobs_;
};

// Returns how much later `now` is: "5s", "12m", "3h" or "2d".
std::string age_of(kube::Time then, kube::Time now);

// Writes the report and its curves.
void write_progress(Html& html, const ProgressReport& report, const Curves& curves);

}  // namespace trainer::ui
