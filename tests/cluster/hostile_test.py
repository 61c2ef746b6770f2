#!/usr/bin/python3
"""Objects that are harmful or make no sense: other jobs continue, the owner of each such object gets the reason, and foreign objects are not touched.
Peers that open connections and do not use them: admission and probes go on. Who may read the metrics.

The definitions of our kinds are opened for a while, so that the API server stores what their schemas refuse: a cluster may
hold such objects from before, or from another version. Needs a control plane without node.
"""
import collections
import contextlib
import functools
import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import tempfile
import threading
import time
import urllib.error
import urllib.request

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


def plant_bomb(cluster, name, size):
    """A snapshot that is the job's own by its owner reference, before the controller has written one."""
    uid = cluster.get("trainjobs", name)["metadata"]["uid"]
    create(cluster, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"runtime": BOMB[:size]}, "metadata": {
        "name": f"{name}-runtime-snapshot", "ownerReferences": [
            {"apiVersion": TRAINER, "kind": "TrainJob", "name": name, "uid": uid, "controller": True}]}})


AT = "2026-01-01T00:00:00Z"
FAILING = {"conditions": [{"type": "FailureTarget", "status": "True", "reason": "a", "lastTransitionTime": AT}]}
COMPLETE = {"startTime": AT, "completionTime": AT, "succeeded": 1, "uncountedTerminatedPods": {}, "conditions": [
    {"type": kind, "status": "True", "reason": "a", "lastTransitionTime": AT} for kind in ("SuccessCriteriaMet", "Complete")]}


def claiming_job(victim, name, **spec):
    """A Job for another namespace that names the uid of a JobSet as its owner's."""
    victim_name = victim["metadata"]["name"]
    owner = {"apiVersion": JOBSET, "kind": "JobSet", "name": victim_name, "uid": victim["metadata"]["uid"], "controller": True}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {
        "name": name, "ownerReferences": [owner], "labels": {
            "jobset.sigs.k8s.io/jobset-name": victim_name, "jobset.sigs.k8s.io/replicatedjob-name": "node",
            "jobset.sigs.k8s.io/job-index": "0", "jobset.sigs.k8s.io/restart-attempt": "0"}},
        "spec": {"completions": 1, "parallelism": 1, "template": {"spec": replicated_job()["template"]["spec"]["template"]["spec"]}, **spec}}


def namespace_beside(cluster):
    elsewhere = harness.Cluster(cluster.namespace[:61] + "-x")
    run("kubectl", "delete", "namespace", elsewhere.namespace, "--ignore-not-found", "--wait", "--timeout=60s")
    run("kubectl", "create", "namespace", elsewhere.namespace)
    return elsewhere


def claim_from_elsewhere(cluster, victim):
    """Jobs of another namespace that name the uid of a JobSet as their owner's: one has failed, and one was complete and is deleted."""
    elsewhere = namespace_beside(cluster)
    for status in FAILING, COMPLETE:
        elsewhere.apply(claiming_job(cluster.get("jobsets", victim), f"{victim}-node-0", suspend=status is FAILING))
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
    """Lets the API server store anything; the permissive schema keeps the status a subresource. `scale` would check its path."""
    anything = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema",
                 "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}]
    unscaled = [{"op": "replace", "path": "/spec/versions/0/subresources", "value": {"status": {}}}]
    for name in OPENED:
        change = anything + (unscaled if name.startswith("trainjobs.") else [])
        run("kubectl", "patch", "crd", name, "--type=json", "-p", json.dumps(change))


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
    """The objects without their status: only their owners may change them. The Job controller writes its Job's status."""
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


def slowness():
    """How many times the processor time of a machine on which a million squares take 80 ms."""
    began = time.thread_time()
    sum(i * i for i in range(1_000_000))
    return max(1.0, (time.thread_time() - began) / 0.08)


