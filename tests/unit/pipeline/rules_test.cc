// Names, shapes, warnings, rules for runtimes, and explanations.
#include <algorithm>

#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using kube::Json;
using Words = std::vector<std::string>;

TEST_CASE("a name that is too long is refused with the limit and a length that fits", "[names]") {
  TrainJob job = job_with("trainer: {numNodes: 101}");
  job.metadata.name = std::string(46, 'a');  // <46>-node-0-100-abcde has 63
  CHECK(build(job, torch_runtime(), production()).has_value());
  job.metadata.name = std::string(47, 'a');
  const auto errors = refused(job, torch_runtime());
  REQUIRE(paths_of(errors) == Words{"metadata.name"});
  CHECK(errors[0].detail.find("64 characters, and 63 is the limit") != std::string::npos);
  CHECK(errors[0].detail.find("to 46 characters") != std::string::npos);
}

TEST_CASE("more pods than a Job can have are refused before any is computed", "[sizes]") {
  CHECK(build(job_with("trainer: {numNodes: 100000}"), torch_runtime(), production()).has_value());
  const auto errors = refused(job_with("trainer: {numNodes: 2147483647}"), torch_runtime());
  REQUIRE(paths_of(errors) == Words{"spec.trainer.numNodes"});
  CHECK(errors[0].detail ==
        "job \"node\" would have 2147483647 pods; an indexed Job has 100000 at most");
  Runtime runtime = torch_runtime();
  runtime.spec.mlPolicy->numNodes = 100'001;
  CHECK(paths_of(refused(job_with("{}"), runtime)) == Words{"spec.runtimeRef.name"});
}

