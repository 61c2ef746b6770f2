#include "runtimes/plugins/torch/process_count.hh"
#include "runtimes/plugins/torch/torchtune.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using pipeline::count_processes;
using pipeline::ProcessCount;
namespace torchtune = pipeline::torchtune;
using Words = std::vector<std::string>;

constexpr const char* kRank =
    "PET_NODE_RANK<-metadata.annotations['batch.kubernetes.io/job-completion-index']";

TEST_CASE("the number of processes follows from the container", "[torch]") {
  struct Row {
    const char* resources;
    std::optional<IntOrString> desired;
    const char* expected;
  };
  const IntOrString five{5, ""};
  const IntOrString automatic{{}, "auto"};
  const IntOrString gpu{{}, "gpu"};
  const IntOrString cpu{{}, "cpu"};
  const Row rows[] = {
      {"{}", {}, "1"},
      {"{requests: {cpu: 4}}", {}, "4"},
      {"{limits: {cpu: 4}}", {}, "4"},
      {"{requests: {cpu: 2}, limits: {cpu: 8}}", {}, "2"},
      {"{requests: {cpu: 0}, limits: {cpu: 8}}", {}, "8"},
      {"{requests: {cpu: 2500m}}", {}, "3"},
      {"{requests: {cpu: 0.7}}", {}, "1"},
      {"{requests: {memory: 1Gi}}", {}, "1"},
      {"{limits: {nvidia.com/gpu: 2}}", {}, "auto"},
      {"{requests: {nvidia.com/gpu: 2, cpu: 16}}", {}, "auto"},
      {"{limits: {nvidia.com/mig-1g.5gb: 1}}", {}, "auto"},
      {"{limits: {amd.com/gpu: 8}}", {}, "auto"},
      {"{limits: {volcano.sh/vgpu-number: 2, volcano.sh/vgpu-memory: 3000}}", {}, "auto"},
      // torchrun would start one process a CPU, since it does not find these.
      {"{limits: {google.com/tpu: 4}}", {}, "4"},
      {"{limits: {aws.amazon.com/neuroncore: 32, cpu: 128}}", {}, "32"},
      {"{limits: {aws.amazon.com/neuroncore: 32}}", gpu, "gpu"},
      {"{limits: {aws.amazon.com/neuroncore: 2, nvidia.com/gpu: 1}}", {}, "3"},
      {"{limits: {nvidia.com/gpumem: 4096, cpu: 6}}", {}, "6"},
      {"{limits: {nvidia.com/gpu: 0, cpu: 6}}", {}, "6"},
      {"{limits: {nvidia.com/gpu: 2}}", five, "5"},
      {"{}", five, "5"},
      {"{limits: {nvidia.com/gpu: 2, cpu: 6}}", automatic, "auto"},
      {"{limits: {cpu: 6}}", automatic, "6"},
      {"{limits: {nvidia.com/gpu: 2, cpu: 6}}", gpu, "gpu"},
      {"{limits: {cpu: 6}}", gpu, "gpu"},
      {"{limits: {nvidia.com/gpu: 2, cpu: 6}}", cpu, "6"},
      {"{}", cpu, "1"},
  };
  for (const Row& row : rows) {
    INFO(row.resources);
    const kube::Json container =
        kube::Json::object({{"name", "node"}, {"resources", yaml(row.resources)}});
    CHECK(count_processes(row.desired, container, {}).to_string() == row.expected);
  }
}

TEST_CASE("devices and processes separate one, several and none", "[torch]") {
  struct Row {
    ProcessCount count;
    bool is_single_device;
    bool is_several;
  };
  const Row rows[] = {
      {{1, 8}, true, false},
      {{1, 0}, true, false},
      {{std::nullopt, 1}, true, false},
      {{std::nullopt, 2}, false, true},
      {{4, 0}, false, true},
      {{2, 1}, true, true},
  };
  for (const Row& row : rows) {
    INFO(row.count.to_string() << " on " << row.count.accelerators);
    CHECK(row.count.is_single_device() == row.is_single_device);
    CHECK(row.count.is_several() == row.is_several);
  }
}

