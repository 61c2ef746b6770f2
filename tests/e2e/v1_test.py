#!/usr/bin/python3
"""V1 jobs in real pods: retries, elastic training, GPUs, and each kind with its library or a program in its place (see frameworks)."""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
import frameworks_test  # noqa: E402
import harness  # noqa: E402
import v1jobs  # noqa: E402
from harness import run, wait_until  # noqa: E402
from v1jobs import job, pods_of, python, report, shell, succeeds  # noqa: E402


def logs_of(cluster, pod):
    return run("kubectl", "-n", cluster.namespace, "logs", pod, check=False).stdout


# ---- elastic

# Trains in a group of four until one of these is new, which the others know by a file that outlives containers, not pods.
ELASTIC = """
import os, socket, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
world, mark = dist.get_world_size(), "/seen/a-group-of-four"
before = torch.tensor([float(os.path.exists(mark))])
dist.all_reduce(before)
if world == 4:
    open(mark, "w").close()
print(f"{socket.gethostname()} is in a group of {world}, {before.item():.0f} of them from before")
while not (world == 4 and 0 < before.item() < 4):
    dist.all_reduce(torch.ones(1))
    time.sleep(0.2)
"""


def lose_one(cluster, lost):
    """Deletes one of four workers: the others keep their pods, and train with the one that replaces it."""
    names = [f"elastic-worker-{i}" for i in range(4)]
    worker = {**python(""), "command": ["torchrun", "--no_python", "python3", "-uc", ELASTIC],
              "volumeMounts": [{"name": "seen", "mountPath": "/seen"}]}
    policy = {"minReplicas": 2, "maxReplicas": 4, "maxRestarts": 10, "rdzvBackend": "c10d", "rdzvId": "elastic"}
    cluster.apply(job("PyTorchJob", "elastic", {"Worker": (4, worker)}, restart_policy="OnFailure", volumes=[{"name": "seen", "emptyDir": {}}],
                      spec={"nprocPerNode": "1", "elasticPolicy": policy}))
    wait_until("four train together", lambda: all("group of 4, 0 of them" in logs_of(cluster, name) for name in names), seconds=90, every=0.5)
    before = {name: pod["metadata"]["uid"] for name, pod in pods_of(cluster, "elastic").items()}
    cluster.kubectl("delete", "pod", lost, "--wait=false")
    succeeds(cluster, "PyTorchJob", "elastic", seconds=150)
    after = {name: pod["metadata"]["uid"] for name, pod in pods_of(cluster, "elastic").items()}
    assert {name for name in names if before[name] != after.get(name)} == {lost}, (before, after)
    wait_until("all have trained with the new one", lambda: all(
        f"{name} is in a group of 4, 3 of them from before" in logs_of(cluster, name) for name in names))


def test_elastic_loses_a_worker(cluster):
    lose_one(cluster, "elastic-worker-3")


if os.environ.get("LONG"):
    def test_elastic_loses_its_first_worker(cluster):
        """Where the rendezvous is: torchrun ends in the others, too, and their containers are started again in the same pods."""
        lose_one(cluster, "elastic-worker-0")


# ---- limits, GPUs

def test_out_of_retries_keeps_the_failed_pod(cluster):
    """Its container would wait for the next restart; the kubelet ends the pod instead, so that its log stays."""
    cluster.apply(job("PyTorchJob", "retries", {"Master": (1, shell("sleep 600")), "Worker": (1, shell("echo no such file; exit 1"))},
                      {"backoffLimit": 2, "cleanPodPolicy": "Running"}, "OnFailure"))
    failed = wait_until("it has Failed", lambda: cluster.condition("pytorchjob", "retries", "Failed"), seconds=120)
    assert failed["message"] == "Job retries has failed because it has reached the specified backoff limit", failed
    wait_until("the healthy pod is gone, the other has ended", lambda: [
        (name, pod["status"]["phase"]) for name, pod in pods_of(cluster, "retries").items()] == [("retries-worker-0", "Failed")])
    pod = pods_of(cluster, "retries")["retries-worker-0"]
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 2, pod["status"]
    assert cluster.kubectl("logs", "retries-worker-0") == "no such file\n"
    assert [s["metadata"]["name"] for s in cluster.list("services")] == ["retries-worker-0"]
    first = cluster.get("pytorchjob", "retries")["status"]["firstFailure"]
    assert first["pod"] == "retries-worker-0" and first["exitCode"] == 1, first
    why = report(cluster, "why", "PyTorchJob", "retries")
    assert "Failed" in why and "exit code 1" in why, why


