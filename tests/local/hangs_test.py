#!/usr/bin/python3
"""Training processes of local mode hang, and the daemon names the rank and its line; they report progress (docs/users/hangs.md)."""
import os
import subprocess
import textwrap
import time

import bed
import harness   # bed makes it known
from bed import wait_until
from hanging import HANGS, THRESHOLD, check_restart, check_suspect, job, job_that_restarts, run_each, stall_in, watch

# Sends a progress report as a program without the SDK does, and says what kind of token it has.
REPORT = textwrap.dedent("""
    import json, os, ssl, time, urllib.request
    token = os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]
    print("token", oct(os.stat(token).st_mode & 0o777), os.stat(token).st_uid == os.getuid())
    context = ssl.create_default_context(cafile=os.environ["KUBEFLOW_TRAINER_SERVER_CA_CERT"])
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    body = json.dumps({"trainerStatus": {"progressPercentage": 42, "lastUpdatedTime": now}}).encode()
    asked = urllib.request.Request(os.environ["KUBEFLOW_TRAINER_SERVER_URL"], body, {
        "Content-Type": "application/json", "Authorization": "Bearer " + open(token).read()})
    print("answer", urllib.request.urlopen(asked, context=context, timeout=20).status)
    print("paths", os.environ.get("PYTHONPATH"))
""")


GRACE = 10 if os.environ.get("LONG") else 45   # seconds; stages of ./check run beside each other


def kube_env(local):
    return {**local.env, "KUBECONFIG": str(local.state / "kubeconfig")}


def why(local, name, *flags):
    return subprocess.run([bed.TRAINER, "why", name, *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env=kube_env(local), timeout=60).stdout


def printed(local, name):
    return local.run("logs", name, code=None).stdout


def begin(local, tier):
    local.env["PATH"] = bed.torch() + ":" + local.env["PATH"]
    if tier:
        local.up_in_tier(tier)
    else:
        local.up()


def stall_of(local, name):
    return ((local.job(name) or {}).get("status") or {}).get("stall")


def check_hang(local, case):
    local.create(job(case, case, folder="."))
    stall = wait_until(f"{case} stalls", lambda: stall_of(local, case), 120, shown=lambda: printed(local, case))
    check_suspect(stall, case, printed(local, case))
    said = why(local, case)
    assert "Running (Stalled)" in said and "rank 2 (pod " in said, said
    return said


def loader(local, tier):
    """Rank 2 sleeps in the loader, and is named soon after the threshold: within ten seconds on a machine that does nothing else."""
    begin(local, tier)
    local.create(job("loader", "loader", folder="."))
    wait_until("rank 2 sleeps", lambda: "rank 2 hangs" in printed(local, "loader"), 90, shown=lambda: printed(local, "loader"))
    began = time.monotonic()
    stall = wait_until("the job stalls", lambda: stall_of(local, "loader"), THRESHOLD + GRACE, shown=lambda: printed(local, "loader"))
    print(f"tier {local.daemon()['tier']}: named after {time.monotonic() - began:.1f} s")
    check_suspect(stall, "loader", printed(local, "loader"))
    said = why(local, "loader")
    assert "Running (Stalled)" in said and "rank 2 (pod " in said and "fetch_from_storage" in said, said
    # The stacks were written before the status.
    stacks = why(local, "loader", "--stacks")
    assert stacks.startswith("rank 2 (pod ") and "fetch_from_storage" in stacks, stacks
    assert stacks.count("waits for others") >= 2, stacks


def test_a_rank_that_sleeps_in_the_loader(local):
    loader(local, None)


@harness.only_with_long
def test_a_rank_that_sleeps_in_tier_2(local):
    loader(local, 2)


@harness.only_with_long
def test_a_rank_that_sleeps_in_tier_3(local):
    loader(local, 3)


def test_a_rank_that_is_stopped(local):
    begin(local, None)
    assert "is stopped" in check_hang(local, "stop")


def test_a_hang_is_ended_by_a_restart(local):
    begin(local, None)
    local.create(job_that_restarts("once", folder="."))
    wait_until("once is Complete", lambda: (local.job("once").get("status") or {}).get("phase") == "Complete", 180, shown=lambda: why(local, "once"))
    check_restart(local.job("once")["status"], printed(local, "once"))


@harness.only_with_long
def test_each_hang(local):
    """TIMES=20: each of them so many times; CASES="gil exit": only these."""
    begin(local, None)

    def run(case, number):
        name = f"{case}-{number}"
        local.create(job(name, case, folder="."))
        result = watch(case, lambda: stall_in(local.job(name)), lambda: printed(local, name))
        local.run("stop", "--kill", name)
        return result

    run_each(os.environ.get("CASES", " ".join(HANGS)).split(), int(os.environ.get("TIMES", "1")), run, GRACE)


def progress(local, tier):
    if tier:
        local.up_in_tier(tier)
    else:
        local.up()
    made = bed.trainjob("reports", "")
    made["spec"]["trainer"].update(command=["python3", "-c", REPORT], env=[{"name": "PYTHONPATH", "value": "/of/the/job"}])
    local.create(made)
    local.wait_for("reports", "Complete")
    status = local.job("reports")["status"]
    assert status["trainerStatus"]["progressPercentage"] == 42, status
    said = printed(local, "reports")
    assert "token 0o600 True" in said and "answer 200" in said, said
    # The reporter is in front, and nothing of the job's own is lost.
    paths = said.split("paths ")[1].split()[0].split(":")
    assert "reporter" in paths[0] and paths[1] == "/of/the/job" and paths[-1].endswith("/.packages"), paths


def test_progress_of_a_job(local):
    progress(local, None)


def test_progress_of_a_job_in_tier_2(local):
    progress(local, 2)


def test_progress_of_a_job_in_tier_3(local):
    progress(local, 3)


def test_reports_go_on_after_a_kill_of_the_daemon(local):
    """A pod that runs reports to the next daemon, at the same address and with a token that it knows."""
    local.up()
    go = local.scratch / "go"
    made = bed.trainjob("lives", f"while [ ! -e {go} ]; do sleep 0.1; done; exec python3 -c \"$REPORT\"", env=[{"name": "REPORT", "value": REPORT}])
    local.create(made)
    local.wait_for("lives", "Running")
    local.kill_daemon()
    local.up()
    go.touch()
    local.wait_for("lives", "Complete")
    assert local.job("lives")["status"]["trainerStatus"]["progressPercentage"] == 42, printed(local, "lives")


def test_a_job_that_asks_for_none_gets_nothing(local):
    local.env["KUBEFLOW_TRAINER_SERVER_URL"] = "https://outside"   # of a pod in which the daemon may run
    local.up()
    made = bed.trainjob("plain", "env | grep -c KUBEFLOW_TRAINER; true")
    made["metadata"]["annotations"] = {"trainer.kubeflow.org/detect-hangs": "false", "trainer.kubeflow.org/report-progress": "false"}
    local.create(made)
    local.wait_for("plain", "Complete")
    assert printed(local, "plain").split()[-1] == "0", printed(local, "plain")


if __name__ == "__main__":
    bed.main(parallel=1 if harness.IS_LONG else 2)   # those of the tiers 2 and 3 would want the same ports
