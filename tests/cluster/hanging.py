"""A training of four ranks that hangs, in one of several ways, and what is found of it. Tests of the cluster and of local mode use it.

Two nodes of two processes train with gloo; rank 2 does what the case says.
"""
import collections
import concurrent.futures
import os
import re
import time

from harness import Failed, wait_until

THRESHOLD = 15   # seconds

# The lines that a test expects are found by their marks.
SCRIPT = r'''
import datetime, os, re, signal, sys, tempfile, threading, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
CASE, RANK, BAD, AT = sys.argv[1], int(os.environ["RANK"]), 2, 20
ME = RANK == BAD
torch.set_num_threads(1)

def begins():
    print("rank", RANK, "hangs at", round(time.time(), 1), flush=True)

def fetch_from_storage():
    begins()
    time.sleep(100000)  # MARK loader worker spawn

def read_shard():
    path = os.path.join(tempfile.mkdtemp(), "fifo")
    os.mkfifo(path)
    begins()
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

def keep_connections():
    """Another process has the connections of this one, too, so its peers do not see that it ends."""
    if os.fork() == 0:
        while True: signal.pause()

class Data(Dataset):
    def __len__(self): return 1000000
    def __getitem__(self, i):
        step = i // 4
        is_bad = CASE in ("loader", "worker", "spawn") or CASE == "once" and os.environ["TRAINER_ATTEMPT"] == "0"
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
    ways = {"worker": "fork", "spawn": "spawn"}
    loader = DataLoader(Data(), batch_size=4, num_workers=int(CASE in ways), multiprocessing_context=ways.get(CASE))
    for step, batch in enumerate(loader):
        if step == AT and ME:
            if CASE in ("exit", "crash"): keep_connections()
            if CASE in ("stop", "gil", "locks", "skip", "exit", "crash"): begins()
            if CASE == "stop": os.kill(os.getpid(), signal.SIGSTOP)
            if CASE == "gil": hold_the_gil()
            if CASE == "locks": take_both()
            if CASE == "skip": dist.barrier()  # MARK skip
            if CASE == "exit": os._exit(0)
            if CASE == "crash": os.kill(os.getpid(), signal.SIGSEGV)
        if step == AT and CASE == "checkpoint": checkpoint()
        if step == AT * 3 and CASE in ("checkpoint", "none", "once"): break
        optimizer.zero_grad()
        model(batch).pow(2).mean().backward()
        optimizer.step()
        if CASE == "skip" and not (ME and step >= AT): dist.all_reduce(torch.ones(1))
        time.sleep(0.3 if CASE == "slow" and ME else 0.05)
    print("trained", RANK, flush=True)

if __name__ == "__main__": main()   # a worker that is spawned imports this file, too
'''


def line_of(mark):
    for number, line in enumerate(SCRIPT.split("\n"), 1):
        if "MARK" in line and mark in line.split("MARK")[1].split():
            return number
    return None


# torchrun ends all ranks of a node if one fails; with this, the others wait for it.
WITHOUT_TORCHRUN = """
export WORLD_SIZE=4 MASTER_ADDR=$PET_MASTER_ADDR MASTER_PORT=$PET_MASTER_PORT
for i in 0 1; do RANK=$((PET_NODE_RANK * 2 + i)) LOCAL_RANK=$i python3 TRAIN & done
wait
"""


def job(name, case, folder="/tmp", image=None):
    """Each node writes the script into this folder, which is its own. Without an image it is the runtime's."""
    text = SCRIPT.replace("'", "'\\''")
    start = WITHOUT_TORCHRUN if case == "crash" else "exec torchrun --monitor_interval 1 TRAIN"
    script = f"printf '%s' '{text}' > {folder}/train.py; train={folder}/train.py; " + start.replace("TRAIN", f"$train {case} {THRESHOLD}")
    trainer = {"numNodes": 2, "numProcPerNode": 2, "command": ["sh", "-c", script]}
    if image:
        trainer["image"] = image
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": name, "annotations": {
                "trainer.kubeflow.org/detect-hangs": "true",
                "trainer.kubeflow.org/hang-threshold-seconds": str(THRESHOLD)}},
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer}}


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


