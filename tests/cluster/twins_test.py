#!/usr/bin/python3
"""Twins: the API server of local mode answers as the genuine one does, to recorded requests, to random sequences of three field managers and to a
script of kubectl commands.

TWINS_RUNS is how many sequences (default 50, with LONG=yes 100), TWINS_SEED where they begin. Needs a control plane without node, and without webhooks.
"""
import os
import sys

import harness
from harness import Failed, run

GENUINE = os.environ.get("KUBECONFIG", "")


def same(program, *options):
    """Runs a program of tests/local, which starts local mode beside the genuine server; what it prints of a difference is shown."""
    env = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    done = run(sys.executable, str(harness.ROOT / "tests/local" / program), "--genuine", GENUINE, *options, check=False, env=env)
    if done.returncode != 0:
        raise Failed(f"{program}: {done.stdout[-6000:]}{done.stderr[-2000:]}")
    print(f"     {done.stdout.splitlines()[-1]}")


def test_requests_and_random_sequences(cluster):
    same("twins.py", "--seed", os.environ.get("TWINS_SEED", "1"), "--runs", os.environ.get("TWINS_RUNS", "100" if harness.IS_LONG else "50"))


@harness.only_with_long
def test_kubectl(cluster):
    same("kubectl_test.py")


if __name__ == "__main__":
    harness.main(__file__)
