#!/usr/bin/python3
"""The official Python SDK, unmodified, as its users call it (see frameworks). It is installed from PyPI into the user's cache."""
import ast
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
import blueprints  # noqa: E402
import harness  # noqa: E402
from harness import ROOT, run, wait_until  # noqa: E402

harness.use_sdk()
from kubeflow.common.types import KubernetesBackendConfig  # noqa: E402
from kubeflow.trainer import CustomTrainer, CustomTrainerContainer, TrainerClient  # noqa: E402
from kubeflow.trainer.options import ActiveDeadlineSeconds, Name, TrainerArgs, TrainerCommand  # noqa: E402

GROUP = "trainer.kubeflow.org/v1alpha1"
RUNTIME = "local-torch"


def client_of(cluster):
    """A client for the test's namespace, in which there is a runtime whose image the test bed has."""
    node = {"name": "node", "image": "localhost/torch:1"}
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    cluster.apply({
        "apiVersion": GROUP, "kind": "TrainingRuntime",
        "metadata": {"name": RUNTIME, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": [
            {"name": "node", "template": {"metadata": {"labels": labels}, "spec": {"backoffLimit": 0, "template": {
                "spec": {"restartPolicy": "Never", "containers": [node]}}}}}]}}}})
    return TrainerClient(KubernetesBackendConfig(namespace=cluster.namespace))


def train(client, name, trainer, *options):
    return client.train(runtime=client.get_runtime(RUNTIME), trainer=trainer, options=[Name(name), *options])


def ends(client, name, status):
    return client.wait_for_job_status(name, {status}, timeout=150, polling_interval=1)


def hello(word="nothing"):
    import os
    print("node", os.environ["PET_NODE_RANK"], "rank", os.environ["RANK"], "says", word)


def test_smoke(cluster):
    """First, because it takes longest: smoke.py, with the shipped blueprints for PyTorch and for MPI."""
    blueprints.mpi_runtime(cluster, "deepspeed-distributed")
    config = pathlib.Path(os.environ["KUBECONFIG"]).with_name("smoke.kubeconfig")
    config.write_text(pathlib.Path(os.environ["KUBECONFIG"]).read_text())
    run("kubectl", "--kubeconfig", str(config), "config", "set-context", "--current", "--namespace", cluster.namespace)
    done = run(sys.executable, str(ROOT / "tests/e2e/smoke.py"), "torch-distributed", "deepspeed-distributed",
               env={**os.environ, "KUBECONFIG": str(config)})
    print("     " + done.stdout.strip())
    answers = ast.literal_eval(done.stdout.strip().splitlines()[-1])
    assert {key: status for key, (status, *_) in answers.items()} == {
        "fn": "Complete", "img": "Complete", "bad": "Failed", "mpi": "Complete"}, answers
    assert answers["mpi"][2] == 2, "a line of each rank: " + done.stdout


def test_runtimes(cluster):
    client = client_of(cluster)
    names = {r.name for r in client.list_runtimes()}
    shipped = set(run(harness.TRAINER, "blueprints", "--list").stdout.split())
    assert RUNTIME in names and "torch-distributed" in names, names
    assert {n for n in names if n in shipped} >= {"jax-distributed", "deepspeed-distributed", "torchtune-llama3.2-1b"}, names
    runtime = client.get_runtime("torch-distributed")
    assert runtime.trainer.command[0] == "bash" and runtime.trainer.num_nodes == 1, runtime


def test_a_function_on_two_nodes(cluster):
    client = client_of(cluster)
    name = train(client, "function", CustomTrainer(func=hello, func_args={"word": "it's $HOME"}, num_nodes=2,
                                                   resources_per_node={"cpu": "1"}))
    job = ends(client, name, "Complete")
    assert sorted(s.name for s in job.steps) == ["node-0", "node-1"], job
    assert job.num_nodes == 2, job
    for node in range(2):
        logs = "\n".join(client.get_job_logs(name, step=f"node-{node}"))
        assert f"node {node} rank {node} says" in logs, logs
    assert name in {j.name for j in client.list_jobs()}
    client.delete_job(name)
    wait_until("nothing is left", lambda: not cluster.list("trainjobs,jobsets,jobs,pods"))


def test_a_failing_container(cluster):
    client = client_of(cluster)
    name = train(client, "bad", CustomTrainerContainer(image="localhost/torch:1", num_nodes=1),
                 TrainerCommand(["bash", "-c", "echo no such file; exit 3"]), ActiveDeadlineSeconds(120))
    job = ends(client, name, "Failed")
    assert job.status == "Failed", job
    assert "no such file" in "\n".join(client.get_job_logs(name))
    wait_until("an event says why", lambda: any("exit code 3" in e.message for e in client.get_job_events(name)))


