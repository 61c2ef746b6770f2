// The measurements of a manager, as lines that a test compares.
#pragma once

#include <string>
#include <vector>

#include "kube/manager/manager_metrics.hh"

namespace kube::test {

struct RecordedMetrics final : ManagerMetrics {
  using Duration = std::chrono::steady_clock::duration;
  std::vector<std::string> lines;  // "WHAT LABEL..." of each call that a test asks about

  void reconciled(std::string_view controller, std::string_view result, Duration) override {
    add("reconciled", controller, result);
  }
  void panicked(std::string_view controller) override { add("panicked", controller, ""); }
  void finished(std::string_view kind, std::string_view result, std::uint32_t by) override {
    for (std::uint32_t i = 0; i < by; ++i) add("finished", kind, result);
  }
  void status_refused(std::string_view kind, int http_status) override {
    add("status refused", kind, std::to_string(http_status));
  }

  void queued(std::string_view, Duration) override {}
  void watched(std::string_view, std::string_view) override {}
  void set_unexpected_leases(std::string_view, std::size_t) override {}
  void count(const std::string&, const std::string&, const Labels&, std::uint32_t) override {}
  void observe(const std::string&, const std::string&, const Labels&,
               std::optional<std::chrono::duration<double>>) override {}
  void set_queue(std::string_view, const QueueFigures&) override {}
  void set_objects(std::string_view, std::size_t) override {}
  void set_watch_age(std::string_view, Duration) override {}
  void set_events_pending(std::size_t, std::size_t) override {}

 private:
  void add(std::string line, std::string_view first, std::string_view second) {
    line.append(" ").append(first);
    if (!second.empty()) line.append(" ").append(second);
    lines.push_back(std::move(line));
  }
};

}  // namespace kube::test
