#!/usr/bin/python3
"""The rights of the controller of V1 jobs, as rights_test.py tries those of TrainJobs: all of them are used, and each is needed. And
upstream's rights and CRDs, with which it works, too.

With EACH_RULE=yes the scenario runs once for each rule, without that rule. Needs a control plane without node and with an audit log
(AUDIT=yes).
"""
import json
import os
import tempfile
import threading
import time

import yaml

import harness
import quiet_test
import rights_test
from harness import ROOT, Failed, run, wait_until
from rights_test import Audit, Refused, documents, roles

SYSTEM, ACCOUNT = "kubeflow", "training-operator"
FRAMEWORKS = {"PyTorchJob": ("pytorch", "pytorchReplicaSpecs", "Master"), "TFJob": ("tensorflow", "tfReplicaSpecs", "Chief"),
              "XGBoostJob": ("xgboost", "xgbReplicaSpecs", "Master"), "PaddleJob": ("paddle", "paddleReplicaSpecs", "Master"),
              "JAXJob": ("jax", "jaxReplicaSpecs", "Worker"), "MPIJob": ("mpi", "mpiReplicaSpecs", "Launcher")}
# The API server asks about this when an object is created whose owner reference blocks a deletion, or a Role gives a right. It does not
# log that.
NOT_LOGGED = {("update", "kubeflow.org", f"{kind.lower()}s/finalizers") for kind in FRAMEWORKS} | {("create", "", "pods/exec")}
# Another client makes these after the controller has read, and before it makes its own.
ONLY_IN_RACES = {("get", "scheduling.volcano.sh", "podgroups"), ("get", "scheduling.x-k8s.io", "podgroups")}
# A client of the metrics is asked about where a configuration file says so.
ONLY_WITH_A_FILE = {("create", "authorization.k8s.io", "subjectaccessreviews")}


def shipped():
    return [o for o in documents("manifests/v1/controller") if o["kind"] != "Deployment"]


def role(container, replicas=1, restart="Never"):
    return {"replicas": replicas, "restartPolicy": restart,
            "template": {"spec": {"containers": [{"name": container, "image": "localhost/none:1"}]}}}


def job(kind, name, roles_=None, **more):
    container, specs, first = FRAMEWORKS[kind]
    wanted = roles_ or {first: role(container)}
    if kind == "MPIJob":
        wanted.setdefault("Worker", role(container))
    spec = {"runPolicy": more.pop("runPolicy", {}), specs: wanted, **more}
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


