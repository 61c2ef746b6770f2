#!/usr/bin/python3
"""The controller's rights: all of them are used, each is needed, and what a stolen token could do with them is fenced.

The controller runs as it does in its pod, with the shipped manifests: it finds its webhooks installed, makes certificates, holds a
Lease. Only the Deployment is replaced by a process of this host, and the Service's pods by its address. One scenario does all that takes a
right; the API server's audit log says which rights it used. With EACH_RULE=yes it runs once for each rule, without that rule.

Needs a control plane without node and with an audit log (AUDIT=yes).
"""
import copy
import datetime
import json
import os
import pathlib
import shutil
import ssl
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import yaml

import harness
from harness import ROOT, Failed, run

sys.path.insert(0, str(ROOT / "tests/conformance"))
from conform import Api  # noqa: E402

TRAINER, JOBSET = "trainer.kubeflow.org/v1alpha1", "jobset.x-k8s.io/v1alpha2"
SYSTEM = "kubeflow-system"
MANAGER = "kubeflow-trainer-controller-manager"
FINALIZER = "trainer.kubeflow.org/resource-in-use"
NAME = "jobset.sigs.k8s.io/jobset-name"
HOST = os.environ.get("TESTBED_HOST")
# The API server asks about this when an object is created whose owner reference blocks a deletion. It does not log that.
NOT_LOGGED = {("update", "trainer.kubeflow.org", "trainjobs/finalizers"), ("update", "jobset.x-k8s.io", "jobsets/finalizers")}
# A Service that another client makes after the controller has looked, and before it makes its own.
ONLY_IN_RACES = {("get", "", "services")}
# gangs_test.py uses these, where the API server serves the kinds.
OF_NATIVE_GANGS = {(verb, "scheduling.k8s.io", kind) for verb in ("create", "get", "patch") for kind in ("podgroups", "workloads")}


class Refused(Failed):
    """The API server has refused a request of the controller."""


# ---- what is installed


def documents(*overlays):
    return [o for path in overlays for o in yaml.safe_load_all(run("kubectl", "kustomize", str(ROOT / path)).stdout) if o]


def shipped():
    """The manifests with every option but exclusive placement, whose rights placement_test.py tries; without the Deployment."""
    return [o for o in documents("manifests/overlays/controller-only", "manifests/overlays/legacy-finalizers",
                                 "manifests/overlays/restrict-controller") if o["kind"] != "Deployment"]


def roles(objects, account=MANAGER):
    """The ClusterRoles and Roles that are bound to the controller."""
    bound = {(o["roleRef"]["kind"], o["roleRef"]["name"]) for o in objects if o["kind"] in ("ClusterRoleBinding", "RoleBinding")
             and any(s.get("name") == account for s in o["subjects"])}
    return [o for o in objects if (o["kind"], o["metadata"]["name"]) in bound]


def rights(rule):
    return {(verb, group, resource) for verb in rule["verbs"] for group in rule["apiGroups"] for resource in rule["resources"]}


def apply(objects):
    run("kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-", text=yaml.safe_dump_all(objects))


def install(objects):
    # These are of other tests, which give the controller more.
    run("kubectl", "delete", "--ignore-not-found", "clusterrolebinding", "testbed-webhooks", "kubeflow-trainer-exclusive-placement")
    run("kubectl", "-n", SYSTEM, "delete", "--ignore-not-found", "lease,secret", "--all")
    run("kubectl", "apply", "--server-side", "-f", str(ROOT / "tests/conformance/crds"))
    run("kubectl", "wait", "--for=condition=Established", "--timeout=30s", "-f", str(ROOT / "tests/conformance/crds"))
    apply([
        *objects, endpoints(MANAGER, SYSTEM),
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "rights-test"}, "value": 1},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "rights-test"}, "spec": {"unschedulable": True}}])


def uninstall(objects):
    run("kubectl", "delete", "--ignore-not-found", "--timeout=60s", "-f", "-", text=yaml.safe_dump_all(objects))
    run("kubectl", "-n", SYSTEM, "delete", "--ignore-not-found", "endpointslice/testbed", "lease/trainer.kubeflow.org")
    run("kubectl", "delete", "--ignore-not-found", "node/rights-test", "priorityclass/rights-test")
    run("kubectl", "delete", "--ignore-not-found", "--timeout=60s", "-f", str(ROOT / "tests/conformance/crds"))