def test_resumed_while_its_pods_still_end(cluster):
    """Their programs ignore SIGTERM, as Python does that is process 1. Upstream's operator counts them as failures of the new run."""
    cluster.apply(job("JAXJob", "paused", {"Worker": (2, shell("trap '' TERM; until [ -e /tmp/end ]; do sleep 0.2; done"))}, restart_policy="Never",
                      terminationGracePeriodSeconds=15))
    wait_until("both run", lambda: [p["status"]["phase"] for p in pods_of(cluster, "paused").values()] == ["Running", "Running"])
    before = {pod["metadata"]["uid"] for pod in pods_of(cluster, "paused").values()}
    for is_suspended in ("true", "false"):
        cluster.kubectl("patch", "jaxjob", "paused", "--type=merge", "-p", f'{{"spec": {{"runPolicy": {{"suspend": {is_suspended}}}}}}}')
        wait_until("the pods end", lambda: all("deletionTimestamp" in pod["metadata"] for pod in pods_of(cluster, "paused").values()))
    wait_until("others run", lambda: [p["status"]["phase"] for p in pods_of(cluster, "paused").values()] == ["Running", "Running"]
               and not before & {pod["metadata"]["uid"] for pod in pods_of(cluster, "paused").values()}, seconds=90)
    assert not cluster.condition("jaxjob", "paused", "Failed")
    for name in pods_of(cluster, "paused"):
        cluster.kubectl("exec", name, "--", "touch", "/tmp/end")
    succeeds(cluster, "JAXJob", "paused")


def test_gpus_for_all_but_one(cluster):
    """Without a gang scheduler four of five pods start. The test says how many GPUs the machine has; no container uses one."""
    def advertise(count):
        run("kubectl", "patch", "node", "node1", "--subresource=status", "--type=merge", "-p",
            '{"status": {"capacity": {"nvidia.com/gpu": %s}, "allocatable": {"nvidia.com/gpu": %s}}}' % (count, count))

    def with_gpu(command):
        return {**shell(command), "resources": {"limits": {"nvidia.com/gpu": 1}}}

    advertise('"4"')
    try:
        meets_all = "for i in 0 1 2 3; do until nslookup gpus-worker-$i; do sleep 1; done; done"
        cluster.apply(job("PyTorchJob", "gpus", {"Master": (1, with_gpu(meets_all)), "Worker": (4, with_gpu("sleep 600"))},
                          {"cleanPodPolicy": "Running"}))
        why = wait_until("one finds no machine", lambda: (text := report(cluster, "why", "PyTorchJob", "gpus")) and "nvidia.com/gpu" in text and text)
        assert re.search(r"\d of 5 pods run", why), why
        advertise('"5"')
        succeeds(cluster, "PyTorchJob", "gpus")
    finally:
        advertise("null")


# ---- the other kinds

WAIT = """
import os, socket, time
def wait_for(name, seconds=60):   # a name resolves once its pod is ready
    end = time.monotonic() + seconds
    while True:
        try:
            return socket.getaddrinfo(name, None)
        except socket.gaierror:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
"""
JAX = WAIT + """
import jax, jax.numpy as jnp
from jax.experimental import multihost_utils
wait_for(os.environ["COORDINATOR_ADDRESS"])
coordinator = os.environ["COORDINATOR_ADDRESS"] + ":" + os.environ["COORDINATOR_PORT"]
jax.distributed.initialize(coordinator, int(os.environ["NUM_PROCESSES"]), int(os.environ["PROCESS_ID"]))
everyone = multihost_utils.process_allgather(jnp.array([jax.process_index() + 1]))
print("process", jax.process_index(), "of", jax.process_count(), "sees", int(everyone.sum()))
"""


