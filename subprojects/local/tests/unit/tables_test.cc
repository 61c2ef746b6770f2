// `kubectl get` shows these rows of built-in kinds, which kube-apiserver makes.
#include "kube/server/tables.hh"

#include "kube/tests/catch.hh"
#include "local/tests/unit/support.hh"

using namespace trainer::test;
using kube::Json;

namespace {

const kube::Time kNow = *kube::Time::parse("2026-01-01T01:00:00Z");

std::string cells(std::string_view kind, std::string_view yaml) {
  const Json object = from_yaml(yaml);
  const Json table = kube::server::table_of(kind_of(kind), {&object}, {}, "None", kNow);
  return kube::print_json(table.get("rows").as_array()[0].get("cells"));
}

// The wide columns of a pod that none of these has.
const std::string kNoMore = R"(,"<none>","<none>","<none>","<none>"])";

std::string pod(const std::string& status, const std::string& metadata = "",
                const std::string& spec = "containers: [{name: a}, {name: b}]") {
  return cells("Pod", "metadata: {name: p, creationTimestamp: '2026-01-01T00:59:55Z'" + metadata +
                          "}\nspec: {" + spec + "}\nstatus: {" + status + "}");
}

std::string row(const std::string& ready, const std::string& status,
                const std::string& restarts = "0") {
  return R"(["p",")" + ready + R"(",")" + status + R"(",")" + restarts + R"(","5s")" + kNoMore;
}

}  // namespace

TEST_CASE("the state of a pod by its containers") {
  const std::string ready = "ready: true, state: {running: {}}";
  CHECK(pod("phase: Pending") == row("0/2", "Pending"));
  CHECK(pod("phase: Running, containerStatuses: [{name: a, " + ready + "}, {name: b, " + ready +
            "}]") == row("2/2", "Running"));
  CHECK(pod("phase: Failed, reason: Evicted") == row("0/2", "Evicted"));
  CHECK(pod("phase: Pending, conditions: [{type: PodScheduled, reason: SchedulingGated}]") ==
        row("0/2", "SchedulingGated"));
  CHECK(pod("phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: "
            "ContainerCreating}}}]") == row("0/2", "ContainerCreating"));
  CHECK(pod("phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 3}}}]") ==
        row("0/2", "ExitCode:3"));
  CHECK(pod("phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 137, "
            "signal: 9}}}]") == row("0/2", "Signal:9"));
  CHECK(pod("phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 137, "
            "reason: OOMKilled}}}]") == row("0/2", "OOMKilled"));
  CHECK(pod("phase: Succeeded, containerStatuses: [{name: a, state: {terminated: {exitCode: 0, "
            "reason: Completed}}}]") == row("0/2", "Completed"));
}

TEST_CASE("a container that has ended among others that run") {
  const std::string ended =
      "containerStatuses: [{name: a, state: {terminated: {exitCode: 0, reason: Completed}}}, "
      "{name: b, ready: true, state: {running: {}}}]";
  CHECK(pod("phase: Running, " + ended) == row("1/2", "NotReady"));
  CHECK(pod("phase: Running, conditions: [{type: Ready, status: 'True'}], " + ended) ==
        row("1/2", "Running"));
}

TEST_CASE("a pod that is being deleted") {
  const std::string going = ", deletionTimestamp: '2026-01-01T01:00:00Z'";
  CHECK(pod("phase: Running", going) == row("0/2", "Terminating"));
  CHECK(pod("phase: Failed", going) == row("0/2", "Failed"));
  CHECK(pod("phase: Running, reason: NodeLost", going) == row("0/2", "Unknown"));
}

TEST_CASE("init containers come before the others") {
  const std::string spec =
      "initContainers: [{name: i}, {name: s, restartPolicy: Always}], containers: [{name: a}]";
  const auto shown = [&spec](const std::string& init, const std::string& more = "phase: Pending") {
    return pod("initContainerStatuses: [" + init + "], " + more, "", spec);
  };
  const std::string done = "{name: i, state: {terminated: {exitCode: 0}}}";
  CHECK(shown("{name: i, state: {waiting: {reason: PodInitializing}}}") == row("0/2", "Init:0/2"));
  CHECK(shown("{name: i, state: {running: {}}}") == row("0/2", "Init:0/2"));
  CHECK(shown(done + ", {name: s, state: {running: {}}}") == row("0/2", "Init:1/2"));
  CHECK(shown("{name: i, state: {waiting: {reason: CrashLoopBackOff}}, restartCount: 2}") ==
        row("0/2", "Init:CrashLoopBackOff", "2"));
  CHECK(shown("{name: i, state: {terminated: {exitCode: 2}}}") == row("0/2", "Init:ExitCode:2"));
  CHECK(shown("{name: i, state: {terminated: {exitCode: 2, reason: Error}}}") ==
        row("0/2", "Init:Error"));
  // A sidecar that has started counts, and its restarts stay.
  CHECK(shown(done + ", {name: s, started: true, ready: true, restartCount: 1, state: {running: "
                     "{}}}",
              "phase: Running, containerStatuses: [{name: a, ready: true, restartCount: 2, state: "
              "{running: {}}}]") == row("2/2", "Running", "3"));
}

