#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtimes/pipeline/plugin.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using Words = std::vector<std::string>;

std::string job(const std::string& name, const std::string& step, const std::string& rest = "") {
  return "- name: " + name + "\n  " + rest +
         "\n  template:\n    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: " +
         step +
         "}}\n    spec: {template: {spec: {containers: [{name: node, image: i, resources: {limits: "
         "{cpu: 2, memory: 1Gi}}}]}}}\n";
}

std::string await(const std::string& name, const std::string& status) {
  return "dependsOn: [{name: " + name + ", status: " + status + "}]";
}

Runtime ganged(const std::string& ml_policy, const std::string& jobs,
               const std::string& group = "coscheduling: {}") {
  Runtime runtime = runtime_with(ml_policy, jobs);
  const Runtime policy = torch_runtime("podGroupPolicy: {" + group + "}");
  runtime.spec.podGroupPolicy = policy.spec.podGroupPolicy;
  return runtime;
}

// The jobs whose pods carry the group's mark.
Words members(const Built& result) {
  Words names;
  for (const PodSet& set : result.pod_sets) {
    const kube::Json& pod = pod_in(result, set.name);
    const kube::Json* labels = pod.find_path({"metadata", "labels"});
    const kube::Json* annotations = pod.find_path({"metadata", "annotations"});
    if ((labels != nullptr && labels->get_string("scheduling.x-k8s.io/pod-group") == "j") ||
        (annotations != nullptr && annotations->get_string("scheduling.k8s.io/group-name") == "j"))
      names.push_back(set.name);
  }
  return names;
}

TEST_CASE("the gang holds the pods that can start together, and no others", "[gang]") {
  struct Row {
    const char* name;
    std::string policy;
    std::string jobs;
    Words members;
    std::int64_t pods;
  };
  const std::string torch = "{numNodes: 3, torch: {}}";
  const Row rows[] = {
      {"one job", torch, job("node", "trainer"), {"node"}, 3},
      {"initializers come first",
       torch,
       job("data", "dataset-initializer") + job("model", "model-initializer") +
           job("node", "trainer",
               "dependsOn: [{name: data, status: Complete}, {name: model, status: Complete}]"),
       {"node"},
       3},
      {"a chain of initializers",
       torch,
       job("a", "x") + job("b", "x", await("a", "Complete")) +
           job("node", "trainer", await("b", "Complete")),
       {"node"},
       3},
      {"a server that the trainer waits for",
       torch,
       job("cache", "x") + job("node", "trainer", await("cache", "Ready")),
       {"node"},
       3},
      {"a server beside the trainer",
       torch,
       job("ps", "x", "replicas: 2") + job("node", "trainer"),
       {"ps", "node"},
       5},
      {"an evaluation afterwards",
       torch,
       job("node", "trainer") + job("eval", "x", await("node", "Complete")),
       {"node"},
       3},
      {"a monitor that waits for the trainer",
       torch,
       job("node", "trainer") + job("watch", "x", await("node", "Ready")),
       {"node"},
       3},
      {"a launcher that waits",
       "{mpi: {runLauncherAsNode: true}}",
       job("node", "x") + job("launcher", "trainer", await("node", "Ready")),
       {"node"},
       2},
      {"a launcher that does not wait",
       "{mpi: {runLauncherAsNode: true}}",
       job("node", "x") + job("launcher", "trainer"),
       {"node", "launcher"},
       3},
      {"a server that the nodes of a launcher wait for",
       "{mpi: {runLauncherAsNode: true}}",
       job("cache", "x") + job("node", "x", await("cache", "Ready")) +
           job("launcher", "trainer", await("node", "Ready")),
       {"node"},
       2},
      {"nothing is labelled", "{}", job("a", "x") + job("b", "x", await("a", "Ready")), {"a"}, 1},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const Built result = built(job_with("trainer: {numNodes: 3}"), ganged(row.policy, row.jobs));
    CHECK(members(result) == row.members);
    const kube::Json* spec = dependent(result, "PodGroup", "j")->find("spec");
    CHECK(spec->get_int("minMember") == row.pods);
    CHECK(*spec->find("minResources") ==
          kube::Json::object({{"cpu", std::to_string(2 * row.pods)},
                              {"memory", std::to_string(row.pods) + "Gi"}}));
  }
}

TEST_CASE("jobs that start in order wait for one another without saying so", "[gang]") {
  Runtime runtime = ganged("{mpi: {}}", job("node", "x") + job("launcher", "trainer"));
  runtime.spec.template_->spec->startupPolicy = StartupPolicy{"InOrder", {}};
  CHECK(members(built(job_with("{}"), runtime)) == Words{"node"});
}

