#!/usr/bin/python3
"""CRDs, built-in runtimes and controller, applied in any order, each apply retried until it is taken: all ends well.

Each of the six orders is tried TIMES (default 1) times, on a cluster that has none of the three. The controller is a process of
this host, which publishes its webhooks when it starts; so no node is needed.
"""
import itertools
import json
import os
import pathlib
import re
import tempfile
import time

import yaml

import harness
from harness import ROOT, Failed, run, wait_until

TIMES = int(os.environ.get("TIMES", "1"))
MANAGER = "kubeflow-trainer-controller-manager"


def documents(*overlays):
    return [o for path in overlays for o in yaml.safe_load_all(run("kubectl", "kustomize", str(ROOT / "manifests" / path)).stdout) if o]


# Read once: kustomize takes longer than the API server.
OBJECTS = {"crds": documents("crds"), "runtimes": documents("overlays/runtimes"),
           "controller": [o for o in documents("overlays/controller-only")
                          if o["kind"] != "Deployment" and not o["kind"].endswith("WebhookConfiguration")]}


def is_taken(objects, *options):
    return run("kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-", *options, text=yaml.safe_dump_all(objects), check=False).returncode == 0


def apply_until_taken(part):
    wait_until(f"the apply of the {part} is taken", lambda: is_taken(OBJECTS[part]), every=0.5)


def remove_all():
    run("kubectl", "delete", "--ignore-not-found", "--wait", "--timeout=60s", "-f", "-",
        text=yaml.safe_dump_all([o for part in ("controller", "crds") for o in OBJECTS[part]]))
    names = [o["metadata"]["name"] for o in OBJECTS["crds"]]
    wait_until("the CRDs are gone", lambda: not run("kubectl", "get", "crds", "--ignore-not-found", "-o", "name", *names).stdout)


def install(order, controller):
    """The first attempt of each part in this order, then what was refused again, until it is taken."""
    refused = []
    for part in order:
        if not is_taken(OBJECTS[part]):
            refused.append(part)
        if part == "controller":
            controller.start(wait=False)
    for part in refused:
        apply_until_taken(part)


def check(cluster, controller, name):
    wait_until("the controller is ready", controller.is_ready, seconds=60)
    names = {o["metadata"]["name"] for o in OBJECTS["runtimes"]}
    found = {o["metadata"]["name"] for o in cluster.list("clustertrainingruntimes")}
    assert names <= found, names - found
    job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": name}, "spec": {"runtimeRef": {"name": "torch-distributed"}}}
    wait_until("the TrainJob is taken", lambda: run("kubectl", "-n", cluster.namespace, "apply", "-f", "-", text=json.dumps(job), check=False).returncode == 0)
    wait_until("the TrainJob has its Job", lambda: cluster.get("job", f"{name}-node-0"))
    job["metadata"]["name"] = "orphan"
    job["spec"]["runtimeRef"]["name"] = "nowhere"
    refusal = wait_until("admission answers", lambda: run("kubectl", "-n", cluster.namespace, "apply", "--dry-run=server", "-f", "-", text=json.dumps(job), check=False).stderr)
    assert "validator.trainjob.trainer.kubeflow.org" in refusal, refusal


def try_order(cluster, order, number):
    remove_all()
    with tempfile.TemporaryDirectory() as directory:
        controller = harness.Controller(directory, "--webhook-url", f"https://{os.environ['TESTBED_HOST']}:9443")
        try:
            install(order, controller)
            check(cluster, controller, f"j{number}")
            controller.stop()
        except AssertionError as error:
            log = controller.log.read_text()[-1500:] if controller.log.exists() else ""
            raise Failed(f"{', '.join(order)}, time {number}: {error}\n--- the controller:\n{log}") from error
        finally:
            controller.kill()


def order_test(order):
    def test(cluster):
        began = time.monotonic()
        for number in range(TIMES):
            try_order(cluster, order, number)
        print(f"     {TIMES} of {TIMES}, {(time.monotonic() - began) / TIMES:.1f} s each")
    return test


for _order in itertools.permutations(("crds", "runtimes", "controller")):
    _test = order_test(_order)
    # The documented order, and its opposite, are always tried.
    globals()["test_" + "_then_".join(_order)] = _test if _order[1] == "runtimes" else harness.only_with_long(_test)


def test_namespaced_needs_roles_only(cluster):
    """overlays/namespaced, by an admin of the namespace: with the rights of its Role alone a job gets its Jobs; one of a cluster's runtime
    says what to write."""
    remove_all()
    apply_until_taken("crds")

    def of_namespace(*overlays):
        objects = [o for o in documents(*overlays) if o["kind"] != "Deployment"]
        assert not [o["kind"] for o in objects if o["kind"].startswith("Cluster") or "Webhook" in o["kind"]]
        return json.loads(json.dumps(objects).replace('"namespace": "default"', f'"namespace": "{cluster.namespace}"'))

    run("kubectl", "apply", "--server-side", "-f", str(ROOT / "manifests/rbac/users.yaml"))
    cluster.kubectl("create", "rolebinding", "owner", "--clusterrole=admin", "--user=owner")
    rights = of_namespace("overlays/namespaced/rights")
    assert not is_taken(rights, "--as=owner"), "an admin of a namespace can give away rights to statuses"
    wait_until("the rights are taken", lambda: is_taken(rights))
    theirs = of_namespace("overlays/namespaced/controller", "overlays/namespaced/runtimes")
    wait_until("the overlay is taken from an admin of the namespace", lambda: is_taken(theirs, "--as=owner"))
    token = cluster.kubectl("create", "token", MANAGER, "--duration=1h").strip()
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = pathlib.Path(directory) / "kubeconfig"
        kubeconfig.write_text(pathlib.Path(os.environ["KUBECONFIG"]).read_text())
        run("kubectl", "--kubeconfig", str(kubeconfig), "config", "unset", "users")
        run("kubectl", "--kubeconfig", str(kubeconfig), "config", "set-credentials", "admin", f"--token={token}")
        controller = harness.Controller(directory, "--namespace", cluster.namespace, kubeconfig=kubeconfig,
                                        change_config=lambda config: config.replace("leaderElect: false", "leaderElect: true") + "namespaced: true\n").start()
        try:
            def job(name, **ref):
                return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": name},
                        "spec": {"runtimeRef": {"name": "torch-distributed", **ref}}}

            cluster.apply(job("mine", kind="TrainingRuntime"), job("others"))
            wait_until("the TrainJob has its Job", lambda: cluster.get("job", "mine-node-0"))
            failed = wait_until("the other job says what to write", lambda: (cluster.get("trainjob", "others").get("status") or {}).get("message"))
            assert "runtimeRef.kind: TrainingRuntime" in failed, failed
            assert cluster.get("lease", "trainer.kubeflow.org")["spec"]["holderIdentity"]
            # Only refusals by RBAC count. Forbidden is also an ownerReference to a kind that the API server has not discovered yet: retried.
            refused = [line for line in controller.said().splitlines() if re.search(r"cannot \w+ resource", line)]
            assert not refused, refused[:5]
            cluster.kubectl("delete", "trainjob", "mine")
            controller.stop()
        finally:
            controller.kill()


if __name__ == "__main__":
    try:
        harness.main(__file__)
    finally:
        apply_until_taken("crds")   # for the tests that follow
