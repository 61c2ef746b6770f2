#include <algorithm>

#include "kube/model/resources.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kPatchedJobs = R"(
- name: node
  template:
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
    spec:
      template:
        spec:
          nodeSelector: {pool: a, zone: b}
          tolerations: [{key: old, operator: Exists}]
          volumes: [{name: data, emptyDir: {}}, {name: other, emptyDir: {}}]
          initContainers:
          - {name: init, image: i, env: [{name: INIT_ENV, value: a}, {name: DATASET_PATH, value: b}]}
          containers:
          - {name: node, image: i, volumeMounts: [{name: data, mountPath: /data}], securityContext: {runAsUser: 1}}
          - {name: side, image: s}
- name: second
  template: {spec: {template: {spec: {containers: [{name: main, image: i}]}}}}
)";

Runtime runtime_to_patch() {
  return runtime_with("{torch: {}}", kPatchedJobs);
}

// A job with one patch of the job `node`'s pod spec for each argument, by managers acme.io/0,
// acme.io/1, ...
TrainJob patched(const std::vector<std::string>& pod_specs) {
  std::string patches;
  for (std::size_t i = 0; i < pod_specs.size(); ++i)
    patches += (i == 0 ? "" : ", ") + ("{manager: acme.io/" + std::to_string(i)) +
               ", trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: "
               "{spec: {template: {spec: " +
               pod_specs[i] + "}}}}]}}}}";
  return job_with("runtimePatches: [" + patches + "]");
}

const kube::Json& pod_spec(const Built& result) {
  return *pod_in(result, "node").find("spec");
}

TEST_CASE("maps merge key by key, tolerations replace, later patches win", "[patches]") {
  const Built result = built(
      patched({"{nodeSelector: {pool: x, rack: r}, tolerations: [{key: new, operator: Exists}]}",
               "{nodeSelector: {pool: y}}"}),
      runtime_to_patch());
  CHECK(*pod_spec(result).find("nodeSelector") == yaml("{pool: y, zone: b, rack: r}"));
  CHECK(*pod_spec(result).find("tolerations") == yaml("[{key: new, operator: Exists}]"));
}

TEST_CASE("merged lists have the order of a strategic merge patch", "[patches]") {
  const Built result = built(patched({"{initContainers: [{name: init, env: [{name: INIT_ENV, "
                                      "value: x}, {name: NEW_VALUE, value: n1}]}]}"}),
                             runtime_to_patch());
  CHECK(env_of(container_in(result, "node", "init")) ==
        Words{"INIT_ENV=x", "NEW_VALUE=n1", "DATASET_PATH=b"});
}

TEST_CASE("jobs keep the runtime's order", "[patches]") {
  const Built result = built(
      job_with(R"(runtimePatches: [{manager: acme.io/a, trainingRuntimeSpec: {template: {spec: {
      replicatedJobs: [{name: second, template: {metadata: {labels: {x: z}}}}, {name: node}]}}}}])"),
      runtime_to_patch());
  CHECK(result.pod_sets.at(0).name == "node");
  CHECK(result.pod_sets.at(1).name == "second");
  CHECK(job_in(result, "second").find_path({"template", "metadata", "labels", "x"})->as_string() ==
        "z");
}

TEST_CASE("mounts merge by path, security contexts member by member", "[patches]") {
  const Built result =
      built(patched({"{volumes: [{name: more, emptyDir: {}}], containers: [{name: node, "
                     "volumeMounts: [{name: more, mountPath: /data}, "
                     "{name: more, mountPath: /more}], securityContext: {runAsGroup: 2}}]}"}),
            runtime_to_patch());
  const kube::Json& container = container_in(result, "node");
  REQUIRE(container.get_array("volumeMounts").size() == 2);
  CHECK(container.get_array("volumeMounts")[0] == yaml("{name: more, mountPath: /data}"));
  CHECK(*container.find("securityContext") == yaml("{runAsUser: 1, runAsGroup: 2}"));
}

TEST_CASE("a patched volume has one source: the patch's", "[patches]") {
  const Built result =
      built(patched({"{volumes: [{name: data, persistentVolumeClaim: {claimName: c}}]}"}),
            runtime_to_patch());
  CHECK(pod_spec(result).get_array("volumes").at(0) ==
        yaml("{name: data, persistentVolumeClaim: {claimName: c}}"));
  CHECK(pod_spec(result).get_array("volumes").at(1) == yaml("{name: other, emptyDir: {}}"));
}