TEST_CASE("a coscheduling group", "[gang]") {
  const Built result = built(
      job_with("trainer: {numNodes: 2}"),
      ganged("{torch: {}}", job("node", "trainer"), "coscheduling: {scheduleTimeoutSeconds: 100}"));
  const kube::Json* group = dependent(result, "PodGroup", "j");
  CHECK(group->get_string("apiVersion") == "scheduling.x-k8s.io/v1alpha1");
  CHECK(group->find("spec")->get_int("scheduleTimeoutSeconds") == 100);
  CHECK(group->find_path({"metadata", "namespace"})->as_string() == "team");
}

TEST_CASE("a Volcano group has queue, priority and topology", "[gang]") {
  Runtime runtime = ganged("{torch: {}}", job("data", "x") + job("node", "trainer"),
                           "volcano: {networkTopology: {mode: soft, highestTierAllowed: 2}}");
  runtime.spec.template_->metadata = yaml("{annotations: {scheduling.volcano.sh/queue-name: q}}");
  auto& jobs = runtime.spec.template_->spec->replicatedJobs;
  jobs[0].template_["spec"]["template"]["spec"].set("priorityClassName", "low");
  jobs[1].template_["spec"]["template"]["spec"].set("priorityClassName", "high");
  const Built result = built(job_with("{}"), runtime);
  const kube::Json* spec = dependent(result, "PodGroup", "j")->find("spec");
  CHECK(spec->get_string("queue") == "q");
  CHECK(spec->get_string("priorityClassName") == "high");
  CHECK(*spec->find("networkTopology") == yaml("{mode: soft, highestTierAllowed: 2}"));
  CHECK(members(result) == Words{"data", "node"});
}

TEST_CASE("a group of Kubernetes' own scheduler, and the Workload that has its template",
          "[gang]") {
  Runtime runtime =
      ganged("{torch: {}}",
             job("data", "dataset-initializer") + job("node", "trainer", await("data", "Complete")),
             "workload: {}");
  runtime.spec.template_->spec->replicatedJobs[1].template_["spec"]["template"]["spec"].set(
      "priorityClassName", "high");
  const Built result = built(job_with("trainer: {numNodes: 3}"), runtime);
  CHECK(*dependent(result, "Workload", "j") == yaml(R"(
apiVersion: scheduling.k8s.io/v1beta1
kind: Workload
metadata: {name: j, namespace: team}
spec:
  controllerRef: {apiGroup: trainer.kubeflow.org, kind: TrainJob, name: j}
  podGroupTemplates:
  - {schedulingPolicy: {gang: {minCount: 3}}, disruptionMode: {all: {}}, priorityClassName: high,
     name: trainer}
)"));
  CHECK(*dependent(result, "PodGroup", "j") == yaml(R"(
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: j, namespace: team}
spec:
  schedulingPolicy: {gang: {minCount: 3}}
  disruptionMode: {all: {}}
  priorityClassName: high
  workloadRef: {workloadName: j, templateName: trainer}
)"));
  CHECK(pod_in(result, "node").get("spec").get("schedulingGroup") == yaml("{podGroupName: j}"));
  CHECK(pod_in(result, "data").get("spec").find("schedulingGroup") == nullptr);
  Words classes;
  for (const auto& plugin : *production().plugins)
    for (std::string& name : plugin->priority_classes(runtime)) classes.push_back(std::move(name));
  CHECK(classes == Words{"high"});
}

TEST_CASE("the pods of a group of Kubernetes' own scheduler have one priority and one scheduler",
          "[gang]") {
  Runtime runtime =
      ganged("{torch: {}}",
             job("ps", "x") + job("node", "trainer") + job("eval", "x", await("node", "Complete")),
             "workload: {}");
  const auto set = [&runtime](std::size_t index, const char* member, const char* value) {
    runtime.spec.template_->spec->replicatedJobs[index].template_["spec"]["template"]["spec"].set(
        member, value);
  };
  set(0, "priorityClassName", "high");
  set(1, "priorityClassName", "high");
  set(2, "priorityClassName", "low");  // it is in no gang
  CHECK(warn_trainjob(job_with("{}"), runtime).empty());
  const kube::Json group = *dependent(built(job_with("{}"), runtime), "PodGroup", "j");
  CHECK(group.get("spec").get_string("priorityClassName") == "high");

  set(1, "priorityClassName", "low");
  set(1, "schedulerName", "mine");
  const auto warnings = warn_trainjob(job_with("{}"), runtime);
  REQUIRE(warnings.size() == 2);
  CHECK_THAT(warnings[0], Catch::EndsWith("has the jobs ps and node in one gang, with \"high\" and "
                                          "\"low\" as priorityClassName of their pods: "
                                          "kube-scheduler places no pod of such a gang; set the "
                                          "same in both"));
  CHECK_THAT(warnings[1],
             Catch::Contains("with \"default-scheduler\" and \"mine\" as schedulerName"));
}

TEST_CASE("a gang's mark replaces one of the runtime, with a warning", "[gang]") {
  Runtime runtime = ganged("{torch: {}}", job("node", "trainer"), "workload: {}");
  kube::Json& spec =
      runtime.spec.template_->spec->replicatedJobs[0].template_["spec"]["template"]["spec"];
  spec.set("schedulingGroup", yaml("{podGroupName: mine}"));
  const Built result = built(job_with("{}"), runtime);
  CHECK(pod_in(result, "node").get("spec").get("schedulingGroup") == yaml("{podGroupName: j}"));
  REQUIRE(result.runtime_warnings.size() == 1);
  CHECK_THAT(
      result.runtime_warnings[0].text,
      Catch::Contains("scheduling group podGroupName of job node of ClusterTrainingRuntime"));
  CHECK_THAT(result.runtime_warnings[0].in_runtime,
             Catch::StartsWith(
                 "spec.template.spec.replicatedJobs[node].template.spec.template.spec."
                 "schedulingGroup.podGroupName: has no effect, because plugin workload sets"));
}

TEST_CASE("a runtime has one gang scheduler", "[gang]") {
  struct Row {
    const char* policies;
    std::string said;
  };
  for (const Row& row : std::vector<Row>{
           {"coscheduling: {}, volcano: {}",
            "coscheduling and volcano are set, so each pod belongs to 2 gangs; keep one"},
           {"volcano: {}, workload: {}",
            "volcano and workload are set, so each pod belongs to 2 gangs; keep one"},
           {"coscheduling: {}, workload: {}",
            "coscheduling and workload are set, so each pod belongs to 2 gangs; keep one"},
           {"coscheduling: {}, volcano: {}, workload: {}",
            "coscheduling and volcano and workload are set, so each pod belongs to 3 gangs; keep "
            "one"}}) {
    const auto warnings = warn_runtime(ganged("{torch: {}}", job("node", "trainer"), row.policies));
    CHECK_THAT(warnings, Catch::VectorContains("spec.podGroupPolicy: " + row.said));
  }
}

TEST_CASE("KAI never completes a gang whose pods start one after the other", "[gang]") {
  const auto warned = [](const std::string& jobs, bool in_order = false) {
    Runtime runtime = runtime_with("{torch: {}}", jobs);
    JobSetSpec& spec = *runtime.spec.template_->spec;
    for (ReplicatedJob& each : spec.replicatedJobs)
      each.template_["spec"]["template"]["spec"].set("schedulerName", "kai-scheduler");
    if (in_order) spec.startupPolicy = StartupPolicy{"InOrder", {}};
    return warn_trainjob(job_with("{}"), runtime);
  };
  CHECK(warned(job("node", "trainer")).empty());
  const std::string two = job("data", "dataset-initializer");
  const auto warnings = warned(two + job("node", "trainer", await("data", "Complete")));
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("those of job data start before or after the others") !=
        std::string::npos);
  CHECK(warned(two + job("node", "trainer"), true).empty());  // each job is a gang of its own
}

