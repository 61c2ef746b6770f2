#!/usr/bin/python3
"""Jobs in the queues of a real Kueue: they are queued, admitted, evicted, admitted elsewhere, and completed.

Needs a control plane without node. The tests set the status of pods; nothing runs in them.
"""
import contextlib
import functools
import json
import os
import sys
import tempfile
import threading
import time

import harness
import kueue
from harness import ROOT, Failed, run

sys.path.insert(0, str(ROOT / "tests/conformance"))
from conform import Api  # noqa: E402

# Beside other stages of ./check a step of Kueue, which tries again with backoff, may take long.
wait_until = functools.partial(harness.wait_until, seconds=90)
JOBS = "trainjobs,jobsets,jobs,pytorchjobs,tfjobs,mpijobs"
CONTAINER = {"image": "localhost/none:1", "resources": {"requests": {"cpu": "1"}}}
PLAIN = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime", "metadata": {"name": "plain"}, "spec": {
    "mlPolicy": {"numNodes": 2, "torch": {}}, "template": {"spec": {"replicatedJobs": [{"name": "node", "template": {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "node", **CONTAINER}]}}}}}]}}}}


def trainjob(name, **spec):
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": name},
            "spec": {"runtimeRef": {"name": "plain", "kind": "TrainingRuntime"}, **spec}}


def jobset(name):
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": {"replicatedJobs": [
        {"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 1, "completions": 1, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", **CONTAINER}]}}}}}]}}


def v1_job(kind, specs, container, *roles):
    """A V1 job with a pod in each role."""
    role = {"replicas": 1, "template": {"spec": {"containers": [{"name": container, **CONTAINER}]}}}
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": kind.lower()}, "spec": {
        specs: {each: json.loads(json.dumps(role)) for each in roles}}}


def install():
    """Installs the CRDs, once on each cluster."""
    install_on(os.environ["KUBECONFIG"])


@functools.lru_cache
def install_on(_):
    crds = [argument for folder in ("crds", "v1/crds") for argument in ("-f", str(ROOT / "manifests" / folder))]
    run("kubectl", "apply", "--server-side", "--validate=false", *crds)
    run("kubectl", "apply", "--server-side", "--validate=false", "-f", "-", text=run(harness.TRAINER, "crds", "v1", "mpi").stdout)
    run("kubectl", "wait", "--for=condition=Established", "--timeout=30s", *crds)


def webhooks():
    """The options of a controller with admission, for V1 jobs too."""
    return "--enable-scheme", "--enable-mpijob-v2", "--webhook-url", f"https://{os.environ['TESTBED_HOST']}:9443"


@contextlib.contextmanager
def scene(cluster, **config):
    """A Kueue with this configuration and a controller beside it. At the end the jobs of the test are deleted, and Kueue forgets them."""
    install()
    with tempfile.TemporaryDirectory() as directory:
        controller = harness.Controller(directory, *webhooks())
        try:
            controller.start()
            queues = kueue.running(**config)
            try:
                yield queues
            except Failed as error:
                raise Failed(f"{error}\nThe last errors of Kueue's log:\n{queues.errors()}") from error
            cluster.kubectl("delete", JOBS, "--all", "--timeout=60s")
            wait_until("Kueue lets the Workloads go", lambda: not cluster.list("workloads"))
            controller.stop()
        finally:
            controller.kill()


@functools.lru_cache
def connection(kubeconfig):
    return Api(kubeconfig), threading.Lock()