def slow_steps(controller):
    """Both threads' steps of more than 10 ms of processor time, which the controller counts and logs: none, if possible. Where cores are
    shared with others the same step may take much longer, so they are shown, and only what no sharing explains fails."""
    def logged():
        return re.findall(r"slow step (?:loop=(\w+) )?ms=(\d+)", controller.said())

    before, counted, steps = logged(), controller.metric("trainer_loop_stalls_total"), logged()
    assert len(before) <= counted <= len(steps), f"{counted} slow steps were counted, and {len(steps)} are found in the log"
    print(f"     steps of more than 10 ms: {', '.join(f'{loop} {ms}' for loop, ms in steps) or 'none'}")
    limit = 100 * slowness()
    assert all(int(ms) < limit for _, ms in steps), f"steps took {steps} ms, of {limit:.0f}"


def without_version(objects):
    drop = ("resourceVersion", "managedFields")
    return {k: {**o, "metadata": {m: v for m, v in o["metadata"].items() if m not in drop}} for k, o in objects.items()}


def test_hostile_objects_do_not_stop_others(cluster):
    harness.not_with_local_mode("its schemas of our kinds are not CRDs that can be changed, so it holds no such objects")
    open_schema()
    try:
        cluster.apply(runtime("plain"))
        for o in (runtime("wrong", template=7), runtime("large", volumes=[{"name": LARGE}]), *FOREIGN,
                  *HOPELESS.values(), *HARMLESS.values(), *DEEP.values()):
            create(cluster, o)
        plant_bomb(cluster, "bomb", 1_000_000)
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