TEST_CASE("metadata of every level reaches its level; the job's own reaches none", "[patches]") {
  TrainJob job = job_with(R"(runtimePatches: [{manager: acme.io/a, trainingRuntimeSpec: {template: {
    metadata: {labels: {level: jobset}, annotations: {a: b}},
    spec: {replicatedJobs: [{name: node, template: {metadata: {labels: {level: job}},
      spec: {template: {metadata: {labels: {level: pod}}}}}}]}}}}])");
  job.metadata.labels["own"] = "x";
  Runtime runtime = runtime_to_patch();
  runtime.spec.template_->metadata = yaml("{labels: {level: runtime, kept: yes-it-is}}");
  const Built result = built(job, runtime);
  CHECK(*result.jobset.find_path({"metadata", "labels"}) ==
        yaml("{level: jobset, kept: yes-it-is}"));
  CHECK(*result.jobset.find_path({"metadata", "annotations"}) == yaml("{a: b}"));
  CHECK(
      job_in(result, "node").find_path({"template", "metadata", "labels", "level"})->as_string() ==
      "job");
  CHECK(pod_in(result, "node").find_path({"metadata", "labels", "level"})->as_string() == "pod");
}

TEST_CASE("what v2.1 called spec.labels and spec.annotations reaches the pods, too", "[patches]") {
  const TrainJob job = job_with(R"(runtimePatches: [{manager: trainer.kubeflow.org/legacy,
    trainingRuntimeSpec: {template: {
      metadata: {labels: {team: x, level: all, kueue.x-k8s.io/queue-name: q, job-name: own,
                         pod-group.scheduling.sigs.k8s.io: g,
                         pod-group.scheduling.sigs.k8s.io/name: g},
                 annotations: {sidecar.istio.io/inject: 'false', a.volcano.sh/x: y,
                               alpha.jobset.sigs.k8s.io/exclusive-topology: rack,
                               cluster-autoscaler.kubernetes.io/safe-to-evict: 'false'}},
      spec: {replicatedJobs: [{name: node, template: {spec: {template: {
        metadata: {labels: {level: pod}}}}}}]}}}}])");
  const Runtime runtime = runtime_with("{torch: {}}", R"(
- name: node
  template:
    spec: {template: {metadata: {labels: {team: runtime, kept: 'yes'}}, spec: {containers: [{name: node, image: i}]}}}
- name: eval
  template: {spec: {template: {spec: {containers: [{name: main, image: i}]}}}}
)");
  const Built result = built(job, runtime);
  INFO(kube::print_json(*result.jobset.find_path({"metadata", "labels"})));
  CHECK(*result.jobset.find_path({"metadata", "labels"}) ==
        yaml("{team: x, level: all, kueue.x-k8s.io/queue-name: q, job-name: own, "
             "pod-group.scheduling.sigs.k8s.io: g, pod-group.scheduling.sigs.k8s.io/name: g}"));
  CHECK(*pod_in(result, "node").find_path({"metadata", "labels"}) ==
        yaml("{team: x, kept: 'yes', level: pod}"));
  CHECK(*pod_in(result, "eval").find("metadata") ==
        yaml("{labels: {team: x, level: all}, annotations: {sidecar.istio.io/inject: 'false', "
             "cluster-autoscaler.kubernetes.io/safe-to-evict: 'false'}}"));
}

TEST_CASE("metadata of a patch that does not stem from v2.1 stays the JobSet's", "[patches]") {
  const TrainJob job = job_with(
      "runtimePatches: [{manager: acme.io/a, trainingRuntimeSpec: {template: {metadata: {labels: "
      "{team: x}}}}}]");
  CHECK(pod_in(built(job, runtime_to_patch()), "node") ==
        pod_in(built(job_with("{}"), runtime_to_patch()), "node"));
}

