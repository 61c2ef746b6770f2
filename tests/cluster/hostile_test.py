#!/usr/bin/python3
"""Objects that are harmful or make no sense: other jobs continue, the owner of each such object gets the reason, and foreign objects are not touched.

The definitions of our kinds are opened for a while, so that the API server stores what their schemas refuse: a cluster may
hold such objects from before, or from another version. Needs a control plane without node.
"""
import json
import re
import tempfile

import harness
from harness import Failed, run, wait_until

TRAINER = "trainer.kubeflow.org/v1alpha1"
JOBSET = "jobset.x-k8s.io/v1alpha2"
OPENED = ("trainjobs.trainer.kubeflow.org", "trainingruntimes.trainer.kubeflow.org", "jobsets.jobset.x-k8s.io")
LARGE = "x" * 1_400_000   # the API server takes 1.5 MB
BOMB = "a:\n" + "- b\n" * 250_000   # a megabyte of YAML, which takes a parser half a second


DEPTH = 3_000
NESTED = "@NESTED@"   # a placeholder for that many lists, which Python's json cannot write


def trainjob(name, spec=None, **more):
    return {"apiVersion": TRAINER, "kind": "TrainJob", "metadata": {"name": name},
            "spec": {"runtimeRef": {"name": "plain", "kind": "TrainingRuntime"}, **more} if spec is None else spec}


def jobset(name, spec):
    return {"apiVersion": JOBSET, "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


def replicated_job(**pod):
    return {"name": "node", "template": {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "node", "image": "localhost/none:1"}], **pod}}}}}


def runtime(name, template=None, **job):
    return {"apiVersion": TRAINER, "kind": "TrainingRuntime", "metadata": {"name": name}, "spec": {
        "mlPolicy": {"numNodes": 2, "torch": {}},
        "template": {"spec": {"replicatedJobs": [replicated_job(**job)]}} if template is None else template}}


def refers_to(name):
    return {"runtimeRef": {"name": name, "kind": "TrainingRuntime"}}


# Each of them must report why it does not run.
HOPELESS = {
    "spec-is-text": trainjob("spec-is-text", "text"),
    "spec-is-list": trainjob("spec-is-list", [1, 2]),
    "patches-are-an-object": trainjob("patches-are-an-object", runtimePatches={"a": 1}),
    "suspend-is-text": trainjob("suspend-is-text", suspend="maybe"),
    "nodes-are-text": trainjob("nodes-are-text", trainer={"numNodes": "many"}),
    "env-is-a-number": trainjob("env-is-a-number", trainer={"env": 7}),
    "reference-is-text": trainjob("reference-is-text", {"runtimeRef": "plain"}),
    "no-reference": trainjob("no-reference", {}),
    "other-kind": trainjob("other-kind", {"runtimeRef": {"name": "plain", "kind": "ConfigMap"}}),
    "runtime-not-there": trainjob("runtime-not-there", refers_to("nowhere")),
    "runtime-is-wrong": trainjob("runtime-is-wrong", refers_to("wrong")),
    "runtime-too-large": trainjob("runtime-too-large", refers_to("large")),
    "too-many-nodes": trainjob("too-many-nodes", trainer={"numNodes": 100_000_000}),
    "large": trainjob("large", trainer={"args": [LARGE]}),
    "taken-jobset": trainjob("taken-jobset"),
    "taken-snapshot": trainjob("taken-snapshot"),
    "taken-service": trainjob("taken-service"),
    "bomb": trainjob("bomb"),
    "taken-job": trainjob("taken-job"),
    "set-is-text": jobset("set-is-text", "text"),
    "set-without-jobs": jobset("set-without-jobs", {"replicatedJobs": "none"}),
    "set-of-odd-template": jobset("set-of-odd-template", {"replicatedJobs": [{"name": "a", "replicas": 1, "template": [1]}]}),
}
# These are odd but clear: they run.
HARMLESS = {
    "unknown-fields": trainjob("unknown-fields", unheardOf={"a": [1, {"b": None}]}),
    "large-unknown": trainjob("large-unknown", unheardOf=LARGE),
}
# Deeper than the controller reads. No status can be written for them; the log reports them.
DEEP = {
    "deep": trainjob("deep", unheardOf=NESTED),
    "deep-set": jobset("deep-set", {"replicatedJobs": NESTED}),
}
FOREIGN = [
    jobset("taken-jobset", {"suspend": True, "replicatedJobs": [{"name": "a", "template": replicated_job()["template"]}]}),
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken-snapshot-runtime-snapshot"}, "data": {"mine": "yes"}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "taken-service"}, "spec": {"ports": [{"port": 80}]}},
    {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "taken-job-node-0"},
     "spec": {"suspend": True, "template": {"spec": replicated_job()["template"]["spec"]["template"]["spec"]}}},
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stray", "labels": {
        "jobset.sigs.k8s.io/jobset-name": "good", "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "jobset.sigs.k8s.io/job-index": "none", "jobset.sigs.k8s.io/restart-attempt": "9x"}},
     "spec": {"containers": [{"name": "a", "image": "localhost/none:1"}]}},
]


