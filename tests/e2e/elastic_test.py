#!/usr/bin/python3
"""The number of nodes of a job of real pods changes while it runs (docs/users/elastic.md).

run calls it. Three nodes of one process train with gloo.
"""
import json
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("cluster", "conformance")]
import deployment_test  # noqa: E402
import harness  # noqa: E402
from elastic import job, runtime, sizes  # noqa: E402
from hangs_test import printed  # noqa: E402
from harness import run, wait_until  # noqa: E402


def pods_of(cluster, name):
    return {pod["metadata"]["name"]: pod for pod in cluster.list("pods", "-l", f"jobset.sigs.k8s.io/jobset-name={name}")}


def wait_for_size(cluster, name, size, times=1):
    """By the lines of rank 0, also of the pods that have ended."""
    wait_until(f"{size} ranks train", lambda: sizes(printed(cluster, name)).count(size) >= times, seconds=240, every=1,
               shown=lambda: cluster.why(name) + printed(cluster, name))


def scaled(cluster, name, nodes):
    return run("kubectl", "-n", cluster.namespace, "scale", f"trainjob/{name}", f"--replicas={nodes}", check=False)


def test_a_job_is_scaled_and_loses_a_pod(cluster):
    if not harness.Cluster("kubeflow-system").get("deployment", "kubeflow-trainer-controller-manager"):
        deployment_test.test_installs_and_becomes_ready(None)
    cluster.apply(runtime("localhost/torch:1"))
    cluster.apply(job("elastic"))
    wait_for_size(cluster, "elastic", 3)
    assert scaled(cluster, "elastic", 4).returncode == 0
    wait_for_size(cluster, "elastic", 4)
    for nodes in (1, 5):
        refused = scaled(cluster, "elastic", nodes)
        assert refused.returncode != 0 and "must stay between" in refused.stderr, refused
    refused = run("kubectl", "-n", cluster.namespace, "patch", "trainjob/elastic", "--type=merge", "-p",
                  json.dumps({"spec": {"trainer": {"image": "another"}}}), check=False).stderr
    assert "field is immutable" in refused, refused

    before = pods_of(cluster, "elastic")
    lost = next(name for name in before if "-0-2-" in name)
    cluster.kubectl("delete", "pod", lost, "--wait=false")
    wait_until("three of four nodes are shown", lambda: "3/4" in (shown := run(
        "kubectl", "-n", cluster.namespace, "get", "trainjob", "elastic").stdout) and "Running" in shown, seconds=60)
    wait_for_size(cluster, "elastic", 4, times=2)
    after = pods_of(cluster, "elastic")
    assert all(after[name]["metadata"]["uid"] == pod["metadata"]["uid"] for name, pod in before.items() if name != lost), (before, after)
    assert scaled(cluster, "elastic", 2).returncode == 0
    wait_until("elastic is Complete", lambda: cluster.condition("trainjob", "elastic", "Complete"), seconds=240, every=0.5,
               shown=lambda: cluster.why("elastic") + printed(cluster, "elastic"))
    status = cluster.get("trainjob", "elastic")["status"]
    assert status["restarts"] == 0 and "elastic" not in status, status
    refused = scaled(cluster, "elastic", 3)
    assert refused.returncode != 0 and "field is immutable" in refused.stderr, refused


def test_a_job_that_is_not_elastic_is_not_scaled(cluster):
    fixed = job("fixed")
    fixed["spec"]["runtimeRef"] = {"name": "torch-distributed"}
    fixed["spec"]["trainer"] = {"numNodes": 1, "command": ["sleep", "1000"]}
    bare = {**fixed, "metadata": {"name": "bare"}, "spec": {"runtimeRef": {"name": "torch-distributed"}}}
    cluster.apply(fixed, bare)
    for name, reason in (("fixed", "field is immutable"), ("bare", "neither added nor removed")):
        if name == "bare":   # its container ends at once, so it has run
            wait_until("bare has run", lambda: (cluster.get("trainjob", "bare").get("status") or {}).get("startTime"), seconds=60)
        refused = scaled(cluster, name, 3)
        assert refused.returncode != 0 and reason in refused.stderr, refused


def test_uninstalls(_):
    deployment_test.test_uninstalls(None)


if __name__ == "__main__":
    harness.main(__file__)
