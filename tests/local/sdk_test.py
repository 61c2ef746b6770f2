#!/usr/bin/python3
"""The official Python SDK, unmodified, on local mode. It is installed from PyPI into the user's cache."""
import importlib.util
import os
import shutil
import subprocess
import sys

import bed

if importlib.util.find_spec("kubeflow") is None:
    python = subprocess.check_output([bed.ROOT / "tools/python-tool", "kubeflow==0.5.0", "python"], text=True).strip()
    shutil.rmtree(bed.FOLDER, ignore_errors=True)   # execv runs no handlers of atexit
    os.execv(python, [python, *sys.argv])

from kubeflow.trainer import CustomTrainer, CustomTrainerContainer, TrainerClient  # noqa: E402
from kubeflow.trainer.options import Name, TrainerCommand  # noqa: E402
from kubernetes.config import kube_config  # noqa: E402

sys.path.insert(0, str(bed.ROOT / "tests/manifests"))
import pages  # noqa: E402


def client_of(local):
    """A client as a user makes it who has called `eval "$(trainer local env)"`."""
    local.env["PATH"] = bed.torch() + ":" + local.env["PATH"]
    local.up()
    os.environ["KUBECONFIG"] = str(local.state / "kubeconfig")
    # The library has read the variable when it was imported.
    kube_config.KUBE_CONFIG_DEFAULT_LOCATION = os.environ["KUBECONFIG"]
    return TrainerClient()


def train(client, name, trainer, *options):
    return client.train(runtime=client.get_runtime("torch-distributed"), trainer=trainer, options=[Name(name), *options])


def hello(word="nothing"):
    import torch.distributed as dist
    dist.init_process_group("gloo")
    print("rank", dist.get_rank(), "of", dist.get_world_size(), "says", word)
    dist.barrier()


def test_runtimes(local):
    client = client_of(local)
    names = {runtime.name for runtime in client.list_runtimes()}
    assert {"torch-distributed", "jax-distributed", "deepspeed-distributed", "torchtune-llama3.2-1b"} <= names, names
    assert client.get_runtime("torch-distributed").trainer.framework == "torch"


def wait_for_event(client, job, words):
    """Events come after the status that they explain."""
    bed.wait_until(f"an event of {job} says: {words}", lambda: any(words in event.message for event in client.get_job_events(job)))


def test_a_function_on_two_nodes(local):
    client = client_of(local)
    name = train(client, "function", CustomTrainer(func=hello, func_args={"word": "it's so"}, num_nodes=2,
                                                   resources_per_node={"cpu": "100m"}))
    assert name in {job.name for job in client.list_jobs()}
    job = client.wait_for_job_status(name, timeout=60, polling_interval=1)
    assert [(step.name, step.status) for step in job.steps] == [("node-0", "Succeeded"), ("node-1", "Succeeded")], job
    said = {line for step in job.steps for line in client.get_job_logs(name, step=step.name)}
    assert {f"rank {rank} of 2 says it's so" for rank in range(2)} <= said, said
    wait_for_event(client, name, "jobset completed successfully")
    client.delete_job(name)
    bed.wait_until("nothing is left", lambda: not client.list_jobs() and not local.pods())


def test_the_page_for_users(local):
    """The program of docs/users/python-sdk.md prints what both ranks have said."""
    client_of(local)
    with pages.folder_of(bed.ROOT / "docs/users/python-sdk.md") as (folder, _):
        done = subprocess.run([sys.executable, "hello.py"], cwd=folder, env={**os.environ, "KUBECONFIG": str(local.state / "kubeconfig")}, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    said = done.stdout.splitlines()
    assert done.returncode == 0 and "hello Complete" in said, done.stdout
    assert {f"[node-{rank}] rank {rank} of 2 says hello" for rank in range(2)} <= set(said), done.stdout


def test_a_failing_command(local):
    client = client_of(local)
    train(client, "bad", CustomTrainerContainer(image="none", num_nodes=1), TrainerCommand(["sh", "-c", "echo no such file; exit 3"]))
    assert client.wait_for_job_status("bad", {"Failed"}, timeout=30, polling_interval=1).status == "Failed"
    assert list(client.get_job_logs("bad")) == ["no such file"]
    wait_for_event(client, "bad", "exit code 3")


def test_logs_are_followed(local):
    client = client_of(local)
    gate = local.scratch / "gate"
    script = f"echo one; while [ ! -e {gate} ]; do sleep 0.1; done; echo two"
    train(client, "slow", CustomTrainerContainer(image="none", num_nodes=1), TrainerCommand(["sh", "-c", script]))
    client.wait_for_job_status("slow", {"Running"}, timeout=30, polling_interval=1)
    lines = client.get_job_logs("slow", follow=True)
    assert next(lines) == "one"
    gate.touch()
    assert list(lines) == ["two"]


if __name__ == "__main__":
    bed.main()
