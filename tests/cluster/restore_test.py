#!/usr/bin/python3
"""A namespace that is backed up, deleted and restored, as tools for backups do it: metadata and spec come back, and neither status, uid nor
owners. Finished jobs do not run again; others continue as docs/operators/back-up.md says. Needs a control plane without node.
"""
import contextlib
import json

import harness
import v1_test
from clients_test import runtime, trainjob
from harness import run, wait_until
from monitoring_test import expect, phase, pods_of, set_pods

MARKER = "trainer.kubeflow.org/finished"
# In the order in which they are restored: a job needs its runtime.
KINDS = ("trainingruntimes", "configmaps", "trainjobs", "pytorchjobs")


@contextlib.contextmanager
def served(marks=True):
    def mark(_, directory):
        with open(directory / "controller.yaml", "a") as config:
            config.write(f"marksFinishedJobs: {str(marks).lower()}\n")

    with v1_test.controller("--enable-scheme", "--no-webhooks", change=mark):
        yield


def restored(o, name=None):
    meta = o["metadata"]
    kept = {key: meta[key] for key in ("annotations", "labels") if key in meta}
    return {**{key: value for key, value in o.items() if key != "status"}, "metadata": {"name": name or meta["name"], **kept}}


def back_up(cluster):
    return [o for kind in KINDS for o in cluster.list(kind) if o["metadata"]["name"] != "kube-root-ca.crt"]


def replace_namespace(cluster, backup):
    """The namespace is lost, and comes back from the backup."""
    run("kubectl", "delete", "namespace", cluster.namespace, "--wait", "--timeout=120s")
    run("kubectl", "create", "namespace", cluster.namespace)
    for o in backup:
        cluster.kubectl("create", "-f", "-", text=json.dumps(restored(o)))


def finish(cluster, name, end):
    """The pods of a TrainJob run, and then end so."""
    set_pods(cluster, f"jobset.sigs.k8s.io/jobset-name={name}", "Running")
    wait_until(f"{name} runs", lambda: phase(cluster, name) == "Running")
    if end:
        set_pods(cluster, f"jobset.sigs.k8s.io/jobset-name={name}", end)


def finish_v1(cluster, name):
    v1_test.have(cluster, f"{name}-master-0", f"{name}-worker-0")
    v1_test.run_pod(cluster, f"{name}-master-0")
    v1_test.run_pod(cluster, f"{name}-master-0", "Succeeded", terminated={"exitCode": 0, "reason": "Completed"})


