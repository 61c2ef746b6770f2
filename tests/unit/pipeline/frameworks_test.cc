// JAX, XGBoost, plain jobs, initializers and progress reports.
#include <algorithm>

#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kNodeJob = R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i}]}}}
)";
constexpr const char* kIndex = "<-metadata.annotations['batch.kubernetes.io/job-completion-index']";

TEST_CASE("JAX finds its coordinator; the job's own env wins", "[jax]") {
  const Runtime runtime = runtime_with("{jax: {}}", kNodeJob);
  const Built result = built(job_with("trainer: {numNodes: 2, env: [{name: A, value: '1'}, {name: "
                                      "JAX_NUM_PROCESSES, value: '9'}]}"),
                             runtime);
  CHECK(env_of(container_in(result, "node")) ==
        Words{"JAX_NUM_PROCESSES=9", "JAX_PROCESS_ID" + std::string(kIndex),
              "JAX_COORDINATOR_ADDRESS=j-node-0-0.j:29500", "A=1"});
  CHECK(container_in(result, "node").get_array("ports").size() == 1);
}

TEST_CASE("XGBoost counts one worker a device", "[xgboost]") {
  const Runtime runtime = runtime_with("{numNodes: 2, xgboost: {}}", kNodeJob);
  struct Row {
    const char* trainer;
    const char* workers;
  };
  const Row rows[] = {{"{}", "2"},
                      {"{numNodes: 3}", "3"},
                      {"{resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}", "8"},
                      {"{resourcesPerNode: {limits: {cpu: 4}}}", "2"}};
  for (const Row& row : rows) {
    INFO(row.trainer);
    const Built result = built(job_with("trainer: " + std::string(row.trainer)), runtime);
    CHECK(env_of(container_in(result, "node")) ==
          Words{"DMLC_TRACKER_URI=j-node-0-0.j", "DMLC_TRACKER_PORT=29500",
                "DMLC_TASK_ID" + std::string(kIndex),
                "DMLC_NUM_WORKER=" + std::string(row.workers)});
  }
  CHECK(paths_of(validate_trainjob(
            job_with("trainer: {env: [{name: A, value: b}, {name: DMLC_TASK_ID, value: '1'}, "
                     "{name: DMLC_TRACKER_URI, value: x}]}"),
            nullptr, runtime)) == Words{"spec.trainer.env[1]", "spec.trainer.env[2]"});
}

TEST_CASE("a plain job gets its count, image, command and env, each by itself", "[plainml]") {
  const Runtime runtime = runtime_with("{numNodes: 2}", R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i, command: [a], args: [b], env: [{name: X, value: r}]}]}}}
)");
  const Built plain = built(job_with("{}"), runtime);
  CHECK(plain.pod_sets.at(0).count == 2);
  const Built result = built(
      job_with(
          "trainer: {numNodes: 4, command: [c], env: [{name: Z, value: j}, {name: X, value: j}]}"),
      runtime);
  CHECK(result.pod_sets.at(0).count == 4);
  const kube::Json& container = container_in(result, "node");
  CHECK(strings(container.get_array("command")) == Words{"c"});
  CHECK(strings(container.get_array("args")) == Words{"b"});
  CHECK(container.get_string("image") == "i");
  CHECK(env_of(container) == Words{"X=j", "Z=j"});
  // An empty list takes the runtime's arguments away.
  const Built none = built(job_with("trainer: {args: []}"), runtime);
  CHECK(container_in(none, "node").find("args") == nullptr);
}

TEST_CASE("only jobs of known steps are held to one Job", "[jobset]") {
  const Runtime runtime = runtime_with("{}", R"(
- name: ps
  replicas: 3
  template: {spec: {parallelism: 2, completions: 9, template: {spec: {containers: [{name: main, image: i}]}}}}
- name: node
  replicas: 1
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i}]}}}
)");
  const Built result = built(job_with("trainer: {numNodes: 2}"), runtime);
  CHECK(job_in(result, "ps").get_int("replicas") == 3);
  CHECK(job_in(result, "ps").find_path({"template", "spec", "completions"})->as_int() == 2);
  CHECK(result.pod_sets.at(0).endpoints() ==
        Words{"j-ps-0-0.j", "j-ps-0-1.j", "j-ps-1-0.j", "j-ps-1-1.j", "j-ps-2-0.j", "j-ps-2-1.j"});
}

constexpr const char* kInitializers = R"(
- name: dataset-initializer
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
    spec:
      template:
        spec:
          containers:
          - {name: dataset-initializer, image: i, env: [{name: STORAGE_URI, value: 'hf://a/b'}], volumeMounts: [{name: initializer, mountPath: /w}]}