def endpoints(service, namespace, port=9443):
    """The API server sends reviews to the addresses that it finds here."""
    return {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "testbed", "namespace": namespace, "labels": {"kubernetes.io/service-name": service}},
        "endpoints": [{"addresses": [HOST], "conditions": {"ready": True}}],
        "ports": [{"name": "webhook-server", "port": port, "protocol": "TCP"}]}


def kubeconfig(directory, namespace=SYSTEM, account=MANAGER):
    path = pathlib.Path(directory) / "kubeconfig"
    shutil.copy(os.environ["KUBECONFIG"], path)
    run("kubectl", "--kubeconfig", str(path), "config", "unset", "users")
    token = run("kubectl", "-n", namespace, "create", "token", account).stdout.strip()
    run("kubectl", "--kubeconfig", str(path), "config", "set-credentials", "admin", f"--token={token}")
    return path


# ---- the audit log


class Audit:
    """The requests of the controller since this was made, and which of them were refused."""

    def __init__(self, namespace, system=SYSTEM, account=MANAGER):
        self.user = f"system:serviceaccount:{system}:{account}"
        self.position = harness.audit_log().stat().st_size
        self.namespaces = (None, namespace, system)   # those of earlier tests are on their way out, and take nothing new
        self.used, self.refused = set(), []

    def read(self):
        with open(harness.audit_log(), "rb") as log:
            log.seek(self.position)
            lines = log.read()
        whole = lines.rfind(b"\n") + 1
        self.position += whole
        for line in lines[:whole].splitlines():
            entry = json.loads(line)
            if entry["user"]["username"] == self.user:
                self.take(entry)

    def take(self, entry):
        what, verb, code = entry.get("objectRef", {}), entry["verb"], entry.get("responseStatus", {}).get("code")
        if what.get("namespace") not in self.namespaces or "resource" not in what:
            return
        resource = what["resource"] + ("/" + what["subresource"] if "subresource" in what else "")
        right = (verb, what.get("apiGroup", ""), resource)
        if code == 403:
            self.refused.append((*right, what.get("name")))
            return
        self.used.add(right)
        if verb == "patch" and code == 201:   # an apply of what does not exist takes both rights
            self.used.add(("create", *right[1:]))


# ---- the scenario


def pod(**spec):
    return {"spec": {"restartPolicy": "Never", "containers": [{"name": "node", "image": "localhost/none:1"}], **spec}}


def replicated_job(name="node", step="trainer", **spec):
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": step} if step else {}
    return {"name": name, "template": {"metadata": {"labels": labels}, "spec": {"backoffLimit": 0, "template": pod(**spec)}}}


def runtime(name, *jobs, policy=None, **spec):
    return {"apiVersion": TRAINER, "kind": "TrainingRuntime", "metadata": {"name": name}, "spec": {
        "mlPolicy": {"numNodes": 1, **(policy or {"torch": {}})},
        "template": {"spec": {"replicatedJobs": list(jobs) or [replicated_job()]}}, **spec}}


def trainjob(name, ref, kind="TrainingRuntime", **spec):
    return {"apiVersion": TRAINER, "kind": "TrainJob", "metadata": {"name": name}, "spec": {"runtimeRef": {"name": ref, "kind": kind}, **spec}}


def jobset(name, annotations=None, pod_spec=None, **spec):
    return {"apiVersion": JOBSET, "kind": "JobSet", "metadata": {"name": name, "annotations": annotations or {}}, "spec": {
        **spec, "replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": {
            "backoffLimit": 0, "parallelism": 1, "completions": 1, "completionMode": "Indexed", "template": pod(**(pod_spec or {}))}}}]}}


