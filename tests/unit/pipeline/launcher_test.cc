// All nodes do one training, whatever the command: mlPolicy.torch.launcher.
#include "runtimes/plugins/torch/launcher.hh"

#include <algorithm>

#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using pipeline::Starts;
using Words = std::vector<std::string>;

constexpr const char* kRank =
    "RANK<-metadata.annotations['batch.kubernetes.io/job-completion-index']";

TrainJob annotated(const char* launcher, const std::string& trainer) {
  TrainJob job = job_with("trainer: " + trainer);
  if (*launcher != '\0')
    job.metadata.annotations[std::string(pipeline::kLauncherAnnotation)] = launcher;
  return job;
}

Runtime runtime_with_torch(const std::string& torch) {
  return torch_runtime("mlPolicy: {torch: " + torch + "}");
}

pipeline::CommandLine line_of(const char* command, const char* args) {
  return {strings(yaml(command).as_array()), strings(yaml(args).as_array())};
}

struct Command {
  const char* command;
  const char* args;
  Starts starts;
  const char* by_torchrun;  // the Python command by torchrun
};

const Command kCommands[] = {
    // the image's own
    {"[]", "[]", Starts::kUnknown, ""},
    {"[]", "[python, train.py]", Starts::kUnknown, ""},
    // Python
    {"[python, train.py]", "[--lr, '1']", Starts::kPython, "[torchrun, train.py]"},
    {"[python3.12]", "[train.py, --lr, '1']", Starts::kPython, "[torchrun]"},
    {"[python3, -u, train.py]", "[]", Starts::kPython, "[torchrun, train.py]"},
    {"[python, -m, my.train, -x]", "[]", Starts::kPython, "[torchrun, -m, my.train, -x]"},
    {"[python]", "[-m, my.train]", Starts::kPython, "[torchrun]"},
    {"[train.py]", "[--lr, '1']", Starts::kPython, "[torchrun, train.py]"},
    {"[./src/train.py, --lr]", "[]", Starts::kPython, "[torchrun, ./src/train.py, --lr]"},
    {"[/opt/venv/bin/python, -u, train.py]", "[]", Starts::kPython,
     "[/opt/venv/bin/python, -m, torch.distributed.run, train.py]"},
    {"[python, train.py, --backend, deepspeed]", "[]", Starts::kPython,
     "[torchrun, train.py, --backend, deepspeed]"},
    // options that torchrun does not know
    {"[python, -c, 'import x']", "[]", Starts::kPython,
     "[torchrun, --no_python, python, -c, 'import x']"},
    {"[python, -X, dev, -O, train.py]", "[]", Starts::kPython,
     "[torchrun, --no_python, python, -X, dev, -O, train.py]"},
    {"[python]", "[-u, train.py]", Starts::kPython, "[torchrun, --no_python, python]"},
    {"[python, -mmy.train]", "[]", Starts::kPython, "[torchrun, --no_python, python, -mmy.train]"},
    {"[python, -um, my.train]", "[]", Starts::kPython,
     "[torchrun, --no_python, python, -um, my.train]"},
    {"[python, -Wignore::m, train.py]", "[]", Starts::kPython,
     "[torchrun, --no_python, python, -Wignore::m, train.py]"},
    {"[python, -uX, dev, train.py]", "[]", Starts::kPython,
     "[torchrun, --no_python, python, -uX, dev, train.py]"},
    {"[/v/python, -c, x]", "[]", Starts::kPython,
     "[/v/python, -m, torch.distributed.run, --no_python, /v/python, -c, x]"},
    // torchrun and its like
    {"[torchrun, train.py]", "[]", Starts::kProcesses, ""},
    {"[/usr/bin/torchrun]", "[train.py]", Starts::kProcesses, ""},
    {"[python, -m, torch.distributed.run, train.py]", "[]", Starts::kProcesses, ""},
    {"[python, -u, -m, torch.distributed.launch, x.py]", "[]", Starts::kProcesses, ""},
    {"[python, -mtorch.distributed.run, train.py]", "[]", Starts::kProcesses, ""},
    {"[python, -um, torch.distributed.run, train.py]", "[]", Starts::kProcesses, ""},
    {"[python, -Bmtorch.distributed.run, train.py]", "[]", Starts::kProcesses, ""},
    {"[python, -m, accelerate.commands.launch, x.py]", "[]", Starts::kProcesses, ""},
    {"[python, /usr/bin/torchrun, train.py]", "[]", Starts::kProcesses, ""},
    {"[accelerate, launch, train.py]", "[]", Starts::kProcesses, ""},
    {"[deepspeed, train.py]", "[]", Starts::kProcesses, ""},
    {"[tune, run, lora]", "[]", Starts::kProcesses, ""},
    {"[bash, -c, 'python train.py']", "[]", Starts::kProcesses, ""},
    {"[/bin/sh]", "[run.sh]", Starts::kProcesses, ""},
    {"[./run.sh]", "[]", Starts::kProcesses, ""},
    {"[uv, run, torchrun, train.py]", "[]", Starts::kProcesses, ""},
    {"[uv, run, python, -m, torch.distributed.run, train.py]", "[]", Starts::kProcesses, ""},
    {"[env, A=1, python3, -m, accelerate.commands.launch, x.py]", "[]", Starts::kProcesses, ""},
    {"[tini, --, bash, run.sh]", "[]", Starts::kProcesses, ""},
    // others
    {"[env, A=1, python, train.py]", "[]", Starts::kProgram, ""},
    {"[poetry, run, python, train.py]", "[--mode, tune]", Starts::kProgram, ""},
    {"[uv, run, train.py, --shell, bash]", "[]", Starts::kProgram, ""},
    {"[uv, run, train.py]", "[]", Starts::kProgram, ""},
    {"[sleep, '600']", "[]", Starts::kProgram, ""},
    {"[python]", "[]", Starts::kProgram, ""},
    {"[pythonic, train]", "[]", Starts::kProgram, ""},
};

