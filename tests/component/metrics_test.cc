// The metrics that dashboards and alerts read, by their names.
#include "controller/process/metrics.hh"

#include <optional>
#include <set>
#include <sstream>

#include "tests/component/idle_manager.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using std::chrono::milliseconds;

namespace {

std::string labels_of_queue(const std::string& name) {
  return "{controller=\"" + name + "\",name=\"" + name + "\"}";
}

// The value of the series with exactly this name and these labels; nullopt where there is none.
std::optional<double> value_of(Metrics& metrics, const std::string& series) {
  std::istringstream lines(metrics.render());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(series + " ")) return std::stod(line.substr(series.size() + 1));
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a request that could not be evaluated is not counted as denied") {
  Metrics metrics;
  for (const char* outcome : {"allowed", "allowed", "denied", "error"}) {
    metrics.review_began("/validate");
    metrics.admitted("/validate", outcome, milliseconds(1));
  }
  const std::string name = "controller_runtime_webhook_requests_total";
  CHECK(value_of(metrics, name + R"({code="200",webhook="/validate"})") == 2);
  CHECK(value_of(metrics, name + R"({code="403",webhook="/validate"})") == 1);
  CHECK(value_of(metrics, name + R"({code="500",webhook="/validate"})") == 1);
}

TEST_CASE("reviews in flight, and those that an exception has ended") {
  Metrics metrics;
  const std::string in_flight =
      R"(controller_runtime_webhook_requests_in_flight{webhook="/validate"})";
  CHECK(value_of(metrics, "controller_runtime_webhook_panics_total") == 0);
  metrics.review_began("/validate");
  metrics.review_began("/validate");
  CHECK(value_of(metrics, in_flight) == 2);
  metrics.admitted("/validate", "allowed", milliseconds(1));
  CHECK(value_of(metrics, in_flight) == 1);
  CHECK(value_of(metrics, "controller_runtime_webhook_panics_total") == 0);
  metrics.admitted("/validate", "panic", milliseconds(1));
  CHECK(value_of(metrics, in_flight) == 0);
  CHECK(value_of(metrics, "controller_runtime_webhook_panics_total") == 1);
  CHECK(value_of(metrics,
                 R"(controller_runtime_webhook_requests_total{code="500",webhook="/validate"})") ==
        1);
}

TEST_CASE("a status that was refused is counted by kind and code") {
  Metrics metrics;
  metrics.status_refused("JobSet", 422);
  CHECK(value_of(metrics, R"(trainer_status_refused_total{code="422",kind="JobSet"})") == 1);
}

TEST_CASE("a queue's totals are the same, however often they are read") {
  Metrics metrics;
  for (const std::uint64_t adds : {3U, 3U, 8U}) {
    metrics.set_queue("loop", {2, adds, adds / 2});
    CHECK(value_of(metrics, "workqueue_adds_total" + labels_of_queue("loop")) ==
          static_cast<double>(adds));
  }
  CHECK(value_of(metrics, "workqueue_depth" + labels_of_queue("loop")) == 2);
  CHECK(value_of(metrics, "workqueue_retries_total" + labels_of_queue("loop")) == 4);
}

TEST_CASE("the processor time of the process only grows") {
  Metrics metrics;
  const auto before = value_of(metrics, "process_cpu_seconds_total");
  REQUIRE(before);
  CHECK(*before > 0);
  CHECK(*value_of(metrics, "process_cpu_seconds_total") >= *before);
}

TEST_CASE_METHOD(test::IdleManager, "queues and Lease have their names before this replica leads") {
  metrics.set_leader("mine", false);
  metrics.on_collect([this] { manager.collect(); });
  CHECK(value_of(metrics, R"(leader_election_master_status{name="mine"})") == 0);
  for (const std::string controller : {"trainjob_controller", "jobset", "pod"}) {
    CAPTURE(controller);
    CHECK(value_of(metrics, "workqueue_depth" + labels_of_queue(controller)) == 0);
    CHECK(value_of(metrics, "workqueue_adds_total" + labels_of_queue(controller)) == 0);
  }
}

TEST_CASE("workers and what they do now") {
  Metrics metrics;
  kube::ManagerMetrics::QueueFigures figures;
  figures.workers = 32;
  figures.active = 2;
  figures.unfinished_seconds = 5;
  figures.longest_seconds = 3;
  metrics.set_queue("loop", figures);
  metrics.reconciled("loop", "success", milliseconds(20));
  const std::string controller = R"({controller="loop"})";
  CHECK(value_of(metrics, "controller_runtime_max_concurrent_reconciles" + controller) == 32);
  CHECK(value_of(metrics, "controller_runtime_active_workers" + controller) == 2);
  CHECK(value_of(metrics, "workqueue_unfinished_work_seconds" + labels_of_queue("loop")) == 5);
  CHECK(value_of(metrics,
                 "workqueue_longest_running_processor_seconds" + labels_of_queue("loop")) == 3);
  CHECK(value_of(metrics, "workqueue_work_duration_seconds_count" + labels_of_queue("loop")) == 1);
  // The series exists before anything happens: a counter that appears with 1 has not increased.
  for (const char* name :
       {"controller_runtime_reconcile_errors_total", "controller_runtime_reconcile_panics_total",
        "controller_runtime_terminal_reconcile_errors_total"})
    CHECK(value_of(metrics, name + controller) == 0);
  metrics.panicked("loop");
  CHECK(value_of(metrics, "controller_runtime_reconcile_panics_total" + controller) == 1);
}

