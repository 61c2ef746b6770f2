// `render` refuses, like an API server, errors of the objects themselves and of their children.
#include <fmt/format.h>

#include <sstream>

#include "controller/cli/commands.hh"
#include "controller/kinds/registry.hh"
#include "tests/support/catch.hh"

using namespace trainer;

namespace {

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome render(const std::string& yaml) {
  std::istringstream in(yaml);
  std::ostringstream out;
  std::ostringstream err;
  Console console{in, out, err};
  RenderOptions options;
  options.files = {"-"};
  const int code = run_render(options, full_registry(), console);
  return {code, out.str(), err.str()};
}

std::string runtime(const char* kind, const char* metadata) {
  return fmt::format("apiVersion: trainer.kubeflow.org/v1alpha1\nkind: {}\nmetadata: {{{}, ", kind,
                     metadata) +
         R"(labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: "of/file:1"}]}}}
)";
}

const std::string kJob = R"(---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: j}
spec: {runtimeRef: {name: mine}}
)";

}  // namespace

TEST_CASE("metadata that no API server takes is refused") {
  struct Row {
    const char* metadata;
    const char* refusal;  // its beginning, behind the kind
  };
  const Row rows[] = {
      {"name: j, labels: {a: b c}",
       "default/j: metadata.labels: Invalid value: \"b c\": a valid label must be"},
      {"name: j, labels: {a b: c}",
       "default/j: metadata.labels: Invalid value: \"a b\": name part must consist"},
      {"name: j, labels: {version: 1}",
       "default/j: metadata.labels.version: Invalid value: 1: must be of type string, found "
       "integer: write it in quotes\n"},
      {"name: j, annotations: {a b: c}",
       "default/j: metadata.annotations: Invalid value: \"a b\": name part must consist"},
      {"name: my_job",
       "default/my_job: metadata.name: Invalid value: \"my_job\": a lowercase RFC 1123 subdomain"},
      {"name: j, namespace: Team_A",
       "Team_A/j: metadata.namespace: Invalid value: \"Team_A\": a lowercase RFC 1123 label"},
  };
  for (const Row& row : rows) {
    for (const char* kind : {"TrainJob", "TrainingRuntime"}) {
      INFO(kind << " " << row.metadata);
      const Outcome outcome = render(fmt::format(
          "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: {}\nmetadata: {{{}}}\nspec: "
          "{{runtimeRef: {{name: torch-distributed}}}}\n",
          kind, row.metadata));
      CHECK(outcome.code == kExitRefused);
      CHECK(outcome.out.empty());
      CHECK(outcome.err.find(std::string(kind) + " " + row.refusal) == 0);
    }
  }
  const Outcome number = render(
      "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: 7}\nspec: {}\n");
  CHECK(number.err.find("metadata.name: Invalid value: 7: must be of type string") !=
        std::string::npos);
}

TEST_CASE("what the API server refuses of Jobs and pods is refused, and warned about before") {
  struct Row {
    const char* spec;     // members of the TrainJob's spec
    const char* refusal;  // the refusal of the JobSet
  };
  const Row rows[] = {
      {"trainer: {env: [{name: A=B, value: c}]}",
       "spec.replicatedJobs[0].template.spec.template.spec.containers[0].env[1].name: Invalid "
       "value: \"A=B\""},
      {"trainer: {resourcesPerNode: {requests: {nvidia.com/gpu: 1}}}",
       "spec.replicatedJobs[0].template.spec.template.spec.containers[0].resources.limits[nvidia."
       "com/gpu]: Required value: Limit must be set"},
      {"trainer: {image: \"\"}",
       "spec.replicatedJobs[0].template.spec.template.spec.containers[0].image: Required value"},
      {"labels: {a: b c}", "metadata.labels: Invalid value: \"b c\""},
      {"annotations: {a b: c}", "metadata.annotations: Invalid value: \"a b\""},
      {"runtimePatches: [{manager: a.io/b, trainingRuntimeSpec: {template: {spec: {replicatedJobs: "
       "[{name: node, template: {metadata: {labels: {a: b c}}}}]}}}}]",
       "spec.replicatedJobs[0].template.metadata.labels: Invalid value: \"b c\""},
  };
  for (const Row& row : rows) {
    INFO(row.spec);
    const Outcome outcome = render(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: j}\n"
        "spec:\n  runtimeRef: {name: torch-distributed}\n  " +
        std::string(row.spec) + "\n");
    CHECK(outcome.code == kExitRefused);
    // The API server takes the JobSet, and refuses its Jobs.
    const bool is_stored = std::string_view(row.refusal).starts_with("spec.");
    CHECK(outcome.out.empty() != is_stored);
    CHECK(outcome.err.find("\nTrainJob default/j: JobSet j: " + std::string(row.refusal)) !=
          std::string::npos);
    CHECK(outcome.err.find("warning: TrainJob default/j: this job cannot start, since the API "
                           "server refuses what its JobSet says: ") != std::string::npos);
  }
}

