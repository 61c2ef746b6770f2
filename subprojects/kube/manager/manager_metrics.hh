// The measurements of a manager. The process decides how they are exposed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kube {

// Labels are bounded by controllers, resources and verbs, never by objects.
class ManagerMetrics {
 public:
  struct QueueFigures {
    std::size_t depth = 0;
    std::uint64_t adds = 0;  // since the start, as `retries`
    std::uint64_t retries = 0;
    std::size_t workers = 0;  // 0 before they are started
    std::size_t active = 0;   // workers that reconcile now
    // These are the seconds that running reconciles have taken so far: of all, and of the one that
    // began first.
    double unfinished_seconds = 0;
    double longest_seconds = 0;
  };
  virtual ~ManagerMetrics() = default;
  // `result` is "success", "requeue_after" or "error".
  virtual void reconciled(std::string_view controller, std::string_view result,
                          std::chrono::steady_clock::duration took) = 0;
  // A reconcile has thrown an exception, which is a bug. (The metric's name is Go's word.)
  virtual void panicked(std::string_view controller) = 0;
  virtual void queued(std::string_view controller, std::chrono::steady_clock::duration waited) = 0;
  virtual void watched(std::string_view resource, std::string_view what) = 0;
  // Sets how many Leases of this name are held although none is expected.
  virtual void set_unexpected_leases(std::string_view name, std::size_t count) = 0;
  // The terminal statuses of so many objects have been written; `result` is "succeeded" or
  // "failed". `by` is 0 to create the series from the start.
  virtual void finished(std::string_view kind, std::string_view result, std::uint32_t by) = 0;
  // Adds to a counter with labels that a kind names itself. `by` is 0 to create the series from the
  // start.
  using Labels = std::vector<std::pair<std::string, std::string>>;
  virtual void count(const std::string& name, const std::string& help, const Labels& labels,
                     std::uint32_t by) = 0;
  // Observes a value in a histogram of times up to a day; nullopt only creates the series from the
  // start.
  virtual void observe(const std::string& name, const std::string& help, const Labels& labels,
                       std::optional<std::chrono::duration<double>> took) = 0;
  virtual void status_refused(std::string_view kind, int http_status) = 0;  // by the API server
  // Manager::collect() calls these.
  virtual void set_queue(std::string_view controller, const QueueFigures& figures) = 0;
  virtual void set_objects(std::string_view kind, std::size_t count) = 0;
  // Sets how long the watches of this resource have received nothing: the longest such time.
  virtual void set_watch_age(std::string_view resource,
                             std::chrono::steady_clock::duration age) = 0;
  virtual void set_events_pending(std::size_t pending, std::size_t dropped) = 0;
};

}  // namespace kube
