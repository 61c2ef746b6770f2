#!/usr/bin/python3
"""Frameworks in real pods: MPI over ssh, initializers, PyTorch, JAX and XGBoost (see frameworks).

The pods' image is the test bed's PyTorch image; the libraries of JAX and XGBoost come from PyPI into the user's cache, and
into the pods through a volume of the host, which is also where an initializer puts what its trainer reads.
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
import blueprints  # noqa: E402
import harness  # noqa: E402
from harness import ROOT, TRAINER, Failed, run, wait_until  # noqa: E402

GROUP = "trainer.kubeflow.org/v1alpha1"
IMAGE = blueprints.IMAGE
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def container(name="node", **fields):
    return {"name": name, "image": IMAGE, **fields}


def replicated_job(name, step, containers, depends_on=None, **pod):
    labels = {"labels": {STEP: step}} if step else {}
    job = {"name": name, "template": {"metadata": labels, "spec": {"backoffLimit": 0, "template": {"spec": {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": containers, **pod}}}}}
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


def completes(cluster, name, seconds=150):
    """Waits for the end of a job, which must be a good one, and returns all it has printed, and what could not be read.

    A pod that still runs when its job is Complete may be deleted while its log is read."""
    def ended():
        if cluster.condition("trainjob", name, "Failed"):
            raise Failed(cluster.why(name))
        return cluster.condition("trainjob", name, "Complete")

    try:
        wait_until(f"{name} is Complete", ended, seconds=seconds)
    except Failed as late:
        raise Failed(f"{late}\n{run(TRAINER, 'why', '-n', cluster.namespace, name, check=False).stdout}")
    logs = run(TRAINER, "logs", "-n", cluster.namespace, name, check=False)
    return logs.stdout + logs.stderr


# ---- MPI

# A machine of its own: host keys, and StrictModes off because the directory of a Secret is writable for its group.
# The last worker's sshd is slow.
SSHD = ("[ $JOB_COMPLETION_INDEX = 0 ] || sleep 3; "
        "mkdir -p /run/sshd && ssh-keygen -A >/dev/null && exec /usr/sbin/sshd -De -o StrictModes=no")
TRUST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "trust"},
         "data": {"trust.conf": "StrictHostKeyChecking accept-new\n"}}


def mpi_runtime(name, launcher_is_node, implementation="OpenMPI", labelled="launcher", tools=None, env=(), **launcher_pod):
    mounts, volumes = ([{"name": "tools", "mountPath": tools}], [{"name": "tools", "hostPath": {"path": tools}}]) if tools else ([], [])
    sshd = container(command=["bash", "-c", SSHD], readinessProbe={"tcpSocket": {"port": 22}, "periodSeconds": 1}, volumeMounts=mounts)
    launcher = container(env=[*env], volumeMounts=[{"name": "trust", "mountPath": "/etc/ssh/ssh_config.d"}, *mounts])
    policy = {"numNodes": 1, "mpi": {"mpiImplementation": implementation, "sshAuthMountPath": "/root/.ssh",
                                     "runLauncherAsNode": launcher_is_node}}
    return runtime(name, policy,
                   replicated_job("node", "trainer" if labelled == "node" else None, [sshd], volumes=volumes),
                   replicated_job("launcher", "trainer" if labelled == "launcher" else None, [launcher], {"name": "node", "status": "Ready"},
                                  volumes=[{"name": "trust", "configMap": {"name": "trust"}}, *volumes], **launcher_pod),
                   successPolicy={"operator": "All", "targetReplicatedJobs": ["launcher"]})


# Nothing comes before mpirun, which must know its hosts at once.
HELLO = ["mpirun", "--allow-run-as-root", "bash", "-c",
         "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(hostname) as $(id -u)"]


def mpi_job(name):
    return trainjob(name, name, trainer={"numNodes": 3, "command": HELLO})


def ranks(cluster, name, user="0"):
    """Waits for the end of an mpi_job and answers the host of each rank. Its launcher must have started once."""
    found = {}
    for line in completes(cluster, name).splitlines():
        if " rank " in line:
            _, _, rank, _, size, _, host, _, uid = line.split()
            assert size == "3" and uid == user, line
            found[int(rank)] = host
    launcher = cluster.get("job", f"{name}-launcher-0")["status"]
    assert launcher.get("succeeded") == 1 and not launcher.get("failed"), launcher
    assert sorted(found) == [0, 1, 2], found
    return sorted(found.values())


def test_mpi_launcher_is_a_node(cluster):
    cluster.apply(TRUST, mpi_runtime("trio", True), mpi_job("trio"))
    assert ranks(cluster, "trio") == ["trio-launcher-0-0", "trio-node-0-0", "trio-node-0-1"]


def test_mpi_pure_launcher(cluster):
    cluster.apply(TRUST, mpi_runtime("crew", False), mpi_job("crew"))
    assert ranks(cluster, "crew") == ["crew-node-0-0", "crew-node-0-1", "crew-node-0-2"]


def test_mpi_as_an_ordinary_user(cluster):
    """The shipped blueprint: user 1000 runs sshd on port 2222, and the keys belong to root."""
    name = "deepspeed-distributed"
    blueprints.mpi_runtime(cluster, name)
    cluster.apply(mpi_job(name))
    assert ranks(cluster, name, "1000") == [f"{name}-launcher-0-0", f"{name}-node-0-0", f"{name}-node-0-1"]


# Values with the characters that lists of variables are made of, and one that only the kubelet knows.
TOKEN = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"key": "c2VjcmV0=="}}
VARIABLES = [{"name": "PLAIN", "value": "two words"}, {"name": "FLAGS", "value": "--a=1 --b=2"}, {"name": "PARTS", "value": "x;y"},
             {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "key"}}}]
SHOW = "echo variables on $(hostname): [$PLAIN] [$FLAGS] [$PARTS] [$TOKEN]"
SHOWN = "[two words] [--a=1 --b=2] [x;y] [c2VjcmV0==]"


def variables_reach_the_ranks(cluster, name, mpirun, hosts):
    cluster.apply(trainjob(name, name, trainer={"numNodes": 2, "env": VARIABLES, "command": [*mpirun, "bash", "-c", SHOW]}))
    logs = completes(cluster, name)
    assert sorted(line.partition(" variables on ")[2] for line in logs.splitlines() if " variables on " in line) == \
        [f"{name}-{host}: {SHOWN}" for host in hosts], logs


def test_mpi_variables_reach_other_nodes(cluster):
    cluster.apply(TRUST, TOKEN, mpi_runtime("both", True), mpi_runtime("workers", False), mpi_runtime("sshd", True, labelled="node"))
    mpirun = ["mpirun", "--allow-run-as-root"]
    variables_reach_the_ranks(cluster, "both", mpirun, ["launcher-0-0", "node-0-0"])
    variables_reach_the_ranks(cluster, "workers", mpirun, ["node-0-0", "node-0-1"])
    variables_reach_the_ranks(cluster, "sshd", mpirun, ["launcher-0-0", "node-0-0"])


def test_mpi_variables_beside_options_of_mpirun(cluster):
    """OpenMPI 4 ends with an error where -x meets a list, so none is there."""
    cluster.apply(TRUST, mpi_runtime("own", False))
    job = trainjob("own", "own", trainer={"numNodes": 2, "env": VARIABLES[:2], "command": [
        "bash", "-c", f"mpirun --allow-run-as-root -x PLAIN bash -c '{SHOW}'"]})
    warning = run("kubectl", "-n", cluster.namespace, "apply", "-f", "-", text=json.dumps(job)).stderr
    assert "spec.trainer.env: FLAGS: not passed" in warning and "add -x NAME" in warning, warning
    logs = completes(cluster, "own")
    for host in ("node-0-0", "node-0-1"):
        assert f"variables on own-{host}: [two words] [] [] []" in logs, logs


def test_hydra_passes_variables(cluster):
    """Intel's mpiexec sends the other nodes the host name of its pod, which they cannot resolve, or the address of a network interface."""
    for name, package, is_node, hosts, env in (
            ("MPICH", "mpich==5.0.2", True, ["launcher-0-0", "node-0-0"], []),
            ("Intel", "impi-rt==2021.18.1", False, ["node-0-0", "node-0-1"], [{"name": "I_MPI_HYDRA_IFACE", "value": "eth0"}])):
        tools = pathlib.Path(run(str(ROOT / "tools/python-tool"), package, "python").stdout.strip()).parents[1]
        cluster.apply(TRUST, TOKEN, mpi_runtime(name.lower(), is_node, name, tools=str(tools), env=env))
        variables_reach_the_ranks(cluster, name.lower(), [f"{tools}/bin/mpiexec"], hosts)


