#!/usr/bin/python3
"""`trainer run --watch` in real pods (docs/users/run.md): edits restart the command in its pods, or make the job again.

frameworks calls it. The pods' image is the test bed's PyTorch image.
"""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
import harness  # noqa: E402
import run_test  # noqa: E402  (that of tests/cluster)
from harness import TRAINER, wait_until  # noqa: E402
from watching import Watched  # noqa: E402

GROUP = "trainer.kubeflow.org"


def script(version, ends="time.sleep(1000)"):
    return f"""import os, sys, time
print("rank", os.environ["RANK"], "begins version {version}", flush=True)
import torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
print("rank", dist.get_rank(), "has met all of version {version}", flush=True)
{ends}
"""


def watched(cluster, name, text, *words, config=None):
    code = pathlib.Path(tempfile.mkdtemp())
    (code / "train.py").write_text(text)
    return Watched([TRAINER, "run", "-n", cluster.namespace, *(("--kubeconfig", config) if config else ()), "--watch", "--name", name, "--code", code,
                    *words, "--", "python3", "train.py"], code)


def all_of(version, ranks=2):
    return [f"rank {rank} has met all of version {version}" for rank in range(ranks)]


def test_edits_restart_in_place(cluster):
    run = watched(cluster, "edited", script(1), "--nodes", "2", "--procs", "1")
    run.wait_for(*all_of(1), seconds=180)
    pods = cluster.pods_of("edited")
    for version in (2, 3):
        run.edit(train__py=script(version))
        print(f"ran from the edit to the first line in {run.wait_for(f'rank 0 begins version {version}'):.1f} s")
        run.wait_for(*all_of(version))
    assert "-- code: 1 file changed (train.py); restarting in place in 2 pods" in run.said(), run.said()
    # The second of two edits counts, however soon it comes.
    run.edit(train__py=script(4), helper__py="X = 1\n")
    run.wait_for("-- code: 2 files changed")
    run.edit(train__py=script(5))
    run.wait_for(*all_of(5))
    # A module is edited without another size, which Python could not see by its time.
    for number in (1, 2, 3):
        run.edit(helper__py=f"X = {number}\n", train__py=script(6, f"import helper\nprint('helper', helper.X, 'of {number}', flush=True)\ntime.sleep(1000)"))
        run.wait_for(f"helper {number} of {number}")
    # A broken script waits for the next edit. A module that is deleted is gone in the pods, too.
    (run.code / "helper.py").unlink()
    run.edit(train__py=script(7, "import helper"))
    run.wait_for("ModuleNotFoundError: No module named 'helper'", "it waits for an edit of the code")
    run.edit(train__py=script(8))
    run.wait_for(*all_of(8))
    job = cluster.get("trainjob", "edited")
    assert cluster.pods_of("edited") == pods and job["status"]["phase"] == "Running", job["status"]
    assert script_of(cluster, "edited") == script(8)
    # An end is an end; the next edit makes the job again.
    run.edit(train__py=script(9, "sys.exit(0)"))
    run.wait_for("-- waiting for an edit; Ctrl-C ends", seconds=120)
    run.edit(train__py=script(10))
    run.wait_for("the job has ended, so the job begins again as a new one", *all_of(10), seconds=180)
    assert cluster.get("trainjob", "edited")["metadata"]["uid"] != job["metadata"]["uid"]
    assert run.interrupt() == 1
    wait_until("the job is suspended", lambda: cluster.get("trainjob", "edited")["spec"].get("suspend"))


def script_of(cluster, name):
    """The script in the ConfigMaps, which a pod that is made later would have."""
    parts = [c for c in cluster.list("configmaps") if c["metadata"]["name"].startswith(f"{name}-code-")]
    return run_test.unpacked(parts)["train.py"]


def test_without_the_right_to_exec_the_job_is_made_again(cluster):
    config = run_test.user(cluster, "noexec", *run_test.MAY_CREATE_JOBS, ("", "configmaps", ["create", "get", "patch", "delete"]),
                           ("", "pods", ["get", "list", "watch"]), ("", "pods/log", ["get"]))
    run = watched(cluster, "noexec", script(1), config=config)
    run.wait_for(*all_of(1, 1), seconds=180)
    pods = cluster.pods_of("noexec")
    run.edit(train__py=script(2))
    run.wait_for("you may not run commands in pods (get and create pods/exec", *all_of(2, 1), seconds=180)
    assert not pods & cluster.pods_of("noexec"), run.said()
    assert run.interrupt() == 1


if __name__ == "__main__":
    harness.main(__file__)