TEST_CASE("empty patches change nothing, in any form that clients write", "[patches]") {
  const Built plain = built(job_with("{}"), runtime_to_patch());
  for (const char* patch :
       {"{}", "{trainingRuntimeSpec: {}}", "{trainingRuntimeSpec: {template: {}}}",
        "{trainingRuntimeSpec: {template: {spec: {}}}}",
        "{trainingRuntimeSpec: {template: {spec: {replicatedJobs: []}}}}",
        "{trainingRuntimeSpec: {template: {metadata: {creationTimestamp: null}, spec: "
        "{replicatedJobs: "
        "[{name: node, template: {metadata: {creationTimestamp: null}, spec: {template: {metadata: "
        "{}, "
        "spec: {}}}}}]}}}}"}) {
    INFO(patch);
    kube::Json entry = yaml(patch);
    entry.set("manager", "kueue.x-k8s.io/manager");
    TrainJob job = job_with("{}");
    const Built result = built(
        trainjob(kube::Json::object(
            {{"apiVersion", "trainer.kubeflow.org/v1alpha1"},
             {"kind", "TrainJob"},
             {"metadata", kube::Json::object({{"name", "j"}, {"namespace", "team"}})},
             {"spec", kube::Json::object({{"runtimeRef", kube::Json::object({{"name", "rt"}})},
                                          {"runtimePatches", kube::Json::array({entry})}})}})),
        runtime_to_patch());
    CHECK(without_empty(result.jobset) == without_empty(plain.jobset));
  }
}

TEST_CASE("an empty list in a patch is an absent one, at every depth", "[patches]") {
  const Built plain = built(job_with("{}"), runtime_to_patch());
  for (const char* patch :
       {"{tolerations: []}", "{containers: [], initContainers: [], volumes: []}",
        "{imagePullSecrets: [], schedulingGates: []}",
        "{containers: [{name: node, volumeMounts: [], securityContext: {capabilities: {add: "
        "[]}}}]}",
        "{initContainers: [{name: init, env: []}], tolerations: []}"}) {
    INFO(patch);
    const Built result = built(patched({patch}), runtime_to_patch());
    CHECK(without_empty(result.jobset) == without_empty(plain.jobset));
  }
  // The patch has other changes beside it, is inside the items of a list that replaces, and next to
  // an empty object.
  const Built mixed = built(
      patched({"{tolerations: [], nodeSelector: {pool: x}, volumes: [{name: more, emptyDir: {}}], "
               "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
               "[{weight: 1, preference: {matchFields: [], matchExpressions: [{key: k, operator: "
               "Exists, values: []}]}}]}}}"}),
      runtime_to_patch());
  CHECK(*pod_spec(mixed).find("tolerations") == yaml("[{key: old, operator: Exists}]"));
  CHECK(*pod_spec(mixed).find("nodeSelector") == yaml("{pool: x, zone: b}"));
  CHECK(*pod_spec(mixed).find("affinity") ==
        yaml("{nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, "
             "preference: {matchExpressions: [{key: k, operator: Exists}]}}]}}"));
  const auto& volumes = pod_spec(mixed).get_array("volumes");
  CHECK(std::find(volumes.begin(), volumes.end(), yaml("{name: more, emptyDir: {}}")) !=
        volumes.end());
}

TEST_CASE("names that the runtime does not have are refused, before and without a merge",
          "[patches]") {
  const std::string at =
      "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]";
  const std::string pod = at + ".template.spec.template.spec";
  struct Row {
    TrainJob job;
    Words paths;
  };
  const Row rows[] = {
      {patched({"{containers: [{name: side}, {name: missing}]}"}), {pod + ".containers[1].name"}},
      {patched({"{initContainers: [{name: missing}]}"}), {pod + ".initContainers[0].name"}},
      // If it were an entry of the other list, it would become a second container of that name.
      {patched({"{initContainers: [{name: side}]}"}), {pod + ".initContainers[0].name"}},
      {patched({"{containers: [{name: node, env: [{name: A, value: b}]}]}"}),
       {pod + ".containers[0].env"}},
      {patched({"{containers: [{name: side, env: [{name: A, value: b}]}]}"}), {}},
      {job_with("runtimePatches: [{manager: acme.io/a, trainingRuntimeSpec: {template: {spec: "
                "{replicatedJobs: [{name: nowhere}]}}}}]"),
       {at + ".name"}},
      {job_with("runtimePatches: [{manager: nodomain}]"), {"spec.runtimePatches[0].manager"}},
  };
  for (const Row& row : rows) {
    CHECK(paths_of(validate_trainjob(row.job, nullptr, runtime_to_patch())) == row.paths);
    if (!row.paths.empty()) CHECK(paths_of(refused(row.job, runtime_to_patch())) == row.paths);
  }
  CHECK(validate_trainjob(rows[0].job, nullptr, runtime_to_patch())[0].detail.find("node, side") !=
        std::string::npos);
}

