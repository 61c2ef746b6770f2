// Resources of runtime and job together, and everything that is computed from them.
#include <random>

#include "kube/model/pod_template.hh"
#include "runtimes/pipeline/accelerators.hh"
#include "runtimes/plugins/torch/process_count.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

TEST_CASE("what counts as an accelerator", "[resources]") {
  using pipeline::is_accelerator;
  for (const char* name :
       {"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb",
        "nvidia.com/mig-3g.20gb", "amd.com/gpu", "google.com/tpu", "gpu.intel.com/i915",
        "habana.ai/gaudi", "vendor.example/gpu", "aws.amazon.com/neuron", "huawei.com/Ascend910"}) {
    INFO(name);
    CHECK(is_accelerator(name, {}));
  }
  for (const char* name : {"nvidia.com/gpumem", "nvidia.com/gpumem-percentage",
                           "nvidia.com/gpucores", "nvidia.com/mig-", "cpu", "memory", "gpu", "/gpu",
                           "rdma/hca", "huawei.com/Ascend910-memory", "hugepages-2Mi"}) {
    INFO(name);
    CHECK_FALSE(is_accelerator(name, {}));
  }
}

TEST_CASE("devices are counted over all kinds, requests before limits", "[resources]") {
  struct Row {
    const char* resources;
    std::int64_t devices;
  };
  const Row rows[] = {
      {"{}", 0},
      {"{limits: {nvidia.com/gpu: 2}}", 2},
      {"{requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}", 1},
      {"{requests: {cpu: 4}, limits: {nvidia.com/gpu: '2'}}", 2},
      {"{limits: {nvidia.com/mig-1g.5gb: 2, nvidia.com/mig-2g.10gb: 1}}", 3},
      {"{limits: {nvidia.com/gpu: not-a-quantity}}", 0},
  };
  for (const Row& row : rows) {
    INFO(row.resources);
    const auto container = kube::Json::object({{"resources", yaml(row.resources)}});
    CHECK(pipeline::count_accelerators(container, {}) == row.devices);
  }
}

Runtime runtime_of(const kube::Json& resources, const char* policy) {
  Runtime runtime = runtime_with(policy, R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i}]}}}
)");
  kube::Json* container = kube::find_container(
      runtime.spec.template_->spec->replicatedJobs[0].template_["spec"]["template"], "node");
  container->set("resources", resources);
  return runtime;
}

TrainJob job_with_resources(const kube::Json& resources) {
  TrainJob job = job_with("trainer: {}");
  job.spec.trainer->resourcesPerNode = resources;
  return job;
}

TEST_CASE("the job's resources go over the runtime's, key by key", "[resources]") {
  struct Row {
    const char* runtime;
    const char* job;
    const char* expected;
  };
  const Row rows[] = {
      {"{requests: {cpu: 4, memory: 8Gi}}", "{limits: {nvidia.com/gpu: 1}}",
       "{requests: {cpu: '4', memory: 8Gi}, limits: {nvidia.com/gpu: '1'}}"},
      {"{requests: {cpu: 4}, limits: {nvidia.com/gpu: 4}}", "{requests: {memory: 1Gi}}",
       "{requests: {cpu: '4', memory: 1Gi}, limits: {nvidia.com/gpu: '4'}}"},
      {"{requests: {cpu: 4}}", "{requests: {cpu: 2}}", "{requests: {cpu: '2'}}"},
      {"{}", "{requests: {cpu: 2}}", "{requests: {cpu: '2'}}"},
      {"{requests: {cpu: 4}}", "{}", "{requests: {cpu: '4'}}"},
      // Amounts in the form that typed clients write.
      {"{limits: {nvidia.com/gpu: 2, cpu: 1000m}}", "{limits: {memory: 1024Mi}}",
       "{limits: {nvidia.com/gpu: '2', cpu: '1', memory: 1Gi}}"},
      {"{requests: {cpu: 0.5}}", "{requests: {memory: many}}",
       "{requests: {cpu: 500m, memory: many}}"},
      {"{claims: [{name: a, request: r}]}", "{claims: [{name: a}, {name: b}]}",
       "{claims: [{name: a}, {name: b}]}"},
  };
  for (const Row& row : rows) {
    INFO(row.runtime << " + " << row.job);
    const Built result =
        built(job_with_resources(yaml(row.job)), runtime_of(yaml(row.runtime), "{torch: {}}"));
    CHECK(*container_in(result, "node").find("resources") == yaml(row.expected));
  }
}

