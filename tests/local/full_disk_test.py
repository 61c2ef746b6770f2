#!/usr/bin/python3
"""A full disk: reads and deletes continue, all commands start, and each says what is wrong."""
import contextlib
import os
import subprocess
import threading
import time

import bed
from bed import DEFINITION, trainjob, wait_until


def fill(folder):
    """To the last byte."""
    with contextlib.suppress(OSError), open(folder / "filler", "ab", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


@contextlib.contextmanager
def small_disk(local, megabytes):
    """The state is on it."""
    if os.getuid() != 0:
        raise bed.Skipped("only root can make a small file system")
    local.state.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "tmpfs", local.state], check=False).returncode != 0:
        raise bed.Skipped("this machine mounts nothing")
    try:
        yield
    finally:
        local.run("down", code=None)
        subprocess.run(["umount", "-l", local.state], check=False)


@contextlib.contextmanager
def filled(folder):
    """Another program takes each byte as soon as it is free."""
    ended = threading.Event()

    def take():
        with open(folder / "filler", "ab", buffering=0) as file:
            while not ended.is_set():
                try:
                    file.write(b"x" * 4096)
                except OSError:
                    time.sleep(0.0002)
    taker = threading.Thread(target=take)
    taker.start()
    try:
        wait_until("the disk is full", lambda: os.statvfs(folder).f_bavail == 0)
        yield
    finally:
        ended.set()
        taker.join()
        (folder / "filler").unlink()


FULL = "the change was not stored: the disk is full: nothing was changed, and reads and deletes go on; make room, and send it again"


def test_the_disk_is_full(local):
    with small_disk(local, 16):
        local.up()
        local.create({**trainjob("kept", "true"), "spec": {**trainjob("kept", "true")["spec"], "suspend": True}})
        full = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"x": "y" * 900_000}}
        refusal = None
        for i in range(20):
            try:
                local.request("/api/v1/namespaces/default/configmaps", {**full, "metadata": {"name": f"c{i}"}}, "POST")
            except bed.Failed as error:
                refusal = str(error)
                break
        assert refusal and " 500 " in refusal and f'"message":"{local.state}/state.db: {FULL}"' in refusal, refusal
        assert local.job("kept")["spec"]["suspend"] is True   # reads continue
        # Deletes and a start have room that nothing else gets.
        fill(local.state)
        local.request(f"/apis/{bed.API}/namespaces/default/trainjobs/kept", method="DELETE")
        wait_until("it is gone", lambda: local.job("kept") is None)
        local.kill_daemon()
        fill(local.state)
        local.up()
        assert local.job("kept") is None and local.request("/api/v1/namespaces/default/configmaps/c0")
        subprocess.run(["mount", "-o", "remount,size=64m", local.state], check=True)
        said = local.run("run", local.write("job.yaml", trainjob("works", "echo there was room"))).stdout
        assert "[node-0] there was room\n" in said, said
        local.kill_daemon()
        local.up()
        assert local.request("/api/v1/namespaces/default/configmaps/c0")
        assert local.request(f"/api/v1/namespaces/default/configmaps/c{i}") is None   # as it was said
        local.request("/api/v1/namespaces/default/configmaps", {**full, "metadata": {"name": "later"}}, "POST")


def test_large_objects_are_deleted_from_a_full_disk(local):
    """Any number of them, also with finalizers, while another program takes all room; and each command says what is wrong."""
    path = "/apis/x.io/v1/namespaces/default/things"

    def create(name, size=1_560_000):
        meta = {"name": name, "finalizers": ["x.io/f"] if name.endswith("-f") else []}
        return local.request(path, {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": meta, "spec": "x" * size}, "POST")

    def refused(act):
        try:
            act()
        except bed.Failed as error:
            return f'"message":"{local.state}/state.db: {FULL}"' in str(error) and " 500 " in str(error)
        return False

    with small_disk(local, 64):
        local.up("--no-node")
        local.request("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION, "POST")
        names = [f"t{i}" + "-f" * (i % 2) for i in range(20)]
        for name in names:
            create(name)
        with filled(local.state):
            # There is some room in the file; then there is none, and it stays so.
            taken = 0
            while not refused(lambda: create(f"more-{taken}")):
                taken += 1
                assert taken < 10, taken
            for name in names[:15]:
                local.request(f"{path}/{name}", method="DELETE")
                if name.endswith("-f"):
                    assert local.request(f"{path}/{name}")["metadata"]["deletionTimestamp"]
                    local.patch(f"{path}/{name}", {"metadata": {"finalizers": None}})
                assert local.request(f"{path}/{name}") is None
            for _ in range(3):
                for command in (("status",), ("down",), ("up", "--no-node"), ("status",)):
                    done = local.run(*command)
                    said = done.stdout + done.stderr
                    assert command == ("down",) or f"the disk of {local.state} is full: " in said, (command, said)
            local.kill_daemon()
            local.run("up", "--no-node")
            local.request(f"{path}/{names[15]}", method="DELETE")
            local.patch(f"{path}/{names[15]}", {"metadata": {"finalizers": None}})
            assert {item["metadata"]["name"] for item in local.request(path)["items"]} == {*names[16:], *(f"more-{i}" for i in range(taken))}
        assert create("later")
        assert "is full" not in local.run("status").stdout
        assert (local.state / "reserve").stat().st_blocks * 512 >= 2 << 20


if __name__ == "__main__":
    bed.main()
