#!/usr/bin/python3
"""tools/version --check, on trees that have a mistake each."""
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("version", str(ROOT / "tools/version"))
version = importlib.util.module_from_spec(importlib.util.spec_from_loader("version", loader))
loader.exec_module(version)

FILES = {
    "meson.build": "project('trainer', 'cpp',\n  version: '{}',\n  license: 'Apache-2.0')\n",
    "manifests/image/kustomization.yaml": "images:\n- name: trainer\n  newName: trainer\n  newTag: {}\n",
    "manifests/charts/kubeflow-trainer/Chart.yaml": "version: {0}\nappVersion: \"{0}\"\n",
    "README.md": "podman build -t registry.example.com/trainer:{} .\n",
}
UNRELEASED, RELEASED = "## Unreleased\n\n- something\n\n", "## {} - 2026-01-31\n\n- something\n"


def tree(folder, own, changelog, tags=(), **changed):
    """A repository of two commits; tags: (commit 1 or 2, tag)."""
    root = pathlib.Path(folder)
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text.format(changed.get(pathlib.Path(path).stem, own)))
    (root / "CHANGELOG.md").write_text("# Changelog\n\n" + changelog)
    git = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for commit in (1, 2):
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "a"], check=True)
        for at, tag in tags:
            if at == commit:
                subprocess.run([*git, "tag", tag], check=True)
    return root


CASES = [   # what is wrong (nothing: ""), the version, the changelog, tags, files that say another version
    ("", "0.1.0", UNRELEASED, [], {}),
    ("", "0.1.0", RELEASED.format("0.1.0"), [(2, "v0.1.0")], {}),
    ("", "0.10.0", UNRELEASED + RELEASED.format("0.9.0"), [(1, "v0.9.0")], {}),
    ("", "1.0.0", UNRELEASED, [(1, "v1.0.0-rc.1")], {}),
    ("", "1.0.0-rc.10", UNRELEASED, [(1, "v1.0.0-rc.9")], {}),
    ("the tag v0.2.0 is of this commit", "0.1.0", RELEASED.format("0.1.0"), [(2, "v0.2.0")], {}),
    ("the first section of a release", "0.1.0", UNRELEASED, [(2, "v0.1.0")], {}),
    ("", "0.1.0", RELEASED.format("0.1.0"), [], {}),
    ("the first section is `## Unreleased`", "0.1.0", RELEASED.format("0.0.9"), [(1, "v0.0.9")], {}),
    ("the section Unreleased says nothing", "0.1.0", "## Unreleased\n\n", [], {}),
    ("not later than v0.1.0", "0.1.0", UNRELEASED, [(1, "v0.1.0")], {}),
    ("not later than v1.0.0", "1.0.0-rc.1", UNRELEASED, [(1, "v1.0.0")], {}),
    ("is no X.Y.Z", "1.0", UNRELEASED, [], {}),
    ("kustomization.yaml: 0.0.9", "0.1.0", UNRELEASED, [], {"kustomization": "0.0.9"}),
    ("Chart.yaml: 0.0.9", "0.1.0", UNRELEASED, [], {"Chart": "0.0.9"}),
    ("README.md: 0.0.9", "0.1.0", UNRELEASED, [], {"README": "0.0.9"}),
    ("README.md: no version", "0.1.0", UNRELEASED, [], {"README": "VERSION"}),
]


def main():
    failed = 0
    for wanted, own, changelog, tags, changed in CASES:
        with tempfile.TemporaryDirectory() as folder:
            found = version.mistakes(tree(folder, own, changelog, tags, **changed))
        if (len(found), wanted in "".join(found)) != (1 if wanted else 0, True):
            failed += 1
            print(f"FAIL {own} {tags} {changed}: wanted {wanted!r}, found {found}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
