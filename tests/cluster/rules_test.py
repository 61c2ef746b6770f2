#!/usr/bin/env python3
"""Compares check_schema() with the API server of $KUBECONFIG: a rule's C++ predicate and its CEL text accept the same objects.

usage: rules_test.py [SEED [COUNT]]

The program rule_cases prints COUNT objects for each place with a rule, with what check_schema() says of them; each is sent with
dryRun=All. Only the schemas are tested, so none of this project's webhooks may be installed. The last line is 'N passed, N failed'.
"""
import collections
import json
import os
import subprocess
import sys

from schema_test import COLLECTIONS, NS, ROOT, Bench, make_namespace

PROGRAM = os.environ.get("RULE_CASES", str(ROOT / "build/tests/unit/api/rule_cases"))


def send(bench, case):
    whole = case["object"]
    collection = COLLECTIONS[whole["kind"]]
    if case["subresource"] != "status":
        return bench.api.call("POST", f"{collection}?dryRun=All", whole)
    bench.api.call("POST", collection, whole)   # stored without its status; the same object for every case
    return bench.api.call("PATCH", f"{collection}/{whole['metadata']['name']}/status?dryRun=All", {"status": whole["status"]},
                          "application/merge-patch+json")


def main():
    seed, count = [*sys.argv[1:], *("1", "40")[len(sys.argv) - 1:]]
    bench = Bench(False)
    cases = [json.loads(line) for line in subprocess.run([PROGRAM, seed, count], stdout=subprocess.PIPE, check=True).stdout.splitlines()]
    seen = collections.defaultdict(set)   # (kind, rule) -> what the API server did: accept, refuse for this rule
    make_namespace(bench)
    for case in cases:
        code, body = send(bench, case)
        refusal = "" if code < 300 else body["message"] if isinstance(body, dict) else body
        kind, rule = case["object"]["kind"], case["rule"]
        if not refusal or case["message"] in refusal:
            seen[kind, rule].add(bool(refusal))
        bench.expect(f"seed {seed}: {kind}: {rule}", bool(refusal) == bool(case["refusal"]),
                     f"API server: {refusal[-200:] or 'accepted'}; check_schema(): {case['refusal'][-200:] or 'accepted'}; {json.dumps(case['object'])}")
    for kind, rule in sorted({(case["object"]["kind"], case["rule"]) for case in cases}):
        bench.expect(f"{kind}: {rule} is tried with valid and invalid values", seen[kind, rule] == {False, True}, seen[kind, rule])
    bench.api.call("DELETE", f"/api/v1/namespaces/{NS}")
    print(f"{bench.passed} passed, {bench.failed} failed")
    sys.exit(1 if bench.failed else 0)


if __name__ == "__main__":
    main()
