// Datasets that pods of the job serve: runtimes as guides print them, and the sizes of the built-in
// one.
#include <algorithm>

#include "kube/model/yaml.hh"
#include "runtimes/builtin/builtin_runtimes.hh"
#include "runtimes/pipeline/plugin.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"
#include "tests/unit/pipeline/golden.hh"

namespace trainer::test {
namespace {

using kube::Json;
using Words = std::vector<std::string>;

// Neither a policy nor a label says that this is PyTorch.
Runtime guide_runtime(const std::string& image = "i", const std::string& spec = "{}") {
  Runtime made = runtime_with("{}", R"(
- name: cache-initializer
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: cache-initializer}}
    spec: {template: {spec: {containers: [{name: cache, image: ')" +
                                        image + R"(', readinessProbe: {grpc: {port: 50051}}}]}}}
- name: node
  dependsOn: [{name: cache-initializer, status: Ready}]
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i,
      env: [{name: DATA_CACHE_ENDPOINT, value: 'cache-initializer-0:50051'}]}]}}}
)");
  made.spec.mlPolicy.reset();
  if (!yaml(spec).empty()) made.spec.template_->spec->successPolicy = SuccessPolicy{"Any", {}, {}};
  return made;
}

Runtime builtin_runtime() {
  for (const Json& object : builtin_runtimes())
    if (Runtime made = runtime(object); made.metadata.name == "torch-distributed-with-cache")
      return made;
  throw std::runtime_error("there is no built-in runtime with a cache");
}

// With variables of the dataset, as a YAML list.
TrainJob cached_job(const std::string& env = "[]", const std::string& trainer = "{}") {
  return job_with("{initializer: {dataset: {storageUri: 'cache://s/t', env: " + env +
                  "}}, trainer: " + trainer + "}");
}

std::string var(const std::string& name, const std::string& value) {
  return "{name: " + name + ", value: '" + value + "'}";
}

TEST_CASE("a runtime as guides print it serves the dataset to one training", "[cache]") {
  const TrainJob job =
      cached_job("[" + var("METADATA_LOC", "s3a://b/m.json") + "]",
                 "{numNodes: 2, command: [torchrun, t.py], resourcesPerNode: {limits: {cpu: 3}}}");
  CHECK(kube::to_string(validate_trainjob(job, nullptr, guide_runtime())) == "");
  CHECK(warn_trainjob(job, guide_runtime()) == Words{});
  const Built result = built(job, guide_runtime());
  REQUIRE(dependent(result, "Service", "j-cache-service") != nullptr);
  check_golden(
      "tests/golden/pipeline/cache-initializer.yaml",
      kube::print_yaml(result.jobset) + "---\n" + kube::print_yaml(result.dependents[0].object));
  CHECK(result.dependents[0].mode == DependentObject::Mode::kCreateOnce);
}

TEST_CASE("other datasets, policies and success policies stay as they are", "[cache]") {
  const std::string trainer = "{command: [torchrun, t.py], resourcesPerNode: {limits: {cpu: 3}}}";
  // A warning says, with this runtime too, that no job of it fetches the dataset.
  const TrainJob other =
      job_with("{initializer: {dataset: {storageUri: 'hf://a/b'}}, trainer: " + trainer + "}");
  const auto errors = validate_trainjob(other, nullptr, guide_runtime());
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].detail.find("must have dataset-initializer job") == 0);
  CHECK(env_of(container_in(built(other, guide_runtime()), "cache-initializer", "cache")).empty());

  const Built own = built(cached_job("[]", trainer), guide_runtime("i", "{successPolicy: own}"));
  CHECK(own.jobset.find_path({"spec", "successPolicy"})->get_string("operator") == "Any");

  Runtime jax = guide_runtime();
  jax.spec.mlPolicy.emplace().jax.emplace();
  CHECK(env_value(container_in(built(cached_job("[]", trainer), jax), "node"), "PET_NNODES") == "");

  // Without such a job, cache:// is a dataset that an initializer fetches.
  Runtime fetching = builtin_runtime();
  Json& fetcher = fetching.spec.template_->spec->replicatedJobs[0].template_;
  fetcher["spec"]["template"]["spec"]["containers"].as_array()[0].erase("env");
  const Built fetched = built(cached_job("[" + var("CLUSTER_SIZE", "5") + "]"), fetching);
  CHECK(fetched.pod_sets[0].count == 3);
  CHECK(fetched.dependents.empty());
}