class Client:
    """Requests without a kubectl, which takes longer than they do."""

    def __init__(self, namespace):
        self.namespace = namespace
        self.api, self.lock = connection(os.environ["KUBECONFIG"])

    def call(self, method, kind, name="", part="", body=None):
        """The answer; None for a 404."""
        method, content = {"PATCH": ("PATCH", "application/merge-patch+json"), "APPLY": ("PATCH", "application/apply-patch+yaml")}.get(
            method, (method, "application/json"))
        with self.lock:
            code, answer = self.api.call(method, self.api.path(kind, self.namespace, name) + part, body, content)
        if code == 404:
            return None
        assert code < 300, f"{method} {kind} {name}: {code} {answer}"
        return answer

    def apply(self, *objects):
        """kubectl first reads what the API server serves, which takes it seconds after CRDs have changed."""
        for o in objects:
            group, _, version = o["apiVersion"].rpartition("/")
            self.call("APPLY", f"{o['kind']}.{version}.{group}", o["metadata"]["name"], "?fieldManager=test&force=true", o)

    def get(self, kind, name):
        return self.call("GET", kind, name)

    def list(self, kind, labels=""):
        return self.call("GET", kind, part=f"?labelSelector={labels}")["items"]

    def set_pod(self, pod, phase):
        """Sets the pod's status as a kubelet does: Running and ready, Succeeded or Failed."""
        is_ready = phase == "Running"
        containers = [{"name": c["name"], "image": "x", "imageID": "x", "ready": is_ready, "restartCount": 0, "state": STATES[phase]}
                      for c in pod["spec"]["containers"]]
        self.call("PATCH", "Pod", pod["metadata"]["name"], "/status", {"status": {
            "phase": phase, "containerStatuses": containers, "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Ready", "status": str(is_ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})


STATES = {"Running": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "Succeeded": {"terminated": {"exitCode": 0, "reason": "Completed"}},
          "Failed": {"terminated": {"exitCode": 1, "reason": "Error"}}}


class Job:
    """A job in a queue, with its Workload and its pods."""

    def __init__(self, cluster, job):
        self.client, self.kind, self.name = Client(cluster.namespace), job["kind"], job["metadata"]["name"]
        self.pods_label = "training.kubeflow.org/job-name" if job["apiVersion"].startswith("kubeflow.org/") else "jobset.sigs.k8s.io/jobset-name"
        if not self.get():
            self.client.apply(job)

    def get(self):
        return self.client.get(self.kind, self.name)

    def workload(self):
        """None where Kueue has not made it."""
        uid = self.get()["metadata"]["uid"]
        return next((w for w in self.client.list("Workload.kueue.x-k8s.io") if any(
            o["uid"] == uid for o in w["metadata"].get("ownerReferences", []))), None)

    def condition(self, wanted):
        return condition(self.get(), wanted)

    def workload_condition(self, wanted):
        return condition(self.workload(), wanted)

    def evictions(self, reason):
        """How often Kueue has evicted it for this reason."""
        stats = (self.workload() or {}).get("status", {}).get("schedulingStats", {}).get("evictions", [])
        return sum(each["count"] for each in stats if each["reason"] == reason)

    def is_suspended(self):
        spec = self.get()["spec"]
        return spec.get("runPolicy", spec).get("suspend", False)

    def pods(self):
        return [p for p in self.client.list("Pod", f"{self.pods_label}={self.name}") if "deletionTimestamp" not in p["metadata"]]

    def wait_for_pods(self, count):
        wait_until(f"{self.kind} {self.name} has {count} pods", lambda: len(self.pods()) == count, shown=self.said)
        return self.pods()

    def set_pods(self, phase):
        for pod in self.pods():
            self.client.set_pod(pod, phase)

    def set_active(self, is_active):
        self.client.call("PATCH", "Workload.kueue.x-k8s.io", self.workload()["metadata"]["name"], body={"spec": {"active": is_active}})

    def said(self):
        """The message of a failure has what the job and its Workload say."""
        return json.dumps([(o or {}).get("status") for o in (self.get(), self.workload())])

    def is_queued(self):
        """It waits for Kueue, without pods and without quota."""
        wait_until(f"{self.kind} {self.name} is queued", lambda: self.workload() and self.is_suspended() and not self.pods() and not (
            self.workload_condition("QuotaReserved") or self.workload_condition("Admitted")), shown=self.said)
        if self.kind == "TrainJob":
            status = self.get()["status"]
            assert (status["phase"], status["reason"], status["nodes"]["ready"]) == ("Queued", "WaitingForQuota", 0), status

    def runs_in(self, flavor, count):
        """Kueue admits it there; its pods have what the flavor says, and run. Answers their uids."""
        wait_until(f"{self.kind} {self.name} is admitted", lambda: self.workload_condition("Admitted"), shown=self.said)
        pods = self.wait_for_pods(count)
        for pod in pods:
            assert pod["spec"]["nodeSelector"] == {"pool": flavor}, pod["spec"]
            assert flavor in [t.get("value") for t in pod["spec"]["tolerations"]], pod["spec"]
        self.set_pods("Running")
        wait_until(f"{self.kind} {self.name} says that its pods are active", self.is_active, shown=self.said)
        return {pod["metadata"]["uid"] for pod in pods}

    def is_active(self):
        """The status from which Kueue knows that there are pods."""
        status = self.get().get("status", {})
        counters = status.get("jobsStatus", status.get("replicatedJobsStatus", list(status.get("replicaStatuses", {}).values())))
        return counters and all(each.get("active") for each in counters)

    def completes(self, finished):
        self.set_pods("Succeeded")
        wait_until(f"{self.kind} {self.name} is {finished}", lambda: self.condition(finished), shown=self.said)


def condition(o, wanted):
    """The condition of this type if it is True."""
    conditions = (o or {}).get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == wanted and c["status"] == "True"), None)


