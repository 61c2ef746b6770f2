// These tests check why the JobSet of a job is refused, and the reports about a job without one.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::test {
namespace {

using kube::Json;

Json with_jobset_spec(std::string_view member, std::string_view value) {
  Json runtime = torch_runtime();
  runtime["spec"]["template"]["spec"].set(member, yaml(value));
  return runtime;
}

// A patch as a scheduler or a user writes it, with an affinity for nodes of one zone.
Json affinity_patch(std::string_view zone) {
  return yaml(R"([{manager: acme.io/a, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [
    {name: node, template: {spec: {template: {spec: {affinity: {nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [
        {key: zone, operator: In, values: [)" +
              std::string(zone) + R"(]}]}]}}}}}}}}]}}}}])");
}

const Json* affinity_in(const World& world) {
  return world.jobset->find("spec")->get_array("replicatedJobs")[0].find_path(
      {"template", "spec", "template", "spec", "affinity"});
}

constexpr const char* kRole = "arn";

// Its job `cache-initializer` serves a dataset; `roles`: the annotation, "" for none.
Json cached_runtime(const std::string& roles) {
  Json runtime = torch_runtime();
  Json& jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"];
  jobs.as_array().insert(jobs.as_array().begin(), yaml(R"(
name: cache-initializer
replicas: 1
groupName: default
template:
  metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: cache-initializer}}
  spec: {template: {spec: {containers: [{name: cache, image: 'img:1'}]}}}
)"));
  if (!roles.empty())
    runtime["metadata"].set("annotations",
                            Json::object({{"trainer.kubeflow.org/data-cache-iam-roles", roles}}));
  return runtime;
}

Json cached_job() {
  Json job = train_job();
  job["spec"].set("initializer", yaml("{dataset: {storageUri: 'cache://s/t'}}"));
  return job;
}

// This is cached_runtime(), but a job may size its cache; by default it has three pods.
Json sizable_runtime() {
  Json runtime = cached_runtime("");
  Json& job = runtime["spec"]["template"]["spec"]["replicatedJobs"].as_array()[0];
  job["template"].set("spec", yaml(R"(
parallelism: 3
completions: 3
template: {spec: {containers: [{name: cache, image: 'img:1', env: [{name: LWS_GROUP_SIZE, value: '3'}],
  resources: {limits: {memory: 2Gi}}}]}}
)"));
  return runtime;
}

Json with_dataset_env(Json job, const std::string& name, const std::string& value) {
  job["spec"]["initializer"]["dataset"].set(
      "env", Json::array({Json::object({{"name", name}, {"value", value}})}));
  return job;
}

Json with_role(Json job) {
  return with_dataset_env(std::move(job), "IAM_ROLE", kRole);
}

Json with_queue(Json job) {
  job["metadata"].set("labels", Json::object({{"kueue.x-k8s.io/queue-name", "q"}}));
  return job;
}

std::int64_t cache_pods(const World& world) {
  return world.jobset->get("spec")
      .get_array("replicatedJobs")[0]
      .get_path({"template", "spec"})
      .get_int("parallelism");
}

bool has_role(const World& world) {
  return kube::print_json(*world.jobset).find("AWS_ROLE_ARN") != std::string::npos;
}

// Its pods have run, and now it waits until a client resumes it.
World suspended_after_a_run() {
  World world;
  world.settle();
  world.set_spec("suspend", true);
  world.settle();
  return world;
}

}  // namespace

TEST_CASE("a JobSet that its own webhook would refuse is not made") {
  World world(train_job(),
              with_jobset_spec("successPolicy", "{operator: All, targetReplicatedJobs: [nodes]}"));
  world.settle();
  CHECK_FALSE(world.jobset);
  CHECK(world.reason() == "ChildRefused");
  CAPTURE(world.message());
  CHECK(world.message().find("invalid replicatedJob name 'nodes' does not appear") !=
        std::string::npos);
}

TEST_CASE("a rule of a closed gate is refused, of an open one it is not") {
  const bool is_open = GENERATE(false, true);
  World world(train_job(),
              with_jobset_spec("failurePolicy",
                               "{maxRestarts: 1, rules: [{name: again, action: RestartJob}]}"));
  world.gates.restart_job = is_open;
  world.settle();
  CHECK(world.jobset.has_value() == is_open);
  CHECK((world.reason() == "ChildRefused") == !is_open);
}

TEST_CASE("without a webhook, too, a job's own failure policy is refused with its field") {
  Json job = train_job();
  job["spec"].set("failurePolicy",
                  yaml("{rules: [{name: a, action: FailJobSet, targetReplicatedJobs: [nodes]}]}"));
  World world(job);
  world.settle();
  CHECK_FALSE(world.jobset);
  CHECK(world.reason() == "ChildRefused");
  CHECK(world.message().find("spec.failurePolicy.rules[0].targetReplicatedJobs[0]: Invalid value: "
                             "\"nodes\"") == 0);
}

TEST_CASE("a bad rule of the runtime is said in the status, and no JobSet is made") {
  World world(train_job(),
              with_jobset_spec("failurePolicy", "{rules: [{name: a-b, action: FailJobSet}]}"));
  CHECK(world.settle() == std::vector<std::string>{"TrainJobResourcesCreationFailed"});
  CHECK_FALSE(world.jobset);
  CHECK(world.phase() == "Pending");
  CHECK(world.reason() == "ChildRefused");
  CHECK(world.message().find("invalid failure policy rule name 'a-b'") != std::string::npos);
  CHECK(world.reconcile().actions.empty());
}

TEST_CASE("a role that a runtime does not allow keeps no job of before from starting") {
  World world(cached_job(), cached_runtime(""));
  world.set_spec("suspend", true);
  world.settle();
  world.object = with_role(world.object);  // an earlier version has stored this
  world.restart();
  CHECK(world.settle().empty());  // none of its pods starts yet
  world.set_spec("suspend", false);
  const auto events = world.settle();
  CHECK(std::count(events.begin(), events.end(), "SettingIgnored") == 1);
  CHECK_FALSE(world.jobset->find_path({"spec", "suspend"})->as_bool());
  CHECK(world.reason() == "CreatingPods");
  CHECK_FALSE(has_role(world));
  CHECK(world.settle().empty());
}

TEST_CASE("a role that was allowed stays so for the job, whatever becomes of its runtime") {
  World world(with_role(cached_job()), cached_runtime(kRole));
  world.settle();
  CHECK(has_role(world));
  world.runtime = cached_runtime("");
  world.restart();
  for (const bool is_suspended : {true, false}) {
    world.set_spec("suspend", is_suspended);
    const auto events = world.settle();
    CHECK(std::count(events.begin(), events.end(), "SettingIgnored") == 0);
    CHECK(has_role(world));
  }
}

TEST_CASE("sizes of a cache that Kueue does not count keep no job of before from starting") {
  struct Row {
    const char* name;  // the name of the variable that an earlier version has stored
    const char* value;
  };
  const Row rows[] = {
      {"CLUSTER_SIZE", "5"}, {"WORKER_MEM", "64Gi"}, {"HEAD_CPU", "4"}, {"CLUSTER_SIZE", "1"}};
  for (const Row& row : rows) {
    INFO(row.name << " " << row.value);
    World world(with_queue(cached_job()), sizable_runtime());
    world.set_spec("suspend", true);
    world.settle();
    world.object = with_dataset_env(world.object, row.name, row.value);
    world.restart();
    CHECK(world.settle().empty());  // none of its pods starts yet
    const Json before = world.jobset->get("spec").get("replicatedJobs");
    CHECK(cache_pods(world) == 3);
    world.set_spec("suspend", false);
    const auto events = world.settle();
    CHECK(std::count(events.begin(), events.end(), "SettingIgnored") == 1);
    CHECK_FALSE(world.jobset->get("spec").get_bool("suspend"));
    CHECK(world.reason() == "CreatingPods");
    CHECK(world.jobset->get("spec").get("replicatedJobs") == before);
    CHECK(world.settle().empty());
  }
}

TEST_CASE("a JobSet that was made with the runtime's cache pods keeps them, without a queue, too") {
  struct Row {
    const char* name;
    const char* value;
    bool is_ignored;
  };
  const Row rows[] = {{"CLUSTER_SIZE", "5", true},
                      {"WORKER_MEM", "64Gi", true},
                      {"CLUSTER_SIZE", "3", false},
                      {"WORKER_MEM", "2Gi", false}};
  for (const Row& row : rows) {
    INFO(row.name << " " << row.value);
    // An earlier version passed the variables to the container, and read none of them.
    World world(cached_job(), sizable_runtime());
    world.object = with_dataset_env(world.object, row.name, row.value);
    world.set_spec("suspend", true);
    world.settle();
    Json& cache = (*world.jobset)["spec"]["replicatedJobs"].as_array()[0]["template"]["spec"];
    cache.set("parallelism", 3).set("completions", 3);
    Json& server = cache["template"]["spec"]["containers"].as_array()[0];
    server.set("resources", yaml("{limits: {memory: 2Gi}}"));
    for (Json& variable : server["env"].as_array())
      if (variable.get_string("name") == "LWS_GROUP_SIZE") variable.set("value", "3");
    const Json before = world.jobset->get("spec").get("replicatedJobs");
    world.restart();
    world.set_spec("suspend", false);
    const auto events = world.settle();
    CHECK(std::count(events.begin(), events.end(), "SettingIgnored") == (row.is_ignored ? 1 : 0));
    CHECK_FALSE(world.jobset->get("spec").get_bool("suspend"));
    CHECK(world.jobset->get("spec").get("replicatedJobs") == before);
  }
}

TEST_CASE("a new job with sizes that Kueue does not count is refused, without a webhook, too") {
  World world(with_dataset_env(with_queue(cached_job()), "CLUSTER_SIZE", "5"), sizable_runtime());
  CHECK(world.settle() == std::vector<std::string>{"TrainJobResourcesCreationFailed"});
  CHECK_FALSE(world.jobset);
  CHECK(world.reason() == "ChildRefused");
  CHECK(world.message().find("spec.initializer.dataset.env[0].value: Invalid value: \"5\"") == 0);
}

TEST_CASE("a queue's label that comes after the JobSet does not ask for other pods than it has") {
  const std::pair<const char*, const char*> rows[] = {{"CLUSTER_SIZE", "5"},
                                                      {"WORKER_MEM", "64Gi"}};
  for (const auto& [name, value] : rows) {
    INFO(name);
    World world(with_dataset_env(cached_job(), name, value), sizable_runtime());
    world.set_spec("suspend", true);
    world.settle();
    const Json before = *world.jobset;
    CHECK(cache_pods(world) == (std::string_view(name) == "CLUSTER_SIZE" ? 5 : 3));
    world.object = with_queue(world.object);
    world.set_spec("suspend", false);
    const auto events = world.settle();
    CHECK(std::count(events.begin(), events.end(), "SettingIgnored") == 0);
    CHECK(world.reason() == "ChildRefused");
    CHECK(world.message().find("spec.initializer.dataset.env[0].value: Invalid value: ") == 0);
    CHECK(*world.jobset == before);
  }
}

TEST_CASE("a new job with such a role is refused once, without a webhook, too") {
  World world(with_role(cached_job()), cached_runtime(""));
  CHECK(world.settle() == std::vector<std::string>{"TrainJobResourcesCreationFailed"});
  CHECK_FALSE(world.jobset);
  CHECK(world.reason() == "ChildRefused");
  CHECK(world.message().find("spec.initializer.dataset.env[0].value: Invalid value: \"arn\"") == 0);
  const TrainJobPlan again = world.reconcile();
  CHECK(again.actions.empty());
  CHECK_FALSE(again.status_patch);
}

TEST_CASE("another JobSet controller checks JobSets by itself") {
  World world(train_job(),
              with_jobset_spec("successPolicy", "{operator: All, targetReplicatedJobs: [nodes]}"));
  world.is_jobset_controller_active = false;
  world.settle();
  CHECK(world.jobset);
}

TEST_CASE("the affinity of a job that never ran changes, of one that ran it cannot") {
  World world = suspended_after_a_run();
  world.have_jobs_started = GENERATE(false, true);
  world.set_spec("runtimePatches", affinity_patch("a"));
  world.settle();
  if (!world.have_jobs_started) {
    REQUIRE(affinity_in(world));
    CHECK(world.reason() != "ChildRefused");
    return;
  }
  CHECK_FALSE(affinity_in(world));
  CHECK(world.reason() == "ChildRefused");
  CHECK(world.message().find("the affinity of job node cannot change") != std::string::npos);

  world.set_spec("runtimePatches", yaml("[]"));
  world.set_spec("suspend", false);
  world.settle();
  CHECK(world.reason() != "ChildRefused");
  CHECK_FALSE(world.jobset->find_path({"spec", "suspend"})->as_bool());
}

TEST_CASE("more replicated jobs than the status has a place for: active ones are shown") {
  World world;
  world.settle();
  kube::Json jobs = kube::Json::array();
  for (int i = 0; i < 150; ++i) {
    jobs.push_back(kube::Json::object({{"name", "job-" + std::to_string(i)},
                                       {"active", i >= 140 ? 1 : 0},
                                       {"ready", 0},
                                       {"succeeded", 0},
                                       {"failed", 0},
                                       {"suspended", 0}}));
  }
  world.set_jobset_status(kube::Json::object({{"restarts", 1}, {"replicatedJobsStatus", jobs}}));
  const auto events = world.settle();
  const auto& shown = world.status().get_array("jobsStatus");
  REQUIRE(shown.size() == 100);
  CHECK(shown[0].get_string("name") == "job-140");
  CHECK(shown[9].get_int("active") == 1);
  CHECK(shown[10].get_string("name") == "job-0");
  CHECK(std::count(events.begin(), events.end(), "StatusTruncated") == 1);
}

TEST_CASE("a job whose JobSet is gone has no active pods") {
  World world;
  world.settle();
  world.set_jobset_status(yaml(R"({restarts: 0, conditions: [], replicatedJobsStatus: [
    {name: node, active: 1, ready: 1, succeeded: 1, failed: 0, suspended: 0}]})"));
  world.settle();
  const auto counted = [&world](std::string_view name) {
    return world.status().get_array("jobsStatus")[0].get_int(name);
  };
  REQUIRE(counted("active") == 1);

  world.jobset.reset();
  world.is_runtime_deleted = true;
  world.others.clear();  // without its snapshot it cannot be made again
  world.restart();
  world.settle();
  CHECK_FALSE(world.jobset);
  CHECK(counted("active") == 0);
  CHECK(counted("ready") == 0);
  CHECK(counted("succeeded") == 1);  // Kueue has given that quota to another job already
}

}  // namespace trainer::test