def plant_bomb(cluster):
    """A snapshot that is the job's own by its owner reference, before the controller has written one."""
    uid = cluster.get("trainjobs", "bomb")["metadata"]["uid"]
    create(cluster, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"runtime": BOMB[:1_000_000]}, "metadata": {
        "name": "bomb-runtime-snapshot", "ownerReferences": [
            {"apiVersion": TRAINER, "kind": "TrainJob", "name": "bomb", "uid": uid, "controller": True}]}})


def claim_from_elsewhere(cluster, victim):
    """Jobs of another namespace that name the uid of a JobSet as their owner's: one has failed, and one was complete and is deleted."""
    elsewhere = harness.Cluster(cluster.namespace + "-x")
    run("kubectl", "delete", "namespace", elsewhere.namespace, "--ignore-not-found", "--wait", "--timeout=60s")
    run("kubectl", "create", "namespace", elsewhere.namespace)
    owner = {"apiVersion": JOBSET, "kind": "JobSet", "name": victim, "uid": cluster.get("jobsets", victim)["metadata"]["uid"],
             "controller": True}
    at = "2026-01-01T00:00:00Z"
    ends = {"FailureTarget": {"conditions": [{"type": "FailureTarget", "status": "True", "reason": "a", "lastTransitionTime": at}]},
            "Complete": {"startTime": at, "completionTime": at, "succeeded": 1, "uncountedTerminatedPods": {}, "conditions": [
                {"type": kind, "status": "True", "reason": "a", "lastTransitionTime": at} for kind in ("SuccessCriteriaMet", "Complete")]}}
    for end, status in ends.items():
        elsewhere.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {
            "name": f"{victim}-node-0", "ownerReferences": [owner], "labels": {
                "jobset.sigs.k8s.io/jobset-name": victim, "jobset.sigs.k8s.io/replicatedjob-name": "node",
                "jobset.sigs.k8s.io/job-index": "0", "jobset.sigs.k8s.io/restart-attempt": "0"}},
            "spec": {"suspend": end == "FailureTarget", "completions": 1, "parallelism": 1,
                     "template": {"spec": replicated_job()["template"]["spec"]["template"]["spec"]}}})
        # The garbage collector deletes it soon, since there is no such owner in its namespace.
        run("kubectl", "-n", elsewhere.namespace, "patch", "job", f"{victim}-node-0", "--subresource=status", "--type=merge",
            "-p", json.dumps({"status": status}), check=False)
        elsewhere.kubectl("delete", "job", f"{victim}-node-0", "--ignore-not-found", "--cascade=background")
    run("kubectl", "delete", "namespace", elsewhere.namespace, "--wait=false")


def check_untouched(cluster, victim):
    """By a job that comes later: its Job's status has come by the same watch."""
    def counts_its_job():
        jobs = (cluster.get("jobsets", "later") or {}).get("status", {}).get("replicatedJobsStatus") or [{}]
        return jobs[0].get("active")

    wait_until("the JobSet of a later job counts its Job", counts_its_job, seconds=60)
    status = cluster.get("jobsets", victim).get("status", {})
    assert not status.get("restarts") and not status.get("terminalState"), f"JobSet {victim} was ended from elsewhere: {status}"
    assert cluster.get("jobs", f"{victim}-node-0"), f"the Job of JobSet {victim} is gone"


def open_schema():
    """Lets the API server store anything; the permissive schema keeps the status a subresource."""
    anything = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema",
                 "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}]
    for name in OPENED:
        run("kubectl", "patch", "crd", name, "--type=json", "-p", json.dumps(anything))


def close_schema():
    run("kubectl", "apply", "--server-side", "--force-conflicts", "-f", str(harness.ROOT / "manifests/crds"))


def create(cluster, o):
    """Without the annotation of `kubectl apply`, which doubles what is large. Until the open schema is in force."""
    text = json.dumps(o).replace(f'"{NESTED}"', "[" * DEPTH + "1" + "]" * DEPTH)

    def is_taken():
        done = run("kubectl", "-n", cluster.namespace, "create", "--validate=false", "-f", "-", text=text, check=False)
        said[:] = [done.stderr]
        return done.returncode == 0 or "AlreadyExists" in done.stderr

    said = []
    try:
        wait_until(f"{o['kind']} {o['metadata']['name']} is stored", is_taken, seconds=60, every=0.5)
    except Failed as late:
        raise Failed(f"{late}\n{said[0][:1000]}")