def flavors(cluster, a, b, **spec):
    """The flavors a and b, named after the test, and a queue with so many CPUs of each."""
    names = [f"{cluster.namespace}-{each}" for each in "ab"]
    Client(cluster.namespace).apply(*(kueue.flavor(name, pool) for name, pool in zip(names, "ab")), kueue.cluster_queue(cluster.namespace, dict(zip(names, (a, b))), **spec),
                  kueue.local_queue("queue", cluster.namespace))


def walk(cluster, job, finished):
    """A job with two pods of one CPU is queued, admitted to flavor a, evicted, admitted to flavor b, and completes."""
    flavors(cluster, 0, 0)
    walked = Job(cluster, kueue.queued(job))
    walked.is_queued()
    flavors(cluster, 2, 0)
    first = walked.runs_in("a", 2)
    flavors(cluster, 0, 2)
    walked.set_active(False)
    walked.is_queued()
    assert '"pool"' not in json.dumps(walked.get()["spec"]), "what Kueue has written for the first flavor is still there"
    walked.set_active(True)
    assert not first & walked.runs_in("b", 2), "pods of the first admission are there in the second"
    walked.completes(finished)
    wait_until("its Workload is finished", lambda: walked.workload_condition("Finished"), shown=walked.said)
    assert walked.workload_condition("Finished")["reason"] == "Succeeded", walked.said()


def test_a_trainjob_is_queued_evicted_and_admitted_elsewhere(cluster):
    with scene(cluster):
        Client(cluster.namespace).apply(PLAIN)
        job = trainjob("trainjob")
        job["metadata"]["annotations"] = {"trainer.kubeflow.org/restart-environment": "true"}
        walk(cluster, job, "Complete")
        assert cluster.get("trainjob", "trainjob")["status"]["executionAttempts"] == 1, "the eviction has raised the attempt"


def test_a_jobset_is_queued_evicted_and_admitted_elsewhere(cluster):
    with scene(cluster):
        walk(cluster, jobset("jobset"), "Completed")


def test_v1_jobs_are_queued_evicted_and_admitted_elsewhere(cluster):
    with scene(cluster):
        walk(cluster, v1_job("PyTorchJob", "pytorchReplicaSpecs", "pytorch", "Master", "Worker"), "Succeeded")
        walk(cluster, v1_job("TFJob", "tfReplicaSpecs", "tensorflow", "Chief", "Worker"), "Succeeded")


