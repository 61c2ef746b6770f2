// Jobs have these measurements: gauges that follow them, times, restarts, failures. Users cannot
// make series without bound.
#include "controller/registration/job_metrics.hh"

#include <algorithm>
#include <deque>
#include <sstream>
#include <utility>

#include "kube/model/json_text.hh"
#include "kube/model/patch.hh"
#include "runtimes/trainjob/measures.hh"
#include "tests/component/idle_manager.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// The value of the series with exactly this name and these labels; -1 where there is none.
double figure_of(Metrics& metrics, const std::string& series) {
  std::istringstream lines(metrics.render());
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(series + " ")) return std::stod(line.substr(series.size() + 1));
  return -1;
}

std::size_t series_in(const std::string& text) {
  std::istringstream lines(text);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) count += line.starts_with('#') ? 0 : 1;
  return count;
}

struct JobMetricsFixture {
  std::shared_ptr<JobCensus> census = std::make_shared<JobCensus>();
  Metrics metrics;
  kube::FakeClock clock;
  JobMetrics jobs{census, metrics, clock, {"TrainJob", true, failure_reasons(), true, true}};

  JobMetricsFixture() { metrics.set_jobs(census); }

  JobFacts facts(std::string_view phase, std::string_view waiting = {}) const {
    JobFacts made;
    made.ns = "team";
    made.runtime = "torch";
    made.phase = phase;
    made.waiting = waiting;
    made.created = created;
    return made;
  }
  double jobs_in(const std::string& phase, const std::string& ns = "team") {
    return figure_of(metrics, "trainer_jobs{kind=\"TrainJob\",namespace=\"" + ns + "\",phase=\"" +
                                  phase + "\",runtime=\"torch\"}");
  }
  double waiting_for(const std::string& reason) {
    return figure_of(metrics, "trainer_jobs_waiting{kind=\"TrainJob\",reason=\"" + reason + "\"}");
  }
  double times_to(const std::string& step, const std::string& what) {
    return figure_of(metrics,
                     "trainer_job_time_to_" + step + "_seconds_" + what + "{kind=\"TrainJob\"}");
  }
  kube::Time created = clock.now().whole_seconds();
};

std::uint8_t bit(JobStep step) {
  return static_cast<std::uint8_t>(step);
}

}  // namespace

TEST_CASE_METHOD(JobMetricsFixture,
                 "a job is counted where its status is, for as long as it is there") {
  {
    JobRecord record;
    jobs.update(record, facts("Pending", "Unschedulable"));
    jobs.update(record, facts("Pending", "Unschedulable"));
    CHECK(jobs_in("Pending") == 1);
    CHECK(waiting_for("Unschedulable") == 1);
    jobs.update(record, facts("Pending", "ImagePullFailed"));
    CHECK(waiting_for("Unschedulable") == -1);
    CHECK(waiting_for("ImagePullFailed") == 1);
    jobs.update(record, facts("Running"));
    CHECK(jobs_in("Pending") == -1);
    CHECK(jobs_in("Running") == 1);
    CHECK(waiting_for("ImagePullFailed") == -1);
  }
  CHECK(jobs_in("Running") == -1);
  CHECK(census->jobs().empty());
  CHECK(census->waits().empty());
}

TEST_CASE_METHOD(JobMetricsFixture, "a job with slow ranks is counted while it has them") {
  const auto slow = [this] {
    return figure_of(metrics, R"(trainer_jobs_with_stragglers{kind="TrainJob"})");
  };
  JobFacts running = facts("Running");
  running.has_stragglers = true;
  {
    JobRecord one;
    JobRecord other;
    jobs.update(one, running);
    jobs.update(other, facts("Running"));
    CHECK(slow() == 1);
    jobs.update(other, running);
    jobs.update(other, running);
    CHECK(slow() == 2);
    jobs.update(one, facts("Running"));
    CHECK(slow() == 1);
  }
  CHECK(slow() == -1);
  TrainJob job;
  job.status.stragglers.emplace_back();
  job.status.phase = "Running";
  CHECK(facts_of(job, nullptr).has_stragglers);
  job.status.phase = "Failed";
  CHECK_FALSE(facts_of(job, nullptr).has_stragglers);
}