TEST_CASE("a pod of too many containers or resources is refused before anything is built",
          "[sizes]") {
  struct Row {
    std::string list;  // a member of the pod, or a resource list of its first container
    std::size_t most;  // with what the pod has besides
    const char* refusal;
  };
  const Row rows[] = {
      {"containers", 999, "would have 1001 containers; it may have 1000"},
      {"initContainers", 999, "would have 1001 containers; it may have 1000"},
      {"limits", 10'000, "would have 10001 resources; it may have 10000"},
      {"requests", 10'000, "would have 10001 resources; it may have 10000"},
      {"overhead", 10'000, "would have 10001 resources; it may have 10000"},
  };
  for (const Row& row : rows) {
    const bool is_of_container = row.list == "limits" || row.list == "requests";
    const bool is_list = row.list.ends_with("ontainers");
    for (const std::size_t extra : {std::size_t{0}, std::size_t{1}}) {
      INFO(row.list << " " << row.most + extra);
      Runtime runtime = torch_runtime();
      Json& pod =
          runtime.spec.template_->spec->replicatedJobs[0].template_["spec"]["template"]["spec"];
      Json& container = pod["containers"].as_array()[0];
      container.erase("resources");
      Json& list = is_of_container ? container["resources"][row.list] : pod[row.list];
      if (list.is_null()) list = is_list ? Json::array() : Json::object();
      for (std::size_t k = 0; k < row.most + extra; ++k) {
        const std::string name = "x" + std::to_string(k);
        if (is_list)
          list.push_back(Json::object({{"name", name}, {"image", "i"}}));
        else
          list.set(name, 1);
      }
      const auto built = build(job_with("{}"), runtime, production());
      REQUIRE(built.has_value() == (extra == 0));
      if (built) continue;
      CHECK(paths_of(built.error()) == Words{"spec.runtimeRef"});
      CHECK_THAT(built.error()[0].detail, kube::test::contains(row.refusal));
    }
  }
}

TEST_CASE("more pods than a TrainJob can have, all jobs and replicas together, are refused",
          "[sizes]") {
  Runtime runtime = mpi_runtime();
  auto& jobs = runtime.spec.template_->spec->replicatedJobs;
  jobs[0].replicas = 20'000;
  const auto errors = refused(job_with("trainer: {numNodes: 2001}"), runtime);
  REQUIRE(paths_of(errors) == Words{"spec.trainer.numNodes"});
  CHECK(errors[0].value == kube::Json(2001));
  CHECK(errors[0].detail ==
        "the jobs of ClusterTrainingRuntime \"rt\" would have 40000001 pods, most of them job "
        "\"node\" (20000 replicas of 2000); a TrainJob has 100000 at most: ask for fewer nodes, or "
        "set fewer replicas in the runtime");
  // The greatest numbers do not overflow, and nothing is computed with them.
  jobs[0].replicas = 2'147'483'647;
  CHECK(paths_of(refused(job_with("trainer: {numNodes: 100001}"), runtime)) ==
        Words{"spec.trainer.numNodes"});
  jobs[0].replicas = 49'999;  // pods of two jobs, and the launcher
  CHECK(paths_of(refused(job_with("trainer: {numNodes: 3}"), runtime)).size() == 1);  // hostfile
  CHECK(refused(job_with("trainer: {numNodes: 3}"), runtime)[0].detail.find("hostfile") !=
        std::string::npos);

  Runtime other = runtime_with("{torch: {}}", R"(
- {name: a, replicas: 60000, template: {spec: {template: {spec: {containers: [{name: c, image: i}]}}}}}
- {name: b, replicas: 40000, template: {spec: {template: {spec: {containers: [{name: c, image: i}]}}}}}
)");
  CHECK(build(job_with("{}"), other, production()).has_value());
  other.spec.template_->spec->replicatedJobs[1].replicas = 40'001;
  CHECK(paths_of(refused(job_with("{}"), other)) == Words{"spec.runtimeRef.name"});
}

TEST_CASE("replicas that the pipeline sets to one are not counted before", "[sizes]") {
  Runtime runtime = torch_runtime();
  runtime.spec.template_->spec->replicatedJobs[0].replicas = 1'000'000;
  CHECK(built(job_with("trainer: {numNodes: 2}"), runtime).pod_sets.at(0).pods() == 2);
}

TEST_CASE("settings that would be copied into very many jobs are refused", "[sizes]") {
  Runtime runtime = torch_runtime();
  auto& jobs = runtime.spec.template_->spec->replicatedJobs;
  for (int i = 0; i < 99; ++i) {
    jobs.push_back(jobs[0]);
    jobs.back().name = "n" + std::to_string(i);
  }
  TrainJob job = job_with("trainer: {}");
  job.spec.trainer->args = std::vector<std::string>{std::string(100'000, 'a')};
  CHECK(build(job, runtime, production()).has_value());
  job.spec.trainer->args = std::vector<std::string>{std::string(200'000, 'a')};
  CHECK(paths_of(refused(job, runtime)) == Words{"spec.runtimeRef"});
}

TEST_CASE("a name that is too long is admitted with a warning, as upstream does", "[names]") {
  TrainJob job = job_with("{}");
  job.metadata.name = std::string(63, 'a');
  CHECK(validate_trainjob(job, nullptr, torch_runtime()).empty());
  REQUIRE(warn_trainjob(job, torch_runtime()).size() == 1);
  CHECK(warn_trainjob(job, torch_runtime())[0].find("metadata.name: ") == 0);
}

TEST_CASE("templates of the wrong shape are refused, never edited", "[shapes]") {
  const std::string pod = "spec.template.spec.replicatedJobs[0].template.spec.template.spec";
  struct Row {
    const char* member;  // set in the container
    const char* value;
    std::string path;
  };
  const Row rows[] = {
      {"env", "text", pod + ".containers[0].env"},
      {"env", "[text]", pod + ".containers[0].env[0]"},
      {"ports", "{}", pod + ".containers[0].ports"},
      {"volumeMounts", "5", pod + ".containers[0].volumeMounts"},
      {"resources", "[]", pod + ".containers[0].resources"},
      {"resources", "{limits: 3}", pod + ".containers[0].resources.limits"},
  };
  for (const Row& row : rows) {
    INFO(row.member << ": " << row.value);
    Runtime runtime = torch_runtime();
    auto& containers = runtime.spec.template_->spec->replicatedJobs[0]
                           .template_["spec"]["template"]["spec"]["containers"];
    containers.as_array()[0].set(row.member, yaml(row.value));
    CHECK(paths_of(refused(job_with("trainer: {}"), runtime)) == Words{row.path});
    const auto errors = validate_trainjob(job_with("trainer: {}"), nullptr, runtime);
    REQUIRE(paths_of(errors) == Words{row.path});
    CHECK(errors[0].detail.find("in ClusterTrainingRuntime \"rt\"") != std::string::npos);
  }
  for (const char* bare :
       {"[]", "text", "5", "{}", "{spec: []}", "{spec: {template: {spec: {containers: []}}}}"}) {
    INFO(bare);
    Runtime runtime = torch_runtime();
    runtime.spec.template_->spec->replicatedJobs[0].template_ = yaml(bare);
    CHECK_FALSE(refused(job_with("trainer: {}"), runtime).empty());
  }
}

TEST_CASE("a runtime without jobs, or with two of one name, is refused", "[shapes]") {
  Runtime runtime = torch_runtime();
  runtime.spec.template_->spec->replicatedJobs.push_back(
      runtime.spec.template_->spec->replicatedJobs[0]);
  CHECK(paths_of(refused(job_with("{}"), runtime)) ==
        Words{"spec.template.spec.replicatedJobs[1].name"});
  runtime.spec.template_->spec->replicatedJobs.clear();
  CHECK(paths_of(refused(job_with("{}"), runtime)) == Words{"spec.runtimeRef"});
  runtime.spec.template_.reset();
  CHECK(paths_of(refused(job_with("{}"), runtime)) == Words{"spec.runtimeRef"});
}

TEST_CASE("suspend is copied, or left out", "[jobset]") {
  TrainJob job = job_with("suspend: true");
  CHECK(built(job, torch_runtime()).jobset.find("spec")->get_bool("suspend"));
  job.spec.suspend.reset();
  CHECK(built(job, torch_runtime()).jobset.find_path({"spec", "suspend"}) == nullptr);
}

TEST_CASE("rules for runtimes", "[runtimes]") {
  const auto with = [](const std::string& step, const std::string& container, int replicas) {
    return runtime_with(
        "{}", "[{name: a, replicas: " + std::to_string(replicas) +
                  ", template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: " +
                  step + "}}, spec: {template: {spec: {containers: [{name: " + container +
                  ", image: i}]}}}}}]");
  };
  const std::string job = "spec.template.spec.replicatedJobs[0]";
  CHECK(validate_runtime(with("trainer", "node", 1)).empty());
  CHECK(validate_runtime(with("dataset-initializer", "dataset-initializer", 1)).empty());
  CHECK(paths_of(validate_runtime(with("trainer", "node", 2))) == Words{job + ".replicas"});
  CHECK(paths_of(validate_runtime(with("model-initializer", "node", 1))) ==
        Words{job + ".template.spec.template.spec.containers"});
  CHECK(paths_of(validate_runtime(with("trainer", "main", 3))).size() == 2);
  CHECK(validate_runtime(with("other-step", "main", 3)).empty());
}

TEST_CASE("failure policies of a runtime that no JobSet could have are warned about",
          "[runtimes]") {
  struct Row {
    const char* rules;
    const char* where;  // behind the policy's path; "" if there is no error
  };
  const Row rows[] = {
      {"[{name: a, action: FailJobSet, targetReplicatedJobs: [node]}]", ""},
      {"[{name: a-b, action: FailJobSet}]", ".rules[0].name: Invalid value: \"a-b\""},
      {"[{name: a, action: FailJobSet, targetReplicatedJobs: [x]}]",
       ".rules[0].targetReplicatedJobs[0]: Invalid value: \"x\""},
      {"[{name: a, action: FailJobSet, onJobFailureMessagePatterns: ['(']}]",
       ".rules[0].onJobFailureMessagePatterns[0]: Invalid value: \"(\""},
  };
  for (const Row& row : rows)
    for (const bool is_default : {false, true}) {
      INFO(row.rules << " " << is_default);
      const std::string policy = std::string("failurePolicy: {rules: ") + row.rules + "}";
      Runtime runtime = torch_runtime(is_default ? "runPolicy: {" + policy + "}"
                                                 : "template: {spec: {" + policy + "}}");
      runtime.metadata.labels["trainer.kubeflow.org/framework"] = "torch";
      const auto warnings = warn_runtime(runtime);
      REQUIRE(warnings.size() == (*row.where == '\0' ? 0U : 1U));
      const std::string path =
          is_default ? "spec.runPolicy.failurePolicy" : "spec.template.spec.failurePolicy";
      if (!warnings.empty()) CHECK_THAT(warnings[0], kube::test::starts_with(path + row.where));
    }
}

TEST_CASE("runtimes that break the SDK are warned about", "[runtimes]") {
  Runtime good = torch_runtime();
  good.metadata.labels["trainer.kubeflow.org/framework"] = "torch";
  CHECK(warn_runtime(good).empty());

  const auto warned = [](const Runtime& runtime, const char* path) {
    const auto warnings = warn_runtime(runtime);
    return warnings.size() == 1 && warnings[0].find(path) == 0;
  };
  Runtime unlabelled = good;
  unlabelled.metadata.labels.clear();
  CHECK(warned(unlabelled, "metadata.labels"));
  Runtime without_policy = good;
  without_policy.spec.mlPolicy.reset();
  CHECK(warned(without_policy, "spec.mlPolicy"));
  Runtime without_jobs = good;
  without_jobs.spec.template_.reset();
  CHECK(warned(without_jobs, "spec.template.spec.replicatedJobs"));

  const auto with_limits = [&good](const char* limits) {
    Runtime runtime = good;
    runtime.spec.template_->spec->replicatedJobs[0]
        .template_["spec"]["template"]["spec"]["containers"]
        .as_array()[0]
        .set("resources", yaml("{limits: " + std::string(limits) + "}"));
    return runtime;
  };
  CHECK(warn_runtime(with_limits("{memory: 1Gi, cpu: 1}")).empty());
  CHECK(warn_runtime(with_limits("{nvidia.com/mig-1g.5gb: 1}")).empty());
  CHECK(warned(with_limits("{memory: 1Gi}"), "spec.template.spec.replicatedJobs"));
  CHECK(warned(with_limits("{amd.com/gpu: 1}"), "spec.template.spec.replicatedJobs"));

  Runtime deprecated = good;
  deprecated.metadata.labels["trainer.kubeflow.org/support"] = "deprecated";
  CHECK(warned(deprecated, "ClusterTrainingRuntime \"rt\" is deprecated"));
  CHECK(warn_trainjob(job_with("{}"), deprecated)
            .at(0)
            .find("Referenced ClusterTrainingRuntime \"rt\" is deprecated") == 0);
  deprecated.kind = "TrainingRuntime";
  CHECK(warn_runtime(deprecated).empty());

  Runtime gang = good;
  gang.spec.podGroupPolicy = PodGroupPolicy{{}, VolcanoPolicy{}, {}};
  CHECK(warned(gang, "spec.podGroupPolicy.volcano: job node names no scheduler"));
  gang.spec.template_->spec->replicatedJobs[0].template_["spec"]["template"]["spec"].set(
      "schedulerName", "volcano");
  CHECK(warn_runtime(gang).empty());

  Runtime both = gang;
  both.spec.podGroupPolicy = PodGroupPolicy{CoschedulingPolicy{}, VolcanoPolicy{}, {}};
  CHECK(warned(both, "spec.podGroupPolicy"));
  Runtime launchers = mpi_runtime("mlPolicy: {numNodes: 2}");
  launchers.metadata.labels = good.metadata.labels;
  CHECK(warned(launchers, "spec.mlPolicy.numNodes"));

  Runtime mpi = mpi_runtime();
  mpi.metadata.labels = good.metadata.labels;
  CHECK(warn_runtime(mpi).empty());
  ReplicatedJob& workers = mpi.spec.template_->spec->replicatedJobs[0];
  workers.template_["spec"]["template"]["spec"]["containers"].as_array()[0].set("name", "mpi");
  CHECK(warned(mpi, "spec.mlPolicy.mpi: job node has no container called node"));
  workers.name = "worker";
  CHECK(warned(mpi,
               "spec.mlPolicy.mpi: no job is called node, so the hostfile is empty and job "
               "worker gets no SSH keys"));
}

TEST_CASE("jobs that work badly are warned about, each with its path", "[warnings]") {
  const char* claims =
      R"({template: {spec: {volumeClaimPolicies: [{templates: [{metadata: {name: data},
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}], replicatedJobs: [{name: node, template: {
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [{name: node,
    image: i, volumeMounts: [{name: data, mountPath: /data}]}]}}}}}]}}})";
  const char* host =
      R"({template: {spec: {replicatedJobs: [{name: node, template: {metadata: {labels: {
    trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {hostNetwork: true, containers: [{name: node,
    image: i}]}}}}}]}}})";
  const char* unlabelled =
      R"({template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {
    containers: [{name: node, image: i}]}}}}}]}}})";
  struct Row {
    const char* trainer;
    const char* runtime;
    const char* path;  // "" where there is nothing to warn about
  };
  const Row rows[] = {
      {"{numNodes: 2}", "{}", ""},
      {"{numProcPerNode: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 2}}}", "{}", ""},
      {"{numProcPerNode: 1, resourcesPerNode: {limits: {nvidia.com/gpu: 2}}}", "{}",
       "spec.trainer.numProcPerNode"},
      {"{resourcesPerNode: {limits: {memory: 1Gi}}}", "{}", "spec.trainer.resourcesPerNode.limits"},
      {"{numNodes: 1}", claims, ""},
      {"{numNodes: 2}", claims, "spec.trainer.numNodes"},
      {"{numNodes: 1}", host, "spec.runtimeRef"},
      {"{}", unlabelled, ""},
      {"{numNodes: 2}", unlabelled, "spec.trainer"},
      {"{numNodes: 0}", "{}", "spec.trainer.numNodes"},
      {"{command: [python t.py]}", "{}", "spec.trainer.command[0]"},
  };
  for (const Row& row : rows) {
    INFO(row.trainer << " " << row.runtime);
    const auto warnings =
        warn_trainjob(job_with("trainer: " + std::string(row.trainer)), torch_runtime(row.runtime));
    REQUIRE(warnings.size() == (*row.path == '\0' ? 0U : 1U));
    if (!warnings.empty()) CHECK(warnings[0].find(std::string(row.path) + ": ") == 0);
  }
}

