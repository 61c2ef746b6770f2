#!/usr/bin/python3
"""A controller that dies, at every write it makes: before the API server hears of it, and after, before the answer is
read. The next one must end the job all the same: once, with no child doubled, lost or left without an owner. TrainJobs and V1 jobs.

Needs a control plane without node; the test plays the kubelet and ends the pods.
"""
import collections
import os
import re
import signal
import sys
import tempfile
import time

import harness
import v1_test
from api_proxy import ASIDE, Proxy
from harness import wait_until

sys.path.insert(0, str(harness.ROOT / "tests/conformance"))
from conform import Api  # noqa: E402

TRAINER_API = "trainer.kubeflow.org/v1alpha1"
# A job is left alone once nothing was written for so long: counters alone are held back, a TrainJob's behind its JobSet's.
QUIET_SECONDS = 1.5
# Writes of counters come together or apart, so a life may have somewhat fewer than the one that was counted.
LAST_FEW = 4


def pod_template(name):
    return {"spec": {"restartPolicy": "Never", "containers": [{"name": name, "image": "localhost/none:1"}]}}


def runtime(name, max_restarts=None):
    def job(job_name, **more):
        return {"name": job_name, **more, "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}} if job_name == "node" else {},
            "spec": {"backoffLimit": 0, "template": pod_template(job_name)}}}

    spec = {"replicatedJobs": [job("prepare"), job("node", dependsOn=[{"name": "prepare", "status": "Complete"}])]}
    if max_restarts is not None:
        spec["failurePolicy"] = {"maxRestarts": max_restarts}
    return {"apiVersion": TRAINER_API, "kind": "TrainingRuntime", "metadata": {"name": name},
            "spec": {"mlPolicy": {"numNodes": 2, "torch": {}}, "template": {"spec": spec}}}


def trainjob(name, runtime_name):
    return {"apiVersion": TRAINER_API, "kind": "TrainJob", "metadata": {"name": name},
            "spec": {"runtimeRef": {"name": runtime_name, "kind": "TrainingRuntime"}}}


