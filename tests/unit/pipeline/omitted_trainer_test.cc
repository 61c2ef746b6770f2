// A job without spec.trainer means the same as one with an empty spec.trainer.
#include <algorithm>

#include "kube/model/json_text.hh"
#include "runtimes/builtin/builtin_runtimes.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using kube::Json;
using Words = std::vector<std::string>;

constexpr const char* kTwoJobs = R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i, command: [python, t.py]}, {name: side, image: s}]}}}
- name: launcher
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i, command: [mpirun, t.py]}]}}}
)";

// Each policy of each framework, with and without a number of nodes.
std::vector<Runtime> runtimes() {
  std::vector<Runtime> all;
  for (const Json& object : builtin_runtimes()) all.push_back(runtime(object));
  const Json kinds = yaml(R"([{}, {torch: {}}, {torch: {launcher: torchrun}},
      {torch: {launcher: env}}, {torch: {numProcPerNode: gpu}},
      {torch: {envInjection: {targets: [{jobName: node, containerNames: [side]}]}}}, {jax: {}},
      {xgboost: {}}, {flux: {}}, {flux: {numProcPerNode: 3}}, {mpi: {}},
      {mpi: {runLauncherAsNode: true}}, {mpi: {mpiImplementation: Intel}},
      {mpi: {mpiImplementation: MPICH, numProcPerNode: 2}}])");
  for (Json policy : kinds.as_array())
    for (const int nodes : {0, 1, 2}) {
      if (nodes > 0) policy.set("numNodes", nodes);
      all.push_back(runtime_with(kube::print_json(policy), kTwoJobs));
    }
  return all;
}

TEST_CASE("an omitted trainer renders as an empty one, with each runtime and framework",
          "[trainer]") {
  const auto all = runtimes();
  REQUIRE(all.size() > 50);
  PipelineOptions options = production();
  options.is_progress_enabled = true;
  for (const Runtime& runtime : all) {
    for (const char* rest : {"{}", "{initializer: {dataset: {storageUri: 'hf://a/b'}}}",
                             "{initializer: {dataset: {storageUri: 'cache://a/b'}}}"}) {
      TrainJob omitted = job_with(rest);
      omitted.spec.runtimeRef.name = runtime.metadata.name;
      TrainJob empty = omitted;
      empty.spec.trainer.emplace();
      INFO(runtime.metadata.name << " " << &runtime - all.data() << " " << rest);
      CHECK(kube::to_string(validate_trainjob(omitted, nullptr, runtime)) ==
            kube::to_string(validate_trainjob(empty, nullptr, runtime)));
      const auto a = build(omitted, runtime, options);
      const auto b = build(empty, runtime, options);
      REQUIRE(a.has_value() == b.has_value());
      if (!a) {
        CHECK(kube::to_string(a.error()) == kube::to_string(b.error()));
        continue;
      }
      CHECK(kube::print_json(a->jobset) == kube::print_json(b->jobset));
      CHECK(a->warnings == b->warnings);
      REQUIRE(a->dependents.size() == b->dependents.size());
      for (std::size_t i = 0; i < a->dependents.size(); ++i)
        CHECK(a->dependents[i].object == b->dependents[i].object);
    }
  }
}

TEST_CASE("two nodes without a trainer section are one training", "[trainer]") {
  struct Row {
    const char* policy;
    const char* size;  // the variable, and the part that says that there are two
    const char* rank;
  };
  const Row row = GENERATE(Row{"{numNodes: 2, torch: {}}", "PET_NNODES=2", "PET_NODE_RANK"},
                           Row{"{numNodes: 2, jax: {}}", "JAX_NUM_PROCESSES=2", "JAX_PROCESS_ID"},
                           Row{"{numNodes: 2, xgboost: {}}", "DMLC_NUM_WORKER=2", "DMLC_TASK_ID"});
  INFO(row.policy);
  const Words env =
      env_of(container_in(built(job_with("{}"), runtime_with(row.policy, kTwoJobs)), "node"));
  CHECK(std::find(env.begin(), env.end(), row.size) != env.end());
  CHECK(std::any_of(env.begin(), env.end(), [&row](const std::string& one) {
    return one.starts_with(std::string(row.rank) + "<-");
  }));
}

// No update changes the environment of a JobSet, so another one would be refused for ever.
TEST_CASE("a JobSet that was made without the variables stays so", "[trainer]") {
  const char* policy =
      GENERATE("{numNodes: 2, torch: {}}", "{numNodes: 2, jax: {}}", "{numNodes: 2, xgboost: {}}");
  INFO(policy);
  const Runtime runtime = runtime_with(policy, kTwoJobs);
  const TrainJob omitted = job_with("{}");
  Json old = built(omitted, runtime).jobset;
  for (Json& job : old["spec"]["replicatedJobs"].as_array())
    for (Json& container : job["template"]["spec"]["template"]["spec"]["containers"].as_array())
      container.erase("env");
  const auto again = build(omitted, runtime, production(), nullptr, &old);
  REQUIRE(again);
  CHECK(env_of(container_in(*again, "node")).empty());
  // A JobSet that was made with them keeps them.
  const Json made = built(omitted, runtime).jobset;
  const auto kept = build(omitted, runtime, production(), nullptr, &made);
  REQUIRE(kept);
  CHECK(kept->jobset == made);
  const auto with_trainer = build(job_with("trainer: {}"), runtime, production(), nullptr, &old);
  REQUIRE(with_trainer);
  CHECK_FALSE(env_of(container_in(*with_trainer, "node")).empty());
}

}  // namespace
}  // namespace trainer::test
