"""Rules for files as a whole: their length, and that tests are run."""
import os
import re

TOPS = ("api", "runtimes", "controller", "subprojects/kube", "subprojects/local")
LONGEST = 400   # lines of a file of the program; see CONTRIBUTING.md
TESTS = ("tests/cluster", "tests/local")   # folders whose tests are programs that a stage of ./check names


def too_long(root):
    found = []
    for top in TOPS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = sorted(d for d in folders if d != "tests")
            for name in sorted(n for n in names if n.endswith((".cc", ".hh"))):
                path = os.path.join(folder, name)
                with open(path) as f:
                    lines = f.read().count("\n")
                if lines > LONGEST:
                    found.append(f"{os.path.relpath(path, root)}: {lines} lines, and {LONGEST} are the limit: move a part into another file")
    return found


def stages(root):
    """The text of all functions stage_NAME of ./check."""
    with open(os.path.join(root, "check")) as f:
        return "\n".join(re.findall(r"^stage_\w+\(\) \{(?: .* \}$|.*?^\}$)", f.read(), re.M | re.S))


def without_stage(root):
    """Tests that no stage of ./check runs."""
    text, found = stages(root), []
    for folder in TESTS:
        for name in sorted(os.listdir(os.path.join(root, folder))):
            if name.endswith("_test.py") and not re.search(rf"(?<![\w/]){re.escape(name)}\b", text):
                found.append(f"{folder}/{name}: no stage of ./check runs it")
    return found