TEST_CASE("what a command line starts, and how torchrun starts it", "[launcher]") {
  for (const Command& row : kCommands) {
    INFO(row.command << " " << row.args);
    const pipeline::CommandLine line = line_of(row.command, row.args);
    CHECK(pipeline::what_starts(line) == row.starts);
    if (row.starts == Starts::kPython)
      CHECK(pipeline::command_by_torchrun(line) == strings(yaml(row.by_torchrun).as_array()));
  }
}

TEST_CASE("launcher torchrun starts Python by torchrun, and leaves other commands alone",
          "[launcher]") {
  for (const Command& row : kCommands) {
    INFO(row.command << " " << row.args);
    const std::string trainer =
        std::string("{numNodes: 2, command: ") + row.command + ", args: " + row.args + "}";
    const Built result = built(annotated("torchrun", trainer), torch_runtime());
    const kube::Json& node = container_in(result, "node");
    const char* expected = row.starts == Starts::kPython ? row.by_torchrun : row.command;
    CHECK(strings(node.get_array("command")) == strings(yaml(expected).as_array()));
    CHECK(strings(node.get_array("args")) == strings(yaml(row.args).as_array()));
    CHECK(env_value(node, "PET_NNODES") == "2");
    CHECK(env_value(node, "WORLD_SIZE") == "");
    // Without the launcher the same job is upstream's.
    const Built plain = built(annotated("", trainer), torch_runtime());
    CHECK(strings(container_in(plain, "node").get_array("command")) ==
          strings(yaml(row.command).as_array()));
  }
}

TEST_CASE("the annotation comes before the runtime's launcher", "[launcher]") {
  const char* trainer = "{command: [python, train.py]}";
  struct Row {
    const char* annotation;
    const char* torch;
    const char* first_word;
    const char* world_size;
  };
  const Row rows[] = {
      {"", "{}", "python", ""},
      {"", "{launcher: torchrun}", "torchrun", ""},
      {"", "{launcher: env}", "python", "1"},
      {"env", "{launcher: torchrun}", "python", "1"},
      {"torchrun", "{launcher: env}", "torchrun", ""},
  };
  for (const Row& row : rows) {
    INFO(row.annotation << " " << row.torch);
    const Built result = built(annotated(row.annotation, trainer), runtime_with_torch(row.torch));
    const kube::Json& node = container_in(result, "node");
    CHECK(strings(node.get_array("command")).at(0) == row.first_word);
    CHECK(env_value(node, "WORLD_SIZE") == row.world_size);
  }
}

