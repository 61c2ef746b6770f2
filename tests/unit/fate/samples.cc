#include <fmt/format.h>

#include <stdexcept>

#include "kube/model/yaml.hh"
#include "runtimes/builtin/builtin_runtimes.hh"
#include "tests/unit/fate/trainjobs.hh"

namespace trainer::fate {
namespace {

using kube::Json;

constexpr std::string_view kJob = R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  {name: j, namespace: ns, uid: job-uid, resourceVersion: "10", generation: 1, creationTimestamp: "2027-01-15T08:00:00Z"}
)";

constexpr std::string_view kTrainer =
    "metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}";

Json make_job(std::string_view spec, const Json& runtime) {
  Json job = yaml(kJob);
  job.set("spec", yaml(spec));
  job["spec"]["runtimeRef"].set("name", runtime.get("metadata").get("name"));
  return job;
}

// One job `node` that trains; `spec` has the policies.
Json make_runtime(std::string_view spec, std::string_view jobs) {
  Json runtime = yaml(R"(
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: rt, labels: {trainer.kubeflow.org/framework: f}}
)");
  runtime.set("spec", yaml(spec));
  runtime["spec"]["template"]["spec"].set("replicatedJobs", yaml(jobs));
  return runtime;
}

std::string one_job() {
  return fmt::format(
      "[{{name: node, template: {{{}, spec: {{template: {{spec: {{containers: [{{name: node, "
      "image: "
      "'img:1'}}]}}}}}}}}}}]",
      kTrainer);
}

// sshd on the workers, mpirun in the launcher.
std::string mpi_jobs(bool is_label_on_workers) {
  return fmt::format(
      R"(
- name: node
  template: {{{}spec: {{template: {{spec: {{containers: [{{name: node, image: "img:1", command: [/usr/sbin/sshd], args: [-De]}}]}}}}}}}}
- name: launcher
  dependsOn: [{{name: node, status: Ready}}]
  template: {{{}spec: {{template: {{spec: {{containers: [{{name: node, image: "img:1", command: [mpirun]}}]}}}}}}}}
)",
      is_label_on_workers ? std::string(kTrainer) + ", " : "",
      is_label_on_workers ? "" : std::string(kTrainer) + ", ");
}

std::string cached_jobs() {
  return fmt::format(R"(
- name: cache-initializer
  template:
    metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: cache-initializer}}}}
    spec: {{template: {{spec: {{containers: [{{name: cache, image: "cache:1", env: [{{name: LWS_GROUP_SIZE, value: "3"}}]}}]}}}}}}
- name: node
  dependsOn: [{{name: cache-initializer, status: Ready}}]
  template: {{{}, spec: {{template: {{spec: {{containers: [{{name: node, image: "img:1"}}]}}}}}}}}
)",
                     kTrainer);
}

std::vector<Sample> make_samples() {
  std::vector<Sample> all;
  for (Json runtime : builtin_runtimes()) {
    const std::string name(runtime.get("metadata").get_string("name"));
    if (name == "torchtune-llama3.2-1b")
      all.push_back({"torchtune with a command", runtime,
                     make_job("{trainer: {command: [tune, run], args: [a=b]}}", runtime)});
    Json job = make_job("{}", runtime);
    all.push_back({name, std::move(runtime), std::move(job)});
  }
  const auto add = [&all](std::string_view name, std::string_view spec, std::string_view jobs,
                          std::string_view job = "{trainer: {numNodes: 2}}") {
    Json runtime = make_runtime(spec, jobs);
    Json made = make_job(job, runtime);
    all.push_back({std::string(name), std::move(runtime), std::move(made)});
  };
  const std::string one = one_job();
  add("torch", "{mlPolicy: {numNodes: 2, torch: {}}}", one);
  add("torch with launcher env", "{mlPolicy: {numNodes: 2, torch: {launcher: env}}}", one);
  for (const char* implementation : {"OpenMPI", "Intel", "MPICH"})
    add(fmt::format("mpi {}", implementation),
        fmt::format("{{mlPolicy: {{numNodes: 1, mpi: {{mpiImplementation: {}}}}}}}",
                    implementation),
        mpi_jobs(false));
  add("mpi with a launcher that trains",
      "{mlPolicy: {numNodes: 1, mpi: {runLauncherAsNode: true}}}", mpi_jobs(false));
  add("mpi with the label on the workers", "{mlPolicy: {numNodes: 2, mpi: {}}}", mpi_jobs(true));
  for (const char* policy : {"jax", "xgboost", "flux"})
    add(policy, fmt::format("{{mlPolicy: {{numNodes: 2, {}: {{}}}}}}", policy), one);
  add("plainml", "{mlPolicy: {numNodes: 2}}", one);
  add("no policy", "{}", one);
  add("data cache", "{mlPolicy: {numNodes: 1, torch: {}}}", cached_jobs(),
      "{initializer: {dataset: {storageUri: 'cache://s/t'}}, trainer: {command: [torchrun, "
      "t.py]}}");
  add("volcano", "{mlPolicy: {numNodes: 2, torch: {}}, podGroupPolicy: {volcano: {}}}", one);
  add("coscheduling", "{mlPolicy: {numNodes: 2, torch: {}}, podGroupPolicy: {coscheduling: {}}}",
      one);
  add("workload", "{mlPolicy: {numNodes: 2, torch: {}}, podGroupPolicy: {workload: {}}}", one);
  add("restarts", "{mlPolicy: {numNodes: 2, torch: {}}}", one);
  all.back().runtime["metadata"]["annotations"].set("trainer.kubeflow.org/restart-environment",
                                                    "true");
  return all;
}

}  // namespace

Json yaml(std::string_view text) {
  auto value = kube::parse_yaml(text);
  if (!value) throw std::runtime_error(value.error().message);
  return *value;
}

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = make_samples();
  return all;
}

}  // namespace trainer::fate
