"""V1 jobs of few lines, and what is waited for in them. Shared by the tests of this folder."""
import contextlib
import subprocess
import tempfile

from harness import TRAINER, Failed, run, wait_until

INIT_IMAGE, TORCH_IMAGE = "localhost/init:1", "localhost/torch:1"
# Where the roles of each kind are, and how the container must be called.
KINDS = {"PyTorchJob": ("pytorchReplicaSpecs", "pytorch"), "TFJob": ("tfReplicaSpecs", "tensorflow"),
         "XGBoostJob": ("xgbReplicaSpecs", "xgboost"), "PaddleJob": ("paddleReplicaSpecs", "paddle"),
         "JAXJob": ("jaxReplicaSpecs", "jax"), "MPIJob": ("mpiReplicaSpecs", "mpi")}


def python(program):
    return {"image": TORCH_IMAGE, "command": ["python3", "-uc", program], "env": [{"name": "OMP_NUM_THREADS", "value": "1"}]}


def shell(command):
    return {"image": INIT_IMAGE, "command": ["sh", "-c", command]}


def job(kind, name, roles, run_policy=None, restart_policy=None, spec=None, **pod):
    """`roles`: of each role its number of pods and the fields of their container; `pod`: fields of all pods."""
    member, container = KINDS[kind]
    specs = {role: {"replicas": count, **({"restartPolicy": restart_policy} if restart_policy else {}), "template": {"spec": {
        "terminationGracePeriodSeconds": 1, "containers": [{"name": container, **fields}], **pod}}} for role, (count, fields) in roles.items()}
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"runPolicy": run_policy or {}, member: specs, **(spec or {})}}


def report(cluster, command, kind, name):
    """The output of `trainer why` and `trainer logs`."""
    done = run(TRAINER, command, "-n", cluster.namespace, f"{kind.lower()}/{name}", check=False)
    return done.stdout + done.stderr


def succeeds(cluster, kind, name, seconds=120):
    """Waits for the end of a job, which must be a good one, and returns all that its pods have printed."""
    def ended():
        if cluster.condition(kind, name, "Failed"):
            raise Failed(report(cluster, "why", kind, name) + report(cluster, "logs", kind, name))
        return cluster.condition(kind, name, "Succeeded")

    try:
        wait_until(f"{kind} {name} has succeeded", ended, seconds=seconds)
    except Failed as late:
        raise Failed(f"{late}\n{report(cluster, 'why', kind, name)}{report(cluster, 'logs', kind, name)}")
    return report(cluster, "logs", kind, name)


def pods_of(cluster, name):
    """Pods by their names."""
    return {p["metadata"]["name"]: p for p in cluster.list("pods", "-l", f"training.kubeflow.org/job-name={name}")}


@contextlib.contextmanager
def watched(cluster, kind):
    """`kubectl get KIND --watch` for as long as it lasts; gives a function that returns the words of each line so far."""
    with tempfile.NamedTemporaryFile("w+") as out, subprocess.Popen(
            ["kubectl", "-n", cluster.namespace, "get", kind, "--watch", "--no-headers"], stdout=out, stderr=out) as watch:
        try:
            yield lambda: [line.split() for line in open(out.name).read().splitlines()]
        finally:
            watch.kill()
