#!/usr/bin/python3
"""./quickstart in its local form, in a clone in which the program is built, by an ordinary user; and the two tools that it uses."""
import os
import pathlib
import re
import shutil
import subprocess
import time

import bed
from bed import ROOT

LONGEST = 10   # seconds that a second run may take besides the training


def clone_of(user):
    """A clone of this user's with the program as it is tested. ninja is replaced by one that finds nothing to do: what it looks at may be root's,
    such as a Python that meson found in /root."""
    clone = user.folder / "clone"
    clone.mkdir()
    # Neither what is hidden nor what is built.
    subprocess.run(["cp", "-r", *(path for path in ROOT.iterdir() if not path.name.startswith((".", "build"))), clone], check=True)
    (clone / "build").mkdir()
    shutil.copy(ROOT / "build/configured", clone / "build")   # of ./check
    shutil.copy(bed.TRAINER, clone / "build/trainer")
    programs = user.folder / "bin"
    programs.mkdir()
    (programs / "ninja").write_text("#!/bin/sh\n")
    (programs / "ninja").chmod(0o755)
    user.env["PATH"] = f"{programs}:{user.env['PATH']}"
    if user.uid is not None:
        subprocess.run(["chown", "-R", f"{user.uid}:{user.uid}", clone], check=True)
    return clone


def run(user, clone, *command, timeout=300):
    """The seconds it took, and what it printed; it must end with 0."""
    began = time.monotonic()
    done = subprocess.run([*user.wrapper, *command], cwd=clone, env=user.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=timeout)
    assert done.returncode == 0, done.stdout[-3000:]
    return time.monotonic() - began, done.stdout


def check_output(said):
    for words in ("Complete, ", " seconds after you pressed enter. Now a job whose script breaks:", "step 400: loss",
                  "TrainJob default/failing: Failed", "FileNotFoundError: /data/train.parquet", "What to try next:"):
        assert words in said, said
    assert "installing" not in said, said


def test_an_ordinary_user_runs_it(local):
    """In a terminal the curve of the loss is drawn. The second time it takes little more than the training."""
    bed.torch()   # the package, which only root can install
    user = bed.Local(local.folder / "user", uid=bed.ORDINARY if os.getuid() == 0 else None)
    for name in ("KUBECONFIG", "TRAINER_LOCAL_STATE"):
        user.env.pop(name, None)
    clone = clone_of(user)
    user.env["TRAINER_LOCAL_STATE"] = str(clone / ".cache/quickstart/local")   # where it has its state, for the commands below
    try:
        _, said = run(user, clone, "script", "-qec", "./quickstart", "/dev/null")
        check_output(said)
        assert re.search("\x1b\\[\\d+A\x1b\\[J", said) and "└ loss, " in said and "█" in said, said
        load = os.getloadavg()[0]
        took, said = run(user, clone, "./quickstart")
        check_output(said)
        assert "\x1b" not in said and "└ loss" not in said, said
        user.env["PATH"] = f"{clone / '.cache/quickstart/torch'}:{user.env['PATH']}"
        training, _ = run(user, clone, "build/trainer", "local", "run", "docs/examples/torch-ddp.yaml")
        is_busy = max(load, os.getloadavg()[0]) > 2 * os.cpu_count()   # with what others do
        print(f"     the second run of ./quickstart {took:.1f} s, the training alone {training:.1f} s{', on a busy machine' if is_busy else ''}")
        assert is_busy or took < LONGEST + training, (took, training)
        run(user, clone, "./quickstart", "--down")
        bed.wait_until("no process is left", lambda: not user.left_over(), seconds=15)
    finally:
        subprocess.run([*user.wrapper, clone / "build/trainer", "local", "down"], env=user.env, check=False, stderr=subprocess.DEVNULL)


def test_the_curve_is_drawn_in_a_terminal_only(local):
    lines = "\n".join(["before", *(f"[node-0] step {i}: loss {1 / (i + 1):.3f}" for i in range(20)), "after"]) + "\n"
    (local.scratch / "lines").write_text(lines)
    command = f"{ROOT}/tools/loss-curve < {local.scratch}/lines"
    done = subprocess.run(["script", "-qec", command, "/dev/null"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True,
                          env={**local.env, "LINES": "24", "COLUMNS": "80", "LC_ALL": "C.UTF-8"})
    # Each drawing goes over the one before. The last one has all values, from the highest at the left to the lowest at the right.
    drawings = done.stdout.replace("\r", "").split("\x1b[7A\x1b[J")
    assert len(drawings) == 20, done.stdout
    rows = drawings[-1].splitlines()
    assert rows[0] == "after" and rows[-1] == " " * 11 + "└ loss, now 0.05", rows
    assert rows[1].startswith("         1 ┤█ ") and rows[6].startswith("      0.05 ┤████") and len(rows) == 8, rows
    assert "\n".join(line for drawing in drawings for line in drawing.splitlines() if line in lines.splitlines()) + "\n" == lines, done.stdout
    done = subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == lines, done.stdout


def test_an_installed_torch_of_the_user_is_taken(local):
    """Not one that is Debian's, nor an environment without torch."""
    def environment(name, folder):
        """One whose python3 finds torch in this folder, or nowhere."""
        programs = local.scratch / name / "bin"
        programs.mkdir(parents=True)
        found = f'type("Spec", (), {{"origin": "{folder}/torch/__init__.py"}})' if folder else "None"
        (programs / "python3").write_text("#!/bin/sh\nexec /usr/bin/python3 -c 'import importlib.util as u\n"
                                          f"u.find_spec = lambda name: {found}\n'\"$2\"\n")
        (programs / "torchrun").write_text("#!/bin/sh\n")
        for program in programs.iterdir():
            program.chmod(0o755)
        return programs

    def chosen(programs):
        env = {**local.env, "VIRTUAL_ENV": str(programs.parent), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        done = subprocess.run([ROOT / "tools/torch", local.scratch / "made"], env=env, stdout=subprocess.PIPE, text=True, check=True)
        return pathlib.Path(done.stdout.strip())

    own = environment("own", local.scratch / "own/lib")
    assert chosen(own) == own and not (local.scratch / "made").exists()
    assert chosen(environment("debians", "/usr/lib/python3/dist-packages")) == local.scratch / "made"
    assert chosen(environment("empty", "")) == local.scratch / "made"
    assert os.access(local.scratch / "made/torchrun", os.X_OK)


if __name__ == "__main__":
    bed.main()
