"""A training of two ranks whose processes die and are started again in their pods, and what is found of it. Tests of the cluster and of local
mode use it. Each rank keeps its step in a folder of its pod."""
import re

THRESHOLD = 15   # seconds, by which ranks report every 2.5 s

SCRIPT = r'''
import datetime, os, pathlib, signal, sys, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
CASE, FOLDER, RANK = sys.argv[1], pathlib.Path(sys.argv[2]), int(os.environ["RANK"])
AT, END = 20, 80
CHECKPOINT, MARK = FOLDER / "step", FOLDER / "died"
torch.set_num_threads(1)

def die():
    if CASE == "once" and RANK == 1 and not MARK.exists():
        MARK.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if CASE == "loop" or CASE == "exhausted" and os.environ["TRAINER_ATTEMPT"] == "0":
        time.sleep(6)   # it has reported
        raise ValueError("broken at step %d" % AT)

def main():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=600))
    step = torch.tensor([int(CHECKPOINT.read_text()) if CHECKPOINT.exists() else 0])
    dist.all_reduce(step, op=dist.ReduceOp.MIN)
    print("rank", RANK, "begins at", int(step), "in", os.environ["TORCHELASTIC_RUN_ID"], flush=True)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(int(step), END):
        if step == AT: die()
        optimizer.zero_grad()
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        if CASE == "once":
            (FOLDER / "next").write_text(str(step + 1))
            os.replace(FOLDER / "next", CHECKPOINT)
        time.sleep(0.1)
    print("trained", RANK, flush=True)

main()
'''


def job(name, case, restarts, folder="/tmp", **policy):
    """Each node writes the script into this folder, which is its own."""
    text = SCRIPT.replace("'", "'\\''")
    script = f"printf '%s' '{text}' > {folder}/train.py; exec torchrun --monitor_interval 0.5 {folder}/train.py {case} {folder}"
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": name, "annotations": {
                "trainer.kubeflow.org/detect-hangs": "true",
                "trainer.kubeflow.org/restart-environment": "true",
                "trainer.kubeflow.org/hang-threshold-seconds": str(THRESHOLD)}},
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "failurePolicy": {"processRestarts": restarts, **policy},
                     "trainer": {"numNodes": 2, "numProcPerNode": 1, "command": ["sh", "-c", script]}}}


def begins(printed):
    """The steps with which processes of rank 1 began."""
    return [int(line.split("begins at ")[1].split()[0]) for line in printed.splitlines() if "rank 1 begins at" in line]


def check_once(status, printed):
    """Rank 1 was killed at step 20, and went on from there."""
    assert status["phase"] == "Complete" and status["restarts"] == 0, status
    assert status["processRestarts"] == 1 and status["restartBudget"] == "0/0 (1 in pods)", status
    first, *later = begins(printed)
    assert first == 0 and later in ([19], [20]) and printed.count("trained") == 2, printed   # rank 0 may have saved a step less


def check_why(said):
    """It says which process died, of what, and what it printed last."""
    assert "processes were started again in their pods: 1 time" in said, said
    assert re.search(r"\[node-1\] the process of local rank 0 ended with signal 9 \(SIGKILL\) at 20.*Z; the last lines before it:\n *rank 1 begins at 0", said), said


def check_exhausted(status, printed):
    """Both ranks failed twice in the first attempt, and the failure policy began a second one."""
    assert status["phase"] == "Complete" and status["restarts"] == 1, status
    assert status["processRestarts"] == 1 and status["restartBudget"] == "1/1 (1 in pods)", status
    assert printed.count("trained") == 2, printed


def check_loop(status):
    """Both ranks failed at one step again and again, long before the budget was used."""
    assert status["phase"] == "Failed" and status["reason"] == "ProcessesKeepFailing" and status["restarts"] == 0, status
    assert "3 times in a row" in status["message"] and "step 20" in status["message"], status
    assert status["processRestarts"] == 3, status
