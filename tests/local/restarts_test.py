#!/usr/bin/python3
"""Processes of local mode die, and torchrun starts them again in their pods (docs/users/restarts.md)."""
import bed
import harness   # bed makes it known
from bed import wait_until
from hangs_test import begin, printed, why
from restarting import check_exhausted, check_loop, check_once, check_why, job


def ended(local, name, phase):
    status = wait_until(f"{name} is {phase}", lambda: (found := (local.job(name).get("status") or {})).get("phase") == phase and found, 240,
                        shown=lambda: why(local, name) + printed(local, name))
    return status


def once(local, tier):
    begin(local, tier)
    local.create(job("once", "once", 3, folder="."))
    check_once(ended(local, "once", "Complete"), printed(local, "once"))
    check_why(why(local, "once"))


def test_processes_that_fail_again_and_again(local):
    """First, because it takes longest."""
    begin(local, None)
    local.create(job("exhausted", "exhausted", 1, folder=".", maxRestarts=1))
    local.create(job("loop", "loop", 20, folder=".", maxRestarts=5))
    check_loop(ended(local, "loop", "Failed"))
    check_exhausted(ended(local, "exhausted", "Complete"), printed(local, "exhausted"))


def test_a_process_that_is_killed(local):
    once(local, None)


def test_a_process_that_is_killed_in_tier_2(local):
    once(local, 2)


@harness.only_with_long
def test_a_process_that_is_killed_in_tier_3(local):
    once(local, 3)


if __name__ == "__main__":
    bed.main(parallel=1 if harness.IS_LONG else 2)   # those of the tiers 2 and 3 would want the same ports