TEST_CASE("a value beside a source is warned about", "[warnings]") {
  const char* both =
      "env: [{name: A, value: a}, {name: B, value: b, valueFrom: {fieldRef: "
      "{fieldPath: metadata.name}}}]";
  const std::string spec = "{trainer: {" + std::string(both) + "}, initializer: {model: {" + both +
                           "}, dataset: {" + both + "}}}";
  const auto warnings = warn_trainjob(job_with(spec), torch_runtime());
  const std::string end = ".env[1].value: has no effect beside valueFrom: leave one of them out";
  CHECK(warnings == std::vector<std::string>{"spec.trainer" + end, "spec.initializer.dataset" + end,
                                             "spec.initializer.model" + end});
}

TEST_CASE("what JAX cannot use is warned about", "[warnings]") {
  const Runtime runtime = runtime_with("{numNodes: 2, jax: {}}", R"([{name: node, template: {
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}},
    spec: {template: {spec: {containers: [{name: node, image: i}]}}}}}])");
  CHECK(warn_trainjob(job_with("trainer: {}"), runtime).empty());
  CHECK(warn_trainjob(job_with("{}"), runtime).empty());
  const auto warnings = warn_trainjob(
      job_with("trainer: {env: [{name: A, value: b}, {name: JAX_PROCESS_ID, value: '0'}]}"),
      runtime);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("spec.trainer.env[1]: JAX_PROCESS_ID replaces what the runtime sets") ==
        0);
}