# The case, and the reasons by which its rank may be found. A stopped or silent rank is named with the line seen last. That a rank has ended is
# known where torchrun's process had sent a heartbeat before; its first one comes within 15 seconds.
NOT_THERE = "NotWaiting", "Behind"
HANGS = {"loader": NOT_THERE, "worker": NOT_THERE, "spawn": NOT_THERE, "fifo": NOT_THERE, "locks": NOT_THERE, "skip": ("Behind", "Apart"),
         "stop": ("Stopped",), "gil": ("Silent", *NOT_THERE), "exit": ("Ended", "Silent"), "crash": ("Silent",)}


def check_suspect(stall, case, printed):
    """Rank 2 alone is named, with its line where the case has one."""
    assert [each["rank"] for each in stall["suspects"]] == [2], (stall, printed)
    suspect = stall["suspects"][0]
    assert suspect["reason"] in HANGS[case] and suspect["pod"] and suspect["node"], stall
    line = line_of(case)
    assert not line or f"train.py:{line} " in suspect["line"], (line, stall)


# ---- many runs

NAMED_WITHIN = 10   # seconds after the threshold
RAN = "right", "unknown", "wrong", "none"


def began_at(printed):
    """When rank 2 began to hang, in seconds since 1970, or nothing."""
    found = re.search(r"rank 2 hangs at ([0-9.]+)", printed)
    return float(found[1]) if found else None


def stall_in(job):
    """The stall of a TrainJob, which must not have ended."""
    status = (job or {}).get("status") or {}
    if status.get("phase") in ("Failed", "Complete"):
        raise Failed(f"it is {status['phase']}: {status.get('conditions')}")
    return status.get("stall")


def watch(case, stall_of, printed, every=0.2):
    """Looks at a job until its rank is named, and four seconds longer, or for forty seconds after the threshold.

    Answers how it went (one of RAN), by how many seconds the first name came after the threshold, and the stalls that the status had."""
    began = wait_until(f"rank 2 of {case} hangs", lambda: (stall_of(), began_at(printed()))[1], seconds=600, every=2, shown=printed)
    stalls, named = [], []

    def is_over():
        stall, now = stall_of(), time.time()
        if stall and stall not in stalls:
            stalls.append(stall)
        if stall and stall.get("suspects") and not named:
            named.append(now)
        return now > (named[0] + 4 if named else began + THRESHOLD + 40)

    wait_until(f"{case} is over", is_over, seconds=THRESHOLD + 120, every=every)
    late = round(named[0] - began - THRESHOLD, 1) if named else None
    return how_it_went(stalls, case), late, stalls


def how_it_went(stalls, case):
    if not stalls:
        return "none"
    named = [stall for stall in stalls if stall.get("suspects")]
    try:
        for stall in named:
            check_suspect(stall, case, "")
    except AssertionError:
        return "wrong"
    return "right" if named else "unknown"


def run_each(cases, times, run, grace=NAMED_WITHIN):
    """Runs each case so many times, JOBS (2) side by side. run(case, number) answers what watch() does. All must be right, and in time."""
    results = collections.defaultdict(list)

    def run_one(case, number):
        try:
            how, late, stalls = run(case, number)
        except Failed as error:
            how, late, stalls = "none", None, error
        results[case].append((how, late))
        print(f"     {case} {number}: {how}, {late} s after the threshold" + ("" if how == "right" else f"; {stalls}"), flush=True)

    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        list(pool.map(lambda pair: run_one(*pair), [(case, number) for number in range(times) for case in cases]))
    bad = []
    for case, found in results.items():
        counts = ", ".join(f"{sum(how == each for how, _ in found)} {each}" for each in RAN)
        worst = max((late for _, late in found if late is not None), default=None)
        print(f"     {case}: {len(found)} runs, {counts}, named at most {worst} s after the threshold", flush=True)
        if any(how != "right" or (late or 0) > grace for how, late in found):
            bad.append(case)
    assert not bad, f"not right, or not within {grace} s after the threshold: {bad}"
