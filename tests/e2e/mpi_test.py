#!/usr/bin/python3
"""MPIJobs of kubeflow.org/v2beta1 in real pods: Debian's OpenMPI over ssh, and mpi-operator's example (see frameworks)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
import blueprints  # noqa: E402
import harness  # noqa: E402
from frameworks_test import HELLO, TRUST  # noqa: E402
from harness import TRAINER, Failed, run, wait_until  # noqa: E402

KIND = "mpijobs.v2beta1.kubeflow.org"
# Host keys are a machine's own, and the directory of a Secret is writable for its group.
SSHD = "mkdir -p /run/sshd && ssh-keygen -A >/dev/null && exec /usr/sbin/sshd -De -o StrictModes=no"
# The program of the example: each rank has a part of the sum. It calls the library of OpenMPI itself, for which the image has no module.
PI = """#!/usr/bin/python3
import ctypes
mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
world, double, total = (ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, "ompi_mpi_" + name))) for name in ("comm_world", "double", "op_sum"))
rank, size, result = ctypes.c_int(), ctypes.c_int(), ctypes.c_double()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
steps = 100000
part = ctypes.c_double(sum(4 / (1 + ((i + 0.5) / steps) ** 2) for i in range(rank.value, steps, size.value)) / steps)
mpi.MPI_Reduce(ctypes.byref(part), ctypes.byref(result), 1, double, total, 0, world)
if rank.value == 0:
    print(f"pi is approximately {result.value:.10f}, from {size.value} workers", flush=True)
mpi.MPI_Finalize()
"""


def mpijob(name, launcher, worker, **spec):
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name}, "spec": {
        **spec, "mpiReplicaSpecs": {"Launcher": {"replicas": 1, "template": {"spec": launcher}},
                                    "Worker": {"replicas": 2, "template": {"spec": worker}}}}}


def succeeds(cluster, name, seconds=120):
    """Waits for the end of a job, and returns what its launcher has printed."""
    def ended():
        conditions = {c["type"]: c for c in cluster.get(KIND, name).get("status", {}).get("conditions", []) if c["status"] == "True"}
        if "Failed" in conditions:
            raise Failed(f"{conditions['Failed']}\n{cluster.kubectl('logs', f'job/{name}-launcher', '--tail=50')}")
        return "Succeeded" in conditions

    wait_until(f"{name} has succeeded", ended, seconds=seconds)
    return cluster.kubectl("logs", f"job/{name}-launcher")


def test_mpijob_v2_runs_on_two_workers(cluster):
    trusting = {"volumes": [{"name": "trust", "configMap": {"name": "trust"}}]}
    launcher = {**trusting, "containers": [{
        "name": "main", "image": blueprints.IMAGE, "command": HELLO[:1], "args": HELLO[1:],
        "volumeMounts": [{"name": "trust", "mountPath": "/etc/ssh/ssh_config.d"}]}]}
    worker = {"terminationGracePeriodSeconds": 1, "containers": [{
        "name": "main", "image": blueprints.IMAGE, "command": ["bash", "-c", SSHD],
        "readinessProbe": {"tcpSocket": {"port": 22}, "periodSeconds": 1}}]}
    cluster.apply(TRUST, mpijob("duo", launcher, worker, launcherCreationPolicy="WaitForWorkersReady", runPolicy={"cleanPodPolicy": "Running"}))
    lines = [line.split() for line in succeeds(cluster, "duo").splitlines() if line.startswith("rank ")]
    assert sorted((rank, size, host) for _, rank, _, size, _, host, *_ in lines) == [
        ("0", "2", "duo-worker-0"), ("1", "2", "duo-worker-1")], lines
    wait_until("the workers are gone", lambda: not cluster.get("pod", "duo-worker-0") and not cluster.get("pod", "duo-worker-1"))
    merged = run(TRAINER, "logs", "-n", cluster.namespace, "mpijob/duo").stdout
    assert "rank 0 of 2" in merged, merged


def test_mpijob_v2_of_the_official_example(cluster):
    """mpi-operator's example `pi`, as it is. Volumes bring the rest of its image: a user, an ssh configuration, the program."""
    files = {**blueprints.MACHINE, "pi": PI}
    places = {**blueprints.PLACES, "pi": "/home/mpiuser/pi"}

    def pod(name, **container):
        return {"volumes": [{"name": "machine", "configMap": {"name": "machine", "defaultMode": 0o755}}, {"name": "home", "emptyDir": {}}],
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": name, "image": blueprints.IMAGE, "securityContext": {"runAsUser": 1000}, **container,
                                "env": [{"name": "HOME", "value": "/home/mpiuser"}],
                                "volumeMounts": [{"name": "home", "mountPath": "/home/mpiuser"}] + [
                                    {"name": "machine", "mountPath": path, "subPath": key} for key, path in places.items()]}]}

    launcher = pod("mpi-launcher", command=["mpirun"], args=["-n", "2", "/home/mpiuser/pi"])
    worker = pod("mpi-worker", command=["/usr/sbin/sshd"], args=["-De", "-f", "/home/mpiuser/.sshd_config"])
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "machine"}, "data": files},
                  mpijob("pi", launcher, worker, slotsPerWorker=1, sshAuthMountPath="/home/mpiuser/.ssh",
                         runPolicy={"cleanPodPolicy": "Running", "ttlSecondsAfterFinished": 60}))
    said = succeeds(cluster, "pi")
    assert "pi is approximately 3.14159265" in said and "from 2 workers" in said, said


if __name__ == "__main__":
    harness.main(__file__, parallel=2)
