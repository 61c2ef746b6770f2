#!/usr/bin/python3
"""One fault at a time beside two controllers that elect a leader, and how long it takes until jobs go on.

FULL=yes: as often and as long as the figures that docs/security.md has. Otherwise a sample of each.
"""
import asyncio
import contextlib
import os
import re
import statistics
import tempfile
import threading
import time

from bed import Component, Controller, etcd_alarm, token_kubeconfig
import harness
from conform import Api
from crash_test import runtime, trainjob
from harness import run, wait_until

IS_FULL = os.environ.get("FULL") == "yes"


class Pair:
    """Two controllers in front of which requests are counted."""

    def __init__(self, cluster, directory, *options):
        self.cluster, self.api = cluster, Api(os.environ["KUBECONFIG"])
        self.api.discover()
        cluster.apply(runtime("plain"))
        kubeconfig = token_kubeconfig(directory)
        self.controllers = [Controller(number, directory, kubeconfig, number, *options) for number in (0, 1)]
        self.jobs = 0

    def create(self):
        """A TrainJob; answers its name."""
        self.jobs += 1
        name = f"j-{self.jobs}"
        status, answer = self.api.call("POST", self.api.path("TrainJob", self.cluster.namespace), trainjob(name, "plain"))
        assert status == 201, answer
        return name

    def has_job(self, name):
        status, _ = self.api.call("GET", self.api.path("Job", self.cluster.namespace, f"{name}-prepare-0"))
        return status == 200

    def leader(self):
        """The controller that wrote last, once one has."""
        last = [max((when for when, *_ in c.proxy.writes_of(self.cluster.namespace)), default=0) for c in self.controllers]
        assert any(last), "no controller has written yet"
        return self.controllers[last.index(max(last))]

    def settle(self):
        """Until a new job has its Job."""
        name = self.create()
        wait_until(f"TrainJob {name} has its Job", lambda: self.has_job(name), seconds=40)


@contextlib.contextmanager
def pair(cluster, *options):
    with tempfile.TemporaryDirectory() as directory:
        both = Pair(cluster, directory, *options)
        try:
            for controller in both.controllers:
                controller.start(wait=False)
            wait_until("both controllers are alive", lambda: all(c.is_ready() for c in both.controllers))
            both.settle()
            yield both
        finally:
            for controller in both.controllers:
                controller.stall(False)
                controller.kill()
                controller.proxy.close()


def names_created(both, plural):
    """How many objects the controllers created, by POST or by an apply that found none."""
    return sum(1 for c in both.controllers for method, path, status in c.proxy.requests
               if method in ("POST", "PATCH") and status == 201
               and re.search(f"/namespaces/{both.cluster.namespace}/{plural}([/?]|$)", path))


def test_a_leader_that_is_killed(cluster):
    """Takeover: from the kill to the first write of a new leader, which is the other one or the next process."""
    with pair(cluster) as both:
        took = []
        for _ in range(20 if IS_FULL else 2):
            leader = both.leader()
            names = [both.create() for _ in range(10)]
            leader.kill()
            killed = time.monotonic()
            leader.start(wait=False)
            names += [both.create() for _ in range(10)]

            def first_write():
                writes = sorted(when for c in both.controllers for when, *_ in c.proxy.writes_of(cluster.namespace))
                return next((when for when in writes if when > killed + 1), None)   # what it had sent is answered before

            took.append(wait_until("a new leader writes", first_write, seconds=60) - killed)
            wait_until("every TrainJob has its Job", lambda: all(both.has_job(name) for name in names), seconds=30)
            wait_until("the killed one is alive again", leader.is_ready)
        # Fewer where the controller was killed before it had read the answer.
        for plural in ("jobsets", "jobs"):
            assert both.jobs - 20 <= names_created(both, plural) <= both.jobs, f"{names_created(both, plural)} {plural} for {both.jobs} TrainJobs"
        print(f"     takeover after {statistics.median(took):.1f} s, at most {max(took):.1f} s, of {len(took)}")
        assert max(took) <= 24 and (not IS_FULL or statistics.median(took) <= 18), took


def test_a_leader_that_is_stopped_for_longer_than_its_lease(cluster):
    with pair(cluster) as both:
        leader = both.leader()
        other = both.controllers[1 - both.controllers.index(leader)]
        leader.stall(True)
        names = [both.create() for _ in range(20)]
        time.sleep(30)   # the fault itself: this is how long the process is stopped
        leader.stall(False)
        wait_until("every TrainJob has its Job", lambda: all(both.has_job(name) for name in names), seconds=30)
        both.settle()
        taken = next(when for when, *_ in other.proxy.writes_of(cluster.namespace) if when > leader.stalled_at)
        late = [write for write in leader.proxy.writes_of(cluster.namespace) if write[0] > taken]
        assert not late, f"the old leader wrote after the new one had begun: {late[:3]}"