TEST_CASE_METHOD(JobMetricsFixture, "what the time of jobs was used for is counted once") {
  const auto took = [this](const std::string& use, const std::string& runtime = "torch") {
    return figure_of(metrics, R"(trainer_job_time_seconds_total{namespace="team",runtime=")" +
                                  runtime + R"(",use=")" + use + R"("})");
  };
  JobFacts running = facts("Running");
  running.times = JobTimes{.productive = 50, .queued = 10};
  JobRecord record;
  // A replica that begins to lead does not count what the one before it has counted.
  jobs.update(record, running);
  CHECK(took("productive") == -1);
  running.times->productive = 80;
  for (int i = 0; i < 2; ++i) jobs.update(record, running);
  CHECK(took("productive") == 30);
  CHECK(took("queued") == 0);
  running.times->stalled = 7;
  jobs.update(record, running);
  CHECK(took("stalled") == 7);
  // Users choose the names.
  for (std::size_t i = 0; i < 2 * JobCensus::kMaxCountedRuntimes; ++i) {
    const std::string runtime = "runtime-" + std::to_string(i);
    running.runtime = runtime;
    ++running.times->productive;
    jobs.update(record, running);
  }
  CHECK(took("productive", "runtime-0") == 1);
  CHECK(took("productive", "other") == JobCensus::kMaxCountedRuntimes + 1);
}