class Scenario(rights_test.Scenario):
    """One life of the program as upstream's manager, with jobs of all kinds."""

    def __init__(self, namespace, directory, gang):
        self.cluster = harness.Cluster(namespace)
        self.gang = gang
        self.audit = Audit(self.cluster.namespace, SYSTEM, ACCOUNT)
        self.api = rights_test.Api(os.environ["KUBECONFIG"])
        self.controller = harness.Controller(
            directory, kubeconfig=rights_test.kubeconfig(directory, SYSTEM, ACCOUNT),
            env={"KUBERNETES_SERVICE_HOST": rights_test.HOST, "MY_POD_NAMESPACE": SYSTEM})
        self.controller.command = harness.manager_command(directory, "--leader-elect", "--gang-scheduler-name=" + gang)

    def live(self):
        for step in (self.create, self.finish, self.restart, self.change, self.meet_conflicts):
            step()

    def have_webhooks_a_ca(self):
        found = json.loads(run("kubectl", "get", "validatingwebhookconfigurations", "validator.training-operator.kubeflow.org",
                               "-o", "json").stdout)
        return all(w["clientConfig"].get("caBundle") for w in found["webhooks"])

    def create(self):
        metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
        objects = [
            job("PyTorchJob", "elastic", {"Worker": role("pytorch", 2)}, elasticPolicy={"maxReplicas": 3, "metrics": [metric]}),
            job("PyTorchJob", "retried", {"Master": role("pytorch", restart="OnFailure")},
                runPolicy={"backoffLimit": 1, "cleanPodPolicy": "None"}),
            *(job(kind, f"short-{kind.lower()}", runPolicy={"ttlSecondsAfterFinished": 0, "activeDeadlineSeconds": 1})
              for kind in FRAMEWORKS),
            *(job(kind, f"changed-{kind.lower()}") for kind in FRAMEWORKS),
            # In the way of what jobs of these names need.
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "taken-master-0"},
             "spec": {"containers": [{"name": "a", "image": "localhost/none:1"}]}},
            job("PyTorchJob", "taken")]
        # The API server may need a moment until it has the CA.
        self.wait("jobs are admitted", lambda: not run("kubectl", "-n", self.cluster.namespace, "apply", "-f", "-", check=False,
                                                       text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})).returncode)
        group = "scheduling.volcano.sh" if self.gang == "volcano" else "scheduling.x-k8s.io"
        self.wait_for(("create", group, "podgroups"))
        if self.gang == "volcano":
            self.wait("all gangs may start", self.enqueue_gangs)
        self.wait_for(("create", "autoscaling", "horizontalpodautoscalers"),
                      *(("create", "rbac.authorization.k8s.io", kind) for kind in ("roles", "rolebindings")),
                      ("create", "", "serviceaccounts"), ("create", "", "configmaps"), ("create", "", "services"))

    def enqueue_gangs(self):
        """Acts like Volcano's scheduler. True once there is a PodGroup of each job."""
        groups = self.cluster.list("podgroups.scheduling.volcano.sh")
        if len(groups) < 3 + 2 * len(FRAMEWORKS):   # those of the short jobs go as soon as they may start
            return False
        for o in groups:
            self.cluster.kubectl("patch", "podgroups.scheduling.volcano.sh", o["metadata"]["name"], "--type=merge", "-p",
                                 '{"status": {"phase": "Inqueue"}}', check=False)
        return True

    def finish(self):
        self.wait_for(*(("delete", "kubeflow.org", f"{kind.lower()}s") for kind in FRAMEWORKS))

    def restart(self):
        """A container that waits for its restart beyond the limit is ended by a patch of its pod."""
        self.wait("the pod to restart", lambda: self.cluster.get("pod", "retried-master-0"))
        status = {"phase": "Running", "containerStatuses": [{
            "name": "pytorch", "image": "x", "imageID": "x", "ready": False, "restartCount": 3,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-01-01T00:00:00Z"}}}]}
        code, answer = self.patch(self.api, "Pod", "retried-master-0", {"status": status}, "/status")
        assert code == 200, answer
        self.wait_for(("patch", "", "pods"))

    def change(self):
        """Changes of others while the controller was away are undone; changes of jobs reach the objects that they own; a suspended job has no
        autoscaler."""
        self.controller.stop()
        others = [{"kind": "ServiceAccount", "name": "default"}]
        self.cluster.kubectl("patch", "rolebinding", "changed-mpijob-launcher", "--type=merge", "-p", json.dumps({"subjects": others}))
        self.controller.start()
        for kind, name, change in (("MPIJob", "changed-mpijob", {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}}),
                                   ("PyTorchJob", "elastic", {"elasticPolicy": {"maxReplicas": 4}})):
            self.wait(f"{name} is changed", lambda row=(kind, name, {"spec": change}): self.patch(self.api, *row)[0] == 200)
        group = "scheduling.volcano.sh" if self.gang == "volcano" else "scheduling.x-k8s.io"
        self.wait_for(("patch", "autoscaling", "horizontalpodautoscalers"), ("patch", "", "configmaps"), ("patch", group, "podgroups"),
                      *(("patch", "rbac.authorization.k8s.io", kind) for kind in ("roles", "rolebindings")))
        code, answer = self.patch(self.api, "PyTorchJob", "elastic", {"spec": {"runPolicy": {"suspend": True}}})
        assert code == 200, answer
        self.wait_for(("delete", "autoscaling", "horizontalpodautoscalers"))

    def meet_conflicts(self):
        """Statuses whose objects have changed meanwhile are read again, and so are dependents: all are changed all the time."""
        is_over = threading.Event()

        def disturb(kind):
            api, number, name = rights_test.Api(os.environ["KUBECONFIG"]), 0, f"changed-{kind.lower()}"
            path = api.path(kind, self.cluster.namespace, name)
            while not is_over.is_set():
                number += 1
                api.call("PATCH", path, {"metadata": {"annotations": {"example.com/number": str(number)}}}, "application/merge-patch+json")

        threads = [threading.Thread(target=disturb, args=(kind,)) for kind in FRAMEWORKS]
        for thread in threads:
            thread.start()
        wanted = {("get", "kubeflow.org", f"{kind.lower()}s") for kind in FRAMEWORKS} | {("patch", "", "events")}
        state = {"suspend": False}

        def have_met():
            state["suspend"] = not state["suspend"]
            for kind in FRAMEWORKS:
                self.patch(self.api, kind, f"changed-{kind.lower()}", {"spec": {"runPolicy": {"suspend": state["suspend"]}}})
            return wanted <= self.audit.used

        try:
            self.wait("conflicts", have_met, seconds=90)
        except Failed as late:
            if isinstance(late, Refused):
                raise
            raise Failed(f"{sorted(wanted - self.audit.used)}: {late}") from late
        finally:
            is_over.set()
            for thread in threads:
                thread.join()

    def clean_up(self):
        self.cluster.kubectl("delete", ",".join(f"{kind.lower()}s.kubeflow.org" for kind in FRAMEWORKS), "--all", "--wait=false", check=False)
        self.cluster.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false", check=False)


def install(objects):
    run("kubectl", "delete", "--ignore-not-found", "clusterrolebinding", "testbed-webhooks")
    run("kubectl", "create", "namespace", SYSTEM, check=False)
    run("kubectl", "-n", SYSTEM, "delete", "--ignore-not-found", "lease,secret", "--all")
    for crds in ("tests/conformance/crds", "manifests/v1/crds"):
        run("kubectl", "apply", "--server-side", "--force-conflicts", "-f", str(ROOT / crds))
        run("kubectl", "wait", "--for=condition=Established", "--timeout=30s", "-f", str(ROOT / crds))
    rights_test.apply([*objects, rights_test.endpoints(ACCOUNT, SYSTEM, harness.MANAGER_PORT)])


def uninstall(objects):
    run("kubectl", "delete", "--ignore-not-found", "--timeout=60s", "-f", "-", text=json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": objects}))
    run("kubectl", "-n", SYSTEM, "delete", "--ignore-not-found", "endpointslice/testbed")
    run("kubectl", "delete", "--ignore-not-found", "--timeout=60s", "-f", str(ROOT / "tests/conformance/crds"))


def perform(cluster, objects, namespace=None, gangs=("volcano",)):
    """The scenario under these manifests, with each gang scheduler; the rights that were used."""
    install(objects)
    used = set()
    try:
        for gang in gangs:
            # Objects of jobs that were deleted stay for a while.
            own = f"{namespace or cluster.namespace}-{gang}"
            run("kubectl", "delete", "namespace", own, "--ignore-not-found", "--wait", "--timeout=60s")
            run("kubectl", "create", "namespace", own)
            with tempfile.TemporaryDirectory() as directory:
                scenario = Scenario(own, directory, gang)
                try:
                    scenario.run()
                    used |= scenario.audit.used
                finally:
                    scenario.clean_up()
                    run("kubectl", "delete", "namespace", own, "--wait=false")
        return used
    finally:
        uninstall(objects)


def test_every_right_is_used(cluster):
    """Under the policies of overlays/restrict-v1-controller, which take away nothing that the controller does."""
    objects = shipped()
    policies = [o for o in documents("manifests/overlays/restrict-v1-controller") if o["kind"].startswith("ValidatingAdmissionPolicy")]
    assert policies, "the overlay has no policies"
    used = perform(cluster, [*objects, *policies], gangs=("volcano", "scheduler-plugins"))
    granted = {right for r in roles(objects, ACCOUNT) for rule in r["rules"] for right in rights_test.rights(rule)}
    assert len(granted) > 50, f"these are not the shipped rules: {granted}"
    idle = granted - used - NOT_LOGGED - ONLY_IN_RACES - ONLY_WITH_A_FILE
    assert not idle, f"granted, and not used: {sorted(idle)}"


def without_each_rule(cluster):
    rights_test.check_each_rule(shipped(), ACCOUNT, lambda objects, namespace: perform(cluster, objects, namespace),
                                ONLY_WITH_A_FILE)


if os.environ.get("EACH_RULE") == "yes":
    test_each_rule_is_needed = without_each_rule


# ---- only the image of upstream's manifests is changed

EVERYTHING = ["create", "delete", "get", "list", "patch", "update", "watch"]
# Groups, resources, verbs of upstream's ClusterRole (release 1.9).
UPSTREAMS_RIGHTS = [
    ("", ["configmaps"], ["create", "list", "update", "watch"]),
    ("", ["events", "pods"], EVERYTHING),
    ("", ["pods/exec"], ["create"]),
    ("", ["secrets"], ["get", "list", "update", "watch"]),
    ("", ["serviceaccounts"], ["create", "get", "list", "watch"]),
    ("", ["services"], ["create", "delete", "get", "list", "watch"]),
    ("admissionregistration.k8s.io", ["validatingwebhookconfigurations"], ["get", "list", "update", "watch"]),
    ("autoscaling", ["horizontalpodautoscalers"], EVERYTHING),
    ("kubeflow.org", [f"{kind.lower()}s" for kind in FRAMEWORKS], EVERYTHING),
    ("kubeflow.org", [f"{kind.lower()}s/finalizers" for kind in FRAMEWORKS], ["update"]),
    ("kubeflow.org", [f"{kind.lower()}s/status" for kind in FRAMEWORKS], ["get", "patch", "update"]),
    ("rbac.authorization.k8s.io", ["roles", "rolebindings"], ["create", "list", "update", "watch"]),
    ("scheduling.volcano.sh", ["podgroups"], EVERYTHING),
    ("scheduling.x-k8s.io", ["podgroups"], EVERYTHING)]

# These requests are refused: a patch, before an update is sent instead; and the question whether another leader exists.
INSTEAD_OF = {("patch", "", "secrets"), ("patch", "admissionregistration.k8s.io", "validatingwebhookconfigurations"),
              ("list", "coordination.k8s.io", "leases")}


def upstreams_objects():
    rbac = "rbac.authorization.k8s.io"
    others = [o for o in shipped() if not o["apiVersion"].startswith(rbac)]
    return [*others, {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": ACCOUNT}, "rules": [
        {"apiGroups": [group], "resources": resources, "verbs": verbs} for group, resources, verbs in UPSTREAMS_RIGHTS]},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": ACCOUNT},
         "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": ACCOUNT},
         "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SYSTEM}]}]


def upstreams_crds():
    """Those of this project without what upstream's do not have in a status, which the API server then drops."""
    crds = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "manifests/v1/crds").glob("*.yaml"))]
    for crd in crds:
        status = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        for member in ("restarts", "restartedPods", "firstFailure"):
            del status[member]
    assert len(crds) == len(FRAMEWORKS)
    return crds


