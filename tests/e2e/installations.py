"""The code that tests of installations share: removing any of them, and a job that shows that one works."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from harness import ROOT, TESTBED, run, wait_until  # noqa: E402

NAMESPACE, RELEASE = "kubeflow-system", "kubeflow-trainer"
# In the order in which they are removed: webhooks first, CRDs last.
OVERLAYS = ("overlays/kubeflow-platform/controller", "overlays/controller-only", "overlays/namespaced", "overlays/data-cache/namespace-rbac",
            "v1/controller", "crds", "v1/crds")


class Helm:
    def __init__(self, major):
        folder = os.environ.get("HELM_DIR") or run(TESTBED, "helm").stdout.strip()
        self.program = f"{folder}/helm{major}"

    def __call__(self, *arguments, namespace=NAMESPACE, **options):
        return run(self.program, *arguments, "--namespace", namespace, **options)


def remove_everything():
    """Removes the installations of earlier tests."""
    for helm in (Helm(3), Helm(4)):
        for name, namespace in ((RELEASE, NAMESPACE), ("training-operator", "kubeflow")):
            helm("uninstall", name, "--no-hooks", "--wait", namespace=namespace, check=False)
    for overlay in OVERLAYS:
        run("kubectl", "delete", "--ignore-not-found", "--wait", "--timeout=120s", "-k", str(ROOT / "manifests" / overlay))
    run("kubectl", "delete", "--ignore-not-found", "clusterrole", "kubeflow-trainer-cache-initializer", "kubeflow-training-admin",
        "kubeflow-training-edit", "kubeflow-training-view")
    run("kubectl", "delete", "--ignore-not-found", "--wait", "--timeout=120s", "namespace", NAMESPACE, "kubeflow")


def apply_until_taken(*arguments, text=None, seconds=60):
    """Applies until it succeeds, as guides do: kinds that are not served yet, and webhooks that nothing answers yet, are a reason to try again."""
    wait_until(f"kubectl apply {' '.join(arguments)} is taken", lambda: run(
        "kubectl", "apply", "--server-side", "--force-conflicts", *arguments, text=text, check=False).returncode == 0, seconds, every=0.5)


def create_trainjob(cluster, name, *command, nodes=1, kind="ClusterTrainingRuntime"):
    apply_until_taken("-f", "-", text=json.dumps({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": name, "namespace": cluster.namespace},
        "spec": {"runtimeRef": {"name": "torch-distributed", "kind": kind},
                 "trainer": {"numNodes": nodes, "image": "localhost/torch:1", "command": list(command)}}}))