TEST_CASE_METHOD(JobMetricsFixture, "times from the POST, each once") {
  JobRecord record;
  clock.advance(milliseconds(100));
  auto now = facts("Pending", "CreatingPods");
  jobs.update(record, now);  // a tenth after the whole second that the API server has stored
  clock.advance(milliseconds(500));
  now.steps = bit(JobStep::kJobSet);
  jobs.update(record, now);
  clock.advance(milliseconds(1'500));
  now.steps |= bit(JobStep::kFirstPod);
  jobs.update(record, now);
  clock.advance(seconds(8));
  now = facts("Running");
  now.steps = 7;
  jobs.update(record, now);
  jobs.update(record, now);
  CHECK(times_to("jobset", "count") == 1);
  CHECK(times_to("jobset", "sum") == Approx(0.5));
  CHECK(times_to("first_pod", "sum") == Approx(2));
  CHECK(times_to("running", "sum") == Approx(10));
  CHECK(times_to("running", "count") == 1);
}

TEST_CASE_METHOD(JobMetricsFixture,
                 "what a job had reached before this process saw it is not measured") {
  JobRecord record;
  clock.advance(seconds(1'000));
  auto now = facts("Running");
  now.steps = 7;
  jobs.update(record, now);
  jobs.update(record, now);
  for (const char* step : {"jobset", "first_pod", "running"}) CHECK(times_to(step, "count") == 0);
}

TEST_CASE_METHOD(JobMetricsFixture, "nor is how long a job waits that had run before") {
  JobRecord record;
  auto now = facts("Queued", "WaitingForQuota");
  now.steps = bit(JobStep::kJobSet);
  now.has_run = true;
  jobs.update(record, now);
  clock.advance(seconds(1'000));
  now = facts("Running");
  now.steps = 7;
  jobs.update(record, now);
  for (const char* step : {"jobset", "first_pod", "running"}) CHECK(times_to(step, "count") == 0);
}

TEST_CASE_METHOD(JobMetricsFixture, "failures and restarts are counted once, by a bounded cause") {
  const std::string failures =
      R"(trainer_job_failures_total{kind="TrainJob",reason="ReachedMaxRestarts"})";
  const auto restarts = [&](const std::string& cause) {
    return figure_of(metrics,
                     "trainer_job_restarts_total{cause=\"" + cause + "\",kind=\"TrainJob\"}");
  };
  // Each series exists before the event happens, or an alert would miss the first one.
  for (const std::string_view reason : failure_reasons())
    CHECK(figure_of(metrics, "trainer_job_failures_total{kind=\"TrainJob\",reason=\"" +
                                 std::string(reason) + "\"}") == 0);
  for (const char* const result : {"succeeded", "failed"})
    CHECK(figure_of(metrics, "trainer_finished_total{kind=\"TrainJob\",result=\"" +
                                 std::string(result) + "\"}") == 0);
  JobRecord record;
  auto now = facts("Running");
  now.restarts = JobRestarts{5, 1, 2};
  jobs.update(record, now);  // before this process
  for (const char* const cause : {"failure", "disruption", "process"}) CHECK(restarts(cause) == 0);
  now.restarts = JobRestarts{7, 2, 5};
  jobs.update(record, now);
  now.restarts.reset();  // its JobSet is not there for a moment
  jobs.update(record, now);
  now.restarts = JobRestarts{7, 2, 5};
  jobs.update(record, now);
  CHECK(restarts("failure") == 2);
  CHECK(restarts("disruption") == 1);
  CHECK(restarts("process") == 3);
  now = facts("Failed");
  now.failure = "ReachedMaxRestarts";
  jobs.update(record, now);
  jobs.update(record, now);
  CHECK(figure_of(metrics, failures) == 1);
  JobRecord late;  // failed before this process
  jobs.update(late, now);
  CHECK(figure_of(metrics, failures) == 1);
}

TEST_CASE_METHOD(JobMetricsFixture,
                 "beyond the bounds jobs are counted as others, and none is lost") {
  std::deque<JobRecord> records;
  const auto add = [&](const std::string& ns, const std::string& runtime) {
    auto made = facts("Running");
    made.ns = ns;
    made.runtime = runtime;
    jobs.update(records.emplace_back(), made);
  };
  // One user with many runtimes leaves room for other users.
  for (std::size_t i = 0; i < 3 * JobCensus::kMaxSeriesOfNamespace; ++i)
    add("greedy", "r" + std::to_string(i));
  CHECK(census->jobs().size() <= JobCensus::kMaxSeriesOfNamespace + 1);
  add("modest", "torch");
  CHECK(jobs_in("Running", "modest") == 1);
  for (std::size_t i = 0; i < 2 * JobCensus::kMaxSeries; ++i) add("ns" + std::to_string(i), "r");
  CHECK(census->jobs().size() <= JobCensus::kMaxSeries + 1);
  std::size_t counted = 0;
  for (const auto& [labels, count] : census->jobs()) counted += count;
  CHECK(counted == records.size());
  records.clear();
  CHECK(census->jobs().empty());
  add("modest", "torch");  // there is room again
  CHECK(jobs_in("Running", "modest") == 1);
}

TEST_CASE_METHOD(JobMetricsFixture,
                 "counters name so many namespaces, and no more after their jobs are gone") {
  {
    std::deque<JobRecord> records;
    for (std::size_t i = 0; i < JobCensus::kMaxCountedNamespaces; ++i) {
      auto made = facts("Running");
      const std::string ns = "ns" + std::to_string(i);
      made.ns = ns;
      jobs.update(records.emplace_back(), made);
      CHECK(census->label_of_counter(ns) == ns);
    }
    CHECK(census->jobs().size() == JobCensus::kMaxCountedNamespaces);
  }
  REQUIRE(census->jobs().empty());
  CHECK(census->label_of_counter("more") == "other");
  CHECK(census->label_of_counter("ns0") == "ns0");
}

TEST_CASE("1,000 jobs in 50 namespaces make 2,000 series at most, with all kinds") {
  KindOptions options = test::own_jobsets();
  const auto all = v1::frameworks();
  options.configuration.trainingOperator.schemes = {all.begin(), all.end()};
  test::IdleManager idle(options);
  idle.metrics.set_jobs(options.jobs);
  idle.metrics.on_collect([&idle] { idle.manager.collect(); });
  const JobMetrics jobs(options.jobs, idle.metrics, idle.clock,
                        {"TrainJob", true, failure_reasons(), true, true});
  const char* const phases[] = {"Queued", "Pending", "Starting", "Running", "Complete", "Failed"};
  std::deque<JobRecord> records;
  for (std::size_t i = 0; i < 1'000; ++i) {
    const std::string ns = "team-" + std::to_string(i % 50);
    const std::string runtime = "runtime-" + std::to_string(i % 7);
    JobFacts facts;
    facts.ns = ns;
    facts.runtime = runtime;
    facts.phase = phases[i % std::size(phases)];
    facts.waiting = i % 6 < 3 ? "Unschedulable" : "";
    jobs.update(records.emplace_back(), facts);
  }
  // The process has done everything after a while: every kind was reconciled, asked for and
  // admitted.
  for (const auto& [name, made] : idle.made) {
    for (const char* result : {"success", "error", "requeue_after"})
      idle.metrics.reconciled(name, result, milliseconds(1));
    idle.metrics.queued(name, milliseconds(1));
  }
  for (const char* resource : {"trainjobs", "jobsets", "jobs", "pods", "services", "configmaps"}) {
    for (const char* what : {"list", "watch", "gone", "error"})
      idle.metrics.watched(resource, what);
    for (const char* method : {"GET", "POST", "PATCH", "DELETE"}) {
      for (const int code : {200, 409}) {
        kube::RequestRecord record;
        record.method = method;
        record.resource = resource;
        record.status = code;
        idle.metrics.requested(record);
      }
    }
  }
  for (const char* path : {"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h"}) {
    idle.metrics.review_began(path);
    idle.metrics.admitted(path, "allowed", milliseconds(1));
  }
  for (const char* loop : {"control", "serving"}) idle.metrics.loop_lagged(loop, milliseconds(1));
  CHECK(series_in(idle.metrics.render()) <= 2'000);
}

TEST_CASE("a reconcile counts its job by the stored status") {
  const auto job = [](std::string_view phase) {
    return R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","metadata":)"
           R"({"name":"j","namespace":"ns","uid":"u","resourceVersion":")" +
           std::to_string(phase.size()) +
           R"(","creationTimestamp":"2027-01-15T08:00:00Z"},"spec":{"runtimeRef":{"name":"rt"},)"
           R"("managedBy":"kueue.x-k8s.io/multikueue"},"status":{"phase":")" +
           std::string(phase) + R"("}})";
  };
  const KindOptions options = test::own_jobsets();
  test::IdleManager counted(options);
  counted.metrics.set_jobs(options.jobs);
  const auto jobs_in = [&](const std::string& phase) {
    return figure_of(counted.metrics, "trainer_jobs{kind=\"TrainJob\",namespace=\"ns\",phase=\"" +
                                          phase + "\",runtime=\"rt\"}");
  };
  counted.trainjobs().update_if_newer(job("Queued"));
  REQUIRE(counted.reconcile("trainjob_controller", {"ns", "j"}));
  CHECK(jobs_in("Queued") == 1);
  counted.trainjobs().update_if_newer(job("Running"));
  REQUIRE(counted.reconcile("trainjob_controller", {"ns", "j"}));
  CHECK(jobs_in("Queued") == -1);
  CHECK(jobs_in("Running") == 1);
  counted.trainjobs().remove(job("Running"));
  CHECK(jobs_in("Running") == -1);
}

TEST_CASE("a job that cannot be read is counted by what its status says") {
  const KindOptions options = test::own_jobsets();
  test::IdleManager counted(options);
  counted.metrics.set_jobs(options.jobs);
  counted.trainjobs().update_if_newer(
      R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","metadata":{"name":"j",)"
      R"("namespace":"ns","uid":"u","resourceVersion":"1"},"spec":{"runtimeRef":7},)"
      R"("status":{"phase":"Pending"}})");
  static_cast<void>(counted.reconcile("trainjob_controller", {"ns", "j"}));
  const std::string kind = "{kind=\"TrainJob\",";
  CHECK(figure_of(counted.metrics, "trainer_jobs_waiting" + kind + "reason=\"Unreadable\"}") == 1);
  CHECK(figure_of(counted.metrics,
                  "trainer_jobs" + kind + "namespace=\"ns\",phase=\"Pending\",runtime=\"\"}") == 1);
}

// No reconcile follows such a write, and perhaps no event for hours.
TEST_CASE("a reason that a reconcile has written is counted at its end") {
  kube::Json job = *kube::parse_json(
      R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","metadata":
          {"name":"j","namespace":"ns","uid":"u","resourceVersion":"1","generation":1,
           "creationTimestamp":"2027-01-15T08:00:00Z"},
          "spec":{"runtimeRef":{"name":"rt","kind":"TrainingRuntime"}},
          "status":{"phase":"Pending","reason":"CreatingPods","restarts":0}})");
  const KindOptions options = test::own_jobsets();
  test::IdleManager counted(options);
  counted.metrics.set_jobs(options.jobs);
  const auto waiting_for = [&](const std::string& reason) {
    return figure_of(counted.metrics,
                     "trainer_jobs_waiting{kind=\"TrainJob\",reason=\"" + reason + "\"}");
  };
  counted.api.on("PATCH", "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/j/status")
      .reply([&](const kube::ReceivedRequest& request) {
        CHECK(waiting_for("CreatingPods") == 1);
        job = kube::merge_patch(std::move(job), *kube::parse_json(request.body));
        job["metadata"].set("resourceVersion", "2");
        return kube::ScriptedReply(200, kube::print_json(job));
      });
  counted.trainjobs().update_if_newer(kube::print_json(job));
  REQUIRE(counted.reconcile("trainjob_controller", {"ns", "j"}));
  counted.clock.advance(seconds(3));  // such a write waits for others
  REQUIRE(counted.reconcile("trainjob_controller", {"ns", "j"}));
  REQUIRE(job.get("status").get_string("reason") == "RuntimeNotFound");
  CHECK(waiting_for("CreatingPods") == -1);
  CHECK(waiting_for("RuntimeNotFound") == 1);
}