TEST_CASE("a runtime without a policy takes no resources, and the job gets a warning",
          "[resources]") {
  Runtime runtime = runtime_of(yaml("{requests: {cpu: 4}}"), "{}");
  runtime.spec.mlPolicy.reset();
  const Built result = built(job_with_resources(yaml("{requests: {cpu: 2}}")), runtime);
  CHECK(*container_in(result, "node").find("resources") == yaml("{requests: {cpu: '4'}}"));
  REQUIRE(result.warnings.size() == 1);
  CHECK(result.warnings[0].find("spec.trainer.resourcesPerNode") == 0);
}

TEST_CASE("a runtime's template is as Go types write it; what the job says stays", "[resources]") {
  const Built result =
      built(job_with("trainer: {env: [{name: MINE, value: ''}]}"), runtime_with("{torch: {}}", R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec:
      backoffLimit: 0
      template:
        metadata: {annotations: {a: ''}}
        spec:
          hostNetwork: false
          overhead: {cpu: 0.5}
          resources: {limits: {memory: 2048Mi}}
          tolerations: []
          volumes:
          - {name: e, emptyDir: {sizeLimit: 1024Mi}}
          - {name: c, ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: 0.5Gi}}}}}}
          containers:
          - name: node
            image: i
            args: []
            tty: false
            env: [{name: THEIRS, value: ''}]
            volumeMounts: [{name: e, mountPath: /e, readOnly: false}]
)"));
  const kube::Json& pod = pod_in(result, "node");
  CHECK(pod.find_path({"metadata", "annotations"})->find("a") != nullptr);
  const kube::Json& spec = *pod.find("spec");
  for (const char* gone : {"hostNetwork", "tolerations"}) CHECK(spec.find(gone) == nullptr);
  CHECK(*spec.find("overhead") == yaml("{cpu: 500m}"));
  CHECK(*spec.find("resources") == yaml("{limits: {memory: 2Gi}}"));
  CHECK(*spec.find("volumes") ==
        yaml("[{name: e, emptyDir: {sizeLimit: 1Gi}}, {name: c, ephemeral: {volumeClaimTemplate: "
             "{spec: {resources: {requests: {storage: 512Mi}}}}}}]"));
  CHECK(job_in(result, "node").find_path({"template", "spec", "backoffLimit"}) != nullptr);

  const kube::Json& container = container_in(result, "node");
  for (const char* gone : {"args", "tty"}) CHECK(container.find(gone) == nullptr);
  CHECK(container.get_array("volumeMounts")[0] == yaml("{name: e, mountPath: /e}"));
  const auto variable = [&container](std::string_view name) {
    for (const kube::Json& one : container.get_array("env"))
      if (one.get_string("name") == name) return one;
    return kube::Json();
  };
  CHECK(variable("THEIRS") == yaml("{name: THEIRS}"));
  CHECK(variable("MINE") == yaml("{name: MINE, value: ''}"));
}

TEST_CASE("claims of a runtime have canonical amounts", "[resources]") {
  Runtime runtime = torch_runtime();
  runtime.spec.template_->spec->volumeClaimPolicies.emplace_back().templates.push_back(
      yaml("{metadata: {name: c}, spec: {resources: {requests: {storage: 1024Mi}}}}"));
  const Built result = built(job_with("trainer: {}"), runtime);
  const kube::Json& policy = result.jobset.find("spec")->get_array("volumeClaimPolicies").at(0);
  CHECK(*policy.get_array("templates").at(0).find_path({"spec", "resources", "requests"}) ==
        yaml("{storage: 1Gi}"));
}

