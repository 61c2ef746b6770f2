#!/usr/bin/python3
"""Processes die in real pods, and torchrun starts them again there (docs/users/restarts.md).

run calls it. Two nodes train with gloo. Jobs run side by side, since they wait most of the time.
"""
import json
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("cluster", "conformance")]
import harness  # noqa: E402
from hangs_test import printed, with_status_server  # noqa: E402
from harness import run, wait_until  # noqa: E402
from restarting import check_exhausted, check_loop, check_once, check_why, job  # noqa: E402


def ended(cluster, name, condition, seconds=300):
    wait_until(f"{name} is {condition}", lambda: cluster.condition("trainjob", name, condition), seconds=seconds, every=0.5,
               shown=lambda: cluster.why(name) + printed(cluster, name))
    return cluster.get("trainjob", name)["status"]


def test_processes_restart_in_their_pods(cluster):
    with_status_server()
    cluster.apply(job("once", "once", 3), job("exhausted", "exhausted", 1, maxRestarts=1), job("loop", "loop", 20, maxRestarts=5))
    pods = wait_until("the pods of once", lambda: len(found := cluster.pods_of("once")) == 2 and found, seconds=60)
    columns = wait_until("a restart is shown", lambda: "(1 in pods)" in (shown := run(
        "kubectl", "-n", cluster.namespace, "get", "trainjob", "once").stdout) and shown, seconds=240, every=0.5,
        shown=lambda: printed(cluster, "once"))
    assert "0/0 (1 in pods)" in columns, columns
    check_why(cluster.why("once"))
    check_once(ended(cluster, "once", "Complete"), printed(cluster, "once"))
    assert cluster.pods_of("once") == pods, "a pod was made again"
    assert "ProcessesRestarted" in run("kubectl", "-n", cluster.namespace, "get", "events").stdout
    check_loop(ended(cluster, "loop", "Failed"))
    check_exhausted(ended(cluster, "exhausted", "Complete", seconds=600), printed(cluster, "exhausted"))


def test_a_job_that_asks_for_what_torchrun_cannot_do_is_refused(cluster):
    made = job("env", "once", 3)
    made["metadata"]["annotations"]["trainer.kubeflow.org/torch-launcher"] = "env"
    with_status_server()   # and so the webhooks
    refused = run("kubectl", "-n", cluster.namespace, "apply", "-f", "-", check=False, text=json.dumps(made)).stderr
    assert "spec.failurePolicy.processRestarts" in refused and "use launcher torchrun" in refused, refused


if __name__ == "__main__":
    harness.main(__file__)