def set_pod(cluster, name, phase, **of_container):
    status = {"phase": phase, "containerStatuses": [
        {"name": "pytorch", "image": "x", "imageID": "x", "ready": False, "restartCount": 0, **of_container}]}
    cluster.kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))


def live_with_upstreams_manifests(cluster, directory):
    controller = harness.Controller(directory, kubeconfig=rights_test.kubeconfig(directory, SYSTEM, ACCOUNT),
                                    env={"KUBERNETES_SERVICE_HOST": rights_test.HOST, "MY_POD_NAMESPACE": SYSTEM})
    controller.command = harness.manager_command(directory)
    audit = Audit(cluster.namespace, SYSTEM, ACCOUNT)
    two = {"Master": role("pytorch"), "Worker": role("pytorch", restart="ExitCode")}
    controller.start()
    try:
        refused = job("PyTorchJob", "refused", {"Master": role("pytorch", 2)})
        wait_until("admission refuses a job with two masters", lambda: "validator.pytorchjob" in run(
            "kubectl", "-n", cluster.namespace, "apply", "-f", "-", text=json.dumps(refused), check=False).stderr)
        cluster.apply(job("PyTorchJob", "limited", two, runPolicy={"backoffLimit": 1}), job("PyTorchJob", "calm", two))
        # A container that was restarted in its pod is what a status has as its first failure.
        ended = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-01-01T00:00:00Z"}}
        running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        wait_until("the pods of calm", lambda: cluster.get("pod", "calm-master-0"))
        set_pod(cluster, "calm-master-0", "Running", restartCount=1, state=running, lastState=ended)
        wait_until("calm runs", lambda: cluster.condition("pytorchjob", "calm", "Running"))

        def worker():
            return (cluster.get("pod", "limited-worker-0") or {"metadata": {"uid": None}})["metadata"]["uid"]

        first = wait_until("the pods of limited", worker)
        failed = {"state": {"terminated": {"exitCode": 137, "reason": "Error"}}}
        set_pod(cluster, "limited-worker-0", "Failed", **failed)
        second = wait_until("the worker is made again", lambda: worker() not in (None, first) and worker())
        set_pod(cluster, "limited-worker-0", "Failed", **failed)
        end = wait_until("limited has Failed", lambda: cluster.condition("pytorchjob", "limited", "Failed"))
        assert end["message"] == "Job limited has failed because it has reached the specified backoff limit", end
        assert worker() == second, "the pod that failed last is gone"
        status = cluster.get("pytorchjob", "limited")["status"]
        assert not {"restarts", "restartedPods", "firstFailure"} & set(status), status

        quiet_test.settle()
        began = quiet_test.mark()
        cluster.kubectl("annotate", "pytorchjobs,pods", "--all", "example.com/looked-at=yes")
        time.sleep(5)   # the claim is about time that passes
        asked = {what for what in quiet_test.requests_since(began) if what[1] != "secrets"}   # the certificates are looked at now and then
        assert not asked, f"asked while nothing changed: {asked}"
        set_pod(cluster, "calm-worker-0", "Running", state=running)
        wait_until("calm has two", lambda: cluster.get("pytorchjob", "calm")["status"]["replicaStatuses"]["Worker"].get("active") == 1)
        assert ("patch", "pytorchjobs", "status") in quiet_test.requests_since(began), "the audit log does not show what it writes"
        audit.read()
        assert {right[:3] for right in audit.refused} == INSTEAD_OF, audit.refused
        controller.stop()
    finally:
        controller.kill()


def test_only_the_image_of_upstreams_manifests_is_changed(cluster):
    objects = upstreams_objects()
    install(objects)
    try:
        run("kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-", text=yaml.safe_dump_all(upstreams_crds()))
        with tempfile.TemporaryDirectory() as directory:
            live_with_upstreams_manifests(cluster, directory)
    finally:
        run("kubectl", "apply", "--server-side", "--force-conflicts", "-f", str(ROOT / "manifests/v1/crds"))
        cluster.kubectl("delete", "pytorchjobs", "--all", "--wait=false", check=False)
        uninstall(objects)


if __name__ == "__main__":
    harness.main(__file__)