def queue_patch(pool):
    change = {"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": {"pool": pool}}}}}}
    return [{"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [change]}}}}]


def legacy(o, kind, name):
    """A runtime of v2.0 to v2.2. It goes past the webhook, so that it can be removed while there is no controller."""
    return {**o, "kind": kind, "metadata": {"name": name, "finalizers": [FINALIZER],
                                            "labels": {"trainer.kubeflow.org/webhook-validation": "disabled"}}}


class Scenario:
    def __init__(self, cluster, directory, namespace=None):
        self.cluster = harness.Cluster(namespace or cluster.namespace)
        self.audit = Audit(self.cluster.namespace)
        self.api = Api(os.environ["KUBECONFIG"])
        self.everywhere = self.cluster.namespace + "-everywhere"
        # In a pod's environment the webhooks are those of the manifests.
        self.controller = harness.Controller(directory, kubeconfig=kubeconfig(directory), env={"KUBERNETES_SERVICE_HOST": HOST})
        config = pathlib.Path(directory) / "controller.yaml"
        config.write_text(config.read_text().replace("leaderElect: false", "leaderElect: true")
                          .replace("secureServing: false", "secureServing: true, auth: {enabled: true}")
                          + "featureGates: {TrainJobStatus: true}\nremoveLegacyFinalizers: true\n")

    def wait(self, what, probe, seconds=60, shown=None):
        """Like wait_until, but ends at once when a request of the controller is refused."""
        end = time.monotonic() + seconds
        while True:
            self.audit.read()
            if self.audit.refused:
                raise Refused(f"refused: {self.audit.refused}")
            if found := probe():
                return found
            if time.monotonic() > end:
                raise Failed(f"not within {seconds} s: {what}" + (f"; {shown()}" if shown else "") + f"\n{self.controller.said()[-3000:]}")
            time.sleep(0.1)

    def wait_for(self, *wanted):
        try:
            self.wait("requests", lambda: set(wanted) <= self.audit.used)
        except Failed as late:
            if isinstance(late, Refused):
                raise
            raise Failed(f"{sorted(set(wanted) - self.audit.used)}: {late}") from late

    def patch(self, api, kind, name, change, subresource=""):
        return api.call("PATCH", api.path(kind, self.cluster.namespace, name) + subresource, change, "application/merge-patch+json")

    def suspend(self, name, value):
        code, answer = self.patch(self.api, "TrainJob", name, {"spec": {"suspend": value}})
        assert code in (200, 409), answer   # 409: changed by others all the time

    def pods(self, owner):
        return [p for p in self.cluster.list("pods", "-l", f"{NAME}={owner}") if "deletionTimestamp" not in p["metadata"]]

    def pod_of(self, owner):
        return self.wait(f"a pod of {owner}", lambda: self.pods(owner))[0]

    def run(self):
        self.controller.start(wait=False)
        try:
            self.wait("the controller is ready", self.controller.is_ready)
            self.wait("the webhooks have a CA", self.have_webhooks_a_ca)
            self.live()
            self.controller.stop()   # gives the Lease back
            self.audit.read()
        except AssertionError as error:
            self.audit.read()
            if self.audit.refused:   # as admission that could not read what it needs refuses an object of a user
                raise Refused(f"refused: {self.audit.refused}") from error
            raise
        finally:
            self.controller.kill()

    def live(self):
        """All that takes a right."""
        self.create()
        for step in (self.resume_with_keys_and_gangs, self.move, self.restart, self.place, self.report, self.ask_for_metrics,
                     self.meet_conflicts):
            step()
        self.wait_for(("delete", "trainer.kubeflow.org", "trainjobs"), ("delete", "jobset.x-k8s.io", "jobsets"),
                      ("list", "", "events"), ("patch", "", "events"), ("get", "batch", "jobs"),
                      ("patch", "trainer.kubeflow.org", "trainingruntimes"), ("patch", "trainer.kubeflow.org", "clustertrainingruntimes"))

    def have_webhooks_a_ca(self):
        for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            found = json.loads(run("kubectl", "get", kind, "-o", "json").stdout)["items"]
            if not all(w["clientConfig"].get("caBundle") for o in found for w in o["webhooks"]):
                return False
        return True

    def create(self):
        mpi = {"mpi": {"mpiImplementation": "OpenMPI", "runLauncherAsNode": True}}
        gang = {"podGroupPolicy": {"coscheduling": {}}}
        objects = [
            runtime("plain"), runtime("unserved", replicated_job(serviceAccountName="missing")),
            runtime("mpi", replicated_job(step=None), replicated_job("launcher"), policy=mpi, **gang),
            runtime("volcano", replicated_job(priorityClassName="rights-test"), podGroupPolicy={"volcano": {}}),
            legacy(runtime("-"), "TrainingRuntime", "before"), legacy(runtime("-"), "ClusterTrainingRuntime", self.everywhere),
            # In the way of what the JobSet of this name needs.
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "taken-w-0"}, "spec": {"suspend": True, "template": pod()}}]
        # The API server may need a moment until it has the CA.
        refusals = []

        def are_admitted():
            done = run("kubectl", "-n", self.cluster.namespace, "apply", "-f", "-", check=False, text=yaml.safe_dump_all(objects))
            refusals.append(done.stderr)
            return done.returncode == 0

        self.wait("runtimes are admitted", are_admitted, seconds=30, shown=lambda: refusals[-1])
        claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
        mounted = {"containers": [{"name": "main", "image": "localhost/none:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}
        self.cluster.apply(
            trainjob("mpi", "mpi", suspend=True, trainer={"numNodes": 2}), trainjob("volcano", "volcano", suspend=True),
            trainjob("queued", "plain", suspend=True, runtimePatches=queue_patch("a")),
            trainjob("late", "plain", activeDeadlineSeconds=5, ttlSecondsAfterFinished=1), trainjob("stuck", "unserved"),
            trainjob("everywhere", self.everywhere, "ClusterTrainingRuntime"),
            jobset("restarts", failurePolicy={"maxRestarts": 1}, volumeClaimPolicies=[{"templates": [claim]}], pod_spec=mounted),
            jobset("taken"),
            jobset("placed", {"alpha.jobset.sigs.k8s.io/exclusive-topology": "kubernetes.io/hostname"}, {"schedulerName": "none"}))

    def resume_with_keys_and_gangs(self):
        for name, group in (("mpi", "scheduling.x-k8s.io"), ("volcano", "scheduling.volcano.sh")):
            self.wait(f"the JobSet of {name}", lambda name=name: self.cluster.get("jobset", name))
            self.wait_for(*((verb, group, "podgroups") for verb in ("create", "get", "patch")))
        self.suspend("mpi", False)
        self.pod_of("mpi")
        self.wait_for(("get", "", "secrets"), ("patch", "", "configmaps"), ("get", "scheduling.k8s.io", "priorityclasses"))

    def move(self):
        """Acts like a queue: the second start is elsewhere, and a Job that has run gets other node selectors."""
        self.wait("queued is suspended", lambda: self.cluster.condition("trainjob", "queued", "Suspended"))
        self.suspend("queued", False)
        self.pod_of("queued")
        self.wait("its Job has begun", lambda: (self.cluster.get("job", "queued-node-0").get("status") or {}).get("startTime"))
        self.suspend("queued", True)
        self.wait("no Job is active", lambda: not any(
            j.get("active") for j in self.cluster.get("trainjob", "queued")["status"].get("jobsStatus", [])) and not self.pods("queued"))

        def is_moved():
            return self.patch(self.api, "TrainJob", "queued", {"spec": {"runtimePatches": queue_patch("b")}})[0] == 200

        self.wait("its patch is changed", is_moved)
        self.suspend("queued", False)
        self.wait_for(("patch", "batch", "jobs"), ("patch", "batch", "jobs/status"))

    def restart(self):
        name = self.pod_of("restarts")["metadata"]["name"]
        code, answer = self.patch(self.api, "Pod", name, {"status": {"phase": "Failed"}}, "/status")
        assert code == 200, answer
        self.wait_for(("delete", "batch", "jobs"), ("create", "", "persistentvolumeclaims"), ("get", "", "persistentvolumeclaims"))

    def place(self):
        name = self.pod_of("placed")["metadata"]["name"]
        code, answer = self.api.call("POST", self.api.path("Pod", self.cluster.namespace, name) + "/binding",
                                     {"metadata": {"name": name}, "target": {"kind": "Node", "name": "rights-test"}})
        assert code < 300, answer
        self.wait_for(("get", "admissionregistration.k8s.io", "validatingwebhookconfigurations"))

    def report(self):
        path = f"{TRAINER}/namespaces/{self.cluster.namespace}/trainjobs/everywhere/status"
        token = self.cluster.kubectl("create", "token", "default", f"--audience={path}", "--bound-object-kind=Pod",
                                     "--bound-object-name=" + self.pod_of("everywhere")["metadata"]["name"]).strip()
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        body = {"trainerStatus": {"lastUpdatedTime": now, "progressPercentage": 7}}
        self.wait("the report is taken", lambda: self.ask(f"10443/apis/{path}", token, body) == 200)
        self.wait("the report is shown", lambda: (self.cluster.get("trainjob", "everywhere")["status"].get("trainerStatus") or {}).get(
            "progressPercentage") == 7)

    def ask(self, path, token, body=None):
        """The status of an answer by the controller."""
        headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        request = urllib.request.Request(f"https://{HOST}:{path}", headers=headers, data=body and json.dumps(body).encode())
        try:
            # Its certificate is for the Service's name.
            return urllib.request.urlopen(request, timeout=10, context=ssl._create_unverified_context()).status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def ask_for_metrics(self):
        token = self.cluster.kubectl("create", "token", "default").strip()
        self.wait("a client without the right is refused", lambda: self.ask("8443/metrics", token) == 403)
        self.wait_for(("create", "authorization.k8s.io", "subjectaccessreviews"))

    def meet_conflicts(self):
        """A status whose object has changed meanwhile is read again. So both objects are changed all the time."""
        is_over = threading.Event()

        def disturb(kind):
            api, number = Api(os.environ["KUBECONFIG"]), 0
            while not is_over.is_set():
                number += 1
                self.patch(api, kind, "queued", {"metadata": {"annotations": {"example.com/number": str(number)}}})

        threads = [threading.Thread(target=disturb, args=(kind,)) for kind in ("TrainJob", "JobSet")]
        for thread in threads:
            thread.start()
        wanted = {("get", "trainer.kubeflow.org", "trainjobs"), ("get", "jobset.x-k8s.io", "jobsets")}
        state = {"suspend": False}

        def have_met():
            state["suspend"] = not state["suspend"]
            self.suspend("queued", state["suspend"])
            return wanted <= self.audit.used

        try:
            self.wait("conflicts", have_met, seconds=90)
        finally:
            is_over.set()
            for thread in threads:
                thread.join()

    def clean_up(self):
        self.cluster.kubectl("delete", "trainjobs,jobsets,pods", "--all", "--force", "--grace-period=0", "--wait=false", check=False)
        for kind, name in (("TrainingRuntime", "before"), ("ClusterTrainingRuntime", self.everywhere)):
            self.patch(self.api, kind, name, {"metadata": {"finalizers": None}})
        run("kubectl", "delete", "--ignore-not-found", "clustertrainingruntime", self.everywhere)


def perform(cluster, objects, namespace=None):
    """The scenario under these manifests; its audit."""
    install(objects)
    try:
        with tempfile.TemporaryDirectory() as directory:
            scenario = Scenario(cluster, directory, namespace)
            try:
                scenario.run()
                return scenario.audit
            finally:
                scenario.clean_up()
    finally:
        uninstall(objects)


# ---- the tests


def test_every_right_is_used(cluster):
    objects = shipped()
    used = perform(cluster, objects).used
    granted = {right for role in roles(objects) for rule in role["rules"] for right in rights(rule)}
    assert len(granted) > 50, f"these are not the shipped rules: {granted}"
    idle = granted - used - NOT_LOGGED - ONLY_IN_RACES - OF_NATIVE_GANGS
    assert not idle, f"granted, and not used: {sorted(idle)}"


def test_a_stolen_token_changes_nothing_of_others(cluster):
    """Both Role-Based Access Control and the policy of overlays/restrict-controller, asked with the controller's own token."""
    objects = shipped()
    owner = {"apiVersion": TRAINER, "kind": "TrainJob", "name": "j", "uid": "1-2-3", "controller": True}
    hook = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "of-another"}}

    def config_map(name, *owners):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": list(owners)}, "data": {"a": "b"}}

    install(objects)
    try:
        run("kubectl", "apply", "-f", "-", text=json.dumps(hook))
        cluster.apply(config_map("j-tls-config"), config_map("theirs"))
        with tempfile.TemporaryDirectory() as directory:
            thief = Api(kubeconfig(directory))
            maps = f"/api/v1/namespaces/{cluster.namespace}/configmaps"
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "planted"}}
            policy = "ValidatingAdmissionPolicy 'kubeflow-trainer-restrict-controller'"
            forced = "?fieldManager=thief&force=true"
            hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"
            rows = (
                ("a ConfigMap of others", "PATCH", f"{maps}/theirs", {"data": {"a": "c"}}, policy),
                # Here the API server's OwnerReferencesPermissionEnforcement is asked before the policy.
                ("one that it takes for its own", "PATCH", f"{maps}/j-tls-config{forced}", config_map("j-tls-config", owner), "cannot set an ownerRef"),
                ("a ConfigMap of no job", "POST", maps, config_map("planted"), policy),
                ("one of another name", "POST", maps, config_map("kube-root", owner), policy),
                ("a Secret of no job", "POST", f"/api/v1/namespaces/{cluster.namespace}/secrets", secret, policy),
                ("its certificates' name elsewhere", "POST", f"/api/v1/namespaces/{cluster.namespace}/secrets",
                 {**secret, "metadata": {"name": "kubeflow-trainer-webhook-cert"}}, policy),
                ("what is public", "PATCH", f"/api/v1/namespaces/{SYSTEM}/configmaps/kubeflow-trainer-public", {"data": {"a": "b"}}, policy),
                ("a webhook of others", "PATCH", hooks + "of-another", {"webhooks": []}, "cannot patch resource"),
                ("another Lease", "PATCH", f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/of-another", {"spec": {}},
                 "cannot patch resource"),
                ("a runtime", "DELETE", f"/apis/{TRAINER}/namespaces/{cluster.namespace}/trainingruntimes/x", None, "cannot delete resource"))
            for what, method, path, body, reason in rows:
                content = "application/" + ("apply-patch+yaml" if forced in path else "merge-patch+json" if method == "PATCH" else "json")

                def is_refused(row=(method, path, body, content), reason=reason):
                    code, answer = thief.call(*row)
                    said[:] = [code, answer]
                    if method == "POST" and code == 201:   # the policy needs a moment before it is in force
                        run("kubectl", "-n", cluster.namespace, "delete", body["kind"], body["metadata"]["name"])
                    return code in (403, 422) and reason in json.dumps(answer)

                said = []
                try:
                    harness.wait_until(f"{what} is refused", is_refused, every=0.5)
                except Failed as late:
                    raise Failed(f"{late}: {said}")
            # Objects of a job are still written.
            code, answer = thief.call("POST", maps, config_map("j-runtime-snapshot", owner))
            assert code == 201, answer
    finally:
        run("kubectl", "delete", "--ignore-not-found", hook["kind"], "of-another")
        uninstall(objects)


