#include "controller/cli/run_job.hh"

#include "api/runtime.hh"
#include "controller/cli/run_flags.hh"
#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "runtimes/builtin/builtin_runtimes.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

using Words = std::vector<std::string>;

Json yaml(const std::string& text) {
  auto value = kube::parse_yaml(text);
  REQUIRE(value);
  return std::move(*value);
}

JobFlags flags_of(Words command) {
  JobFlags flags;
  flags.command = std::move(command);
  return flags;
}

JobParts parts_of(bool is_torch) {
  JobParts parts;
  parts.key = {"team", "j"};
  parts.runtime = {kClusterTrainingRuntimes, "torch-distributed"};
  parts.is_torch = is_torch;
  return parts;
}

Json runtime(const std::string& name, const std::string& policy) {
  return yaml("{metadata: {name: " + name + "}, spec: {mlPolicy: " + policy + "}}");
}

}  // namespace

TEST_CASE("flags make a job") {
  JobFlags flags = flags_of({"python", "train.py", "--lr", "0.1"});
  CHECK(make_job(flags, parts_of(true)) ==
        yaml("{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: j, "
             "namespace: team, annotations: {trainer.kubeflow.org/torch-launcher: torchrun}}, "
             "spec: {runtimeRef: {name: torch-distributed}, trainer: {command: [python, train.py, "
             "--lr, '0.1']}}}"));
  flags = flags_of({"torchrun", "train.py"});
  flags.nodes = 2;
  flags.procs = 4;
  flags.gpus = 8;
  flags.queue = "q";
  flags.env = {"A=1", "B=x=y", "C="};
  JobParts parts = parts_of(true);
  parts.key.ns = "";
  parts.runtime = {kTrainingRuntimes, "mine"};
  parts.code_names = {"j-code-0", "j-code-1"};
  parts.working_directory = "/src";
  CHECK(make_job(flags, parts) ==
        yaml("{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: j, "
             "labels: {kueue.x-k8s.io/queue-name: q}, annotations: {trainer.kubeflow.org/code: "
             "'j-code-0,j-code-1', trainer.kubeflow.org/working-dir: /src}}, spec: {runtimeRef: "
             "{name: mine, kind: TrainingRuntime}, trainer: {command: [torchrun, train.py], "
             "numNodes: 2, numProcPerNode: 4, resourcesPerNode: {limits: {nvidia.com/gpu: '8'}}, "
             "env: [{name: A, value: '1'}, {name: B, value: 'x=y'}, {name: C, value: ''}]}}}"));
  CHECK(
      make_job(flags_of({"python", "x.py"}), parts_of(false)).get("metadata").find("annotations") ==
      nullptr);
}

TEST_CASE("a wrong flag is named, with its value and what to write") {
  struct Row {
    const char* what;
    void (*change)(JobFlags&);
    const char* message;  // "": it is right
  };
  const Row rows[] = {
      {"all is well", [](JobFlags&) {}, ""},
      {"no command", [](JobFlags& f) { f.command = {}; },
       "the command is missing: write it behind"},
      {"an empty command", [](JobFlags& f) { f.command = {""}; }, "the command is missing"},
      {"env without a value", [](JobFlags& f) { f.env = {"A"}; }, "--env A: write NAME=VALUE"},
      {"env without a name", [](JobFlags& f) { f.env = {"=1"}; }, "--env =1: write NAME=VALUE"},
      {"env twice",
       [](JobFlags& f) {
         f.env = {"A=1", "A=2"};
       },
       "--env A=2: A is there twice"},
      {"a name", [](JobFlags& f) { f.name = "good-1"; }, ""},
      {"a name in capitals", [](JobFlags& f) { f.name = "Bad"; }, "--name Bad: "},
      {"a queue", [](JobFlags& f) { f.queue = "team.q"; }, ""},
      {"no queue's name", [](JobFlags& f) { f.queue = "a/b"; }, "--queue a/b: "},
      {"a runtime", [](JobFlags& f) { f.runtime = "TrainingRuntime/x"; }, ""},
      {"another kind", [](JobFlags& f) { f.runtime = "Pod/x"; }, "--runtime Pod/x: write NAME, or"},
      {"no runtime's name", [](JobFlags& f) { f.runtime = "A b"; }, "--runtime A b: "},
      {"an empty name", [](JobFlags& f) { f.runtime = "TrainingRuntime/"; }, "--runtime Train"},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    JobFlags flags = flags_of({"true"});
    row.change(flags);
    const auto checked = check_job_flags(flags);
    CHECK(checked.has_value() == (*row.message == '\0'));
    if (*row.message != '\0' && !checked)
      CHECK_THAT(checked.error().message, kube::test::starts_with(row.message));
  }
}

