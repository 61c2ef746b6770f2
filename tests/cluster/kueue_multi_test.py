#!/usr/bin/python3
"""MultiKueue: a job that a user creates on one control plane runs on another one, each with a Kueue and a controller.

Needs a control plane without node. The test starts the second one, on networks beside those of the first.
"""
import contextlib
import os
import tempfile

import harness
import kueue
import kueue_test
from harness import run
from kueue_test import Job, trainjob, v1_job, wait_until


def beside(network):
    """The network of the second test bed."""
    first, second = network.split(".")
    return f"{first}.{int(second) + 20}"


@contextlib.contextmanager
def environment(**changes):
    """With these environment variables, by which kubectl, the test bed and the controllers find their cluster."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def worker_cluster():
    """The environment of a second control plane."""
    bed = {"TESTBED_DIR": os.environ.get("TESTBED_DIR", str(harness.ROOT / "tests/cluster/.testbed")) + "-worker",
           "TESTBED_BRIDGE": os.environ.get("TESTBED_BRIDGE", "tb0") + "w",
           "TESTBED_NET": beside(os.environ.get("TESTBED_NET", "10.97")), "TESTBED_SERVICES": beside(os.environ.get("TESTBED_SERVICES", "10.96"))}
    try:
        with environment(**bed):
            run(harness.TESTBED, "build")
            run(harness.TESTBED, "down")
            kubeconfig = run(harness.TESTBED, "up", "--no-node").stdout.strip()
        yield {**bed, "KUBECONFIG": kubeconfig, "TESTBED_HOST": bed["TESTBED_NET"] + ".0.1"}
    finally:
        with environment(**bed):
            run(harness.TESTBED, "down")


def offer(cluster, worker):
    """The manager's queue sends all jobs to the worker's, which has the same name."""
    name = cluster.namespace
    run("kubectl", "-n", kueue.SYSTEM, "create", "secret", "generic", "worker", "--from-file=kubeconfig=" + worker["KUBECONFIG"])
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": name}
    kueue_test.Client(name).apply({"apiVersion": kueue.API, "kind": "MultiKueueCluster", "metadata": {"name": "worker"}, "spec": {
        "clusterSource": {"kubeConfig": {"location": "worker", "locationType": "Secret"}}}},
        {"apiVersion": kueue.API, "kind": "MultiKueueConfig", "metadata": {"name": name}, "spec": {"clusters": ["worker"]}},
        {"apiVersion": kueue.API, "kind": "AdmissionCheck", "metadata": {"name": name}, "spec": {
            "controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}})
    kueue_test.flavors(cluster, 10, 0, admissionChecksStrategy={"admissionChecks": [{"name": name}]})
    run("kubectl", "wait", "--for=condition=Active", "--timeout=60s", f"clusterqueue/{name}")


def state(cluster, kind, name):
    """The column STATE of kubectl."""
    header, line = cluster.kubectl("get", kind, name).splitlines()
    at = header.index("STATE")
    return line[at:].split()[0] if line[at:at + 1].strip() else ""


def test_jobs_run_on_another_cluster(cluster):
    with worker_cluster() as worker, kueue_test.scene(cluster):
        with environment(**worker):
            run("kubectl", "create", "namespace", "kubeflow-system")
            run("kubectl", "create", "namespace", cluster.namespace)
        with tempfile.TemporaryDirectory() as directory:
            with environment(**worker):
                kueue_test.install()
                remote_kueue = kueue.Kueue(directory)
                controller = harness.Controller(directory, *kueue_test.webhooks())
                controller.start()
                remote_kueue.start()
                kueue_test.Client(cluster.namespace).apply(kueue_test.PLAIN)
                kueue_test.flavors(cluster, 10, 0)
            try:
                offer(cluster, worker)
                kueue_test.Client(cluster.namespace).apply(kueue_test.PLAIN)
                runs_elsewhere(cluster, worker, trainjob("away"), "Complete")
                runs_elsewhere(cluster, worker, v1_job("PyTorchJob", "pytorchReplicaSpecs", "pytorch", "Master", "Worker"), "Succeeded")
            finally:
                with environment(**worker):
                    remote_kueue.stop()
                    controller.kill()


def runs_elsewhere(cluster, worker, job, finished):
    here = Job(cluster, kueue.queued(job))
    spec = here.get()["spec"]
    assert spec.get("runPolicy", spec)["managedBy"] == "kueue.x-k8s.io/multikueue", spec
    with environment(**worker):
        remote = kueue_test.Client(cluster.namespace)
        wait_until("the job is on the other cluster", lambda: remote.get(here.kind, here.name))
        there = Job(cluster, job)
    there.runs_in("a", 2)
    wait_until("its status is here", here.is_active, shown=here.said)
    assert not here.pods() and not cluster.list("jobsets"), "the controller of this cluster has made something for it"
    there.completes(finished)
    wait_until("it is finished here", lambda: here.condition(finished), shown=here.said)
    if here.kind != "TrainJob":   # its column STATE is status.phase, which Kueue's types do not have
        assert state(cluster, here.kind, here.name) == finished, state(cluster, here.kind, here.name)


if __name__ == "__main__":
    harness.main(__file__)