TEST_CASE("numProcPerNode is warned about where one process a node runs", "[warnings]") {
  const char* jobs = R"([{name: node, template: {
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}},
    spec: {template: {spec: {containers: [{name: node, image: i}]}}}}}])";
  struct Row {
    const char* policy;
    const char* trainer;
    bool is_warned;
  };
  const Row rows[] = {
      {"{jax: {}}", "{numProcPerNode: 4}", true},
      {"{xgboost: {}}", "{numProcPerNode: 4}", true},
      {"{}", "{numProcPerNode: 4}", true},
      {"{jax: {}}", "{numProcPerNode: 1}", false},
      {"{flux: {}}", "{numProcPerNode: 4, command: [lmp -in x]}", false},
      {"{torch: {}}", "{numProcPerNode: 4}", false},
  };
  for (const Row& row : rows) {
    INFO(row.policy << " " << row.trainer);
    const auto warnings = warn_trainjob(job_with("trainer: " + std::string(row.trainer)),
                                        runtime_with(row.policy, jobs));
    REQUIRE(warnings.size() == (row.is_warned ? 1U : 0U));
    if (row.is_warned)
      CHECK(warnings[0].find("spec.trainer.numProcPerNode: has no effect, because runtime \"rt\" "
                             "starts one process a node") == 0);
  }
}

