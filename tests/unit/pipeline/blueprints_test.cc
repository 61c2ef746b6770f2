// Each built-in runtime: accepted by the schema and by admission, readable by the SDK, rendered,
// admitted as a JobSet and expanded.
#include <algorithm>

#include "api/api.hh"
#include "kube/model/yaml.hh"
#include "runtimes/builtin/builtin_runtimes.hh"
#include "runtimes/jobset/admission.hh"
#include "runtimes/jobset/plan.hh"
#include "runtimes/plugins/registry.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"
#include "tests/unit/pipeline/golden.hh"

namespace trainer::test {
namespace {

using kube::Json;
using Words = std::vector<std::string>;

TrainJob job_for(const Runtime& builtin_runtime, const std::string& spec) {
  TrainJob job = job_with(spec);
  job.spec.runtimeRef.name = builtin_runtime.metadata.name;
  return job;
}

JobSet as_jobset(const Built& result) {
  Json object = result.jobset;
  apply_schema_defaults(object);
  CHECK(kube::to_string(check_schema(object)) == "");
  auto read = read_jobset(object);
  REQUIRE(read);
  return *read;
}

TEST_CASE("the built-in runtimes", "[builtin]") {
  Words names;
  for (const Json& object : builtin_runtimes()) names.push_back(runtime(object).metadata.name);
  CHECK(names == Words{"torch-distributed", "deepspeed-distributed", "mlx-distributed",
                       "jax-distributed", "xgboost-distributed", "flux-distributed",
                       "torchtune-llama3.2-1b", "torchtune-llama3.2-3b", "torchtune-qwen2.5-1.5b",
                       "trl", "torch-distributed-with-cache"});
}

TEST_CASE("built-in runtimes pass the schema, admission and the SDK's demands", "[builtin]") {
  for (const Json& object : builtin_runtimes()) {
    const Runtime builtin_runtime = runtime(object);
    INFO(builtin_runtime.metadata.name);
    CHECK(kube::to_string(check_schema(object)) == "");
    CHECK(validate_runtime(builtin_runtime).empty());
    CHECK(warn_runtime(builtin_runtime) == Words{});  // R1 to R4 among them
  }
}

TEST_CASE(
    "a broken script ends a job of any built-in runtime at once, and its output is not held back",
    "[builtin]") {
  for (const Json& object : builtin_runtimes()) {
    const Runtime builtin_runtime = runtime(object);
    for (const ReplicatedJob& job : builtin_runtime.spec.template_->spec->replicatedJobs) {
      INFO(builtin_runtime.metadata.name << " " << job.name);
      const Json& spec = *job.template_.find("spec");
      const Json& pod = *spec.find_path({"template", "spec"});
      CHECK(spec.get_int("backoffLimit", -1) == 0);
      CHECK(pod.get_string("restartPolicy") == "Never");
      const Json& container = pod.get_array("containers").at(0);
      const bool is_python =
          container.get_string("image").find("data-cache") == std::string_view::npos;
      CHECK(env_value(container, "PYTHONUNBUFFERED") == (is_python ? "1" : ""));
    }
  }
}

TEST_CASE("built-in runtimes render as they always have", "[builtin][golden]") {
  for (const Json& object : builtin_runtimes()) {
    const Runtime builtin_runtime = runtime(object);
    for (const int nodes : {1, 3}) {
      const TrainJob job =
          job_for(builtin_runtime, "trainer: {numNodes: " + std::to_string(nodes) + "}");
      CHECK(kube::to_string(validate_trainjob(job, nullptr, builtin_runtime)) == "");
      const Built result = built(job, builtin_runtime);
      std::string text = kube::print_yaml(result.jobset);
      for (const DependentObject& one : result.dependents)
        text += "---\n" + kube::print_yaml(one.object);
      check_golden("tests/golden/pipeline/" + builtin_runtime.metadata.name + "-" +
                       std::to_string(nodes) + ".yaml",
                   text);
    }
  }
}

TEST_CASE("what built-in runtimes render is admitted as a JobSet and becomes Jobs", "[builtin]") {
  for (const Json& object : builtin_runtimes()) {
    const Runtime builtin_runtime = runtime(object);
    INFO(builtin_runtime.metadata.name);
    const Built result = built(job_for(builtin_runtime, "trainer: {numNodes: 3}"), builtin_runtime);
    const JobSet jobset = as_jobset(result);
    CHECK(kube::to_string(jobset::validate_create(
              jobset, {}, [](const std::string&, const std::string&) { return std::nullopt; })) ==
          "");
    const auto jobs = jobset::all_jobs(jobset, {}, production_job_decorators());
    REQUIRE(jobs.size() == result.pod_sets.size());
    std::int64_t pods = 0;
    for (const Json& one : jobs) pods += one.find("spec")->get_int("parallelism");
    std::int64_t expected = 0;
    for (const PodSet& set : result.pod_sets) expected += set.count * set.replicas;
    CHECK(pods == expected);
    CHECK(jobset::headless_service(jobset).has_value());
  }
}

TEST_CASE("image, command, resources and patches of a job reach every built-in runtime",
          "[builtin]") {
  for (const Json& object : builtin_runtimes()) {
    const Runtime builtin_runtime = runtime(object);
    const auto& jobs = builtin_runtime.spec.template_->spec->replicatedJobs;
    const auto trains = std::find_if(jobs.begin(), jobs.end(), [](const ReplicatedJob& job) {
      return job.template_.find("metadata") != nullptr &&
             job.template_.find_path({"metadata", "labels"})->get_string(kAncestorLabel) ==
                 "trainer";
    });
    REQUIRE(trains != jobs.end());
    INFO(builtin_runtime.metadata.name << " " << trains->name);
    const TrainJob job = job_for(
        builtin_runtime,
        R"({trainer: {image: 'mine:1', command: [run], resourcesPerNode: {limits: {cpu: 3}}},
      runtimePatches: [{manager: acme.io/a, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: )" +
            trains->name + R"(, template: {spec: {template: {spec: {
      serviceAccountName: sa, volumes: [{name: data, persistentVolumeClaim: {claimName: c}}],
      containers: [{name: node, volumeMounts: [{name: data, mountPath: /data}]}]}}}}}]}}}}]})");
    CHECK(kube::to_string(validate_trainjob(job, nullptr, builtin_runtime)) == "");
    const Built result = built(job, builtin_runtime);
    const Json& container = container_in(result, trains->name);
    CHECK(container.get_string("image") == "mine:1");
    const Words command = strings(container.get_array("command"));
    CHECK(command.back() == "run");
    CHECK(container.find_path({"resources", "limits", "cpu"}) != nullptr);
    CHECK(pod_in(result, trains->name).find("spec")->get_string("serviceAccountName") == "sa");
    const auto& mounts = container.get_array("volumeMounts");
    CHECK(std::any_of(mounts.begin(), mounts.end(),
                      [](const Json& mount) { return mount.get_string("mountPath") == "/data"; }));
  }
}