TEST_CASE("without --runtime the command decides") {
  const std::vector<Json> torch{runtime("torch-distributed", "{torch: {}}")};
  const std::vector<Json> plain{runtime("torch-distributed", "{torch: {}}"),
                                runtime("plain", "{numNodes: 1}"), runtime("mpi", "{mpi: {}}")};
  const std::vector<Json> two{runtime("b", "{}"), runtime("a", "{numNodes: 2}")};
  struct Row {
    Words command;
    const std::vector<Json>* all;
    const char* expected;
    const char* error;
  };
  const Row rows[] = {
      {{"python", "t.py"}, &plain, "torch-distributed", ""},
      {{"/opt/bin/python3.12", "-m", "x"}, &torch, "torch-distributed", ""},
      {{"torchrun", "t.py"}, &torch, "torch-distributed", ""},
      {{"./train.sh"}, &plain, "plain", ""},
      {{"./train.sh"}, &torch, "", "`./train.sh` needs one without a framework, and none is there"},
      {{"./train.sh"}, &two, "", "b, a are without a framework"},
      {{"python"},
       &two,
       "",
       "the cluster has no torch-distributed: name one of the cluster's "
       "ClusterTrainingRuntimes: a, b"},
  };
  for (const Row& row : rows) {
    INFO(row.command[0]);
    const auto chosen = choose_runtime(row.command, *row.all);
    if (*row.expected != '\0') {
      CHECK(chosen == std::string(row.expected));
    } else {
      REQUIRE_FALSE(chosen);
      CHECK_THAT(chosen.error().message, kube::test::contains(row.error));
    }
  }
  CHECK(choose_runtime({"python3"}, builtin_runtimes()) == std::string("torch-distributed"));
  CHECK_THAT(choose_runtime({"sh"}, {}).error().message, Catch::EndsWith(": there are none"));
}

TEST_CASE("a job is described in one line") {
  JobFlags flags = flags_of({"python", "train.py"});
  CHECK(describe_job(flags) == "nodes of the runtime: python train.py");
  flags.nodes = 1;
  flags.procs = 2;
  flags.gpus = 1;
  flags.queue = "q";
  CHECK(describe_job(flags) ==
        "1 node, 2 processes a node, 1 GPU a node, queue q: python train.py");
}

TEST_CASE("the exit status is that of the first process that failed") {
  struct Row {
    const char* status;
    int code;
  };
  const Row rows[] = {
      {"{conditions: [{type: Complete, status: 'True'}]}", 0},
      {"{conditions: [{type: Failed, status: 'True'}], firstFailure: {exitCode: 3}}", 3},
      {"{conditions: [{type: Failed, status: 'True'}], firstFailure: {exitCode: 137, signal: 9}}",
       137},
      {"{conditions: [{type: Failed, status: 'True'}], firstFailure: {exitCode: 0}}", 1},
      {"{conditions: [{type: Failed, status: 'True'}], firstFailure: {exitCode: 3000}}", 1},
      {"{conditions: [{type: Failed, status: 'True'}]}", 1},
      {"{}", 1},
  };
  for (const Row& row : rows) {
    INFO(row.status);
    CHECK(exit_status_of(yaml(std::string("{status: ") + row.status + "}")) == row.code);
  }
}

TEST_CASE("the words behind -- are the command of `run` and `local run` alone") {
  struct Row {
    Words words;
    Words command;
    Words rest;
  };
  const Row rows[] = {
      {{"run", "--nodes", "2", "--", "a", "--", "-b"}, {"a", "--", "-b"}, {"run", "--nodes", "2"}},
      {{"local", "run", "--", "a"}, {"a"}, {"local", "run"}},
      {{"local", "run", "f.yaml"}, {}, {"local", "run", "f.yaml"}},
      {{"render", "--", "f.yaml"}, {}, {"render", "--", "f.yaml"}},
      {{"run", "--"}, {}, {"run"}},
      {{}, {}, {}},
  };
  for (const Row& row : rows) {
    Words words = row.words;
    CHECK(take_command(words) == row.command);
    CHECK(words == row.rest);
  }
}