TEST_CASE("without torchrun a runtime without policy has none", "[cache]") {
  struct Row {
    const char* command;
    const char* nodes;  // PET_NNODES
  };
  const Row rows[] = {
      {"[bash, -c, torchrun t.py]", "1"},
      {"[python, -m, torch.distributed.run, t.py]", "1"},
      {"[python, t.py]", ""},
      {"[tune, run]", ""},
      {"[]", ""},
  };
  for (const Row& row : rows) {
    INFO(row.command);
    const TrainJob job = cached_job(
        "[]", std::string("{resourcesPerNode: {limits: {cpu: 3}}, command: ") + row.command + "}");
    const bool has_policy = *row.nodes != '\0';
    const Built result = built(job, guide_runtime());
    const Json& node = container_in(result, "node");
    CHECK(env_value(node, "PET_NNODES") == row.nodes);
    CHECK((node.find_path({"resources", "limits", "cpu"}) != nullptr) == has_policy);
    CHECK(warn_trainjob(job, guide_runtime()).size() == (has_policy ? 0U : 1U));
  }
}

TEST_CASE("the empty policy that the SDK asks for leaves torchrun its variables", "[cache]") {
  const std::string trainer = "{command: [torchrun, t.py], resourcesPerNode: {limits: {cpu: 3}}}";
  Runtime runtime = guide_runtime();
  runtime.spec.mlPolicy.emplace();
  CHECK(env_value(container_in(built(cached_job("[]", trainer), runtime), "node"), "PET_NNODES") ==
        "1");
  runtime.spec.mlPolicy->numNodes = 2;
  const Built result = built(cached_job("[]", trainer), runtime);
  CHECK(env_value(container_in(result, "node"), "PET_NNODES") == "2");
  CHECK(result.pod_sets[1].count == 2);
}

TEST_CASE("a Python command of a runtime without policy is warned about, and takes a launcher",
          "[cache]") {
  TrainJob job = cached_job("[]", "{numNodes: 2, command: [python, t.py]}");
  const auto warnings = warn_trainjob(job, guide_runtime());
  REQUIRE(warnings.size() == 1);
  CHECK(
      warnings[0].find("spec.trainer.command: \"python t.py\" does not start torchrun, so each of "
                       "the 2 nodes runs a training of its own") == 0);
  job.metadata.annotations["trainer.kubeflow.org/torch-launcher"] = "torchrun";
  CHECK(warn_trainjob(job, guide_runtime()) == Words{});
  const Built by_torchrun = built(job, guide_runtime());
  CHECK(strings(container_in(by_torchrun, "node").get_array("command")) ==
        Words{"torchrun", "t.py"});
  CHECK(env_value(container_in(by_torchrun, "node"), "PET_NNODES") == "2");
  job.metadata.annotations["trainer.kubeflow.org/torch-launcher"] = "env";
  CHECK(warn_trainjob(job, guide_runtime()) == Words{});
  CHECK(env_value(container_in(built(job, guide_runtime()), "node"), "WORLD_SIZE") == "2");
  // Other policies have launchers of their own.
  Runtime jax = guide_runtime();
  jax.spec.mlPolicy.emplace().jax.emplace();
  CHECK(warn_trainjob(cached_job("[]", "{numNodes: 2, command: [python, t.py]}"), jax) == Words{});
}

TEST_CASE("an endpoint that names no pod becomes the head's name", "[cache]") {
  struct Row {
    const char* env;  // the env of the job's trainer
    const char* data;
    const char* cache;
  };
  constexpr const char* kHost = "j-cache-initializer-0-0.j:50051";
  constexpr const char* kUri = "grpc://j-cache-initializer-0-0.j:50051";
  const Row rows[] = {
      {"[]", kHost, kUri},
      {"[{name: CACHE_ENDPOINT, value: 'cache-initializer-0:50051'}]", kHost, kHost},
      {"[{name: CACHE_ENDPOINT, value: 'grpc://cache-initializer-0:50051'}]", kHost, kUri},
      {"[{name: CACHE_ENDPOINT, value: 'mine:1'}]", kHost, "mine:1"},
      {"[{name: DATA_CACHE_ENDPOINT, value: 'cache-initializer-0:1'}]",
       "j-cache-initializer-0-0.j:1", kUri},
      {"[{name: DATA_CACHE_ENDPOINT, value: 'cache-initializer-1:50051'}]",
       "cache-initializer-1:50051", kUri},
      {"[{name: DATA_CACHE_ENDPOINT, value: 'my-cache-initializer-0:50051'}]",
       "my-cache-initializer-0:50051", kUri},
  };
  for (const Row& row : rows) {
    INFO(row.env);
    const Built result =
        built(cached_job("[]", std::string("{env: ") + row.env + "}"), guide_runtime());
    const Json& node = container_in(result, "node");
    CHECK(env_value(node, "DATA_CACHE_ENDPOINT") == row.data);
    CHECK(env_value(node, "CACHE_ENDPOINT") == row.cache);
  }
}

