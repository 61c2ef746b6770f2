#!/usr/bin/python3
"""Jobs that run on, beside jobs that are created, run, are suspended, resumed, end and are deleted: what the controller uses does not grow.
Four of five are TrainJobs, the others PyTorchJobs.

JOBS and MINUTES say how many run on, and for how long: 5,000 and 30 with FULL=yes, else 60 and a half. Needs a control plane without node;
the test plays the kubelet.
"""
import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import statistics
import sys
import threading
import time

import harness
import v1_test
from crash_test import runtime, trainjob
from harness import wait_until
from v1_test import pytorchjob

sys.path.insert(0, str(harness.ROOT / "tests/conformance"))
from conform import Api  # noqa: E402

IS_FULL = os.environ.get("FULL") == "yes"
JOBS = int(os.environ.get("JOBS", 5_000 if IS_FULL else 60))
SECONDS = 60 * float(os.environ.get("MINUTES", 30 if IS_FULL else 0.5))
LIVES = 12                # jobs that come and go, at a time
STEP = 0.5                # seconds
CHANGED_IN_A_STEP = 5     # of the jobs that run on: a pod is ready or not
KINDS = ("TrainJob", "PyTorchJob")
JOB_OF_POD = ("jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/job-name")
SCHEDULER = "none"        # kube-scheduler would try thousands of pods without a node again and again
RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
NOT_READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}


class World:
    """The requests of a thread to the API server about one namespace."""

    def __init__(self, namespace):
        self.namespace, self.api = namespace, Api(os.environ["KUBECONFIG"])
        self.api.discover()
        self.pods, self.jobs = {}, {}

    def read(self):
        """Remembers the pods by their job, and the jobs by their name."""
        self.pods, self.jobs = {}, {}
        for pod in self.list("Pod"):
            labels = pod["metadata"]["labels"]
            job = next(labels[key] for key in JOB_OF_POD if key in labels)
            self.pods.setdefault(job, []).append(pod)
        for kind in KINDS:
            self.jobs.update({job["metadata"]["name"]: job for job in self.list(kind)})

    def list(self, kind, query=""):
        status, found = self.api.call("GET", self.api.path(kind, self.namespace) + query)
        assert status == 200, found
        return found["items"]

    def create(self, job):
        status, answer = self.api.call("POST", self.api.path(job["kind"], self.namespace), job)
        assert status == 201, answer

    def patch(self, kind, name, change, of=""):
        status, answer = self.api.call("PATCH", self.api.path(kind, self.namespace, name) + of, change, "application/merge-patch+json")
        assert status == 200, answer

    def set_status(self, pod, status):
        self.patch("Pod", pod["metadata"]["name"], {"status": status}, "/status")

    def delete(self, kind, name):
        status, answer = self.api.call("DELETE", self.api.path(kind, self.namespace, name), {"propagationPolicy": "Background"})
        assert status == 200, answer


def body_of(number):
    """A TrainJob of two steps, first with one pod; or a PyTorchJob of two pods."""
    name = f"j{number}"
    if number % 5:
        return trainjob(name, "plain")
    job = pytorchjob(name, backoffLimit=0)
    for role in job["spec"]["pytorchReplicaSpecs"].values():
        role["template"]["spec"]["schedulerName"] = SCHEDULER
    return job


def plain_runtime():
    made = runtime("plain")
    for step in made["spec"]["template"]["spec"]["replicatedJobs"]:
        step["template"]["spec"]["template"]["spec"]["schedulerName"] = SCHEDULER
    return made


def pods_at_first(job):
    return 1 if job["kind"] == "TrainJob" else 2


def is_finished(job):
    return any(c["type"] in ("Complete", "Succeeded", "Failed") and c["status"] == "True" for c in job.get("status", {}).get("conditions", []))


def life(world, number):
    """A job that comes and goes. Yields where it has to wait for what is to be read next."""
    job = body_of(number)
    kind, name = job["kind"], job["metadata"]["name"]

    def have_pods(count):
        pods = world.pods.get(name, [])
        return len(pods) == count and not any("deletionTimestamp" in pod["metadata"] for pod in pods)

    def start():
        while not have_pods(pods_at_first(job)):
            yield
        for pod in world.pods[name]:
            world.set_status(pod, RUNNING)
        yield

    def suspend(is_suspended):
        policy = {"suspend": is_suspended}
        world.patch(kind, name, {"spec": policy if kind == "TrainJob" else {"runPolicy": policy}})

    world.create(job)
    yield from start()
    suspend(True)
    while not have_pods(0):
        yield
    suspend(False)
    yield from start()
    for pod in world.pods[name]:
        world.set_status(pod, {"phase": "Failed" if number % 2 else "Succeeded"})
    # A TrainJob that has not failed continues with its second step.
    while name in world.jobs and not is_finished(world.jobs[name]):
        for pod in world.pods.get(name, []):
            if pod["status"]["phase"] == "Pending" and "deletionTimestamp" not in pod["metadata"]:
                world.set_status(pod, {"phase": "Succeeded"})
        yield
    world.delete(kind, name)