def test_mpi_with_slow_dns(cluster):
    """DNS learns of pods from a controller; while that one sleeps, the launcher runs without a name."""
    cluster.apply(TRUST, mpi_runtime("slow", True, schedulingGates=[{"name": "example.com/hold"}]), mpi_job("slow"))
    is_launcher = ("-l", "jobset.sigs.k8s.io/replicatedjob-name=launcher")
    launcher, = wait_until("there is a launcher", lambda: cluster.list("pods", *is_launcher), seconds=150)
    with asleep("controllers"):
        cluster.kubectl("patch", "pod", launcher["metadata"]["name"], "--type=json", "-p", '[{"op": "remove", "path": "/spec/schedulingGates"}]')

        def waits():
            launcher, = cluster.list("pods", *is_launcher)
            started = launcher["status"].get("initContainerStatuses", [{}])[0].get("state", {})
            assert "terminated" not in started, launcher["status"]
            return "running" in started

        wait_until("the launcher waits for its name", waits)
    assert ranks(cluster, "slow") == ["slow-launcher-0-0", "slow-node-0-0", "slow-node-0-1"]


@contextlib.contextmanager
def asleep(component):
    """Stops a process of the test bed for as long as it lasts."""
    process = int(pathlib.Path(os.environ["KUBECONFIG"]).with_name(component + ".pid").read_text().split()[0])
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


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


