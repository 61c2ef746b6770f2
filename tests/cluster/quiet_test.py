#!/usr/bin/python3
"""An unchanged job costs nothing: no request while it does not change or when its key is queued again, and after a restart no write and
at most two reads.

Needs a control plane without node and with an audit log (AUDIT=yes).
"""
import collections
import os
import tempfile
import time

import harness
from harness import wait_until

JOBS = 100
QUIET_SECONDS = int(os.environ.get("QUIET_SECONDS", "60" if harness.IS_LONG else "20"))
AGENT = "trainer"
PLAIN = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime", "metadata": {"name": "plain"}, "spec": {
    "mlPolicy": {"numNodes": 2, "torch": {}}, "template": {"spec": {"replicatedJobs": [{"name": "node", "template": {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "node", "image": "localhost/none:1"}]}}}}}]}}}}


def entries_since(mark):
    """The log's entry of each request by our controller after this size of the log, watches and Leases left out."""
    for entry in harness.audit_entries(mark):
        resource = entry.get("objectRef", {}).get("resource")
        if entry.get("userAgent", "").startswith(AGENT) and entry["verb"] != "watch" and resource != "leases":
            yield entry


def requests_since(mark):
    """How often each (verb, resource, subresource) was asked for."""
    found = collections.Counter()
    for entry in entries_since(mark):
        what = entry.get("objectRef", {})
        found[(entry["verb"], what.get("resource", entry["requestURI"]), what.get("subresource", ""))] += 1
    return found


def check_filter(mark):
    """All that follows says that something is not found: the same filter must find what made the jobs."""
    found = requests_since(mark)
    for resource in ("configmaps", "jobsets", "jobs", "services"):
        written = sum(n for (verb, what, part), n in found.items() if verb in ("create", "patch") and (what, part) == (resource, ""))
        assert written >= JOBS, f"the audit log has only {written} writes of {resource} by {AGENT} in {found}"


def mark():
    return harness.audit_log().stat().st_size


def settle():
    settled = {"mark": -1}

    def is_settled():
        before, settled["mark"] = settled["mark"], mark()
        return before >= 0 and not requests_since(before)

    wait_until("everything has settled", is_settled, seconds=60, every=3)


def test_unchanged_jobs_cost_no_request(cluster):
    cluster.apply(PLAIN)
    cluster.apply(*({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": f"job-{i}"},
                     "spec": {"runtimeRef": {"name": "plain", "kind": "TrainingRuntime"}}} for i in range(JOBS)))
    with tempfile.TemporaryDirectory() as directory:
        born = mark()
        controller = harness.Controller(directory, "--no-webhooks").start()
        try:
            wait_until("all pods exist", lambda: len(cluster.list("pods")) == 2 * JOBS, seconds=90, every=1)
            settle()
            check_filter(born)

            began = mark()
            time.sleep(QUIET_SECONDS)   # the claim is about time that passes
            assert not requests_since(began), f"asked while nothing changed: {requests_since(began)}"

            # Each job goes through both queues again, for changes that say nothing to us.
            began = mark()
            for kind in ("jobsets", "jobs", "pods"):
                cluster.kubectl("annotate", kind, "--all", "example.com/looked-at=yes")
            time.sleep(5)   # for the same reason
            assert not requests_since(began), f"asked after an annotation of the children: {requests_since(began)}"

            # For a job that a client changes its snapshot is read (a deleted one is created again), and nothing else.
            began = mark()
            cluster.kubectl("annotate", "trainjobs", "--all", "example.com/looked-at=yes")
            time.sleep(5)   # for the same reason
            asked = requests_since(began)
            assert asked == {("get", "configmaps", ""): JOBS}, f"asked after an annotation: {asked}"
            looked_at = collections.Counter(entry["objectRef"]["name"] for entry in entries_since(began))
            assert looked_at == {f"job-{i}-runtime-snapshot": 1 for i in range(JOBS)}, f"looked at after an annotation: {looked_at}"

            controller.stop()
            began = mark()
            controller.start()
            time.sleep(10)   # for the same reason
            asked = requests_since(began)
            writes = {k: n for k, n in asked.items() if k[0] not in ("get", "list")}
            assert not writes, f"wrote after a restart: {writes}"
            # Beside each job's own there are the lists with which the watches begin; without those it has not even looked.
            reads = sum(asked.values())
            assert 0 < reads <= 2 * JOBS + 20, f"{reads} reads after a restart: {asked}"
            controller.stop()
        finally:
            controller.kill()


@harness.only_with_long
def test_what_reports_cost(cluster):
    """A job that reports its progress costs two requests more than another: its CA's ConfigMap is looked for and written."""
    harness.needs_admission()   # reports come to the webhooks' port
    cluster.apply(PLAIN)
    with tempfile.TemporaryDirectory() as directory:
        controller = harness.Controller(directory, *harness.ADMISSION,
                                        change_config=lambda text: text + "\nstatusServer: {enabled: true}\n").start()

        def cost(name, annotations):
            """The jobs' requests for children, and processor time."""
            began, before = mark(), controller.metric("process_cpu_seconds_total")
            cluster.apply(*({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
                             "metadata": {"name": f"{name}-{i}", "annotations": annotations},
                             "spec": {"suspend": True, "runtimeRef": {"name": "plain", "kind": "TrainingRuntime"}}} for i in range(JOBS)))
            wait_until("all JobSets exist", lambda: sum(j["metadata"]["name"].startswith(name) for j in cluster.list("jobsets")) == JOBS, every=1)
            settle()
            asked = {k: n for k, n in requests_since(began).items() if k[1] in ("configmaps", "jobsets", "jobs", "services")}
            return collections.Counter(asked), controller.metric("process_cpu_seconds_total") - before

        try:
            plain, cpu = cost("plain", {})
            reporting, more_cpu = cost("reports", {"trainer.kubeflow.org/report-progress": "true"})
            print(f"     {1000 * cpu / JOBS:.2f} ms of the processor a job, {1000 * more_cpu / JOBS:.2f} ms with reports")
            get, patch = ("get", "configmaps", ""), ("patch", "configmaps", "")
            assert (plain[patch], reporting[patch]) == (0, JOBS), (plain, reporting)
            assert reporting[get] <= 2 * JOBS, (plain, reporting)   # a snapshot may be read again, in either case
            controller.stop()
        finally:
            controller.kill()


if __name__ == "__main__":
    harness.main(__file__)
