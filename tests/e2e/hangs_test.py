#!/usr/bin/python3
"""Training processes hang in real pods, and the controller names the rank and its line (docs/users/hangs.md).

run calls it. Two nodes of two processes train with gloo; one rank does what each test says. The threshold is short.
"""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("cluster", "conformance")]
import deployment_test  # noqa: E402
import harness  # noqa: E402
from hanging import HANGS, check_restart, check_suspect, job, job_that_restarts, run_each, stall_in, watch  # noqa: E402
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


# PyTorch of each, and the image that has it: `testbed torch` and `testbed frameworks` make them.
IMAGES = {"1.13": "localhost/torch:1", "2.6": "localhost/frameworks:1"}


def stacks_of(cluster, name):
    return run(TRAINER, "why", "-n", cluster.namespace, "--stacks", name).stdout


def test_the_rank_that_hangs_is_named(cluster):
    with_status_server()
    cluster.apply(job_that_restarts("once"), job("skip", "skip"))
    stall = wait_until("skip stalls", lambda: stall_of(cluster, "skip"), seconds=480, every=0.5)
    check_suspect(stall, "skip", printed(cluster, "skip"))
    assert stall["suspects"][0]["pod"].startswith("skip-node-0-1-"), stall
    why = cluster.why("skip")
    assert "(Stalled)" in why and "rank 2" in why, why
    columns = run("kubectl", "-n", cluster.namespace, "get", "trainjob", "skip").stdout
    assert "stalled" in columns and "(rank 2)" in columns, columns
    assert cluster.get("configmap", "skip-stacks")["binaryData"]
    stacks = stacks_of(cluster, "skip")
    assert stacks.startswith("rank 2 (pod skip-node-0-1-") and "MainThread" in stacks and stacks.count("waits for others") >= 3, stacks
    cluster.kubectl("delete", "trainjob", "skip")
    wait_until("the stacks are gone with the job", lambda: not cluster.get("configmap", "skip-stacks"))
    wait_until("once is Complete", lambda: cluster.condition("trainjob", "once", "Complete"), seconds=480, every=1,
               shown=lambda: cluster.why("once"))
    check_restart(cluster.get("trainjob", "once")["status"], printed(cluster, "once"))
    assert "HangRestart" in run("kubectl", "-n", cluster.namespace, "get", "events").stdout


@contextlib.contextmanager
def reader(cluster):
    """read(path) of the API in the namespace, by `kubectl proxy`: a kubectl for each request would use what the jobs wait for."""
    with subprocess.Popen(["kubectl", "proxy", "--port=0"], stdout=subprocess.PIPE, text=True) as proxy:
        url = "http://" + re.search(r"127\.0\.0\.1:\d+", proxy.stdout.readline())[0]

        def read(group, path):
            try:
                with urllib.request.urlopen(f"{url}/{group}/namespaces/{cluster.namespace}/{path}", timeout=60) as answer:
                    return answer.read().decode(errors="replace")
            except urllib.error.HTTPError:   # it is not there yet
                return ""

        try:
            yield read
        finally:
            proxy.kill()


@harness.only_with_long
def test_each_hang(cluster):
    """TIMES=5: each of them so many times; CASES="gil exit": only these; TORCH=2.6: only with this PyTorch."""
    with_status_server()

    def run_job(case, number):
        kind, torch = case.split()
        name = f"{kind}-{torch.replace('.', '-')}-{number}"
        cluster.apply(job(name, kind, image=IMAGES[torch]))

        def second_node():
            pods = json.loads(read("api/v1", f"pods?labelSelector=jobset.sigs.k8s.io%2Fjobset-name%3D{name}") or '{"items": []}')["items"]
            found = [pod["metadata"]["name"] for pod in pods if "-node-0-1-" in pod["metadata"]["name"]]
            return read("api/v1", f"pods/{found[0]}/log") if found else ""

        def stall():
            return stall_in(json.loads(read("apis/trainer.kubeflow.org/v1alpha1", f"trainjobs/{name}") or "{}"))

        result = watch(kind, stall, second_node)
        cluster.kubectl("delete", "trainjob", name, "--wait=false")
        return result

    chosen, with_torch = os.environ.get("CASES", " ".join(HANGS)).split(), os.environ.get("TORCH", " ".join(IMAGES)).split()
    cases = [f"{case} {torch}" for case in chosen for torch in with_torch]
    with reader(cluster) as read:
        run_each(cases, int(os.environ.get("TIMES", "1")), run_job)


@harness.only_with_long
def test_a_hang_ends_the_job(cluster):
    with_status_server()
    made = job("ends", "fifo")
    made["metadata"]["annotations"]["trainer.kubeflow.org/hang-policy"] = "Fail"
    cluster.apply(made)
    failed = wait_until("the job is Failed", lambda: cluster.condition("trainjob", "ends", "Failed"), seconds=480, every=0.5,
                        shown=lambda: cluster.why("ends"))
    assert failed["reason"] == "Stalled" and "rank 2" in failed["message"], failed
    wait_until("its pods end", lambda: not [pod for pod in cluster.list("pods") if pod["status"]["phase"] in ("Pending", "Running")], seconds=90)
    why = cluster.why("ends")
    assert "Failed" in why and "rank 2" in why and "read_shard" in why, why


@harness.only_with_long
def test_a_slow_rank_is_named(cluster):
    """Rank 2 sleeps 0.3 s in each step, and the others 0.05 s."""
    with_status_server()
    cluster.apply(job("slow", "slow"))
    stragglers = wait_until("a rank is slow", lambda: ((cluster.get("trainjob", "slow") or {}).get("status") or {}).get("stragglers"), seconds=480,
                            every=1, shown=lambda: cluster.why("slow") + printed(cluster, "slow"))
    assert [each["rank"] for each in stragglers] == [2], stragglers
    why = cluster.why("slow")
    assert "rank 2 (pod slow-node-0-1-" in why and "is slow" in why, why
    assert "Straggler" in run("kubectl", "-n", cluster.namespace, "get", "events").stdout


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
