#!/usr/bin/python3
"""The controller takes over what upstream's Trainer 2.1, 2.2 and 2.3 have left: no pod is restarted, nothing of a job that runs or has
ended is changed, and what runs, restarts, waits or has only begun goes on as it was asked for.

upgrade/VERSION.yaml has the objects that the running controllers of that version left (see upgrade/record), with the field managers that
own their fields. They are made again, under a CRD that takes the fields of that time; then the CRDs are replaced and the controller starts.

Needs a control plane without node and with an audit log (AUDIT=yes); the test plays the kubelet.
"""
import contextlib
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

API = "trainer.kubeflow.org/v1alpha1"
MERGE = "application/merge-patch+json"
LEGACY_FINALIZER = "trainer.kubeflow.org/resource-in-use"
NAME, STEP, ATTEMPT = (f"jobset.sigs.k8s.io/{what}" for what in ("jobset-name", "replicatedjob-name", "restart-attempt"))
# The phases of the recorded pods, and those that this controller gives their jobs.
PODS = {"runs": "Running", "cluster": "Running", "again": "Running", "steps": "Running", "mpi": "Running", "done": "Succeeded", "broken": "Failed"}
PHASES = {"runs": "Running", "cluster": "Running", "again": "Running", "steps": "Initializing", "mpi": "Running", "pends": "Pending", "waits": "Suspended",
          "mpi-waits": "Suspended", "done": "Complete", "broken": "Failed"}
WAIT = ("waits", "mpi-waits")
# The pods of the job that waited have the metadata of its templates, and with 2.1 also the labels and annotations of the job.
RESUMED = {"v2.1": {"labels": {"example.com/cost": "7", "example.com/team": "blue"}, "annotations": {"sidecar.istio.io/inject": "false"}}}


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
    """Makes again what upstream's controllers had made by the time when they were stopped."""

    def __init__(self, cluster, version):
        self.cluster = cluster
        self.api = Api(os.environ["KUBECONFIG"])
        self.objects = list(yaml.safe_load_all((ROOT / f"tests/cluster/upgrade/{version}.yaml").read_text()))
        self.uids = {}

    def leave(self):
        for each in self.objects:
            self.make(self.with_uids(each))
        for name, phase in PODS.items():
            self.play_kubelet(name, phase)
        for each in self.objects:
            if "status" in each:
                self.put(self.with_uids(each), "/status")

    def with_uids(self, recorded):
        """An object with the uids of those that have been made so far. The longer name first: it may begin with the other."""
        text = json.dumps(recorded)
        for said in sorted(self.uids, key=len, reverse=True):
            text = text.replace(said, self.uids[said])
        return json.loads(text)

    def make(self, o):
        meta = {key: value for key, value in o["metadata"].items() if key != "managedFields"}
        status, answer = self.api.call("POST", self.api.path(o["kind"], self.cluster.namespace), {**o, "metadata": meta})
        assert status == 201, f"{o['kind']} {meta['name']}: {status} {answer}"
        self.uids[f"uid of {o['kind']} {meta['name']}"] = answer["metadata"]["uid"]
        self.put(o)

    def put(self, o, part=""):
        """The status, or only who owns which field: the API server takes that from the object that is sent."""
        path = self.api.path(o["kind"], self.cluster.namespace, o["metadata"]["name"])

        def is_taken():
            _, now = self.api.call("GET", path)
            now["metadata"]["managedFields"] = o["metadata"]["managedFields"]
            if part:
                now["status"] = o["status"]
            status, answer = self.api.call("PUT", path + part, now)
            assert status in (200, 409), f"{path}: {status} {answer}"
            return status == 200

        wait_until(f"the PUT of {path} is taken", is_taken)   # Kubernetes' own controllers write Jobs at the same time

    def play_kubelet(self, name, phase, step=None, attempt=None):
        """All pods of a job, or of a step of it, are in this phase, and the Jobs say so. One pod is enough for a Job that fails: the
        others are deleted."""
        status = {"Running": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}.get(phase, {"phase": phase})
        for job in wait_until(f"Jobs of {name} {step or ''}", lambda: self.jobs(name, step, attempt)):
            job_name = job["metadata"]["name"]
            pods = wait_until(f"the pods of {job_name}", lambda: self.pods(job))
            for pod in pods[:1] if phase == "Failed" else pods:
                path = self.api.path("Pod", self.cluster.namespace, pod["metadata"]["name"])
                code, answer = self.api.call("PATCH", path + "/status?fieldManager=kubelet", {"status": status}, MERGE)
                assert code == 200, answer
            if phase == "Running":
                wait_until(f"Job {job_name} counts them", lambda: self.cluster.get("job", job_name)["status"].get("ready") == len(pods))
            elif name not in ("again", "mpi"):   # where the Job may be deleted at once
                wait_until(f"Job {job_name} ends", lambda: self.cluster.condition("job", job_name, {"Succeeded": "Complete"}.get(phase, phase)))

    def jobs(self, name, step=None, attempt=None):
        wanted = {NAME: name, **({STEP: step} if step else {}), **({ATTEMPT: str(attempt)} if attempt is not None else {})}
        return self.cluster.list("jobs", "-l", ",".join(f"{key}={value}" for key, value in wanted.items()))

    def pods(self, job):
        found = self.cluster.list("pods", "-l", f"batch.kubernetes.io/controller-uid={job['metadata']['uid']}")
        found = [p for p in found if "deletionTimestamp" not in p["metadata"]]
        return found if len(found) == job["spec"]["parallelism"] else None