TEST_CASE("restarts say when the last one was") {
  CHECK(pod("phase: Running, containerStatuses: ["
            "{name: a, restartCount: 1, lastState: {terminated: {finishedAt: "
            "'2026-01-01T00:50:00Z'}}},"
            "{name: b, restartCount: 2, lastState: {terminated: {finishedAt: "
            "'2026-01-01T00:40:00Z'}}}]") == row("0/2", "Running", "3 (10m ago)"));
}

TEST_CASE("the wide columns of a pod") {
  CHECK(cells("Pod", R"(
metadata: {name: p, creationTimestamp: '2026-01-01T00:59:55Z'}
spec: {nodeName: local, containers: [{name: a}], readinessGates: [{conditionType: acme.io/up}]}
status: {phase: Pending, podIPs: [{ip: 127.1.0.1}], nominatedNodeName: other,
         conditions: [{type: acme.io/up, status: 'True'}]})") ==
        R"(["p","0/1","Pending","0","5s","127.1.0.1","local","other","1/1"])");
}

TEST_CASE("Jobs") {
  const auto job = [](const std::string& spec, const std::string& status,
                      const std::string& metadata = "") {
    const std::string text = cells(
        "Job", "metadata: {name: j, creationTimestamp: '2026-01-01T00:00:00Z'" + metadata +
                   "}\nspec: {" + spec +
                   "template: {spec: {containers: [{name: a, image: x}, {name: b, image: w}]}}, "
                   "selector: {matchLabels: {u: v}}}\nstatus: {" +
                   status + "}");
    const std::string end = R"(,"60m","a,b","x,w","u=v"])";
    REQUIRE_THAT(text, kube::test::ends_with(end));
    return text.substr(0, text.size() - end.size());
  };
  CHECK(job("completions: 3, ", "succeeded: 1, startTime: '2026-01-01T00:59:00Z'") ==
        R"(["j","Running","1/3","60s")");
  CHECK(job("parallelism: 2, ", "") == R"(["j","Running","0/1 of 2","")");
  CHECK(job("parallelism: 1, ", "") == R"(["j","Running","0/1","")");
  CHECK(job("completions: 1, ",
            "succeeded: 1, startTime: '2026-01-01T00:00:00Z', completionTime: "
            "'2026-01-01T00:02:00Z', conditions: [{type: Complete, status: "
            "'True'}]") == R"(["j","Complete","1/1","2m")");
  for (const std::string type : {"Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"})
    CHECK(job("completions: 1, ", "conditions: [{type: " + type + ", status: 'True'}]") ==
          R"(["j",")" + type + R"(","0/1","")");
  CHECK(job("completions: 1, ", "conditions: [{type: Suspended, status: 'True'}]",
            ", deletionTimestamp: '2026-01-01T00:00:00Z'") == R"(["j","Terminating","0/1","")");
}

TEST_CASE("Services") {
  const std::string head = "metadata: {name: s, creationTimestamp: '2026-01-01T00:59:00Z'}\nspec: ";
  CHECK(cells("Service", head + "{type: ClusterIP, clusterIP: None, clusterIPs: [None], selector: "
                                "{b: c, a: b}}") ==
        R"(["s","ClusterIP","None","<none>","<none>","60s","a=b,b=c"])");
  CHECK(cells("Service", head + "{type: NodePort, clusterIPs: [10.0.0.1], ports: [{port: 80, "
                                "nodePort: 30000, protocol: TCP}, {port: 53, protocol: UDP}]}") ==
        R"(["s","NodePort","10.0.0.1","<none>","80:30000/TCP,53/UDP","60s","<none>"])");
  CHECK(cells("Service", head + "{type: ExternalName, externalName: acme.io}") ==
        R"(["s","ExternalName","<none>","acme.io","<none>","60s","<none>"])");
  CHECK(cells("Service", head + "{type: LoadBalancer, clusterIPs: [10.0.0.1]}") ==
        R"(["s","LoadBalancer","10.0.0.1","<pending>","<none>","60s","<none>"])");
}