# ---- PyTorch

# A script that trains alone where the environment has no other processes.
TRAIN = """
import os, torch, torch.distributed as dist
rank, world, total = 0, 1, torch.tensor([float(os.environ.get("RANK", 0)) + 1])
if "RANK" in os.environ:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    dist.all_reduce(total)
print(f"rank {rank} of {world} sums {total.item():.0f}")
"""
LAUNCHER = "trainer.kubeflow.org/torch-launcher"


def script_runtime(name, **torch):
    node = container(volumeMounts=[{"name": "script", "mountPath": "/script"}])
    return runtime(name, {"numNodes": 1, "torch": torch}, replicated_job(
        "node", "trainer", [node], volumes=[{"name": "script", "configMap": {"name": "script"}}]))


def script_job(name, runtime_name, **annotations):
    job = trainjob(name, runtime_name, trainer={"numNodes": 2, "command": ["python3", "/script/train.py"]})
    job["metadata"].update(annotations)
    return job


def warned(cluster, job):
    """Applies a job and returns what kubectl says on standard error."""
    return run("kubectl", "-n", cluster.namespace, "apply", "-f", "-", text=json.dumps(job)).stderr


def test_a_plain_script_on_two_nodes(cluster):
    """Two trainings and a warning; with either launcher one training of all processes, and no warning."""
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "script"}, "data": {"train.py": TRAIN}},
                  script_runtime("plain"), script_runtime("pairs", launcher="torchrun", numProcPerNode=2))
    jobs = ((script_job("by-torchrun", "pairs"), 4), (script_job("by-itself", "plain", annotations={LAUNCHER: "env"}), 2))
    for job, _ in jobs:
        assert "Warning" not in warned(cluster, job)
    warning = warned(cluster, script_job("alone", "plain"))
    assert f"each of the 2 nodes runs a training of its own; annotate the TrainJob with {LAUNCHER}: torchrun" in warning, warning
    assert completes(cluster, "alone").count("rank 0 of 1 sums 1") == 2

    for job, ranks in jobs:
        logs = completes(cluster, job["metadata"]["name"])
        for rank in range(ranks):
            assert f"rank {rank} of {ranks} sums {ranks * (ranks + 1) // 2}" in logs, logs


