#!/usr/bin/python3
"""Many jobs, and a daemon that is killed while they run. LONG=yes: at the size of the goals, minutes each."""
import random
import time

import bed
from bed import UID, trainjob, wait_until
from harness import IS_LONG

CPUS = 2
MOST_MEMORY = 60   # MB


def test_more_jobs_than_the_machine_can_run_at_once(local):
    """Two nodes each; all are Complete, and never more pods run than there is room for."""
    jobs = 200 if IS_LONG else 24
    local.up("--capacity", f"cpu={CPUS}")
    times = local.scratch / "times"
    for i in range(jobs):
        script = f"echo + $(date +%s%N) >> {times}; sleep 0.1; echo - $(date +%s%N) >> {times}"
        local.create(trainjob(f"crowd-{i}", script, nodes=2, requests={"cpu": "500m"}))

    def ended():
        phases = [job.get("status", {}).get("phase") for job in local.request(bed.TRAINJOBS)["items"]]
        assert "Failed" not in phases, phases
        return phases.count("Complete") == jobs

    wait_until(f"{jobs} jobs are Complete", ended, seconds=15 + 2 * jobs, every=0.5)
    running = most = 0
    for sign, _ in sorted((line.split() for line in local.lines("times")), key=lambda words: int(words[1])):
        running += 1 if sign == "+" else -1
        most = max(most, running)
    assert len(local.lines("times")) == 4 * jobs and 1 < most <= CPUS / 0.5, (len(local.lines("times")), most)
    used = bed.peak_memory(local.daemon()["pid"])
    print(f"     {jobs} jobs: {used:.0f} MB at most, {most} pods at once")
    assert used < MOST_MEMORY, used


def test_the_daemon_is_killed_at_random_moments(local):
    """Each pod writes its uid when it starts: each uid is there once, all jobs end, and no process is left. The first kills come while the
    jobs start; at the others all of them run, for they wait for a file that is written after the last kill."""
    jobs, early, kills = (20, 10, 50) if IS_LONG else (8, 3, 4)
    chance = random.Random(7)
    options = ("--capacity", f"cpu={jobs}")
    local.up(*options)
    uids, gate = local.scratch / "uids", local.scratch / "gate"

    def kill():
        time.sleep(chance.uniform(0, 0.5))   # no synchronisation: the moment is meant to be any
        local.kill_daemon()

    for i in range(jobs):
        script = f"echo $POD_UID >> {uids}; until [ -e {gate} ]; do sleep 0.2; done; sleep {chance.uniform(0, 1):.1f}; echo ended"
        local.create(trainjob(f"kill-{i}", script, requests={"cpu": "500m"}, env=[UID]))
    for _ in range(early):
        kill()
        local.up(*options)
    for i in range(jobs):
        local.wait_for(f"kill-{i}", "Running", seconds=60)
    for _ in range(kills):
        kill()
        local.up(*options)
        phases = [job["status"]["phase"] for job in local.request(bed.TRAINJOBS)["items"]]
        assert phases == ["Running"] * jobs and len(local.lines("uids")) == jobs, (phases, local.lines("uids"))
    gate.write_text("")
    for i in range(jobs):
        local.wait_for(f"kill-{i}", "Complete", seconds=60)
    found = local.lines("uids")
    assert len(found) == len(set(found)) == jobs, (len(found), len(set(found)))
    for i in range(jobs):
        assert local.run("logs", f"kill-{i}").stdout == "[node-0] ended\n"
    # Before `down`, which would end what is left: only the daemon.
    daemon = local.daemon()["pid"]
    wait_until("no process of a pod is left", lambda: [pid for pid in local.left_over() if not bed.is_zombie(pid)] == [daemon], seconds=10)


if __name__ == "__main__":
    bed.main()
