// Words and variables that are too long for any process.
#include "runtimes/pipeline/exec_sizes.hh"

#include "kube/model/exec_limits.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using kube::Json;
using Words = std::vector<std::string>;

// Its word takes just what Linux allows, or one byte more.
std::string of_bytes(std::size_t bytes) {
  return std::string(bytes - 1, 'x');
}

Runtime runtime_of(const std::string& policy, const std::string& container) {
  return runtime_with(policy, R"(
- name: dataset-initializer
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
    spec: {template: {spec: {containers: [{name: dataset-initializer, image: i}]}}}
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: side, image: s}, )" +
                                  container + "]}}}");
}

Words paths(const TrainJob& job, const Runtime& runtime) {
  const PipelineOptions options = production();
  return paths_of(pipeline::check_exec_sizes(built(job, runtime, options), job, runtime, options));
}

TEST_CASE("a word or a variable above 128 KiB is refused where it is written", "[exec]") {
  struct Row {
    const char* spec;  // X is the text
    std::size_t own;   // bytes of the same string beside X
    const char* path;
  };
  const Row row = GENERATE(
      Row{"trainer: {command: [python, X]}", 1, "spec.trainer.command[1]"},
      Row{"trainer: {command: [a], args: [b, c, X]}", 1, "spec.trainer.args[2]"},
      Row{"trainer: {env: [{name: A, value: a}, {name: NAME, value: X}]}", 6,
          "spec.trainer.env[1].value"},
      Row{"initializer: {dataset: {storageUri: X}}", 13, "spec.initializer.dataset.storageUri"},
      Row{"initializer: {dataset: {env: [{name: NAME, value: X}]}}", 6,
          "spec.initializer.dataset.env[0].value"},
      Row{"runtimePatches: [{manager: acme.io/a}, {manager: acme.io/b, trainingRuntimeSpec: "
          "{template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: "
          "{containers: [{name: side, env: [{name: NAME, value: X}]}]}}}}}]}}}}]",
          6,
          "spec.runtimePatches[1].trainingRuntimeSpec.template.spec.replicatedJobs[node].template."
          "spec.template.spec.containers[side].env[NAME]"});
  INFO(row.spec);
  const Runtime runtime = runtime_of("{numNodes: 2, torch: {}}", "{name: node, image: i}");
  const auto job = [&row](std::size_t bytes) {
    std::string spec = row.spec;
    return job_with(spec.replace(spec.find('X'), 1, std::string(bytes - row.own, 'x')));
  };
  CHECK(paths(job(kube::kMaxExecStringBytes), runtime) == Words{});
  CHECK(paths(job(kube::kMaxExecStringBytes + 1), runtime) == Words{row.path});
}

TEST_CASE("what a runtime or a plugin makes too long is refused, too", "[exec]") {
  const std::string longer = of_bytes(kube::kMaxExecStringBytes + 1);
  CHECK(paths(job_with("{}"), runtime_of("{}", "{name: node, image: i, args: [" + longer + "]}")) ==
        Words{"spec.runtimeRef"});
  // Flux joins the words of a command into one.
  const std::string half = of_bytes(kube::kMaxExecStringBytes / 2 + 1);
  const TrainJob job = job_with("trainer: {command: [run, " + half + ", " + half + "]}");
  CHECK(paths(job, runtime_of("{}", "{name: node, image: i}")) == Words{});
  CHECK(paths(job, runtime_of("{flux: {}}", "{name: node, image: i}")) ==
        Words{"spec.trainer.command"});
}

TEST_CASE("references and commands of probes and hooks count, too", "[exec]") {
  const std::string half = of_bytes(kube::kMaxExecStringBytes / 2 + 1);
  const Runtime runtime =
      runtime_of("{}", "{name: node, image: i, env: [{name: HALF, value: " + half + "}]}");
  CHECK(paths(job_with("trainer: {args: [a, '$(HALF)$(HALF)']}"), runtime) ==
        Words{"spec.trainer.args[1]"});
  CHECK(paths(job_with("trainer: {args: ['$(HALF)'], env: [{name: B, value: '$(HALF)$(HALF)'}]}"),
              runtime) == Words{"spec.trainer.env[0].value"});
  const std::string longer = of_bytes(kube::kMaxExecStringBytes + 1);
  for (const char* hook :
       {"livenessProbe: {exec: {command: [", "lifecycle: {preStop: {exec: {command: ["}) {
    const std::string ends = std::string_view(hook).starts_with("lifecycle") ? "]}}}}" : "]}}}";
    CHECK(paths(job_with("{}"), runtime_of("{}", "{name: node, image: i, " + (hook + longer) +
                                                     ends)) == Words{"spec.runtimeRef"});
  }
}

TEST_CASE("the error says how long it is and what to do", "[exec]") {
  const Runtime runtime = runtime_of("{}", "{name: node, image: i}");
  const TrainJob job =
      job_with("trainer: {args: [" + of_bytes(kube::kMaxExecStringBytes + 1) + "]}");
  const PipelineOptions options = production();
  CHECK(kube::to_string(
            pipeline::check_exec_sizes(built(job, runtime, options), job, runtime, options)) ==
        "spec.trainer.args[0]: Too long: argument 1 of the command line of container node in job "
        "node has 131073 bytes, and Linux starts no process with more than 131072 in one: bring "
        "the content in a file of the image, a ConfigMap or another volume, or shorten it");
}

}  // namespace
}  // namespace trainer::test