def test_trl(cluster):
    """The shipped blueprint starts trl.scripts.sft by torchrun on all nodes; a script in its place says what it got."""
    sft = ("import os, sys, torch.distributed as dist\n"
           "dist.init_process_group('gloo')\n"
           "print('rank', dist.get_rank(), 'of', dist.get_world_size(), 'tunes', *sys.argv[1:])\n")
    blueprint = json.loads(run("kubectl", "get", "clustertrainingruntime", "trl", "-o", "json").stdout)
    pod = blueprint["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["volumes"].append({"name": "trl", "configMap": {"name": "trl"}})
    node, = pod["containers"]
    node["volumeMounts"].append({"name": "trl", "mountPath": "/stand-in/trl/scripts"})
    node["env"].append({"name": "PYTHONPATH", "value": "/stand-in"})
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "trl"}, "data": {"sft.py": sft}},
                  {"apiVersion": GROUP, "kind": "TrainingRuntime", "spec": blueprint["spec"],
                   "metadata": {"name": "local-trl", "labels": blueprint["metadata"]["labels"]}})
    client = client_of(cluster)
    runtime = client.get_runtime("local-trl")
    assert runtime.trainer.framework == "trl", runtime
    name = client.train(runtime=runtime, trainer=CustomTrainerContainer(image="localhost/torch:1", num_nodes=2),
                        options=[Name("tuned"), TrainerArgs(["--model_name_or_path", "m", "--dataset_name", "d"])])
    assert ends(client, name, "Complete").num_nodes == 2
    for rank in range(2):
        logs = "\n".join(client.get_job_logs(name, step=f"node-{rank}"))
        assert f"rank {rank} of 2 tunes --model_name_or_path m --dataset_name d" in logs, logs


def test_an_impossible_request_is_explained_by_an_event(cluster):
    client = client_of(cluster)
    name = train(client, "greedy", CustomTrainer(func=hello, num_nodes=1, resources_per_node={"gpu": 8}))
    wait_until("an event about the GPUs", lambda: any(
        e.involved_object_kind == "TrainJob" and "nvidia.com/gpu" in e.message for e in client.get_job_events(name)))
    assert client.get_job(name).status == "Created", client.get_job(name)


def test_suspended_at_birth_and_its_runtime_deleted(cluster):
    """The SDK cannot suspend; Kueue does it to its jobs. A job outlives its runtime, for the SDK once that is back."""
    client = client_of(cluster)
    cluster.apply({"apiVersion": GROUP, "kind": "TrainJob", "metadata": {"name": "queued"}, "spec": {
        "runtimeRef": {"name": RUNTIME, "kind": "TrainingRuntime"}, "suspend": True,
        "trainer": {"numNodes": 1, "command": ["echo", "at last"]}}})
    wait_until("it is Suspended", lambda: cluster.condition("trainjob", "queued", "Suspended"))
    assert client.get_job("queued").status == "Created" and not client.get_job("queued").steps
    assert not list(client.get_job_logs("queued"))
    cluster.kubectl("delete", "trainingruntime", RUNTIME, "--timeout=10s")
    cluster.kubectl("patch", "trainjob", "queued", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    wait_until("it completes without its runtime", lambda: cluster.condition("trainjob", "queued", "Complete"), seconds=60)
    client = client_of(cluster)
    assert client.get_job("queued").status == "Complete"
    assert list(client.get_job_logs("queued")) == ["at last"]


def test_a_restarted_job(cluster):
    """The steps are those of the attempt that runs, and so are the logs."""
    client = client_of(cluster)
    cluster.kubectl("patch", "trainingruntime", RUNTIME, "--type=merge", "-p",
                    '{"spec": {"template": {"spec": {"failurePolicy": {"maxRestarts": 1}}}}}')
    attempt = "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"
    cluster.kubectl("patch", "trainingruntime", RUNTIME, "--type=json", "-p", json.dumps([
        {"op": "add", "path": "/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0/env",
         "value": [{"name": "ATTEMPT", "valueFrom": {"fieldRef": {"fieldPath": attempt}}}]}]))
    name = train(client, "again", CustomTrainerContainer(image="localhost/torch:1", num_nodes=2),
                 TrainerCommand(["bash", "-c", "echo attempt $ATTEMPT; [ $ATTEMPT = 1 ]"]))
    job = ends(client, name, "Complete")
    assert sorted(s.name for s in job.steps) == ["node-0", "node-1"], job
    assert {s.status for s in job.steps} == {"Succeeded"}, job
    for step in ("node-0", "node-1"):
        assert list(client.get_job_logs(name, step=step)) == ["attempt 1"], step


if __name__ == "__main__":
    harness.main(__file__, parallel=2)
