// Suspend and resume, and the order of starting: rows C35 to C37, C46 to C50 and C52 to C57.
#include "tests/unit/jobset/world.hh"

using namespace trainer::jobset;
using namespace trainer::jobset::test;
using kube::Json;

namespace {

constexpr const char* kInOrder = "  startupPolicy: {startupPolicyOrder: InOrder}\n";

// a x1, b x1 and c x3, with these dependencies of b and c.
World chain(const char* of_b, const char* of_c, const char* more = "") {
  const std::string job = R"(
    template: {spec: {parallelism: 1, completions: 1, template: {spec: {restartPolicy: Never, containers: []}}}}
)";
  const auto depends = [](const char* list) {
    return *list ? std::string("    dependsOn: ") + list + "\n" : std::string();
  };
  return World("apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s}\nspec:\n" +
               std::string(more) + "  replicatedJobs:\n  - name: a" + job + "  - name: b" + job +
               depends(of_b) + "  - name: c\n    replicas: 3" + job + depends(of_c));
}

Json& pod_template_of(World& world, std::size_t replicated_job) {
  return world.jobset()["spec"]["replicatedJobs"]
      .as_array()[replicated_job]["template"]["spec"]["template"];
}

void edit_template(World& world) {
  for (std::size_t i = 0; i < 2; ++i) {
    Json& pod_template = pod_template_of(world, i);
    pod_template["metadata"] = Json::object(
        {{"labels", Json::object({{"l", "1"}})}, {"annotations", Json::object({{"n", "2"}})}});
    pod_template["spec"]["nodeSelector"] = Json::object({{"pool", "x"}});
    pod_template["spec"]["tolerations"] =
        Json::array({Json::object({{"key", "gpu"}, {"operator", "Exists"}})});
    pod_template["spec"]["schedulingGates"] = Json::array({Json::object({{"name", "g"}})});
  }
}

void check_edited(const Json& job) {
  const Json& pod_template = *job.find_path({"spec", "template"});
  CHECK(*pod_template.find_path({"metadata", "labels", "l"}) == "1");
  CHECK(*pod_template.find_path({"metadata", "annotations", "n"}) == "2");
  CHECK(*pod_template.find_path({"spec", "nodeSelector"}) == Json::object({{"pool", "x"}}));
  CHECK(pod_template.find("spec")->get_array("tolerations").size() == 1);
  CHECK(pod_template.find("spec")->get_array("schedulingGates").size() == 1);
  // Members that the JobSet does not have stay.
  CHECK(pod_template.find_path({"metadata", "labels", "jobset.sigs.k8s.io/job-key"}));
}

}  // namespace

TEST_CASE("C35, C46, C47: suspended at birth means no Job and no Service, but counted") {
  for (const char* more : {"", kInOrder}) {
    World world(test_js(std::string("  suspend: true\n") + more));
    const auto first = world.context();
    CHECK(first.actions.empty());
    world.settle();
    CHECK(world.jobs().empty());
    CHECK(world.services.empty());
    CHECK(world.condition("Suspended") == "True");
    CHECK(world.condition_reason("Suspended") == "SuspendedJobs");
    CHECK(world.counters("replicated-job-a") ==
          "ready 0 succeeded 0 failed 0 active 0 suspended 1");
    CHECK(world.counters("replicated-job-b") ==
          "ready 0 succeeded 0 failed 0 active 0 suspended 3");
    CHECK(world.condition("StartupPolicyInProgress").empty());
    CHECK(texts(world.events) ==
          std::vector<std::string>{"Normal SuspendedJobs: jobset is suspended"});
  }
}

TEST_CASE("C36: the first resume creates Jobs from the template as it is then") {
  World world(test_js("  suspend: true"));
  world.settle();
  edit_template(world);
  world.set_suspend(false);
  world.settle();
  CHECK(world.suspended_jobs() == 0);
  CHECK(world.condition("Suspended") == "False");
  CHECK(world.condition_reason("Suspended") == "ResumeJobs");
  CHECK(world.services.count("test-js") == 1);
  REQUIRE(world.jobs().size() == 4);
  for (const auto& [name, job] : world.jobs()) check_edited(job);
  for (const auto& name : world.job_names()) world.complete(name);
  world.settle();
  CHECK(world.terminal_state() == "Completed");
}