class Life:
    """One job from its creation to its end, with a controller that may be killed once."""

    def __init__(self, cluster, proxy, directory, *flags):
        self.cluster, self.proxy = cluster, proxy
        self.api = Api(os.environ["KUBECONFIG"])
        self.controller = harness.Controller(directory, "--no-webhooks", *flags, kubeconfig=proxy.kubeconfig(directory))
        self.deaths = 0   # in the life that is going on, or was the last

    def die(self):
        self.deaths += 1
        self.controller.kill()

    def objects(self, kind, job):
        status, found = self.api.call("GET", self.api.path(kind, self.cluster.namespace))
        assert status == 200, found
        return [o for o in found["items"] if o["metadata"]["name"] == job or o["metadata"]["name"].startswith(job + "-")]

    def play_kubelet(self, job, fails):
        """Ends every pod that waits for a node: Failed while `fails` says so of its restart attempt, else Succeeded."""
        for pod in self.objects("Pod", job):
            if pod["status"]["phase"] != "Pending" or "deletionTimestamp" in pod["metadata"]:
                continue
            attempt = int(pod["metadata"]["labels"].get("jobset.sigs.k8s.io/restart-attempt", "0"))
            phase = "Failed" if fails(pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"], attempt) else "Succeeded"
            self.api.call("PATCH", self.api.path("Pod", self.cluster.namespace, pod["metadata"]["name"]) + "/status",
                          {"status": {"phase": phase}}, "application/merge-patch+json")

    def change(self, method, kind, name, body=None, of=""):
        status, answer = self.api.call(method, self.api.path(kind, self.cluster.namespace, name) + of, body,
                                       "application/merge-patch+json" if method == "PATCH" else "application/json")
        assert status == (201 if method == "POST" else 200), answer

    def live(self, body, play, crash_at, is_before):
        """Creates the job, and steps through play(life, name of the job), a generator, to its end; answers how many writes it took."""
        job, self.deaths = body["metadata"]["name"], 0
        self.proxy.arm(crash_at, is_before, self.die)
        self.controller.start()
        self.change("POST", body["kind"], None, body)
        steps = play(self, job)

        def ended():
            if self.controller.process.poll() is not None:
                self.controller.start()
            return next(steps, "end") == "end"

        wait_until(f"{job} ends", ended, seconds=180)
        # The writes after the end (counters, clean-up) count, too.
        quiet = {"writes": -1, "since": time.monotonic()}

        def is_quiet():
            is_dead = self.controller.process.poll() is not None
            if is_dead:
                self.controller.start()
            if is_dead or quiet["writes"] != self.proxy.writes:
                quiet.update(writes=self.proxy.writes, since=time.monotonic())
            return time.monotonic() - quiet["since"] >= QUIET_SECONDS

        wait_until(f"{job} is left alone", is_quiet, seconds=20, every=0.15)
        self.controller.stop()
        return self.proxy.writes

    def cluster_condition(self, job):
        found = self.objects("TrainJob", job)[0].get("status", {})
        return any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in found.get("conditions", []))

    def check(self, job, restarts=0):
        trainjob_, = self.objects("TrainJob", job)
        conditions = {c["type"]: c["status"] for c in trainjob_["status"]["conditions"]}
        assert conditions == {"Complete": "True"}, conditions
        jobset, = self.objects("JobSet", job)
        assert jobset["status"].get("restarts", 0) == restarts, jobset["status"]
        assert sorted(o["metadata"]["name"] for o in self.objects("Job", job)) == [f"{job}-node-0", f"{job}-prepare-0"]
        assert [o["metadata"]["name"] for o in self.objects("Service", job)] == [job]
        assert [o["metadata"]["name"] for o in self.objects("ConfigMap", job)] == [f"{job}-runtime-snapshot"]
        pods = [p["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] for p in self.objects("Pod", job)]
        assert sorted(pods) == ["node", "node", "prepare"], pods

        self.check_owners(job, ("TrainJob", "JobSet", "Job"), ("JobSet", "Job", "Service", "ConfigMap", "Pod"))
        # A crash may hide an answer, so there may be one less; never one more.
        self.check_created(configmaps=1, jobs=2 * (1 + restarts), services=1, jobsets=1)

    def check_owners(self, job, owning, owned):
        uids = {o["metadata"]["uid"] for kind in owning for o in self.objects(kind, job)}
        for kind in owned:
            for o in self.objects(kind, job):
                owners = [r["uid"] for r in o["metadata"].get("ownerReferences", [])]
                assert len(owners) == 1 and owners[0] in uids, f"{kind} {o['metadata']['name']} is owned by {owners}"

    def check_created(self, **allowed):
        created = collections.Counter()
        for method, path, status in self.proxy.requests:
            if method == "POST" and status == 201 and not any(word in path for word in ASIDE):
                created[re.sub(r"\?.*", "", path).rsplit("/", 1)[1]] += 1
        for plural, count in created.items():
            assert count <= allowed.get(plural, 0), f"{count} {plural} were created"


def to_the_end(fails=lambda *_: False):
    """Plays the events of a TrainJob."""
    def play(life, job):
        while not life.cluster_condition(job):
            life.play_kubelet(job, fails)
            yield
    return play


def everywhere(cluster, body, play, check, moments=("before", "after"), stride=1, flags=()):
    """Lives of jobs body(name), each with a controller that is killed at another write; check(life, name) follows each."""
    with tempfile.TemporaryDirectory() as directory:
        proxy = Proxy(os.environ["KUBECONFIG"], cluster.namespace)
        life = Life(cluster, proxy, directory, *flags)
        try:
            writes = life.live(body("calm"), play, None, False)
            check(life, "calm")
            assert writes >= 2 * LAST_FEW, f"a job's life has only {writes} writes"
            deaths = 0
            for number in range(1, writes + 1, stride):
                for moment in moments:
                    job = f"{moment}-{number}"
                    try:
                        life.live(body(job), play, number, moment == "before")
                        check(life, job)
                        assert life.deaths == 1 or number > writes - LAST_FEW, f"it died {life.deaths} times, after {proxy.writes} writes"
                        deaths += life.deaths
                    except AssertionError as error:
                        request = next((r for r in proxy.requests if r[2] is None), "?")
                        raise AssertionError(f"killed {moment} write {number} of {writes} {request}: {error}")
            print(f"     died {deaths} times: {' and '.join(moments)} every {stride}. of {writes} writes")
        finally:
            life.controller.kill()
            proxy.close()


def test_a_job_completes_once(cluster):
    cluster.apply(runtime("calm"))
    everywhere(cluster, lambda job: trainjob(job, "calm"), to_the_end(), lambda life, job: life.check(job))


def test_a_restart_counts_once(cluster):
    # A write that was never heard of is no different from one not yet tried; the lost answers are what could count twice.
    # CRASH_STRIDE=1 tries them all, in some five minutes.
    cluster.apply(runtime("again", max_restarts=1))
    fails = to_the_end(lambda replicated_job, attempt: replicated_job == "node" and attempt == 0)
    everywhere(cluster, lambda job: trainjob(job, "again"), fails, lambda life, job: life.check(job, restarts=1), moments=("after",),
               stride=int(os.environ.get("CRASH_STRIDE", "3")))


def v1_job(life, kind, job):
    """(The job's status, the types of its true conditions)."""
    status = next((o for o in life.objects(kind, job)), {}).get("status", {})
    return status, [c["type"] for c in status.get("conditions", []) if c["status"] == "True"]


def have(life, job, *wanted):
    pods = [f"{job}-{name}" for name in wanted]
    return named(life, "Pod", job) == pods and named(life, "Service", job) == ([job, *pods] if pods else [])


def set_pod(life, name, container, phase, **state):
    life.change("PATCH", "Pod", name, {"status": {"phase": phase, "containerStatuses": [
        {"name": container, "image": "x", "imageID": "x", "ready": False, "restartCount": 0, "state": state}]}}, "/status")


def test_a_pytorchjob_is_suspended_resumed_and_deleted_once(cluster):
    v1_test.install()

    def play(life, job):
        for condition, suspend in (("Created", True), ("Suspended", False)):
            wanted = ["master-0", "worker-0"] if suspend else []
            while condition not in v1_job(life, "PyTorchJob", job)[1] or not have(life, job, *wanted):
                yield
            life.change("PATCH", "PyTorchJob", job, {"spec": {"runPolicy": {"suspend": suspend}}})
        while "Suspended" in v1_job(life, "PyTorchJob", job)[1] or not have(life, job, "master-0", "worker-0"):
            yield
        set_pod(life, f"{job}-master-0", "pytorch", "Running", running={"startedAt": "2026-01-01T00:00:00Z"})
        while v1_job(life, "PyTorchJob", job)[1] != ["Created", "Running"]:
            yield
        life.check_owners(job, ("PyTorchJob",), ("Pod", "Service"))
        life.change("DELETE", "PyTorchJob", job)
        while not have(life, job) or life.objects("PyTorchJob", job):
            yield

    def check(life, job):
        assert have(life, job), "pods or Services were created for a job that is gone"
        life.check_created(pods=4, services=6)

    everywhere(cluster, v1_test.pytorchjob, play, check, flags=("--enable-scheme",))


def test_a_tfjob_restarts_and_succeeds_once(cluster):
    v1_test.install()
    role = {"replicas": 1, "restartPolicy": "ExitCode",
            "template": {"spec": {"containers": [{"name": "tensorflow", "image": "localhost/none:1"}]}}}

    def body(job):
        return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": job}, "spec": {
            "runPolicy": {"backoffLimit": 3, "cleanPodPolicy": "All"}, "tfReplicaSpecs": {"Chief": role, "Worker": role}}}

    def worker(life, job):
        return next((o["metadata"]["uid"] for o in life.objects("Pod", job) if o["metadata"]["name"] == f"{job}-worker-0"), None)

    def play(life, job):
        while "Created" not in v1_job(life, "TFJob", job)[1] or not have(life, job, "chief-0", "worker-0"):
            yield
        life.check_owners(job, ("TFJob",), ("Pod", "Service"))
        first = worker(life, job)
        set_pod(life, f"{job}-worker-0", "tensorflow", "Failed", terminated={"exitCode": 137, "reason": "Error"})
        while worker(life, job) in (None, first):
            yield
        set_pod(life, f"{job}-chief-0", "tensorflow", "Succeeded", terminated={"exitCode": 0, "reason": "Completed"})
        while "Succeeded" not in v1_job(life, "TFJob", job)[1] or not have(life, job):
            yield

    def check(life, job):
        status, types = v1_job(life, "TFJob", job)
        assert "Failed" not in types and status["completionTime"] and status["restarts"] == 1, status
        assert have(life, job), "a finished job has pods or Services again"
        life.check_created(pods=3, services=3)

    everywhere(cluster, body, play, check, flags=("--enable-scheme",))