namespace {

// A JobSet of one Job in its stored version `version`.
std::string jobset_text(int version, const std::string& counts, const std::string& more = {}) {
  return R"({"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"j",)"
         R"("namespace":"ns","uid":"u","resourceVersion":")" +
         std::to_string(version) + R"(","creationTimestamp":"2027-01-15T08:00:00Z")" + more +
         R"(},"spec":{"network":{"enableDNSHostnames":false},"managedBy":"other.example.com/c",)"
         R"("replicatedJobs":[{"name":"w","replicas":1,"template":{"spec":{"template":{"spec":)"
         R"({"containers":[{"name":"c","image":"i"}]}}}}}]},"status":{"restarts":0,)"
         R"("replicatedJobsStatus":[{"name":"w",)" +
         counts + "}]}}";
}

const char* const kNothing = R"("ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0)";
const char* const kReady = R"("ready":1,"succeeded":0,"failed":0,"active":1,"suspended":0)";

double jobsets_in(Metrics& metrics, const std::string& phase) {
  return figure_of(metrics, "trainer_jobs{kind=\"JobSet\",namespace=\"ns\",phase=\"" + phase +
                                "\",runtime=\"\"}");
}

}  // namespace

TEST_CASE("a JobSet of a user is counted by its stored status, whichever controller manages it") {
  const KindOptions options = test::own_jobsets();
  test::IdleManager counted(options);
  counted.metrics.set_jobs(options.jobs);
  counted.jobsets().update_if_newer(jobset_text(1, kNothing));
  REQUIRE(counted.reconcile("jobset", {"ns", "j"}));
  CHECK(jobsets_in(counted.metrics, "Pending") == 1);
  CHECK(figure_of(counted.metrics,
                  R"(trainer_jobs_waiting{kind="JobSet",reason="CreatingPods"})") == 1);
  counted.jobsets().update_if_newer(jobset_text(2, kReady));
  REQUIRE(counted.reconcile("jobset", {"ns", "j"}));
  CHECK(jobsets_in(counted.metrics, "Pending") == -1);
  CHECK(jobsets_in(counted.metrics, "Running") == 1);
  CHECK(figure_of(counted.metrics, R"(trainer_job_time_to_running_seconds_count{kind="JobSet"})") ==
        1);
  counted.jobsets().remove(jobset_text(2, kReady));
  CHECK(jobsets_in(counted.metrics, "Running") == -1);
  CHECK(options.jobs->jobs().empty());
}

