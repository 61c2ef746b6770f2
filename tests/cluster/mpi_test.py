#!/usr/bin/python3
"""MPIJobs of v2beta1 beside those of v1 in one CRD, and beside mpi-operator, by its Lease.

Needs a control plane without node.
"""
import contextlib
import datetime
import json
import os
import tempfile

import harness
from harness import TRAINER, run, wait_until

HOST = os.environ.get("TESTBED_HOST")
V1, V2 = "mpijobs.v1.kubeflow.org", "mpijobs.v2beta1.kubeflow.org"
STAMP = "trainer.kubeflow.org/created-version"


def mpijob(name, version):
    role = {"template": {"spec": {"containers": [{"name": "main", "image": "localhost/none:1"}]}}}
    return {"apiVersion": f"kubeflow.org/{version}", "kind": "MPIJob", "metadata": {"name": name}, "spec": {
        "runPolicy": {}, "mpiReplicaSpecs": {"Launcher": {**role, "replicas": 1}, "Worker": {**role, "replicas": 2}}}}


@contextlib.contextmanager
def controller(*flags):
    crds = run(TRAINER, "crds", "v1", "mpi").stdout
    run("kubectl", "apply", "--server-side", "-f", "-", text=crds)
    run("kubectl", "wait", "--for=condition=Established", "--timeout=30s", "-f", "-", text=crds)
    with tempfile.TemporaryDirectory() as directory:
        made = harness.Controller(directory, "--enable-mpijob-v2", *flags).start()
        try:
            yield made
            made.stop()
        finally:
            made.kill()


def operator_of(cluster, job):
    """By whose rules the workers of a job are made."""
    pods = cluster.list("pods", "-l", f"training.kubeflow.org/job-name={job}")
    return sorted({p["metadata"]["labels"]["training.kubeflow.org/operator-name"] for p in pods})


def conditions(cluster, name):
    return cluster.get(V2, name).get("status", {}).get("conditions", [])


def lease(namespace, seconds_ago=0):
    renewed = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=seconds_ago)
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "mpi-operator", "namespace": namespace}, "spec": {
        "holderIdentity": "other", "leaseDurationSeconds": 60, "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}}


@contextlib.contextmanager
def held_lease(namespace):
    run("kubectl", "create", "namespace", namespace, check=False)
    run("kubectl", "apply", "-f", "-", text=json.dumps(lease(namespace)))
    try:
        yield
    finally:
        run("kubectl", "delete", "lease", "-n", namespace, "mpi-operator", "--ignore-not-found")


def test_a_job_is_reconciled_as_one_of_the_version_at_which_it_was_created(cluster):
    with controller("--enable-scheme=mpijob", "--webhook-url", f"https://{HOST}:9443") as made:
        wait_until("admission", lambda: "defaulter.mpijob.trainer.kubeflow.org" in made.said())
        cluster.apply(mpijob("old", "v1"), mpijob("new", "v2beta1"))
        wait_until("the workers of both", lambda: len(cluster.list("pods", "-l", "training.kubeflow.org/job-name")) >= 5)
        assert operator_of(cluster, "old") == ["mpijob-controller"] and operator_of(cluster, "new") == ["mpi-operator"]
        assert cluster.get(V1, "old")["metadata"]["annotations"][STAMP] == "v1"
        assert STAMP not in cluster.get(V2, "new")["metadata"].get("annotations", {})
        assert cluster.get("role", "old-launcher") and not cluster.get("job", "old-launcher")
        assert cluster.get("job", "new-launcher") and not cluster.get("role", "new-launcher")

        # Both controllers see what becomes of pods, though the two versions of a job have one uid.
        for pod in cluster.list("pods", "-l", "training.kubeflow.org/job-name"):
            run("kubectl", "patch", "pod", "-n", cluster.namespace, pod["metadata"]["name"], "--subresource=status", "--type=merge", "-p",
                json.dumps({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}))
        for name, kind in (("old", V1), ("new", V2)):
            wait_until(f"{name} counts its pods", lambda: {role: counters.get("active") for role, counters in cluster.get(kind, name)[
                "status"]["replicaStatuses"].items()} == {"Launcher": 1, "Worker": 2})

        # Clients of each version write jobs of the other, as Kueue does, which knows v2beta1 alone.
        def write(name, version):
            def change(job):
                job["apiVersion"] = f"kubeflow.org/{version}"
                job["metadata"].setdefault("labels", {})["seen"] = "yes"
            cluster.put(f"kubeflow.org/{version}", "mpijob", name, change)

        write("old", "v2beta1")
        assert cluster.get(V2, "old")["spec"]["mpiImplementation"] == "OpenMPI", "the default of v2beta1 is written"
        write("new", "v1")
        for name in "old", "new":
            cluster.kubectl("delete", "pod", f"{name}-worker-1", "--force", "--grace-period=0")
        wait_until("the workers are there again", lambda: all(cluster.get("pod", f"{name}-worker-1") for name in ("old", "new")))
        assert operator_of(cluster, "old") == ["mpijob-controller"] and operator_of(cluster, "new") == ["mpi-operator"]
        assert not cluster.get("service", "old") and cluster.get("service", "new")


def test_jobs_are_left_to_mpi_operator_while_it_holds_its_lease(cluster):
    with held_lease("mpi-operator"), controller() as made:
        wait_until("the Lease is seen", lambda: "left to mpi-operator" in made.said())
        cluster.apply(mpijob("j", "v2beta1"))
        template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "localhost/none:1"}]}}}}
        cluster.apply({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "later"},
                       "spec": {"replicatedJobs": [{"name": "a", "template": template}]}})
        wait_until("a JobSet that came later has its Job", lambda: cluster.get("job", "later-a-0"))
        assert not conditions(cluster, "j") and not cluster.get("service", "j")
        run("kubectl", "patch", "lease", "-n", "mpi-operator", "mpi-operator", "--type=merge", "-p", '{"spec":{"holderIdentity":""}}')
        wait_until("the job is taken over", lambda: conditions(cluster, "j") and cluster.get("job", "j-launcher"))
        assert "mpi-operator does not run" in made.said()


def test_a_lease_of_a_tenant_changes_nothing(cluster):
    with held_lease(cluster.namespace), controller() as made:
        cluster.apply(mpijob("j", "v2beta1"))
        wait_until("the job is reconciled", lambda: cluster.get("job", "j-launcher"))
        wait_until("the Lease is counted", lambda: made.metric("trainer_unexpected_leases", "mpi-operator") == 1)


def test_an_invalid_job_says_what_is_wrong(cluster):
    with controller():
        job = mpijob("j", "v2beta1")
        job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 0
        cluster.apply(job)
        wait_until("the event", lambda: "must be greater than or equal to 1" in cluster.kubectl("get", "events"))
        assert not conditions(cluster, "j")
        said = run(TRAINER, "why", "-n", cluster.namespace, "mpijob/j").stdout
        assert "must be greater than or equal to 1" in said, said


if __name__ == "__main__":
    harness.main(__file__)