TEST_CASE("the SDK's commands run in the torchtune runtimes", "[builtin]") {
  const Json::Array all = builtin_runtimes();
  for (const Json& object : all) {
    const Runtime builtin_runtime = runtime(object);
    if (builtin_runtime.metadata.labels.at("trainer.kubeflow.org/framework") != "torchtune")
      continue;
    INFO(builtin_runtime.metadata.name);
    const TrainJob job =
        job_for(builtin_runtime, R"({trainer: {command: [tune, run], args: [epochs=1]},
      initializer: {dataset: {storageUri: 'hf://a/b'}, model: {storageUri: 'hf://c/d'}}})");
    CHECK(kube::to_string(validate_trainjob(job, nullptr, builtin_runtime)) == "");
    const Words command =
        strings(container_in(built(job, builtin_runtime), "node").get_array("command"));
    REQUIRE(command.size() >= 9);
    CHECK(command[3] == "full_finetune_distributed");
    CHECK(command[6] == "output_dir=/workspace/output");
  }
}

TEST_CASE("the cache's head and workers have the names under which they look for each other",
          "[builtin]") {
  for (const Json& object : builtin_runtimes()) {
    const Runtime builtin_runtime = runtime(object);
    if (builtin_runtime.metadata.name != "torch-distributed-with-cache") continue;
    const TrainJob job =
        job_for(builtin_runtime,
                "{initializer: {dataset: {storageUri: 'cache://s/t'}}, trainer: {numNodes: 2}}");
    CHECK(kube::to_string(validate_trainjob(job, nullptr, builtin_runtime)) == "");
    const Built result = built(job, builtin_runtime);
    const Json& server = container_in(result, "dataset-initializer", "dataset-initializer");
    // The head derives "<leader>-<i>.<rest>" for its workers; the variable refers to the job's
    // name.
    CHECK(env_value(server, "LWS_LEADER_ADDRESS") ==
          "$(TRAIN_JOB_NAME)-dataset-initializer-0.$(TRAIN_JOB_NAME)");
    CHECK(env_value(server, "LWS_GROUP_SIZE") == std::to_string(result.pod_sets.at(0).count));
    CHECK(result.pod_sets.at(0).endpoints().at(1) == "j-dataset-initializer-0-1.j");
    CHECK(env_value(container_in(result, "node"), "CACHE_ENDPOINT") ==
          "grpc://$(TRAIN_JOB_NAME)-dataset-initializer-0-0.$(TRAIN_JOB_NAME):50051");
    // The job ends with its trainer, and nothing has to exist in the namespace beforehand.
    CHECK(strings(result.jobset.find_path({"spec", "successPolicy"})
                      ->get_array("targetReplicatedJobs")) == Words{"node"});
    CHECK(pod_in(result, "dataset-initializer")
              .find("spec")
              ->get_string("serviceAccountName")
              .empty());
  }
}

}  // namespace
}  // namespace trainer::test
