#!/usr/bin/python3
"""The yaml of pages passes the API server's strict validation, that of Kubernetes' own kinds included: a dry run of each object.
Needs a control plane without node.
"""
import json
import sys

import harness
from harness import ROOT, Failed, run

sys.path.insert(0, str(ROOT / "tests/manifests"))
import pages  # noqa: E402


def test_objects_of_pages_are_valid(cluster):
    refused, tried = [], 0
    for block in (b for page in pages.PAGES for b in pages.blocks(page) if b.language == "yaml" and "not checked" not in b.marks):
        for each in block.objects():
            tried += 1
            done = run("kubectl", "-n", cluster.namespace, "apply", "--dry-run=server", "--validate=strict", "-f", "-", text=json.dumps(each), check=False)
            if done.returncode:
                refused.append(f"{block}: {done.stderr}")
    print(f"     {tried} objects")
    if refused or not tried:
        raise Failed("\n".join(refused) or "no objects")


if __name__ == "__main__":
    harness.main(__file__)