def create_running(namespace):
    """The jobs that run on, each with its pods; answers the names of the pods of the first ones."""
    thread = threading.local()

    def with_world(act):
        if not hasattr(thread, "world"):
            thread.world = World(namespace)
        act(thread.world)

    world, begun = World(namespace), set()
    desired = sum(pods_at_first(body_of(number)) for number in range(JOBS))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: with_world(lambda own: own.create(body_of(number))), range(JOBS)))

        def all_run():
            pending = world.list("Pod", "?fieldSelector=status.phase=Pending&limit=500")
            list(pool.map(lambda pod: with_world(lambda own: own.set_status(pod, RUNNING)), pending))
            begun.update(pod["metadata"]["name"] for pod in pending)
            return len(begun) >= desired

        # Each becomes a status of its Job, JobSet and TrainJob: some 80 ms of the API server's CPU time.
        wait_until(f"{desired} pods run", all_run, seconds=1800, every=1, shown=lambda: f"{len(begun)} do")
    return sorted(begun)


class Usage:
    """The memory of a process in MB, its sockets and its threads."""

    def __init__(self, process):
        self.directory = pathlib.Path(f"/proc/{process.pid}")
        self.samples = []

    def read(self):
        pages = int((self.directory / "statm").read_text().split()[1])
        sockets = sum(os.readlink(entry).startswith("socket:") for entry in (self.directory / "fd").iterdir() if entry.is_symlink())
        self.samples.append((pages * os.sysconf("SC_PAGE_SIZE") / 1e6, sockets, len(list((self.directory / "task").iterdir()))))

    def median_of(self, begin, end):
        """The medians of the samples between two parts of the time."""
        count = len(self.samples)
        return [statistics.median(each) for each in zip(*self.samples[int(begin * count):int(end * count)])]


def churn(world, running, pods, usage):
    """For SECONDS; answers how many jobs came and went."""
    numbers, lives, ended = itertools.count(1), [], 0
    ready = itertools.cycle((NOT_READY, RUNNING))
    end = time.monotonic() + SECONDS
    while lives or time.monotonic() < end:
        began = time.monotonic()
        world.read()
        while len(lives) < LIVES and began < end:
            lives.append(life(world, next(numbers)))
        left = [each for each in lives if next(each, "end") != "end"]
        ended += len(lives) - len(left)
        lives = left
        status = next(ready)
        for name in pods[:CHANGED_IN_A_STEP]:
            running.patch("Pod", name, {"status": status}, "/status")
        usage.read()
        assert time.monotonic() < end + 60, f"{len(lives)} jobs do not end: {[each.gi_frame.f_locals['name'] for each in lives]}"
        time.sleep(max(0, began + STEP - time.monotonic()))
    return ended


def test_nothing_grows(cluster):
    namespace = cluster.namespace + "-running"
    harness.run("kubectl", "create", "namespace", namespace)
    for each in (cluster, harness.Cluster(namespace)):
        each.apply(plain_runtime())
    with contextlib.ExitStack() as at_end, v1_test.served() as controller:
        at_end.callback(harness.run, "kubectl", "delete", "namespace", namespace, "--wait=false")
        pods = create_running(namespace)
        world, running, usage = World(cluster.namespace), World(namespace), Usage(controller.process)

        def kept():
            return {kind: controller.metric("trainer_store_objects", f'kind="{kind}"') for kind in (*KINDS, "JobSet", "Job", "Pod")}

        before = kept()
        ended = churn(world, running, pods, usage)
        first, last = usage.median_of(0.2, 0.4), usage.median_of(0.8, 1)
        print(f"     {JOBS} jobs with {len(pods)} pods ran on; {ended} came and went. MB, sockets, threads: {first}, then {last}")
        wait_until("the caches have what they had", lambda: kept() == before, seconds=90, every=1, shown=lambda: f"{before}, now {kept()}")
        wait_until("no object waits for a reconcile", lambda: controller.metric("workqueue_depth") == 0, seconds=30,
                   shown=lambda: f"{controller.metric('workqueue_depth'):g} do")
        # In a minute caches and pools of connections are still being filled.
        assert last[0] - first[0] <= (2 if IS_FULL else 4), "memory grows"
        assert last[1] - first[1] <= (2 if IS_FULL else 16), "connections grow"
        assert last[2] == first[2], "threads grow"
        assert ended >= SECONDS / 10, "too few jobs to say anything"


if __name__ == "__main__":
    harness.main(__file__)
