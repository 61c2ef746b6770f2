"""A training whose number of nodes changes while it runs, and what is found of it. Tests of the cluster and of local mode use it. It ends
thirty steps after it has begun with two nodes. Each rank keeps its step in a folder of its pod, and all begin from the highest one."""
import re

SCRIPT = r'''
import datetime, os, pathlib, sys, time
import torch, torch.distributed as dist
CHECKPOINT = pathlib.Path(sys.argv[1]) / "step"
torch.set_num_threads(1)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
rank, world = dist.get_rank(), dist.get_world_size()
first = torch.tensor([int(CHECKPOINT.read_text()) if CHECKPOINT.exists() else 0])
dist.all_reduce(first, op=dist.ReduceOp.MAX)
first = int(first)
weight = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([weight], lr=0.01)
if first > 0: optimizer.load_state_dict(optimizer.state_dict())
print("rank", rank, "of", world, "begins at", first, flush=True)
for step in range(first, first + 3000):
    if world == 2 and step >= first + 30:
        break
    weight.grad = torch.ones(1)
    dist.all_reduce(weight.grad)
    optimizer.step()
    optimizer.state_dict()
    CHECKPOINT.with_suffix(".new").write_text(str(step + 1))
    os.replace(CHECKPOINT.with_suffix(".new"), CHECKPOINT)
    if rank == 0: print("step", step, flush=True)
    time.sleep(0.1)
print("trained", rank, flush=True)
'''


def runtime(image="localhost/none:1"):
    pod = {"restartPolicy": "Never", "containers": [{"name": "node", "image": image}]}
    job = {"name": "node", "template": {"metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                                        "spec": {"template": {"spec": pod}}}}
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime", "metadata": {"name": "elastic"},
            "spec": {"mlPolicy": {"numNodes": 3, "torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 4, "maxRestarts": 10}}},
                     "template": {"spec": {"replicatedJobs": [job]}}}}


def job(name, folder="/tmp"):
    """Each node writes the script into this folder, which is its own. The ranks report every 2.5 s."""
    text = SCRIPT.replace("'", "'\\''")
    script = f"printf '%s' '{text}' > {folder}/train.py; exec torchrun {folder}/train.py {folder}"
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": name, "annotations": {
                "trainer.kubeflow.org/detect-hangs": "true", "trainer.kubeflow.org/hang-threshold-seconds": "15"}},
            "spec": {"runtimeRef": {"kind": "TrainingRuntime", "name": "elastic"},
                     "trainer": {"numNodes": 3, "numProcPerNode": 1, "command": ["sh", "-c", script]}}}


def check_resized(status):
    """A node has come, and the steps are counted from the beginning again, though torchrun has counted no restart."""
    assert not status.get("processRestarts") and status["goodput"]["step"] > 0, status


def sizes(printed):
    """The number of ranks of each start, in their order by the step of the start."""
    begun = sorted({(int(m[2]), int(m[1])) for m in re.finditer(r"of (\d+) begins at (\d+)", printed)})
    return [size for _, size in begun]


def check_steps(printed):
    """No step is left out, and the training ended with two ranks."""
    made = {int(step) for step in re.findall(r"\bstep (\d+)", printed)}
    assert made == set(range(max(made) + 1)), sorted(set(range(max(made) + 1)) - made)
    assert printed.count("trained") == 2, printed