def unverified():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@contextlib.contextmanager
def flood(host, port):
    """300 connections without a TLS handshake and 25 more a second; a dozen bodies in chunks that hardly continue."""
    done = threading.Event()

    def half_open():
        kept = [socket.create_connection((host, port)) for _ in range(300)]
        while not done.wait(1 / 25):
            kept.append(socket.create_connection((host, port)))

    def slow_body():
        while not done.is_set():
            with contextlib.suppress(OSError), socket.create_connection((host, port), 5) as plain:
                with unverified().wrap_socket(plain) as peer:
                    peer.sendall(b"POST /mutate-trainer-kubeflow-org-v1alpha1-trainjob HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
                    while not done.wait(0.5):
                        peer.sendall(b"1\r\nx\r\n")

    threads = [threading.Thread(target=each, daemon=True) for each in [half_open] + 12 * [slow_body]]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_metrics_are_for_those_who_may_get_them(cluster):
    harness.not_with_local_mode("it has one user, who may do everything")
    host = os.environ["TESTBED_HOST"]

    def status(token=None):
        request = urllib.request.Request(f"https://{host}:8443/metrics", headers={"Authorization": f"Bearer {token}"} if token else {})
        try:
            with urllib.request.urlopen(request, timeout=10, context=unverified()) as answer:
                return answer.status
        except urllib.error.HTTPError as refused:
            return refused.code

    with tempfile.TemporaryDirectory() as directory:
        controller = harness.Controller(directory, *harness.ADMISSION)
        config = controller.log.parent / "controller.yaml"
        config.write_text(config.read_text().replace("secureServing: false", "secureServing: true, auth: {enabled: true}"))
        role = f"metrics-of-{cluster.namespace}"[:63]
        controller.start()
        try:
            token = wait_until("a token", lambda: cluster.kubectl("create", "token", "default", check=False).strip())
            assert status() == 401, "without a token"
            assert status("nonsense") == 401, "with a wrong token"
            assert status(token) == 403, "without the right"
            run("kubectl", "create", "clusterrole", role, "--verb=get", "--non-resource-url=/metrics")
            run("kubectl", "create", "clusterrolebinding", role, f"--clusterrole={role}", f"--serviceaccount={cluster.namespace}:default")
            wait_until("the right is there", lambda: status(token) == 200)
            controller.stop()
        finally:
            controller.kill()
            run("kubectl", "delete", "clusterrole,clusterrolebinding", role, "--ignore-not-found")


def memory(controller):
    """Its resident memory, now and at most so far, in MB."""
    with open(f"/proc/{controller.process.pid}/status") as status:
        text = status.read()
    return [int(re.search(rf"{name}:\s+(\d+)", text)[1]) / 1024 for name in ("VmRSS", "VmHWM")]


def attacked(test):
    """Runs test(cluster, controller, neighbour). Admission goes through the controller too. Afterwards no step of a loop may have been
    slow, nor memory have been filled, and it is given back."""
    @functools.wraps(test)
    def run_attacked(cluster):
        with tempfile.TemporaryDirectory() as directory, harness.Neighbour(cluster) as neighbour:
            controller = harness.Controller(directory, *harness.ADMISSION).start()
            try:
                wait_until("admission", lambda: harness.LOCAL or "webhooks published" in controller.said())
                neighbour.check_is_served()   # also what else the first JobSets make the controller do
                before, _ = memory(controller)
                test(cluster, controller, neighbour)
                slow_steps(controller)
                _, most = memory(controller)
                print(f"     {before:.0f} MB before, {most:.0f} MB at most")
                assert most < 150, f"{most:.0f} MB were resident"
                cluster.kubectl("delete", "jobsets,trainjobs,trainingruntimes", "--all", "--wait=false")
                wait_until("memory is given back", lambda: memory(controller)[0] < before + 25, seconds=60, every=1,
                           shown=lambda: f"{memory(controller)[0]:.0f} MB are resident, {before:.0f} were before")
                controller.stop()
            except AssertionError as error:
                raise Failed(f"{error}\n{controller.log.read_text()[-3000:]}")
            finally:
                controller.kill()
                cluster.kubectl("delete", "jobsets,trainjobs", "--all", "--wait=false")
    return run_attacked


def failing_jobset(name, replicas):
    """Its Jobs fail a second after they have been started. It is suspended: its failure policy can be added by an update."""
    job = replicated_job()
    job["template"]["spec"].update(activeDeadlineSeconds=1, parallelism=1, completions=1)
    return jobset(name, {"suspend": True, "replicatedJobs": [{**job, "replicas": replicas}]})


def start_with_policy(cluster, name, policy):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as patch:   # it is too long for a command line
        json.dump({"spec": {"failurePolicy": policy, "suspend": False}}, patch)
        patch.flush()
        cluster.kubectl("patch", "jobset", name, "--type=merge", "--patch-file", patch.name)


def has_failed(cluster, name):
    """Its one restart, and then its end."""
    wait_until(f"JobSet {name} has failed", lambda: cluster.condition("jobset", name, "Failed"), seconds=120, every=0.5)
    assert cluster.get("jobset", name)["status"]["restarts"] == 1, cluster.get("jobset", name)["status"]


@attacked
def test_a_flood_of_connections_does_not_stop_admission(cluster, controller, neighbour):
    cluster.apply(runtime("plain"))
    with flood(os.environ["TESTBED_HOST"], 9443):
        wait_until("it is crowded", lambda: controller.metric("trainer_connections_evicted_total") > 0, seconds=60)
        neighbour.check_is_served()
        for _ in range(3):   # the two webhooks of TrainJobs
            cluster.kubectl("create", "--dry-run=server", "-f", "-", text=json.dumps(trainjob("taken")))


@attacked
def test_owners_named_from_elsewhere_delay_no_one(cluster, controller, neighbour):
    """Ten Jobs a second that name the JobSet of another namespace as their owner, and fail. Kubernetes' garbage collector deletes each."""
    cluster.apply(jobset("good", {"replicatedJobs": [replicated_job()]}))
    uid = wait_until("the JobSet's Job exists", lambda: cluster.get("jobs", "good-node-0"))["metadata"]["uid"]
    victim, elsewhere = cluster.get("jobsets", "good"), namespace_beside(cluster)
    jobs = f"/apis/batch/v1/namespaces/{elsewhere.namespace}/jobs"

    def claim(number):
        neighbour.request(jobs, claiming_job(victim, f"claim-{number}", suspend=True))
        neighbour.request(f"{jobs}/claim-{number}/status", {"status": FAILING}, "PATCH", "application/merge-patch+json")

    with harness.at_rate(10, claim):
        neighbour.check_is_served()
    run("kubectl", "delete", "namespace", elsewhere.namespace, "--wait=false")
    cluster.apply(jobset("later", {"replicatedJobs": [replicated_job()]}))
    check_untouched(cluster, "good")
    assert cluster.get("jobs", "good-node-0")["metadata"]["uid"] == uid, "the Job was made again"


@attacked
def test_snapshots_that_are_bombs_delay_no_one(cluster, controller, neighbour):
    """They are there before the controller has written its own, and are read again for each change of their jobs. One is longer than
    what is parsed, the other has more values."""
    names = [f"bomb-{number}" for number in range(10)]
    controller.stop()
    cluster.apply(runtime("plain"), *map(trainjob, names))
    for number, name in enumerate(names):
        plant_bomb(cluster, name, 1_000_000 if number % 2 else 500_000)
    controller.start()

    def touch(number):
        neighbour.request(f"/apis/{TRAINER}/namespaces/{cluster.namespace}/trainjobs/{names[number % len(names)]}",
                          {"metadata": {"annotations": {"example.com/touched": str(number)}}}, "PATCH", "application/merge-patch+json")

    with harness.at_rate(5, touch):
        neighbour.check_is_served()
    wait_until("each TrainJob says why it does not run", lambda: reported(cluster) >= set(names), seconds=60)


@attacked
def test_patterns_that_are_too_large_delay_no_one(cluster, controller, neighbour):
    cluster.apply(failing_jobset("bomb", 20))
    patterns = [f"{i}" + ".{999}" * 140 for i in range(1000)]
    start_with_policy(cluster, "bomb", {"maxRestarts": 1, "rules": [
        {"name": "bomb", "action": "FailJobSet", "onJobFailureMessagePatterns": patterns}]})
    wait_until("a Job has failed", lambda: cluster.get("jobset", "bomb").get("status", {}).get("restarts"), seconds=60)
    neighbour.check_is_served()
    has_failed(cluster, "bomb")
    reasons = {event["reason"] for event in cluster.list("events") if event["involvedObject"]["name"] == "bomb"}
    assert "FailurePatternRefused" in reasons, reasons


@attacked
def test_counts_that_multiply_are_refused(cluster, controller, neighbour):
    """Each is small: what they come to together would be forty million host names."""
    node, launcher = replicated_job(), {**replicated_job(), "name": "launcher"}
    node["replicas"] = 20_000
    del node["template"]["metadata"]
    product = runtime("product", template={"spec": {"replicatedJobs": [node, launcher]}})
    product["spec"]["mlPolicy"] = {"numNodes": 1, "mpi": {"mpiImplementation": "OpenMPI", "runLauncherAsNode": True}}
    cluster.apply(product, trainjob("product", {**refers_to("product"), "trainer": {"numNodes": 2001}}))
    neighbour.check_is_served()
    wait_until("TrainJob product says why it does not run", lambda: "product" in reported(cluster), seconds=60)


def chained_jobs(count):
    """Each waits for the one before it."""
    pod = {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "localhost/none:1"}]}}}}
    return [replicated_job()] + [{"name": f"j{i}", "template": pod, "dependsOn": [
        {"name": f"j{i - 1}" if i else "node", "status": "Complete"}]} for i in range(count - 1)]