def named(life, kind, job):
    return sorted(o["metadata"]["name"] for o in life.objects(kind, job))


def test_an_mpijob_succeeds_once(cluster):
    v1_test.install()
    once = {"ConfigMap": "config", "ServiceAccount": "launcher", "Role": "launcher", "RoleBinding": "launcher"}

    def body(job):
        made = v1_test.mpijob(job)
        made["spec"]["runPolicy"]["cleanPodPolicy"] = "Running"
        return made

    def play(life, job):
        while "Created" not in v1_job(life, "MPIJob", job)[1] or named(life, "Pod", job) != [f"{job}-launcher", f"{job}-worker-0"]:
            yield
        for name in ("worker-0", "launcher"):
            set_pod(life, f"{job}-{name}", "mpi", "Running", running={"startedAt": "2026-01-01T00:00:00Z"})
        while "Running" not in v1_job(life, "MPIJob", job)[1]:
            yield
        set_pod(life, f"{job}-launcher", "mpi", "Succeeded", terminated={"exitCode": 0, "reason": "Completed"})
        while "Succeeded" not in v1_job(life, "MPIJob", job)[1] or named(life, "Pod", job) != [f"{job}-launcher"]:
            yield

    def check(life, job):
        status, types = v1_job(life, "MPIJob", job)
        assert types == ["Created", "Succeeded"] and status["completionTime"], status
        assert named(life, "Pod", job) == [f"{job}-launcher"] and not named(life, "Service", job)
        for kind, name in once.items():
            assert named(life, kind, job) == [f"{job}-{name}"], f"{kind}: {named(life, kind, job)}"
        life.check_owners(job, ("MPIJob",), ("Pod", *once))
        life.check_created(pods=2, configmaps=1, serviceaccounts=1, roles=1, rolebindings=1)

    everywhere(cluster, body, play, check, flags=("--enable-scheme",))


