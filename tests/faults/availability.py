#!/usr/bin/python3
"""One fault at a time beside two controllers that elect a leader, and how long it takes until jobs continue.

FULL=yes: as often and as long as the figures that docs/security.md has. Otherwise a sample of each. MINUTES, KILLS and OBJECTS
say for how long, how often and with how many instead.
"""
import base64
import contextlib
import os
import re
import shutil
import statistics
import tempfile
import time

from bed import RUN, Component, Controller, etcd_alarm, token_kubeconfig
import harness
from conform import Api
from crash_test import runtime, trainjob
from harness import run, wait_until

IS_FULL = os.environ.get("FULL") == "yes"


def scaled(name, full, sample):
    return int(os.environ.get(name, full if IS_FULL else sample))


def seconds_of(full, sample):
    return 60 * float(os.environ["MINUTES"]) if "MINUTES" in os.environ else full if IS_FULL else sample


class Pair:
    """Two controllers in front of which requests are counted."""

    def __init__(self, cluster, directory):
        self.cluster, self.api = cluster, Api(os.environ["KUBECONFIG"])
        self.api.discover()
        cluster.apply(runtime("plain"))
        kubeconfig = token_kubeconfig(directory)
        self.controllers = [Controller(number, directory, kubeconfig, number) for number in (0, 1)]
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

    def standby(self):
        return self.controllers[1 - self.controllers.index(self.leader())]

    def settle(self):
        """Until a new job has its Job."""
        name = self.create()
        wait_until(f"TrainJob {name} has its Job", lambda: self.has_job(name), seconds=40)


@contextlib.contextmanager
def pair(cluster):
    with tempfile.TemporaryDirectory() as directory:
        both = Pair(cluster, directory)
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
        for _ in range(scaled("KILLS", 20, 2)):
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
        assert max(took) <= 24 and (len(took) < 20 or statistics.median(took) <= 18), took


def test_a_leader_that_is_stopped_for_longer_than_its_lease(cluster):
    with pair(cluster) as both:
        leader = both.leader()
        other = both.standby()
        leader.stall(True)
        names = [both.create() for _ in range(20)]
        time.sleep(30)   # the fault itself: this is how long the process is stopped
        leader.stall(False)
        wait_until("every TrainJob has its Job", lambda: all(both.has_job(name) for name in names), seconds=30)
        both.settle()
        taken = next(when for when, *_ in other.proxy.writes_of(cluster.namespace) if when > leader.stalled_at)
        late = [write for write in leader.proxy.writes_of(cluster.namespace) if write[0] > taken]
        assert not late, f"the old leader wrote after the new one had begun: {late[:3]}"


def start_api_server(component):
    component.start()
    wait_until("the API server is back", lambda: run("kubectl", "get", "--raw", "/readyz", check=False).returncode == 0, seconds=60)


def after_outage(cluster, begin, end, seconds, limit, is_served=False):
    """How long after an outage a new job has its Job, and one that was created meanwhile where the API server is served; whether a
    controller had to be started again."""
    with pair(cluster) as both:
        restarts, names = 0, ["after"]
        begin()
        if is_served:
            names.append(both.create())
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
        wait_until(f"{names} have their Jobs", lambda: all(both.has_job(name) for name in names), seconds=limit)
        print(f"     {time.monotonic() - back:.1f} s after {seconds:.0f} s, {restarts} restarts")
        assert restarts <= 2, f"{restarts} restarts of two controllers"


def test_the_api_server_is_away(cluster):
    component = Component("apiserver")
    after_outage(cluster, component.kill, lambda: start_api_server(component), seconds_of(600, 30), 20)


