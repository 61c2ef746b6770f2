#!/usr/bin/python3
"""The status says what the time of a job was used for, as its script measures it (docs/users/goodput.md)."""
import os
import subprocess

import bed

SCALE = 10 if os.environ.get("LONG") else 1
STEPS, SAVED, LOST = 160 * SCALE, 40 * SCALE, 80 * SCALE   # of the job, at the checkpoint, and when the first attempt fails
SCRIPT = r'''
import os, sys, time
import torch, torch.distributed as dist
STEPS, SAVED, LOST, PATH = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
first = 0
if os.path.exists(PATH):
    saved = torch.load(PATH)
    optimizer.load_state_dict(saved["optimizer"])
    first = saved["step"]
took = {False: 0.0, True: 0.0}
for step in range(first, STEPS):
    began = time.time()
    if step == LOST and first == 0:
        break
    optimizer.zero_grad()
    model(torch.ones(4, 8)).pow(2).mean().backward()
    optimizer.step()
    time.sleep(0.2)
    if step == SAVED - 1 and first == 0 and os.environ["RANK"] == "0":
        torch.save({"optimizer": optimizer.state_dict(), "step": SAVED}, PATH)
    took[first > 0 and step < LOST] += time.time() - began
if os.environ["RANK"] == "0":
    open(PATH + ".times", "a").write("%.2f %.2f\n" % (took[False], took[True]))
sys.exit(first == 0)
'''


def job(folder):
    text = SCRIPT.replace("'", "'\\''")
    script = f"printf '%s' '{text}' > train.py; exec torchrun train.py {STEPS} {SAVED} {LOST} {folder}/state.pt"
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": "again", "annotations": {
                "trainer.kubeflow.org/detect-hangs": "true", "trainer.kubeflow.org/hang-threshold-seconds": "12"}},
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "failurePolicy": {"maxRestarts": 1},
                     "trainer": {"numNodes": 2, "numProcPerNode": 1, "command": ["sh", "-c", script]}}}


def check_time(what, counted, measured, others):
    """A rank reports every two seconds, and each end of the time is noted with the next report; `others` are seconds of the whole job."""
    allowed = max(8, 0.02 * others)
    print(f"{what}: {counted} s in the status, {measured:.1f} s by the script")
    assert abs(counted - measured) <= allowed, (what, counted, measured)


def test_steps_that_are_made_twice_are_counted_apart(local):
    local.env["PATH"] = bed.torch() + ":" + local.env["PATH"]
    local.up()
    local.create(job(local.scratch))
    local.wait_for("again", "Complete", 360 * SCALE)
    attempts = [[float(word) for word in line.split()] for line in (local.scratch / "state.pt.times").read_text().splitlines()]
    assert len(attempts) == 2, attempts
    status = local.job("again")["status"]
    goodput = status["goodput"]
    sum_of = {use: goodput.get(use, 0) for use in ("productive", "queued", "starting", "recomputed", "stalled")}
    total = sum(sum_of.values())
    check_time("new steps", sum_of["productive"], attempts[0][0] + attempts[1][0], total)
    check_time("steps again", sum_of["recomputed"], attempts[1][1], total)
    assert STEPS - 30 <= goodput["step"] <= STEPS and goodput["checkpoint"] == SAVED and "current" not in goodput, goodput
    assert "stalled" not in goodput and goodput["since"] == status["completionTime"], goodput
    said = subprocess.run([bed.TRAINER, "why", "again"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60,
                          env={**local.env, "KUBECONFIG": str(local.state / "kubeconfig")}).stdout
    assert "goodput " in said and " recomputed" in said, said


if __name__ == "__main__":
    bed.main()