def test_an_elastic_gang_runs_out_of_retries_and_expires_once(cluster):
    """The pod that waits for its next restart is ended by its activeDeadlineSeconds; the job's TTL removes the rest."""
    v1_test.install()
    gangs = str(harness.ROOT / "tests/conformance/crds")
    harness.run("kubectl", "apply", "--server-side", "-f", gangs)
    harness.run("kubectl", "wait", "--for=condition=Established", "--timeout=30s", "-f", gangs)
    group, scaler = "PodGroup.scheduling.volcano.sh", "HorizontalPodAutoscaler"
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}

    def body(job):
        made = v1_test.pytorchjob(job, workers=2, backoffLimit=1, cleanPodPolicy="Running", ttlSecondsAfterFinished=1)
        made["spec"]["pytorchReplicaSpecs"].pop("Master")
        made["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 3, "metrics": [metric]}
        return made

    def play(life, job):
        while named(life, group, job) != [job]:
            yield
        assert not named(life, "Pod", job), "pods were created before their gang may start"
        life.change("PATCH", group, job, {"status": {"phase": "Inqueue"}})
        while not have(life, job, "worker-0", "worker-1") or named(life, scaler, job) != [job]:
            yield
        life.check_owners(job, ("PyTorchJob",), ("Pod", "Service", group, scaler))
        set_pod(life, f"{job}-worker-0", "pytorch", "Running", running={"startedAt": "2026-01-01T00:00:00Z"})
        while "Running" not in v1_job(life, "PyTorchJob", job)[1]:
            yield
        life.change("PATCH", "Pod", f"{job}-worker-1", {"status": {"phase": "Running", "containerStatuses": [{
            "name": "pytorch", "image": "x", "imageID": "x", "ready": False, "restartCount": 1,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-01-01T00:00:00Z"}}}]}}, "/status")
        while any(life.objects(kind, job) for kind in ("PyTorchJob", "Pod", "Service", group, scaler)):
            yield

    def check(life, job):
        ended = [r for r in life.proxy.requests if r[0] == "PATCH" and r[1].split("?")[0].endswith(f"/pods/{job}-worker-1")]
        assert ended, f"the pod in its back-off was deleted instead: {life.proxy.requests}"
        for kind in ("PyTorchJob", "Pod", "Service", group, scaler):
            assert not life.objects(kind, job), f"a {kind} was created for a job that is gone"
        life.check_created(pods=2, services=3, podgroups=1, horizontalpodautoscalers=1)

    try:
        everywhere(cluster, body, play, check, flags=("--enable-scheme", "--gang-scheduler-name=volcano"))
    finally:
        harness.run("kubectl", "delete", "--ignore-not-found", "--timeout=60s", "-f", gangs)


def test_a_leader_that_was_stopped_for_longer_than_its_lease_writes_nothing(cluster):
    jobs = [f"job-{i}" for i in range(40)]
    cluster.apply(runtime("calm"))
    proxy = Proxy(os.environ["KUBECONFIG"], cluster.namespace)   # what comes through it is the old leader's

    def with_election(text):
        return text.replace("leaderElect: false", f"leaderElect: true, resourceNamespace: {cluster.namespace}")

    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        old = harness.Controller(first, "--no-webhooks", kubeconfig=proxy.kubeconfig(first), change_config=with_election)
        new = harness.Controller(second, "--no-webhooks", "--health-address", "0", "--metrics-address", "0", change_config=with_election)
        try:
            old.start()
            cluster.apply(*(trainjob(job, "calm") for job in jobs))
            wait_until("the old leader is busy", lambda: proxy.writes >= 20)
            old.process.send_signal(signal.SIGSTOP)
            new.start(wait=False)
            wait_until("the new leader has finished the work", lambda: len(cluster.list("jobs")) == len(jobs), seconds=60, every=0.5)
            cluster.apply(trainjob("late", "calm"))   # the old leader has something to do when it continues
            wait_until("the new leader leads", lambda: "late-prepare-0" in [o["metadata"]["name"] for o in cluster.list("jobs")])
            before = proxy.writes
            old.process.send_signal(signal.SIGCONT)
            assert old.process.wait(30) == 1, old.said()[-2000:]
            assert proxy.writes == before, f"written after it was stopped: {proxy.requests[-3:]}"
        finally:
            old.kill()
            new.kill()
            proxy.close()


if __name__ == "__main__":
    harness.main(__file__)
