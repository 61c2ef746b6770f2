// These parts of a pod of a V1 job are read.
#include "kube/model/json_text.hh"
#include "tests/unit/v1/world.hh"

using namespace trainer::v1;
using namespace trainer::v1::test;
using kube::Json;

TEST_CASE("the view of a pod") {
  const Json pod = yaml(R"({
    metadata: {name: p-worker-0, namespace: ns, uid: u, resourceVersion: "7",
      labels: {training.kubeflow.org/job-name: p, training.kubeflow.org/replica-type: worker, a: b},
      ownerReferences: [{uid: j, controller: true, name: p, kind: TFJob, apiVersion: x}]},
    spec: {nodeName: node, activeDeadlineSeconds: 9, containers: []},
    status: {phase: Running,
      initContainerStatuses: [{name: i, restartCount: 2}],
      containerStatuses: [
        {name: a, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff, message: back-off}},
         lastState: {terminated: {exitCode: 1, reason: Error}}},
        {name: b, state: {terminated: {exitCode: 0}}}]}})");
  const auto view = transform_pod(kube::print_json(pod));
  REQUIRE(view);
  CHECK(*view == *trainer::v1::view_pod(pod));
  CHECK(view->name == "p-worker-0");
  CHECK(view->uid == "u");
  CHECK(view->job == "p");
  CHECK(view->owner_uid == "j");
  CHECK(view->replica_type == "worker");
  CHECK(view->node_name == "node");
  CHECK(view->restarts == 5);
  CHECK(view->active_deadline == 9);
  CHECK(view->has_failed_last);
  CHECK(view->exit_code_of("b") == 0);
  CHECK_FALSE(view->exit_code_of("a"));
  CHECK(view->troubles.size() == 1);
  CHECK_FALSE(transform_pod("{}"));
  CHECK_FALSE(transform_pod("nothing"));
}

TEST_CASE("troubles in upstream's words") {
  struct Row {
    const char* status;
    const char* reason;
    const char* message;
  };
  for (const Row& row : {
           Row{"containerStatuses: [{name: c, state: {terminated: {exitCode: 3, reason: Error, "
               "message: m}}}]",
               "Error", "Error pod p container c exitCode: 3 terminated message: m"},
           Row{"containerStatuses: [{name: c, state: {waiting: {reason: R, message: m}}}]", "R",
               "Error pod p container c waiting message: m"},
           Row{"initContainerStatuses: [{name: i, state: {waiting: {reason: R, message: m}}}]", "R",
               "Error pod p container i waiting message: m"},
           Row{"conditions: [{type: A, status: 'True', lastTransitionTime: "
               "'2026-01-01T00:00:00Z'}, "
               "{type: PodScheduled, status: 'False', reason: Unschedulable, message: m, "
               "lastTransitionTime: '2026-01-01T00:00:01Z'}]",
               "Unschedulable", "Error pod p condition message: m"},
           Row{"conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: "
               "m, "
               "lastTransitionTime: '2026-01-01T00:00:00Z'}, {type: A, status: 'True', "
               "lastTransitionTime: '2026-01-01T00:00:01Z'}]",
               "", ""},
           Row{"containerStatuses: [{name: c, state: {waiting: {reason: ContainerCreating}}}]", "",
               ""},
       }) {
    INFO(row.status);
    const auto view = trainer::v1::view_pod(
        yaml("{metadata: {name: p}, status: {phase: Pending, " + std::string(row.status) + "}}"));
    REQUIRE(view->troubles.size() == (*row.reason ? 1 : 0));
    if (!*row.reason) continue;
    CHECK(view->troubles.front().reason == row.reason);
    CHECK(view->troubles.front().message == row.message);
  }
}
