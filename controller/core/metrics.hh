// Prometheus metrics under the names that dashboards for controllers know; labels are bounded by
// kinds and verbs, never by objects.
#pragma once

#include <chrono>
#include <cstdint>
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

  // `controller` is a loop's name; result is "success", "requeue_after" or "error".
  void reconciled(std::string_view controller, std::string_view result,
                  std::chrono::steady_clock::duration took);
  void queued(std::string_view controller, std::chrono::steady_clock::duration waited);
  void requested(const kube::RequestRecord& record);
  void watched(std::string_view resource, std::string_view what);
  // `outcome` is "allowed", "denied" or "error": the request could not be judged.
  void admitted(std::string_view webhook, std::string_view outcome,
                std::chrono::steady_clock::duration took);
  void loop_stalled(std::chrono::steady_clock::duration took);
  void finished(std::string_view kind, std::string_view result);
  // Of the Lease of this name. A replica that waits for it is told so, too: no series at all would
  // look like a replica that is gone.
  void set_leader(std::string_view lease, bool is_leader);

  // What is read when the metrics are: queues, objects in the stores, events waiting. Called on the
  // thread that renders.
  void on_collect(std::function<void()> collect);
  struct QueueFigures {
    std::size_t depth = 0;
    std::uint64_t adds = 0;  // since the start, as `retries`
    std::uint64_t retries = 0;
  };
  void set_queue(std::string_view controller, const QueueFigures& figures);
  void set_objects(std::string_view kind, std::size_t count);
  void set_events_pending(std::size_t pending, std::size_t dropped);

  // The exposition text, version 0.0.4.
  std::string render();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainer
