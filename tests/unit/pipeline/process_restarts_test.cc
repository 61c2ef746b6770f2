// torchrun restarts processes in their pods: spec.failurePolicy.processRestarts.
#include <algorithm>

#include "runtimes/plugins/torch/launcher.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kOwn = "spec.failurePolicy.processRestarts";

Runtime runtime_of(const std::string& policy) {
  return runtime_with(policy, R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i}]}}}
)");
}

Runtime runtime_by_default(std::int32_t restarts, const std::string& policy = "{torch: {}}") {
  Runtime runtime = runtime_of(policy);
  runtime.spec.runPolicy.emplace().failurePolicy.emplace().processRestarts = restarts;
  return runtime;
}

TrainJob job_of(const std::string& restarts, const std::string& trainer = "{numNodes: 2}",
                const std::string& launcher = "") {
  const std::string policy =
      restarts.empty() ? "" : ", failurePolicy: {processRestarts: " + restarts + "}";
  TrainJob job = job_with("{trainer: " + trainer + policy + "}");
  if (!launcher.empty())
    job.metadata.annotations[std::string(pipeline::kLauncherAnnotation)] = launcher;
  return job;
}

Words variables_of(const TrainJob& job, const Runtime& runtime,
                   const PipelineOptions& options = production()) {
  return env_of(container_in(built(job, runtime, options), "node"));
}

TEST_CASE("processRestarts sets up torchrun's rendezvous for restarts", "[torch]") {
  const Words without = variables_of(job_of(""), torch_runtime());
  Words expected = without;
  for (const char* added : {"PET_MAX_RESTARTS=3", "PET_MONITOR_INTERVAL=1", "PET_RDZV_BACKEND=c10d",
                            "PET_RDZV_ENDPOINT=j-node-0-0.j.team.svc.corp.internal:29500",
                            "PET_RDZV_ID<-metadata.labels['batch.kubernetes.io/controller-uid']",
                            "PET_RDZV_CONF=last_call_timeout=1,join_timeout=600,read_timeout=600"})
    expected.emplace_back(added);
  PipelineOptions options = production();
  options.cluster_domain = "corp.internal";
  CHECK(variables_of(job_of("3"), torch_runtime(), options) == expected);
  CHECK(variables_of(job_of(""), runtime_by_default(3), options) == expected);
  CHECK(variables_of(job_of("3"), runtime_by_default(5), options) == expected);
  CHECK(variables_of(job_of("3", "{numNodes: 2, command: [python, train.py]}", "torchrun"),
                     torch_runtime(), options) == expected);
  // Without restarts nothing changes.
  CHECK(variables_of(job_of("0"), torch_runtime()) == without);
  CHECK(variables_of(job_of("0"), runtime_by_default(5)) == without);
  CHECK(variables_of(job_of(""), runtime_by_default(0)) == without);
}

TEST_CASE("other containers of the rendezvous restart their processes, too", "[torch]") {
  const Runtime runtime = runtime_with(
      "{torch: {envInjection: {targets: [{jobName: node, containerNames: [side]}]}}}", R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {containers: [{name: node, image: i}, {name: side, image: s}]}}}
)");
  const Built result = built(job_of("1"), runtime);
  CHECK(env_value(container_in(result, "node", "side"), "PET_MAX_RESTARTS") == "1");
  CHECK(env_of(container_in(result, "node", "side")) == env_of(container_in(result, "node")));
}

struct Refusal {
  const char* policy;  // mlPolicy of the runtime
  const char* trainer;
  const char* launcher;
  const char* way_out;  // in the message; nullptr if the job is admitted
};

const Refusal kRefusals[] = {
    {"{torch: {}}", "{}", "", nullptr},
    {"{torch: {launcher: env}}", "{}", "torchrun", nullptr},
    {"{torch: {}}", "{}", "env", "use launcher torchrun"},
    {"{torch: {launcher: env}}", "{}", "", "use launcher torchrun"},
    {"{torch: {}}", "{command: [tune, run]}", "", "resumes from a checkpoint"},
    {"{jax: {}}", "{}", "", "set spec.failurePolicy.maxRestarts"},
    {"{}", "{}", "", "set spec.failurePolicy.maxRestarts"},
};