- name: model-initializer
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: model-initializer}}
    spec: {template: {spec: {containers: [{name: model-initializer, image: i}]}}}
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i}]}}}
)";

TEST_CASE("initializers take uri, env and secret", "[initializers]") {
  const Built result = built(
      job_with(R"(initializer: {dataset: {storageUri: 's3://b/p', env: [{name: REGION, value: eu},
      {name: STORAGE_URI, value: 'hf://last/word'}], secretRef: {name: s}}})"),
      runtime_with("{}", kInitializers));
  const kube::Json& container = container_in(result, "dataset-initializer", "dataset-initializer");
  CHECK(env_of(container) == Words{"STORAGE_URI=hf://last/word", "REGION=eu"});
  CHECK(*container.find("envFrom") == yaml("[{secretRef: {name: s}}]"));
  CHECK(env_of(container_in(result, "model-initializer", "model-initializer")).empty());
}

TEST_CASE("two sources of one initializer are refused, and equal ones are one", "[initializers]") {
  struct Row {
    const char* dataset;
    const char* error;
  };
  const Row row = GENERATE(
      Row{"{storageUri: 'hf://a/b'}", ""},
      Row{"{env: [{name: STORAGE_URI, value: 'hf://a/b'}]}", ""},
      Row{"{storageUri: 'hf://a/b', env: [{name: X, value: x}, {name: STORAGE_URI, value: "
          "'hf://a/b'}]}",
          ""},
      Row{"{storageUri: 'hf://a/b', env: [{name: X, value: x}, {name: STORAGE_URI, value: "
          "'hf://c/d'}]}",
          "spec.initializer.dataset.env[1]: Invalid value: \"hf://c/d\": STORAGE_URI is another "
          "source than spec.initializer.dataset.storageUri, \"hf://a/b\", which sets this "
          "variable: leave one of the two out"},
      Row{"{storageUri: 'hf://a/b', env: [{name: STORAGE_URI, valueFrom: {secretKeyRef: {name: s, "
          "key: k}}}]}",
          "spec.initializer.dataset.env[0]: Invalid value: {\"secretKeyRef\":{\"key\":\"k\","
          "\"name\":\"s\"}}: STORAGE_URI is another source than "
          "spec.initializer.dataset.storageUri, \"hf://a/b\", which sets this variable: leave one "
          "of the two out"});
  INFO(row.dataset);
  const Runtime runtime = runtime_with("{}", kInitializers);
  CHECK(kube::to_string(
            validate_trainjob(job_with("initializer: {dataset: " + std::string(row.dataset) + "}"),
                              nullptr, runtime)) == row.error);
  const std::string model(row.dataset);
  const auto errors =
      validate_trainjob(job_with("initializer: {model: " + model + "}"), nullptr, runtime);
  CHECK(std::any_of(errors.begin(), errors.end(), [](const kube::FieldError& error) {
          return error.path.starts_with("spec.initializer.model.env");
        }) == (*row.error != '\0'));
}

TEST_CASE("an initializer that the runtime cannot run is refused", "[initializers]") {
  struct Row {
    const char* spec;
    const char* jobs;
    const char* part;  // a part of the reason; "" if it is allowed
  };
  const auto mounted_by_both = [](std::string_view source) {
    const auto patch = [source](std::string_view job) {
      return fmt::format(
          "{{name: {0}, template: {{spec: {{template: {{spec: {{volumes: [{{name: m, {1}}}], "
          "containers: [{{name: {0}, volumeMounts: [{{name: m, mountPath: /m}}]}}]}}}}}}}}}}",
          job, source);
    };
    return fmt::format(
        "{{initializer: {{model: {{}}}}, runtimePatches: [{{manager: acme.io/a, "
        "trainingRuntimeSpec: {{template: {{spec: {{replicatedJobs: [{}, {}]}}}}}}}}]}}",
        patch("model-initializer"), patch("node"));
  };
  const std::string with_claim = mounted_by_both("persistentVolumeClaim: {claimName: models}");
  const std::string with_own = mounted_by_both("emptyDir: {}");
  const Row rows[] = {
      {"initializer: {dataset: {storageUri: 'hf://a/b'}}", kInitializers, ""},
      {"initializer: {model: {storageUri: 'hf://a/b'}}", kInitializers,
       "must have volumeMount with name - initializer"},
      {with_claim.c_str(), kInitializers, ""},
      {with_own.c_str(), kInitializers, "must have volumeMount with name - initializer"},
      {"initializer: {dataset: {}}", kNodeJob, "must have dataset-initializer job"},
      {"initializer: {model: {}}", kNodeJob, "must have model-initializer job"},
      {"initializer: {dataset: {}}",
       "[{name: dataset-initializer, template: {spec: {template: {spec: {containers: [{name: x, "
       "image: i}]}}}}}]",
       "must have container with name - dataset-initializer"},
  };
  for (const Row& row : rows) {
    INFO(row.spec);
    const auto errors =
        validate_trainjob(job_with(row.spec), nullptr, runtime_with("{}", row.jobs));
    REQUIRE(errors.size() == (*row.part == '\0' ? 0U : 1U));
    if (errors.empty()) continue;
    CHECK(errors[0].path == "spec.runtimeRef");
    CHECK_THAT(errors[0].detail, kube::test::starts_with(row.part));
  }
}