TEST_CASE("every value that is set says where it comes from", "[explain]") {
  std::vector<Explanation> notes;
  const TrainJob job =
      job_with(R"({trainer: {numNodes: 2, image: 'mine:1', env: [{name: A, value: '1'}],
    resourcesPerNode: {limits: {cpu: 2}}}, runtimePatches: [{manager: acme.io/a, trainingRuntimeSpec: {template: {spec: {
    replicatedJobs: [{name: node, template: {spec: {template: {spec: {nodeSelector: {pool: a}}}}}}]}}}}]})");
  REQUIRE(build(job, torch_runtime(), production(), &notes));
  const std::string pod = "spec.replicatedJobs[node].template.spec.template.spec";
  const auto source_of = [&notes](const std::string& path) {
    std::string source = "nothing";
    for (const Explanation& note : notes)
      if (note.path == path) source = note.source;
    return source;
  };
  CHECK(source_of("spec.replicatedJobs[node].template.spec.parallelism") ==
        "spec.trainer.numNodes");
  CHECK(source_of(pod + ".containers[node].env[PET_NNODES]") == "plugin torch");
  CHECK(source_of(pod + ".containers[node].ports[29500]") == "plugin torch");
  CHECK(source_of(pod + ".containers[node].env[A]") == "spec.trainer.env");
  CHECK(source_of(pod + ".containers[node].image") == "spec.trainer.image");
  CHECK(source_of(pod + ".containers[node].resources.limits[cpu]") ==
        "spec.trainer.resourcesPerNode");
  CHECK(source_of(pod + ".nodeSelector[pool]") == "runtimePatches[acme.io/a]");
}

}  // namespace
}  // namespace trainer::test