TEST_CASE("JobSets and V1 jobs are refused for their pods, too") {
  const Outcome jobset = render(R"(apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: js}
spec:
  replicatedJobs:
  - name: a
    template:
      spec:
        podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [42]}}]}
        template: {spec: {restartPolicy: OnFailure, containers: [{name: x, image: "i:1"}]}}
)");
  CHECK(jobset.code == kExitRefused);
  CHECK(jobset.out.find("kind: JobSet") != std::string::npos);
  CHECK(jobset.err ==
        "JobSet default/js: spec.replicatedJobs[0].template.spec.template.spec.restartPolicy: "
        "Invalid value: \"OnFailure\": only \"Never\" is supported when podFailurePolicy is "
        "specified\n");

  const Outcome mpi = render(R"(apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: m}
spec:
  mpiReplicaSpecs:
    Launcher:
      template: {metadata: {labels: {a: b c}}, spec: {containers: [{name: mpi, image: i}]}}
)");
  CHECK(mpi.code == kExitRefused);
  CHECK(mpi.out.find("kind: Pod") == std::string::npos);
  CHECK(
      mpi.err.find("\nMPIJob default/m: Pod m-launcher: metadata.labels: Invalid value: \"b c\"") !=
      std::string::npos);
}

TEST_CASE("for a kind that was removed others are named") {
  const std::string job = runtime("ClusterTrainingRuntime", "name: mine") + kJob;
  const Outcome mxnet =
      render("apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {name: m}\n---\n" + job);
  CHECK(mxnet.code == kExitRefused);
  CHECK(mxnet.err ==
        "MXJob m: the Training Operator 1.9 removed this kind, and nothing reconciles it: make a "
        "PyTorchJob (kubeflow.org/v1) or a TrainJob (trainer.kubeflow.org/v1alpha1) of it\n");
  CHECK(mxnet.out.find("kind: JobSet") != std::string::npos);
  const Outcome other =
      render("apiVersion: example.org/v1\nkind: MXJob\nmetadata: {name: m}\n---\n" + job);
  CHECK(other.code == kExitDone);
}

TEST_CASE("a namespace of a cluster's runtime counts for nothing") {
  const Outcome outcome =
      render(runtime("ClusterTrainingRuntime", "name: mine, namespace: some") + kJob);
  CHECK(outcome.err.empty());
  CHECK(outcome.code == kExitDone);
}

TEST_CASE("runtimes alone are checked, and that there is no job is said") {
  const Outcome outcome = render(runtime("TrainingRuntime", "name: mine"));
  CHECK(outcome.code == kExitRefused);
  CHECK(outcome.err ==
        "nothing to render: the runtimes of these files are valid; name a file with a TrainJob, "
        "JobSet, PyTorchJob, TFJob, XGBoostJob, PaddleJob, JAXJob or MPIJob\n");
}

TEST_CASE("a runtime of the namespace that was meant is named") {
  const Outcome outcome = render(runtime("TrainingRuntime", "name: mine") + kJob);
  CHECK(outcome.code == kExitRefused);
  CHECK(
      outcome.err.ends_with("; the namespace has a TrainingRuntime of this name: write "
                            "spec.runtimeRef.kind: TrainingRuntime to mean it\n"));
}