TEST_CASE("the annotation has no effect without mlPolicy.torch, and a warning says so",
          "[launcher][warnings]") {
  struct Row {
    const char* policy;
    bool is_annotated;
    bool is_warned;
  };
  const Row rows[] = {{"{torch: {}}", true, false}, {"{torch: {}}", false, false},
                      {"{jax: {}}", true, true},    {"{jax: {}}", false, false},
                      {"{}", true, true},           {"{}", false, false}};
  for (const Row& row : rows) {
    INFO(row.policy << row.is_annotated);
    const Runtime runtime = runtime_with(row.policy, R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i}]}}}
)");
    TrainJob job = job_with("{trainer: {numNodes: 2, command: [python, t.py]}}");
    if (row.is_annotated)
      job.metadata.annotations["trainer.kubeflow.org/torch-launcher"] = "torchrun";
    const auto warnings = warn_trainjob(job, runtime);
    const bool is_warned =
        std::find(warnings.begin(), warnings.end(),
                  "metadata.annotations[trainer.kubeflow.org/torch-launcher]: has no effect, "
                  "because runtime \"rt\" has no mlPolicy.torch") != warnings.end();
    CHECK(is_warned == row.is_warned);
  }
}

TEST_CASE("launcher env gives init_process_group() what it reads", "[launcher]") {
  const Built result =
      built(annotated("env",
                      "{numNodes: 3, command: [python, train.py], env: [{name: A, value: '1'}], "
                      "resourcesPerNode: {limits: {cpu: 8}}}"),
            torch_runtime());
  CHECK(env_of(container_in(result, "node")) ==
        Words{"A=1", "PET_NNODES=3", "PET_NPROC_PER_NODE=1",
              "PET_NODE_RANK<-metadata.annotations['batch.kubernetes.io/job-completion-index']",
              "PET_MASTER_ADDR=j-node-0-0.j", "PET_MASTER_PORT=29500", "MASTER_ADDR=j-node-0-0.j",
              "MASTER_PORT=29500", "WORLD_SIZE=3", kRank, "LOCAL_RANK=0"});
}

TEST_CASE("a runtime's launcher serves its own command, without a trainer section", "[launcher]") {
  const Runtime runtime = runtime_with("{numNodes: 2, torch: {launcher: torchrun}}", R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i, command: [python, a.py], args: [x]}]}}}
)");
  const Built result = built(job_with("{}"), runtime);
  const kube::Json& node = container_in(result, "node");
  CHECK(strings(node.get_array("command")) == Words{"torchrun", "a.py"});
  CHECK(strings(node.get_array("args")) == Words{"x"});
  CHECK(env_value(node, "PET_NNODES") == "2");
}

TEST_CASE("torchtune's command is no launcher's business", "[launcher]") {
  Runtime runtime = runtime_with_torch("{launcher: env}");
  runtime.metadata.name = "torchtune-llama3.2-1b";
  const Built result = built(annotated("", "{command: [tune, run]}"), runtime);
  CHECK(env_value(container_in(result, "node"), "WORLD_SIZE") == "");
}