@harness.only_with_long
@attacked
def test_a_runtime_of_very_many_jobs_delays_no_one(cluster, controller, neighbour):
    create(cluster, runtime("chain", template={"spec": {"replicatedJobs": chained_jobs(3_000)}}))
    create(cluster, trainjob("chain", refers_to("chain")))
    neighbour.check_is_served()
    wait_until("TrainJob chain says why it does not run", lambda: "chain" in reported(cluster), seconds=60)


def review(o, namespace):
    """(path, body) of a request as of the API server, which asks whether an object may be created."""
    group, version = o["apiVersion"].split("/")
    kind = o["kind"]
    path = f"/validate-{group.replace('.', '-')}-{version}-{kind.lower()}"
    request = {"uid": "u", "operation": "CREATE", "namespace": namespace, "name": o["metadata"]["name"], "object": o,
               "kind": {"group": group, "version": version, "kind": kind},
               "resource": {"group": group, "version": version, "resource": kind.lower() + "s"}}
    return path, json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


@contextlib.contextmanager
def reviews_without_pause(host, port, reviews):
    """Two connections for each send it again and again. Yields the numbers of answers by path and status."""
    done, answers, errors = threading.Event(), collections.Counter(), []

    def send(path, body):
        try:
            peer = http.client.HTTPSConnection(host, port, timeout=30, context=unverified())
            while not done.is_set():
                peer.request("POST", path, body, {"Content-Type": "application/json"})
                with peer.getresponse() as answer:
                    answer.read()
                    answers[path, answer.status] += 1
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=send, args=each, daemon=True) for each in 2 * reviews]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not errors, errors


