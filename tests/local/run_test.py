#!/usr/bin/python3
"""`trainer local run -- COMMAND`, and the files that `trainer run --code` packs, compared with git."""
import base64
import io
import json
import os
import random
import re
import shutil
import subprocess
import tarfile

import bed

SH = ("--runtime", "torch-distributed", "--", "sh", "-c")
TRAIN = """import os
from model import NAME
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "trains", NAME)
"""


def test_a_command_runs_where_its_code_is(local):
    code = local.folder / "code"
    code.mkdir()
    (code / "model.py").write_text("NAME = 'a net'\n")
    (code / "train.py").write_text(TRAIN)
    local.env["PATH"] = bed.torch() + ":" + local.env["PATH"]
    done = local.run("run", "--nodes", 2, "--procs", 1, "--name", "here", "--env", "X=1", "--code", code, "--", "python3", "train.py")
    assert done.stderr.startswith("-- TrainJob here: 2 nodes, 1 process a node: python3 train.py\n"), done.stderr
    assert set(re.findall(r"rank (\d) of 2 trains a net", done.stdout)) == {"0", "1"}, done.stdout
    # The folder itself is used, so an edit counts at once; a job that has ended is replaced.
    (code / "model.py").write_text("NAME = 'another net'\n")
    done = local.run("run", "--name", "here", "--code", code, "--", "python3", "train.py")
    assert "rank 0 of 1 trains another net" in done.stdout, done.stdout


def in_tier(local, tier):
    local.up_in_tier(tier)
    code = local.folder / "code"
    code.mkdir()
    done = local.run("run", "--code", code, "--env", "A=b c", *SH, "pwd; echo $A")
    assert re.findall(r"^\[node-0\] (.*)$", done.stdout, re.MULTILINE) == [str(code), "b c"], done.stdout


def test_the_folder_in_tier_1(local):
    in_tier(local, 1)


def test_the_folder_in_tier_2(local):
    in_tier(local, 2)


def test_the_folder_in_tier_3(local):
    in_tier(local, 3)


def test_a_failure_ends_with_its_exit_status(local):
    done = local.run("run", "--name", "fails", *SH, "echo no data; exit 7", code=7)
    assert "no data" in done.stdout and "TrainJob default/fails: Failed" in done.stdout, done.stdout
    assert "container node ended with exit code 7" in done.stdout, done.stdout


def test_wrong_words(local):
    for words, wanted in (((), "there is nothing to run: name a file, or write a command behind --"), (("--",), "there is nothing to run"),
                          (("x.yaml", "--", "true"), "x.yaml: a file and a command are two things to run"),
                          (("--gpus", "1", "x.yaml"), "are for a command behind --"), (("--dry-run", "x.yaml"), "`trainer render x.yaml`"),
                          (("--env", "A", "--", "true"), "--env A: write NAME=VALUE")):
        done = local.run("run", *words, code=2)
        assert wanted in done.stderr and done.stderr.count("\n") == 1, done.stderr
    done = local.run("run", "--runtime", "none", "--", "true", code=1)
    assert "there is no such ClusterTrainingRuntime: name one" in done.stderr, done.stderr
    done = local.run("run", "--code", "/none", "--", "python3", code=1)
    assert "--code /none: there is no such folder" in done.stderr, done.stderr


def test_a_dry_run_starts_nothing(local):
    done = local.run("run", "--dry-run", "-o", "json", "--name", "dry", "--queue", "q", "--code", local.folder, "--", "python3", "train.py")
    job = json.loads(done.stdout)["items"][0]
    assert job["metadata"] == {"name": "dry", "labels": {"kueue.x-k8s.io/queue-name": "q"}, "annotations": {
        "trainer.kubeflow.org/torch-launcher": "torchrun", "trainer.kubeflow.org/working-dir": str(local.folder)}}, job
    assert not local.state.exists()