def once():
    """A runtime whose pods are not tried again."""
    made = runtime()
    made["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 0
    return made


ENDS = (("trainjob", "done", "Complete"), ("trainjob", "failed", "Failed"), ("pytorchjob", "v1-done", "Succeeded"))


def play(cluster):
    """One job in each state."""
    cluster.apply(once(), *(trainjob(name) for name in ("done", "failed", "runs")), trainjob("paused", suspend=True), v1_test.pytorchjob("v1-done"))
    for name, end in (("done", "Succeeded"), ("failed", "Failed"), ("runs", None)):
        finish(cluster, name, end)
    finish_v1(cluster, "v1-done")
    wait_until("paused is seen", lambda: phase(cluster, "paused") == "Suspended")
    return {name: wait_until(f"{name} has ended", lambda k=kind, n=name, e=end: cluster.condition(k, n, e)) for kind, name, end in ENDS}


def is_marked(cluster, kind, name):
    return MARKER in (cluster.get(kind, name) or {"metadata": {}})["metadata"].get("annotations", {})


def test_a_restored_namespace_runs_only_what_had_not_finished(cluster):
    with served():
        ended = play(cluster)
        wait_until("the marks", lambda: all(is_marked(cluster, kind, name) for kind, name, _ in ENDS))
        assert not any(is_marked(cluster, "trainjob", name) for name in ("runs", "paused"))
        replace_namespace(cluster, back_up(cluster))
        for kind, name, end in ENDS:
            again = wait_until(f"the status of {name} is put back", lambda k=kind, n=name, e=end: cluster.condition(k, n, e))
            expect(f"when {name} had ended", again["lastTransitionTime"], ended[name]["lastTransitionTime"])
            wait_until(f"the event of {name}", lambda n=name: any(
                e["reason"] == "Restored" for e in cluster.list("events", f"--field-selector=involvedObject.name={n}")))
        # The snapshot came back without an owner, and is not believed: it is made again after it was deleted.
        wait_until("runs is blocked", lambda: (cluster.get("trainjob", "runs").get("status") or {}).get("reason") == "RuntimeSnapshotInvalid")
        names = [o["metadata"]["name"] for o in cluster.list("configmaps") if o["metadata"]["name"].endswith("-runtime-snapshot")]
        cluster.kubectl("delete", "configmap", *names)
        started = wait_until("runs runs", lambda: pods_of(cluster, "jobset.sigs.k8s.io/jobset-name=runs"), seconds=60)
        expect("its pods", len(started), 1)
        wait_until("the JobSet of paused", lambda: cluster.get("jobset", "paused"), seconds=60)
        # Both were reconciled after those that had ended.
        for name in ("done", "failed", "paused"):
            expect(f"pods of {name}", pods_of(cluster, f"jobset.sigs.k8s.io/jobset-name={name}"), [])
            if name != "paused":
                expect(f"the JobSet of {name}", cluster.get("jobset", name), None)
        expect("pods of v1-done", pods_of(cluster, "training.kubeflow.org/job-name=v1-done"), [])


def test_the_manager_of_v1_jobs_marks_them_too(cluster):
    """Started as upstream's, which has no configuration file."""
    def as_manager(controller, directory):
        controller.command = harness.manager_command(directory, "--marks-finished-jobs")

    with v1_test.controller(change=as_manager):
        cluster.apply(v1_test.pytorchjob("v1-done"))
        finish_v1(cluster, "v1-done")
        wait_until("the mark", lambda: is_marked(cluster, "pytorchjob", "v1-done"))
        replace_namespace(cluster, back_up(cluster))
        wait_until("its status is put back", lambda: cluster.condition("pytorchjob", "v1-done", "Succeeded"))
        expect("pods of v1-done", pods_of(cluster, "training.kubeflow.org/job-name=v1-done"), [])


def test_a_copy_of_a_finished_job_is_another_job(cluster):
    with served():
        cluster.apply(once(), trainjob("j"), v1_test.pytorchjob("p"))
        finish(cluster, "j", "Succeeded")
        finish_v1(cluster, "p")
        for kind, name, label in (("trainjob", "j", "jobset.sigs.k8s.io/jobset-name"), ("pytorchjob", "p", "training.kubeflow.org/job-name")):
            wait_until(f"the mark of {name}", lambda k=kind, n=name: is_marked(cluster, k, n))
            cluster.kubectl("create", "-f", "-", text=json.dumps(restored(cluster.get(kind, name), f"{name}-copy")))
            wait_until("the copy runs", lambda n=name, label=label: pods_of(cluster, f"{label}={n}-copy"))


def test_without_a_mark_a_restored_job_runs_again(cluster):
    """Without the setting, a finished job runs again."""
    with served(marks=False):
        cluster.apply(once(), trainjob("j"))
        finish(cluster, "j", "Succeeded")
        wait_until("it has ended", lambda: cluster.condition("trainjob", "j", "Complete"))
        backup = [o for o in back_up(cluster) if o["kind"] != "ConfigMap"]
        assert not any(MARKER in o["metadata"].get("annotations", {}) for o in backup)
        replace_namespace(cluster, backup)
        wait_until("it runs again", lambda: pods_of(cluster, "jobset.sigs.k8s.io/jobset-name=j"))


if __name__ == "__main__":
    harness.main(__file__)
