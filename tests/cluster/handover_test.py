#!/usr/bin/python3
"""Beside the upstream JobSet controller: each expands its own JobSets, and when it comes or goes while jobs run, they are
handed over. No Job is made twice, replaced or lost, and no restart is counted twice.

Needs a control plane without node and with an audit log (AUDIT=yes); the test plays the kubelet and ends the pods. The
field manager of an object's first write says which controller made it.
"""
import collections
import contextlib
import json
import os
import sys
import tempfile

import harness
from crash_test import runtime, trainjob
from harness import wait_until
from upstream_jobset import LEASE, LEASE_SECONDS, UpstreamJobSet

sys.path.insert(0, str(harness.ROOT / "tests/conformance"))
from conform import Api  # noqa: E402

TRAINER, UPSTREAM = "trainer", "jobset"
MANAGED_BY = "trainer.kubeflow.org/jobset-expander"
NAME, STEP, ATTEMPT = (f"jobset.sigs.k8s.io/{what}" for what in ("jobset-name", "replicatedjob-name", "restart-attempt"))


def jobset(name, **spec):
    """Two steps of which the second waits for the first, written in full: nothing fills in defaults."""
    def step(step_name, **more):
        return {"name": step_name, "replicas": 1, **more, "template": {"spec": {
            "parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimit": 0,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "localhost/none:1"}]}}}}}

    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All"}, "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
        "failurePolicy": {"maxRestarts": 2, "restartStrategy": "Recreate"}, **spec,
        "replicatedJobs": [step("first"), step("second", dependsOn=[{"name": "first", "status": "Complete"}])]}}


def managers(o, subresource=""):
    return {f["manager"] for f in o["metadata"]["managedFields"] if f.get("subresource", "") == subresource}


class Scene:
    """One namespace with both controllers, of which either may be away."""

    def __init__(self, cluster, directory, mode):
        self.cluster = cluster
        self.api = Api(os.environ["KUBECONFIG"])
        # Upstream's Lease is in the namespace of the test, and its webhooks are not installed.
        self.trainer = harness.Controller(directory, "--no-webhooks", "--expander", mode,
                                          change_config=lambda text: text + f"expander: {{upstreamNamespaces: [{cluster.namespace}]}}\n")
        self.upstream = UpstreamJobSet(directory, cluster.namespace)
        self.began = harness.audit_log().stat().st_size

    def objects(self, kind, owner=None):
        status, found = self.api.call("GET", self.api.path(kind, self.cluster.namespace))
        assert status == 200, found
        return [o for o in found["items"] if owner in (None, o["metadata"].get("labels", {}).get(NAME))]

    def jobs(self, owner):
        return {o["metadata"]["name"]: o for o in self.objects("Job", owner)}

    def made_by(self, owner, step, who, seconds=30):
        """Waits for the Job of this step; its uid."""
        name = f"{owner}-{step}-0"
        job = wait_until(f"Job {name}", lambda: self.jobs(owner).get(name), seconds)
        assert managers(job) == {who}, f"{name} was written by {managers(job)}, not by {who}"
        return job["metadata"]["uid"]

    def end_pods(self, owner, step, phase="Succeeded", attempt=0):
        """Ends the pods of one step, once all are there."""
        name = f"{owner}-{step}-0"

        def pods():
            found = [p for p in self.objects("Pod", owner) if p["metadata"]["labels"][STEP] == step
                     and p["metadata"]["labels"][ATTEMPT] == str(attempt)]
            job = self.jobs(owner).get(name)
            return found if job and len(found) == job["spec"]["parallelism"] else None

        for pod in wait_until(f"the pods of {name}", pods):
            status, answer = self.api.call("PATCH", self.api.path("Pod", self.cluster.namespace, pod["metadata"]["name"]) + "/status",
                                           {"status": {"phase": phase}}, "application/merge-patch+json")
            assert status == 200, answer

    def complete(self, kind, name):
        wait_until(f"{kind} {name} is complete", lambda: self.cluster.condition(kind, name, "Completed" if kind == "jobset" else "Complete"))

    def await_mode(self, mode, seconds=15):
        wait_until(f"the controller's mode is {mode}", lambda: self.last_mode() == mode, seconds)

    def last_mode(self):
        modes = [line for line in self.trainer.log.read_text().splitlines() if "expander mode" in line]
        return next((mode for mode in ("Own", "Share") if modes and f"mode={mode}" in modes[-1]), None)

    def check_nothing_was_doubled(self, restarts=None):
        """Each existing Job was created once for each attempt, by either controller, and only a restart deleted one."""
        restarts = restarts or {}
        made, deleted = collections.Counter(), collections.Counter()
        for entry in harness.audit_entries(self.began):
            what = entry.get("objectRef", {})
            if what.get("resource") != "jobs" or what.get("namespace") != self.cluster.namespace or what.get("subresource"):
                continue
            if entry["verb"] == "create" and entry["responseStatus"]["code"] == 201:
                made[what["name"]] += 1
            if entry["verb"].startswith("delete") and entry["responseStatus"]["code"] == 200:
                deleted[what.get("name", "all")] += 1
        assert made, "the audit log has no Job of this test"
        for job in self.objects("Job"):
            name = job["metadata"]["name"]
            times = restarts.get(name, 0)
            assert made[name] == 1 + times, f"{name} was created {made[name]} times, with {times} restarts"
        assert set(made) == {j["metadata"]["name"] for j in self.objects("Job")}, f"created {made}, but not all of them exist"
        assert set(deleted) <= set(restarts), f"deleted: {deleted}"


