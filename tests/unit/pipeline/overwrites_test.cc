// A warning reports each entry with which a plugin replaces another's, whichever plugin it is.
#include <algorithm>
#include <tuple>

#include "runtimes/pipeline/plugin.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kEnd = " sets another one in its place: use another name, or leave it out";

// Those about overwritten entries.
Words overwrites_in(const Words& warnings) {
  Words found;
  for (const std::string& warning : warnings)
    if (warning.ends_with(kEnd)) found.push_back(warning.substr(0, warning.find(kEnd)));
  return found;
}

// Those about the job, then those about its runtime, each with the sentence that the runtime's own
// review has.
Words overwrites_in(const Built& built) {
  Words all = built.warnings;
  for (const RuntimeWarning& warning : built.runtime_warnings) {
    all.push_back(warning.text);
    CHECK(warning.in_runtime.starts_with("spec.template.spec.replicatedJobs["));
  }
  return overwrites_in(all);
}

PipelineOptions with_progress() {
  PipelineOptions options = production();
  options.is_progress_enabled = true;
  options.status_server_url = "https://svc";
  return options;
}

Runtime runtime_of(const std::string& policy, const std::string& pod_spec) {
  return runtime_with(policy, R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: )" + pod_spec +
                                  "}}");
}

TEST_CASE("names of progress reports that others use are reported", "[overwrites]") {
  const Runtime runtime = runtime_of("{}", R"({
    volumes: [{name: kubeflow-trainer-token, emptyDir: {}}],
    containers: [{name: node, image: i, env: [{name: KUBEFLOW_TRAINER_SERVER_TOKEN, value: mine}],
      volumeMounts: [{name: kubeflow-trainer-token, mountPath: /var/run/secrets/kubeflow/trainer}]},
      {name: side, image: i}]})");
  const TrainJob job = job_with(
      "{trainer: {env: [{name: A, value: a}, {name: KUBEFLOW_TRAINER_SERVER_URL, value: mine}]}, "
      "runtimePatches: [{manager: acme.io/a, trainingRuntimeSpec: {template: {spec: "
      "{replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [{name: "
      "side, env: [{name: KUBEFLOW_TRAINER_SERVER_CA_CERT, value: mine}]}]}}}}}]}}}}]}");
  const std::string of_runtime =
      " in job node of ClusterTrainingRuntime \"rt\" has no effect, "
      "because plugin progress";
  CHECK(
      overwrites_in(built(job, runtime, with_progress())) ==
      Words{
          "spec.trainer.env[KUBEFLOW_TRAINER_SERVER_URL]: variable KUBEFLOW_TRAINER_SERVER_URL "
          "of container node in job node has no effect, because plugin progress",
          "spec.runtimePatches[0]: variable KUBEFLOW_TRAINER_SERVER_CA_CERT of "
          "container side in job node has no effect, because plugin progress",
          "spec.runtimeRef: volume kubeflow-trainer-token of job node of ClusterTrainingRuntime "
          "\"rt\" has no effect, because plugin progress",
          "spec.runtimeRef: variable KUBEFLOW_TRAINER_SERVER_TOKEN of container node" + of_runtime,
          "spec.runtimeRef: mount /var/run/secrets/kubeflow/trainer of container node" +
              of_runtime});
  // Without reports nothing is overwritten.
  CHECK(overwrites_in(built(job, runtime)).empty());
  // The admin who writes the runtime learns it, too.
  CHECK(overwrites_in(trainer::warn_runtime(runtime, with_progress())).size() == 3);
  CHECK(overwrites_in(trainer::warn_runtime(runtime, with_progress())).at(0) ==
        "spec.template.spec.replicatedJobs[node].template.spec.template.spec.volumes"
        "[kubeflow-trainer-token]: has no effect, because plugin progress");
}

