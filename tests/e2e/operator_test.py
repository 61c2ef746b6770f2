#!/usr/bin/python3
"""V1 jobs under the overlay standalone, as guides install it and use it: the console walk, and a gang (see run)."""
import json
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
import deployment_test  # noqa: E402
import harness  # noqa: E402
import v1jobs  # noqa: E402
import yaml  # noqa: E402
from harness import ROOT, run, wait_until  # noqa: E402

KUBEFLOW = harness.Cluster("kubeflow")
OPERATOR = "training-operator"
WEBHOOK = "validator.pytorchjob.training-operator.kubeflow.org"


def add_flags(cluster, *flags):
    """Adds flags at the end of the command, as guides do. Waits until the new pod answers the API server's webhooks."""
    patch = [{"op": "add", "path": "/spec/template/spec/containers/0/command/-", "value": flag} for flag in flags]
    KUBEFLOW.kubectl("patch", f"deployment/{OPERATOR}", "--type=json", "-p", json.dumps(patch))
    KUBEFLOW.kubectl("rollout", "status", f"deployment/{OPERATOR}", "--timeout=90s")
    two_masters = json.dumps(v1jobs.job("PyTorchJob", "refused", {"Master": (2, v1jobs.shell("true"))}))

    def refused():
        return f'"{WEBHOOK}" denied' in run("kubectl", "-n", cluster.namespace, "apply", "-f", "-", text=two_masters, check=False).stderr

    wait_until("admission refuses a job with two masters", refused)


def test_installs_and_refuses(cluster):
    """Without --server-side, as guides apply it."""
    run("kubectl", "apply", "-k", str(ROOT / "tests/e2e/operator"))
    add_flags(cluster, "--pytorch-init-container-image=" + v1jobs.INIT_IMAGE)
    pod, = (p for p in KUBEFLOW.list("pods", "-l", "control-plane=kubeflow-training-operator") if "deletionTimestamp" not in p["metadata"])
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    ports = {port["port"] for port in KUBEFLOW.get("service", OPERATOR)["spec"]["ports"]}
    assert ports == {8080, 443} and KUBEFLOW.get("secret", "training-operator-webhook-cert"), ports


def test_any_user_will_do(_):
    deployment_test.run_as_any_user(KUBEFLOW, OPERATOR)


def test_the_console_walk_of_guides(cluster):
    """One master and three workers train together; columns, names of pods and logs are what guides show."""
    example = yaml.safe_load((ROOT / "docs/examples/torch-ddp.yaml").read_text())
    trains = v1jobs.python(example["spec"]["trainer"]["args"][0])
    with v1jobs.watched(cluster, "pytorchjob") as jobs, v1jobs.watched(cluster, "pods") as pods:
        cluster.apply(v1jobs.job("PyTorchJob", "pytest", {"Master": (1, trains), "Worker": (3, trains)}))
        v1jobs.succeeds(cluster, "PyTorchJob", "pytest", seconds=150)
        wait_until("kubectl shows the end", lambda: ["pytest", "Succeeded"] in (words[:2] for words in jobs()))
        states = [word for words in jobs() for word in words[1:2] if word.isalpha()]   # the first lines have none, and the age there
        assert list(dict.fromkeys(states)) == ["Created", "Running", "Succeeded"], jobs()
        seen = {tuple(words[:3:2]) for words in pods()}
        assert all((f"pytest-worker-{i}", "Init:0/1") in seen for i in range(3)), sorted(seen)
    assert sorted(v1jobs.pods_of(cluster, "pytest")) == ["pytest-master-0"] + [f"pytest-worker-{i}" for i in range(3)]
    assert re.search(r"rank 0 \w+ y = 3\.0", cluster.kubectl("logs", "pytest-master-0"))
    for pod, rank in (("master-0", 0), ("worker-0", 1), ("worker-1", 2), ("worker-2", 3)):   # which may end after the job
        wait_until(f"{pod} has trained", lambda line=rf"\[{pod}\] rank {rank} \w+ y = ": re.search(
            line, v1jobs.report(cluster, "logs", "PyTorchJob", "pytest")))
    conditions = {c["type"]: c["status"] for c in cluster.get("pytorchjob", "pytest")["status"]["conditions"]}
    assert conditions == {"Created": "True", "Running": "False", "Succeeded": "True"}, conditions
    why = v1jobs.report(cluster, "why", "PyTorchJob", "pytest")
    assert f"PyTorchJob {cluster.namespace}/pytest: Succeeded" in why, why


def test_a_gang_waits_for_its_group(cluster):
    """In place of Volcano, the test says when the group may start; the pods' own scheduler stays what it is."""
    crds, group = str(ROOT / "tests/conformance/crds"), "podgroups.scheduling.volcano.sh"
    run("kubectl", "apply", "-f", crds)
    run("kubectl", "wait", "--for=condition=Established", "--timeout=30s", "-f", crds)
    add_flags(cluster, "--gang-scheduler-name=volcano")
    cluster.apply(v1jobs.job("PyTorchJob", "gang", {"Master": (1, v1jobs.shell("sleep 8")), "Worker": (3, v1jobs.shell("sleep 1"))},
                             schedulerName="default-scheduler"))

    def set_phase(phase):
        cluster.kubectl("patch", group, "gang", "--type=merge", "-p", json.dumps({"status": {"phase": phase}}))

    made = wait_until("there is a PodGroup", lambda: cluster.get(group, "gang"))
    assert made["spec"]["minMember"] == 4, made
    set_phase("Pending")
    time.sleep(2)   # the claim is about time that passes
    assert not cluster.list("pods"), "the pods did not wait for their group"
    assert [c["type"] for c in cluster.get("pytorchjob", "gang")["status"]["conditions"]] == ["Created"]
    set_phase("Inqueue")
    v1jobs.succeeds(cluster, "PyTorchJob", "gang")
    pods = v1jobs.pods_of(cluster, "gang")
    assert len(pods) == 4, pods
    assert {p["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for p in pods.values()} == {"gang"}, pods
    wait_until("the group ends with the job", lambda: not cluster.get(group, "gang"))


def test_nothing_was_forbidden(_):
    deployment_test.check_nothing_was_forbidden(f"system:serviceaccount:kubeflow:{OPERATOR}")


def test_uninstalls(_):
    """The controller goes, jobs and pods stay."""
    run("kubectl", "delete", "--timeout=60s", "-k", str(ROOT / "manifests/v1/controller"))
    assert not KUBEFLOW.get("deployment", OPERATOR)
    assert len([c for c in run("kubectl", "get", "crds", "-o", "name").stdout.split() if c.endswith("jobs.kubeflow.org")]) == 6


if __name__ == "__main__":
    harness.main(__file__)
