#!/usr/bin/python3
"""V1 jobs on a genuine control plane: created, scaled, suspended, resumed, deleted; started and evicted by Kueue's updates; deadline and
TTL to the second; unchanged jobs cost no request; the program called as upstream's /manager, and upstream's Lease.

Needs a control plane without node and with an audit log (AUDIT=yes).
"""
import contextlib
import datetime
import os
import pathlib
import sys
import tempfile
import time

import harness
import quiet_test
from harness import ROOT, run, wait_until

sys.path.insert(0, str(ROOT / "tests/conformance"))
from conform import Api  # noqa: E402

HOST = os.environ.get("TESTBED_HOST")


def pytorchjob(name, workers=1, **run_policy):
    role = {"template": {"spec": {"containers": [{"name": "pytorch", "image": "localhost/none:1"}]}}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name}, "spec": {
        "runPolicy": run_policy, "pytorchReplicaSpecs": {"Master": {"replicas": 1, **role}, "Worker": {"replicas": workers, **role}}}}


def install():
    crds = str(ROOT / "manifests/v1/crds")
    run("kubectl", "apply", "--server-side", "-f", crds)
    run("kubectl", "wait", "--for=condition=Established", "--timeout=30s", "-f", crds)


@contextlib.contextmanager
def controller(*flags, change=lambda controller, directory: None):
    install()
    with tempfile.TemporaryDirectory() as directory:
        made = harness.Controller(directory, *flags)
        change(made, pathlib.Path(directory))
        made.start()
        try:
            if "--webhook-url" in flags:
                wait_until("admission", lambda: "validator.training-operator.kubeflow.org" in made.said())
            yield made
            made.stop()
        finally:
            made.kill()


def served():
    return controller("--enable-scheme", "--webhook-url", f"https://{HOST}:9443")


def names(cluster, kind):
    return sorted(o["metadata"]["name"] for o in cluster.list(kind, "-l", "training.kubeflow.org/job-name"))


def have(cluster, *wanted):
    """Waits until these are the pods of V1 jobs, and until they and their jobs have Services. Kubernetes' garbage collector deletes those of
    a deleted job; after a CRD was made again it may take it most of a minute to see the jobs."""
    jobs = {name.rsplit("-", 2)[0] for name in wanted}
    for kind, those in ("pods", sorted(wanted)), ("services", sorted({*wanted, *jobs})):
        wait_until(f"{kind} {those}", lambda: names(cluster, kind) == those, seconds=20 if wanted else 60)


def types(cluster, name):
    """The conditions, as State shows the last."""
    return [(c["type"], c["status"]) for c in cluster.get("pytorchjob", name).get("status", {}).get("conditions", [])]


def mpijob(name):
    role = {"replicas": 1, "template": {"spec": {"containers": [{"name": "mpi", "image": "localhost/none:1"}]}}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": name}, "spec": {
        "runPolicy": {}, "mpiReplicaSpecs": {"Launcher": role, "Worker": role}}}