TEST_CASE("what a job says about processes comes before what its runtime says", "[torch]") {
  struct Row {
    const char* trainer;
    const char* runtime;
    const char* expected;
  };
  const char* gpus = "resourcesPerNode: {limits: {nvidia.com/gpu: 2}}";
  const Row rows[] = {
      {"{}", "{}", "auto"},
      {"{}", "{numProcPerNode: 3}", "3"},
      {"{}", "{numProcPerNode: gpu}", "gpu"},
      {"{numProcPerNode: 2}", "{numProcPerNode: 3}", "2"},
      {"{numProcPerNode: 2}", "{numProcPerNode: gpu}", "2"},
  };
  for (const Row& row : rows) {
    INFO(row.trainer << " " << row.runtime);
    TrainJob job = job_with("trainer: {" + std::string(gpus) + "}");
    job.spec.trainer->numProcPerNode =
        job_with("trainer: " + std::string(row.trainer)).spec.trainer->numProcPerNode;
    const Runtime runtime = torch_runtime("mlPolicy: {torch: " + std::string(row.runtime) + "}");
    CHECK(env_value(container_in(built(job, runtime), "node"), "PET_NPROC_PER_NODE") ==
          row.expected);
  }
}

TEST_CASE("a trainer section brings the rendezvous into the container, behind the job's own env",
          "[torch]") {
  const Built result =
      built(job_with("trainer: {numNodes: 3, env: [{name: A, value: '1'}]}"), torch_runtime());
  CHECK(env_of(container_in(result, "node")) == Words{"A=1", "PET_NNODES=3", "PET_NPROC_PER_NODE=1",
                                                      kRank, "PET_MASTER_ADDR=j-node-0-0.j",
                                                      "PET_MASTER_PORT=29500"});
  CHECK(container_in(result, "node").get_array("ports").at(0).get_int("containerPort") == 29500);
  CHECK(result.pod_sets.at(0).count == 3);
}

TEST_CASE("the nodes of a job without a trainer section are one training, too", "[torch]") {
  const Built result = built(job_with("{}"), torch_runtime("mlPolicy: {numNodes: 2}"));
  CHECK(env_of(container_in(result, "node")) == Words{"PET_NNODES=2", "PET_NPROC_PER_NODE=1", kRank,
                                                      "PET_MASTER_ADDR=j-node-0-0.j",
                                                      "PET_MASTER_PORT=29500"});
  CHECK(job_in(result, "node").find_path({"template", "spec", "completions"})->as_int() == 2);
}

TEST_CASE("no nodes at all is a count like any other", "[torch]") {
  const Built result = built(job_with("trainer: {numNodes: 0}"), torch_runtime());
  CHECK(job_in(result, "node").find_path({"template", "spec", "parallelism"})->as_int() == 0);
  CHECK(env_value(container_in(result, "node"), "PET_NNODES") == "0");
}

TEST_CASE("the rendezvous address resolves under another subdomain and another job's name",
          "[torch]") {
  const Runtime other = runtime_with("{torch: {}}", R"(
- name: workers
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i}]}}}
)");
  Runtime with_subdomain = other;
  with_subdomain.spec.template_->spec->network = Network{{}, "hosts", {}, {}};
  CHECK(env_value(container_in(built(job_with("trainer: {}"), other), "workers"),
                  "PET_MASTER_ADDR") == "j-workers-0-0.j");
  CHECK(env_value(container_in(built(job_with("trainer: {}"), with_subdomain), "workers"),
                  "PET_MASTER_ADDR") == "j-workers-0-0.hosts");
}

constexpr const char* kSidecars = R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec:
      template:
        spec:
          initContainers: [{name: probe, image: p}]
          containers: [{name: node, image: i}, {name: side, image: s}]
- name: eval
  template: {spec: {template: {spec: {containers: [{name: main, image: i}]}}}}
)";