def test_an_mpijob_of_v2beta1_is_queued_evicted_and_admitted_elsewhere(cluster):
    with scene(cluster):
        job = v1_job("MPIJob", "mpiReplicaSpecs", "main", "Launcher", "Worker")
        job["apiVersion"] = "kubeflow.org/v2beta1"
        walk(cluster, job, "Succeeded")
        assert cluster.get("job", "mpijob-launcher"), "its launcher is a Job"


def test_each_role_has_its_own_flavor(cluster):
    """The trainer's pods fit only into one flavor and the helper's only into the other; none has what the other's Workload entry says."""
    with scene(cluster):
        flavors(cluster, 2, 1)
        runtime = json.loads(json.dumps(PLAIN))
        helper = json.loads(json.dumps(runtime["spec"]["template"]["spec"]["replicatedJobs"][0]))
        helper["name"] = "helper"
        helper["template"]["metadata"] = {}
        runtime["spec"]["template"]["spec"]["replicatedJobs"].append(helper)
        Client(cluster.namespace).apply(runtime)
        job = Job(cluster, kueue.queued(trainjob("roles")))
        pods = job.wait_for_pods(3)
        assigned = {each["name"]: each["flavors"]["cpu"] for each in job.workload()["status"]["admission"]["podSetAssignments"]}
        assert assigned == {"node": f"{cluster.namespace}-a", "helper": f"{cluster.namespace}-b"}, assigned
        for pod in pods:
            role = pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"]
            assert pod["spec"]["nodeSelector"] == {"pool": "a" if role == "node" else "b"}, pod["spec"]
            assert pod["metadata"]["labels"]["kueue.x-k8s.io/podset"] == role, pod["metadata"]


def test_a_job_of_higher_priority_evicts_another(cluster):
    with scene(cluster):
        Client(cluster.namespace).apply(PLAIN, *({"apiVersion": kueue.API, "kind": "WorkloadPriorityClass", "metadata": {"name": f"{cluster.namespace}-{name}"}, "value": value}
                               for name, value in (("low", 10), ("high", 100))))
        flavors(cluster, 2, 0, preemption={"withinClusterQueue": "LowerPriority"})
        low = Job(cluster, kueue.queued(trainjob("low"), priority=f"{cluster.namespace}-low"))
        first = low.runs_in("a", 2)
        urgent = v1_job("PyTorchJob", "pytorchReplicaSpecs", "pytorch", "Master", "Worker")
        high = Job(cluster, kueue.queued(urgent, priority=f"{cluster.namespace}-high"))
        high.runs_in("a", 2)
        evicted = low.workload_condition("Evicted")
        assert evicted and evicted["reason"] == "Preempted", low.said()
        low.is_queued()
        high.set_pods("Succeeded")
        assert not first & low.runs_in("a", 2)
        low.completes("Complete")


def test_a_job_whose_pods_do_not_become_ready_is_evicted_and_tried_again(cluster):
    seconds = 6
    with scene(cluster, waitForPodsReady={"timeout": f"{seconds}s", "requeuingStrategy": {"backoffBaseSeconds": 1}}):
        Client(cluster.namespace).apply(PLAIN)
        flavors(cluster, 4, 0)
        jobs = [Job(cluster, kueue.queued(each)) for each in (
            trainjob("slow"), v1_job("PyTorchJob", "pytorchReplicaSpecs", "pytorch", "Master", "Worker"))]
        for job in jobs:
            wait_until(f"{job.kind} is evicted", lambda: job.evictions("PodsReadyTimeout"), shown=job.said)
        for job in jobs:
            wait_until(f"{job.kind} is tried again and its pods are ready", lambda: job.set_pods("Running") or job.workload_condition("PodsReady"),
                       shown=job.said)
        evictions = [job.evictions("PodsReadyTimeout") for job in jobs]
        time.sleep(1.5 * seconds)   # the claim is about time that passes
        for job, before in zip(jobs, evictions):
            assert job.workload_condition("PodsReady") and job.evictions("PodsReadyTimeout") == before, job.said()


if __name__ == "__main__":
    harness.main(__file__)
