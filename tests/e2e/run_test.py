#!/usr/bin/python3
"""`trainer run` in real pods (docs/users/run.md): the code of a folder trains on two nodes, and a failure ends with its exit status.

run calls it.
"""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
import deployment_test  # noqa: E402
import harness  # noqa: E402
from harness import TRAINER, run  # noqa: E402

SYSTEM = harness.Cluster("kubeflow-system")
TRAIN = """import torch.distributed as dist
from src.model import fails
dist.init_process_group("gloo")
print(f"rank {dist.get_rank()} of {dist.get_world_size()} is here")
dist.barrier()
fails(dist.get_rank())
dist.destroy_process_group()
"""
FAILS = """import sys
def fails(rank):
    if rank == 1:
        print("FileNotFoundError: /data/train.parquet")
        sys.exit(9)
"""


def installed():
    if not SYSTEM.get("deployment", "kubeflow-trainer-controller-manager"):
        deployment_test.test_installs_and_becomes_ready(None)
    # The image is that of the test bed.
    run(TRAINER, "runtimes", "--apply", "--image", "pytorch/pytorch=localhost/torch:1", "torch-distributed")


def trainer_run(cluster, model, *words):
    with tempfile.TemporaryDirectory() as code:
        folder = pathlib.Path(code)
        (folder / "src").mkdir()
        (folder / "src/model.py").write_text(model)
        (folder / "train.py").write_text(TRAIN)
        return subprocess.run([TRAINER, "run", "-n", cluster.namespace, "--code", code, *words, "--", "python3", "train.py"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=300)


def test_code_trains_on_two_nodes(cluster):
    installed()
    done = trainer_run(cluster, "def fails(rank): pass\n", "--name", "trains", "--nodes", "2", "--procs", "1")
    assert done.returncode == 0 and "Complete" in done.stderr, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    assert all(f"rank {rank} of 2 is here" in done.stdout for rank in (0, 1)), done.stdout
    # Without tar and gzip in the image Python would unpack it; here one of the two has.
    pod = cluster.list("pods", "-l", "jobset.sigs.k8s.io/jobset-name=trains")[0]
    assert pod["status"]["initContainerStatuses"][-1]["state"]["terminated"]["exitCode"] == 0, pod["status"]


def test_a_failure_ends_with_its_exit_status(cluster):
    installed()
    done = trainer_run(cluster, FAILS, "--name", "fails", "--nodes", "2", "--procs", "1")
    # torchrun ends with 1 if one of its processes ends with another status.
    assert done.returncode == 1, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    assert f"TrainJob {cluster.namespace}/fails: Failed" in done.stdout and "/data/train.parquet" in done.stdout, done.stdout
    # A program that is no Python has its own exit status.
    done = subprocess.run([TRAINER, "run", "-n", cluster.namespace, "--name", "own", "--runtime", "torch-distributed", "--", "sh", "-c", "exit 9"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=300)
    assert done.returncode == 9, f"exit {done.returncode}\n{done.stdout}{done.stderr}"


if __name__ == "__main__":
    harness.main(__file__)
