#!/usr/bin/env python3
"""Compares check_schema() and check_transitions() with the API server of $KUBECONFIG: a rule's C++ code and its CEL text accept the same
objects and updates.

usage: rules_test.py [SEED [COUNT]]

The program rule_cases prints COUNT objects for each place with a rule, with what check_schema() says of them; each is sent with
dryRun=All. For a rule that compares with the stored object it prints stored objects, which are created, and COUNT updates of them, each a
PUT with dryRun=All. Only the schemas are tested, so none of this project's webhooks may be installed. The last line is 'N passed, N failed'.
"""
import collections
import copy
import json
import os
import re
import subprocess
import sys

import schema_test
from harness import run, wait_until
from schema_test import NS, ROOT, Bench, make_namespace
from v1_test import install as install_v1

PROGRAM = os.environ.get("RULE_CASES", str(ROOT / "build/tests/unit/api/rule_cases"))
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def collection(whole):
    return schema_test.COLLECTIONS.get(whole["kind"], f"/apis/kubeflow.org/v1/namespaces/{NS}/{whole['kind'].lower()}s")


def send(bench, case):
    whole = case["object"]
    path = collection(whole)
    if case["subresource"] != "status":
        return bench.api.call("POST", f"{path}?dryRun=All", whole)
    bench.api.call("POST", path, whole)   # stored without its status; the same object for every case
    return bench.api.call("PATCH", f"{path}/{whole['metadata']['name']}/status?dryRun=All", {"status": whole["status"]},
                          "application/merge-patch+json")


def refusal(code, body):
    return "" if code < 300 else body["message"] if isinstance(body, dict) else body


class Test:
    def __init__(self, seed):
        self.bench, self.seed = Bench(False), seed
        self.seen = collections.defaultdict(set)   # (kind, place, rule) -> what the API server did: accept, refuse for this rule

    def expect_same(self, what, said, predicted, case):
        self.bench.expect(f"seed {self.seed}: {what}", bool(said) == bool(predicted),
                          f"API server: {said[-200:] or 'accepted'}; C++: {predicted[-200:] or 'accepted'}; {json.dumps(case)}")

    def create(self, case):
        said = refusal(*send(self.bench, case))
        kind, rule = case["object"]["kind"], case["rule"]
        if not said or case["message"] in said:
            self.seen[kind, "", rule].add(bool(said))
        self.expect_same(f"{kind}: {rule}", said, case["refusal"], case["object"])

    def store(self, case, number):
        """Creates the stored object of updates under a name of its own."""
        whole = case["stored"]
        whole["metadata"]["name"] = f"stored-{number}"
        code, case["created"] = self.bench.api.call("POST", collection(whole), whole)
        self.bench.expect(f"seed {self.seed}: {whole['kind']} is stored", code == 201, (case["created"], json.dumps(whole)))
        return code == 201

    def update(self, case):
        whole, rule, place = case["stored"], case["rule"], case["place"]
        what = f"{whole['kind']}: {place}: {rule}"
        path = f"{collection(whole)}/{whole['metadata']['name']}"
        for update in case["updates"]:
            changed = {**update["object"], "metadata": {key: case["created"]["metadata"][key] for key in ("name", "resourceVersion")}}
            code, body = self.bench.api.call("PUT", f"{path}?dryRun=All", changed)
            said = refusal(code, body)
            pair = {"stored": whole, "update": changed}
            self.expect_same(what, said, update["refusal"], pair)
            causes = body.get("details", {}).get("causes", []) if said and isinstance(body, dict) else []
            fields = {cause["field"] for cause in causes if case["message"] in cause["message"]}
            if "fields" in update:
                self.bench.expect(f"seed {self.seed}: {what}: the fields that are named", sorted(fields) == update["fields"],
                                  f"API server: {said[-200:]}; C++: {update['refusal'][-200:]}; {json.dumps(pair)}")
            if not said or place in {re.sub(r"\[[^]]*\]", "[]", field) for field in fields}:
                self.seen[whole["kind"], place, rule].add(bool(said))
        self.bench.api.call("DELETE", path)


def without_optional_rules(schema):
    """The schema before members were removed from it."""
    if isinstance(schema, list):
        return [without_optional_rules(part) for part in schema if not (isinstance(part, dict) and part.get("optionalOldSelf"))]
    if isinstance(schema, dict):
        return {key: without_optional_rules(part) for key, part in schema.items()}
    return schema


def store_older(test, cases):
    """Creates objects as older definitions took them, and leaves the definitions as they were."""
    api = test.bench.api
    probes = {case["stored"]["kind"]: case["stored"] for case in cases}
    shipped = {item["spec"]["names"]["kind"]: item for item in api.call("GET", DEFINITIONS)[1]["items"]}

    def try_probe(kind):
        return api.call("POST", f"{collection(probes[kind])}?dryRun=All", probes[kind])

    def install(kind, change, code):
        path = f"{DEFINITIONS}/{shipped[kind]['metadata']['name']}"
        definition = api.call("GET", path)[1]
        definition["spec"] = change(copy.deepcopy(shipped[kind]["spec"]))
        assert api.call("PUT", path, definition)[0] == 200, kind
        wait_until(f"another {kind}", lambda: try_probe(kind)[0] == code, shown=lambda: try_probe(kind))

    try:
        for kind in probes:
            install(kind, without_optional_rules, 201)
        return [case for number, case in enumerate(cases) if test.store(case, f"older-{number}")]
    finally:
        for kind in probes:
            install(kind, lambda spec: spec, 422)


def main():
    seed, count = [*sys.argv[1:], *("1", "40")[len(sys.argv) - 1:]]
    test = Test(seed)
    install_v1()
    cases = [json.loads(line) for line in subprocess.run([PROGRAM, seed, count], stdout=subprocess.PIPE, check=True).stdout.splitlines()]
    make_namespace(test.bench)
    updates = [case for case in cases if "stored" in case]
    for case in store_older(test, [case for case in updates if case["is_older"]]):
        test.update(case)
    for case in cases:
        if "object" in case:
            test.create(case)
    for number, case in enumerate(case for case in updates if not case["is_older"]):
        if test.store(case, number):
            test.update(case)
    wanted = {(case["object"]["kind"], "", case["rule"]): {False, True} for case in cases if "object" in case}
    wanted |= {(case["stored"]["kind"], case["place"], case["rule"]): {False, True} if case["can_refuse"] else {False} for case in updates}
    for key, outcomes in sorted(wanted.items()):
        test.bench.expect(f"{': '.join(key)} is tried with valid and invalid values", test.seen[key] == outcomes, test.seen[key])
    test.bench.api.call("DELETE", f"/api/v1/namespaces/{NS}")
    run("kubectl", "delete", "-f", str(ROOT / "manifests/v1/crds"))   # the tests that follow have not asked for V1 jobs
    print(f"{test.bench.passed} passed, {test.bench.failed} failed")
    sys.exit(1 if test.bench.failed else 0)


if __name__ == "__main__":
    main()
