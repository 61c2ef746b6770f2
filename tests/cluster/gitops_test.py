#!/usr/bin/python3
"""Objects in a repository stay as they are there: after a run `kubectl diff` of the installation and of users' objects is empty,
whether they were applied by the server or by kubectl.

The controllers run as in their pods, with the shipped manifests, as in rights_test.py; in the run their clock moves on by a day. Needs a
control plane without node, since the test ends the pods, and Debian's package faketime.
"""
import contextlib
import datetime
import json
import os
import pathlib
import shutil
import tempfile

import harness
import rights_test
import v1_test
from clients_test import runtime, trainjob
from harness import ROOT, Failed, run, wait_until
from monitoring_test import phase, set_pods
from restore_test import MARKER
from rights_test import HOST, MANAGER, SYSTEM

# These are applied together. Overlays with a Deployment of the same name cannot be: `data-cache` replaces `ha` at the end,
# and `kubeflow-platform` has a test of its own. The controller of `namespaced` does not run here: it only shows what others change of it.
INSTALLED = ("manifests/overlays/ha", "manifests/overlays/restrict-controller", "manifests/overlays/finished-marker",
             "manifests/overlays/legacy-finalizers", "manifests/overlays/exclusive-placement", "manifests/overlays/network-policy",
             "manifests/overlays/namespaced", "manifests/monitoring")
RUNTIMES = "manifests/overlays/runtimes"
DATA_CACHE, PLATFORM = "manifests/overlays/data-cache", "manifests/overlays/kubeflow-platform"
V1 = ("manifests/overlays/standalone", "manifests/overlays/kubeflow", "manifests/overlays/finished-marker-v1",
      "manifests/overlays/restrict-v1-controller")
KEPT = ("CustomResourceDefinition", "Namespace")
DAY = 86_400
WEBHOOKS = "webhookconfigurations"


@contextlib.contextmanager
def edited(*overlays):
    """The paths of these overlays in a copy of the manifests in which is edited what has to be: network-policy's addresses."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "manifests", f"{folder}/manifests")
        policy = pathlib.Path(folder) / "manifests/overlays/network-policy/network-policy.yaml"
        text = policy.read_text()
        assert text.count("{cidr: API_SERVER_CIDR}") == 1, text
        policy.write_text(text.replace("{cidr: API_SERVER_CIDR}", "{cidr: 10.0.0.0/8}"))
        yield tuple(f"{folder}/{overlay}" for overlay in overlays)


@contextlib.contextmanager
def prometheus_kinds():
    """Kinds of the Prometheus operator, which the test bed does not have, with any members."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    crds = [{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
             "metadata": {"name": f"{kind.lower()}s.monitoring.coreos.com"},
             "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced", "names": {"kind": kind, "plural": f"{kind.lower()}s"},
                      "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}]}}
            for kind in ("ServiceMonitor", "PrometheusRule")]
    rights_test.apply(crds)
    names = [crd["metadata"]["name"] for crd in crds]
    try:
        run("kubectl", "wait", "--for=condition=Established", "--timeout=30s", *(f"crd/{name}" for name in names))
        yield
    finally:
        run("kubectl", "delete", "--ignore-not-found", "--timeout=60s", "crd", *names)