def reported(cluster):
    """The names of objects that say why they do not run, in their status or by a Warning event."""
    found = {o["involvedObject"]["name"] for o in cluster.list("events") if o["type"] == "Warning"}
    columns = '{range .items[*]}{.metadata.name} {.status.reason} {.status.message}{"\\n"}{end}'
    for line in cluster.kubectl("get", "trainjobs", "-o", "jsonpath=" + columns).splitlines():
        words = line.split()
        if len(words) > 2:
            found.add(words[0])
    return found


def versions(cluster):
    """What only their owners may change; the Job controller writes its Job's status."""
    return {(o["kind"], o["metadata"]["name"]): {**cluster.get(o["kind"], o["metadata"]["name"]), "status": None} for o in FOREIGN}


def check_log_names_deep(cluster, controller):
    """Each object that is too deep to be read is named in the log."""
    left_out = [line for line in controller.said().splitlines() if "what=malformed" in line]
    missing = [name for name in DEEP if not any(f'"{cluster.namespace}/{name}\\"' in line for line in left_out)]
    assert not missing, f"the log does not say that {missing} are left out, but: {left_out}"


def runs(cluster, name):
    """The pods of a well-behaved job exist, without waiting for its neighbours."""
    def exist():
        return len([p for p in cluster.list("pods", f"-ljobset.sigs.k8s.io/jobset-name={name}")
                    if p["metadata"]["name"] != "stray"]) == 2
    wait_until(f"{name} has its pods", exist, seconds=60)


def slow_steps(controller):
    """The loop's steps of more than 10 ms of processor time, which the controller counts and logs: none, by rights. Where cores are
    shared with others the same step may take much longer, so they are shown, and only what no sharing explains fails."""
    def logged():
        return [int(ms) for ms in re.findall(r"slow step ms=(\d+)", controller.said())]

    before, counted, steps = logged(), controller.metric("trainer_loop_stalls_total"), logged()
    assert len(before) <= counted <= len(steps), f"{counted} slow steps were counted, and {len(steps)} are found in the log"
    print(f"     steps of a loop that took more than 10 ms: {steps or 'none'}")
    assert max(steps, default=0) < 100, f"steps of a loop took {steps} ms"


def without_version(objects):
    drop = ("resourceVersion", "managedFields")
    return {k: {**o, "metadata": {m: v for m, v in o["metadata"].items() if m not in drop}} for k, o in objects.items()}


def test_hostile_objects_do_not_stop_others(cluster):
    open_schema()
    try:
        cluster.apply(runtime("plain"))
        for o in (runtime("wrong", template=7), runtime("large", volumes=[{"name": LARGE}]), *FOREIGN,
                  *HOPELESS.values(), *HARMLESS.values(), *DEEP.values()):
            create(cluster, o)
        plant_bomb(cluster)
        before = versions(cluster)
        with tempfile.TemporaryDirectory() as directory:
            controller = harness.Controller(directory, "--no-webhooks").start()
            try:
                check(cluster, controller, before)
            except AssertionError as error:
                states = cluster.kubectl("get", "trainjobs,jobsets,jobs,pods", "--no-headers")
                raise Failed(f"{error}\n{states}\n{controller.log.read_text()[-3000:]}")
            finally:
                controller.kill()
    finally:
        for kind in ("trainjobs", "jobsets", "trainingruntimes"):
            cluster.kubectl("delete", kind, "--all", "--wait=false")
        close_schema()


def check(cluster, controller, before):
    cluster.apply(trainjob("good"))
    for name in ("good", *HARMLESS):
        runs(cluster, name)
    try:
        wait_until("each reports why", lambda: reported(cluster) >= set(HOPELESS), seconds=60)
    except Failed as late:
        raise Failed(f"{late}: not {sorted(set(HOPELESS) - reported(cluster))}")
    check_log_names_deep(cluster, controller)
    # Nor do those that come while it runs, or change.
    claim_from_elsewhere(cluster, "good")
    create(cluster, trainjob("late", "text"))
    cluster.kubectl("annotate", "trainjobs,jobsets", "--all", "example.com/looked-at=yes")
    cluster.apply(trainjob("later"))
    runs(cluster, "later")
    check_untouched(cluster, "good")
    wait_until("a late one reports why", lambda: "late" in reported(cluster), seconds=60)
    slow_steps(controller)
    controller.stop()

    controller.start()
    cluster.apply(trainjob("after-restart"))
    runs(cluster, "after-restart")
    slow_steps(controller)
    controller.stop()
    after = versions(cluster)
    for (kind, name), o in without_version(after).items():
        o["metadata"].get("annotations", {}).pop("example.com/looked-at", None)
        was = without_version(before)[kind, name]
        o["metadata"].setdefault("annotations", {}), was["metadata"].setdefault("annotations", {})
        assert o == was, f"{kind} {name} was changed:\n{was}\n{o}"


if __name__ == "__main__":
    harness.main(__file__)
