"""A training of four ranks that hangs, in one of several ways, and what is found of it. Tests of the cluster and of local mode use it.

Two nodes of two processes train with gloo; rank 2 does what the case says.
"""
THRESHOLD = 15   # seconds

# The lines that a test expects are found by their marks.
SCRIPT = r'''
import datetime, os, re, signal, sys, threading, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
CASE, RANK, BAD, AT = sys.argv[1], int(os.environ["RANK"]), 2, 20
ME = RANK == BAD
torch.set_num_threads(1)

def fetch_from_storage():
    print("rank", RANK, "fetches", flush=True)
    time.sleep(100000)  # MARK loader worker

def read_shard():
    path = "/tmp/fifo-%d" % os.getpid()
    os.mkfifo(path)
    with open(path) as file:  # MARK fifo
        return file.read()

def hold_the_gil():
    re.match(r"(a+)+$", "a" * 60 + "b")  # MARK gil

FIRST, SECOND = threading.Lock(), threading.Lock()
def prefetch():
    with FIRST:
        time.sleep(0.3)
        with SECOND: pass
def take_both():
    threading.Thread(target=prefetch, daemon=True).start()
    with SECOND:
        time.sleep(0.6)
        with FIRST: pass  # MARK locks

class Data(Dataset):
    def __len__(self): return 1000000
    def __getitem__(self, i):
        step = i // 4
        is_bad = CASE in ("loader", "worker") or CASE == "once" and os.environ["TRAINER_ATTEMPT"] == "0"
        if ME and step >= AT and is_bad: fetch_from_storage()
        if ME and step >= AT and CASE == "fifo": read_shard()
        return torch.ones(8) * (i % 7)

def checkpoint():
    if RANK == 0:
        end, path = time.time() + 2 * int(sys.argv[2]), "/tmp/checkpoint"
        while time.time() < end:
            with open(path, "wb") as file: file.write(b"x" * 4000000)
            time.sleep(0.02)
    dist.barrier()

def main():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=1800))
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Data(), batch_size=4, num_workers=1 if CASE == "worker" else 0)
    for step, batch in enumerate(loader):
        if step == AT and ME:
            if CASE == "stop": os.kill(os.getpid(), signal.SIGSTOP)
            if CASE == "gil": hold_the_gil()
            if CASE == "locks": take_both()
            if CASE == "skip": dist.barrier()  # MARK skip
            if CASE == "exit": os._exit(0)
        if step == AT and CASE == "checkpoint": checkpoint()
        if step == AT * 3 and CASE in ("checkpoint", "none", "once"): break
        optimizer.zero_grad()
        model(batch).pow(2).mean().backward()
        optimizer.step()
        if CASE == "skip" and not (ME and step >= AT): dist.all_reduce(torch.ones(1))
        time.sleep(0.05)
    print("trained", RANK, flush=True)

main()
'''


def line_of(mark):
    for number, line in enumerate(SCRIPT.split("\n"), 1):
        if "MARK" in line and mark in line.split("MARK")[1].split():
            return number
    return None


def job(name, case, folder="/tmp"):
    """Each node writes the script into this folder, which is its own."""
    text = SCRIPT.replace("'", "'\\''")
    script = f"printf '%s' '{text}' > {folder}/train.py; exec torchrun --monitor_interval 1 {folder}/train.py {case} {THRESHOLD}"
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": name, "annotations": {
                "trainer.kubeflow.org/detect-hangs": "true",
                "trainer.kubeflow.org/hang-threshold-seconds": str(THRESHOLD)}},
            "spec": {"runtimeRef": {"name": "torch-distributed"},
                     "trainer": {"numNodes": 2, "numProcPerNode": 2, "command": ["sh", "-c", script]}}}


def job_that_restarts(name, **options):
    """Its first attempt hangs, and the policy ends it; the second one trains to the end."""
    made = job(name, "once", **options)
    made["metadata"]["annotations"].update({"trainer.kubeflow.org/hang-policy": "Restart", "trainer.kubeflow.org/restart-environment": "true"})
    made["spec"]["failurePolicy"] = {"maxRestarts": 1}
    return made


def check_restart(status, printed):
    assert status["phase"] == "Complete" and status["restarts"] == 1 and status["restartBudget"] == "1/1", status
    assert status["hangs"]["restarts"] == status["hangs"]["repeats"] == 1 and status["hangs"]["step"] > 0, status
    assert "stall" not in status, status
    assert printed.count("trained") == 4, printed


# The case, and the reasons by which its rank may be found. A stopped or silent rank is named with the line seen last.
HANGS = {"loader": ("NotWaiting", "Behind"), "worker": ("NotWaiting", "Behind"), "fifo": ("NotWaiting", "Behind"), "locks": ("NotWaiting", "Behind"),
         "skip": ("Behind", "Apart"), "stop": ("Stopped",), "gil": ("Silent", "NotWaiting", "Behind"), "exit": ("Ended",)}


def check_suspect(stall, case, printed):
    """Rank 2 alone is named, with its line where the case has one."""
    assert [each["rank"] for each in stall["suspects"]] == [2], (stall, printed)
    suspect = stall["suspects"][0]
    assert suspect["reason"] in HANGS[case] and suspect["pod"] and suspect["node"], stall
    line = line_of(case)
    assert not line or f"train.py:{line} " in suspect["line"], (line, stall)