KINDS = ("trainjobs", "pods", "jobs", "jobsets", "services", "configmaps", "secrets")


def objects(cluster):
    """The parts of each object that must stay: uid and spec or data, and of pods the uid."""
    found = {}
    for kind in KINDS:
        for each in cluster.list(kind):
            found[kind, each["metadata"]["name"]] = (each["metadata"]["uid"], None if kind == "pods" else each.get("spec", each.get("data")))
    return found


def check_kept(cluster, before):
    """Only the JobSet and the Job of what waits may be written; of each TrainJob there may be a snapshot of its runtime."""
    after = objects(cluster)
    for (kind, name), (uid, spec) in before.items():
        assert (kind, name) in after, f"{kind} {name} is gone"
        now_uid, now_spec = after[kind, name]
        assert now_uid == uid, f"{kind} {name} was made again"
        may_change = name.startswith(WAIT) and kind in ("jobs", "jobsets")
        assert now_spec == spec or may_change, f"{kind} {name} was changed:\n{json.dumps(spec)}\n{json.dumps(now_spec)}"
    new = {key for key in after if key not in before and not key[1].endswith("-runtime-snapshot")}
    assert not new, f"made besides: {new}"


def check_requests(since, namespace):
    """Nothing but statuses, snapshots, and the JobSets and Jobs of what waits was written."""
    for entry in entries_since(since):
        what = entry.get("objectRef", {})
        if entry["verb"] in ("get", "list") or what.get("namespace") != namespace or what.get("subresource"):
            continue
        if entry["responseStatus"]["code"] < 400 and what["resource"] in KINDS and not what.get("name", "").endswith("-runtime-snapshot"):
            assert what.get("name", "").startswith(WAIT) and what["resource"] != "pods", f"{entry['verb']} of {what['resource']} {what.get('name')}"


def phase_of(cluster, name):
    return (cluster.get("trainjob", name).get("status") or {}).get("phase")


@contextlib.contextmanager
def left_by(cluster, version):
    """The objects that this version has left, under the CRDs of the tree."""
    upstream = Upstream(cluster, version)
    try:
        crds(of_that_time=True)
        upstream.leave()
    finally:
        crds(of_that_time=False)
    try:
        yield upstream
    finally:
        for each in upstream.objects:
            kind, name = each["kind"].lower(), each["metadata"]["name"]
            if kind.endswith("trainingruntime"):
                cluster.kubectl("patch", kind, name, "--type=merge", "-p", '{"metadata": {"finalizers": null}}', check=False)
            if kind == "clustertrainingruntime":
                run("kubectl", "delete", kind, name)


def finalizers(cluster):
    runtimes = cluster.list("trainingruntimes") + cluster.list("clustertrainingruntimes")
    return [o["metadata"]["finalizers"] for o in runtimes if o["metadata"].get("finalizers")]


