#!/usr/bin/python3
"""Twins: the same requests to two API servers, whose answers are to be equal.

usage: twins.py --genuine KUBECONFIG [--local KUBECONFIG] [--seed N] [--runs N] [--only GLOB] [--verbose]
       twins.py --record FILE --genuine KUBECONFIG        write down the genuine server's answers
       twins.py --against FILE [--local KUBECONFIG]       compare with them

Over TrainJob, JobSet and ConfigMap: the fixed requests of twins_requests.py (400 and more), and --runs random sequences of three field
managers, from --seed on. The status, the reason and the object of an answer with its managedFields are compared; times, uids and the
numbers of versions are not, but whether a request has made a new version is. Both servers have the CustomResourceDefinitions of
manifests/crds, and no controllers or webhooks for them. Without --local, $KUBECONFIG or an API server that is started for this is used.

twins_exceptions.yaml lists the differences that are meant: {request: GLOB, part: status|reason|object|managedFields, reason: TEXT}, at
most 20; one that no longer occurs fails. A FILE ending in .gz is compressed. The last line is 'N passed, N failed'.
"""
import argparse
import contextlib
import copy
import fnmatch
import gzip
import json
import os
import pathlib
import random
import re
import sys

import yaml

import api_client
import twins_random
import twins_requests

HERE = pathlib.Path(__file__).resolve().parent
MOST_EXCEPTIONS = 20
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
PARTS = ("status", "reason", "object", "managedFields")