def hostile_reviews(cluster):
    """Reviews of a runtime of 3,000 steps, which it creates, of a job of it, and of a JobSet of as many, with claims that must be looked up."""
    chain = runtime("chain", template={"spec": {"replicatedJobs": chained_jobs(3_000)}})
    create(cluster, chain)
    volumes = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"claim-{i}"}} for i in range(500)]
    patched = {"name": "node", "template": {"spec": {"template": {"spec": {"volumes": volumes}}}}}
    job = trainjob("review", {**refers_to("chain"), "runtimePatches": [
        {"manager": "example.com/m", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [patched]}}}}]})
    claims = [{"templates": [{"metadata": {"name": f"claim-{i}"}, "spec": {}} for i in range(500)]}]
    many = jobset("review", {"replicatedJobs": chained_jobs(3_000), "volumeClaimPolicies": claims})
    return [review(o, cluster.namespace) for o in (job, chain, many)]


@attacked
def test_reviews_that_the_api_server_has_not_sent_delay_no_one(cluster, controller, neighbour):
    """Any pod can send them."""
    reviews = hostile_reviews(cluster)
    with reviews_without_pause(os.environ["TESTBED_HOST"], 9443, reviews) as answers:
        neighbour.check_is_served()
    print(f"     reviews answered meanwhile: {', '.join(f'{count} of {path}' for (path, _), count in answers.items())}")
    assert all(answers[path, 200] for path, _ in reviews) and len(answers) == len(reviews), f"not all reviews were answered: {answers}"
    lookups = controller.metric("rest_client_requests_total", 'resource="persistentvolumeclaims"')
    most = 16 * sum(answers[path, 200] + 2 for path, _ in reviews)   # also of those whose answers did not come any more
    assert 16 <= lookups <= most, f"{lookups} claims were looked up for {answers}"


def test_reviews_of_clients_without_the_api_servers_certificate_are_refused(cluster):
    host, pki = os.environ["TESTBED_HOST"], pathlib.Path(os.environ["KUBECONFIG"]).parent / "pki"
    path, body = review(trainjob("review"), cluster.namespace)

    def status(*certificate):
        context = unverified()
        if certificate:
            context.load_cert_chain(*certificate)
        with contextlib.closing(http.client.HTTPSConnection(host, 9443, timeout=10, context=context)) as peer:
            peer.request("POST", path, body)
            return peer.getresponse().status

    with tempfile.TemporaryDirectory() as directory:
        controller = harness.Controller(directory, "--webhook-url", f"https://{host}:9443", "--webhook-client-ca", str(pki / "webhooks.crt"))
        controller.start()
        try:
            wait_until("admission", lambda: "webhooks published" in controller.said())
            assert "must be created before the TrainJob" in cluster.refusal(trainjob("early"))
            cluster.apply(runtime("plain"), trainjob("late"))
            assert status() == 401, "without a certificate"
            assert status(pki / "admin.crt", pki / "admin.key") == 403, "with one of another CA"
            assert status(pki / "webhooks.crt", pki / "webhooks.key") == 200, "with the API server's own"
            controller.stop()
        finally:
            controller.kill()


