#!/usr/bin/python3
"""Each overlay, from a cluster with nothing to a completed job in real pods (see run). The image is set in manifests/image alone."""
import json
import pathlib
import re
import shutil
import tempfile

from installations import apply_until_taken, create_trainjob, remove_everything

import harness
from harness import ROOT, run, wait_until


def install(*overlays):
    """One after the other, each until it is taken."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "manifests"
        shutil.copytree(ROOT / "manifests", copy)
        image = copy / "image/kustomization.yaml"
        text = re.sub("newName: .*", "newName: localhost/trainer", image.read_text())
        image.write_text(text.replace("newTag: ", 'newTag: "1" # '))
        for overlay in overlays:
            apply_until_taken("-k", str(copy / overlay))


def check_trainjob(cluster, **options):
    create_trainjob(cluster, "j", "true", **options)
    wait_until("the TrainJob is Complete", lambda: cluster.condition("trainjob", "j", "Complete"), seconds=90)
    cluster.kubectl("delete", "trainjob", "j", "--wait")


def check_pytorchjob(cluster):
    pod = {"spec": {"containers": [{"name": "pytorch", "image": "localhost/torch:1", "command": ["true"]}]}}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "j", "namespace": cluster.namespace},
           "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "restartPolicy": "Never", "template": pod}}}}
    apply_until_taken("-f", "-", text=json.dumps(job))
    wait_until("the PyTorchJob has succeeded", lambda: cluster.condition("pytorchjob", "j", "Succeeded"), seconds=90)


def test_manager_and_runtimes(cluster):
    remove_everything()
    install("overlays/manager", "overlays/runtimes")
    check_trainjob(cluster)


def test_manager_without_jobset_crd(cluster):
    remove_everything()
    apply_until_taken("-f", str(ROOT / "manifests/crds/jobset.x-k8s.io_jobsets.yaml"))
    run("kubectl", "annotate", "crd", "jobsets.jobset.x-k8s.io", "example.com/owner=another")
    install("overlays/manager-without-jobset-crd", "overlays/runtimes")
    check_trainjob(cluster)
    assert "example.com/owner" in run("kubectl", "get", "crd", "jobsets.jobset.x-k8s.io", "-o", "jsonpath={.metadata.annotations}").stdout


def test_data_cache(cluster):
    """A job with a cache is in tests/cluster/data_cache_test.py; here, what its guides name is there, without LeaderWorkerSet."""
    remove_everything()
    install("overlays/data-cache")
    check_trainjob(cluster)
    assert run("kubectl", "get", "clustertrainingruntime", "torch-distributed-with-cache").returncode == 0
    assert harness.Cluster("default").get("serviceaccount", "kubeflow-trainer-cache-initializer")
    run("kubectl", "apply", "--server-side", "-n", cluster.namespace, "-k", str(ROOT / "manifests/overlays/data-cache/namespace-rbac"))
    assert cluster.get("rolebinding", "kubeflow-trainer-cache-initializer")
    assert "leaderworkersets" not in run("kubectl", "get", "crds", "-o", "name").stdout


def test_kubeflow_platform(cluster):
    remove_everything()
    run("kubectl", "create", "namespace", "kubeflow")
    install("overlays/kubeflow-platform")
    check_trainjob(cluster)


def test_namespaced(cluster):
    """The namespace is the overlay's own; jobs elsewhere are left alone."""
    remove_everything()
    install("crds", "overlays/namespaced", "overlays/namespaced/runtimes")
    check_trainjob(harness.Cluster("default"), kind="TrainingRuntime")
    create_trainjob(cluster, "elsewhere", "true", kind="TrainingRuntime")
    check_trainjob(harness.Cluster("default"), kind="TrainingRuntime")
    assert not cluster.get("trainjob", "elsewhere").get("status"), "a job of another namespace was reconciled"
    run("kubectl", "delete", "-k", str(ROOT / "manifests/overlays/namespaced/runtimes"))


def test_standalone(cluster):
    remove_everything()
    install("overlays/standalone")
    check_pytorchjob(cluster)


def test_kubeflow(cluster):
    remove_everything()
    run("kubectl", "create", "namespace", "kubeflow")
    install("overlays/kubeflow")
    check_pytorchjob(cluster)
    remove_everything()


if __name__ == "__main__":
    harness.main(__file__)
