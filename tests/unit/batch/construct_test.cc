// A pod as a Job makes it.
#include <fmt/format.h>

#include "runtimes/batch/policies.hh"
#include "tests/unit/batch/world.hh"

using namespace trainer::batch;
using namespace trainer::batch::test;
using kube::Json;

namespace {

Json pod_of(std::string_view name, std::string_view spec, std::optional<std::int32_t> index) {
  const BatchJob job = read_job(std::make_shared<const Json>(
      with(yaml(fmt::format("{{metadata: {{name: {}, namespace: ns, uid: u}}}}", name)),
           fmt::format("{{spec: {}}}", spec))));
  Observed observed;
  observed.job = &job;
  observed.new_suffix = [] { return std::string("abcde"); };
  return make_pod(Context(observed), index);
}

}  // namespace

TEST_CASE("a pod has its template, its owner, its index and its finalizer") {
  const Json pod = pod_of("j",
                          "{completionMode: Indexed, completions: 4, template: {metadata: {name: "
                          "ignored, labels: {a: b}, annotations: {c: d}, finalizers: [e.f/g]}, "
                          "spec: {subdomain: s, containers: [{name: c, env: [{name: X, value: y}]}]"
                          ", initContainers: [{name: i}]}}}",
                          3);
  CHECK(pod == yaml(R"(
apiVersion: v1
kind: Pod
metadata:
  name: j-3-abcde
  generateName: j-3-
  namespace: ns
  labels:
    a: b
    job-name: j
    controller-uid: u
    batch.kubernetes.io/job-name: j
    batch.kubernetes.io/controller-uid: u
    batch.kubernetes.io/job-completion-index: "3"
  annotations:
    c: d
    batch.kubernetes.io/job-completion-index: "3"
  finalizers: [e.f/g, batch.kubernetes.io/job-tracking]
  ownerReferences:
    - {apiVersion: batch/v1, kind: Job, name: j, uid: u, controller: true, blockOwnerDeletion: true}
spec:
  hostname: j-3
  subdomain: s
  initContainers:
    - name: i
      env:
        - name: JOB_COMPLETION_INDEX
          valueFrom:
            {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']"}}
  containers:
    - name: c
      env:
        - {name: X, value: y}
        - name: JOB_COMPLETION_INDEX
          valueFrom:
            {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']"}}
)"));
}

TEST_CASE("a pod without an index has neither hostname nor variable") {
  const Json pod = pod_of("j", "{template: {spec: {containers: [{name: c}]}}}", std::nullopt);
  CHECK(pod.get("metadata").get_string("generateName") == "j-");
  CHECK(pod.get("spec") == yaml("{containers: [{name: c}]}"));
  CHECK_FALSE(pod.get("metadata").find("annotations"));
}

TEST_CASE("a variable of the template stays, and long names are cut before the index") {
  const Json kept = pod_of("j",
                           "{completionMode: Indexed, completions: 1, template: {spec: {containers:"
                           " [{name: c, env: [{name: JOB_COMPLETION_INDEX, value: own}]}]}}}",
                           0);
  CHECK(kept.get("spec").get_array("containers").front().get("env") ==
        yaml("[{name: JOB_COMPLETION_INDEX, value: own}]"));
  const std::string name =
      std::string(pod_of(std::string(80, 'a'), "{completionMode: Indexed, completions: 1}", 0)
                      .get("metadata")
                      .get_string("name"));
  CHECK(name == std::string(55, 'a') + "-0-abcde");
}
