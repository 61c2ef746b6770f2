#!/usr/bin/python3
"""Frameworks in real pods: MPI over ssh, initializers, JAX and XGBoost (see frameworks).

The pods' image is the test bed's PyTorch image; the libraries of JAX and XGBoost come from PyPI into the user's cache, and
into the pods through a volume of the host, which is also where an initializer puts what its trainer reads.
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
import harness  # noqa: E402
from harness import ROOT, TRAINER, Failed, run, wait_until  # noqa: E402

GROUP = "trainer.kubeflow.org/v1alpha1"
IMAGE = "localhost/torch:1"
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def container(name="node", **fields):
    return {"name": name, "image": IMAGE, **fields}


def replicated_job(name, step, containers, depends_on=None, **pod):
    labels = {"labels": {STEP: step}} if step else {}
    job = {"name": name, "template": {"metadata": labels, "spec": {"backoffLimit": 0, "template": {"spec": {
        "restartPolicy": "Never", "containers": containers, **pod}}}}}
    if depends_on:
        job["dependsOn"] = [depends_on]
    return job


def runtime(name, policy, *jobs, **template):
    return {"apiVersion": GROUP, "kind": "TrainingRuntime",
            "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": name}},
            "spec": {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": list(jobs), **template}}}}


def trainjob(name, runtime_name, **spec):
    return {"apiVersion": GROUP, "kind": "TrainJob", "metadata": {"name": name},
            "spec": {"runtimeRef": {"name": runtime_name, "kind": "TrainingRuntime"}, **spec}}


def completes(cluster, name, seconds=90):
    """Waits for the end of a job, which must be a good one, and returns all it has printed."""
    def ended():
        if cluster.condition("trainjob", name, "Failed"):
            raise Failed(run(TRAINER, "why", "-n", cluster.namespace, name, check=False).stdout)
        return cluster.condition("trainjob", name, "Complete")

    try:
        wait_until(f"{name} is Complete", ended, seconds=seconds)
    except Failed as late:
        raise Failed(f"{late}\n{run(TRAINER, 'why', '-n', cluster.namespace, name, check=False).stdout}")
    return run(TRAINER, "logs", "-n", cluster.namespace, name).stdout


# ---- MPI

# A machine of its own: host keys, no question about those of others, and StrictModes off because the directory of a
# Secret is writable for its group.
SSHD = "mkdir -p /run/sshd && ssh-keygen -A >/dev/null && exec /usr/sbin/sshd -De -o StrictModes=no"
TRUST = "echo 'StrictHostKeyChecking accept-new' > /etc/ssh/ssh_config.d/trust.conf"
# DNS learns a pod's name a moment after its start, and mpirun asks for its own.
RESOLVES = "for host in $(cut -d' ' -f1 /etc/mpi/hostfile); do until getent hosts $host >/dev/null; do sleep 0.2; done; done"


def mpi_runtime(name, launcher_is_node):
    sshd = container(command=["bash", "-c", SSHD], readinessProbe={"tcpSocket": {"port": 22}, "periodSeconds": 1})
    policy = {"numNodes": 1, "mpi": {"mpiImplementation": "OpenMPI", "sshAuthMountPath": "/root/.ssh",
                                     "runLauncherAsNode": launcher_is_node}}
    return runtime(name, policy,
                   replicated_job("node", None, [sshd]),
                   replicated_job("launcher", "trainer", [container()],
                                  {"name": "node", "status": "Ready"}),
                   successPolicy={"operator": "All", "targetReplicatedJobs": ["launcher"]})


def mpi_job(name, nodes):
    script = TRUST + "; " + RESOLVES + "; mpirun --allow-run-as-root bash -c 'echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(hostname)'"
    return trainjob(name, name, trainer={"numNodes": nodes, "command": ["bash", "-c"], "args": [script]})


def ranks(logs):
    """The host of each rank, of what mpi_job prints."""
    found = {}
    for line in logs.splitlines():
        words = line.split()
        if "rank" in words and "on" in words:
            at = words.index("rank")
            assert words[at + 3] == "3", line
            found[int(words[at + 1])] = words[-1]
    return found


def test_mpi_launcher_is_a_node(cluster):
    cluster.apply(mpi_runtime("trio", True))
    cluster.apply(mpi_job("trio", 3))
    found = ranks(completes(cluster, "trio"))
    assert sorted(found) == [0, 1, 2], found
    assert sorted(found.values()) == ["trio-launcher-0-0", "trio-node-0-0", "trio-node-0-1"], found


def test_mpi_pure_launcher(cluster):
    cluster.apply(mpi_runtime("crew", False))
    cluster.apply(mpi_job("crew", 3))
    found = ranks(completes(cluster, "crew"))
    assert sorted(found) == [0, 1, 2], found
    assert sorted(found.values()) == ["crew-node-0-0", "crew-node-0-1", "crew-node-0-2"], found


# ---- initializers

def test_initializer_writes_what_the_trainer_reads(cluster):
    volume = {"volumes": [{"name": "initializer", "hostPath": {"path": f"/var/tmp/{cluster.namespace}", "type": "DirectoryOrCreate"}}]}
    mount = [{"name": "initializer", "mountPath": "/workspace"}]
    write = "echo \"from $STORAGE_URI as $LABEL\" > /workspace/data.txt"
    cluster.apply(runtime(
        "fetches", {"numNodes": 1, "torch": {}},
        replicated_job("dataset-initializer", "dataset-initializer",
                       [container("dataset-initializer", command=["bash", "-c", write], volumeMounts=mount)], **volume),
        replicated_job("node", "trainer", [container(volumeMounts=mount)],
                       {"name": "dataset-initializer", "status": "Complete"}, **volume)))
    cluster.apply(trainjob(
        "fetches", "fetches",
        initializer={"dataset": {"storageUri": "hf://org/numbers", "env": [{"name": "LABEL", "value": "seven"}]}},
        trainer={"numNodes": 2, "command": ["bash", "-c", "echo $PET_NODE_RANK read: $(cat /workspace/data.txt)"]}))
    try:
        logs = completes(cluster, "fetches")
    finally:
        run("rm", "-rf", f"/var/tmp/{cluster.namespace}")
    for rank in range(2):
        assert f"{rank} read: from hf://org/numbers as seven" in logs, logs


# ---- JAX and XGBoost

def library_runtime(name, policy, package):
    """One Job whose Python finds a package of PyPI, installed on the host beforehand (Debian 12's Python is the pods', too)."""
    python = pathlib.Path(run(str(ROOT / "tools/python-tool"), package, "python").stdout.strip())
    packages = next((python.parents[1] / "lib").glob("python3.*")) / "site-packages"
    node = container(env=[{"name": "PYTHONPATH", "value": "/packages"}, {"name": "PYTHONUNBUFFERED", "value": "1"}],
                     volumeMounts=[{"name": "packages", "mountPath": "/packages", "readOnly": True}])
    return runtime(name, {"numNodes": 1, **policy}, replicated_job(
        "node", "trainer", [node], volumes=[{"name": "packages", "hostPath": {"path": str(packages), "type": "Directory"}}]))


JAX = """
import os, jax, jax.numpy as jnp
from jax.experimental import multihost_utils
jax.distributed.initialize(os.environ["JAX_COORDINATOR_ADDRESS"], int(os.environ["JAX_NUM_PROCESSES"]), int(os.environ["JAX_PROCESS_ID"]))
everyone = multihost_utils.process_allgather(jnp.array([jax.process_index() + 1]))
print("process", jax.process_index(), "of", jax.process_count(), "sees", int(everyone.sum()))
"""


def test_jax(cluster):
    cluster.apply(library_runtime("jax", {"jax": {}}, "jax==0.6.2"))
    cluster.apply(trainjob("jax", "jax", trainer={"numNodes": 2, "command": ["python3", "-c", JAX]}))
    logs = completes(cluster, "jax")
    for process in range(2):
        assert f"process {process} of 2 sees 3" in logs, logs


XGBOOST = """
import os, threading, numpy, xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker
rank, workers = int(os.environ["DMLC_TASK_ID"]), int(os.environ["DMLC_NUM_WORKER"])
if rank == 0:
    tracker = RabitTracker(host_ip="0.0.0.0", n_workers=workers, port=int(os.environ["DMLC_TRACKER_PORT"]))
    tracker.start()
    waiting = threading.Thread(target=tracker.wait_for, daemon=True)
    waiting.start()
