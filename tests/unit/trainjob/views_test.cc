// These tests check which parts of a Pod are kept, how the first failure is described, and what
// `why` answers.
#include "kube/model/json_text.hh"
#include "runtimes/lifecycle/failure.hh"
#include "runtimes/trainjob/first_failure.hh"
#include "runtimes/trainjob/waiting.hh"
#include "runtimes/views/pod.hh"
#include "runtimes/views/text.hh"
#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::test {
namespace {

using kube::Json;

std::shared_ptr<PodView> transform(std::string_view text) {
  const Json pod = yaml(text);
  const auto view = view_pod(pod);
  // Parts of the text that are not decoded must make no difference.
  const auto from_text = transform_pod(kube::print_json(pod));
  REQUIRE(!view == !from_text);
  if (view) REQUIRE(*view == *from_text);
  return view;
}

TEST_CASE("a pod's view") {
  const auto pod = transform(R"(
metadata:
  name: j-node-0-3-x
  namespace: ns
  uid: u
  resourceVersion: "5"
  labels:
    jobset.sigs.k8s.io/jobset-name: j
    jobset.sigs.k8s.io/jobset-uid: ju
    jobset.sigs.k8s.io/replicatedjob-name: node
    jobset.sigs.k8s.io/job-index: "0"
    jobset.sigs.k8s.io/restart-attempt: "2"
    batch.kubernetes.io/job-completion-index: "3"
spec: {nodeName: m1}
status:
  phase: Running
  conditions: [{type: Ready, status: "True"}]
)");
  REQUIRE(pod);
  CHECK(pod->key().to_string() == "ns/j-node-0-3-x");
  CHECK(pod->jobset == "j");
  CHECK(pod->jobset_uid == "ju");
  CHECK(pod->replicated_job == "node");
  CHECK(pod->index == 3);
  CHECK(pod->attempt == 2);
  CHECK(pod->node_name == "m1");
  CHECK(pod->is_ready);
  CHECK_FALSE(pod->is_deleting);
  CHECK_FALSE(pod->failure);
  CHECK(pod->waiting_reason.empty());
}

TEST_CASE("a pod whose containers have all ended with 0 is as good as ready") {
  const struct {
    const char* containers;
    bool is_ready;
  } cases[] = {
      {"[{name: a, state: {terminated: {exitCode: 0}}}]", true},
      {"[{name: a, state: {terminated: {exitCode: 0}}}, {name: b, state: {terminated: {exitCode: "
       "0}}}]",
       true},
      {"[{name: a, state: {terminated: {exitCode: 0}}}, {name: b, state: {running: {}}}]", false},
      {"[{name: a, state: {terminated: {exitCode: 3}}}]", false},
      {"[{name: a, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: "
       "{exitCode: 0}}}]",
       false},
      {"[{name: a}]", false},
      {"[]", false},
  };
  for (const auto& c : cases) {
    CAPTURE(c.containers);
    const auto pod = transform(
        "{metadata: {name: p, namespace: ns, resourceVersion: '1'}, status: {phase: Running, "
        "conditions: [{type: Ready, status: 'False'}], containerStatuses: " +
        std::string(c.containers) + "}}");
    REQUIRE(pod);
    CHECK(pod->is_ready == c.is_ready);
  }
}

TEST_CASE("a pod as it comes from a kubelet, whole") {
  const auto pod = transform(R"(
metadata:
  name: j-node-0-1-x
  namespace: ns
  uid: u
  resourceVersion: "5"
  labels: {jobset.sigs.k8s.io/jobset-name: j, jobset.sigs.k8s.io/replicatedjob-name: node}
  annotations:
    jobset.sigs.k8s.io/in-place-restart-attempt: "4"
    alpha.jobset.sigs.k8s.io/exclusive-topology: rack
    batch.kubernetes.io/job-completion-index: "0"
  managedFields: [{manager: kubelet, operation: Update, fieldsV1: {"f:status": {}}}]
spec:
  nodeName: m1
  affinity: {podAffinity: {}}
  tolerations: [{key: a}]
  topologySpreadConstraints: [{maxSkew: 1}]
  volumes: [{name: v, emptyDir: {}}]
  initContainers: [{name: i, image: x}]
  containers: [{name: node, image: x, command: ["sh", "-c", "exit 3"]}]
status:
  phase: Failed
  conditions: [{type: DisruptionTarget, status: "True", reason: PreemptionByScheduler}]
  initContainerStatuses: [{name: i, restartCount: 7, state: {terminated: {exitCode: 0}}}]
  containerStatuses:
    - {name: node, restartCount: 2, state: {terminated: {exitCode: 3, reason: Error, message: no}}}
)");
  REQUIRE(pod);
  CHECK(pod->node_name == "m1");
  CHECK(pod->is_disrupted);
  CHECK(pod->is_infrastructure_failure);
  CHECK(pod->restart_count == 7);
  CHECK(pod->in_place_attempt == "4");
  REQUIRE(pod->failure);
  CHECK(pod->failure->exit_code == 3);
}

TEST_CASE("what is no pod") {
  CHECK_FALSE(transform_pod(""));
  CHECK_FALSE(transform_pod("[]"));
  CHECK_FALSE(transform_pod("{\"metadata\":"));
  CHECK_FALSE(transform_pod("{\"metadata\":{}}"));
  const auto odd = transform(
      "{metadata: {name: x, labels: 5, deletionTimestamp: 7}, spec: [], status: {phase: 3, "
      "conditions: {}, "
      "containerStatuses: [1, {state: {terminated: {exitCode: text}}}]}}");
  REQUIRE(odd);
  CHECK(odd->phase.empty());
  CHECK_FALSE(odd->failure);
}

TEST_CASE("why a pod waits") {
  CHECK(transform("{metadata: {name: x}, status: {phase: Pending, containerStatuses: [{state: "
                  "{waiting: {reason: ContainerCreating}}}]}}")
            ->waiting_reason.empty());
  const auto pulling = transform(
      "{metadata: {name: x}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "
      "'True'}], "
      "initContainerStatuses: [{state: {waiting: {reason: PodInitializing}}}], containerStatuses: "
      "[{state: "
      "{waiting: {reason: ErrImagePull, message: gone}}}]}}");
  CHECK(pulling->waiting_reason == "ErrImagePull");
  CHECK(pulling->waiting_message == "gone");
  const auto gated = transform(
      "{metadata: {name: x}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "
      "'False', reason: "
      "SchedulingGated, message: gated}]}}");
  CHECK(gated->waiting_reason == "SchedulingGated");
}

TEST_CASE("the container that ended first with a failure is the one that counts") {
  const auto pod = transform(R"(
metadata: {name: x}
status:
  phase: Failed
  containerStatuses:
  - {name: sidecar, state: {terminated: {exitCode: 137, reason: Error, finishedAt: "2027-01-15T08:00:09Z"}}}
  - {name: node, state: {terminated: {exitCode: 3, reason: Error, message: boom, finishedAt: "2027-01-15T08:00:05Z"}}}
  - {name: fine, state: {terminated: {exitCode: 0, finishedAt: "2027-01-15T08:00:01Z"}}}
)");
  REQUIRE(pod->failure);
  CHECK(pod->failure->container == "node");
  CHECK(pod->failure->exit_code == 3);
  CHECK_FALSE(pod->failure->signal);
  CHECK(pod->failure->message == "boom");
  CHECK(pod->failure->finished_at->to_string() == "2027-01-15T08:00:05Z");
}

TEST_CASE("a sidecar that was stopped after the work was done has not failed") {
  const auto pod = transform(R"(
metadata: {name: x}
status:
  phase: Succeeded
  initContainerStatuses:
  - {name: proxy, state: {terminated: {exitCode: 143, reason: Error, finishedAt: "2027-01-15T08:00:09Z"}}}
  containerStatuses:
  - {name: node, state: {terminated: {exitCode: 0, reason: Completed, finishedAt: "2027-01-15T08:00:05Z"}}}
)");
  REQUIRE(pod);
  CHECK_FALSE(pod->failure);
}

TEST_CASE("signals, restarts in place, evictions") {
  const auto killed = transform(
      "{metadata: {name: x}, status: {phase: Failed, containerStatuses: [{name: node, state: "
      "{terminated: "
      "{exitCode: 137, reason: OOMKilled, finishedAt: '2027-01-15T08:00:05Z'}}}]}}");
  CHECK(killed->failure->signal == 9);
  CHECK(killed->failure->reason == "OOMKilled");
  const auto crashing = transform(
      "{metadata: {name: x}, status: {phase: Running, containerStatuses: [{name: node, state: "
      "{waiting: {reason: "
      "CrashLoopBackOff, message: back-off}}, lastState: {terminated: {exitCode: 1, finishedAt: "
      "'2027-01-15T08:00:05Z'}}}]}}");
  CHECK(crashing->failure->exit_code == 1);
  CHECK(crashing->waiting_reason == "CrashLoopBackOff");
  const auto evicted = transform(
      "{metadata: {name: x}, status: {phase: Failed, reason: Evicted, message: 'low on memory', "
      "containerStatuses: "
      "[{name: node, state: {terminated: {exitCode: 137, finishedAt: '2027-01-15T08:00:05Z'}}}]}}");
  CHECK(evicted->failure->reason == "Evicted");
  CHECK(evicted->failure->message == "low on memory");
  CHECK(evicted->failure->container == "node");
  const auto refused = transform(
      "{metadata: {name: x}, status: {phase: Failed, reason: UnexpectedAdmissionError, message: "
      "m}}");
  CHECK(refused->failure->reason == "UnexpectedAdmissionError");
  CHECK_FALSE(refused->failure->exit_code);
  const auto preempted = transform(
      "{metadata: {name: x, deletionTimestamp: '2027-01-15T08:00:30Z', deletionGracePeriodSeconds: "
      "30}, status: "
      "{phase: Failed, conditions: [{type: DisruptionTarget, status: 'True', reason: "
      "PreemptionByScheduler, "
      "message: preempting}], containerStatuses: [{name: node, state: {terminated: {exitCode: 143, "
      "finishedAt: "
      "'2027-01-15T08:00:05Z'}}}]}}");
  CHECK(preempted->is_disrupted);
  CHECK(preempted->failure->reason == "PreemptionByScheduler");
}

TEST_CASE("a pod that was only deleted has not failed") {
  const auto ended = [](std::string_view at, int code) {
    return transform(
        "{metadata: {name: x, deletionTimestamp: '2027-01-15T08:01:00Z', "
        "deletionGracePeriodSeconds: 30}, status: {phase: Failed, "
        "containerStatuses: [{name: node, state: {terminated: {exitCode: " +
        std::to_string(code) + ", finishedAt: '" + std::string(at) + "'}}}]}}");
  };
  CHECK(ended("2027-01-15T08:00:29Z", 1)->failure);
  CHECK(ended("2027-01-15T08:00:30Z", 1)->failure);
  CHECK_FALSE(ended("2027-01-15T08:00:30Z", 143)->failure);
  CHECK_FALSE(ended("2027-01-15T08:00:31Z", 1)->failure);
  CHECK(ended("2027-01-15T08:00:29Z", 1)->is_deleting);
}

TEST_CASE("long texts are cut between characters") {
  CHECK(keep_head("abc", 3) == "abc");
  CHECK(keep_head("ab\xc3\xa9", 3) == "ab");
  CHECK(keep_tail("\xc3\xa9"
                  "bc",
                  3) == "bc");
  const std::string text(5000, 'x');
  const auto pod = transform(
      "{metadata: {name: x}, status: {phase: Failed, containerStatuses: [{name: node, state: "
      "{terminated: {exitCode: 1, "
      "message: " +
      text + "}}}]}}");
  CHECK(pod->failure->message.size() == 2048);
}

TEST_CASE("the record of a first failure changes only for an earlier one or a later attempt") {
  JobSet jobset;
  PodView late;
  late.name = "late";
  late.failure.emplace();
  late.failure->finished_at = kube::Time::from_seconds(200);
  PodView early = late;
  early.name = "early";
  early.failure->finished_at = kube::Time::from_seconds(100);

  auto known = first_failure(std::nullopt, jobset, {&late});
  CHECK(known->pod == "late");
  known = first_failure(known, jobset, {});
  CHECK(known->pod == "late");
  known = first_failure(known, jobset, {&late, &early});
  CHECK(known->pod == "early");
  known = first_failure(known, jobset, {&late});
  CHECK(known->pod == "early");
  late.attempt = 1;
  known = first_failure(known, jobset, {&late, &early});
  CHECK(known->pod == "late");
  known = first_failure(known, jobset, {&early});
  CHECK(known->pod == "late");

  // The pods of a former job of the same name do not count.
  jobset.metadata.uid = "new";
  late.jobset_uid = "old";
  CHECK_FALSE(first_failure(std::nullopt, jobset, {&late}));
}

TEST_CASE("a failure in one line") {
  FirstFailure failure;
  failure.pod = "j-node-0-3-x";
  failure.job = "node";
  failure.index = 3;
  failure.node = "gpu-17";
  failure.container = "node";
  failure.exitCode = 137;
  failure.signal = 9;
  failure.reason = "OOMKilled";
  CHECK(describe(failure) ==
        "pod j-node-0-3-x (node 3) on gpu-17: container node ended with exit code 137, signal 9 "
        "(OOMKilled)");
  CHECK(describe(FirstFailure{}).find("failed") != std::string::npos);
}

TEST_CASE("every cause of a wait comes with advice") {
  for (const char* reason :
       {"Unschedulable", "GangNotReady", "SchedulingGated", "ImagePullFailed", "ConfigMissing",
        "VolumeMissing", "QuotaExceeded", "PodsRefused", "JobsRefused", "ContainerStartFailed",
        "ContainersCrashing", "ChildRefused", "RuntimeNotFound", "JobSetNameTaken",
        "RuntimeSnapshotInvalid"}) {
    INFO(reason);
    CHECK_FALSE(advice_for(reason, "").empty());
  }
  CHECK(advice_for("NodesReady", "").empty());
}

TEST_CASE("the text of an event becomes a cause") {
  CHECK_FALSE(cause_of_event(""));
  CHECK(cause_of_event("FailedMount: MountVolume.SetUp failed: secret \"s\" not found")->reason ==
        "VolumeMissing");
  CHECK(cause_of_event("FailedMount: a: b")->message == "a: b");
  CHECK(cause_of_event("FailedCreate: forbidden: exceeded quota: q")->reason == "QuotaExceeded");
  CHECK(cause_of_event("FailedCreate: webhook said no")->reason == "PodsRefused");
  CHECK(cause_of_event("no colon")->reason == "PodsWaiting");
}

}  // namespace
}  // namespace trainer::test
