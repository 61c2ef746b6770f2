// Prometheus metrics under the names that dashboards for controllers know; labels are bounded by
// kinds and verbs, never by objects.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kube/client/api_client.hh"

namespace trainer {

// Concurrency: any thread. The only file that knows prometheus-cpp is metrics.cc.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // `controller` is "trainjob" or "jobset"; result is "success", "requeue_after" or "error".
  void reconciled(std::string_view controller, std::string_view result,
                  std::chrono::steady_clock::duration took);
  void queued(std::string_view controller, std::chrono::steady_clock::duration waited);
  void requested(const kube::RequestRecord& record);
  void watched(std::string_view resource, std::string_view what);
  void admitted(std::string_view webhook, bool is_allowed,
                std::chrono::steady_clock::duration took);
  void loop_stalled(std::chrono::steady_clock::duration took);
  void finished(std::string_view kind, std::string_view result);
  void set_leader(bool is_leader);

  // Gauges read when the metrics are: queue depths, objects in the stores, events waiting. Called
  // on the thread that renders.
  void on_collect(std::function<void()> collect);
  void set_queue_depth(std::string_view controller, std::size_t depth);
  void set_objects(std::string_view kind, std::size_t count);
  void set_events_pending(std::size_t pending, std::size_t dropped);

  // The exposition text, version 0.0.4.
  std::string render();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainer
