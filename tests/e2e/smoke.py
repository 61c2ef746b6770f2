#!/usr/bin/python3
"""A user of the SDK works with a cluster, from start to end: the jobs of the acceptance script, and their answers.

usage: smoke.py RUNTIME [MPI-RUNTIME] [TORCHTUNE-RUNTIME]      in the namespace of $KUBECONFIG's context

sdk_test.py runs it. It needs nothing but the SDK, so it also tries a cluster of one's own.
"""
import sys, time
from kubeflow.trainer import BuiltinTrainer, CustomTrainer, CustomTrainerContainer, TorchTuneConfig, TrainerClient
from kubeflow.trainer.options import Name, TrainerCommand, ActiveDeadlineSeconds
def run(c, plain, mpi=None, tune=None, sfx=""):
    names = {r.name for r in c.list_runtimes()}; assert plain in names, names
    rt = c.get_runtime(plain); assert rt.trainer.command[0] == "bash" and rt.trainer.num_nodes >= 1
    def fn(msg="x"):
        import os; print("rank", os.environ.get("PET_NODE_RANK"), msg)
    out = {}
    def go(key, want="Complete", steps=None, t=300, **kw):
        n = c.train(options=[Name(f"smk-{key}{sfx}")] + kw.pop("opts", []), **kw); seen = []
        try: c.wait_for_job_status(n, {"Running", "Complete"}, timeout=t, polling_interval=1)
        except RuntimeError: assert want == "Failed"
        j = c.wait_for_job_status(n, {want}, timeout=t, polling_interval=1, callbacks=[lambda x: seen.append(x.status)])
        got = [s.name for s in j.steps]
        if steps: assert sorted(got) == sorted(steps), got
        out[key] = (j.status, got, len(list(c.get_job_logs(n))), [e.reason for e in c.get_job_events(n)][:3]); return n
    t2 = dict(num_nodes=2, resources_per_node={"cpu": "100m"})
    go("fn", steps=["node-0", "node-1"], runtime=plain, trainer=CustomTrainer(func=fn, func_args={"msg": "hi"}, **t2))
    go("img", steps=["node-0"], runtime=plain, trainer=CustomTrainerContainer(image="busybox", num_nodes=1), opts=[TrainerCommand(["true"])])
    go("bad", want="Failed", runtime=plain, trainer=CustomTrainerContainer(image="busybox", num_nodes=1), opts=[TrainerCommand(["false"]), ActiveDeadlineSeconds(120)])
    if mpi: go("mpi", steps=["node-0", "node-1"], runtime=mpi, trainer=CustomTrainer(func=fn, num_nodes=2))
    if tune: go("tune", runtime=tune, trainer=BuiltinTrainer(config=TorchTuneConfig(epochs=1, num_nodes=1)))
    assert {f"smk-{k}{sfx}" for k in out} <= {j.name for j in c.list_jobs()}
    for k in out: c.delete_job(f"smk-{k}{sfx}")
    return out
if __name__ == "__main__": print(run(TrainerClient(), *sys.argv[1:4], sfx=f"-{int(time.time())}"))
