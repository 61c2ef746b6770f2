#!/usr/bin/python3
"""The symptoms that `trainer why` recognises occur in real pods: its first line names the cause (see frameworks; docs/troubleshooting.md has an entry each).

Not here, since this machine has none of it: GPUs, NFS, a registry, a network that enforces NetworkPolicies.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
import harness  # noqa: E402
from frameworks_test import container, replicated_job, runtime, trainjob  # noqa: E402
from harness import run, wait_until  # noqa: E402

PYTHON = ["python3", "-c"]
TORCHRUN = ["torchrun", "--monitor_interval=1", "--no_python", *PYTHON]
SHORT = 15   # seconds, for ranks that have reached each other
GROUP = """
import datetime, sys, time, torch, torch.distributed as group
group.init_process_group("gloo", timeout=datetime.timedelta(seconds=%d))
"""
WAITS = GROUP % 300   # for ranks that start late, and for their names
SUM = "group.all_reduce(torch.ones(1)); time.sleep(2); group.all_reduce(torch.ones(1))\n"
HANGS = WAITS + f"""
pair = group.new_group(timeout=datetime.timedelta(seconds={SHORT}))
if group.get_rank() == 1:
    time.sleep(600)
group.all_reduce(torch.ones(1), group=pair)
"""

# name -> (the trainer, its nodes, what the first line says)
FAILURES = {
    "package": ({"command": [*PYTHON, "import nothing_of_this_name"]}, 1, "the image lacks a Python package"),
    "name": ({"command": [*PYTHON, "import urllib.request; urllib.request.urlopen('http://model.invalid')"]}, 1,
             "a host name cannot be resolved"),
    "memory": ({"command": [*PYTHON, "bytearray(b'x') * 10**9"], "resourcesPerNode": {"limits": {"memory": "200Mi"}}}, 1,
               "out of memory: container node of pod memory-node-0-0"),
    "shared": ({"command": [*PYTHON, "import torch; torch.ones(40_000_000).share_memory_()"]}, 1, "shared memory is used up"),
    "interface": ({"command": [*TORCHRUN, WAITS], "env": [{"name": "GLOO_SOCKET_IFNAME", "value": "eth9"}]}, 1,
                  "the network interface that NCCL or Gloo should use does not exist"),
}
FAILURES_OF_TWO = {
    # The second node waits for what the first one does not do any more.
    "error": ({"command": [*TORCHRUN, WAITS + "if group.get_rank() == 0: raise ValueError('the rate is negative')\n" + SUM]}, 2,
              "the script fails: ValueError: the rate is negative"),
    "hangs": ({"command": [*TORCHRUN, HANGS]}, 2,
              "Gloo timed out waiting for another rank"),
    # It starts no training, so the first node waits for it.
    "alone": ({"command": ["bash", "-c", '[ "$PET_NODE_RANK" = 0 ] || exec sleep 600\n'
                           f"RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=29500 exec python3 -c '{GROUP % 5}'"]}, 2,
              "the nodes do not reach each other"),
}


def first_line(cluster, name):
    return (cluster.why(name).splitlines() or [""])[0]


def says(cluster, name, words, seconds=120):
    def shown():
        printed = [run("kubectl", "-n", cluster.namespace, "logs", "--timestamps", pod["metadata"]["name"], check=False).stdout
                   for pod in cluster.list("pods", "-l", f"jobset.sigs.k8s.io/jobset-name={name}")]
        return "\n".join([cluster.why(name), *printed])

    wait_until(f"why {name}: {words}", lambda: words in first_line(cluster, name), seconds=seconds, every=0.5, shown=shown)


def have_runtime(cluster, **pod):
    cluster.apply(runtime("plain", {"numNodes": 1, "torch": {}}, replicated_job("node", "trainer", [container()], **pod)))


def test_one_node_runs_on(cluster):
    """First, because it waits longest."""
    have_runtime(cluster)
    cluster.apply(trainjob("late", "plain", trainer={"numNodes": 4, "command": [
        "bash", "-c", '[ "$PET_NODE_RANK" = 2 ] && exec sleep infinity; exit 0']}))
    says(cluster, "late", "3 of 4 finished, rank 2 runs on")


def fails(cluster, failures):
    # One after the other: each of them takes all of a small machine while it loads PyTorch. Not all of them end soon: of a node that has
    # failed, torchrun waits for minutes for the others.
    have_runtime(cluster)
    for name, (trainer, nodes, words) in failures.items():
        cluster.apply(trainjob(name, "plain", trainer={"numNodes": nodes, **trainer}))
        says(cluster, name, words)


def test_failures(cluster):
    fails(cluster, FAILURES)


def test_failures_of_two_nodes(cluster):
    fails(cluster, FAILURES_OF_TWO)


def test_an_image_that_is_not_there(cluster):
    have_runtime(cluster)
    cluster.apply(trainjob("typo", "plain", trainer={"image": "localhost:1/llama:1"}))
    says(cluster, "typo", "image localhost:1/llama:1 cannot be pulled")


def test_a_claim_that_is_not_bound(cluster):
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "nothing", "resources": {"requests": {"storage": "1Gi"}}}
    cluster.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": claim})
    have_runtime(cluster, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    cluster.apply(trainjob("stores", "plain", trainer={"command": ["true"]}))
    says(cluster, "stores", "claim data")


def test_a_quota_that_is_used_up(cluster):
    have_runtime(cluster)
    cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": {"pods": "0"}}})
    wait_until("the quota counts", lambda: cluster.get("resourcequota", "team").get("status", {}).get("hard"))
    cluster.apply(trainjob("late", "plain", trainer={"command": ["true"]}))
    says(cluster, "late", "ResourceQuota team is used up")


if __name__ == "__main__":
    harness.main(__file__, parallel=2)