@attacked
def test_a_rule_whose_name_is_no_reason_acts(cluster, controller, neighbour):
    cluster.apply(failing_jobset("named", 1))
    start_with_policy(cluster, "named", {"maxRestarts": 1, "rules": [{"name": "x-y", "action": "RestartJobSet"}]})
    has_failed(cluster, "named")
    reasons = {event["reason"] for event in cluster.list("events") if event["involvedObject"]["name"] == "named"}
    assert "FailurePolicy_x_y" in reasons, reasons
    assert controller.metric("trainer_status_refused_total") == 0


@attacked
def test_more_replicated_jobs_than_a_status_has_a_place_for(cluster, controller, neighbour):
    empty = {"parallelism": 0, "completions": 1, **replicated_job()["template"]["spec"]}
    many = [replicated_job()] + [{"name": f"w{i}", "template": {"spec": empty}} for i in range(149)]
    cluster.apply(runtime("many", template={"spec": {"replicatedJobs": many}}), trainjob("many", refers_to("many")))
    wait_until("the status shows as many as it has a place for",
               lambda: len((cluster.get("trainjob", "many").get("status") or {}).get("jobsStatus", [])) == 100, seconds=60)
    neighbour.check_is_served()
    assert cluster.get("trainjob", "many")["status"]["phase"]
    assert controller.metric("trainer_status_refused_total") == 0


@attacked
def test_a_jobset_of_very_many_jobs_delays_no_one(cluster, controller, neighbour):
    jobs = int(os.environ.get("MANY_JOBS", "3000"))
    job = replicated_job()
    job["template"]["spec"].update(parallelism=0, completions=1)
    cluster.apply(jobset("huge", {"replicatedJobs": [{**job, "replicas": jobs}]}))

    def count(field):
        status = (cluster.get("jobset", "huge").get("status") or {}).get("replicatedJobsStatus", [])
        return sum(each[field] for each in status)

    neighbour.check_is_served()   # while they are created
    # Ready, since none of their pods is missing.
    wait_until("all Jobs exist", lambda: count("ready") == jobs, seconds=60 + jobs / 10, every=0.5)
    cluster.kubectl("patch", "jobset", "huge", "--type=merge", "-p", '{"spec": {"suspend": true}}')
    neighbour.check_is_served()
    wait_until("all Jobs are suspended", lambda: count("suspended") == jobs, seconds=60 + jobs / 10, every=0.5)


@harness.only_with_long
@attacked
def test_jobsets_of_very_many_jobs_crowd_no_one_out(cluster, controller, neighbour):
    """Creates as many JobSets as there are workers, each with more Jobs than there are writes at a time."""
    jobsets, jobs = int(os.environ.get("CROWD_JOBSETS", "32")), int(os.environ.get("CROWD_JOBS", "200"))
    job = replicated_job()
    job["template"]["spec"].update(parallelism=0, completions=1)
    cluster.apply(*[jobset(f"crowd-{number}", {"replicatedJobs": [{**job, "replicas": jobs}]}) for number in range(jobsets)])

    def created():
        """How many Jobs the status of each JobSet counts."""
        statuses = [(o.get("status") or {}).get("replicatedJobsStatus") or [] for o in cluster.list("jobsets")]
        return [sum(each["ready"] for each in status) for status in statuses]

    neighbour.check_is_served()
    meanwhile = created()
    print(f"     meanwhile the statuses of {jobsets} JobSets count {sum(meanwhile)} of {jobsets * jobs} Jobs")
    assert sum(meanwhile) < jobsets * jobs, "it was over before the neighbour was served: set CROWD_JOBS to more"
    wait_until("all Jobs exist", lambda: created() == [jobs] * jobsets, seconds=60 + jobsets * jobs / 20, every=1)


if __name__ == "__main__":
    harness.main(__file__)