TEST_CASE("C36, C37: running Jobs are suspended, and resumed with the edits merged in") {
  World world(test_js());
  world.settle();
  for (const auto& name : world.job_names()) world.ready(name);
  world.settle();
  world.set_suspend(true);
  world.settle();
  CHECK(world.suspended_jobs() == 4);
  CHECK(world.condition("Suspended") == "True");
  for (const auto& name : world.job_names()) {
    world.set_status(name, Json::object({{"active", 0}, {"ready", 0}}));
  }
  world.settle();
  CHECK(world.counters("replicated-job-b") == "ready 0 succeeded 0 failed 0 active 0 suspended 3");

  edit_template(world);
  world.settle();
  CHECK(world.job(kA).find_path({"spec", "template", "spec", "nodeSelector"}) == nullptr);
  world.set_suspend(false);
  // The API lets the template change only once the start time is gone.
  const auto clearing = world.context();
  CHECK(clearing.actions.size() == 4);
  for (const auto& action : clearing.actions) CHECK(action.subresource == "status");
  CHECK(world.job(kA).find("status")->find("startTime") == nullptr);
  CHECK(world.condition("Suspended") == "True");
  const auto resuming = world.context();
  CHECK(resuming.actions.size() == 4);
  for (const auto& action : resuming.actions) {
    CHECK(action.subresource.empty());
    CHECK(*action.body.find_path({"spec", "suspend"}) == false);
    CHECK(action.body.find_path({"spec", "template"}));
  }
  world.settle();
  CHECK(world.suspended_jobs() == 0);
  CHECK(world.condition("Suspended") == "False");
  for (const auto& [name, job] : world.jobs()) check_edited(job);
}

TEST_CASE("an unchanged template is resumed in one write") {
  World world(test_js());
  world.settle();
  for (const auto& name : world.job_names()) world.ready(name);
  world.set_suspend(true);
  world.settle();
  world.set_suspend(false);
  const auto resuming = world.context();
  REQUIRE(resuming.actions.size() == 4);
  for (const auto& action : resuming.actions) {
    CHECK(*action.body.find("spec") == Json::object({{"suspend", false}}));
  }
  CHECK(world.suspended_jobs() == 0);
}

TEST_CASE("a resume adds to lists and never takes away") {
  World world(test_js());
  world.settle();
  const Json kept = Json::object({{"key", "mine"}, {"operator", "Exists"}});
  const Json gpu = Json::object({{"key", "gpu"}, {"operator", "Exists"}});
  world.edit_job(
      kA,
      Json::object(
          {{"spec",
            Json::object(
                {{"template",
                  Json::object({{"spec", Json::object({{"tolerations", Json::array({kept, gpu})},
                                                       {"nodeSelector",
                                                        Json::object({{"pool", "old"},
                                                                      {"zone", "z"}})}})}})}})}}));
  world.set_suspend(true);
  world.settle();
  edit_template(world);
  world.set_suspend(false);
  world.settle();
  const Json& spec = *world.job(kA).find_path({"spec", "template", "spec"});
  CHECK(*spec.find("tolerations") == Json::array({kept, gpu}));
  CHECK(*spec.find("nodeSelector") == Json::object({{"pool", "x"}, {"zone", "z"}}));
}

TEST_CASE("no Job is created while suspended, also not one that vanished") {
  World world(test_js());
  world.settle();
  world.set_suspend(true);
  world.settle();
  world.remove(kA);
  world.services.clear();
  world.settle();
  CHECK(world.jobs().size() == 3);
  CHECK(world.services.empty());
  CHECK(world.counters("replicated-job-a") == "ready 0 succeeded 0 failed 0 active 0 suspended 1");
  world.set_suspend(false);
  world.settle();
  CHECK(world.jobs().size() == 4);
  CHECK(world.suspended_jobs() == 0);
}

TEST_CASE("failure and success are decided while suspended") {
  for (const bool is_failure : {true, false}) {
    World world(test_js("  successPolicy: {operator: Any}"));
    world.settle();
    world.set_suspend(true);
    world.settle();
    is_failure ? world.fail(kA) : world.complete(kA);
    world.settle();
    CHECK(world.terminal_state() == (is_failure ? "Failed" : "Completed"));
  }
}

TEST_CASE("a restart while suspended waits for the resume") {
  World world(test_js("  failurePolicy: {maxRestarts: 3}"));
  world.settle();
  world.fail(kA);
  world.context();
  world.set_suspend(true);
  world.settle();
  world.release_all();
  world.settle();
  CHECK(world.jobs().empty());
  CHECK(world.condition("RestartingJobSet") == "False");
  CHECK(world.condition_reason("RestartingJobSet") == "JobSetSuspended");
  CHECK(world.counters("replicated-job-b") == "ready 0 succeeded 0 failed 0 active 0 suspended 3");
  world.set_suspend(false);
  world.settle();
  CHECK(world.attempts() == std::map<std::string, int>{{"1", 4}});
}

TEST_CASE("a restart that is suspended does not end because its Jobs were ready") {
  World world(test_js("  failurePolicy: {maxRestarts: 3}"));
  world.settle();
  world.fail(kA);
  world.settle();
  world.release_all();
  world.settle();
  for (const auto& name : world.job_names()) world.ready(name);
  world.set_suspend(true);
  world.events.clear();
  world.settle();
  CHECK(texts(world.events) ==
        std::vector<std::string>{"Normal SuspendedJobs: jobset is suspended",
                                 "Normal JobSetSuspended: jobset is suspended"});
}

TEST_CASE("conditions follow the Jobs, not what was asked of them") {
  World world(test_js());
  world.settle();
  world.set_suspend(true);
  CHECK(world.context().actions.size() == 4);
  CHECK(world.condition("Suspended").empty());
  world.context();
  CHECK(world.condition("Suspended") == "True");

  world.set_suspend(false);
  CHECK(world.context().actions.size() == 4);
  CHECK(world.condition("Suspended") == "True");
  world.context();
  CHECK(world.condition("Suspended") == "False");
}

TEST_CASE("C48: resume in any order") {
  World world(test_js());
  world.settle();
  world.set_suspend(true);
  world.settle();
  world.set_suspend(false);
  world.settle();
  CHECK(world.suspended_jobs() == 0);
  CHECK(world.counters("replicated-job-b") == "ready 0 succeeded 0 failed 0 active 0 suspended 0");
}

TEST_CASE("C49: resume in order") {
  World world(test_js(kInOrder));
  world.settle();
  world.ready(kA);
  world.settle();
  for (const auto& name : kAllB) world.ready(name);
  world.settle();
  CHECK(world.condition("StartupPolicyCompleted") == "True");
  world.set_suspend(true);
  world.settle();
  for (const auto& name : world.job_names()) {
    world.set_status(name, Json::object({{"active", 0}, {"ready", 0}}));
  }
  world.settle();
  CHECK(world.suspended_jobs() == 4);

  world.set_suspend(false);
  world.settle();
  CHECK(world.suspended_jobs() == 3);
  CHECK(world.condition("StartupPolicyInProgress") == "True");
  CHECK(world.condition("StartupPolicyCompleted") == "False");
  CHECK(world.condition("Suspended") == "True");
  world.ready(kA);
  world.settle();
  CHECK(world.suspended_jobs() == 0);
  CHECK(world.condition("StartupPolicyInProgress") == "True");
  for (const auto& name : kAllB) world.ready(name);
  world.settle();
  CHECK(world.condition("StartupPolicyCompleted") == "True");
  CHECK(world.condition("StartupPolicyInProgress") == "False");
  CHECK(world.condition("Suspended") == "False");
}

TEST_CASE("C50: start in order") {
  World world(test_js(kInOrder));
  world.settle();
  CHECK(world.job_names() == std::vector<std::string>{kA});
  CHECK(world.condition("StartupPolicyInProgress") == "True");
  world.ready(kA);
  world.settle();
  CHECK(world.jobs().size() == 4);
  for (const auto& name : kAllB) world.activate(name);
  world.settle();
  CHECK(world.condition("StartupPolicyInProgress") == "True");
  CHECK(world.condition("StartupPolicyCompleted").empty());
  for (const auto& name : kAllB) world.ready(name);
  world.settle();
  CHECK(world.condition("StartupPolicyCompleted") == "True");
  CHECK(world.condition("StartupPolicyInProgress") == "False");
  CHECK(texts(world.events) ==
        std::vector<std::string>{
            "Normal InOrderStartupPolicyInProgress: in order startup policy is in progress",
            "Normal InOrderStartupPolicyCompleted: in order startup policy has completed"});
}