TEST_CASE("a JobSet of a TrainJob is not counted beside it") {
  const KindOptions options = test::own_jobsets();
  test::IdleManager counted(options);
  counted.metrics.set_jobs(options.jobs);
  counted.jobsets().update_if_newer(jobset_text(
      1, kReady,
      R"(,"ownerReferences":[{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",)"
      R"("name":"j","uid":"owner","controller":true}])"));
  REQUIRE(counted.reconcile("jobset", {"ns", "j"}));
  CHECK(options.jobs->jobs().empty());
}

// The status that a reconcile writes changes counters only, so no reconcile follows.
TEST_CASE("counts that a reconcile of a JobSet has written are counted at its end") {
  kube::Json stored = *kube::parse_json(jobset_text(1, kNothing));
  stored["spec"].erase("managedBy");
  const KindOptions options = test::own_jobsets();
  test::IdleManager counted(options);
  counted.metrics.set_jobs(options.jobs);
  counted.api.on("PATCH", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/ns/jobsets/j/status")
      .reply([&](const kube::ReceivedRequest& request) {
        CHECK(jobsets_in(counted.metrics, "Pending") == 1);
        stored = kube::merge_patch(std::move(stored), *kube::parse_json(request.body));
        stored["metadata"].set("resourceVersion", "2");
        return kube::ScriptedReply(200, kube::print_json(stored));
      });
  counted.jobsets().update_if_newer(kube::print_json(stored));
  counted.jobs().update_if_newer(
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j-w-0","namespace":"ns",)"
      R"("uid":"job","resourceVersion":"1","labels":{"jobset.sigs.k8s.io/jobset-name":"j",)"
      R"("jobset.sigs.k8s.io/replicatedjob-name":"w","jobset.sigs.k8s.io/job-index":"0",)"
      R"("jobset.sigs.k8s.io/restart-attempt":"0"},"ownerReferences":[{"apiVersion":)"
      R"("jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"j","uid":"u","controller":true}]},)"
      R"("spec":{"parallelism":1,"completions":1},"status":{"active":1,"ready":1}})");
  REQUIRE(counted.reconcile("jobset", {"ns", "j"}));
  counted.clock.advance(seconds(3));  // such a write waits for others
  REQUIRE(counted.reconcile("jobset", {"ns", "j"}));
  REQUIRE(stored.get("metadata").get_string("resourceVersion") == "2");
  CHECK(jobsets_in(counted.metrics, "Running") == 1);
}