TEST_CASE("an empty Volcano queue is refused where it is set", "[gang]") {
  Runtime runtime = ganged("{torch: {}}", job("node", "trainer"), "volcano: {}");
  CHECK(validate_trainjob(job_with("{}"), nullptr, runtime).empty());
  const TrainJob patched =
      job_with(R"(runtimePatches: [{manager: acme.io/a, trainingRuntimeSpec: {template: {metadata: {
    annotations: {scheduling.volcano.sh/queue-name: ''}}}}}])");
  CHECK(paths_of(validate_trainjob(patched, nullptr, runtime)) ==
        Words{"spec.runtimePatches[0].trainingRuntimeSpec.template.metadata.annotations[scheduling."
              "volcano.sh/queue-name]"});
  runtime.spec.template_->metadata = yaml("{annotations: {scheduling.volcano.sh/queue-name: ''}}");
  CHECK(paths_of(validate_trainjob(job_with("{}"), nullptr, runtime)) == Words{"spec.runtimeRef"});
}

TEST_CASE("a Volcano queue beside the job's name is warned about", "[gang]") {
  Runtime runtime = ganged("{torch: {}}", job("node", "trainer"), "volcano: {}");
  TrainJob queued = job_with("{}");
  queued.metadata.annotations["scheduling.volcano.sh/queue-name"] = "q";
  const auto warnings = warn_trainjob(queued, runtime);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("metadata.annotations[scheduling.volcano.sh/queue-name]: has no effect "
                         "there, and the job goes to queue default") == 0);
  runtime.spec.template_->metadata = yaml("{annotations: {scheduling.volcano.sh/queue-name: q}}");
  CHECK(warn_trainjob(queued, runtime).empty());
}

TEST_CASE("a job without pods still has a valid group", "[gang]") {
  const Built result =
      built(job_with("trainer: {numNodes: 0}"), ganged("{torch: {}}", job("node", "trainer")));
  CHECK(dependent(result, "PodGroup", "j")->find("spec")->get_int("minMember") == 1);
}

}  // namespace
}  // namespace trainer::test