TEST_CASE("the SDK's sizes are those of the built-in runtime's cache pods", "[cache]") {
  struct Row {
    std::string env;
    const char* pods;
    const char* cpu;
    const char* memory;
  };
  const Row rows[] = {
      {"[]", "3", "2", "2Gi"},
      {"[" + var("CLUSTER_SIZE", "5") + ", " + var("WORKER_MEM", "64Gi") + "]", "5", "2", "64Gi"},
      // This is the larger of head and worker; if nothing is set for a worker, the runtime's
      // counts.
      {"[" + var("HEAD_CPU", "4") + ", " + var("HEAD_MEM", "512Mi") + "]", "3", "4", "2Gi"},
      {"[" + var("HEAD_MEM", "3Gi") + ", " + var("WORKER_MEM", "1Gi") + "]", "3", "2", "3Gi"},
      {"[" + var("WORKER_CPU", "500m") + ", " + var("WORKER_MEM", "1024Mi") + "]", "3", "500m",
       "1Gi"},
      {"[" + var("CLUSTER_SIZE", "9") + ", " + var("CLUSTER_SIZE", "2") + "]", "2", "2", "2Gi"},
  };
  for (const Row& row : rows) {
    INFO(row.env);
    const TrainJob job = cached_job(row.env);
    CHECK(kube::to_string(validate_trainjob(job, nullptr, builtin_runtime())) == "");
    CHECK(warn_trainjob(job, builtin_runtime()) == Words{});
    const Built result = built(job, builtin_runtime());
    const Json& spec = *job_in(result, "dataset-initializer").find_path({"template", "spec"});
    CHECK(std::to_string(spec.get_int("parallelism")) == row.pods);
    CHECK(std::to_string(spec.get_int("completions")) == row.pods);
    const Json& server = container_in(result, "dataset-initializer", "dataset-initializer");
    CHECK(env_value(server, "LWS_GROUP_SIZE") == row.pods);
    const Json amounts = Json::object({{"cpu", row.cpu}, {"memory", row.memory}});
    CHECK(*server.find("resources") == Json::object({{"requests", amounts}, {"limits", amounts}}));
    CHECK(dependent(result, "Service", "j-cache-service") != nullptr);
  }
}

TEST_CASE("sizes that cannot be, or that Kueue does not count, are refused", "[cache]") {
  struct Row {
    std::string env;  // one variable
    bool is_queued;
    const char* detail;  // a part; "" when it is fine
  };
  const char* const kNumber =
      "CLUSTER_SIZE counts the cache's head and its workers: write a number";
  const char* const kAmount = "is no amount of a resource";
  const char* const kQueue =
      "with label kueue.x-k8s.io/queue-name the cache's pods are those that Kueue counts: 3 of "
      "ClusterTrainingRuntime \"torch-distributed-with-cache\"";
  const Row rows[] = {
      {var("CLUSTER_SIZE", "1"), false, kNumber},
      {var("CLUSTER_SIZE", "4.5"), false, kNumber},
      {var("CLUSTER_SIZE", "100001"), false, kNumber},
      {"{name: CLUSTER_SIZE, valueFrom: {configMapKeyRef: {name: c, key: k}}}", false, kNumber},
      {var("WORKER_MEM", "64 GB"), false, kAmount},
      {var("HEAD_CPU", "0"), false, kAmount},
      {var("HEAD_MEM", "-1Gi"), false, kAmount},
      {var("CLUSTER_SIZE", "5"), false, ""},
      {var("CLUSTER_SIZE", "5"), true, kQueue},
      {var("WORKER_MEM", "64Gi"), true, kQueue},
      {var("HEAD_CPU", "3"), true, kQueue},
      {var("CLUSTER_SIZE", "3"), true, ""},
      {var("WORKER_MEM", "2048Mi"), true, ""},
      {var("HEAD_MEM", "1Gi"), true, ""},
  };
  for (const Row& row : rows) {
    INFO(row.env << " " << row.is_queued);
    TrainJob job = cached_job("[" + var("METADATA_LOC", "m") + ", " + row.env + "]");
    job.spec.runtimeRef.name = "torch-distributed-with-cache";
    if (row.is_queued) job.metadata.labels["kueue.x-k8s.io/queue-name"] = "q";
    const auto errors = validate_trainjob(job, nullptr, builtin_runtime());
    REQUIRE(errors.size() == (*row.detail == '\0' ? 0U : 1U));
    if (errors.empty()) continue;
    CHECK(errors[0].path == "spec.initializer.dataset.env[1].value");
    CHECK_THAT(errors[0].detail, kube::test::starts_with(row.detail));
    // A job that was accepted before there was this rule goes on with the runtime's sizes.
    const Built result = built(job, builtin_runtime());
    CHECK(result.ignored == errors);
    job.spec.initializer->dataset->env.clear();
    const Built plain = built(job, builtin_runtime());
    const Json& spec = *job_in(result, "dataset-initializer").find_path({"template", "spec"});
    CHECK(spec.get_int("parallelism") == 3);
    CHECK(spec.get_int("completions") == 3);
    const Json& server = container_in(result, "dataset-initializer", "dataset-initializer");
    CHECK(env_value(server, "LWS_GROUP_SIZE") == "3");
    CHECK(server.get("resources") ==
          container_in(plain, "dataset-initializer", "dataset-initializer").get("resources"));
  }
}

