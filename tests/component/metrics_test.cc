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