def packed(folder):
    """The files that `trainer run` would send, as in a pod, and what it says."""
    done = subprocess.run([bed.TRAINER, "run", "--dry-run", "-o", "json", "--runtime", "torch-distributed", "--name", "x", "--code", folder, "--", "true"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    parts = {key: part for o in json.loads(done.stdout)["items"] if o["kind"] == "ConfigMap" for key, part in o["binaryData"].items()}
    return b"".join(base64.b64decode(parts[key]) for key in sorted(parts)), done.stderr


def names_of(packed_tar):
    with tarfile.open(fileobj=io.BytesIO(packed_tar), mode="r:gz") as tar:
        return [m.name for m in tar]


def git(folder, *words, text=None):
    return subprocess.run(["git", "-c", "core.excludesFile=/dev/null", "-C", folder, *words], input=text, stdout=subprocess.PIPE, text=True, check=False).stdout


PIECES = ["a", "b", "ab", "*", "?", "**", "a*", "*b", "[ab]", "[!a]", "[^b]*", "a?", "\\*", "[[:alpha:]]", "[a-b]b", "**b", "a\\b"]
NAMES = ["a", "b", "ab", "ba", "aab", "*", "x"]


def random_pattern(draw):
    parts = [draw.choice(PIECES) for _ in range(draw.choice([1, 1, 1, 2, 2, 3]))]
    return draw.choice(["", "", "", "!"]) + draw.choice(["", "", "/"]) + "/".join(parts) + draw.choice(["", "", "", "/", " ", "\r"])


def random_tree(folder, draw, depth=0):
    for name in NAMES:
        if depth < 3 and draw.random() < 0.4:
            (folder / name).mkdir()
            random_tree(folder / name, draw, depth + 1)
        elif draw.random() < 0.7:
            (folder / name).write_text("x")


def test_git_ignores_the_same_files(local):
    """Random trees with random patterns in several folders, some of them above the packed folder: git lists the same files."""
    for seed in range(int(os.environ.get("IGNORE_RUNS", "60"))):
        draw = random.Random(seed)
        top = local.scratch / "tree"
        shutil.rmtree(top, ignore_errors=True)
        top.mkdir()
        random_tree(top, draw)
        git(top, "init", "-q")
        folders = [top, *(p for p in top.rglob("*") if p.is_dir() and ".git" not in p.parts)]
        for folder in [top, *draw.sample(folders, min(2, len(folders)))]:
            (folder / ".gitignore").write_text("\n".join(random_pattern(draw) for _ in range(draw.randrange(1, 6))))
        (top / ".git/info/exclude").write_text(random_pattern(draw) + "\n")
        chosen = draw.choice([top, top, draw.choice(folders)])
        ignored = git(top, "check-ignore", str(chosen)).strip()
        if ignored:
            chosen = top
        listed = git(chosen, "ls-files", "-co", "--exclude-standard", "-z").split("\0")[:-1]
        sent = [n for n in names_of(packed(chosen)[0]) if not (chosen / n).is_dir()]
        rules = {str(p.relative_to(top)): p.read_text() for p in top.rglob(".gitignore")}
        assert sorted(sent) == sorted(listed), f"seed {seed}, {chosen.relative_to(top)}: {set(sent) ^ set(listed)}; {rules}"


def test_what_is_never_sent(local):
    top = local.scratch / "tree"
    (top / "src").mkdir(parents=True)
    (top / ".aws").mkdir()
    (top / ".git").mkdir()
    outside = local.scratch / "outside"
    outside.write_text("x")
    for name in ("train.py", ".env", "src/id_rsa", ".aws/credentials", "tokenizer.json", "run.sh", ".git/config", "x.bin", "keep.bin"):
        (top / name).write_text(name)
    (top / "run.sh").chmod(0o755)
    (top / ".trainerignore").write_text("*.bin\n!keep.bin\n!.env\n")
    (top / "out").symlink_to(outside)
    (top / "broken").symlink_to("nothing")
    (top / "in").symlink_to("src/../train.py")
    (top / "src/up").symlink_to(top / "train.py")
    os.mkfifo(top / "pipe")
    (top / ("long" * 40)).write_text("long")
    tar, said = packed(top)
    assert sorted(names_of(tar)) == sorted([".trainerignore", "in", "keep.bin", "long" * 40, "run.sh", "src", "src/up", "tokenizer.json", "train.py"])
    for line in (".env (its name is that of a secret)", "src/id_rsa (its name", ".aws (its name", "out (the link leads out of the folder)",
                 "broken (the link leads to nothing)", "pipe (it is no file)"):
        assert f"-- code: left out: {line}" in said, said
    # GNU tar and Python unpack the same; time and order of the files do not matter.
    gnu, python = local.scratch / "gnu", local.scratch / "python"
    for folder in (gnu, python):
        folder.mkdir()
    subprocess.run(["tar", "-xzof", "-"], input=tar, cwd=gnu, check=True)
    subprocess.run(["python3", "-c", "import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode='r|gz').extractall()"], input=tar, cwd=python,
                   check=True)
    assert subprocess.run(["diff", "-r", gnu, python], check=False).returncode == 0
    assert (gnu / "src/up").read_text() == "train.py" and os.access(gnu / "run.sh", os.X_OK)
    os.utime(top / "train.py", (1, 1))
    assert packed(top)[0] == tar


if __name__ == "__main__":
    bed.main()
