#!/usr/bin/python3
"""The controller takes over what upstream's Trainer 2.1, 2.2 and 2.3 have left: no pod is restarted, no template of a job that runs is
changed, what has ended does not run again, and what waits starts as it was asked for.

upgrade/VERSION.yaml has the objects of each version. They are written as upstream's two controllers write them, by the same kinds of
requests and field managers, under a CRD that takes the fields of that time; then the CRDs are replaced and the controller starts.

Needs a control plane without node and with an audit log (AUDIT=yes); the test plays the kubelet.
"""
import contextlib
import copy
import hashlib
import json
import os
import sys
import tempfile

import harness
import yaml
from harness import ROOT, run, wait_until
from quiet_test import entries_since, mark

sys.path.insert(0, str(ROOT / "tests/conformance"))
from conform import Api  # noqa: E402

API, JOBSET_API = "trainer.kubeflow.org/v1alpha1", "jobset.x-k8s.io/v1alpha2"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
# Both of upstream's programs are called manager, and Trainer's applies as trainer.
PROGRAM, TRAINER, REPORTER, USER = "manager", "trainer", "trainer-status", "kubectl-client-side-apply"
LEGACY_FINALIZER = "trainer.kubeflow.org/resource-in-use"
NODES = 2
PHASES = {"runs": "Running", "waits": "Suspended", "done": "Complete", "broken": "Failed"}


def crds(*, of_that_time):
    """Applies the CRDs of Trainer: those of the tree, or such as take any field."""
    objects = []
    for path in sorted((ROOT / "manifests/crds").glob("trainer.kubeflow.org_*.yaml")):
        crd = yaml.safe_load(path.read_text())
        if of_that_time:
            for version in crd["spec"]["versions"]:
                version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        objects.append(crd)
    run("kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    probe = json.dumps({"apiVersion": API, "kind": "TrainJob", "metadata": {"name": "probe"}, "spec": {
        "runtimeRef": {"name": "none"}, "podTemplateOverrides": [{"targetJobs": [{"name": "node"}]}]}})

    def is_served():
        return (run("kubectl", "create", "--dry-run=server", "--validate=false", "-f", "-", text=probe, check=False).returncode == 0) == of_that_time

    wait_until("the API server serves the CRDs", is_served)