class Balancer:
    """A Service in front of both webhook servers: connections go to one that says it is ready."""

    def __init__(self, port, controllers):
        self.port, self.controllers, self.turn = port, controllers, 0
        threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True).start()

    async def serve(self):
        async with await asyncio.start_server(self.pass_on, os.environ["TESTBED_HOST"], self.port) as server:
            await server.serve_forever()

    async def pass_on(self, reader, writer):
        ready = [c for c in self.controllers if await asyncio.to_thread(c.is_serving)]
        if not ready:
            return writer.close()
        self.turn += 1
        chosen = ready[self.turn % len(ready)]
        up = await asyncio.open_connection(os.environ["TESTBED_HOST"], 9443 + 10 * self.controllers.index(chosen))

        async def copy(source, sink):
            with contextlib.suppress(OSError):
                while data := await source.read(1 << 16):
                    sink.write(data)
                    await sink.drain()
            sink.close()

        await asyncio.gather(copy(reader, up[1]), copy(up[0], writer))


def test_a_rollout_with_the_certificate_deleted(cluster):
    """Both are replaced, one after the other, at 20 creates a second, while the Secret with the certificates is deleted."""
    port = 9403
    with pair(cluster, "--webhook-url", f"https://{os.environ['TESTBED_HOST']}:{port}") as both:
        Balancer(port, both.controllers)
        wait_until("webhooks are answered", lambda: both.api.call("POST", both.api.path("TrainJob", cluster.namespace) + "?dryRun=All",
                                                                  trainjob("dry", "plain"))[0] == 201)
        refusals, is_over = [], threading.Event()

        def create_jobs():
            api, number = Api(os.environ["KUBECONFIG"]), 0
            while not is_over.wait(0.05):
                number += 1
                status, answer = api.call("POST", both.api.path("TrainJob", cluster.namespace), trainjob(f"r-{number}", "plain"))
                if status != 201:
                    refusals.append(answer)

        thread = threading.Thread(target=create_jobs)
        thread.start()
        try:
            run("kubectl", "-n", "kubeflow-system", "delete", "secret", "--all")
            for controller in both.controllers:
                controller.stop()
                controller.start(wait=False)
                wait_until("the new one is ready", controller.is_serving, seconds=40)
        finally:
            is_over.set()
            thread.join()
        assert not refusals, f"{len(refusals)} were refused: {refusals[0]}"


def after_outage(cluster, begin, end, seconds, limit):
    """How long after an outage a new job has its Job; whether a controller had to be started again."""
    with pair(cluster) as both:
        restarts = 0
        begin()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for controller in both.controllers:
                if controller.process.poll() is not None:
                    restarts += 1
                    controller.start(wait=False)
            time.sleep(0.5)
        end()
        wait_until("the API server takes a job", lambda: both.api.call(
            "POST", both.api.path("TrainJob", cluster.namespace), trainjob("after", "plain"))[0] == 201, seconds=60)
        back = time.monotonic()
        wait_until("it has its Job", lambda: both.has_job("after"), seconds=limit)
        print(f"     {time.monotonic() - back:.1f} s after {seconds} s, {restarts} restarts")
        assert restarts <= 2, f"{restarts} restarts of two controllers"


def test_the_api_server_is_away(cluster):
    component = Component("apiserver")

    def end():
        component.start()
        wait_until("the API server is back", lambda: run("kubectl", "get", "--raw", "/readyz", check=False).returncode == 0, seconds=60)

    after_outage(cluster, component.kill, end, 600 if IS_FULL else 30, 20)


def test_etcd_is_full(cluster):
    after_outage(cluster, lambda: etcd_alarm("ACTIVATE"), lambda: etcd_alarm("DEACTIVATE"), 300 if IS_FULL else 20, 60)


def test_rights_are_gone(cluster):
    after_outage(cluster, lambda: run("kubectl", "delete", "clusterrolebinding", "kubeflow-trainer-controller-manager"),
                 lambda: run("kubectl", "apply", "--server-side", "-k", str(harness.ROOT / "manifests/rbac")), 300 if IS_FULL else 20, 60)


if __name__ == "__main__":
    harness.main(__file__)
