// The job's env on its way into the JobSet (Kubeflow Trainer, pkg/runtime/framework/plugins).
#include <algorithm>

#include "runtimes/pipeline/converted_env.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

constexpr const char* kVariable =
    "{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}";
constexpr const char* kConverted = "{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}";

TEST_CASE("a variable of the job is written as upstream's conversion writes it", "[env]") {
  struct Row {
    const char* variable;
    const char* expected;
  };
  const Row rows[] = {
      {"{name: A, value: x}", "{name: A, value: x}"},
      {"{name: A, value: ''}", "{name: A, value: ''}"},
      {"{name: A}", "{name: A, value: ''}"},
      {"{name: A, value: null, valueFrom: null}", "{name: A, value: ''}"},
      {kVariable, kConverted},
      {"{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}", kConverted},
      {"{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}",
       "{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, containerName: '', divisor: "
       "'0'}}}"},
      {"{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, containerName: node, "
       "divisor: '0.5'}}}",
       "{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, containerName: node, "
       "divisor: 500m}}}"},
      {"{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1024Ki}}}",
       "{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, containerName: '', "
       "divisor: 1Mi}}}"},
      {"{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1}}}",
       "{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, containerName: '', divisor: "
       "'1'}}}"},
      {"{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: odd}}}",
       "{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, containerName: '', divisor: "
       "odd}}}"},
      {"{name: A, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}",
       "{name: A, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}"},
      {"{name: A, valueFrom: {configMapKeyRef: {name: '', key: k}}}",
       "{name: A, valueFrom: {configMapKeyRef: {name: '', key: k}}}"},
      {"{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k}}}",
       "{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k}}}"},
      {"text", "text"},
  };
  for (const Row& row : rows) {
    INFO(row.variable);
    const kube::Json converted = pipeline::converted_env(yaml(row.variable));
    CHECK(converted == yaml(row.expected));
    CHECK(pipeline::converted_env(converted) == converted);
  }
}

TEST_CASE("env of the job is converted wherever it goes, env of runtimes and patches is not",
          "[env]") {
  struct Row {
    const char* spec;
    const char* policy;
    const char* job;
    const char* container;
    const char* expected;
  };
  // Under JAX the overrides alone write it.
  const Row rows[] = {
      {"trainer: {env: [%]}", "{}", "node", "node", kConverted},
      {"trainer: {env: [%]}", "{torch: {}}", "node", "node", kConverted},
      {"trainer: {env: [%]}", "{jax: {}}", "node", "node", kConverted},
      {"initializer: {dataset: {env: [%]}}", "{}", "dataset-initializer", "dataset-initializer",
       kConverted},
      {"initializer: {model: {env: [%]}}", "{}", "model-initializer", "model-initializer",
       kConverted},
      {"trainer: {}", "{}", "node", "side", kVariable},
      {R"(runtimePatches: [{manager: acme.io/a, trainingRuntimeSpec: {template: {spec: {replicatedJobs:
        [{name: other, template: {spec: {template: {spec: {containers: [{name: main, env: [%]}]}}}}}]}}}}])",
       "{}", "other", "main", kVariable},
  };
  const std::string jobs = R"(
- name: dataset-initializer
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
    spec: {template: {spec: {containers: [{name: dataset-initializer, image: i}]}}}
- name: model-initializer
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: model-initializer}}
    spec: {template: {spec: {containers: [{name: model-initializer, image: i}]}}}
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i}, {name: side, image: i, env: [)" +
                           std::string(kVariable) + R"(]}]}}}
- name: other
  template: {spec: {template: {spec: {containers: [{name: main, image: i}]}}}}
)";
  for (const Row& row : rows) {
    INFO(row.spec << " " << row.policy);
    std::string spec = row.spec;
    if (const std::size_t at = spec.find('%'); at != std::string::npos)
      spec.replace(at, 1, kVariable);
    const Built result = built(job_with(spec), runtime_with(row.policy, jobs));
    const auto& env = container_in(result, row.job, row.container).get_array("env");
    CHECK(std::find(env.begin(), env.end(), yaml(row.expected)) != env.end());
  }
}

}  // namespace
}  // namespace trainer::test