TEST_CASE("what a launcher cannot do is refused", "[launcher]") {
  struct Row {
    const char* annotation;
    const char* torch;
    const char* trainer;
    Words paths;
  };
  const Row rows[] = {
      {"mpirun", "{}", "{}", {"metadata.annotations[trainer.kubeflow.org/torch-launcher]"}},
      {"", "{}", "{env: [{name: RANK, value: '0'}], numProcPerNode: 2}", {}},
      {"torchrun", "{}", "{env: [{name: RANK, value: '0'}], numProcPerNode: 2}", {}},
      {"env", "{}", "{numProcPerNode: 1}", {}},
      {"env", "{numProcPerNode: gpu}", "{}", {}},
      {"env", "{}", "{numProcPerNode: 2}", {"spec.trainer.numProcPerNode"}},
      {"", "{launcher: env, numProcPerNode: 2}", "{}", {"spec.runtimeRef"}},
      {"env",
       "{}",
       "{env: [{name: RANK, value: '0'}, {name: B, value: x}, {name: MASTER_ADDR, value: x}]}",
       {"spec.trainer.env[0].name", "spec.trainer.env[2].name"}},
  };
  for (const Row& row : rows) {
    INFO(row.annotation << " " << row.torch << " " << row.trainer);
    CHECK(paths_of(validate_trainjob(annotated(row.annotation, row.trainer), nullptr,
                                     runtime_with_torch(row.torch))) == row.paths);
  }
  CHECK(paths_of(refused(annotated("mpirun", "{}"), torch_runtime())) == rows[0].paths);
}