TEST_CASE("managers who contradict each other are both named", "[patches]") {
  CHECK(warn_trainjob(patched({"{nodeSelector: {pool: x}}", "{nodeSelector: {rack: y}}"}),
                      runtime_to_patch())
            .empty());
  // An empty list says nothing that could contradict.
  CHECK(warn_trainjob(patched({"{tolerations: [{key: k, operator: Exists}]}", "{tolerations: []}"}),
                      runtime_to_patch())
            .empty());
  const auto warnings = warn_trainjob(patched({"{nodeSelector: {pool: x}, serviceAccountName: s}",
                                               "{nodeSelector: {pool: y}, serviceAccountName: s}"}),
                                      runtime_to_patch());
  REQUIRE(warnings.size() == 1);
  for (const char* part :
       {"\"acme.io/0\"", "\"acme.io/1\"", "replicatedJobs[node]", "nodeSelector[pool]"})
    CHECK_THAT(warnings[0], kube::test::contains(part));
}

TEST_CASE("what a patch adds and nothing uses is warned about", "[patches]") {
  CHECK(warn_trainjob(patched({"{volumes: [{name: more, emptyDir: {}}], containers: [{name: node, "
                               "volumeMounts: [{name: more, mountPath: /m}]}]}"}),
                      runtime_to_patch())
            .empty());
  auto warnings =
      warn_trainjob(patched({"{volumes: [{name: more, emptyDir: {}}]}"}), runtime_to_patch());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("spec.runtimePatches[0]: no container of job node mounts volume more") ==
        0);

  TrainJob job = job_with(R"(runtimePatches: [{manager: acme.io/a, trainingRuntimeSpec: {template: {
    metadata: {labels: {kueue.x-k8s.io/queue-name: q}}}}}])");
  warnings = warn_trainjob(job, runtime_to_patch());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("spec.runtimePatches[0]: label kueue.x-k8s.io/queue-name on the JobSet") ==
        0);
  job.metadata.labels["kueue.x-k8s.io/queue-name"] = "q";
  CHECK(warn_trainjob(job, runtime_to_patch()).empty());
}

TEST_CASE("an update that changes nothing here passes, also when the runtime has changed",
          "[patches]") {
  const TrainJob before = patched({"{containers: [{name: gone}]}"});
  TrainJob after = before;
  after.spec.suspend = true;
  after.metadata.labels["a"] = "b";
  CHECK(validate_trainjob(after, &before, runtime_to_patch()).empty());
  after.spec.runtimePatches[0].trainingRuntimeSpec.reset();
  after.spec.runtimePatches[0].manager = "nodomain";
  CHECK(validate_trainjob(after, &before, runtime_to_patch()).size() == 1);
}

TEST_CASE("what a scheduler or a controller reads of pods is not copied from spec.labels of v2.1",
          "[patches]") {
  for (const char* key :
       {"kueue.x-k8s.io/queue-name", "jobset.sigs.k8s.io/coordinator",
        "batch.kubernetes.io/job-name", "trainer.kubeflow.org/trainjob-ancestor-step",
        "scheduling.x-k8s.io/pod-group", "scheduling.k8s.io/group-name",
        "pod-group.scheduling.sigs.k8s.io/min-available", "volcano.sh/queue-name",
        "yunikorn.apache.org/app-id", "kai.scheduler/queue", "gang.scheduling.koordinator.sh/name",
        "job-name", "controller-uid"}) {
    INFO(key);
    TrainJob job = job_with(R"(runtimePatches: [{manager: trainer.kubeflow.org/legacy,
      trainingRuntimeSpec: {template: {metadata: {labels: {team: x}}}}}])");
    kube::Json& labels =
        (*job.spec.runtimePatches[0].trainingRuntimeSpec)["template"]["metadata"]["labels"];
    labels.set(key, "own");
    const Built result = built(job, runtime_to_patch());
    CHECK(result.jobset.get("metadata").get("labels").get_string(key) == "own");
    const kube::Json& pod = pod_in(result, "node").get("metadata").get("labels");
    CHECK(pod.get_string("team") == "x");
    CHECK(pod.get_string(key) != "own");
  }
}

}  // namespace
}  // namespace trainer::test