def test_metadata_of_v2_1_reaches_the_pods(cluster):
    cluster.apply(runtime("plain", {"numNodes": 1, "torch": {}}, replicated_job("node", "trainer", [container()])))
    job = trainjob("labelled", "plain", trainer={"command": ["true"]})
    job["spec"].update(labels={"team": "x"}, annotations={"sidecar.istio.io/inject": "false", "kueue.x-k8s.io/note": "y"})
    cluster.apply(job)
    pod, = wait_until("there is a pod", lambda: cluster.list("pods"), seconds=60)
    assert pod["metadata"]["labels"]["team"] == "x", pod
    assert pod["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false", pod
    assert "kueue.x-k8s.io/note" not in pod["metadata"]["annotations"], pod
    assert cluster.get("jobset", "labelled")["metadata"]["annotations"]["kueue.x-k8s.io/note"] == "y"


# ---- JAX and XGBoost

def library(package):
    """Fields of a container whose Python finds a package of PyPI, installed on the host beforehand (Debian 12's Python is the pods',
    too), and the volume it needs."""
    python = pathlib.Path(run(str(ROOT / "tools/python-tool"), package, "python").stdout.strip())
    packages = next((python.parents[1] / "lib").glob("python3.*")) / "site-packages"
    return ({"volumeMounts": [{"name": "packages", "mountPath": "/packages", "readOnly": True}],
             "env": [{"name": "PYTHONPATH", "value": "/packages"}, {"name": "PYTHONUNBUFFERED", "value": "1"}]},
            {"name": "packages", "hostPath": {"path": str(packages), "type": "Directory"}})


def library_job(name, step, package, container_name="node", depends_on=None, env=(), **fields):
    mounted, volume = library(package)
    made = container(container_name, **{**mounted, "env": [*mounted["env"], *env]}, **fields)
    return replicated_job(name, step, [made], depends_on, volumes=[volume])


def library_runtime(name, policy, package):
    return runtime(name, {"numNodes": 1, **policy}, library_job("node", "trainer", package))


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
import os, socket, threading, time, numpy, xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker
rank, workers = int(os.environ["DMLC_TASK_ID"]), int(os.environ["DMLC_NUM_WORKER"])
deadline = time.monotonic() + 60
while True:
    # XGBoost retries when nothing answers (dmlc_retry), but not when DNS does not know the name yet, as in a
    # pod's first second: a worker that starts that early waits.
    try:
        socket.getaddrinfo(os.environ["DMLC_TRACKER_URI"], None)
        break
    except socket.gaierror:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.1)
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
    try:
        logs = completes(cluster, "xgboost")
    except Failed as failed:
        # XGBoost 3.0.5 was seen to end with a segmentation fault behind its own XGCommunicatorFinalize, once in dozens of
        # runs. Why is not known; any other failure, and the same one again, counts.
        if "XGCommunicatorFinalize" not in str(failed) or "exit code 139" not in str(failed):
            raise
        print(f"again, for XGBoost crashed:\n{failed}")
        cluster.apply(trainjob("again", "xgboost", trainer={"numNodes": 2, "command": ["python3", "-c", XGBOOST]}))
        logs = completes(cluster, "again")
    for worker in range(2):
        assert f"worker {worker} of 2 sum 3.0 trees 20" in logs, logs


# ---- a dataset that the job's own pods serve

