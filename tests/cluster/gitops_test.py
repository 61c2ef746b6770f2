#!/usr/bin/python3
"""What is kept in a repository stays as it is there: after a run `kubectl diff` of all that was applied is empty, of the installation and of
users' objects, applied by the server and by kubectl.

The controllers run as in their pods, with the shipped manifests, as in rights_test.py. Needs a control plane without node, since the test
ends the pods.
"""
import contextlib
import json
import os
import pathlib
import tempfile

import harness
import rights_test
import v1_test
from clients_test import runtime, trainjob
from harness import ROOT, TRAINER, Failed, run, wait_until
from monitoring_test import phase, set_pods
from restore_test import MARKER
from rights_test import HOST, MANAGER, SYSTEM

INSTALLED = ("manifests/overlays/manager", "manifests/overlays/restrict-controller", "manifests/overlays/finished-marker")
RUNTIMES = "manifests/overlays/runtimes"
V1 = ("manifests/overlays/standalone", "manifests/overlays/kubeflow")
WEBHOOKS = "webhookconfigurations"


def have_a_ca(*configurations):
    return all(webhook["clientConfig"].get("caBundle") for each in configurations
               for webhook in json.loads(run("kubectl", "get", each, "-o", "json").stdout)["webhooks"])


def apply(*overlays):
    for overlay in overlays:
        run("kubectl", "apply", "--server-side", "--force-conflicts", "-k", str(ROOT / overlay))


def check_no_drift(what, *arguments, text=None):
    """`kubectl diff` ends with 1 where something differs, and with more where it could not look."""
    done = run("kubectl", "diff", *arguments, text=text, check=False)
    if done.returncode != 0:
        raise Failed(f"{what} has changed: kubectl diff {' '.join(arguments)}:\n{done.stdout}{done.stderr}")


def check_no_drift_of(*overlays):
    for overlay in overlays:
        check_no_drift(overlay, "--server-side", "-k", str(ROOT / overlay))
        check_no_drift(overlay, "-k", str(ROOT / overlay))


def objects_of(name, suspended):
    """What a user keeps in a repository."""
    patches = [{"manager": "example.com/team", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
        {"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": {"pool": "a"}}}}}}]}}}}]
    jobs = runtime()["spec"]["template"]["spec"]["replicatedJobs"]
    jobset = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": f"{name}-jobset"}, "spec": {
        "failurePolicy": {"maxRestarts": 1}, "replicatedJobs": jobs}}
    job = trainjob(f"{name}-job", trainer={"numNodes": 1, "env": [{"name": "A", "value": "1"}]}, runtimePatches=patches,
                   failurePolicy={"maxRestarts": 2})
    for each in (jobset, job):
        each["spec"]["suspend"] = suspended
    return [job, jobset]


def as_list(objects):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


@contextlib.contextmanager
def in_a_pod(controller):
    controller.start()
    try:
        yield controller
        controller.stop()
    finally:
        controller.kill()


def have_ended(cluster, name):
    return cluster.condition("trainjob", f"{name}-job", "Complete") and cluster.condition("jobset", f"{name}-jobset", "Completed") and \
        MARKER in cluster.get("trainjob", f"{name}-job")["metadata"].get("annotations", {})


def play(cluster, controller):
    """Jobs from their files to their ends, and a controller that is started again."""
    cluster.apply(runtime())
    by_server = as_list(objects_of("server", False))
    by_kubectl = as_list(objects_of("kubectl", False))
    waiting = as_list(objects_of("waiting", True))
    namespace = ("-n", cluster.namespace, "-f", "-")
    # Admission may need a moment until it has seen the runtime.
    wait_until("jobs are admitted", lambda: not run("kubectl", "apply", "--server-side", *namespace, text=by_server, check=False).returncode)
    run("kubectl", "apply", *namespace, text=by_kubectl)
    run("kubectl", "apply", *namespace, text=waiting)
    for name in ("server", "kubectl"):
        for job in ("job", "jobset"):
            set_pods(cluster, f"jobset.sigs.k8s.io/jobset-name={name}-{job}", "Running")
        wait_until("it runs", lambda name=name: phase(cluster, f"{name}-job") == "Running")
    controller.stop()
    controller.start()
    for name in ("server", "kubectl"):
        for job in ("job", "jobset"):
            set_pods(cluster, f"jobset.sigs.k8s.io/jobset-name={name}-{job}", "Succeeded")
        wait_until(f"the jobs of {name} have ended", lambda name=name: have_ended(cluster, name), seconds=60)
    wait_until("the status of what waits", lambda: phase(cluster, "waiting-job") == "Suspended")
    return (("--server-side", by_server), ("", by_kubectl), ("", waiting))


