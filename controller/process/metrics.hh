// These are Prometheus metrics under the names that dashboards for controllers know. Labels are
// bounded by kinds and verbs, never by objects. Those of jobs have the namespace too, within the
// bounds of JobCensus.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controller/registration/job_metrics.hh"
#include "kube/client/api_client.hh"
#include "kube/manager/manager_metrics.hh"
#include "kube/model/time.hh"

namespace trainer {

// Concurrency: any thread. Only metrics.cc and metric_families.cc know prometheus-cpp.
class Metrics final : public kube::ManagerMetrics {
 public:
  Metrics();
  ~Metrics() override;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void reconciled(std::string_view controller, std::string_view result,
                  std::chrono::steady_clock::duration took) override;
  void panicked(std::string_view controller) override;
  void queued(std::string_view controller, std::chrono::steady_clock::duration waited) override;
  void watched(std::string_view resource, std::string_view what) override;
  void set_unexpected_leases(std::string_view name, std::size_t count) override;
  void finished(std::string_view kind, std::string_view result, std::uint32_t by) override;
  void count(const std::string& name, const std::string& help, const Labels& labels,
             std::uint32_t by) override;
  void observe(const std::string& name, const std::string& help, const Labels& labels,
               std::optional<std::chrono::duration<double>> took) override;
  void status_refused(std::string_view kind, int http_status) override;
  void set_queue(std::string_view controller, const QueueFigures& figures) override;
  void set_objects(std::string_view kind, std::size_t count) override;
  void set_watch_age(std::string_view resource, std::chrono::steady_clock::duration age) override;
  void set_events_pending(std::size_t pending, std::size_t dropped) override;

  void requested(const kube::RequestRecord& record);
  void review_began(std::string_view webhook);
  // A review has ended. `outcome` is "allowed", "denied", "error" if it could not be evaluated, or
  // "panic" if an exception ended it.
  void admitted(std::string_view webhook, std::string_view outcome,
                std::chrono::steady_clock::duration took);
  void serving_failed();
  // Certificates were read and are served from now on, or could not be used.
  void certificates_read(bool are_used);
  // `certificate` is "server" or "ca".
  void set_certificate_expiry(std::string_view certificate, kube::Time expiry);
  void loop_stalled(std::string_view loop);
  // Records the delay of a loop ("control", "serving"): once a second, from any thread.
  void loop_lagged(std::string_view loop, std::chrono::steady_clock::duration lag);
  // A connection was closed to make room for others.
  void connection_evicted(std::string_view server);
  // `lease` is its name. A replica that waits for the Lease has a series too: without one it would
  // seem to be a replica that does not run.
  void set_leader(std::string_view lease, bool is_leader);
  // `collect` is called by render(), before it renders: it sets queues, cached objects and events.
  void on_collect(std::function<void()> collect);
  // Sets the jobs that render() shows from now on.
  void set_jobs(std::shared_ptr<const JobCensus> jobs);

  // Returns the exposition text, version 0.0.4.
  std::string render();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainer
