#!/usr/bin/python3
"""Pages that users copy from (pages.py lists them, and the marks of their blocks): yaml renders as `kubectl apply` takes it, commands and
their flags exist, output is what is printed, links lead somewhere, and what is quoted of `trainer why` is what it says. Needs build/trainer
and $KUBECTL, no cluster. tests/cluster/docs_test.py asks an API server; tests/e2e runs the blocks with the mark `run`.
"""
import functools
import os
import re
import shlex
import subprocess
import sys

import yaml

import pages
from pages import API, KINDS, ROOT, TRAINER

KUBECTL = os.environ.get("KUBECTL", "kubectl")
# Other programs, whose flags are not checked.
OTHERS = {"cd", "cp", "curl", "eval", "grep", "head", "helm", "meson", "podman", "python3", "sed", "skopeo", "sort", "source", "tail", "ssh"}
GROUPS = {"config", "create", "rollout"}    # of kubectl: their subcommands have the flags
OFFLINE = {"blueprints", "crds", "rbac", "render", "runtimes", "version"}
KUBECTL_OPTIONS = set()    # of every subcommand
failures, unchecked, checked = [], [], 0


def check(where, is_right, complaint):
    global checked
    checked += 1
    if not is_right:
        failures.append(f"{where}: {complaint}")


@functools.cache
def flags_of(*command):
    done = subprocess.run([*command, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return set(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", done.stdout)) if done.returncode == 0 else None


def commands_of(block):
    """The words of each command, without redirections and variables in front."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    for line in lines:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words, rest = [], list(lexer)
        while rest:
            word = rest.pop(0)
            if set(word) <= set("<>&") and set(word) & set("<>"):
                rest.pop(0)
                if words and words[-1].isdigit():
                    words.pop()
            elif set(word) <= set("|&;()"):
                if words:
                    yield words
                words = []
            elif words or not re.match(r"\w+=", word):
                words.append(word)
        if words:
            yield words


def check_command(block, words, files):
    at, known = 1, None
    if words[:2] == ["kubectl", "trainer"]:
        words = words[1:]
    if words[0] == "trainer":
        known = flags_of(TRAINER, *words[1:3 if words[1] == "local" else 2])
        check(block, known is not None, f"trainer has no subcommand {words[1]}")
        if words[1] == "render" and block.page in pages.USERS:
            for file in (w for w in words[2:] if not w.startswith("-")):
                check(block, file in files, f"the page has no {file}")
    elif words[0] == "kubectl":
        while words[at] in ("-n", "--namespace"):
            at += 2
        depth = 3 if words[at:at + 2] == ["create", "secret"] else 2 if words[at] in GROUPS else 1
        known = flags_of(KUBECTL, *words[at:at + depth])
        check(block, known is not None, f"kubectl has no {words[at]}")
        if "-f" in words and words[at] != "logs" and block.page in pages.USERS:
            check(block, words[words.index("-f") + 1] in {"-", *files}, f"the page has no {words[words.index('-f') + 1]}")
    else:
        is_here = words[0].startswith("./") and (ROOT / words[0]).is_file()
        check(block, is_here or words[0] in OTHERS, f"unknown program {words[0]}")
    for word in words[at:] if known else ():
        flag = word.split("=")[0] if word.startswith("--") else word[:2]
        check(block, not re.match(r"--?[a-zA-Z]", word) or flag in known or flag in KUBECTL_OPTIONS, f"`{shlex.join(words)}`: unknown flag {flag}")


def probe(runtime):
    """A job of a runtime that the block gives none."""
    return {"apiVersion": API, "kind": "TrainJob", "metadata": {"name": "probe"},
            "spec": {"runtimeRef": {"kind": runtime["kind"], "name": runtime["metadata"]["name"]}, "trainer": {"command": ["torchrun", "train.py"]}}}


def check_yaml(block):
    objects = list(block.objects())
    own = [o for o in objects if o["kind"] in KINDS]
    for other in objects:
        check(block, other.get("apiVersion") and other.get("metadata", {}).get("name"), "an object without apiVersion or name")
    used = {o["spec"]["runtimeRef"]["name"] for o in own if o["kind"] == "TrainJob"}
    own += [probe(o) for o in own if o["kind"].endswith("Runtime") and o["metadata"]["name"] not in used]
    if not own:
        return
    done = subprocess.run([TRAINER, "render", "-"], input=yaml.safe_dump_all(own), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    announced = block.marks.get("warns")
    others = [line for line in done.stderr.splitlines() if not (announced and announced in line)]
    check(block, done.returncode == 0 and not others, f"trainer render: exit {done.returncode}\n{done.stderr}")
    check(block, not announced or announced in done.stderr, f"there is no warning `{announced}`")


def check_output(block, text):
    """A block of commands that need no cluster is run, and prints what the block of text below it shows."""
    with pages.folder_of(block.page) as (folder, path):
        done = subprocess.run(["bash", "-e"], input=block.text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              cwd=folder, env={**os.environ, "PATH": path}, check=False)
    check(block, done.returncode == 0, f"exit {done.returncode}\n{done.stdout}")
    check(block, text is None or pages.is_shown(text.text, done.stdout), f"prints\n{done.stdout}")


def is_offline(block):
    """Whether it is commands that need no cluster."""
    return block.language == "bash" and "run" not in block.marks and all(
        words[0] in OTHERS or (words[0] == "trainer" and words[1] in OFFLINE) for words in commands_of(block))


def check_page(page):
    found = pages.blocks(page)
    files = {b.file for b in found if b.file}
    for before, block, after in zip([None, *found], found, [*found[1:], None]):
        commands = list(commands_of(block)) if block.language in ("bash", "sh", "console") else []
        for words in commands:
            check_command(block, words, files)
        if "not checked" in block.marks:
            unchecked.append(f"{block}: {block.marks['not checked']}")
        elif block.language == "yaml":
            check_yaml(block)
        elif block.language == "python":
            compile(block.text, str(block), "exec")
        elif block.language == "text":
            is_compared = "why" in block.marks or (before and ("run" in before.marks or is_offline(before)))
            check(block, is_compared, "nothing compares this: mark it")
        elif is_offline(block):
            check_output(block, after if after and after.language == "text" else None)
        else:
            check(block, commands, f"no commands, and the language is `{block.language}`")


def anchors(path):
    titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w -]", "", re.sub(r"\]\(.*?\)", "", title).lower()).replace(" ", "-"): title for title in titles}


def check_links(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        check(page, path.exists(), f"link to {target}")
        check(page, not anchor or not path.exists() or anchor in anchors(path), f"no heading for {target}")


def check_quotes(page, reasons, reports):
    """`PHASE (REASON): CAUSE` is a first line of `trainer why`; NAME and its like are any name, ERROR is any text."""
    for reason, cause in re.findall(r"`[A-Z][a-z]+ \((\w+)\)(?:: ([^`]+))?`", page.read_text()):
        check(page, f'"{reason}"' in reasons, f"no reason {reason}")
        pattern = re.sub(r"\bERROR\b", ".+", re.sub(r"\b(IMAGE|LIMIT|NAME|POD)\b", r"\\S+", re.escape(cause)))
        check(page, re.search(r"\): " + pattern + "$", reports, re.M) or not cause, f"docs/troubleshooting.md has no report `{cause}`")


def main():
    options = subprocess.run([KUBECTL, "options"], stdout=subprocess.PIPE, text=True, check=True).stdout
    KUBECTL_OPTIONS.update(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", options))
    reasons = "".join(p.read_text() for p in (ROOT / "runtimes").rglob("*.cc")) + "".join(p.read_text() for p in (ROOT / "runtimes").rglob("*.hh"))
    reports = (ROOT / "docs/troubleshooting.md").read_text()
    for page in pages.PAGES:
        check_page(page)
        if page in pages.USERS:
            check_quotes(page, reasons, reports)
    for page in pages.LINKED:
        check_links(page)
    for line in unchecked:
        print("not checked", line)
    for line in failures:
        print("FAIL", line)
    print(f"{checked} checks, {len(failures)} failed; {len(unchecked)} blocks not checked")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