TEST_CASE("where one size is refused, all are the runtime's, and the role stays", "[cache]") {
  Runtime runtime = builtin_runtime();
  runtime.metadata.annotations["trainer.kubeflow.org/data-cache-iam-roles"] = "arn";
  const TrainJob job =
      cached_job("[" + var("CLUSTER_SIZE", "1") + ", " + var("WORKER_MEM", "64Gi") + ", " +
                 var("HEAD_CPU", "many") + ", " + var("IAM_ROLE", "arn") + "]");
  const Built result = built(job, runtime);
  REQUIRE(result.ignored.size() == 2);
  CHECK(result.ignored[0].path == "spec.initializer.dataset.env[0].value");
  CHECK(result.ignored[1].path == "spec.initializer.dataset.env[2].value");
  const Json& spec = *job_in(result, "dataset-initializer").find_path({"template", "spec"});
  CHECK(spec.get_int("parallelism") == 3);
  const Json& server = container_in(result, "dataset-initializer", "dataset-initializer");
  CHECK(server.find_path({"resources", "limits", "memory"})->as_string() == "2Gi");
  CHECK(env_value(server, "AWS_ROLE_ARN") == "arn");
}

TEST_CASE("the JobSet that exists keeps its cache pods", "[cache]") {
  struct Row {
    std::string made_with;  // the variables of the JobSet that exists
    std::string env;
    bool is_queued;
    const char* refusal;  // "" where there is none
    std::size_t ignored;
    int pods;
  };
  const std::string five = var("CLUSTER_SIZE", "5");
  const std::string memory = var("WORKER_MEM", "64Gi");
  const Row rows[] = {
      {five, five, false, "", 0, 5},
      {memory, memory, false, "", 0, 3},
      {"", five, false, "", 1, 3},
      {"", memory, false, "", 1, 3},
      {"", five, true, "", 1, 3},
      {"", five + ", " + memory, false, "", 2, 3},
      {five, five, true, "spec.initializer.dataset.env[0].value", 0, 0},
      {memory, memory, true, "spec.initializer.dataset.env[0].value", 0, 0},
      // The API server says that this cannot exist.
      {var("CLUSTER_SIZE", "4"), five, false, "", 0, 5},
  };
  for (const Row& row : rows) {
    INFO(row.made_with << " " << row.env << " " << row.is_queued);
    const Json stored = built(cached_job("[" + row.made_with + "]"), builtin_runtime()).jobset;
    TrainJob job = cached_job("[" + row.env + "]");
    if (row.is_queued) job.metadata.labels["kueue.x-k8s.io/queue-name"] = "q";
    const auto result = build(job, builtin_runtime(), production(), nullptr, &stored);
    REQUIRE(result.has_value() == (*row.refusal == '\0'));
    if (!result) {
      CHECK(paths_of(result.error()) == Words{row.refusal});
      continue;
    }
    CHECK(result->ignored.size() == row.ignored);
    const Json& spec = job_in(*result, "dataset-initializer").get_path({"template", "spec"});
    CHECK(spec.get_int("parallelism") == row.pods);
  }
}