def library_job(kind, name, package, program, *roles):
    mounted, volume = frameworks_test.library(package)
    return job(kind, name, {role: (1 if role == "Master" else 3 - len(roles), {**python(program), **mounted}) for role in roles},
               volumes=[volume])


def test_v1_jax(cluster):
    cluster.apply(library_job("JAXJob", "jax", "jax==0.6.2", JAX, "Worker"))
    succeeds(cluster, "JAXJob", "jax")
    for process in range(2):
        wait_until("both say so", lambda pod=f"jax-worker-{process}", line=f"process {process} of 2 sees 3": line in logs_of(cluster, pod))


# It may crash behind its own end, as frameworks_test says of 139.
XGBOOST = """
import os, subprocess, sys
own = {"DMLC_TASK_ID": "RANK", "DMLC_NUM_WORKER": "WORLD_SIZE", "DMLC_TRACKER_URI": "MASTER_ADDR", "DMLC_TRACKER_PORT": "MASTER_PORT"}
assert os.environ["WORKER_ADDRS"] == "xgboost-worker-0", os.environ["WORKER_ADDRS"]
code = subprocess.run([sys.executable, "-uc", PROGRAM], env={**os.environ, **{name: os.environ[of] for name, of in own.items()}}).returncode
sys.exit(code if code != -11 else 0)
"""


def test_v1_xgboost(cluster):
    cluster.apply(library_job("XGBoostJob", "xgboost", "xgboost-cpu==3.0.5", f"PROGRAM = {frameworks_test.XGBOOST!r}{XGBOOST}", "Master", "Worker"))
    succeeds(cluster, "XGBoostJob", "xgboost")
    for rank, pod in enumerate(("xgboost-master-0", "xgboost-worker-0")):
        wait_until("both say so", lambda pod=pod, line=f"worker {rank} of 2 sum 3.0 trees 20": line in logs_of(cluster, pod))


def test_v1_mpi(cluster):
    """mpirun reaches its workers by kubectl exec; they only sleep, and go with the launcher's end."""
    image = {"image": v1jobs.TORCH_IMAGE}
    cluster.apply(job("MPIJob", "mpi", {"Launcher": (1, {**image, "command": frameworks_test.HELLO}), "Worker": (2, image)},
                      {"cleanPodPolicy": "Running"}))
    logs = succeeds(cluster, "MPIJob", "mpi")
    for rank in range(2):
        assert f"rank {rank} of 2 on mpi-worker-{rank} as 0" in logs, logs
    wait_until("the workers are gone", lambda: list(pods_of(cluster, "mpi")) == ["mpi-launcher"])


# In place of TensorFlow: all that TF_CONFIG names meet at the addresses that it says, and at the names that guides say.
TENSORFLOW = WAIT + """
import json, os, socket, threading, time
config = json.loads(os.environ["TF_CONFIG"])
me = "{type}/{index}".format(**config["task"])
everyone = {f"{role}/{i}": address for role, them in config["cluster"].items() for i, address in enumerate(them)}
assert config["environment"] == "cloud", config
server, asked = socket.create_server(("", int(everyone[me].rsplit(":", 1)[1]))), set()
def answer():
    while True:
        with server.accept()[0] as peer:
            name = peer.recv(99).decode()
            peer.sendall(me.encode())
            asked.add(name)
threading.Thread(target=answer, daemon=True).start()
def ask(host, port):
    while True:
        try:
            with socket.create_connection((host, int(port)), 5) as peer:
                peer.sendall(me.encode())
                return peer.recv(99).decode()
        except OSError:
            time.sleep(0.2)
def ip_of(name):
    return wait_for(name)[0][4][0]
for name, address in everyone.items():
    assert ip_of("tf-{}.tf".format(name.replace("/", "-"))) == ip_of(address.rsplit(":", 1)[0]), name
for name, address in everyone.items():
    found = ask(*address.rsplit(":", 1))
    assert found == name, f"{found} is where {name} should be"
while asked != set(everyone):
    time.sleep(0.1)
print(me, "has met", *sorted(everyone))
"""