TEST_CASE("what a runtime says in the place of a framework's own is reported", "[overwrites]") {
  struct Row {
    const char* policy;
    const char* pod;
    const char* what;
  };
  const Row row = GENERATE(
      Row{"{torch: {}}",
          "{containers: [{name: node, image: i, env: [{name: PET_NNODES, value: '7'}]}]}",
          "variable PET_NNODES"},
      Row{"{jax: {}}",
          "{containers: [{name: node, image: i, env: [{name: JAX_PROCESS_ID, value: '7'}]}]}",
          "variable JAX_PROCESS_ID"},
      Row{"{xgboost: {}}",
          "{containers: [{name: node, image: i, env: [{name: DMLC_TASK_ID, value: '7'}]}]}",
          "variable DMLC_TASK_ID"},
      Row{"{torch: {}}",
          "{containers: [{name: node, image: i, ports: [{containerPort: 29500, name: mine}]}]}",
          "port 29500"},
      Row{"{torch: {}}", "{containers: [{name: node, image: i, ports: [{containerPort: 80}]}]}",
          "port 80"},
      Row{"{flux: {}}",
          "{volumes: [{name: shared-memory, emptyDir: {}}], containers: [{name: node, image: i}]}",
          "volume shared-memory"},
      Row{"{flux: {}}",
          "{volumes: [{name: shm, emptyDir: {}}], containers: [{name: node, image: i, "
          "volumeMounts: "
          "[{name: shm, mountPath: /dev/shm}]}]}",
          "mount /dev/shm"});
  INFO(row.policy << " " << row.pod);
  const Words found = overwrites_in(built(job_with("{}"), runtime_of(row.policy, row.pod)));
  REQUIRE(found.size() == 1);
  CHECK(found[0].starts_with("spec.runtimeRef: " + std::string(row.what) + " of "));
}

TEST_CASE("what a job says in the place of its runtime's is meant", "[overwrites]") {
  const Runtime runtime = runtime_with("{torch: {}}", R"(
- name: dataset-initializer
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
    spec: {template: {spec: {containers: [{name: dataset-initializer, image: i, env: [{name: STORAGE_URI, value: 'hf://a/b'}]}]}}}
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i, env: [{name: A, value: runtime}]}]}}}
)");
  const TrainJob job = job_with(
      "{initializer: {dataset: {storageUri: 'hf://c/d'}}, trainer: {env: [{name: A, value: "
      "job}]}}");
  CHECK(overwrites_in(built(job, runtime, with_progress())).empty());
}

// Nothing else is known about this new plugin.
class Careless final : public pipeline::Plugin {
 public:
  std::string_view source() const override { return "plugin careless"; }
  bool is_active(const pipeline::Draft&) const override { return true; }
  void enforce_pod_spec(pipeline::Draft& draft) const override {
    auto edit = draft.edit(0, pipeline::kNode, source());
    edit->env("ENV", "careless");
    edit->mount(yaml("{name: v, mountPath: /path, readOnly: true}"));
    edit->port(77);
    draft.upsert_volume(0, yaml("{name: v, emptyDir: {medium: Memory}}"), source());
    draft.set_entry(0, "metadata", "labels", "label", "careless", source());
    draft.set_entry(0, "metadata", "annotations", "note", "careless", source());
  }
};

TEST_CASE("a plugin cannot overwrite anything in silence", "[overwrites]") {
  pipeline::Plugins list;
  list.push_back(std::make_unique<Careless>());
  const Runtime taken = runtime_with("{}", R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec:
      template:
        metadata: {labels: {label: mine}, annotations: {note: mine}}
        spec:
          volumes: [{name: v, emptyDir: {}}]
          containers: [{name: node, image: i, env: [{name: ENV, value: mine}],
            ports: [{containerPort: 77, name: mine}], volumeMounts: [{name: v, mountPath: /path}]}]
)");
  CHECK(overwrites_in(built(job_with("{}"), taken, PipelineOptions(list))).size() == 6);
  CHECK(overwrites_in(trainer::warn_runtime(taken, PipelineOptions(list))).size() == 6);
  const Runtime free = runtime_of("{}", "{containers: [{name: node, image: i}]}");
  CHECK(overwrites_in(built(job_with("{}"), free, PipelineOptions(list))).empty());
}

TEST_CASE("of very many overwritten entries the first are reported", "[overwrites]") {
  std::string containers = "{name: node, image: i}";
  for (int i = 0; i < 300; ++i)
    containers += ", {name: c" + std::to_string(i) +
                  ", image: i, env: [{name: KUBEFLOW_TRAINER_SERVER_URL, value: x}]}";
  const Runtime runtime = runtime_of("{}", "{containers: [" + containers + "]}");
  CHECK(overwrites_in(built(job_with("{}"), runtime, with_progress())).size() == 20);
}

}  // namespace
}  // namespace trainer::test