TEST_CASE("Events have their name in a wide column") {
  CHECK(
      cells("Event", R"(
metadata: {name: e.1}
involvedObject: {kind: TrainJob, name: job, fieldPath: spec}
type: Warning
reason: Failed
message: "it failed\n"
source: {component: trainer, host: local}
firstTimestamp: '2026-01-01T00:00:00Z'
lastTimestamp: '2026-01-01T00:58:00Z'
count: 3)") ==
      R"(["2m","Warning","Failed","trainjob/job","spec","trainer, local","it failed","60m",3,"e.1"])");
  // events.k8s.io writes them in this form.
  CHECK(cells("Event", R"(
metadata: {name: e.2}
involvedObject: {kind: Pod, name: p}
reason: Scheduled
eventTime: '2026-01-01T00:59:00.000000Z'
reportingComponent: scheduler)") ==
        R"(["60s","","Scheduled","pod/p","","scheduler","","60s",1,"e.2"])");
}

TEST_CASE("Nodes") {
  CHECK(
      cells("Node", R"(
metadata: {name: local, creationTimestamp: '2026-01-01T00:00:00Z', labels: {node-role.kubernetes.io/control-plane: ''}}
spec: {unschedulable: true}
status:
  conditions: [{type: Ready, status: 'True'}]
  addresses: [{type: InternalIP, address: 127.0.0.1}]
  nodeInfo: {kubeletVersion: v1, osImage: Debian, kernelVersion: '6.1', architecture: amd64})") ==
      R"x(["local","Ready,SchedulingDisabled","control-plane","60m","v1","127.0.0.1","<none>","Debian","6.1","<unknown>"])x");
  CHECK(
      cells("Node", "metadata: {name: m, creationTimestamp: '2026-01-01T00:00:00Z'}") ==
      R"(["m","Unknown","<none>","60m","","<none>","<none>","<unknown>","<unknown>","<unknown>"])");
}

TEST_CASE("kinds with little to show") {
  const std::string head = "metadata: {name: x, creationTimestamp: '2026-01-01T00:59:00Z'}\n";
  const struct {
    std::string kind, rest, shown;
  } kCases[] = {
      {"ConfigMap", "data: {a: b}\nbinaryData: {c: ZA==}", R"(["x",2,"60s"])"},
      {"Secret", "type: Opaque\ndata: {a: YQ==}", R"(["x","Opaque",1,"60s"])"},
      {"Namespace", "status: {phase: Active}", R"(["x","Active","60s"])"},
      {"ServiceAccount", "", R"(["x",0,"60s"])"},
      {"Lease", "spec: {holderIdentity: me}", R"(["x","me","60s"])"},
      {"PriorityClass", "value: 7", R"(["x",7,false,"60s",""])"},
      {"Role", "", R"(["x","2026-01-01T00:59:00Z"])"},
      {"CustomResourceDefinition", "", R"(["x","2026-01-01T00:59:00Z"])"},
      {"RoleBinding",
       "roleRef: {kind: Role, name: r}\nsubjects: [{kind: User, name: u}, {kind: ServiceAccount, "
       "name: s, namespace: team}]",
       R"(["x","Role/r","60s","u","","team/s"])"},
      {"PersistentVolumeClaim",
       "spec: {accessModes: [ReadWriteOnce], storageClassName: fast, volumeMode: Filesystem}\n"
       "status: {phase: Pending}",
       R"(["x","Pending","","","","fast","<unset>","60s","Filesystem"])"},
      {"PersistentVolumeClaim",
       "spec: {volumeName: v}\nstatus: {phase: Bound, accessModes: [ReadWriteOnce, ReadOnlyMany], "
       "capacity: {storage: 1Gi}}",
       R"(["x","Bound","v","1Gi","RWO,ROM","","<unset>","60s","<unset>"])"},
      {"HorizontalPodAutoscaler",
       "spec: {scaleTargetRef: {kind: PyTorchJob, name: j}, minReplicas: 1, maxReplicas: 4}",
       R"(["x","PyTorchJob/j","<none>","1",4,0,"60s"])"},
  };
  for (const auto& c : kCases) {
    INFO(c.kind);
    CHECK(cells(c.kind, head + c.rest) == c.shown);
  }
}

TEST_CASE("each kind has a cell for each of its columns") {
  const Json object = from_yaml("metadata: {name: x, creationTimestamp: '2026-01-01T00:59:00Z'}");
  for (const auto& kind : kinds()) {
    INFO(kind.resource.kind);
    const Json table = kube::server::table_of(kind, {&object}, {}, "None", kNow);
    CHECK(table.get("rows").as_array()[0].get("cells").size() ==
          table.get("columnDefinitions").size());
  }
}
