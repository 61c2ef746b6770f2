#!/usr/bin/python3
"""Training processes hang in real pods, and the controller names the rank and its line (docs/users/hangs.md).

run calls it. Two nodes of two processes train with gloo; one rank does what each test says. The threshold is short.
"""
import json
import os
import pathlib
import sys
import threading

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("cluster", "conformance")]
import deployment_test  # noqa: E402
import harness  # noqa: E402
from hanging import HANGS, check_restart, check_suspect, job, job_that_restarts  # noqa: E402
from harness import TRAINER, run, wait_until  # noqa: E402

SYSTEM = harness.Cluster("kubeflow-system")
MANAGER = "kubeflow-trainer-controller-manager"


CHANGES = threading.Lock()   # of the configuration, which all tests share


def with_status_server():
    """The controller takes reports from now on."""
    def leads():
        pods = SYSTEM.list("pods", "-l", "app.kubernetes.io/component=manager")
        holder = (SYSTEM.get("lease", "trainer.kubeflow.org") or {}).get("spec", {}).get("holderIdentity") or ""
        return len(pods) == 1 and holder.startswith(pods[0]["metadata"]["name"])

    with CHANGES:
        if not SYSTEM.get("deployment", MANAGER):
            deployment_test.test_installs_and_becomes_ready(None)
        key, enabled = "controller_manager_config.yaml", "statusServer:\n  enabled: true\n"
        text = SYSTEM.get("configmap", "kubeflow-trainer-config")["data"][key]
        if enabled in text:
            return
        changed = {"data": {key: text.replace("statusServer:\n", enabled)}}
        SYSTEM.kubectl("patch", "configmap/kubeflow-trainer-config", "--type=merge", "-p", json.dumps(changed))
        SYSTEM.kubectl("rollout", "restart", f"deployment/{MANAGER}")
        SYSTEM.kubectl("rollout", "status", f"deployment/{MANAGER}", "--timeout=90s")
        wait_until("the new pod leads", leads, seconds=90)


def stall_of(cluster, name):
    return ((cluster.get("trainjob", name) or {}).get("status") or {}).get("stall")


def printed(cluster, name):
    return run(TRAINER, "logs", "-n", cluster.namespace, name, check=False).stdout


SAMPLED = ("skip",)   # without LONG


def check_hang(cluster, case):
    name = f"hang-{case}"
    cluster.apply(job(name, case))
    stall = wait_until(f"{name} stalls", lambda: stall_of(cluster, name), seconds=480, every=0.5)
    check_suspect(stall, case, printed(cluster, name))
    assert stall["suspects"][0]["pod"].startswith(f"{name}-node-0-1-"), stall
    why = cluster.why(name)
    assert "(Stalled)" in why and "rank 2" in why, why
    columns = run("kubectl", "-n", cluster.namespace, "get", "trainjob", name).stdout
    assert "stalled" in columns and "(rank 2)" in columns, columns
    cluster.kubectl("delete", "trainjob", name, "--wait=false")
    return stall


def test_the_rank_that_hangs_is_named(cluster):
    with_status_server()
    cluster.apply(job_that_restarts("once"))
    for case in HANGS if os.environ.get("LONG") else SAMPLED:
        print(case, json.dumps(check_hang(cluster, case)["suspects"]), flush=True)
    wait_until("once is Complete", lambda: cluster.condition("trainjob", "once", "Complete"), seconds=480, every=1,
               shown=lambda: cluster.why("once"))
    check_restart(cluster.get("trainjob", "once")["status"], printed(cluster, "once"))
    assert "HangRestart" in run("kubectl", "-n", cluster.namespace, "get", "events").stdout


def test_phases_without_steps_are_no_hang(cluster):
    """Rank 0 writes a checkpoint for two thresholds while the others wait in a barrier; then the job goes on and ends."""
    with_status_server()
    cluster.apply(job("saves", "checkpoint"), job("plain", "none"))
    seen = []
    for name in ("saves", "plain"):
        wait_until(f"{name} is Complete", lambda: seen.append(stall_of(cluster, name)) or cluster.condition("trainjob", name, "Complete"),
                   seconds=600, every=1)
        assert printed(cluster, name).count("trained") == 4, printed(cluster, name)
    assert not any(seen), seen
    assert "Stalled" not in run("kubectl", "-n", cluster.namespace, "get", "events").stdout


if __name__ == "__main__":
    harness.main(__file__, parallel=2)