@contextlib.contextmanager
def scene(cluster, mode):
    with tempfile.TemporaryDirectory() as directory:
        one = Scene(cluster, directory, mode)
        try:
            yield one
        except AssertionError as error:
            raise AssertionError(f"{error}\n--- trainer:\n{one.trainer.log.read_text()[-1500:]}") from error
        finally:
            one.trainer.kill()
            one.upstream.release()   # or the next test would find its Lease still held


@harness.only_with_long
def test_share_leaves_each_its_own(cluster):
    cluster.apply(runtime("steps"))
    with scene(cluster, "Share") as s:
        s.upstream.start()
        s.trainer.start()
        cluster.apply(trainjob("train", "steps"), jobset("hand"))
        s.made_by("train", "prepare", TRAINER)
        s.made_by("hand", "first", UPSTREAM)
        assert cluster.get("jobset", "train")["spec"]["managedBy"] == MANAGED_BY
        s.end_pods("train", "prepare")
        s.end_pods("hand", "first")
        s.made_by("train", "node", TRAINER)
        s.made_by("hand", "second", UPSTREAM)
        s.end_pods("train", "node")
        s.end_pods("hand", "second")
        s.complete("trainjob", "train")
        s.complete("jobset", "hand")
        for name, writer, other in (("train", TRAINER, UPSTREAM), ("hand", UPSTREAM, TRAINER)):
            written = json.loads(cluster.kubectl("get", "jobset", name, "-o", "json", "--show-managed-fields"))
            assert writer in managers(written, "status"), f"{name}: {managers(written, 'status')}"
            assert other not in managers(written) | managers(written, "status"), f"{name} was written by {other}"
        s.check_nothing_was_doubled()


@harness.only_with_long
def test_auto_steps_aside_when_upstream_appears(cluster):
    cluster.apply(runtime("steps"))
    with scene(cluster, "Auto") as s:
        s.trainer.start()
        cluster.apply(trainjob("train", "steps"), jobset("calm"), jobset("again"), jobset("asleep", suspend=True))
        uids = {s.made_by("train", "prepare", TRAINER), s.made_by("calm", "first", TRAINER)}
        s.made_by("again", "first", TRAINER)
        s.end_pods("again", "first", "Failed")
        wait_until("again has restarted", lambda: (cluster.get("jobset", "again").get("status", {}).get("restarts")) == 1)

        s.upstream.start()
        s.await_mode("Share")
        cluster.apply(jobset("late"), trainjob("later", "steps"))
        s.made_by("late", "first", UPSTREAM)
        s.made_by("later", "prepare", TRAINER)
        cluster.kubectl("patch", "jobset", "asleep", "--type=merge", "-p", '{"spec": {"suspend": false}}')
        # Existing Jobs continue under the other controller, which creates the steps that follow.
        s.end_pods("train", "prepare")
        s.end_pods("again", "first", attempt=1)
        for owner in ("calm", "late", "asleep"):
            s.end_pods(owner, "first")
        s.made_by("train", "node", UPSTREAM)
        s.end_pods("train", "node")
        for owner, attempt in (("calm", 0), ("late", 0), ("asleep", 0), ("again", 1)):
            s.end_pods(owner, "second", attempt=attempt)
            s.complete("jobset", owner)
        s.complete("trainjob", "train")
        assert uids <= {j["metadata"]["uid"] for j in s.objects("Job")}, "a running Job was replaced"
        assert cluster.get("jobset", "again")["status"]["restarts"] == 1
        s.check_nothing_was_doubled({"again-first-0": 1})