// A pair of runtime and job resources, from a few kinds and amounts each, some of them absent.
kube::Json random_resources(std::mt19937& random) {
  kube::Json out = kube::Json::object();
  for (const char* list : {"requests", "limits"})
    for (const char* kind : {"cpu", "memory", "nvidia.com/gpu", "amd.com/gpu",
                             "nvidia.com/mig-1g.5gb", "nvidia.com/gpumem", "google.com/tpu"}) {
      if (random() % 3 != 0) continue;
      const auto amount = static_cast<std::int64_t>(random() % 9);
      out[list].set(kind, std::string(kind) == "cpu" && random() % 2 == 0
                              ? kube::Json(std::to_string(amount * 500) + "m")
                              : kube::Json(amount));
    }
  return out;
}

// This states the merge independently: the container must hold this in the end.
kube::Json merged_resources(const kube::Json& runtime, const kube::Json& job) {
  kube::Json out = kube::Json::object();
  for (const kube::Json* side : {&runtime, &job})
    for (const auto& [list, amounts] : side->as_object())
      for (const auto& [kind, amount] : amounts.as_object()) out[list].set(kind, amount);
  return out;
}

TEST_CASE("processes, slots, workers and groups follow from the final container, with any parts",
          "[resources]") {
  std::mt19937 random(20261121);  // the same pairs in every run
  for (int i = 0; i < 300; ++i) {
    const kube::Json of_runtime = random_resources(random);
    const kube::Json of_job = random_resources(random);
    const kube::Json final_container =
        kube::Json::object({{"name", "node"}, {"resources", merged_resources(of_runtime, of_job)}});
    const auto devices = pipeline::count_accelerators(final_container, {});
    CAPTURE(i);
    const auto build_with = [&](const char* policy) {
      Runtime runtime = runtime_of(of_runtime, policy);
      runtime.spec.podGroupPolicy = PodGroupPolicy{CoschedulingPolicy{}, {}, {}};
      return built(job_with_resources(of_job), runtime);
    };
    const Built torch = build_with("{numNodes: 3, torch: {}}");
    CHECK(kube::read_resources(container_in(torch, "node"), "requests") ==
          kube::read_resources(final_container, "requests"));
    CHECK(kube::read_resources(container_in(torch, "node"), "limits") ==
          kube::read_resources(final_container, "limits"));
    CHECK(env_value(container_in(torch, "node"), "PET_NPROC_PER_NODE") ==
          pipeline::count_processes({}, final_container, {}).to_string());

    kube::ResourceList total = kube::pod_requests(kube::Json::object(
        {{"spec", kube::Json::object({{"containers", kube::Json::array({final_container})}})}}));
    kube::Json expected = kube::Json::object();
    for (auto& [kind, amount] : total) {
      amount *= 3;
      expected.set(kind, amount.to_string());
    }
    CHECK(*dependent(torch, "PodGroup", "j")->find_path({"spec", "minResources"}) == expected);

    const Built xgboost = build_with("{numNodes: 3, xgboost: {}}");
    CHECK(env_value(container_in(xgboost, "node"), "DMLC_NUM_WORKER") ==
          std::to_string(3 * std::max<std::int64_t>(1, devices)));

    const Built mpi = build_with("{mpi: {runLauncherAsNode: true}}");
    CHECK(dependent(mpi, "ConfigMap", "j-mpi-hostfile")
              ->find_path({"data", "hostfile"})
              ->as_string() ==
          "j-node-0-0.j slots=" + std::to_string(devices > 1 ? devices : 1) + "\n");
  }
}

}  // namespace
}  // namespace trainer::test