TEST_CASE("envInjection reaches init containers, sidecars and other jobs", "[torch]") {
  const Runtime targets = runtime_with(R"({numNodes: 2, torch: {envInjection: {targets: [
    {jobName: node, containerNames: [probe, side]}, {jobName: eval, containerNames: [main]}]}}})",
                                       kSidecars);
  const Built result = built(job_with("{}"), targets);
  const Words all = {"PET_NNODES=2", "PET_NPROC_PER_NODE=1", kRank, "PET_MASTER_ADDR=j-node-0-0.j",
                     "PET_MASTER_PORT=29500"};
  CHECK(env_of(container_in(result, "node", "probe")) == all);
  CHECK(env_of(container_in(result, "node", "side")) == all);
  CHECK(env_of(container_in(result, "eval", "main")) == all);
  CHECK(env_of(container_in(result, "node")) == all);
}

TEST_CASE("an envInjection target that does not exist is refused", "[torch]") {
  for (const char* target : {"{jobName: node, containerNames: [missing]}",
                             "{jobName: nowhere, containerNames: [side]}"}) {
    const Runtime runtime = runtime_with(
        "{torch: {envInjection: {targets: [" + std::string(target) + "]}}}", kSidecars);
    CHECK(refused(job_with("{}"), runtime).size() == 1);
    const auto errors = validate_trainjob(job_with("{}"), nullptr, runtime);
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].path == "spec.runtimeRef");
    CHECK(errors[0].detail.find("not found in runtime template") != std::string::npos);
  }
}

TEST_CASE("reserved variables are refused one by one, with what to set instead", "[torch]") {
  const auto errors =
      validate_trainjob(job_with("trainer: {env: [{name: A, value: x}, {name: PET_NNODES, value: "
                                 "'9'}, {name: PET_RDZV_BACKEND, value: c10d}]}"),
                        nullptr, torch_runtime());
  REQUIRE(paths_of(errors) == Words{"spec.trainer.env[1].name"});
  CHECK(errors[0].value == kube::Json("PET_NNODES"));
  CHECK(errors[0].detail.find("spec.trainer.numNodes") != std::string::npos);
}

TEST_CASE("the model follows from the runtime's name", "[torchtune]") {
  CHECK(torchtune::model_of("torchtune-llama3.2-1b") == "llama3_2/1B");
  CHECK(torchtune::model_of("torchtune-qwen2.5-1.5b") == "qwen2_5/1.5B");
  CHECK(torchtune::model_of("torchtune-llama3.3-70b") == "llama3_3/70B");
  CHECK(torchtune::model_of("torchtune") == "");
  CHECK(torchtune::model_of("my-llama") == "");
  CHECK(torchtune::model_of("my-own-llama-1b") == "");
}

TEST_CASE("the kind of tuning follows from the arguments", "[torchtune]") {
  using torchtune::Tuning;
  CHECK(torchtune::tuning_of({}) == Tuning::kFull);
  CHECK(torchtune::tuning_of({"epochs=1", "model.lora_attn_modules=[q_proj]"}) == Tuning::kLora);
  CHECK(torchtune::tuning_of({"model.lora_attn_modules=[q]", "model.quantize_base=True"}) ==
        Tuning::kQlora);
  CHECK(torchtune::tuning_of({"model.lora_attn_modules=[q]", "model.quantize_base= true "}) ==
        Tuning::kQlora);
  CHECK(torchtune::tuning_of({"model.lora_attn_modules=[q]", "model.quantize_base=false"}) ==
        Tuning::kLora);
  CHECK(torchtune::tuning_of({"model.lora_attn_modules=[q]", "model.quantize_base=True",
                              "model.use_dora=True"}) == Tuning::kLora);
}