TEST_CASE("a role is assumed where the runtime lists it", "[cache]") {
  struct Row {
    const char* list;  // the annotation; "" for none
    const char* role;
    bool is_allowed;
  };
  const Row rows[] = {
      {"arn:aws:iam::1:role/a", "arn:aws:iam::1:role/a", true},
      {"arn:aws:iam::1:role/a, arn:aws:iam::1:role/b", "arn:aws:iam::1:role/b", true},
      {" arn:aws:iam::1:role/a ,", "arn:aws:iam::1:role/a", true},
      {"arn:aws:iam::1:role/ab", "arn:aws:iam::1:role/a", false},
      {"", "arn:aws:iam::1:role/a", false},
      {" , ", "", false},
  };
  for (const Row& row : rows) {
    INFO(row.list << " " << row.role);
    for (Runtime runtime : {builtin_runtime(), guide_runtime()}) {
      if (*row.list != '\0')
        runtime.metadata.annotations["trainer.kubeflow.org/data-cache-iam-roles"] = row.list;
      const TrainJob job = cached_job("[" + var("IAM_ROLE", row.role) + "]");
      const auto errors = validate_trainjob(job, nullptr, runtime);
      REQUIRE(errors.size() == (row.is_allowed ? 0U : 1U));
      if (!row.is_allowed) {
        CHECK(errors[0].path == "spec.initializer.dataset.env[0].value");
        CHECK(errors[0].detail.find("does not allow this IAM_ROLE: ") != std::string::npos);
        // A job that was accepted before there was this rule goes on without the role.
        const Built result = built(job, runtime);
        CHECK(result.ignored == errors);
        CHECK(kube::print_yaml(result.jobset).find("AWS_ROLE_ARN") == std::string::npos);
        continue;
      }
      const Built result = built(job, runtime);
      CHECK(result.ignored.empty());
      const std::string name = result.pod_sets[0].name;
      const Json& server =
          container_in(result, name, name == "cache-initializer" ? "cache" : name.c_str());
      CHECK(env_value(server, "AWS_ROLE_ARN") == row.role);
      const std::string token = env_value(server, "AWS_WEB_IDENTITY_TOKEN_FILE");
      const std::string directory(server.get_array("volumeMounts").back().get_string("mountPath"));
      CHECK(token == directory + "/token");
      CHECK(pod_in(result, name).get("spec").get_array("volumes").back() == yaml(R"(
name: aws-iam-token
projected: {sources: [{serviceAccountToken: {audience: sts.amazonaws.com, expirationSeconds: 86400, path: token}}]}
)"));
    }
  }
}

TEST_CASE("a cache that serves nothing, or that has no size, is warned about", "[cache]") {
  struct Row {
    const char* image;
    std::string env;
    const char* warning;
  };
  const Row rows[] = {
      {"ghcr.io/kubeflow/trainer/dataset-initializer", "[]",
       "spec.runtimeRef: image ghcr.io/kubeflow/trainer/dataset-initializer of job "
       "cache-initializer creates a LeaderWorkerSet"},
      {"r:5000/dataset-initializer:v2.1.0", "[]", "spec.runtimeRef: image r:5000/"},
      {"r/dataset-initializer@sha256:0", "[]", "spec.runtimeRef: image r/dataset-initializer@"},
      {"dataset-initializer", "[]", "spec.runtimeRef: image dataset-initializer of"},
      {"my-dataset-initializer:1", "[]", ""},
      {"ghcr.io/kubeflow/trainer/data-cache", "[]", ""},
      {"i", "[" + var("CLUSTER_SIZE", "5") + "]",
       "spec.initializer.dataset.env: CLUSTER_SIZE and the amounts beside it size no pod, because "
       "container cache of runtime \"rt\" has no variable LWS_GROUP_SIZE"},
  };
  for (const Row& row : rows) {
    INFO(row.image);
    const auto warnings = warn_trainjob(cached_job(row.env), guide_runtime(row.image));
    REQUIRE(warnings.size() == (*row.warning == '\0' ? 0U : 1U));
    if (!warnings.empty()) CHECK_THAT(warnings[0], kube::test::starts_with(row.warning));
  }
}

}  // namespace
}  // namespace trainer::test