class Clock:
    """The time that a process sees. Its timers continue as before."""

    def __init__(self, directory):
        run(str(ROOT / "tools/debian-packages"), "faketime")
        library, = pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
        self.file = pathlib.Path(directory) / "clock"
        self.env = {"LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(self.file), "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1"}
        self.move(0)

    def move(self, seconds):
        self.file.write_text(f"{seconds:+d}")


def hours_ahead(namespace, lease):
    """How far the clock of the holder of a Lease is ahead, by the time of its last renewal."""
    renewed = json.loads(run("kubectl", "-n", namespace, "get", "lease", lease, "-o", "json").stdout)["spec"]["renewTime"]
    at = datetime.datetime.fromisoformat(renewed.replace("Z", "+00:00"))
    return (at - datetime.datetime.now(datetime.timezone.utc)).total_seconds() / 3600


def have_a_ca(*configurations):
    return all(webhook["clientConfig"].get("caBundle") for each in configurations
               for webhook in json.loads(run("kubectl", "get", each, "-o", "json").stdout)["webhooks"])


def apply(*overlays):
    for overlay in overlays:
        run("kubectl", "apply", "--server-side", "--force-conflicts", "-k", str(ROOT / overlay))


def check_no_drift(what, *arguments, text=None):
    """`kubectl diff` ends with 1 where something differs, and with more where it could not look. It asks twice for each object, and what is
    written between shows as a difference: so a second one decides."""
    for _ in range(2):
        done = run("kubectl", "diff", *arguments, text=text, check=False)
        if done.returncode == 0:
            return
    else:
        raise Failed(f"{what} has changed: kubectl diff {' '.join(arguments)}:\n{done.stdout}{done.stderr}")


def check_no_drift_of(*overlays):
    for overlay in overlays:
        check_no_drift(overlay, "--server-side", "-k", str(ROOT / overlay))
        if harness.IS_LONG:
            check_no_drift(overlay, "-k", str(ROOT / overlay))


def objects_of(name, suspended):
    """The objects that a user keeps in a repository."""
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


def have_ended(cluster, name, is_marked):
    return cluster.condition("trainjob", f"{name}-job", "Complete") and cluster.condition("jobset", f"{name}-jobset", "Completed") and \
        is_marked == (MARKER in cluster.get("trainjob", f"{name}-job")["metadata"].get("annotations", {}))


def play(cluster, controller, a_day_passes, is_marked):
    """Jobs from their files to their ends, a day after they have begun, and a controller that is started again."""
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
    a_day_passes()
    controller.stop()
    controller.start()
    for name in ("server", "kubectl"):
        for job in ("job", "jobset"):
            set_pods(cluster, f"jobset.sigs.k8s.io/jobset-name={name}-{job}", "Succeeded")
        wait_until(f"the jobs of {name} have ended", lambda name=name: have_ended(cluster, name, is_marked), seconds=60)
    wait_until("the status of what waits", lambda: phase(cluster, "waiting-job") == "Suspended")
    return (("--server-side", by_server), ("", by_kubectl), ("", waiting))


def trainjobs_controller(directory, clock, namespace=SYSTEM):
    controller = harness.Controller(directory, "--namespace", namespace, kubeconfig=rights_test.kubeconfig(directory, namespace),
                                    env={"KUBERNETES_SERVICE_HOST": HOST, **clock.env})
    config = pathlib.Path(directory) / "controller.yaml"
    # The overlay that gives the right is for the usual namespace.
    marks = "marksFinishedJobs: true\n" if namespace == SYSTEM else ""
    config.write_text(config.read_text().replace("leaderElect: false", "leaderElect: true") + marks)
    return controller


def run_a_day(cluster, namespace, webhooks, *overlays, afterwards=lambda: None):
    """Plays, and looks at all that was applied. `afterwards`: while a controller runs."""
    with tempfile.TemporaryDirectory() as directory:
        clock = Clock(directory)

        def a_day_passes():
            clock.move(DAY)
            wait_until("the controller is a day ahead", lambda: 23.5 < hours_ahead(namespace, "trainer.kubeflow.org") < 24.5)

        with in_a_pod(trainjobs_controller(directory, clock, namespace)) as controller:
            wait_until("the webhooks have a CA", lambda: have_a_ca(*webhooks))
            # The API server may need a moment until it has the CA.
            wait_until("runtimes are admitted", lambda: not run(
                "kubectl", "apply", "--server-side", "--force-conflicts", "-k", str(ROOT / RUNTIMES), check=False).returncode)
            files = play(cluster, controller, a_day_passes, is_marked=namespace == SYSTEM)
            check_no_drift_of(*overlays, RUNTIMES)
            for way, text in files:
                check_no_drift("the jobs' files", *way.split(), "-n", cluster.namespace, "-f", "-", text=text)
            afterwards()
            cluster.kubectl("delete", "trainjobs,jobsets", "--all", "--wait")


def webhook_configurations(*more):
    return (f"mutating{WEBHOOKS}/defaulter.trainer.kubeflow.org", f"validating{WEBHOOKS}/validator.trainer.kubeflow.org",
            *(f"{kind}{WEBHOOKS}/{name}" for name in more for kind in ("mutating", "validating")))


def remove(namespace, *overlays):
    """But for CRDs and namespaces, which other tests use."""
    removed = [o for o in rights_test.documents(*overlays) if o["kind"] not in KEPT]
    # Webhooks first: nothing serves them any more.
    removed.sort(key=lambda o: not o["kind"].endswith("WebhookConfiguration"))
    run("kubectl", "delete", "-k", str(ROOT / RUNTIMES), "--ignore-not-found", check=False)
    rights_test.uninstall(removed)
    run("kubectl", "-n", namespace, "delete", "--ignore-not-found", "endpointslice/testbed", "lease/trainer.kubeflow.org")


def test_nothing_that_was_applied_differs_after_a_day(cluster):
    run("kubectl", "-n", SYSTEM, "delete", "--ignore-not-found", "lease,secret", "--all")
    with prometheus_kinds(), edited(*INSTALLED) as overlays:
        def data_cache_takes_its_place():
            if not harness.IS_LONG:
                return
            apply(DATA_CACHE)
            check_no_drift_of(DATA_CACHE, *overlays[1:], RUNTIMES)

        webhooks = webhook_configurations("jobset.trainer.kubeflow.org", "pods.jobset.trainer.kubeflow.org")
        try:
            apply(*overlays)
            rights_test.apply([rights_test.endpoints(MANAGER, SYSTEM)])
            run_a_day(cluster, SYSTEM, webhooks, *overlays, afterwards=data_cache_takes_its_place)
        finally:
            remove(SYSTEM, *overlays, DATA_CACHE)


@harness.only_with_long
def test_nothing_of_a_platform_differs_after_a_day(cluster):
    run("kubectl", "create", "namespace", "kubeflow", check=False)
    run("kubectl", "-n", "kubeflow", "delete", "--ignore-not-found", "lease,secret", "--all")
    try:
        apply(f"{PLATFORM}/controller")
        rights_test.apply([rights_test.endpoints(MANAGER, "kubeflow")])
        run_a_day(cluster, "kubeflow", webhook_configurations("jobset.trainer.kubeflow.org"), PLATFORM)
    finally:
        remove("kubeflow", f"{PLATFORM}/controller")


def v1_controller(directory, clock):
    """The program as upstream's manager, as in v1_rights_test.py."""
    controller = harness.Controller(directory, kubeconfig=rights_test.kubeconfig(directory, "kubeflow", "training-operator"),
                                    env={"KUBERNETES_SERVICE_HOST": HOST, "MY_POD_NAMESPACE": "kubeflow", **clock.env})
    controller.command = harness.manager_command(directory, "--leader-elect")
    return controller


@harness.only_with_long
def test_nothing_of_v1_jobs_differs_after_a_day(cluster):
    removed = [o for o in rights_test.documents(*V1) if o["kind"] not in KEPT]
    run("kubectl", "delete", "--ignore-not-found", "clusterroles", *(f"kubeflow-training-{level}" for level in ("view", "edit", "admin")))
    apply(*V1)
    rights_test.apply([rights_test.endpoints("training-operator", "kubeflow", harness.MANAGER_PORT)])
    try:
        with tempfile.TemporaryDirectory() as directory, in_a_pod(v1_controller(directory, clock := Clock(directory))):
            wait_until("the webhooks have a CA", lambda: have_a_ca(f"validating{WEBHOOKS}/validator.training-operator.kubeflow.org"))
            files = {"--server-side": as_list([v1_test.pytorchjob("server")]), "": as_list([v1_test.pytorchjob("kubectl", backoffLimit=2)])}
            for way, text in files.items():
                wait_until("the job is admitted", lambda way=way, text=text: not run(
                    "kubectl", "apply", *way.split(), "-n", cluster.namespace, "-f", "-", text=text, check=False).returncode)
            v1_test.have(cluster, *(f"{name}-{role}-0" for name in ("kubectl", "server") for role in ("master", "worker")))
            for name in ("server", "kubectl"):
                v1_test.run_pod(cluster, f"{name}-master-0")
                wait_until("it runs", lambda name=name: cluster.condition("pytorchjob", name, "Running"))
            clock.move(DAY)
            for name in ("server", "kubectl"):
                v1_test.run_pod(cluster, f"{name}-master-0", "Succeeded", terminated={"exitCode": 0, "reason": "Completed"})
                wait_until("it has succeeded", lambda name=name: cluster.condition("pytorchjob", name, "Succeeded"))
                ended = datetime.datetime.fromisoformat(cluster.get("pytorchjob", name)["status"]["completionTime"].replace("Z", "+00:00"))
                assert ended > datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=23), f"no day has passed: {ended}"
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