def takes_over(cluster, leave):
    with scene(cluster, "Auto") as s:
        s.upstream.start()
        s.trainer.start()
        cluster.apply(runtime("steps"), trainjob("train", "steps"), jobset("calm"), jobset("again"), jobset("asleep", suspend=True))
        uids = {s.made_by("train", "prepare", TRAINER), s.made_by("calm", "first", UPSTREAM), s.made_by("asleep", "first", UPSTREAM)}
        s.made_by("again", "first", UPSTREAM)
        s.end_pods("again", "first", "Failed")
        wait_until("again has restarted", lambda: (cluster.get("jobset", "again").get("status", {}).get("restarts")) == 1)
        s.made_by("again", "first", UPSTREAM)

        leave(s.upstream)
        s.await_mode("Own", LEASE_SECONDS + 10)
        cluster.kubectl("patch", "jobset", "asleep", "--type=merge", "-p", '{"spec": {"suspend": false}}')
        s.end_pods("train", "prepare")
        s.end_pods("again", "first", attempt=1)
        for owner in ("calm", "asleep"):
            s.end_pods(owner, "first")
        s.made_by("calm", "second", TRAINER)
        s.end_pods("train", "node")
        for owner, attempt in (("calm", 0), ("asleep", 0), ("again", 1)):
            s.end_pods(owner, "second", attempt=attempt)
            s.complete("jobset", owner)
        s.complete("trainjob", "train")
        assert uids <= {j["metadata"]["uid"] for j in s.objects("Job")}, "a running Job was replaced"
        assert cluster.get("jobset", "again")["status"]["restarts"] == 1
        s.check_nothing_was_doubled({"again-first-0": 1})


@harness.only_with_long
def test_auto_takes_over_when_upstream_is_killed(cluster):
    takes_over(cluster, UpstreamJobSet.kill)


@harness.only_with_long
def test_auto_takes_over_when_upstream_releases_its_lease(cluster):
    takes_over(cluster, UpstreamJobSet.release)


def lease(name, namespace, second=0):
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, "namespace": namespace}, "spec": {
        "holderIdentity": "mallory", "leaseDurationSeconds": 2147483647, "renewTime": f"2100-01-01T00:00:{second:02}.000000Z"}}


def test_a_forged_lease_changes_nothing(cluster):
    with tempfile.TemporaryDirectory() as directory, harness.Neighbour(cluster) as neighbour:
        controller = harness.Controller(directory, "--no-webhooks", "--expander", "Auto").start()
        try:
            cluster.apply(lease(LEASE, cluster.namespace))
            with contextlib.suppress(harness.Failed):
                wait_until("the Lease is ignored", lambda: controller.metric("trainer_unexpected_leases", LEASE) == 1)
            cluster.apply(jobset("hand"))
            wait_until("hand is expanded", lambda: cluster.get("job", "hand-first-0"))
            neighbour.check_is_served()
            said = controller.said()
            assert said.count("upstream Lease ignored") == 1, said[-2000:]
            assert "mode=Share" not in said, said[-2000:]
            assert controller.metric("trainer_unexpected_leases", LEASE) == 1
        finally:
            controller.kill()


@harness.only_with_long
def test_a_leader_in_another_namespace_is_noticed(cluster):
    with tempfile.TemporaryDirectory() as directory:
        controller = harness.Controller(directory, "--no-webhooks").start()
        try:
            second = iter(range(60))

            def is_noticed():
                cluster.apply(lease("trainer.kubeflow.org", cluster.namespace, next(second)))
                return controller.metric("trainer_unexpected_leases", "trainer.kubeflow.org") == 1

            wait_until("the other leader is noticed", is_noticed, seconds=90, every=3)
            assert f"lease={cluster.namespace}/trainer.kubeflow.org" in controller.said(), controller.said()[-2000:]
        finally:
            controller.kill()


if __name__ == "__main__":
    harness.main(__file__)