TEST_CASE("progress reports have an address, a certificate and a token of this job alone",
          "[progress]") {
  PipelineOptions options = production();
  options.is_progress_enabled = true;
  options.status_server_url = "https://svc.ns.svc:10443";
  options.status_server_ca = "PEM";
  const Runtime runtime = runtime_with("{}", R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {initContainers: [{name: init, image: i}], containers: [{name: node, image: i}, {name: side, image: i}]}}}
- name: other
  template: {spec: {template: {spec: {containers: [{name: main, image: i}]}}}}
)");
  const Built result = built(job_with("trainer: {env: [{name: A, value: '1'}]}"), runtime, options);
  const std::string report = "trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/j/status";
  const Words expected = {
      "KUBEFLOW_TRAINER_SERVER_URL=https://svc.ns.svc:10443/apis/" + report,
      "KUBEFLOW_TRAINER_SERVER_CA_CERT=/var/run/secrets/kubeflow/trainer/ca.crt",
      "KUBEFLOW_TRAINER_SERVER_TOKEN=/var/run/secrets/kubeflow/trainer/token"};
  CHECK(env_of(container_in(result, "node", "side")) == expected);
  CHECK(env_of(container_in(result, "node")).size() == 4);
  CHECK(env_of(container_in(result, "node", "init")).empty());
  CHECK(env_of(container_in(result, "other", "main")).empty());
  const kube::Json& volume = pod_in(result, "node").find("spec")->get_array("volumes").at(0);
  CHECK(volume == yaml(R"(
name: kubeflow-trainer-token
projected:
  sources:
  - serviceAccountToken: {audience: )" +
                       report + R"(, expirationSeconds: 3600, path: token}
  - configMap: {name: j-tls-config, optional: true, items: [{key: ca.crt, path: ca.crt}]}
)"));
  CHECK(
      dependent(result, "ConfigMap", "j-tls-config")->find_path({"data", "ca.crt"})->as_string() ==
      "PEM");
  CHECK(built(job_with("{}"), runtime).dependents.empty());
}

TEST_CASE("jobs and runtimes switch progress reports on and off", "[progress]") {
  struct Row {
    bool is_gate_open;
    const char* job;  // "" for no annotation
    const char* runtime;
    bool reports;
  };
  const Row rows[] = {
      {true, "", "", true},
      {true, "false", "true", false},
      {true, "", "false", false},
      {false, "", "", false},
      {false, "true", "", true},
      {false, "", "true", true},
      {false, "false", "true", false},
      {false, "true", "false", true},
  };
  const std::string key = "trainer.kubeflow.org/report-progress";
  for (const Row& row : rows) {
    INFO(row.is_gate_open << " job " << row.job << " runtime " << row.runtime);
    TrainJob job = job_with("{}");
    Runtime runtime = torch_runtime();
    if (*row.job) job.metadata.annotations[key] = row.job;
    if (*row.runtime) runtime.metadata.annotations[key] = row.runtime;
    PipelineOptions options = production();
    CHECK(built(job, runtime, options).dependents.empty());  // no status server
    options.is_progress_enabled = true;
    options.is_progress_opt_in = !row.is_gate_open;
    const Built result = built(job, runtime, options);
    CHECK(result.dependents.size() == (row.reports ? 1U : 0U));
    const std::string url = env_value(container_in(result, "node"), "KUBEFLOW_TRAINER_SERVER_URL");
    CHECK(url.empty() != row.reports);
    CHECK(validate_trainjob(job, nullptr, runtime).empty());
  }
  TrainJob job = job_with("{}");
  job.metadata.annotations[key] = "yes";
  CHECK(paths_of(validate_trainjob(job, nullptr, torch_runtime())) ==
        Words{"metadata.annotations[" + key + "]"});
}

}  // namespace
}  // namespace trainer::test
