"""The fenced blocks of the project's pages, and how what a command prints is compared with what a page shows.

A block of yaml or Python that begins with a comment of one file's name is that file, for the commands of its page. Above a block may be a
mark, `<!-- NAME: VALUE -->`:

  run                  bash: tests/e2e runs it in real pods; the block of text below it is what it prints
  warns: TEXT          yaml: `trainer render` and admission warn so, and of nothing else
  why: SYMPTOM         text: a report that tests/unit/cli/symptoms_test.cc compares
  not checked: REASON  what yaml means, or what a block of text shows, is not checked
"""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAINER = os.path.abspath(os.environ.get("TRAINER", str(ROOT / "build/trainer")))
USERS = sorted((ROOT / "docs/users").glob("*.md"))
OPERATORS = sorted((ROOT / "docs/operators").glob("*.md"))
PAGES = [*USERS, *OPERATORS, ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in ("blueprints", "kueue", "local", "troubleshooting"))]
LINKED = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests/README.md", ROOT / "subprojects/local/README.md"]
KINDS = ("TrainJob", "TrainingRuntime", "ClusterTrainingRuntime", "JobSet")
API = "trainer.kubeflow.org/v1alpha1"
MARK = re.compile(r"<!-- (run|warns|why|not checked)(?:: (.*))? -->$")


class Block:
    def __init__(self, page, line, language, text, marks):
        self.page, self.line, self.language, self.text, self.marks = page, line, language, text, marks
        named = re.match(r"# (\S+\.(?:yaml|py))\n", text)
        self.file = named[1] if named else None

    def __str__(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def objects(self):
        """The objects of the yaml. A part of a TrainJob or of a runtime is made whole: a runtime on top of torch-distributed."""
        for document in yaml.safe_load_all(self.text):
            if document and "kind" not in document:
                is_job = "runtimeRef" in document["spec"]
                whole = {"metadata": {"name": "part"}, "kind": "TrainJob"} if is_job else yaml.safe_load(trainer("runtimes", "torch-distributed"))
                document = {**whole, "apiVersion": API, "spec": {**whole.get("spec", {}), **document["spec"]}}
            if document:
                yield trial_of(document) if document["kind"] == "Experiment" else document


def trial_of(experiment):
    """The job that Katib makes of an experiment: its values are texts that replace all trialParameters, and no others are declared."""
    template = experiment["spec"]["trialTemplate"]
    space = {p["name"]: p["feasibleSpace"] for p in experiment["spec"]["parameters"]}
    job = json.dumps(template["trialSpec"])
    for parameter in template["trialParameters"]:
        place = "${trialParameters.%s}" % parameter["name"]
        assert place in job, f"{place} is not used"
        job = job.replace(place, str(space[parameter["reference"]]["min"]))
    assert "${" not in job, job
    return {**json.loads(job), "metadata": {"name": experiment["metadata"]["name"] + "-trial"}}


def blocks(page):
    found, marks, opened = [], {}, None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if opened:
            if line == "```":
                found.append(Block(page, *opened[:2], "".join(opened[2]), opened[3]))
                opened = None
            else:
                opened[2].append(line + "\n")
        elif line.startswith("```"):
            opened, marks = (number, line[3:], [], marks), {}
        elif mark := MARK.match(line):
            marks[mark[1]] = mark[2] or ""
        elif line:
            marks = {}
    assert not opened, f"{page}: the last block has no end"
    return found


def trainer(*arguments, **options):
    return subprocess.run([TRAINER, *arguments], stdout=subprocess.PIPE, text=True, check=True, **options).stdout


@contextlib.contextmanager
def folder_of(page):
    """(a folder with the page's files, a PATH that has trainer)"""
    with tempfile.TemporaryDirectory() as folder:
        for block in blocks(page):
            if block.file:
                pathlib.Path(folder, block.file).write_text(block.text)
        os.makedirs(f"{folder}/.bin")
        for name in ("trainer", "kubectl-trainer"):
            os.symlink(TRAINER, f"{folder}/.bin/{name}")
        yield folder, f"{folder}/.bin:{os.environ['PATH']}"


def plain(text, namespace="default"):
    """Lines whose words can be compared: ages, generated names of pods and what a table's nodes were at the end are masked."""
    text = re.sub(rf"\b{re.escape(namespace)}/", "default/", text)
    text = re.sub(r"\b\d+(?:ms|[smhd])(?:\d+[smh])?\b", "AGE", text)
    text = re.sub(r"(-\d+-\d+)-[a-z0-9]{5}\b", r"\1-xxxxx", text)
    text = re.sub(r"^(\S+ +Complete +)\d+/", r"\1?/", text, flags=re.M)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def is_shown(page_text, printed, namespace="default"):
    """Whether the page shows what was printed; `...` there is any text in a line, or any lines."""
    pattern = "".join(r"(?:.*\n)*" if line == "..." else re.escape(line).replace(re.escape("..."), ".*") + r"\n" for line in plain(page_text))
    return re.fullmatch(pattern, "".join(line + "\n" for line in plain(printed, namespace))) is not None