TEST_CASE("several trainings where one was meant are warned about", "[launcher][warnings]") {
  struct Row {
    const char* trainer;
    const char* annotation;
    const char* torch;
    const char* warning;  // its beginning, "" without
  };
  const char* gpus = "command: [python, a.py], resourcesPerNode: {limits: {nvidia.com/gpu: 4}}";
  const std::string four = std::string("{") + gpus + "}";
  const std::string one_of_four = std::string("{numProcPerNode: 1, ") + gpus + "}";
  const std::string four_of_one = std::string("{numProcPerNode: 4, ") + gpus + "}";
  const Row rows[] = {
      {"{command: [python, a.py]}", "", "{}", ""},
      {"{command: [python, a.py], resourcesPerNode: {limits: {cpu: 8}}}", "", "{}", ""},
      {"{numNodes: 2}", "", "{}", ""},
      {"{numNodes: 2, args: [python, a.py]}", "", "{}", ""},
      {"{numNodes: 2, command: [torchrun, a.py]}", "", "{}", ""},
      {"{numNodes: 2, command: [bash, -c, python a.py]}", "", "{}", ""},
      {"{numNodes: 2, command: [python, a.py]}", "torchrun", "{}", ""},
      {"{numNodes: 2, command: [python, a.py]}", "env", "{}", ""},
      {"{numNodes: 2, command: [python, a.py]}", "", "{launcher: torchrun}", ""},
      {"{numNodes: 2, command: [python, a.py]}", "", "{}",
       "spec.trainer.command: \"python a.py\" does not start torchrun, so each of the 2 nodes runs "
       "a training of its own; annotate the TrainJob with trainer.kubeflow.org/torch-launcher: "
       "torchrun, which starts it by torchrun, or with "
       "trainer.kubeflow.org/torch-launcher: env, "},
      {"{numNodes: 2, command: [uv, run, a.py]}", "", "{}",
       "spec.trainer.command: \"uv run a.py\""},
      {"{numNodes: 2, command: [uv, run, a.py]}", "torchrun", "{}",
       "spec.trainer.command: \"uv run a.py\" does not start torchrun, so each of the 2 nodes runs "
       "a training of its own; begin it with torchrun --no_python, or annotate the TrainJob with "},
      {"{numProcPerNode: 2, command: [python, a.py]}", "", "{}",
       "spec.trainer.command: \"python a.py\" does not start torchrun, so one process runs where 2 "
       "were expected"},
      {"{command: [python, a.py]}", "", "{numProcPerNode: 3}",
       "spec.trainer.command: \"python a.py\" does not start torchrun, so one process runs where "
       "3"},
      {four.c_str(), "", "{}",
       "spec.trainer.command: \"python a.py\" does not start torchrun, so one process runs where "
       "4"},
      {four.c_str(), "torchrun", "{}", ""},
      {four.c_str(), "env", "{}", "spec.trainer.resourcesPerNode: launcher env starts one process"},
      {four_of_one.c_str(), "", "{}", "spec.trainer.command: "},
      {one_of_four.c_str(), "", "{}", "spec.trainer.numProcPerNode: 1 processes for 4 devices"},
      {"{numNodes: 2, command: [python, \"a\\nb.py\"]}", "", "{}",
       "spec.trainer.command: \"python ...\" does not"},
      // options that win over the job
      {"{numNodes: 2, command: [torchrun, --nnodes=2, a.py]}", "", "{}", ""},
      {"{numNodes: 2, command: [torchrun, '--nnodes=1:4', a.py]}", "", "{}", ""},
      {"{numNodes: 2, command: [torchrun, a.py, --nnodes=4]}", "", "{}", ""},
      {"{command: [torchrun, --standalone, a.py]}", "", "{}", ""},
      {"{numNodes: 2, command: [torchrun], args: [--nnodes=4, a.py]}", "", "{}",
       "spec.trainer.command: torchrun waits for 4 nodes as --nnodes says, and the job has 2"},
      {"{command: [torchrun, --nnodes, '2', a.py]}", "", "{}",
       "spec.trainer.command: torchrun waits for 2 nodes as --nnodes says, and the job has 1"},
      {"{numNodes: 2, command: [python, -m, torch.distributed.run, --standalone, a.py]}", "", "{}",
       "spec.trainer.command: with --standalone each of the 2 nodes runs a training of its own"},
      {"{numNodes: 2, command: [torchrun --nnodes=4 a.py]}", "", "{}",
       "spec.trainer.command[0]: \"torchrun --nnodes=4 a.py\" is one word with spaces"},
      // asked for, and without an effect
      {"{numNodes: 2}", "torchrun", "{}",
       "metadata.annotations[trainer.kubeflow.org/torch-launcher]: torchrun has no effect on the "
       "image's own command"},
      {"{numNodes: 2}", "", "{launcher: torchrun}", ""},
      {"{numNodes: 1}", "torchrun", "{}", ""},
      {"{numNodes: 2}", "env", "{}", ""},
      {"{numNodes: 2, command: [bash, -c, python a.py]}", "torchrun", "{}",
       "metadata.annotations[trainer.kubeflow.org/torch-launcher]: torchrun has no effect on a "
       "shell, and \"bash -c python a.py\" does not start torchrun, so each of the 2 nodes"},
      {"{numNodes: 2, command: [bash, -c, pip install x && torchrun a.py]}", "torchrun", "{}", ""},
      {"{numNodes: 2, command: [bash, run.sh, python]}", "torchrun", "{}", ""},
      {"{numNodes: 2, command: [python, -c, import python]}", "torchrun", "{}", ""},
  };
  for (const Row& row : rows) {
    INFO(row.trainer << " " << row.annotation << " " << row.torch);
    const auto warnings =
        warn_trainjob(annotated(row.annotation, row.trainer), runtime_with_torch(row.torch));
    REQUIRE(warnings.size() == (*row.warning == '\0' ? 0U : 1U));
    if (!warnings.empty()) CHECK_THAT(warnings[0], kube::test::starts_with(row.warning));
  }
}

TEST_CASE("a runtime's annotation is no launcher, and a warning says so", "[launcher][warnings]") {
  Runtime runtime = torch_runtime();
  runtime.metadata.annotations[std::string(pipeline::kLauncherAnnotation)] = "torchrun";
  const auto warnings = warn_trainjob(annotated("", "{command: [torchrun, a.py]}"), runtime);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("spec.runtimeRef: annotation trainer.kubeflow.org/torch-launcher of "
                         "runtime \"rt\" has no effect there: set mlPolicy.torch.launcher") == 0);
}

TEST_CASE("the runtime's command is named as the runtime's, and a long word is left out",
          "[launcher][warnings]") {
  const Runtime runtime = runtime_with("{numNodes: 2, torch: {}}", R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i, command: [python, -c]}]}}}
)");
  const std::string code(100, 'x');
  const auto warnings = warn_trainjob(job_with("trainer: {args: [" + code + "]}"), runtime);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find(
            "spec.runtimeRef: the command of runtime \"rt\": \"python -c ...\" does") == 0);
}

}  // namespace
}  // namespace trainer::test
