#!/usr/bin/python3
"""The main job of local mode (docs/examples/torch-ddp.yaml), as root and as an ordinary user, in each tier that this machine offers."""
import os
import re
import subprocess

import bed
import harness   # bed makes it known

RAN = []


def user_of(local):
    return "an ordinary user" if local.uid else "root" if os.getuid() == 0 else "this user"


def main_job(local, tier):
    local.env["PATH"] = bed.torch() + ":" + local.env["PATH"]
    if tier:
        local.up_in_tier(tier)
    done = local.run("run", bed.EXAMPLES / "torch-ddp.yaml")
    ranks = set(re.findall(r"^\[node-(\d)\] rank (\d) \w+ y = 3\.0", done.stdout, re.MULTILINE))
    # Two nodes of two processes; which node has which ranks, torchrun decides.
    assert {rank for _, rank in ranks} == set("0123") and len({node for node, _ in ranks}) == 2, done.stdout
    assert len(re.findall(r"step \d+: loss", done.stdout)) == 40, done.stdout
    assert "images are not used" in done.stderr and "Complete" in done.stderr, done.stderr
    found = local.daemon()["tier"]
    assert found == tier or not tier, found
    RAN.append(f"tier {found} as {user_of(local)}")


def ordinary(local):
    if os.getuid() != 0:
        raise bed.Skipped("only root can become another user")
    return bed.Local(local.folder / "ordinary", uid=bed.ORDINARY)


def test_main_job(local):
    main_job(local, None)


@harness.only_with_long
def test_main_job_in_tier_1(local):
    main_job(local, 1)


def test_main_job_in_tier_2(local):
    main_job(local, 2)


@harness.only_with_long
def test_main_job_in_tier_3(local):
    main_job(local, 3)


def as_ordinary(local, act):
    user = ordinary(local)
    try:
        act(user)
    finally:
        user.end()


def test_ordinary_user(local):
    as_ordinary(local, lambda user: main_job(user, None))


@harness.only_with_long
def test_ordinary_user_in_tier_1(local):
    as_ordinary(local, lambda user: main_job(user, 1))


@harness.only_with_long
def test_ordinary_user_in_tier_2(local):
    as_ordinary(local, lambda user: main_job(user, 2))


def test_ordinary_user_in_tier_3(local):
    as_ordinary(local, lambda user: main_job(user, 3))


def container(local):
    """The process is root of a user namespace, without rights, in which no other may be made, as in a container without user namespaces."""
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    inner = bed.Local(local.folder / "container", wrapper=["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh"])
    if subprocess.run([*inner.wrapper, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise bed.Skipped("this machine has no user namespaces, which the tests above have shown already")
    return inner


def without_user_namespaces(local, tier):
    inner = container(local)
    try:
        main_job(inner, tier)
        assert inner.daemon()["tier"] > 1, inner.daemon()
        RAN[-1] = f"tier {inner.daemon()['tier']} in a container without user namespaces"
    finally:
        inner.end()


def test_without_user_namespaces(local):
    without_user_namespaces(local, None)


@harness.only_with_long
def test_without_user_namespaces_in_tier_2(local):
    without_user_namespaces(local, 2)


@harness.only_with_long
def test_without_user_namespaces_in_tier_3(local):
    without_user_namespaces(local, 3)


def test_without_user_namespaces_there_is_no_tier_1(local):
    said = container(local).run("up", "--tier", 1, code=1).stderr
    assert said == "trainer: local up: tier 1 is not to be had on this machine (user namespace: No space left on device): use tier 2\n", said


# Node 0 takes the port of every torchrun job, node 1 connects; both hold on to it for a while.
PAIR = r"""
import os, socket, sys, time
name, port, rank = os.environ["PET_MASTER_ADDR"], int(os.environ["PET_MASTER_PORT"]), int(os.environ["PET_NODE_RANK"])
if rank == 0:
    server = socket.create_server(("", port))
    peer = server.accept()[0]
    began = time.time()
    assert peer.recv(99).decode() == JOB
    time.sleep(SECONDS)
    with open(FILE, "a") as f:
        print(began, time.time(), file=f)
else:
    while True:
        try:
            peer = socket.create_connection((name, port), timeout=5)
            break
        except OSError:
            time.sleep(0.1)
    peer.sendall(JOB.encode())
    time.sleep(SECONDS + 0.5)
"""


def side_by_side(local, tier, is_together):
    local.up_in_tier(tier)
    for name in ("one", "two"):
        job = bed.trainjob(name, "", nodes=2, requests={"cpu": "100m"})
        # Long enough that both are at it, also where their processes begin seconds apart.
        values = f"JOB, FILE, SECONDS = {name!r}, {str(local.scratch / 'times')!r}, {5 if is_together else 1.5}\n"
        job["spec"]["trainer"]["command"] = ["python3", "-c", values + PAIR]
        local.create(job)
    for name in ("one", "two"):
        local.wait_for(name, "Complete", seconds=40)
    (begin1, end1), (begin2, end2) = (tuple(map(float, line.split())) for line in local.lines("times"))
    assert (begin1 < end2 and begin2 < end1) == is_together, local.lines("times")
    RAN.append(f"tier {tier}: two jobs on one port {'side by side' if is_together else 'in turn'} as {user_of(local)}")


def test_two_jobs_on_one_port_in_tier_1(local):
    side_by_side(local, 1, True)


def test_two_jobs_on_one_port_in_tier_2(local):
    side_by_side(local, 2, True)


@harness.only_with_long
def test_two_jobs_on_one_port_in_tier_3(local):
    side_by_side(local, 3, False)


def test_two_jobs_of_an_ordinary_user_on_one_port_in_tier_1(local):
    as_ordinary(local, lambda user: side_by_side(user, 1, True))


@harness.only_with_long
def test_two_jobs_of_an_ordinary_user_on_one_port_in_tier_2(local):
    as_ordinary(local, lambda user: side_by_side(user, 2, True))


def test_two_jobs_of_an_ordinary_user_on_one_port_in_tier_3(local):
    as_ordinary(local, lambda user: side_by_side(user, 3, False))


if __name__ == "__main__":
    bed.main(RAN)
