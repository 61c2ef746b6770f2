#!/usr/bin/python3
"""`trainer run`: what it creates, asks and leaves behind, also for users with few rights. Needs a control plane without node.

tests/local/run_test.py runs commands in pods.
"""
import base64
import contextlib
import io
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import tarfile
import tempfile

import yaml

import harness
from harness import ROOT, TRAINER, run, wait_until

ENDS = 60   # seconds


@contextlib.contextmanager
def served():
    """A controller with admission, the built-in runtimes, and the roles of users."""
    run("kubectl", "apply", "--server-side", "--force-conflicts", "-f", str(ROOT / "manifests/rbac/users.yaml"))
    run("kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-", text=run(TRAINER, "runtimes").stdout)
    with tempfile.TemporaryDirectory() as directory:
        controller = harness.Controller(directory, *harness.ADMISSION).start()
        try:
            wait_until("admission", lambda: "webhooks published" in controller.said())
            yield
            controller.stop()
        finally:
            controller.kill()


@contextlib.contextmanager
def folder(**files):
    """A folder with these files."""
    with tempfile.TemporaryDirectory() as directory:
        for name, text in files.items():
            path = pathlib.Path(directory) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        yield directory


CODE = {"train.py": "print('hello')\n", "src/model.py": "x = 1\n", ".env": "KEY=secret\n", ".gitignore": "*.log\n", "out.log": "x\n",
        "hf_token": "secret\n"}


def trainer_run(cluster, *words, code=0, config=None, env=None):
    """The subcommand without a terminal, with what it has printed; `code`: the exit status that it must have."""
    command = [TRAINER, "run", "-n", cluster.namespace, *(("--kubeconfig", config) if config else ()), *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          timeout=ENDS, env={**os.environ, **(env or {})})
    assert done.returncode == code, f"{' '.join(command)}: exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done


def unpacked(config_maps):
    """The names of the files in ConfigMaps, and the text of each."""
    parts = {key: base64.b64decode(part) for c in config_maps for key, part in c["binaryData"].items()}
    with tarfile.open(fileobj=io.BytesIO(b"".join(parts[key] for key in sorted(parts))), mode="r:gz") as tar:
        return {m.name: tar.extractfile(m).read().decode(errors="replace") if m.isfile() else None for m in tar}


def user(cluster, name, *rules):
    """The kubeconfig of a ServiceAccount with these rights: (verbs, resource)."""
    cluster.kubectl("create", "serviceaccount", name)
    cluster.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name}, "rules": [
        {"apiGroups": [group], "resources": [resource], "verbs": verbs} for group, resource, verbs in rules]},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
         "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": cluster.namespace}]})
    config = yaml.safe_load(pathlib.Path(os.environ["KUBECONFIG"]).read_text())
    config["users"] = [{"name": u["name"], "user": {"token": cluster.kubectl("create", "token", name).strip()}} for u in config["users"]]
    path = pathlib.Path(tempfile.mkdtemp()) / "config"
    path.write_text(yaml.safe_dump(config))
    return str(path)


GROUP = "trainer.kubeflow.org"
MAY_CREATE_JOBS = [(GROUP, "trainjobs", ["create", "get", "list", "watch", "delete", "patch"])]