class Upstream:
    """Writes what upstream's controllers have written by the time when they are stopped."""

    def __init__(self, cluster, fixture):
        self.cluster, self.fixture = cluster, fixture
        self.api = Api(os.environ["KUBECONFIG"])

    def write(self, method, kind, manager, body, name="", content_type="application/json", part=""):
        path = self.api.path(kind, self.cluster.namespace, name) + part + f"?fieldManager={manager}" + ("&force=true" if content_type == APPLY else "")
        status, answer = self.api.call(method, path, body, content_type)
        assert status in (200, 201), f"{kind} {name}: {status} {answer}"
        return answer

    def owned_by(self, owner):
        meta = owner["metadata"]
        return [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"],
                 "controller": True, "blockOwnerDeletion": True}]

    def runtime(self):
        said = self.fixture["runtime"]
        self.write("POST", "TrainingRuntime", USER, {"apiVersion": API, "kind": "TrainingRuntime", "metadata": {"name": "torch"}, "spec": said["spec"]})
        if "finalizers" in said:
            self.write("PATCH", "TrainingRuntime", PROGRAM, {"metadata": {"finalizers": said["finalizers"]}}, "torch", MERGE)

    def job(self, name):
        """A TrainJob with its JobSet, Service and Job, in the state that its name says."""
        waits = name == "waits"
        spec = {**copy.deepcopy(self.fixture["trainjob"]), "suspend": waits, "managedBy": "trainer.kubeflow.org/trainjob-controller",
                "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": "torch"}}
        trainjob = self.write("POST", "TrainJob", USER, {"apiVersion": API, "kind": "TrainJob", "metadata": {"name": name}, "spec": spec})
        if self.fixture.get("snapshots"):
            self.snapshot(trainjob)
        jobset = self.write("PATCH", "JobSet", TRAINER, self.jobset(trainjob), name, APPLY)
        self.write("POST", "Service", PROGRAM, {"apiVersion": "v1", "kind": "Service", "metadata": {
            "name": name, "ownerReferences": self.owned_by(jobset)}, "spec": {
                "clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"jobset.sigs.k8s.io/jobset-name": name}}})
        self.write("POST", "Job", PROGRAM, self.child(jobset))
        if not waits:
            self.play_kubelet(name, {"runs": "Running", "done": "Succeeded", "broken": "Failed"}[name])
        self.statuses(name)

    def snapshot(self, trainjob):
        _, runtime = self.api.call("GET", self.api.path("TrainingRuntime", self.cluster.namespace, "torch"))
        name = trainjob["metadata"]["name"] + "-runtime-snapshot"
        self.write("PATCH", "ConfigMap", TRAINER, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": name, "ownerReferences": self.owned_by(trainjob)}, "data": {"runtime": yaml.safe_dump(runtime)}}, name, APPLY)

    def jobset(self, trainjob):
        """As Trainer builds it, with what JobSet's webhook adds."""
        said, name = self.fixture["jobset"], trainjob["metadata"]["name"]
        index = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
        env = [{"name": key, "value": value} for key, value in said["env"]]
        env += [{"name": "PET_NODE_RANK", "valueFrom": index}, {"name": "PET_MASTER_ADDR", "value": f"{name}-node-0-0.{name}"},
                {"name": "PET_MASTER_PORT", "value": "29500"}]
        container = {"name": "node", "image": "localhost/none:1", "command": ["python", "train.py"], "env": env,
                     "ports": [{"containerPort": 29500, "protocol": "TCP"}]}
        pod = {"metadata": said["pod"]["metadata"], "spec": {"restartPolicy": "OnFailure" if name != "broken" else "Never", "containers": [container], **said["pod"]["spec"]}}
        return {
            "apiVersion": JOBSET_API, "kind": "JobSet", "metadata": {
                "name": name, "labels": said["labels"], "annotations": said["annotations"], "ownerReferences": self.owned_by(trainjob)},
            "spec": {
                "suspend": trainjob["spec"]["suspend"], "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
                "successPolicy": {"operator": "All"}, "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
                "replicatedJobs": [{"name": "node", "replicas": 1, "groupName": "default", "template": {
                    "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                    "spec": {"parallelism": NODES, "completions": NODES, "completionMode": "Indexed", "backoffLimit": 0, "template": pod}}}]}}

    def child(self, jobset):
        """The Job that JobSet makes of it."""
        name, namespace = jobset["metadata"]["name"], self.cluster.namespace
        step = jobset["spec"]["replicatedJobs"][0]["template"]
        keys = {"jobset-name": name, "jobset-uid": jobset["metadata"]["uid"], "replicatedjob-name": "node", "replicatedjob-replicas": "1",
                "global-replicas": "1", "job-index": "0", "job-global-index": "0", "restart-attempt": "0",
                "job-key": hashlib.sha1(f"{namespace}/{name}-node-0".encode()).hexdigest(), **self.fixture["keys"]}
        keys = {f"jobset.sigs.k8s.io/{key}": value for key, value in keys.items()}
        spec = copy.deepcopy(step["spec"])
        pod = spec["template"]
        pod["metadata"] = {"labels": {**pod["metadata"]["labels"], **keys}, "annotations": keys}
        pod["spec"]["subdomain"] = name
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {
            "name": f"{name}-node-0", "labels": {**step["metadata"]["labels"], **keys}, "annotations": keys, "ownerReferences": self.owned_by(jobset)},
            "spec": {**spec, "suspend": jobset["spec"]["suspend"]}}

    def play_kubelet(self, name, phase):
        """All pods of a job are in this phase, and the Job says so. Of a job that fails one pod is enough: its Job deletes the other."""
        status = {"Running": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}.get(phase, {"phase": phase})
        pods = wait_until(f"the pods of {name}", lambda: self.pods(name))
        for pod in pods[:1] if phase == "Failed" else pods:
            self.write("PATCH", "Pod", "kubelet", {"status": status}, pod["metadata"]["name"], MERGE, "/status")
        job = f"{name}-node-0"
        if phase == "Running":
            wait_until(f"the Job of {name} counts them", lambda: self.cluster.get("job", job)["status"].get("ready") == NODES)
        else:
            wait_until(f"the Job of {name} ends", lambda: self.cluster.condition("job", job, {"Succeeded": "Complete"}.get(phase, phase)))

    def pods(self, name):
        found = self.cluster.list("pods", "-l", f"jobset.sigs.k8s.io/jobset-name={name}")
        return found if len(found) == NODES else None

    def statuses(self, name):
        """Of the JobSet and of the TrainJob, as merge patches of the program."""
        count = {"runs": {"ready": 1, "active": 1}, "waits": {"suspended": 1}, "done": {"succeeded": 1}, "broken": {"failed": 1}}[name]
        counts = [{"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0, **count}]

        def condition(kind, reason, message):
            return [{"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": "2026-01-02T03:04:05Z"}]

        ended = {"done": ("AllJobsCompleted", "jobset completed successfully"),
                 "broken": ("FailedJobs", "jobset failed due to one or more job failures (first failed job: broken-node-0)")}
        jobset, trainjob = {"restarts": 0, "replicatedJobsStatus": counts}, {"jobsStatus": counts}
        if name in ended:
            kind = {"done": "Completed", "broken": "Failed"}[name]
            jobset |= {"terminalState": kind, "conditions": condition(kind, *ended[name])}
            trainjob["conditions"] = condition(PHASES[name], *ended[name])
        if name == "waits":
            jobset["conditions"] = condition("Suspended", "SuspendedJobs", "jobset is suspended")
            trainjob["conditions"] = condition("Suspended", "Suspended", "TrainJob is suspended")
        self.write("PATCH", "JobSet", PROGRAM, {"status": jobset}, name, MERGE, "/status")
        self.write("PATCH", "TrainJob", PROGRAM, {"status": trainjob}, name, MERGE, "/status")
        if "report" in self.fixture and name == "runs":
            self.write("PATCH", "TrainJob", REPORTER, {"apiVersion": API, "kind": "TrainJob", "metadata": {"name": name},
                                                       "status": {"trainerStatus": self.fixture["report"]}}, name, APPLY, "/status")


def templates(cluster):
    """What must stay of each object: uid and spec, and of pods the uid."""
    found = {}
    for kind in ("pods", "jobs", "jobsets", "services"):
        for each in cluster.list(kind):
            meta = each["metadata"]
            found[kind, meta["name"]] = (meta["uid"], None if kind == "pods" else each["spec"])
    return found


def phase_of(cluster, name):
    return (cluster.get("trainjob", name).get("status") or {}).get("phase")


def check_requests(since, namespace):
    """Only the job that waited had children written, and pods were not written."""
    for entry in entries_since(since):
        what = entry.get("objectRef", {})
        if entry["verb"] in ("get", "list") or what.get("namespace") != namespace or what.get("subresource") or entry["responseStatus"]["code"] >= 400:
            continue
        assert what["resource"] != "pods", f"a pod was written: {what}"
        if what["resource"] in ("jobs", "jobsets", "services"):
            assert what.get("name", "").startswith("waits"), f"{entry['verb']} of {what['resource']} {what.get('name')}"


@contextlib.contextmanager
def left_by(cluster, version):
    """What this version has left, under the CRDs of the tree."""
    fixture = yaml.safe_load((ROOT / f"tests/cluster/upgrade/{version}.yaml").read_text())
    upstream = Upstream(cluster, fixture)
    try:
        crds(of_that_time=True)
        upstream.runtime()
        for name in PHASES:
            upstream.job(name)
    finally:
        crds(of_that_time=False)
    try:
        yield upstream, fixture
    finally:
        run("kubectl", "-n", cluster.namespace, "patch", "trainingruntime", "torch", "--type=merge", "-p", '{"metadata": {"finalizers": null}}', check=False)


def check_upgrade(cluster, version):
    with left_by(cluster, version) as (upstream, fixture), tempfile.TemporaryDirectory() as directory:
        before, since = templates(cluster), mark()
        statuses = {name: cluster.get("trainjob", name)["status"] for name in PHASES}
        snapshots = {c["metadata"]["name"]: c["data"] for c in cluster.list("configmaps") if c["metadata"]["name"].endswith("-runtime-snapshot")}
        controller = harness.Controller(directory, "--webhook-url", f"https://{os.environ['TESTBED_HOST']}:9443",
                                        change_config=lambda text: text + "removeLegacyFinalizers: true\n").start()
        try:
            for name, phase in PHASES.items():
                wait_until(f"{name} is {phase}", lambda: phase_of(cluster, name) == phase)
            wait_until("the finalizer is removed",
                       lambda: LEGACY_FINALIZER not in cluster.get("trainingruntime", "torch")["metadata"].get("finalizers", []))
            # A person resumes what waits: its Job is the one that is there, started as it was asked for.
            cluster.kubectl("patch", "trainjob", "waits", "--type=merge", "-p", '{"spec": {"suspend": false}}')
            check_resumed(wait_until("the pods of waits", lambda: upstream.pods("waits")), fixture["resumed"])
            # What ran ends. By now the controller has had every reason to write something else.
            upstream.play_kubelet("runs", "Succeeded")
            wait_until("runs is Complete", lambda: phase_of(cluster, "runs") == "Complete")
            check_kept(cluster, before)
            check_requests(since, cluster.namespace)
            for name in ("done", "broken"):
                check_ended(cluster.get("trainjob", name)["status"], statuses[name])
            if "report" in fixture:
                assert cluster.get("trainjob", "runs")["status"]["trainerStatus"] == fixture["report"]
            for name, data in snapshots.items():
                assert cluster.get("configmap", name)["data"] == data, f"{name} was changed"
        except AssertionError as error:
            raise AssertionError(f"{error}\n--- controller:\n{controller.log.read_text()[-2000:]}") from error
        finally:
            controller.stop()


def check_resumed(pods, wanted):
    for pod in pods:
        for field, members in (("labels", pod["metadata"]["labels"]), ("annotations", pod["metadata"]["annotations"]), ("nodeSelector", pod["spec"].get("nodeSelector", {}))):
            assert wanted[field].items() <= members.items(), f"{pod['metadata']['name']}: {field} {members} lack {wanted[field]}"


def check_kept(cluster, before):
    after = templates(cluster)
    for (kind, name), (uid, spec) in before.items():
        assert (kind, name) in after, f"{kind} {name} is gone"
        now_uid, now_spec = after[kind, name]
        assert now_uid == uid, f"{kind} {name} was made again"
        assert now_spec == spec or name.startswith("waits"), f"{kind} {name} was changed:\n{json.dumps(spec)}\n{json.dumps(now_spec)}"
    new = {key for key in after if key not in before and not key[1].startswith("waits")}
    assert not new, f"made besides: {new}"


def check_ended(status, before):
    """Times, reasons and messages of the end stay."""
    for condition in before["conditions"]:
        assert condition in status["conditions"], f"{condition} is not in {status['conditions']}"
    assert status["jobsStatus"] == before["jobsStatus"], status


def test_from_2_1(cluster):
    check_upgrade(cluster, "v2.1")


def test_from_2_2(cluster):
    check_upgrade(cluster, "v2.2")


def test_from_2_3(cluster):
    check_upgrade(cluster, "v2.3")


if __name__ == "__main__":
    harness.main(__file__)
