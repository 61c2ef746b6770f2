#!/usr/bin/python3
"""The number of nodes of an elastic TrainJob changes: by kubectl and by Kubernetes' own HorizontalPodAutoscaler controller.

Needs a control plane without node.
"""
import json

import elastic
import harness
from clients_test import served
from harness import run, wait_until
from v1_autoscaler_test import METRIC, Metrics, metrics_api


def pods_of(cluster):
    """The uids of pods that are not deleted, by their index."""
    return {int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]): pod["metadata"]["uid"]
            for pod in cluster.list("pods") if "deletionTimestamp" not in pod["metadata"]}


def wait_for_pods(cluster, count):
    wait_until(f"{count} pods", lambda: sorted(pods_of(cluster)) == list(range(count)), seconds=90, every=0.5,
               shown=lambda: pods_of(cluster))
    return pods_of(cluster)


def job(name="e"):
    """A job whose nodes do nothing."""
    made = elastic.job(name)
    made["spec"]["trainer"]["command"] = ["torchrun", "train.py"]
    return made


def begin(cluster):
    cluster.apply(elastic.runtime())
    cluster.apply(job())
    wait_until("the bounds are known", lambda: (cluster.get("trainjob", "e").get("status") or {}).get("elastic"))
    return wait_for_pods(cluster, 3)


def changed(cluster, *words):
    """The refusal of kubectl; "" where it does not refuse."""
    done = run("kubectl", "-n", cluster.namespace, *words, check=False)
    return done.stderr if done.returncode else ""


def patch(trainer):
    return ("patch", "trainjob/e", "--type=merge", "-p", json.dumps({"spec": {"trainer": trainer}}))


def test_kubectl_scales(cluster):
    with served(cluster):
        first = begin(cluster)
        scale = json.loads(run("kubectl", "get", "--raw", f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{cluster.namespace}/trainjobs/e/scale").stdout)
        assert scale["spec"]["replicas"] == scale["status"]["replicas"] == 3, scale
        selected = cluster.list("pods", "-l", scale["status"]["selector"])
        assert {pod["metadata"]["uid"] for pod in selected} == set(first.values()), scale
        for words in (("scale", "trainjob/e", "--replicas=1"), ("scale", "trainjob/e", "--replicas=5"), patch({"numNodes": 5}),
                      patch({"numNodes": None}), patch(None)):
            assert "spec.trainer: Invalid value" in changed(cluster, *words), words
        for trainer in ({"image": "i"}, {"numNodes": 4, "args": ["a"]}, {"numProcPerNode": 2}, {"env": [{"name": "A"}]},
                        {"resourcesPerNode": {"limits": {"cpu": "1"}}}, {"command": ["torchrun", "other.py"]}):
            refusal = changed(cluster, *patch(trainer))
            assert "spec.trainer: Invalid value" in refusal and "field is immutable" in refusal, (trainer, refusal)
        run("kubectl", "apply", "-f", str(harness.ROOT / "manifests/rbac/users.yaml"))
        cluster.kubectl("create", "serviceaccount", "editor")
        cluster.kubectl("create", "rolebinding", "editor", "--clusterrole=edit", f"--serviceaccount={cluster.namespace}:editor")
        user = f"--as=system:serviceaccount:{cluster.namespace}:editor"
        wait_until("a user with the role edit scales it", lambda: not changed(cluster, "scale", "trainjob/e", "--replicas=4", user))
        pods = wait_for_pods(cluster, 4)
        assert {i: pods[i] for i in first} == first, "pods that ran were made again"
        assert not changed(cluster, *patch({"numNodes": 2}))
        pods = wait_for_pods(cluster, 2)
        assert {i: first[i] for i in pods} == pods, "pods that ran were made again"
        spec = cluster.get("jobset", "e")["spec"]["replicatedJobs"][0]["template"]["spec"]
        assert spec["parallelism"] == spec["completions"] == 2, spec
        # A suspended job begins again with what it has then.
        cluster.kubectl("patch", "trainjob/e", "--type=merge", "-p", '{"spec": {"suspend": true}}')
        wait_for_pods(cluster, 0)
        assert not changed(cluster, *patch({"numNodes": 3}))
        cluster.kubectl("patch", "trainjob/e", "--type=merge", "-p", '{"spec": {"suspend": false}}')
        wait_for_pods(cluster, 3)


def test_other_jobs_keep_their_size(cluster):
    with served(cluster):
        fixed = elastic.runtime()
        fixed["metadata"]["name"], fixed["spec"]["mlPolicy"] = "fixed", {"numNodes": 2, "torch": {}}
        cluster.apply(fixed)
        one = job("one")
        one["spec"]["runtimeRef"]["name"] = "fixed"
        cluster.apply(one)
        wait_for_pods(cluster, 3)
        assert "field is immutable" in changed(cluster, "scale", "trainjob/one", "--replicas=4")
        # A JobSet that says so itself is resized only if a TrainJob controls it.
        jobset = cluster.get("jobset", "one")
        own = {"apiVersion": jobset["apiVersion"], "kind": "JobSet", "spec": {"replicatedJobs": jobset["spec"]["replicatedJobs"]},
               "metadata": {"name": "own", "annotations": {"trainer.kubeflow.org/elastic-nodes": "1:9"}}}
        cluster.apply(own)
        wait_until("its Job exists", lambda: cluster.get("job", "own-node-0"))
        own["spec"]["replicatedJobs"][0]["template"]["spec"].update(parallelism=2, completions=2)
        run("kubectl", "-n", cluster.namespace, "apply", "-f", "-", text=json.dumps(own), check=False)
        assert cluster.get("job", "own-node-0")["spec"]["completions"] == 3


def test_an_autoscaler(cluster):
    target = {"type": "External", "external": {"metric": {"name": METRIC}, "target": {"type": "AverageValue", "averageValue": "1"}}}
    with metrics_api(), served(cluster):
        Metrics.value = 3
        first = begin(cluster)
        cluster.apply({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "e"}, "spec": {
            "scaleTargetRef": {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "e"},
            "minReplicas": 2, "maxReplicas": 4, "metrics": [target]}})
        Metrics.value = 9
        pods = wait_for_pods(cluster, 4)
        assert {i: pods[i] for i in first} == first, "pods that ran were made again"
        Metrics.value = 2
        pods = wait_for_pods(cluster, 2)
        assert {i: first[i] for i in pods} == pods, "pods that ran were made again"


if __name__ == "__main__":
    harness.main(__file__)