def test_the_job_is_as_asked_and_owns_its_code(cluster):
    with served(), folder(**CODE) as code:
        said = trainer_run(cluster, "--detach", "--name", "asked", "--nodes", "2", "--procs", "3", "--gpus", "1", "--env", "A=1", "--env", "B=x=y",
                           "--code", code, "--", "python", "train.py", "--lr", "0.1").stderr
        assert said.startswith("-- TrainJob asked: 2 nodes, 3 processes a node, 1 GPU a node: python train.py --lr 0.1\n"), said
        for word in ("left out: .env (its name is that of a secret)", "left out: hf_token", f"TrainJob {cluster.namespace}/asked asks for 2 pods, 2 nvidia.com/gpu in sum", f"logs -f asked -n {cluster.namespace}"):
            assert word in said, said
        job = cluster.get("trainjob", "asked")
        assert job["spec"]["runtimeRef"]["name"] == "torch-distributed"
        assert job["spec"]["trainer"] == {
            "command": ["python", "train.py", "--lr", "0.1"], "numNodes": 2, "numProcPerNode": 3,
            "resourcesPerNode": {"limits": {"nvidia.com/gpu": "1"}}, "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "x=y"}]}
        parts = [c for c in cluster.list("configmaps") if c["metadata"]["name"].startswith("asked-code-")]
        assert [(o["kind"], o["uid"]) for c in parts for o in c["metadata"]["ownerReferences"]] == [("TrainJob", job["metadata"]["uid"])], parts
        assert all(c["immutable"] for c in parts)
        assert unpacked(parts) == {".gitignore": "*.log\n", "src": None, "src/model.py": "x = 1\n", "train.py": "print('hello')\n"}
        jobset = wait_until("the JobSet exists", lambda: cluster.get("jobset", "asked"))
        pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        assert [c["name"] for c in pod["initContainers"]] == ["unpack-code"] and pod["containers"][0]["workingDir"] == "/workspace/code", pod
        # A name is random without --name; then the command alone says what is started.
        name = re.match("-- TrainJob (run-[a-z0-9]{5}): ", trainer_run(cluster, "--detach", "--", "torchrun", "x.py").stderr)[1]
        assert cluster.get("trainjob", name)
        # All that belongs to a job goes with it.
        cluster.kubectl("delete", "trainjob", "asked")
        wait_until("its code is deleted", lambda: not [c for c in cluster.list("configmaps") if c["metadata"]["name"].startswith("asked-code-")])


def test_refusals(cluster):
    with served(), folder(**CODE) as code:
        trainer_run(cluster, "-d", "--name", "taken", "--", "python", "x")
        said = trainer_run(cluster, "-d", "--name", "taken", "--code", code, "--", "python", "x", code=1).stderr
        assert "there is one of this name: choose another --name, or delete it with `kubectl delete trainjob taken" in said, said
        assert not [c for c in cluster.list("configmaps") if "-code-" in c["metadata"]["name"]]
        said = trainer_run(cluster, "-d", "--runtime", "none", "--", "true", code=1).stderr
        assert "there is no such ClusterTrainingRuntime: name one" in said and "torch-distributed" in said, said
        said = trainer_run(cluster, "-d", "--", "./train.sh", code=1).stderr
        assert "--runtime is missing" in said and "torch-distributed" in said, said
        for words, wanted in ((("--env", "A", "--", "true"), "--env A: write NAME=VALUE"), ((), "the command is missing"),
                              (("-o", "yaml", "--", "true"), "--output requires --dry-run"), (("--nodes", "0", "--", "true"), "--nodes"),
                              (("--code", "/none", "--", "python"), "--code /none: there is no such folder")):
            said = trainer_run(cluster, *words, code=1 if "--code" in words else 2).stderr
            assert wanted in said, said
        # The folder would be too large: nothing is created, and the files are listed.
        with open(f"{code}/large.bin", "wb") as large:
            large.write(os.urandom(4 << 20))
        said = trainer_run(cluster, "-d", "--name", "large", "--code", code, "--", "python", "x", code=1).stderr
        assert "4.0 MiB  large.bin" in said and "claim" in said and not cluster.get("trainjob", "large"), said


def test_users_with_few_rights(cluster):
    with served(), folder(**CODE) as code:
        stranger = user(cluster, "stranger")
        said = trainer_run(cluster, "-d", "--name", "mine", "--", "python", "x", config=stranger, code=1).stderr
        assert "cannot create resource" in said and "ask its admin for the role edit" in said, said
        # The code cannot be stored, so the job goes again, and nothing is left.
        half = user(cluster, "half", *MAY_CREATE_JOBS)
        said = trainer_run(cluster, "-d", "--name", "half", "--code", code, "--", "python", "x", config=half, code=1).stderr
        assert "ConfigMap" in said and "cannot create resource \"configmaps\"" in said, said
        wait_until("the job is gone", lambda: not cluster.get("trainjob", "half"))
        whole = user(cluster, "whole", *MAY_CREATE_JOBS, ("", "configmaps", ["create"]))
        trainer_run(cluster, "-d", "--name", "whole", "--code", code, "--", "python", "x", config=whole)
        assert cluster.get("trainjob", "whole") and cluster.get("configmap", "whole-code-0")


def test_a_dry_run_is_what_kubectl_applies(cluster):
    with folder(**CODE) as code:
        with open(f"{code}/data.bin", "wb") as data:
            data.write(os.urandom(400 << 10))
        words = ("--dry-run", "--runtime", "torch-distributed", "--name", "dry", "--code", code, "--", "python", "train.py")
        nowhere = {"KUBECONFIG": f"{code}/none", "HOME": code}
        made = trainer_run(cluster, *words, env=nowhere).stdout
        assert made == trainer_run(cluster, *words, env=nowhere).stdout, "two runs differ"
        listed = json.loads(trainer_run(cluster, "-o", "json", *words, env=nowhere).stdout)
        assert [o["kind"] for o in listed["items"]] == ["ConfigMap", "ConfigMap", "ConfigMap", "TrainJob"]
        assert cluster.get("trainjob", "dry") is None
    with served():
        cluster.kubectl("apply", "-f", "-", text=made)
        job = cluster.get("trainjob", "dry")
        assert job["metadata"]["annotations"]["trainer.kubeflow.org/code"] == "dry-code-0,dry-code-1,dry-code-2"
        assert job["metadata"]["annotations"]["trainer.kubeflow.org/torch-launcher"] == "torchrun"
        assert set(unpacked([cluster.get("configmap", f"dry-code-{i}") for i in range(3)])) == {
            ".gitignore", "data.bin", "src", "src/model.py", "train.py"}
        # The runtime is the cluster's where none is named.
        made = trainer_run(cluster, "--dry-run", "-o", "json", "--", "python", "x").stdout
        assert json.loads(made)["items"][0]["spec"]["runtimeRef"]["name"] == "torch-distributed"


def in_terminal(cluster, *words):
    """The subcommand in a terminal of its own: the process, and the terminal's other end."""
    here, there = pty.openpty()
    started = subprocess.Popen([TRAINER, "run", "-n", cluster.namespace, *words], stdin=there, stdout=there, stderr=there)
    os.close(there)
    return started, here


def read_until(terminal, text):
    said = ""
    while text not in said:
        try:
            piece = os.read(terminal, 4096).decode(errors="replace")
        except OSError:   # the process has ended
            piece = ""
        assert piece, f"it ended before it said {text!r}:\n{said}"
        said += piece
    return said


def test_it_asks_in_a_terminal(cluster):
    with served():
        for answer, code in ((b"n\n", 1), (b"\n", 1), (b"y\n", 0)):
            started, terminal = in_terminal(cluster, "--name", "asks", "-d", "--", "python", "x")
            read_until(terminal, "start it? [y/N]")
            assert cluster.get("trainjob", "asks") is None
            os.write(terminal, answer)
            assert started.wait(ENDS) == code
            os.close(terminal)
        assert cluster.get("trainjob", "asks")
        started, terminal = in_terminal(cluster, "--name", "confirmed", "-d", "--yes", "--", "python", "x")
        said = read_until(terminal, "started: ")
        assert started.wait(ENDS) == 0 and "start it?" not in said, said
        os.close(terminal)


def lines_until(started, text):
    said = ""
    for line in started.stderr:
        said += line
        if text in line:
            return said
    raise harness.Failed(f"it ended before it said {text!r}:\n{said}")


def test_interrupts(cluster):
    """The first one suspends the job, unless a queue would resume it; the second one leaves it."""
    with served():
        command = [TRAINER, "run", "-n", cluster.namespace, "--", "python", "x"]
        started = subprocess.Popen([*command[:4], "--name", "stops", *command[4:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        lines_until(started, "TrainJob " + cluster.namespace + "/stops: ")
        started.send_signal(signal.SIGINT)
        lines_until(started, "stopping: a second interrupt leaves the job to itself")
        assert started.wait(ENDS) == 1
        assert cluster.get("trainjob", "stops")["spec"]["suspend"]
        queued = subprocess.Popen([*command[:4], "--name", "queued", "--queue", "q", *command[4:]], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines_until(queued, "TrainJob " + cluster.namespace + "/queued: ")
        queued.send_signal(signal.SIGINT)
        lines_until(queued, "its queue would start it again: `kubectl delete trainjob queued")
        queued.send_signal(signal.SIGINT)
        lines_until(queued, "the job goes on: ")
        assert queued.wait(ENDS) == 1
        job = cluster.get("trainjob", "queued")
        assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "q" and not job["spec"].get("suspend"), job


def test_no_cluster(cluster):
    """The first line comes before the cluster is asked; the exit status says that there is none."""
    done = trainer_run(cluster, "--", "python", "x", env={"KUBECONFIG": "/none", "HOME": "/none"}, code=3)
    assert done.stderr.startswith("-- TrainJob run-"), done.stderr


if __name__ == "__main__":
    harness.main(__file__)