TEST_CASE("certificates, watches, the build and the process") {
  Metrics metrics;
  metrics.certificates_read(true);
  metrics.certificates_read(false);
  metrics.set_certificate_expiry("ca", kube::Time::from_seconds(1'800'000'000));
  metrics.set_watch_age("pods", milliseconds(1'500));
  CHECK(value_of(metrics, "certwatcher_read_certificate_total") == 1);
  CHECK(value_of(metrics, "certwatcher_read_certificate_errors_total") == 1);
  CHECK(value_of(metrics, R"(trainer_certificate_expiry_timestamp_seconds{certificate="ca"})") ==
        1'800'000'000);
  CHECK(value_of(metrics, R"(trainer_watch_age_seconds{resource="pods"})") == 1.5);
  CHECK(metrics.render().find("trainer_build_info{compiler=\"") != std::string::npos);
  for (const char* name : {"process_resident_memory_bytes", "process_virtual_memory_bytes",
                           "process_open_fds", "process_max_fds", "process_start_time_seconds"}) {
    CAPTURE(name);
    CHECK(value_of(metrics, name).value_or(0) > 0);
  }
}

// Dashboards, alerts and docs/operators/monitor.md use these names. A name that is removed is a
// change for users.
TEST_CASE("the families of a process that has done everything once") {
  KindOptions options = test::own_jobsets();
  options.configuration.trainingOperator.schemes = {v1::frameworks().front()};
  test::IdleManager idle(options);
  Metrics& metrics = idle.metrics;
  metrics.set_jobs(options.jobs);
  metrics.on_collect([&idle] { idle.manager.collect(); });
  const auto& job = options.jobs->enter(JobCensus::Labels{"TrainJob", "Running", "ns", "rt"});
  const auto& wait = options.jobs->enter(JobCensus::Wait{"TrainJob", "CreatingPods"});
  options.jobs->enter_slow("TrainJob");
  metrics.reconciled("jobset", "error", milliseconds(1));
  metrics.queued("jobset", milliseconds(1));
  metrics.watched("jobsets", "list");
  metrics.set_watch_age("jobsets", milliseconds(1));
  metrics.set_unexpected_leases("mine", 0);
  metrics.finished("TrainJob", "failed", 1);
  metrics.status_refused("JobSet", 422);
  metrics.requested(kube::RequestRecord());
  metrics.review_began("/validate");
  metrics.admitted("/validate", "allowed", milliseconds(1));
  metrics.serving_failed();
  metrics.certificates_read(true);
  metrics.set_certificate_expiry("ca", kube::Time());
  metrics.loop_stalled("control");
  metrics.loop_lagged("control", milliseconds(1));
  metrics.connection_evicted("probes");
  metrics.set_leader("mine", true);
  std::istringstream lines(metrics.render());
  options.jobs->leave(job);
  options.jobs->leave(wait);
  options.jobs->leave_slow("TrainJob");
  std::set<std::string> names;
  const std::string begin = "# TYPE ";
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(begin))
      names.insert(line.substr(begin.size(), line.rfind(' ') - begin.size()));
  names.erase("trainer_memory_limit_bytes");  // only in a container with a limit
  const std::set<std::string> wanted{
      "certwatcher_read_certificate_errors_total",
      "certwatcher_read_certificate_total",
      "controller_runtime_active_workers",
      "controller_runtime_max_concurrent_reconciles",
      "controller_runtime_reconcile_errors_total",
      "controller_runtime_reconcile_panics_total",
      "controller_runtime_reconcile_time_seconds",
      "controller_runtime_reconcile_total",
      "controller_runtime_terminal_reconcile_errors_total",
      "controller_runtime_webhook_latency_seconds",
      "controller_runtime_webhook_panics_total",
      "controller_runtime_webhook_requests_in_flight",
      "controller_runtime_webhook_requests_total",
      "jobset_completed_total",
      "jobset_failed_total",
      "leader_election_master_status",
      "process_cpu_seconds_total",
      "process_max_fds",
      "process_open_fds",
      "process_resident_memory_bytes",
      "process_start_time_seconds",
      "process_virtual_memory_bytes",
      "rest_client_request_duration_seconds",
      "rest_client_requests_total",
      "trainer_build_info",
      "trainer_certificate_expiry_timestamp_seconds",
      "trainer_connections_evicted_total",
      "trainer_events",
      "trainer_finished_total",
      "trainer_job_failures_total",
      "trainer_job_restarts_total",
      "trainer_job_time_to_first_pod_seconds",
      "trainer_job_time_to_jobset_seconds",
      "trainer_job_time_to_running_seconds",
      "trainer_jobs",
      "trainer_jobs_waiting",
      "trainer_jobs_with_stragglers",
      "trainer_loop_lag_seconds",
      "trainer_loop_stalls_total",
      "trainer_serving_exceptions_total",
      "trainer_status_refused_total",
      "trainer_store_objects",
      "trainer_unexpected_leases",
      "trainer_watch_age_seconds",
      "trainer_watch_notes_total",
      "workqueue_adds_total",
      "workqueue_depth",
      "workqueue_longest_running_processor_seconds",
      "workqueue_queue_duration_seconds",
      "workqueue_retries_total",
      "workqueue_unfinished_work_seconds",
      "workqueue_work_duration_seconds",
  };
  CHECK(names == wanted);
}