def check_each_rule(objects, account, perform, untried=frozenset()):
    """For each rule but those of untried rights, perform(objects without it, a namespace) is refused something."""
    missed, names = [], iter(f"rights-without-{number}" for number in range(1000))
    for role in roles(objects, account):
        for number, rule in enumerate(role["rules"]):
            if rights(rule) <= untried:
                continue
            changed = copy.deepcopy(objects)
            next(o for o in roles(changed, account)
                 if (o["kind"], o["metadata"]["name"]) == (role["kind"], role["metadata"]["name"]))["rules"].pop(number)
            namespace = next(names)
            run("kubectl", "create", "namespace", namespace)
            try:
                perform(changed, namespace)
                missed.append((role["metadata"]["name"], rule))
            except Refused as refused:
                print(f"     without {rule}: {refused}", flush=True)
            run("kubectl", "delete", "namespace", namespace, "--wait=false")
    assert not missed, f"nothing failed without {missed}"


def without_each_rule(cluster):
    check_each_rule(shipped(), MANAGER, lambda objects, namespace: perform(cluster, objects, namespace), OF_NATIVE_GANGS)


if os.environ.get("EACH_RULE") == "yes":
    test_each_rule_is_needed = without_each_rule


if __name__ == "__main__":
    harness.main(__file__)