# In place of the cache: it answers the kubelet's probe as gRPC services do, and streams each client its share of ten rows.
CACHE = """
import os, grpc
from concurrent.futures import ThreadPoolExecutor
def rows(request, context):
    rank, world = map(int, request.split())
    yield f"{os.environ['STORAGE_URI']} of {os.environ['METADATA_LOC']}".encode()
    yield from (str(row).encode() for row in range(rank, 10, world))
server = grpc.server(ThreadPoolExecutor())
server.add_generic_rpc_handlers((
    grpc.method_handlers_generic_handler("grpc.health.v1.Health", {
        "Check": grpc.unary_unary_rpc_method_handler(lambda request, context: bytes([8, 1]))}),   # status: SERVING
    grpc.method_handlers_generic_handler("test.Cache", {"Rows": grpc.unary_stream_rpc_method_handler(rows)})))
assert server.add_insecure_port("0.0.0.0:50051") == 50051
server.start()
server.wait_for_termination()
"""
# Reads its share by each of the addresses that guides and notebooks dial.
READER = """
import os, grpc, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
for address in (os.environ["DATA_CACHE_ENDPOINT"], os.environ["CACHE_ENDPOINT"].removeprefix("grpc://"), "cached-cache-service:50051"):
    stream = grpc.insecure_channel(address).unary_stream("/test.Cache/Rows")
    table, *mine = stream(f"{rank} {world}".encode(), wait_for_ready=True, timeout=60)
    total = torch.tensor([float(sum(map(int, mine)))])
    dist.all_reduce(total)
    print(f"rank {rank} of {world} read {len(mine)} rows by {address}, in all {total.item():.0f}, from {table.decode()}")
"""


def test_data_cache(cluster):
    """A runtime as guides print it: neither policy nor framework, a gRPC probe, and an address that is no pod's name."""
    guide = runtime("guide", {}, library_job(
        "cache-initializer", "cache-initializer", "grpcio==1.71.0", "cache-initializer", command=["python3", "-c", CACHE],
        ports=[{"containerPort": 50051}], readinessProbe={"grpc": {"port": 50051}, "periodSeconds": 1}), library_job(
        "node", "trainer", "grpcio==1.71.0", depends_on={"name": "cache-initializer", "status": "Ready"},
        env=[{"name": "DATA_CACHE_ENDPOINT", "value": "cache-initializer-0:50051"}]))
    del guide["spec"]["mlPolicy"], guide["metadata"]["labels"]
    cluster.apply(guide, trainjob("cached", "guide", initializer={"dataset": {
        "storageUri": "cache://schema/table", "env": [{"name": "METADATA_LOC", "value": "s3a://b/metadata.json"}]}}, trainer={
            "numNodes": 2, "command": ["torchrun", "--no_python", "python3", "-c", READER], "resourcesPerNode": {"requests": {"cpu": "100m"}}}))
    logs = completes(cluster, "cached")
    for rank in range(2):
        for address in ("cached-cache-initializer-0-0.cached:50051", "cached-cache-service:50051"):
            line = f"rank {rank} of 2 read 5 rows by {address}, in all 45, from cache://schema/table of s3a://b/metadata.json"
            assert line in logs, logs
    wait_until("the cache ends with the job", lambda: not cluster.list(
        "pods", "-l", "jobset.sigs.k8s.io/replicatedjob-name=cache-initializer"), seconds=60)


# ---- what a user sees