def check_upgrade(cluster, version):
    with left_by(cluster, version) as upstream, tempfile.TemporaryDirectory() as directory:
        before, since = objects(cluster), mark()
        statuses = {name: cluster.get("trainjob", name)["status"] for name in PHASES}
        controller = harness.Controller(directory, "--webhook-url", f"https://{os.environ['TESTBED_HOST']}:9443",
                                        change_config=lambda text: text + "removeLegacyFinalizers: true\n").start()
        try:
            for name, phase in PHASES.items():
                wait_until(f"{name} is {phase}", lambda: phase_of(cluster, name) == phase, shown=lambda: phase_of(cluster, name))
            # Its launcher is a node, which only the runtime says.
            assert cluster.get("trainjob", "mpi")["status"]["nodes"]["total"] == 2, cluster.get("trainjob", "mpi")["status"]
            wait_until("the finalizers are removed", lambda: not finalizers(cluster))
            check_kept(cluster, before)
            check_requests(since, cluster.namespace)
            for name in PHASES:
                check_status(cluster.get("trainjob", name)["status"], statuses[name], ended=name in ("done", "broken"))
            check_goes_on(cluster, upstream, version)
            for name in ("done", "broken"):
                check_status(cluster.get("trainjob", name)["status"], statuses[name], ended=True)
        except AssertionError as error:
            raise AssertionError(f"{error}\n--- controller:\n{controller.log.read_text()[-2000:]}") from error
        finally:
            controller.stop()


def check_goes_on(cluster, upstream, version):
    """Jobs that ran end or restart, jobs between two steps continue with the next step, and a person resumes jobs that waited. Jobs that run can be
    labelled, suspended and resumed, whatever fields they were stored with."""
    for name in ("runs", "again"):
        cluster.kubectl("label", "trainjob", name, "example.com/seen=yes")
    cluster.kubectl("patch", "trainjob", "runs", "--type=merge", "-p", '{"spec": {"suspend": true}}')
    wait_until("runs is suspended", lambda: phase_of(cluster, "runs") == "Suspended")
    cluster.kubectl("patch", "trainjob", "runs", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    upstream.play_kubelet("runs", "Running")
    for name in ("runs", "cluster"):
        upstream.play_kubelet(name, "Succeeded")
    upstream.play_kubelet("mpi", "Succeeded", "launcher")
    upstream.play_kubelet("steps", "Succeeded", "dataset-initializer")
    upstream.play_kubelet("steps", "Succeeded", "node")
    upstream.play_kubelet("again", "Failed", attempt=1)
    upstream.play_kubelet("again", "Succeeded", attempt=2)
    for name in WAIT:
        cluster.kubectl("patch", "trainjob", name, "--type=merge", "-p", '{"spec": {"suspend": false}}')
    for pod in wait_until("the pods of waits", lambda: upstream.pods(upstream.jobs("waits")[0])):
        check_resumed(pod, RESUMED.get(version, {"labels": {"example.com/cost": "7"}}))
    upstream.play_kubelet("waits", "Succeeded")
    upstream.play_kubelet("mpi-waits", "Succeeded", "launcher")
    for name in ("runs", "cluster", "mpi", "steps", "again", *WAIT):
        wait_until(f"{name} is Complete", lambda: phase_of(cluster, name) == "Complete", shown=lambda: phase_of(cluster, name))
    assert cluster.get("jobset", "again")["status"]["restarts"] == 2


def check_resumed(pod, wanted):
    assert pod["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "node1"}, pod["spec"]
    for field, members in wanted.items():
        assert members.items() <= pod["metadata"][field].items(), f"{pod['metadata']['name']}: {field} {pod['metadata'][field]} lack {members}"


def check_status(status, before, *, ended):
    """Progress reports stay; of what has ended, times, reasons, messages and counts stay, too."""
    assert status.get("trainerStatus") == before.get("trainerStatus"), status
    if ended:
        for condition in before["conditions"]:
            assert condition in status["conditions"], f"{condition} is not in {status['conditions']}"
        assert status["jobsStatus"] == before["jobsStatus"], status


@harness.only_with_long
def test_from_2_1(cluster):
    check_upgrade(cluster, "v2.1")


@harness.only_with_long
def test_from_2_2(cluster):
    check_upgrade(cluster, "v2.2")


def test_from_2_3(cluster):
    check_upgrade(cluster, "v2.3")


if __name__ == "__main__":
    harness.main(__file__)