TEST_CASE("recipe and configuration fit nodes, devices and tuning", "[torchtune]") {
  using torchtune::Recipe;
  using torchtune::Tuning;
  struct Row {
    std::int32_t nodes;
    bool is_single;
    Tuning tuning;
    Recipe expected;
  };
  const Row rows[] = {
      {1, true, Tuning::kQlora, {"lora_finetune_single_device", "_qlora_single_device"}},
      {1, true, Tuning::kLora, {"lora_finetune_single_device", "_lora_single_device"}},
      {1, true, Tuning::kFull, {"full_finetune_single_device", "_full_single_device"}},
      {1, false, Tuning::kQlora, {"lora_finetune_distributed", "_qlora"}},
      {1, false, Tuning::kLora, {"lora_finetune_distributed", "_lora"}},
      {1, false, Tuning::kFull, {"full_finetune_distributed", "_full"}},
      {2, false, Tuning::kFull, {"full_finetune_distributed", "_full_multinode"}},
      {2, true, Tuning::kLora, {"full_finetune_distributed", "_full_multinode"}},
  };
  for (const Row& row : rows) {
    INFO(row.nodes << " " << row.is_single << " " << row.expected.name);
    CHECK(torchtune::recipe_for(row.nodes, row.is_single, row.tuning) == row.expected);
  }
}

Runtime tune_runtime(const std::string& name, const std::string& limits) {
  Runtime runtime = runtime_with("{numNodes: 1, torch: {}}", R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec:
      template:
        spec:
          containers:
          - name: node
            image: i
            command: [tune, run, full, --config, x, output_dir=/o, dataset.source=parquet, tokenizer.path=/t,
                      checkpointer.checkpoint_dir=/c, tokenizer.merges_file=/m]
            resources: {limits: )" + limits + "}\n");
  runtime.metadata.name = name;
  return runtime;
}

TrainJob tune_job(const std::string& runtime, const std::string& trainer) {
  TrainJob job = job_with("trainer: " + trainer);
  job.spec.runtimeRef.name = runtime;
  return job;
}

TEST_CASE("torchtune's command keeps the runtime's files and no master address", "[torchtune]") {
  const std::string name = "torchtune-llama3.3-70b";
  const Built result =
      built(tune_job(name, "{command: [tune, run], args: [epochs=1], numNodes: 2}"),
            tune_runtime(name, "{nvidia.com/gpu: 8}"));
  const kube::Json& container = container_in(result, "node");
  CHECK(strings(container.get_array("command")) ==
        Words{"tune", "run", "--rdzv_endpoint=j-node-0-0.j:29500", "full_finetune_distributed",
              "--config", "llama3_3/70B_full_multinode", "output_dir=/o", "tokenizer.path=/t",
              "checkpointer.checkpoint_dir=/c", "tokenizer.merges_file=/m"});
  CHECK(strings(container.get_array("args")) == Words{"epochs=1"});
  CHECK(env_of(container) == Words{"PET_NNODES=2", "PET_NPROC_PER_NODE=auto", kRank});
}

TEST_CASE("the recipe follows from the device, the rendezvous from the processes", "[torchtune]") {
  struct Row {
    const char* limits;
    const char* trainer;
    Words words;
  };
  const std::string endpoint = "--rdzv_endpoint=j-node-0-0.j:29500";
  const std::string config = "llama3_2/1B_full";
  const Words single = {"full_finetune_single_device", "--config", config + "_single_device"};
  const Row rows[] = {
      {"{nvidia.com/gpu: 1}", "{command: [tune, run]}", single},
      {"{nvidia.com/gpu: 8}", "{command: [tune, run], numProcPerNode: 1}", single},
      {"{nvidia.com/gpu: 1}",
       "{command: [tune, run], numProcPerNode: 2}",
       {endpoint, single[0], single[1], single[2]}},
      {"{nvidia.com/gpu: 2}",
       "{command: [tune, run]}",
       {endpoint, "full_finetune_distributed", "--config", config}},
  };
  const std::string name = "torchtune-llama3.2-1b";
  for (const Row& row : rows) {
    INFO(row.limits << " " << row.trainer);
    const Built result = built(tune_job(name, row.trainer), tune_runtime(name, row.limits));
    Words words = strings(container_in(result, "node").get_array("command"));
    words.resize(2 + row.words.size());
    words.erase(words.begin(), words.begin() + 2);
    CHECK(words == row.words);
  }
}

