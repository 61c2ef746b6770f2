#!/usr/bin/python3
"""`trainer get`, `suspend`, `resume`, `cancel`, `wait`, `rerun` and completion, with jobs of each kind.

Needs a control plane without node.
"""
import atexit
import contextlib
import functools
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import harness
import v1_rights_test
from clients_test import CONTAINER, runtime, trainjob
from harness import ROOT, TRAINER, Failed, Skipped, run, wait_until

QUEUE = "kueue.x-k8s.io/queue-name"
GPUS = {**CONTAINER, "resources": {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}}
WORKLOADS = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "workloads.kueue.x-k8s.io"}, "spec": {
    "group": "kueue.x-k8s.io", "scope": "Namespaced", "names": {"plural": "workloads", "singular": "workload", "kind": "Workload"},
    "versions": [{"name": "v1beta2", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


@functools.cache
def the_controller():
    """A controller of all kinds, without webhooks, for all tests of this file."""
    crds = [argument for folder in ("crds", "v1/crds") for argument in ("-f", str(ROOT / "manifests" / folder))]
    run("kubectl", "apply", "--server-side", "--validate=false", *crds)
    run("kubectl", "apply", "--server-side", "--validate=false", "-f", "-", text=run(TRAINER, "crds", "v1", "mpi").stdout)
    run("kubectl", "wait", "--for=condition=Established", "--timeout=30s", *crds)
    directory = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return harness.Controller(directory, "--enable-scheme", "--enable-mpijob-v2").start()   # it is killed at the end of this program


def begin(cluster):
    """The controller runs, and the namespace has a runtime with two GPUs a node."""
    the_controller()
    plain = runtime()
    job = plain["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["backoffLimit"] = 0
    job["template"]["spec"]["containers"] = [GPUS]
    cluster.apply(plain)


def trainer(cluster, *words, code=0, env=None, **options):
    """The output of `trainer WORDS`: of standard output where it is to succeed, else of standard error."""
    done = run(TRAINER, *words, "-n", cluster.namespace, check=False, stdin=subprocess.DEVNULL, timeout=120,
               env={**os.environ, **(env or {})}, **options)
    assert done.returncode == code, f"{' '.join(words)}: exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done.stderr if code else done.stdout


def jobset(name, **spec):
    jobs = runtime()["spec"]["template"]["spec"]["replicatedJobs"]
    jobs[0]["template"]["spec"]["template"]["spec"]["containers"] = [GPUS]
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": {"replicatedJobs": jobs, **spec}}


def of_each_kind():
    """An object of each kind, the path of its `suspend`, and the devices of its pods."""
    found = [(trainjob("j", trainer={"numNodes": 3}), ("spec",), "6"), (jobset("s"), ("spec",), "2")]
    for kind, (container, specs, first) in v1_rights_test.FRAMEWORKS.items():
        one = v1_rights_test.job(kind, "v1")
        one["spec"][specs][first]["template"]["spec"]["containers"][0]["resources"] = GPUS["resources"]
        found.append((one, ("spec", "runPolicy"), "2"))
    newer = v1_rights_test.job("MPIJob", "v2")
    newer["apiVersion"] = "kubeflow.org/v2beta1"
    newer["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"] = GPUS["resources"]
    return found + [(newer, ("spec", "runPolicy"), "2")]


def rows(cluster, *words):
    """The cells of `trainer get`, by the name of the job."""
    lines = trainer(cluster, "get", *words).splitlines()
    head = lines[0].split()
    return {row["JOB"]: row for row in (dict(zip(head, line.split())) for line in lines[1:])}


def resource(one):
    version = one["apiVersion"].split("/")
    return f"{one['kind'].lower()}s.{version[1]}.{version[0]}"


def test_each_kind_is_listed_suspended_resumed_and_cancelled(cluster):
    everything = of_each_kind()
    begin(cluster)
    cluster.apply(*(one for one, _, _ in everything))
    names = {f"{one['kind'].lower()}/{one['metadata']['name']}": one for one, _, _ in everything}
    wait_until("all jobs have a state", lambda: all(row["STATE"] not in ("-", "Queued") for row in rows(cluster).values()),
               shown=lambda: rows(cluster))
    table = rows(cluster)
    assert sorted(table) == sorted(names), table   # the JobSet of the TrainJob has no row
    for one, path, devices in everything:
        name = f"{one['kind'].lower()}/{one['metadata']['name']}"
        assert table[name]["GPUS"] == devices, table[name]

        def suspend():
            o = cluster.get(resource(one), one["metadata"]["name"])
            for step in path:
                o = o[step]
            return o.get("suspend")

        assert trainer(cluster, "suspend", name).endswith(": suspended\n")
        assert suspend() is True, name
        assert "Suspended" in trainer(cluster, "wait", name, "--for=suspended", "--timeout=30s")
        assert "was already suspended" in trainer(cluster, "suspend", name)
        assert trainer(cluster, "resume", name).endswith(": resumed\n")
        assert suspend() is False, name
        wait_until(f"{name} goes on", lambda: rows(cluster)[name]["STATE"] != "Suspended")
        assert "was already resumed" in trainer(cluster, "resume", name)
        assert "add --yes" in trainer(cluster, "cancel", name, code=2)
        copy = trainer(cluster, "rerun", name)
        assert f"/{one['metadata']['name']}-r2: created as a copy" in copy, copy
        assert trainer(cluster, "cancel", "--yes", name).endswith(": cancelled\n")
        wait_until(f"{name} is gone", lambda: cluster.get(resource(one), one["metadata"]["name"]) is None)
        assert cluster.get(resource(one), one["metadata"]["name"] + "-r2"), copy


def set_pods(cluster, labels, phase, at_least=1):
    """Sets the phase of these pods, which no kubelet does here."""
    def all_pods():
        found = cluster.list("pods", "-l", labels)
        return found if len(found) >= at_least else None

    state = {"Running": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "Succeeded": {"terminated": {"exitCode": 0}},
             "Failed": {"terminated": {"exitCode": 3, "reason": "Error"}}}[phase]
    for pod in wait_until("the pods exist", all_pods):
        containers = [{"name": c["name"], "image": "x", "imageID": "x", "ready": phase == "Running", "restartCount": 0, "state": state}
                      for c in pod["spec"]["containers"]]
        cluster.kubectl("patch", "pod", pod["metadata"]["name"], "--subresource=status", "--type=merge", "-p", json.dumps({"status": {
            "phase": phase, "containerStatuses": containers, "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Ready", "status": str(phase == "Running"), "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}))


def start(cluster, *words):
    return subprocess.Popen([TRAINER, *words, "-n", cluster.namespace], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def end_of(process):
    output, _ = process.communicate(timeout=60)
    return process.returncode, output


def test_wait(cluster):
    begin(cluster)
    cluster.apply(trainjob("good"), trainjob("bad"), trainjob("gone"), trainjob("idle", suspend=True))
    assert "there is none" in trainer(cluster, "wait", "nothing", code=1)
    assert "--for=done: choose from complete" in trainer(cluster, "wait", "good", "--for=done", code=2)
    trainer(cluster, "wait", "idle", "--for=phase=suspended", "--timeout=30s")
    assert "the time is over, and it is Suspended" in trainer(cluster, "wait", "idle", "--for", "running", "--timeout=0", code=1)
    began = time.monotonic()
    assert "the time is over" in trainer(cluster, "wait", "idle", "--timeout=1s", code=1)
    assert time.monotonic() - began >= 1
    running, complete = start(cluster, "wait", "good", "--for=running"), start(cluster, "wait", "good", "--for=complete")
    never, failed = start(cluster, "wait", "bad", "--for=complete"), start(cluster, "wait", "trainjob/bad", "--for=failed")
    deleted = start(cluster, "wait", "gone")
    set_pods(cluster, "jobset.sigs.k8s.io/jobset-name=good", "Running")
    assert end_of(running)[0] == 0
    set_pods(cluster, "jobset.sigs.k8s.io/jobset-name=good", "Succeeded")
    set_pods(cluster, "jobset.sigs.k8s.io/jobset-name=bad", "Failed")
    trainer(cluster, "cancel", "gone", "--yes")
    code, output = end_of(complete)
    assert code == 0 and "Complete" in output, output
    code, output = end_of(never)
    assert code == 1 and "it has ended: Failed" in output, output
    assert end_of(failed)[0] == 0
    code, output = end_of(deleted)
    assert code == 1 and "it was deleted" in output, output
    assert trainer(cluster, "wait", "good", "--for=running").startswith("TrainJob")   # it has run
    for verb in ("suspend", "resume"):
        refusal = trainer(cluster, verb, "good", code=1)
        assert "it has ended (Complete): `trainer rerun trainjob/good" in refusal, refusal
    assert "nothing to cancel" in trainer(cluster, "cancel", "--yes", "bad", code=1)
    # A finished job is copied without its end, and the copy runs.
    assert trainer(cluster, "rerun", "good").endswith("/good-r2: created as a copy of good\n")
    set_pods(cluster, "jobset.sigs.k8s.io/jobset-name=good-r2", "Running")
    trainer(cluster, "wait", "good-r2", "--for=running", "--timeout=30s")


def test_rerun(cluster):
    begin(cluster)
    one = trainjob("j", suspend=True)
    one["metadata"].update(labels={"team": "a"}, finalizers=["example.com/kept"])
    cluster.apply(one)
    try:
        dry = trainer(cluster, "rerun", "j", "--dry-run")
        assert "finalizers" not in dry and "suspend" not in dry and "last-applied" not in dry and "team: a" in dry, dry
        assert "uid" not in json.dumps(json.loads(trainer(cluster, "rerun", "j", "--dry-run", "-o", "json")))
        cluster.kubectl("apply", "--dry-run=server", "-f", "-", text=dry)
        assert cluster.get("trainjob", "j-r2") is None
        trainer(cluster, "rerun", "j")
        trainer(cluster, "rerun", "j")
        trainer(cluster, "rerun", "j-r3")
        trainer(cluster, "rerun", "j", "--name", "mine")
        assert sorted(o["metadata"]["name"] for o in cluster.list("trainjobs")) == ["j", "j-r2", "j-r3", "j-r4", "mine"]
        assert "already exists" in trainer(cluster, "rerun", "j", "--name=mine", code=1)
        assert "Not_a_name" in trainer(cluster, "rerun", "j", "--name=Not_a_name", code=1)
        assert not cluster.get("trainjob", "mine")["spec"].get("suspend")
    finally:
        cluster.kubectl("patch", "trainjob", "j", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


def user_without_rights(cluster, directory, *rules):
    """The kubeconfig of a ServiceAccount with these rights in the namespace."""
    cluster.kubectl("create", "serviceaccount", "someone")
    if rules:
        cluster.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "some"}, "rules": list(rules)})
        cluster.kubectl("create", "rolebinding", "some", "--role=some", f"--serviceaccount={cluster.namespace}:someone")
    path = pathlib.Path(directory) / "kubeconfig"
    shutil.copy(os.environ["KUBECONFIG"], path)
    token = cluster.kubectl("create", "token", "someone").strip()
    user = json.loads(run("kubectl", "--kubeconfig", str(path), "config", "view", "-o", "json").stdout)["users"][0]["name"]
    run("kubectl", "--kubeconfig", str(path), "config", "unset", f"users.{user}")
    run("kubectl", "--kubeconfig", str(path), "config", "set-credentials", user, f"--token={token}")
    return {"KUBECONFIG": str(path)}


def test_a_user_without_the_right(cluster):
    reads = {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "verbs": ["get", "list"]}
    begin(cluster)
    with tempfile.TemporaryDirectory() as directory:
        cluster.apply(trainjob("j"))
        env = user_without_rights(cluster, directory, reads)

        def is_listed():
            done = run(TRAINER, "get", "-n", cluster.namespace, check=False, env={**os.environ, **env})
            return done if "trainjob/j" in done.stdout else None

        said = wait_until("the right is known", is_listed).stderr
        assert "You may not list" in said and "jobsets.jobset.x-k8s.io" in said and "trainjobs" not in said, said
        for words, verb in ((("suspend", "j"), "patch"), (("cancel", "-y", "j"), "delete"), (("rerun", "j"), "create")):
            refusal = trainer(cluster, *words, code=1, env=env)
            assert f'cannot {verb} resource "trainjobs"' in refusal, refusal
        assert 'cannot get resource "jobsets"' in trainer(cluster, "suspend", "jobset/j", code=1, env=env)
        run("kubectl", "-n", cluster.namespace, "delete", "rolebinding", "some")
        wait_until("the right is gone", lambda: run(TRAINER, "get", "-n", cluster.namespace, check=False,
                                                    env={**os.environ, **env}).returncode == 1)


def test_what_is_not_changed(cluster):
    begin(cluster)
    cluster.apply(trainjob("j"), trainjob("other", managedBy="kueue.x-k8s.io/multikueue"))
    wait_until("the JobSet exists", lambda: cluster.get("jobset", "j"))
    for verb in ("suspend", "resume", "rerun"):
        assert "it is a part of trainjob/j" in trainer(cluster, verb, "jobset/j", code=1)
    assert "it is a part of trainjob/j" in trainer(cluster, "cancel", "-y", "jobset/j", code=1)
    assert "there is none" in trainer(cluster, "suspend", "nothing", code=1)
    assert "write trainjob/NAME or jobset/NAME or" in trainer(cluster, "suspend", "pod/j", code=2)
    done = run(TRAINER, "suspend", "other", "-n", cluster.namespace)
    assert "leaves it to kueue.x-k8s.io/multikueue" in done.stderr and done.stdout.endswith(": suspended\n"), done


def test_others_change_the_job_meanwhile(cluster):
    begin(cluster)
    cluster.apply(trainjob("j", suspend=True))
    is_over = threading.Event()

    def annotate():
        number = 0
        while not is_over.is_set():
            number += 1
            cluster.kubectl("annotate", "trainjob", "j", "--overwrite", f"example.com/n={number}")

    writer = threading.Thread(target=annotate)
    writer.start()
    try:
        for _ in range(5):
            for verb, wanted in (("resume", False), ("suspend", True)):
                trainer(cluster, verb, "j")
                assert cluster.get("trainjob", "j")["spec"]["suspend"] is wanted
    finally:
        is_over.set()
        writer.join()


@contextlib.contextmanager
def workloads():
    """Kueue's kind, without Kueue."""
    is_there = run("kubectl", "get", "crd", WORKLOADS["metadata"]["name"], check=False).returncode == 0
    if is_there:
        raise Skipped("the cluster has Kueue's kinds, and a Workload needs its webhooks")
    run("kubectl", "apply", "-f", "-", text=json.dumps(WORKLOADS))
    run("kubectl", "wait", "--for=condition=Established", "--timeout=30s", "crd", WORKLOADS["metadata"]["name"])
    try:
        yield
    finally:
        run("kubectl", "delete", "crd", WORKLOADS["metadata"]["name"])


def test_a_job_in_a_queue(cluster):
    begin(cluster)
    with workloads():
        queued = trainjob("j", suspend=True)
        queued["metadata"]["labels"] = {QUEUE: "gpus"}
        cluster.apply(queued)
        wait_until("its state is known", lambda: rows(cluster).get("trainjob/j", {}).get("STATE") == "Queued", shown=lambda: rows(cluster))
        assert rows(cluster)["trainjob/j"]["QUEUE"] == "gpus"
        trainer(cluster, "wait", "j", "--for=suspended", "--timeout=30s")
        # Kueue has not seen it.
        done = run(TRAINER, "resume", "j", "-n", cluster.namespace)
        assert "has the label of queue gpus, and no Workload" in done.stderr, done
        trainer(cluster, "suspend", "j")
        uid = cluster.get("trainjob", "j")["metadata"]["uid"]
        cluster.apply({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "spec": {"queueName": "gpus", "active": True},
                       "metadata": {"name": "trainjob-j-1", "labels": {"kueue.x-k8s.io/job-uid": uid}}})

        def active():
            return cluster.get("workload", "trainjob-j-1")["spec"]["active"]

        said = trainer(cluster, "suspend", "j")
        assert "suspended in queue gpus" in said and active() is False, said
        assert "was already suspended in queue gpus" in trainer(cluster, "suspend", "j")
        said = trainer(cluster, "resume", "j")
        assert "resumed in queue gpus: it waits in the queue" in said and active() is True, said
        assert cluster.get("trainjob", "j")["spec"]["suspend"] is True   # that is Kueue's to change


def test_selectors_and_formats(cluster):
    begin(cluster)
    one, other = trainjob("a", trainer={"numNodes": 2}), jobset("b")
    one["metadata"]["labels"] = {"team": "red"}
    cluster.apply(one, other)
    wait_until("the devices are known", lambda: rows(cluster, "-l", "team=red").get("trainjob/a", {}).get("GPUS") == "4")
    assert list(rows(cluster, "-l", "team=red")) == ["trainjob/a"]
    assert list(rows(cluster, "--selector", "team!=red")) == ["jobset/b"]
    assert "--selector: " in trainer(cluster, "get", "-l", "a=b=c", code=2)
    assert sorted(trainer(cluster, "get", "-o", "name").split()) == ["jobset/b", "trainjob/a"]
    jobs = json.loads(trainer(cluster, "get", "-o", "json"))["jobs"]
    assert {(j["kind"], j["name"], j["devices"]) for j in jobs} == {("trainjob", "a", 4), ("jobset", "b", 2)}, jobs
    assert "REASON" in trainer(cluster, "get", "-o", "wide")
    everywhere = run(TRAINER, "get", "-A").stdout
    assert everywhere.startswith("NAMESPACE") and cluster.namespace in everywhere
    cluster.kubectl("delete", "trainjobs,jobsets", "--all")
    wait_until("they are gone", lambda: run(TRAINER, "get", "-n", cluster.namespace).stdout == "")
    assert "There are no jobs in namespace" in run(TRAINER, "get", "-n", cluster.namespace).stderr


def test_watch(cluster):
    begin(cluster)
    cluster.apply(trainjob("first", suspend=True))
    with tempfile.TemporaryFile("w+") as output:
        watch = subprocess.Popen([TRAINER, "get", "-w", "-n", cluster.namespace], stdout=output, stderr=output)

        def said():
            output.seek(0)
            return [line.split()[:2] for line in output.read().splitlines()]

        try:
            wait_until("the table is printed", lambda: ["trainjob/first", "Suspended"] in said(), shown=said)
            cluster.apply(trainjob("second", suspend=True))
            wait_until("a new job is printed", lambda: ["trainjob/second", "Suspended"] in said(), shown=said)
            trainer(cluster, "cancel", "-y", "first")
            wait_until("the end of a job is printed", lambda: ["trainjob/first", "Deleted"] in said(), shown=said)
            assert said().count(["trainjob/second", "Suspended"]) <= 2, said()
        finally:
            watch.terminate()   # a run of tests in the background ignores SIGINT, and so does what it starts
            watch.wait(30)


class Shell:
    """An interactive shell on a terminal, in which `trainer` is the program."""

    def __init__(self, command, setup, directory):
        (pathlib.Path(directory) / "trainer").symlink_to(TRAINER)
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.environ.update(PATH=f"{directory}:{os.environ['PATH']}", TERM="dumb", PS1="", HOME=directory)
            os.execvp(command[0], command)
        self.seen = ""
        self.send(setup + "\necho is-\"\"ready\n")
        self.read_until("is-ready")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, text, seconds=30):
        end = time.monotonic() + seconds
        while text not in self.seen:
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                raise Failed(f"the shell did not print {text!r}, but {self.seen!r}")
            self.seen += os.read(self.terminal, 4096).decode(errors="replace")
        found, self.seen = self.seen, ""
        return found

    def close(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.terminal)


def try_completion(cluster, command, setup):
    begin(cluster)
    with tempfile.TemporaryDirectory() as directory:
        cluster.apply(trainjob("completed-by-name", suspend=True), jobset("of-another-kind", suspend=True))
        run("kubectl", "config", "set-context", "--current", f"--namespace={cluster.namespace}")
        shell = Shell(command, setup, directory)
        try:
            for typed, printed in (("trainer vers\t\n", "trainer 0."),
                                   ("trainer version --outp\t js\t\n", '"version"'),
                                   ("trainer suspend comp\t\n", "completed-by-name: was already suspended"),
                                   ("trainer suspend jobset/of\t\n", "of-another-kind: was already suspended"),
                                   ("trainer wait completed-by-name --timeout 0 --for sus\t\n", "completed-by-name: Suspended"),
                                   ("trainer render -f " + str(ROOT / "docs/examples/torch-d") + "\t\n", "kind: JobSet")):
                shell.send(typed)
                shell.read_until(printed)
        finally:
            shell.close()
            run("kubectl", "config", "set-context", "--current", "--namespace=default")


def test_completion_in_bash(cluster):
    try_completion(cluster, ["bash", "--norc", "-i"], "source <(trainer completion bash)")


def test_completion_in_zsh(cluster):
    if shutil.which("zsh") is None:
        raise Skipped("this machine has no zsh (package zsh)")
    try_completion(cluster, ["zsh", "-f", "-i"],
                   "unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -u -D; source <(trainer completion zsh)")


def test_the_controller_ends(_):
    the_controller().stop()


if __name__ == "__main__":
    harness.main(__file__)