def run_pod(cluster, name, phase="Running", **state):
    status = {"phase": phase, "containerStatuses": [{"name": "pytorch", "image": "x", "imageID": "x", "ready": False, "restartCount": 0,
                                                     "state": state or {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}
    cluster.kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", harness.json.dumps({"status": status}))


def seconds_between(status):
    def at(member):
        return datetime.datetime.fromisoformat(status[member].replace("Z", "+00:00"))
    return (at("completionTime") - at("startTime")).total_seconds()


def test_a_job_is_created_scaled_suspended_resumed_and_deleted(cluster):
    with served():
        refused = cluster.refusal(pytorchjob("refused", workers=0))
        assert "validator.pytorchjob.training-operator.kubeflow.org" in refused, refused
        cluster.apply(pytorchjob("p"))
        have(cluster, "p-master-0", "p-worker-0")
        event = wait_until("an event of a pod's creation", lambda: next((
            e for e in cluster.list("events") if e["message"] == "Created pod: p-master-0"), None))
        assert event["source"]["component"] == "pytorchjob-controller" and event["reason"] == "SuccessfulCreatePod", event
        wait_until("it has a status", lambda: types(cluster, "p") == [("Created", "True")])
        run_pod(cluster, "p-master-0")
        wait_until("it runs", lambda: types(cluster, "p")[-1] == ("Running", "True"))
        assert cluster.kubectl("get", "pytorchjob", "p").splitlines()[1].split()[:2] == ["p", "Running"]

        first = cluster.get("pod", "p-worker-0")["metadata"]["uid"]
        cluster.kubectl("scale", "pytorchjob", "p", "--replicas=3")
        have(cluster, "p-master-0", "p-worker-0", "p-worker-1", "p-worker-2")
        cluster.kubectl("scale", "pytorchjob", "p", "--replicas=1")
        have(cluster, "p-master-0", "p-worker-0")
        assert cluster.get("pod", "p-worker-0")["metadata"]["uid"] == first

        for is_suspended in ("true", "false"):
            cluster.kubectl("patch", "pytorchjob", "p", "--type=merge", "-p", '{"spec":{"runPolicy":{"suspend":%s}}}' % is_suspended)
            have(cluster, *(() if is_suspended == "true" else ("p-master-0", "p-worker-0")))
        run_pod(cluster, "p-master-0")
        wait_until("it runs again", lambda: types(cluster, "p") ==
                   [("Created", "True"), ("Suspended", "False"), ("Running", "True")])
        cluster.kubectl("delete", "pytorchjob", "p")
        have(cluster)


class KueuesJob:
    """A V1 job as Kueue's Go client updates it: whole, with the members that a client has written who knows the types."""

    def __init__(self, cluster, job):
        self.cluster, self.kind, self.name = cluster, job["kind"].lower(), job["metadata"]["name"]
        self.specs = next(member for member in job["spec"] if member.endswith("ReplicaSpecs"))
        job["spec"]["runPolicy"]["suspend"] = True
        cluster.apply(job)

    def put(self, suspend, flavor):
        """Starts or suspends it; the flavor's selector and toleration are the only ones of each template."""
        def change(job):
            job.setdefault("status", {})
            job["spec"]["runPolicy"]["suspend"] = suspend
            for role, spec in job["spec"][self.specs].items():
                template = spec["template"]
                template["metadata"] = {"creationTimestamp": None}
                for container in template["spec"]["containers"]:
                    container.setdefault("resources", {})
                for member in ("nodeSelector", "tolerations"):
                    template["spec"].pop(member, None)
                if flavor:
                    template["metadata"]["labels"] = {"kueue.x-k8s.io/podset": role.lower()}
                    template["spec"].update(nodeSelector={"pool": flavor}, tolerations=[{"key": flavor, "operator": "Exists"}])
        self.cluster.put("kubeflow.org/v1", self.kind, self.name, change)

    def have(self, *wanted):
        wait_until(f"pods {wanted}", lambda: names(self.cluster, "pods") == sorted(wanted), seconds=20)

    def runs_on(self, flavor, first, *others):
        """All pods are new, and have what Kueue has written."""
        self.have(first, *others)
        for pod in self.cluster.list("pods"):
            assert pod["spec"]["nodeSelector"] == {"pool": flavor}, pod["spec"]
            assert flavor in [toleration["key"] for toleration in pod["spec"]["tolerations"]], pod["spec"]
            labels = pod["metadata"]["labels"]
            assert labels["kueue.x-k8s.io/podset"] == labels["training.kubeflow.org/replica-type"], labels
            run_pod(self.cluster, pod["metadata"]["name"])
        wait_until("all are active", lambda: self.active() == [1] * (1 + len(others)))

    def active(self):
        """The active pods of each role, by which Kueue decides whether a suspended job has ended."""
        counters = self.cluster.get(self.kind, self.name)["status"].get("replicaStatuses", {})
        return [of.get("active", 0) for of in counters.values()]


def start_evict_and_start_elsewhere(cluster, job, *pods):
    queued = KueuesJob(cluster, job)
    wait_until("it is suspended", lambda: cluster.condition(queued.kind, queued.name, "Suspended"))
    queued.have()
    queued.put(False, "a")
    queued.runs_on("a", *pods)
    first = {pod["metadata"]["uid"] for pod in cluster.list("pods")}
    queued.put(True, None)
    queued.have()
    wait_until("none is active", lambda: not any(queued.active()) and cluster.condition(queued.kind, queued.name, "Suspended"))
    for spec in cluster.get(queued.kind, queued.name)["spec"][queued.specs].values():
        template = spec["template"]["spec"]
        assert "nodeSelector" not in template and "tolerations" not in template, template
    queued.put(False, "b")
    queued.runs_on("b", *pods)
    assert not first & {pod["metadata"]["uid"] for pod in cluster.list("pods")}
    run_pod(cluster, pods[0], "Succeeded", terminated={"exitCode": 0, "reason": "Completed"})
    wait_until("it succeeds", lambda: cluster.condition(queued.kind, queued.name, "Succeeded"))
    cluster.kubectl("delete", queued.kind, queued.name)
    queued.have()


def test_kueue_starts_evicts_and_starts_elsewhere(cluster):
    with served():
        start_evict_and_start_elsewhere(cluster, pytorchjob("queued"), "queued-master-0", "queued-worker-0")
        start_evict_and_start_elsewhere(cluster, mpijob("queued"), "queued-launcher", "queued-worker-0")


def test_deadline_and_ttl_are_kept_to_the_second(cluster):
    with served():
        cluster.apply(pytorchjob("late", activeDeadlineSeconds=3), pytorchjob("done", ttlSecondsAfterFinished=10))
        have(cluster, "late-master-0", "late-worker-0", "done-master-0", "done-worker-0")
        run_pod(cluster, "done-master-0", "Succeeded", terminated={"exitCode": 0, "reason": "Completed"})
        wait_until("it succeeded", lambda: cluster.condition("pytorchjob", "done", "Succeeded"))
        since = time.monotonic()
        wait_until("its TTL", lambda: not cluster.get("pytorchjob", "done"), seconds=30)
        assert time.monotonic() - since < 12.5, "the TTL of 10 s took longer"
        failed = wait_until("the deadline", lambda: cluster.condition("pytorchjob", "late", "Failed"), seconds=10)
        assert failed["message"] == "Job late has failed because it was active longer than specified deadline", failed
        took = seconds_between(cluster.get("pytorchjob", "late")["status"])
        assert 3 <= took <= 5, f"the deadline of 3 s came after {took} s"


def test_unchanged_jobs_cost_no_request(cluster):
    with controller("--enable-scheme", "--no-webhooks") as made:
        cluster.apply(*(pytorchjob(f"q-{i}") for i in range(20)))
        wait_until("all pods exist", lambda: len(cluster.list("pods")) == 40, seconds=60, every=1)
        settled = {"mark": -1}

        def is_settled():
            before, settled["mark"] = settled["mark"], quiet_test.mark()
            return before >= 0 and not quiet_test.requests_since(before)

        wait_until("everything has settled", is_settled, seconds=30, every=3)
        for what in ("in time", "after a restart"):
            began = quiet_test.mark()
            time.sleep(10)   # the claim is about time that passes
            asked = quiet_test.requests_since(began)
            assert not [k for k in asked if k[0] not in ("get", "list")], f"{what}: {asked}"
            if what == "in time":
                assert not asked, asked
                made.stop()
                made.start()


def test_scaled_beyond_all_bounds(cluster):
    """No webhook sees the subresource scale: the job gets an event, its pods continue, and so do other jobs."""
    with controller("--enable-scheme", "--no-webhooks") as made:
        cluster.apply(pytorchjob("large"))
        wait_until("its pods exist", lambda: len(cluster.list("pods")) == 2, seconds=30)
        cluster.kubectl("scale", "pytorchjob", "large", "--replicas=2000000000")
        wait_until("the job is refused", lambda: any(
            e["reason"] == "PyTorchJobFailedValidation" for e in cluster.list("events")), seconds=20)
        cluster.apply(pytorchjob("other"))
        wait_until("another job has its pods", lambda: len(cluster.list("pods")) == 4, seconds=20)
        assert made.metric("process_resident_memory_bytes") < 100e6


LEASE = "1ca428e5.training-operator.kubeflow.org"


def as_upstreams_manager(cluster):
    def change(made, directory):
        made.command = harness.manager_command(directory, f"--namespace={cluster.namespace}", "-leader-elect", metrics="0")
        made.env["MY_POD_NAMESPACE"] = cluster.namespace

    return controller(change=change)


def test_called_as_upstreams_manager(cluster):
    elsewhere = cluster.namespace[:50] + "-other"
    run("kubectl", "delete", "namespace", elsewhere, "--ignore-not-found", "--wait", "--timeout=60s")
    run("kubectl", "create", "namespace", elsewhere)
    with as_upstreams_manager(cluster):
        other = harness.Cluster(elsewhere)
        other.apply(pytorchjob("far"))
        cluster.apply(pytorchjob("near"))
        have(cluster, "near-master-0", "near-worker-0")
        assert cluster.get("lease", LEASE)["spec"]["holderIdentity"]
        assert not other.list("pods"), "a job of another namespace was reconciled"
    run("kubectl", "delete", "namespace", elsewhere, "--wait=false")


def test_nothing_is_written_while_another_holds_upstreams_lease(cluster):
    """The Lease is held as by upstream's operator. This controller does not lead even after the duration of the Lease, since it is renewed."""
    seconds = 4
    api = Api(os.environ["KUBECONFIG"])   # a kubectl may take too long to renew in time

    def hold(method, holder, path=""):
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        code, answer = api.call(method, f"/apis/coordination.k8s.io/v1/namespaces/{cluster.namespace}/leases{path}", {
            "metadata": {"name": LEASE}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": now}},
            "application/merge-patch+json" if method == "PATCH" else "application/json")
        assert code in (200, 201), answer

    def holder():
        return cluster.get("lease", LEASE)["spec"]["holderIdentity"]

    hold("POST", "upstream")
    with as_upstreams_manager(cluster):
        with harness.at_rate(4, lambda _: hold("PATCH", "upstream", f"/{LEASE}")):
            cluster.apply(pytorchjob("p"))
            began = quiet_test.mark()
            time.sleep(2 * seconds)   # the claim is about time that passes
            assert not quiet_test.requests_since(began), quiet_test.requests_since(began)
            assert holder() == "upstream" and "status" not in cluster.get("pytorchjob", "p"), holder()
        hold("PATCH", "", f"/{LEASE}")
        have(cluster, "p-master-0", "p-worker-0")
        assert holder() not in ("", "upstream"), holder()
        assert ("create", "pods", "") in quiet_test.requests_since(began), "the audit log does not show what it writes"


if __name__ == "__main__":
    harness.main(__file__)