TEST_CASE("any other command than torchtune's is left alone", "[torchtune]") {
  const std::string name = "torchtune-llama3.2-1b";
  const Runtime one = tune_runtime(name, "{nvidia.com/gpu: 1}");
  CHECK(strings(container_in(built(tune_job(name, "{command: [tune, run, x]}"), one), "node")
                    .get_array("command")) == Words{"tune", "run", "x"});
}

// The runtime's number of nodes is no mistake of the job's.
TEST_CASE("torchtune's admission counts the nodes that the job asks for", "[torchtune]") {
  struct Row {
    const char* trainer;
    Words paths;
  };
  const Row rows[] = {
      {"{}", {}},
      {"{args: ['model.lora_attn_modules=[q]']}", {}},
      {"{numNodes: 1}", {}},
      {"{numNodes: 2}", {"spec.trainer.numNodes"}},
      {"{numNodes: 2, args: ['model.lora_attn_modules=[q]']}",
       {"spec.trainer.numNodes", "spec.trainer.numNodes"}},
  };
  const std::string name = "torchtune-llama3.2-1b";
  Runtime runtime = tune_runtime(name, "{nvidia.com/gpu: 2}");
  runtime.spec.mlPolicy->numNodes = 2;
  for (const Row& row : rows) {
    INFO(row.trainer);
    TrainJob job = tune_job(name, row.trainer);
    job.spec.trainer->command = Words{"tune", "run"};
    CHECK(paths_of(validate_trainjob(job, nullptr, runtime)) == row.paths);
  }
}

TEST_CASE("torchtune jobs that cannot run are refused", "[torchtune]") {
  struct Row {
    const char* runtime;
    const char* limits;
    const char* trainer;
    Words paths;
  };
  const Row rows[] = {
      {"torchtune-llama3.2-1b", "{nvidia.com/gpu: 2}", "{}", {}},
      {"torchtune-mistral-7b", "{nvidia.com/gpu: 2}", "{}", {"spec.runtimeRef.name"}},
      {"torchtune-llama3.2-1b", "{nvidia.com/gpu: 2}", "{numNodes: 2}", {"spec.trainer.numNodes"}},
      {"torchtune-llama3.3-70b", "{nvidia.com/gpu: 2}", "{numNodes: 2}", {}},
      {"torchtune-llama3.3-70b",
       "{nvidia.com/gpu: 2}",
       "{numNodes: 2, args: ['model.lora_attn_modules=[q]']}",
       {"spec.trainer.numNodes"}},
      {"torchtune-qwen2.5-1.5b",
       "{nvidia.com/gpu: 1}",
       "{args: ['model.quantize_base=True']}",
       {"spec.runtimeRef.name"}},
      {"torchtune-llama3.2-1b", "{nvidia.com/gpu: 1}", "{args: ['model.quantize_base=True']}", {}},
      {"torchtune-llama3.2-1b",
       "{nvidia.com/gpu: 2}",
       "{args: ['model.quantize_base=True']}",
       {"spec.trainer.numProcPerNode", "spec.trainer.resourcesPerNode"}},
      {"torchtune-llama3.2-1b",
       "{nvidia.com/gpu: 2}",
       "{numProcPerNode: 1, args: ['model.quantize_base=True']}",
       {}},
      {"torchtune-llama3.2-1b",
       "{nvidia.com/gpu: 2}",
       "{resourcesPerNode: {limits: {nvidia.com/gpu: 1}}, args: ['model.quantize_base=True']}",
       {}},
      {"torchtune-llama3.2-1b",
       "{nvidia.com/gpu: 2}",
       "{args: [epochs=1, output_dir=/x]}",
       {"spec.trainer.args[1]"}},
  };
  for (const Row& row : rows) {
    INFO(row.runtime << " " << row.trainer);
    TrainJob job = tune_job(row.runtime, row.trainer);
    job.spec.trainer->command = Words{"tune", "run"};
    CHECK(paths_of(validate_trainjob(job, nullptr, tune_runtime(row.runtime, row.limits))) ==
          row.paths);
  }
}

}  // namespace
}  // namespace trainer::test