def trainjobs_controller(directory):
    controller = harness.Controller(directory, kubeconfig=rights_test.kubeconfig(directory), env={"KUBERNETES_SERVICE_HOST": HOST})
    config = pathlib.Path(directory) / "controller.yaml"
    config.write_text(config.read_text().replace("leaderElect: false", "leaderElect: true") + "marksFinishedJobs: true\n")
    return controller


def test_nothing_that_was_applied_differs_after_a_run(cluster):
    removed = rights_test.documents("manifests/overlays/controller-only", *INSTALLED[1:])
    run("kubectl", "-n", SYSTEM, "delete", "--ignore-not-found", "lease,secret", "--all")
    apply(*INSTALLED)
    rights_test.apply([rights_test.endpoints(MANAGER, SYSTEM)])
    try:
        with tempfile.TemporaryDirectory() as directory, in_a_pod(trainjobs_controller(directory)) as controller:
            wait_until("the webhooks have a CA", lambda: have_a_ca(f"mutating{WEBHOOKS}/defaulter.trainer.kubeflow.org",
                                                                   f"validating{WEBHOOKS}/validator.trainer.kubeflow.org"))
            # The API server may need a moment until it has the CA.
            wait_until("runtimes are admitted", lambda: not run(
                "kubectl", "apply", "--server-side", "--force-conflicts", "-k", str(ROOT / RUNTIMES), check=False).returncode)
            files = play(cluster, controller)
            check_no_drift_of(*INSTALLED, RUNTIMES)
            for way, text in files:
                check_no_drift("the jobs' files", *way.split(), "-n", cluster.namespace, "-f", "-", text=text)
            cluster.kubectl("delete", "trainjobs,jobsets", "--all", "--wait")
    finally:
        run("kubectl", "delete", "-k", str(ROOT / RUNTIMES), "--ignore-not-found", check=False)
        rights_test.uninstall(removed)


def v1_controller(directory):
    """The program as upstream's manager, as in v1_rights_test.py."""
    directory = pathlib.Path(directory)
    (directory / "manager").symlink_to(TRAINER)
    controller = harness.Controller(directory, kubeconfig=rights_test.kubeconfig(directory, "kubeflow", "training-operator"),
                                    env={"KUBERNETES_SERVICE_HOST": HOST, "MY_POD_NAMESPACE": "kubeflow"})
    controller.command = [str(directory / "manager"), "--leader-elect", f"--metrics-bind-address={HOST}:8443",
                          f"--health-probe-bind-address={HOST}:8081"]
    return controller


def test_nothing_of_v1_jobs_differs_after_a_run(cluster):
    removed = [o for o in rights_test.documents(*V1) if o["kind"] not in ("CustomResourceDefinition", "Namespace")]
    run("kubectl", "delete", "--ignore-not-found", "clusterroles", *(f"kubeflow-training-{level}" for level in ("view", "edit", "admin")))
    apply(*V1)
    rights_test.apply([rights_test.endpoints("training-operator", "kubeflow")])
    try:
        with tempfile.TemporaryDirectory() as directory, in_a_pod(v1_controller(directory)):
            wait_until("the webhooks have a CA", lambda: have_a_ca(f"validating{WEBHOOKS}/validator.training-operator.kubeflow.org"))
            files = {"--server-side": as_list([v1_test.pytorchjob("server")]), "": as_list([v1_test.pytorchjob("kubectl", backoffLimit=2)])}
            for way, text in files.items():
                wait_until("the job is admitted", lambda way=way, text=text: not run(
                    "kubectl", "apply", *way.split(), "-n", cluster.namespace, "-f", "-", text=text, check=False).returncode)
            v1_test.have(cluster, *(f"{name}-{role}-0" for name in ("kubectl", "server") for role in ("master", "worker")))
            for name in ("server", "kubectl"):
                v1_test.run_pod(cluster, f"{name}-master-0")
                v1_test.run_pod(cluster, f"{name}-master-0", "Succeeded", terminated={"exitCode": 0, "reason": "Completed"})
                wait_until("it has succeeded", lambda name=name: cluster.condition("pytorchjob", name, "Succeeded"))
            check_no_drift_of(*V1)
            for way, text in files.items():
                check_no_drift("the jobs' files", *way.split(), "-n", cluster.namespace, "-f", "-", text=text)
            cluster.kubectl("delete", "pytorchjobs", "--all", "--wait")
    finally:
        run("kubectl", "delete", "--ignore-not-found", "--timeout=60s", "-f", "-", text=rights_test.yaml.safe_dump_all(removed))
        run("kubectl", "-n", "kubeflow", "delete", "--ignore-not-found", "endpointslice/testbed")
        run("kubectl", "-n", "kubeflow", "delete", "leases", "--all")


if __name__ == "__main__":
    assert os.environ.get("KUBECONFIG"), "KUBECONFIG is not set"
    harness.main(__file__)
