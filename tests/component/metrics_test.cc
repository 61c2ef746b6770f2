// The metrics that dashboards and alerts read, by their names.
#include "controller/process/metrics.hh"

#include <optional>
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
    metrics.admitted("/validate", outcome, milliseconds(1));
  }
  const std::string name = "controller_runtime_webhook_requests_total";
  CHECK(value_of(metrics, name + R"({code="200",webhook="/validate"})") == 2);
  CHECK(value_of(metrics, name + R"({code="403",webhook="/validate"})") == 1);
  CHECK(value_of(metrics, name + R"({code="500",webhook="/validate"})") == 1);
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
  // There before anything happens: a counter that appears with 1 has not increased.
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