TEST_CASE("C52: the coordinator's endpoint is on every Job") {
  World world(
      test_js("  coordinator: {replicatedJob: replicated-job-a, jobIndex: 0, podIndex: 0}"));
  world.settle();
  REQUIRE(world.jobs().size() == 4);
  for (const auto& [name, job] : world.jobs()) {
    for (const char* where : {"labels", "annotations"}) {
      CHECK(*job.find_path({"metadata", where, "jobset.sigs.k8s.io/coordinator"}) ==
            "test-js-replicated-job-a-0-0.test-js");
      CHECK(*job.find_path(
                {"spec", "template", "metadata", where, "jobset.sigs.k8s.io/coordinator"}) ==
            "test-js-replicated-job-a-0-0.test-js");
    }
  }
}

TEST_CASE("C53 to C56: dependencies") {
  struct Step {
    const char* job;
    bool is_complete;  // else ready
    std::size_t jobs;  // after it
  };
  struct Row {
    const char* about;
    const char* of_b;
    const char* of_c;
    std::size_t at_first;
    std::vector<Step> steps;
  };
  const Row rows[] = {
      {"C53", "", "[{name: a, status: Ready}]", 2, {{"s-a-0", false, 5}}},
      {"C54",
       "[{name: a, status: Complete}]",
       "[{name: b, status: Ready}]",
       1,
       {{"s-a-0", false, 1}, {"s-a-0", true, 2}, {"s-b-0", false, 5}}},
      {"C55",
       "",
       "[{name: a, status: Complete}, {name: b, status: Complete}]",
       2,
       {{"s-a-0", true, 2}, {"s-b-0", false, 2}, {"s-b-0", true, 5}}},
      {"C56",
       "",
       "[{name: a, status: Ready}, {name: b, status: Complete}]",
       2,
       {{"s-a-0", false, 2}, {"s-b-0", true, 5}}},
      {"a complete Job has been ready", "[{name: a, status: Ready}]", "", 4, {{"s-a-0", true, 5}}},
      {"itself", "[{name: b, status: Ready}]", "", 4, {{"s-a-0", true, 4}}},
      {"a later one, all of it ready",
       "[{name: c, status: Ready}]",
       "",
       4,
       {{"s-c-0", false, 4}, {"s-c-1", false, 4}, {"s-c-2", false, 4}}},
      {"no job", "[{name: zz, status: Ready}]", "", 4, {{"s-a-0", true, 4}}},
  };
  for (const Row& row : rows) {
    INFO(row.about);
    World world = chain(row.of_b, row.of_c);
    world.settle();
    CHECK(world.jobs().size() == row.at_first);
    for (const Step& step : row.steps) {
      step.is_complete ? world.complete(step.job) : world.ready(step.job);
      world.settle();
      CHECK(world.jobs().size() == step.jobs);
    }
  }
}

TEST_CASE("a dependency without Jobs is met at once") {
  World world = chain("[{name: a, status: Complete}]", "");
  world.jobset()["spec"]["replicatedJobs"].as_array()[0]["replicas"] = 0;
  world.settle();
  CHECK(world.jobs().size() == 4);
}

TEST_CASE("C57: a suspended JobSet with dependencies") {
  World world(
      chain("[{name: a, status: Ready}]", "[{name: b, status: Ready}]", "  suspend: true\n"));
  world.settle();
  CHECK(world.jobs().empty());
  CHECK(world.counters("a") == "ready 0 succeeded 0 failed 0 active 0 suspended 1");
  CHECK(world.counters("b") == "ready 0 succeeded 0 failed 0 active 0 suspended 0");
  world.set_suspend(false);
  world.settle();
  CHECK(world.job_names() == std::vector<std::string>{"s-a-0"});
  CHECK(world.suspended_jobs() == 0);
  CHECK(world.condition("Suspended") == "False");
  world.ready("s-a-0");
  world.settle();
  CHECK(world.job_names() == std::vector<std::string>{"s-a-0", "s-b-0"});
  CHECK(world.suspended_jobs() == 0);
}

TEST_CASE("what completed before a suspension keeps its dependents' way free") {
  World world = chain("[{name: a, status: Complete}]", "");
  world.settle();
  world.complete("s-a-0");
  world.settle();
  CHECK(world.jobs().size() == 5);
  world.set_suspend(true);
  world.settle();
  CHECK(world.suspended_jobs() == 4);
  world.set_suspend(false);
  world.settle();
  CHECK(world.suspended_jobs() == 0);
  CHECK(world.jobs().size() == 5);
}