def test_v1_tensorflow(cluster):
    meets = python(TENSORFLOW)
    cluster.apply(job("TFJob", "tf", {"Chief": (1, meets), "PS": (1, meets), "Worker": (2, meets)}))
    succeeds(cluster, "TFJob", "tf")
    for pod, me in (("chief-0", "chief/0"), ("ps-0", "ps/0"), ("worker-0", "worker/0"), ("worker-1", "worker/1")):
        wait_until("all say so", lambda pod=pod, me=me: f"{me} has met chief/0 ps/0 worker/0 worker/1" in logs_of(cluster, f"tf-{pod}"))


# In place of Paddle: the master lists the nodes for all of them.
PADDLE = """
import os, socket, time
host, port = os.environ["PADDLE_MASTER"].rsplit(":", 1)
me, nodes = socket.gethostname(), int(os.environ["PADDLE_NNODES"])
assert os.environ["PADDLE_JOB_ID"] == "paddle", os.environ["PADDLE_JOB_ID"]
if os.environ.get("PADDLE_SERVER_NUM") == "1":
    with socket.create_server((host, int(port))) as server:
        peers = [server.accept()[0] for _ in range(nodes - 1)]
    everyone = " ".join(sorted([me, *(peer.recv(99).decode() for peer in peers)]))
    for peer in peers:
        peer.sendall(everyone.encode())
        peer.close()
else:
    assert os.environ["PADDLE_TRAINER_NUM"] == "1"
    while True:
        try:
            peer = socket.create_connection((host, int(port)), 5)
            break
        except OSError:
            time.sleep(0.2)
    peer.settimeout(60)
    peer.sendall(me.encode())
    everyone = peer.recv(999).decode()
print(me, "has met", everyone)
"""


def test_v1_paddle(cluster):
    meets = python(PADDLE)
    cluster.apply(job("PaddleJob", "paddle", {"Master": (1, meets), "Worker": (2, meets)}))
    succeeds(cluster, "PaddleJob", "paddle")
    for pod in ("paddle-master-0", "paddle-worker-0", "paddle-worker-1"):
        wait_until("all say so", lambda pod=pod: f"{pod} has met paddle-master-0 paddle-worker-0 paddle-worker-1" in logs_of(cluster, pod))


# ---- the real libraries of those two, of some 700 MB

TENSORFLOW_SUMS = WAIT + """
import json
config = json.loads(os.environ["TF_CONFIG"])
for address in config["cluster"]["worker"]:
    wait_for(address.rsplit(":", 1)[0])
import tensorflow as tf
strategy, index = tf.distribute.MultiWorkerMirroredStrategy(), config["task"]["index"]
@tf.function
def everyone():
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(index + 1.0)))
print("worker", index, "of", strategy.num_replicas_in_sync, "sees", float(everyone()))
"""
PADDLE_SUMS = """
import paddle
import paddle.distributed as group
group.init_parallel_env()
total = paddle.to_tensor([group.get_rank() + 1.0])
group.all_reduce(total)
print("worker", group.get_rank(), "of", group.get_world_size(), "sees", total.item())
"""
# The guides start it so.
PADDLE_LAUNCH = f"""
import pathlib, sys
pathlib.Path("/tmp/train.py").write_text({PADDLE_SUMS!r})
sys.argv = ["launch", "/tmp/train.py"]
import runpy
runpy.run_module("paddle.distributed.launch", run_name="__main__")
"""

if os.environ.get("LONG"):
    def test_v1_tensorflow_trains(cluster):
        cluster.apply(library_job("TFJob", "tf", "tensorflow-cpu==2.20.0", TENSORFLOW_SUMS, "Worker"))
        succeeds(cluster, "TFJob", "tf")
        for index in range(2):
            wait_until("both say so", lambda index=index: f"worker {index} of 2 sees 3.0" in logs_of(cluster, f"tf-worker-{index}"))

    def test_v1_paddle_trains(cluster):
        cluster.apply(library_job("PaddleJob", "paddle", "paddlepaddle==3.3.1", PADDLE_LAUNCH, "Worker"))
        succeeds(cluster, "PaddleJob", "paddle")
        said = [logs_of(cluster, f"paddle-worker-{index}") for index in range(2)]
        assert all(any(f"worker {rank} of 2 sees 3.0" in text for text in said) for rank in range(2)), said


if __name__ == "__main__":
    harness.main(__file__, parallel=2)