TEST_CASE("processRestarts is refused where torchrun cannot restart processes", "[torch]") {
  for (const Refusal& row : kRefusals) {
    INFO(row.policy << " " << row.trainer << " " << row.launcher);
    const Runtime runtime = runtime_of(row.policy);
    const auto errors = validate_trainjob(job_of("2", row.trainer, row.launcher), nullptr, runtime);
    const auto at = std::find_if(errors.begin(), errors.end(),
                                 [](const auto& error) { return error.path == kOwn; });
    REQUIRE((at != errors.end()) == (row.way_out != nullptr));
    const auto without =
        validate_trainjob(job_of("0", row.trainer, row.launcher), nullptr, runtime);
    CHECK(without.size() == errors.size() - (row.way_out ? 1 : 0));
    // A default of the runtime has no effect on such a job.
    const Runtime by_default = runtime_by_default(2, row.policy);
    CHECK(validate_trainjob(job_of("", row.trainer, row.launcher), nullptr, by_default).size() ==
          without.size());
    if (!row.way_out) continue;
    CHECK(at->value == kube::Json(2));
    CHECK_THAT(at->detail, kube::test::contains(row.way_out));
  }
}

TEST_CASE("variables that processRestarts sets are reserved with it, and free without", "[torch]") {
  const std::string own =
      "{env: [{name: PET_RDZV_BACKEND, value: etcd-v2}, "
      "{name: PET_MAX_RESTARTS, value: '7'}, {name: PET_LOG_DIR, value: x}]}";
  CHECK(validate_trainjob(job_of("", own), nullptr, torch_runtime()).empty());
  CHECK(validate_trainjob(job_of("0", own), nullptr, runtime_by_default(3)).empty());
  CHECK(env_value(container_in(built(job_of("0", own), torch_runtime()), "node"),
                  "PET_MAX_RESTARTS") == "7");
  for (const auto& [job, runtime] : {std::pair(job_of("2", own), torch_runtime()),
                                     std::pair(job_of("", own), runtime_by_default(2))}) {
    const auto errors = validate_trainjob(job, nullptr, runtime);
    REQUIRE(paths_of(errors) == Words{"spec.trainer.env[0].name", "spec.trainer.env[1].name"});
    CHECK(errors[1].detail.find("set spec.failurePolicy.processRestarts to 0") !=
          std::string::npos);
  }
}

TEST_CASE("processRestarts without effect is warned about", "[torch]") {
  struct Row {
    TrainJob job;
    Runtime runtime;
    const char* text;  // nullptr if nothing about it is said
  };
  const std::string python = "{command: [python, train.py]}";
  const Row rows[] = {
      {job_of("2", "{command: [torchrun, train.py]}"), torch_runtime(), nullptr},
      {job_of("2", python, "torchrun"), torch_runtime(), nullptr},
      {job_of("", python), torch_runtime(), nullptr},
      {job_of("2", python), torch_runtime(),
       "spec.failurePolicy.processRestarts has no effect on a command that does not start "
       "torchrun"},
      {job_of("", "{command: [./train]}"), runtime_by_default(2),
       "processRestarts of runtime \"rt\" has no effect on a command"},
      {job_of("", python, "env"), runtime_by_default(2),
       "processRestarts of runtime \"rt\" has no effect: only torchrun"},
      {job_of("2"), runtime_with("{torch: {}}", R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec: {template: {spec: {hostNetwork: true, containers: [{name: node, image: i}]}}}
)"),
       "pods with hostNetwork"},
  };
  for (const Row& row : rows) {
    INFO((row.text ? row.text : "nothing"));
    std::size_t found = 0;
    for (const std::string& warning : warn_trainjob(row.job, row.runtime))
      if (warning.find(row.text ? row.text : "processRestarts") != std::string::npos) ++found;
    CHECK(found == (row.text ? 1 : 0));
  }
  const auto of_runtime = [](const Runtime& runtime) {
    std::size_t found = 0;
    for (const std::string& warning : warn_runtime(runtime))
      if (warning.find("processRestarts has no effect without spec.mlPolicy.torch") !=
          std::string::npos)
        ++found;
    return found;
  };
  CHECK(of_runtime(runtime_by_default(2)) == 0);
  CHECK(of_runtime(runtime_by_default(0, "{jax: {}}")) == 0);
  CHECK(of_runtime(runtime_by_default(2, "{jax: {}}")) == 1);
}

}  // namespace
}  // namespace trainer::test