ATTEMPT = {"name": "ATTEMPT", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"}}}
# The first attempt breaks on one node while the other would continue for ever.
BREAKS_ONCE = """
echo "node $PET_NODE_RANK attempt $ATTEMPT begins"
if [ $ATTEMPT = 0 ]; then
  [ $PET_NODE_RANK = 0 ] && exec sleep infinity
  echo "no such file: /data/train.parquet" >&2
  sleep 5   # the other has begun, too
  exit 3
fi
echo "node $PET_NODE_RANK attempt $ATTEMPT ends"
"""


def test_logs_followed_from_before_the_pods_through_a_restart(cluster):
    cluster.apply(runtime("retries", {"numNodes": 1, "torch": {}}, replicated_job("node", "trainer", [container(env=[ATTEMPT])]),
                          failurePolicy={"maxRestarts": 1}))
    job = trainjob("phoenix", "retries", trainer={"numNodes": 2, "command": ["bash", "-c", BREAKS_ONCE]})
    cluster.apply({**job, "spec": {**job["spec"], "suspend": True}})
    command = [TRAINER, "logs", "-f", "-n", cluster.namespace, "phoenix"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as follower:
        try:
            line = follower.stderr.readline()   # it has begun, and there is no pod
            assert "TrainJob" in line and not cluster.list("pods"), line
            cluster.kubectl("patch", "trainjob", "phoenix", "--type=merge", "-p", '{"spec": {"suspend": false}}')
            out, err = follower.communicate(timeout=150)
        finally:
            follower.kill()
    for node in range(2):
        assert f"[node-{node}] node {node} attempt 0 begins" in out, out + err
        assert f"[node-{node} #1] node {node} attempt 1 ends" in out, out + err
        assert out.count(f"node {node} attempt 1 begins") == 1, out + err
    assert out.count("[node-1] no such file: /data/train.parquet") == 1, out + err
    assert "[node-1] ended with exit code 3" in err, err
    assert "Complete" in err.splitlines()[-1] and follower.returncode == 0, err
    assert cluster.get("trainjob", "phoenix")["status"]["restarts"] == 1


def test_a_restart_keeps_what_is_loaded_and_the_second_failure_ends_it(cluster):
    cluster.apply(runtime(
        "loads", {"numNodes": 1, "torch": {}},
        replicated_job("dataset-initializer", "dataset-initializer", [container("dataset-initializer", command=["true"])]),
        replicated_job("node", "trainer", [container(env=[ATTEMPT])], {"name": "dataset-initializer", "status": "Complete"})))
    cluster.apply(trainjob("twice", "loads", failurePolicy={"maxRestarts": 1},
                           trainer={"numNodes": 2, "command": ["bash", "-c", "echo attempt $ATTEMPT begins; exit 3"]}))
    of_dataset = ("-l", "jobset.sigs.k8s.io/replicatedjob-name=dataset-initializer")
    loaded, = wait_until("the initializer has a pod", lambda: cluster.list("pods", *of_dataset), seconds=60)
    failed = wait_until("the job has failed", lambda: cluster.condition("trainjob", "twice", "Failed"), seconds=120)
    assert failed["reason"] == "ReachedMaxRestarts", failed
    status = cluster.get("trainjob", "twice")["status"]
    assert (status["restarts"], status["restartBudget"]) == (1, "1/1"), status
    assert [pod["metadata"]["uid"] for pod in cluster.list("pods", *of_dataset)] == [loaded["metadata"]["uid"]], "it has run again"
    nodes = cluster.list("pods", "-l", "jobset.sigs.k8s.io/replicatedjob-name=node")
    assert {pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] for pod in nodes} == {"1"}, nodes


def test_logs_followed_to_a_failure(cluster):
    """Who starts to follow when all is over sees the same, and the exit status says how it ended."""
    cluster.apply(runtime("fails", {"numNodes": 1, "torch": {}}, replicated_job("node", "trainer", [container()])))
    cluster.apply(trainjob("doomed", "fails", trainer={"numNodes": 2, "command": [
        "bash", "-c", "echo node $PET_NODE_RANK; [ $PET_NODE_RANK = 0 ] && exec sleep infinity; echo out of luck; exit 4"]}))
    command = [TRAINER, "logs", "-f", "-n", cluster.namespace, "doomed"]
    live = run(*command, check=False, timeout=150)
    assert live.returncode != 0 and "Failed" in live.stderr, live
    assert "[node-1] out of luck" in live.stdout and "[node-1] ended with exit code 4" in live.stderr, live
    late = run(*command, check=False, timeout=30)
    assert late.returncode == live.returncode and "[node-1] out of luck" in late.stdout, late


def test_why_and_logs_of_a_job_that_waits(cluster):
    cluster.apply(runtime("plain", {"numNodes": 1, "torch": {}}, replicated_job("node", "trainer", [container()])))
    cluster.apply(trainjob("greedy", "plain", trainer={
        "command": ["true"], "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}))
    wait_until("the status says why", lambda: "nvidia.com/gpu" in json.dumps(cluster.get("trainjob", "greedy").get("status", {})))
    why = cluster.why("greedy")
    assert "nvidia.com/gpu" in why, why
    wait_until("an event says it", lambda: any(
        e["involvedObject"]["kind"] == "TrainJob" and "nvidia.com/gpu" in e["message"] for e in cluster.list("events")))


if __name__ == "__main__":
    harness.main(__file__, parallel=2)
