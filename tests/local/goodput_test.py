#!/usr/bin/python3
"""The status says what the time of a job was used for, as its script measures it (docs/users/goodput.md)."""
import datetime
import os
import subprocess

import bed

SCALE = 10 if os.environ.get("LONG") else 1
STEPS, SAVED, LOST = 100 * SCALE, 10 * SCALE, 60 * SCALE   # of the job, at the checkpoint, and when the first attempt fails
LATE = 6   # seconds: a rank reports every two seconds, each end of the time is noted with the next report, and the status has whole seconds
# Rank 0 notes when it made its first new step, its first known one, and its last step, and the longest time that a step took.
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
made, longest = [], 0.0
for step in range(first, STEPS):
    if step == LOST and first == 0:
        break
    optimizer.zero_grad()
    model(torch.ones(4, 8)).pow(2).mean().backward()
    optimizer.step()
    made.append(time.time())
    if len(made) > 1:
        longest = max(longest, made[-1] - made[-2])
    time.sleep(0.2)
    if step == SAVED - 1 and first == 0 and os.environ["RANK"] == "0":
        torch.save({"optimizer": optimizer.state_dict(), "step": SAVED}, PATH)
if os.environ["RANK"] == "0":
    new = made[LOST - first] if first else made[0]
    open(PATH + ".times", "a").write("%.2f %.2f %.2f %.2f\n" % (made[0], new, made[-1], longest))
sys.exit(first == 0)
'''


def job(folder):
    """The first node also notes when it starts each attempt."""
    text = SCRIPT.replace("'", "'\\''")
    script = (f"[ $PET_NODE_RANK != 0 ] || date +%s.%N >> {folder}/starts; printf '%s' '{text}' > train.py; "
              f"exec torchrun --monitor_interval 0.5 train.py {STEPS} {SAVED} {LOST} {folder}/state.pt")
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": "again", "annotations": {
                "trainer.kubeflow.org/detect-hangs": "true", "trainer.kubeflow.org/hang-threshold-seconds": "12"}},
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "failurePolicy": {"maxRestarts": 1},
                     "trainer": {"numNodes": 2, "numProcPerNode": 1, "command": ["sh", "-c", script]}}}


def seconds_of(time):
    return datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def check_time(what, counted, least, most, late):
    """`least` and `most` are by the clock of the script; `late` is how much later a report can be."""
    print(f"{what}: {counted} s in the status, {least:.1f} to {most:.1f} s by the script, give or take {late:.1f} s")
    assert least - late <= counted <= most + late, (what, counted, least, most, late)


def test_steps_that_are_made_twice_are_counted_apart(local):
    local.env["PATH"] = bed.torch() + ":" + local.env["PATH"]
    local.up()
    local.create(job(local.scratch))
    local.wait_for("again", "Complete", 360 * SCALE)
    attempts = [[float(word) for word in line.split()] for line in local.lines("state.pt.times")]
    starts = [float(line) for line in local.lines("starts")]
    assert len(attempts) == len(starts) == 2, (attempts, starts)
    found = local.job("again")
    status, created = found["status"], seconds_of(found["metadata"]["creationTimestamp"])
    goodput = status["goodput"]
    sum_of = {use: goodput.get(use, 0) for use in ("productive", "queued", "starting", "recomputed", "stalled")}
    total, ended = sum(sum_of.values()), seconds_of(status["completionTime"])
    (first, _, lost, longest), (again, new, last, longest_again) = attempts
    # A busy machine delays reports as it delays steps.
    late = max(LATE + 2 * max(longest, longest_again), 0.02 * total)
    # No report says that a step was the last one. So the time until the failure or the end is seen counts for what was before, and the next
    # attempt starts after that.
    made = lost - first + last - new
    check_time("new steps", sum_of["productive"], made, made + starts[1] - lost + ended - last, late)
    check_time("steps again", sum_of["recomputed"], new - again, new - again, late)
    waited = first - created + again - starts[1]
    check_time("starts", sum_of["queued"] + sum_of["starting"], waited, waited + starts[1] - lost, late)
    check_time("all", total, ended - created, ended - created, 1)
    assert LOST < goodput["step"] <= STEPS and goodput["checkpoint"] == SAVED and "current" not in goodput, goodput
    assert "stalled" not in goodput and goodput["since"] == status["completionTime"], goodput
    said = subprocess.run([bed.TRAINER, "why", "again"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60,
                          env={**local.env, "KUBECONFIG": str(local.state / "kubeconfig")}).stdout
    assert "goodput " in said and " recomputed" in said, said


if __name__ == "__main__":
    bed.main()