with collective.CommunicatorContext(dmlc_tracker_uri=os.environ["DMLC_TRACKER_URI"],
                                    dmlc_tracker_port=int(os.environ["DMLC_TRACKER_PORT"]), dmlc_task_id=str(rank), dmlc_retry=20):
    total = collective.allreduce(numpy.array([rank + 1.0]), collective.Op.SUM)
    x = numpy.random.RandomState(rank).rand(200, 1)
    model = xgboost.train({"objective": "reg:squarederror", "nthread": 1}, xgboost.DMatrix(x, 3 * x[:, 0]), num_boost_round=20)
    print("worker", rank, "of", collective.get_world_size(), "sum", total[0], "trees", model.num_boosted_rounds())
if rank == 0:
    waiting.join(30)
"""


def test_xgboost(cluster):
    cluster.apply(library_runtime("xgboost", {"xgboost": {}}, "xgboost-cpu==3.0.5"))
    cluster.apply(trainjob("xgboost", "xgboost", trainer={"numNodes": 2, "command": ["python3", "-c", XGBOOST]}))
    logs = completes(cluster, "xgboost")
    for worker in range(2):
        assert f"worker {worker} of 2 sum 3.0 trees 20" in logs, logs


# ---- what a user sees of a job that cannot start

def test_why_and_logs_of_a_job_that_waits(cluster):
    cluster.apply(runtime("plain", {"numNodes": 1, "torch": {}}, replicated_job("node", "trainer", [container()])))
    cluster.apply(trainjob("greedy", "plain", trainer={
        "command": ["true"], "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}))
    wait_until("the status says why", lambda: "nvidia.com/gpu" in json.dumps(cluster.get("trainjob", "greedy").get("status", {})))
    why = run(TRAINER, "why", "-n", cluster.namespace, "greedy", check=False).stdout
    assert "nvidia.com/gpu" in why, why
    events = [e for e in cluster.list("events") if e["involvedObject"]["kind"] == "TrainJob"]
    assert any("nvidia.com/gpu" in e["message"] for e in events), events


if __name__ == "__main__":
    harness.main(__file__)