class Twin:
    """Sends the steps of sequences to one server, in a namespace of its own, and answers what is compared."""

    def __init__(self, kubeconfig):
        self.server = api_client.Server(kubeconfig)
        self.namespace = f"twins-{os.getpid()}"
        status, answer = self.server.request("POST", "/api/v1/namespaces", {
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        if status != 201:
            sys.exit(f"twins: namespace {self.namespace}: {status} {answer}")

    def close(self):
        self.server.request("DELETE", f"/api/v1/namespaces/{self.namespace}")

    def play(self, steps):
        """The answers to one sequence; what a step says of $uid and $version is the object's of the step before."""
        self.known = {"$uid": "", "$version": ""}
        self.uids, self.versions = {}, {}
        return [self.step(step) for step in steps]

    def step(self, step):
        target = step["path"].replace("$namespace", self.namespace)
        if step.get("query"):
            target += "?" + step["query"]
        body = self.filled(copy.deepcopy(step.get("body")))
        status, answer = self.server.request(step["method"], target, body, step.get("type", "application/json"))
        if answer.get("kind") != "Status" and "metadata" in answer and "items" not in answer:
            metadata = answer["metadata"]
            self.known = {"$uid": metadata.get("uid", ""), "$version": metadata.get("resourceVersion", "")}
        return self.parts(status, answer)

    def filled(self, value):
        if isinstance(value, dict):
            return {self.filled(k): self.filled(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if isinstance(value, str):
            for name, known in {**self.known, "$namespace": self.namespace}.items():
                value = value.replace(name, known)
        return value

    def parts(self, status, answer):
        if answer.get("kind") == "Status":
            causes = answer.get("details", {}).get("causes", []) if answer.get("reason") == "Conflict" else []
            return {"status": status, "reason": answer.get("reason", ""), "object": None,
                    # Which fields, of which managers.
                    "managedFields": sorted([cause.get("field", ""), TIME.sub("TIME", cause.get("message", ""))] for cause in causes)}
        if "items" in answer:
            names = [item["metadata"]["name"] for item in answer["items"]]
            return {"status": status, "reason": "", "managedFields": [],
                    "object": {"items": names, "goes on": bool(answer["metadata"].get("continue"))}}
        answer = copy.deepcopy(answer)
        metadata = answer.get("metadata", {})
        managed = [self.entry(entry) for entry in metadata.pop("managedFields", [])]
        # The order of entries depends on the second in which they were written.
        managed.sort(key=lambda entry: json.dumps(entry, sort_keys=True))
        self.number(metadata, "uid", self.uids)
        self.number(metadata, "resourceVersion", self.versions)
        for owner in metadata.get("ownerReferences", []):
            self.number(owner, "uid", self.uids)
        for name in ("creationTimestamp", "deletionTimestamp"):
            if name in metadata:
                metadata[name] = "TIME"
        text = json.dumps(answer).replace(self.namespace, "NAMESPACE")
        return {"status": status, "reason": "", "object": json.loads(text), "managedFields": managed}

    @staticmethod
    def entry(entry):
        return {name: value for name, value in entry.items() if name != "time"}

    @staticmethod
    def number(holder, name, seen):
        if holder.get(name):
            holder[name] = seen.setdefault(holder[name], f"{name} {len(seen) + 1}")


def same(a, b):
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


class Exceptions:
    def __init__(self, path):
        self.entries = (yaml.safe_load(path.read_text()) if path.exists() else None) or []
        if len(self.entries) > MOST_EXCEPTIONS:
            sys.exit(f"twins: {path.name} lists {len(self.entries)} exceptions, {MOST_EXCEPTIONS} at most")
        for entry in self.entries:
            if set(entry) != {"request", "part", "reason"} or entry["part"] not in PARTS:
                sys.exit(f"twins: {path.name}: {entry} needs request, part (one of {', '.join(PARTS)}) and reason")
        self.used = set()

    def allow(self, name, part):
        for i, entry in enumerate(self.entries):
            if entry["part"] == part and fnmatch.fnmatch(name, entry["request"]):
                self.used.add(i)
                return True
        return False

    def unused(self):
        return [entry for i, entry in enumerate(self.entries) if i not in self.used]


def differences(name, genuine, local, exceptions):
    return [(part, genuine[part], local[part]) for part in PARTS
            if not same(genuine[part], local[part]) and not exceptions.allow(name, part)]


def sequences(args):
    """(name, steps) of all; a step's name is NAME/NUMBER."""
    every = list(twins_requests.sequences())
    if not args.record and not args.against:
        every += [(f"random/{seed}", twins_random.sequence(random.Random(seed))) for seed in range(args.seed, args.seed + args.runs)]
    return [(name, steps) for name, steps in every if fnmatch.fnmatch(name, args.only)]


def opened(path, mode):
    return gzip.open(path, mode + "t") if path.endswith(".gz") else open(path, mode)


def answers_of(source, name, steps):
    """The answers of a Twin, or the recorded ones."""
    return source[name] if isinstance(source, dict) else source.play(steps)


def compare(args, genuine, local, exceptions):
    passed = failed = 0
    for name, steps in sequences(args):
        for number, (step, one, other) in enumerate(zip(steps, answers_of(genuine, name, steps), answers_of(local, name, steps))):
            found = differences(f"{name}/{number}", one, other, exceptions)
            passed, failed = passed + (not found), failed + bool(found)
            if found:
                print(f"FAIL {name}/{number}: {step['method']} {step['path']}?{step.get('query', '')} {json.dumps(step.get('body'))}")
            for part, a, b in found:
                print(f"     {part}: genuine {json.dumps(a, sort_keys=True)}\n     {' ' * len(part)}    local {json.dumps(b, sort_keys=True)}")
            if found and name.startswith("random/"):
                break   # what follows differs, too
        if args.verbose:
            print(f"     {name}: {len(steps)} requests")
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--genuine")
    parser.add_argument("--local")
    parser.add_argument("--record")
    parser.add_argument("--against")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--only", default="*")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    if bool(args.genuine) == bool(args.against):
        parser.error("--genuine or --against, one of them")
    with contextlib.ExitStack() as stack:
        genuine = Twin(args.genuine) if args.genuine else json.load(opened(args.against, "r"))
        if args.genuine:
            stack.callback(genuine.close)
        if args.record:
            recorded = {name: genuine.play(steps) for name, steps in sequences(args)}
            with opened(args.record, "w") as file:
                json.dump(recorded, file, indent=None if args.record.endswith(".gz") else 1, sort_keys=True)
            print(f"{sum(map(len, recorded.values()))} recorded, 0 failed")
            return
        local = Twin(args.local or stack.enter_context(api_client.kubeconfig_of_local()))
        stack.callback(local.close)
        exceptions = Exceptions(HERE / "twins_exceptions.yaml")
        passed, failed = compare(args, genuine, local, exceptions)
        if args.only == "*":
            names = {name for name, _ in sequences(args)}
            for entry in exceptions.unused():
                if entry["request"].startswith("random/") and os.path.dirname(entry["request"]) not in names:
                    continue   # of another seed
                failed += 1
                print(f"FAIL the exception {entry['request']} ({entry['part']}) no longer occurs: take it out of the list")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
