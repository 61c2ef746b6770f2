// These tests check which pods count as nodes, and how they are counted.
#include "runtimes/trainjob/nodes.hh"

#include "api/api.hh"
#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::test {
namespace {

JobSet jobset_of(std::string_view spec) {
  auto jobset = read_jobset(
      kube::Json::object({{"metadata", yaml("{name: j, uid: jobset-uid}")}, {"spec", yaml(spec)}}));
  if (!jobset) FAIL(kube::to_string(jobset.error()));
  return std::move(*jobset);
}

std::string replicated(std::string_view name, std::string_view ancestor, int pods,
                       int replicas = 1) {
  std::string text =
      "{name: " + std::string(name) + ", replicas: " + std::to_string(replicas) + ", template: {";
  if (!ancestor.empty())
    text += "metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: " +
            std::string(ancestor) + "}}, ";
  return text + "spec: {parallelism: " + std::to_string(pods) + "}}}";
}

PodView pod(std::string_view job, int index, std::string_view phase, std::string_view machine = "",
            bool is_ready = false) {
  PodView view;
  view.name = std::string(job) + "-" + std::to_string(index);
  view.replicated_job = job;
  view.job_index = "0";
  view.index = index;
  view.phase = phase;
  view.node_name = machine;
  view.is_ready = is_ready;
  return view;
}

TEST_CASE("which jobs are nodes") {
  struct Row {
    const char* about;
    std::string jobs;
    std::int32_t known;
    std::int32_t expected;
  };
  const Row row =
      GENERATE(Row{"one job", replicated("node", "trainer", 4), 0, 4},
               Row{"initializers do not count",
                   replicated("dataset-initializer", "dataset-initializer", 1) + "," +
                       replicated("node", "trainer", 4),
                   0, 4},
               Row{"a launcher that only launches",
                   replicated("node", "", 3) + "," + replicated("launcher", "trainer", 1), 3, 3},
               Row{"a launcher that trains",
                   replicated("node", "", 3) + "," + replicated("launcher", "trainer", 1), 4, 4},
               Row{"a launcher of whom nothing is known",
                   replicated("node", "", 3) + "," + replicated("launcher", "trainer", 1), 0, 3},
               Row{"a trainer of another name", replicated("worker", "trainer", 2, 3), 0, 6},
               Row{"no marks at all",
                   replicated("model-initializer", "model-initializer", 1) + "," +
                       replicated("a", "", 2) + "," + replicated("b", "", 1),
                   0, 3},
               Row{"nothing", "", 0, 0});
  INFO(row.about);
  CHECK(survey_pods(jobset_of("{replicatedJobs: [" + row.jobs + "]}"), {}, row.known).nodes.total ==
        row.expected);
}

TEST_CASE("nodes are counted the same before there is a JobSet") {
  PodSet node;
  node.name = "node";
  node.count = 3;
  PodSet launcher;
  launcher.name = "launcher";
  launcher.ancestor = "trainer";
  Runtime runtime;
  CHECK(count_nodes({node, launcher}, runtime) == 4);
  runtime.spec.mlPolicy.emplace().mpi.emplace();
  CHECK(count_nodes({node, launcher}, runtime) == 3);
  CHECK(count_nodes({launcher}, runtime) == 1);
  runtime.spec.mlPolicy->mpi->runLauncherAsNode = true;
  CHECK(count_nodes({node, launcher}, runtime) == 4);
  PodSet other;
  other.name = "other";
  other.count = 2;
  CHECK(count_nodes({other}, Runtime()) == 2);
}

TEST_CASE("of several pods of one place the furthest counts") {
  const JobSet jobset = jobset_of("{replicatedJobs: [" + replicated("node", "trainer", 4) + "]}");
  PodView failed = pod("node", 0, "Failed", "m");
  PodView next = pod("node", 0, "Pending");
  PodView running = pod("node", 1, "Running", "m", true);
  PodView done = pod("node", 2, "Succeeded", "m");
  PodView lost = pod("node", 3, "Failed", "m");
  PodView stray = pod("ghost", 3, "Running", "m", true);
  const PodFacts facts = survey_pods(jobset, {&failed, &next, &running, &done, &lost, &stray}, 0);
  CHECK(facts.nodes.created == 3);
  CHECK(facts.nodes.scheduled == 2);
  CHECK(facts.nodes.running == 2);
  CHECK(facts.nodes.ready == 2);
  CHECK(facts.nodes.failed == 1);
  CHECK(facts.nodes.replaced == 1);
}

TEST_CASE("pods of another attempt, of a former JobSet and those on their way out do not count") {
  JobSet jobset = jobset_of("{replicatedJobs: [" + replicated("node", "trainer", 2) + "]}");
  jobset.status.restarts = 1;
  PodView old = pod("node", 0, "Running", "m", true);
  PodView former = pod("node", 1, "Running", "m", true);
  former.attempt = 1;
  former.jobset_uid = "former";
  PodView leaving = pod("node", 0, "Running", "m", true);
  leaving.attempt = 1;
  leaving.is_deleting = true;
  // The pod was evicted, and ended well: it is no node of the next admission.
  PodView evicted = pod("node", 1, "Succeeded", "m");
  evicted.attempt = 1;
  evicted.is_deleting = true;
  CHECK(survey_pods(jobset, {&old, &former, &leaving, &evicted}, 0).nodes.created == 0);
  jobset.spec.failurePolicy.emplace().restartStrategy = "InPlaceRestart";
  CHECK(survey_pods(jobset, {&old}, 0).nodes.ready == 1);
}

TEST_CASE("pods without an index have a place each") {
  const JobSet jobset = jobset_of("{replicatedJobs: [" + replicated("node", "trainer", 2) + "]}");
  PodView a = pod("node", 0, "Running", "m");
  PodView b = pod("node", 0, "Running", "m");
  a.index.reset();
  b.index.reset();
  CHECK(survey_pods(jobset, {&a, &b}, 0).nodes.running == 2);
}

TEST_CASE("a step that runs before others is found") {
  struct Row {
    const char* about;
    const char* depends_on;
    const char* phase;
    bool is_ready;
    const char* expected;
  };
  const Row row = GENERATE(
      Row{"none", "[]", "Running", true, ""},
      Row{"until it ends", "[{name: prepare, status: Complete}]", "Running", true, "prepare"},
      Row{"it has ended", "[{name: prepare, status: Complete}]", "Succeeded", false, ""},
      Row{"it does not run yet", "[{name: prepare, status: Complete}]", "Pending", false, ""},
      Row{"until it is ready", "[{name: prepare, status: Ready}]", "Running", false, "prepare"},
      Row{"it is ready", "[{name: prepare, status: Ready}]", "Running", true, ""},
      Row{"both, one until it ends",
          "[{name: prepare, status: Complete}, {name: prepare, status: Ready}]", "Running", true,
          "prepare"},
      Row{"of another name", "[{name: other, status: Complete}]", "Running", true, ""});
  INFO(row.about);
  JobSet jobset = jobset_of("{replicatedJobs: [" + replicated("prepare", "", 1) + "," +
                            replicated("node", "trainer", 2) + "]}");
  const JobSet node = jobset_of(std::string("{replicatedJobs: [{name: node, dependsOn: ") +
                                row.depends_on + ", template: {}}]}");
  jobset.spec.replicatedJobs[1].dependsOn = node.spec.replicatedJobs[0].dependsOn;
  PodView step = pod("prepare", 0, row.phase, "m", row.is_ready);
  CHECK(survey_pods(jobset, {&step}, 0).earlier_step == row.expected);
}

TEST_CASE("only steps for which nodes wait are found, also in a chain") {
  JobSet jobset = jobset_of("{replicatedJobs: [" + replicated("first", "", 1) + "," +
                            replicated("second", "", 1) + "," + replicated("node", "trainer", 2) +
                            "," + replicated("report", "", 1) + "]}");
  auto& jobs = jobset.spec.replicatedJobs;
  PodView step = pod("first", 0, "Running", "m", true);
  jobs[3].dependsOn.push_back({"first", "Complete", {}});
  CHECK(survey_pods(jobset, {&step}, 0).earlier_step.empty());
  jobs[1].dependsOn.push_back({"first", "Complete", {}});
  CHECK(survey_pods(jobset, {&step}, 0).earlier_step.empty());
  jobs[2].dependsOn.push_back({"second", "Complete", {}});
  CHECK(survey_pods(jobset, {&step}, 0).earlier_step == "first");
}

TEST_CASE("a job starts with the first of its pods that runs, or has ended before it was seen") {
  World world;
  world.settle();
  const auto put = [&world](std::int32_t index, const char* phase) {
    PodSpec spec;
    spec.name = "j-node-0-" + std::to_string(index) + "-x";
    spec.index = index;
    spec.phase = phase;
    spec.node_name = "m";
    world.put_pod(spec);
    world.advance(std::chrono::seconds(1));
    world.settle();
  };
  put(1, "Pending");
  CHECK_FALSE(world.status().find("startTime"));
  SECTION("it runs") {
    put(0, "Running");
  }
  SECTION("it has succeeded") {
    put(0, "Succeeded");
  }
  SECTION("it has failed") {
    put(0, "Failed");
  }
  const std::string start = world.now.to_string();
  CHECK(world.status().get_string("startTime") == start);
  put(1, "Running");
  CHECK(world.status().get_string("startTime") == start);
}

}  // namespace
}  // namespace trainer::test