def test_etcd_is_restored_from_a_snapshot(cluster):
    """Watches continue from versions that are yet to come, and bring nothing. The controllers see by their Lease that versions went back."""
    etcd, apiserver = Component("etcd"), Component("apiserver")
    data, kept = RUN / "etcd", RUN / "etcd-kept"

    def restart(change):
        apiserver.kill()
        etcd.kill()
        change()
        etcd.start()
        start_api_server(apiserver)

    def restore():
        shutil.rmtree(data)
        kept.rename(data)

    with pair(cluster) as both:
        restart(lambda: shutil.copytree(data, kept))
        for controller in both.controllers:
            controller.revive()
        for _ in range(10):
            both.settle()
        before = [len(controller.said()) for controller in both.controllers]
        restart(restore)
        restored = time.monotonic()
        wait_until("both controllers have ended", lambda: all(c.process.poll() is not None for c in both.controllers), seconds=40)
        took = time.monotonic() - restored
        for controller, length in zip(both.controllers, before):
            assert "the Lease went back to an older version" in controller.said()[length:], controller.said()[length:]
            controller.start(wait=False)
        both.settle()
        print(f"     both ended {took:.1f} s after the API server was back")


def test_etcd_is_full(cluster):
    after_outage(cluster, lambda: etcd_alarm("ACTIVATE"), lambda: etcd_alarm("DEACTIVATE"), seconds_of(300, 20), 60)


def test_rights_are_gone(cluster):
    after_outage(cluster, lambda: run("kubectl", "delete", "clusterrolebinding", "kubeflow-trainer-controller-manager"),
                 lambda: run("kubectl", "apply", "--server-side", "-k", str(harness.ROOT / "manifests/rbac")), seconds_of(300, 20), 60, is_served=True)


def test_a_standby_beside_many_creates(cluster):
    """20 creates and deletes a second for half an hour, of suspended jobs: it remembers nothing of deleted ones."""
    with pair(cluster) as both:
        path = both.api.path("TrainJob", cluster.namespace)

        def replace_one(number):
            job = trainjob(f"s-{number}", "plain")
            job["spec"]["suspend"] = True
            status, answer = api.call("POST", path, job)
            assert status == 201, answer
            if number > 100:
                api.call("DELETE", f"{path}/s-{number - 100}", {"propagationPolicy": "Background"})

        standby, api = both.standby(), Api(os.environ["KUBECONFIG"])
        with harness.at_rate(20, replace_one):
            time.sleep(60)   # what any such minute needs
            before = standby.resident()
            time.sleep(seconds_of(1800, 60))
            after = standby.resident()
        print(f"     the standby has {before:.1f} MB, and {after:.1f} MB afterwards; the leader {both.leader().resident():.1f} MB")
        assert both.standby() is standby, "it has become the leader"
        assert after - before <= 2, f"{after - before:.1f} MB more"


def test_memory_of_texts_that_do_not_compress(cluster):
    """700 TrainJobs of 1.4 MB of random text, which another controller manages: both keep each once, and give it back."""
    count = scaled("OBJECTS", 700, 50)
    with pair(cluster) as both:
        path = both.api.path("TrainJob", cluster.namespace)

        def resident():
            return [controller.resident() for controller in both.controllers]

        def wait_for(objects):
            wait_until(f"both have {objects} TrainJobs", seconds=300, every=1, probe=lambda: all(
                c.metric("trainer_store_objects", 'kind="TrainJob"') == objects for c in both.controllers))

        before = resident()
        for number in range(count):
            job = trainjob(f"m-{number}", "plain")
            job["spec"].update(managedBy="kueue.x-k8s.io/multikueue", trainer={
                "args": [base64.b64encode(os.urandom(525_000)).decode() for _ in range(2)]})
            status, answer = both.api.call("POST", path, job)
            assert status == 201, answer
        wait_for(count + both.jobs)
        during = resident()
        for number in range(count):
            both.api.call("DELETE", f"{path}/m-{number}", {"propagationPolicy": "Background"})
        wait_for(both.jobs)
        with contextlib.suppress(harness.Failed):
            wait_until("memory is given back", lambda: all(now <= was + 30 for now, was in zip(resident(), before)), seconds=60)
        after = resident()
        for name, *each in zip(("one", "the other"), before, during, after):
            print(f"     {name}: {each[0]:.0f} MB, {each[1]:.0f} MB with {count} objects, {each[2]:.0f} MB afterwards")
        assert all(now - was <= 1.4 * count + 50 for now, was in zip(during, before)), "more than each text once"
        assert max(during) < 1024, "the Deployment has a limit of 1 GiB"
        assert all(now <= was + 30 for now, was in zip(after, before)), "memory was not given back"


if __name__ == "__main__":
    harness.main(__file__)
