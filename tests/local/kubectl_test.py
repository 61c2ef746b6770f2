#!/usr/bin/python3
"""One script of kubectl commands, whose answers are to be the same from any API server of Kubernetes.

usage: kubectl_test.py [--genuine KUBECONFIG | --against FILE] [--local KUBECONFIG] [--verbose]
       kubectl_test.py --record FILE --genuine KUBECONFIG     write down the genuine server's answers

It compares the exit status, standard output and standard error of each command, with times, uids, versions, ages, the width of
columns and the words after "Invalid value" taken out. Both servers have the CustomResourceDefinitions of manifests/crds; it does not matter
whether controllers run. Without --local, $KUBECONFIG or an API server that is started for this is used; without --genuine, kubectl.json
beside this file is what is expected. The last line is 'N passed, N failed'.
"""
import argparse
import contextlib
import difflib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

import yaml

import api_client

HERE = pathlib.Path(__file__).resolve().parent
NAMESPACE = "kubectl-script"
# A controller that is not there, so that nothing acts on these jobs where controllers run.
ELSEWHERE = "kueue.x-k8s.io/multikueue"
TRAINER = "trainer.kubeflow.org/v1alpha1"
CONTAINER = {"name": "a", "image": "localhost/none:1"}

MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied", "labels": {"script": "yes"}}, "data": {"a": "1", "b": "2"}}
RUNTIME = {"apiVersion": TRAINER, "kind": "TrainingRuntime", "metadata": {"name": "plain"}, "spec": {
    "mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [{"name": "node", "template": {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{**CONTAINER, "name": "node"}]}}}}}]}}}}
JOB = {"apiVersion": TRAINER, "kind": "TrainJob", "metadata": {"name": "job"}, "spec": {
    "runtimeRef": {"name": "plain", "kind": "TrainingRuntime"}, "managedBy": ELSEWHERE, "suspend": True,
    "trainer": {"numNodes": 2, "env": [{"name": "A", "value": "1"}]}}}
JOBSET = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "set"}, "spec": {
    "managedBy": ELSEWHERE, "suspend": True, "replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": {
        "parallelism": 1, "completions": 1, "completionMode": "Indexed", "template": {"spec": {
            "restartPolicy": "Never", "containers": [CONTAINER]}}}}}]}}
BATCH = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "batch"}, "spec": {
    "managedBy": "acme.io/none", "template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", "labels": {"app": "a"}}, "spec": {
    "schedulerName": "none", "restartPolicy": "Never", "containers": [CONTAINER]}}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "headless"}, "spec": {
    "clusterIP": "None", "selector": {"app": "a"}, "ports": [{"name": "torch", "port": 29500}]}}
EVENT = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "job.1"}, "type": "Warning", "reason": "Failed",
         "involvedObject": {"kind": "TrainJob", "name": "job", "namespace": NAMESPACE, "apiVersion": TRAINER}, "message": "it failed",
         "source": {"component": "script"}, "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1}
LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "lease"}, "spec": {"holderIdentity": "me"}}
CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"}, "spec": {
    "storageClassName": "none", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}}


def owned(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "$OWNER", "blockOwnerDeletion": True}]}}


def with_data(base, **data):
    return {**base, "data": {**base["data"], **data}}


def step(command, *objects, rows="", env=None, is_sorted=False, keep="", until=""):
    """`rows`: only lines that match; `keep`: the output is $NAME from then on; `until`: repeat until this is in the output."""
    return {"command": command, "objects": objects, "rows": rows, "env": env or {}, "is_sorted": is_sorted, "keep": keep, "until": until}


SCRIPT = [
    # Discovery.
    step("api-resources --api-group=trainer.kubeflow.org"), step("api-resources --api-group=jobset.x-k8s.io -o wide"),
    step("api-resources --api-group=batch --namespaced", rows="^jobs .*Job$"),
    step("api-resources --api-group=", rows="^(configmaps|events|namespaces|nodes|persistentvolumeclaims|pods|secrets|serviceaccounts|services) "),
    step("get --raw /readyz"), step("get nothing"), step("get nothing.acme.io x"),
    # kubectl sends these in protobuf.
    step("create configmap made --from-literal=a=1 --from-literal=b=2"), step("create configmap made"),
    step("create secret generic hf-token --from-literal=token=abc"), step("create secret generic typed --type=acme.io/a --from-literal=a=b"),
    step("create serviceaccount bot"), step("create namespace kubectl-script-other"), step("create namespace Not_valid"),
    step("get namespace kubectl-script-other"), step("get configmap made -o yaml"), step("get secret hf-token typed"),
    step("get secret hf-token -o jsonpath={.data.token}"), step("get serviceaccount bot"), step("get configmap made -o jsonpath={.data}"),
    step("auth can-i create trainjobs"), step("auth can-i delete pods/log"), step("auth can-i get /metrics"),
    # Create, apply, and what is refused.
    step("create -f -", {**MAP, "metadata": {"name": "created"}}), step("create -f -", {**MAP, "metadata": {"name": "created"}}),
    step("create -f -", {**MAP, "extra": 1}), step("create -f - --validate=warn", {**MAP, "metadata": {"name": "warned"}, "extra": 1}),
    step("create -f - --validate=ignore", {**MAP, "metadata": {"name": "ignored"}, "extra": 1}),
    step("create -f - --dry-run=server", {**MAP, "metadata": {"name": "dry"}}), step("get configmap dry"),
    step("apply -f -", MAP), step("apply -f -", MAP), step("apply -f -", with_data(MAP, a="2")), step("diff -f -", with_data(MAP, a="3")),
    step("diff -f -", with_data(MAP, a="2")), step("apply -f - --dry-run=server", with_data(MAP, a="3")),
    step("apply -f -", {**MAP, "data": {"a": "2"}}), step("get configmap applied -o jsonpath={.data}"),
    step("apply -f -", RUNTIME, JOB, JOBSET, BATCH, POD, SERVICE, LEASE, CLAIM), step("apply -f -", RUNTIME, JOB, JOBSET, BATCH, SERVICE),
    step("apply -f -", {**JOB, "spec": {**JOB["spec"], "unknown": 1}}), step("apply -f -", {**JOB, "spec": {**JOB["spec"], "suspend": "yes"}}),
    step("apply -f -", {**JOB, "metadata": {"name": "Bad"}}), step("apply -f -", {**BATCH, "spec": {**BATCH["spec"], "completions": 3}}),
    step("apply -f -", {**POD, "metadata": {"name": "bad"}, "spec": {"containers": [{"name": "a"}]}}), step("create -f -", EVENT),
    step("apply -f -", {"apiVersion": "acme.io/v1", "kind": "Widget", "metadata": {"name": "w"}}),
    # Server-side apply.
    step("apply --server-side -f -", {**MAP, "metadata": {"name": "served"}}),
    step("apply --server-side --field-manager=other -f -", {**with_data(MAP, a="9"), "metadata": {"name": "served"}}),
    step("apply --server-side --field-manager=other --force-conflicts -f -", {**with_data(MAP, a="9"), "metadata": {"name": "served"}}),
    step("apply --server-side -f -", {**MAP, "metadata": {"name": "served"}}),
    step("get configmap served --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}"),
    step("apply --server-side -f -", JOB), step("apply --server-side -f -", {**JOB, "spec": {**JOB["spec"], "unknown": 1}}),
    step("apply --server-side -f -", MAP), step("get configmap applied --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}"),
    # Columns.
    step("get configmap applied created made"), step("get configmap applied made --show-labels"), step("get trainjob"), step("get jobset,trainjob"),
    step("get trainjob job -o wide"), step("get job batch"), step("get job batch -o wide"), step("get service headless -o wide"),
    step("get pod pod"), step("get pod -l app=a --no-headers"), step("get lease lease"), step("get pvc claim"), step("get events", rows="REASON|it failed"),
    step("get events --field-selector involvedObject.name=job -o wide", rows="REASON|it failed"), step("get trainingruntime plain"),
    step("get configmap -l script=yes -o name"), step("get configmap -l script!=yes,script -o name"), step("get configmap -l 'script in (yes,no)' -o name"),
    step("get configmap --field-selector metadata.name=made -o name"), step("get configmap --field-selector none=made -o name"),
    step("get configmap applied created made -o custom-columns=NAME:.metadata.name,A:.data.a"), step("get configmap none"),
    step("get configmap applied created made --sort-by=.metadata.name"), step("get configmap -l script --chunk-size=1 -o name"),
    step("get configmap made -o json"), step("get trainjob job -o yaml"), step("get jobset set -o yaml"), step("get pods --all-namespaces -l app=none"),
    # Describe and explain.
    step("describe configmap made"), step("describe secret hf-token"), step("describe trainjob job"), step("describe jobset set"),
    step("explain trainjob.spec"), step("explain trainjob.spec.trainer.numNodes"), step("explain jobset.spec.replicatedJobs"),
    step("explain trainjob.spec.none"), step("explain trainjob.spec.runtimeRef --recursive"), step("explain none"),
    # Changes.
    step("patch configmap made --type=merge -p '{\"data\":{\"a\":\"3\",\"b\":null}}'"), step("patch configmap made --type=merge -p '{\"data\":{\"a\":\"3\"}}'"),
    step("patch configmap made --type=json -p '[{\"op\":\"add\",\"path\":\"/data/c\",\"value\":\"4\"}]'"),
    step("patch configmap made --type=json -p '[{\"op\":\"remove\",\"path\":\"/data/none\"}]'"),
    step("patch configmap made -p '{\"data\":{\"d\":\"5\"}}'"), step("patch trainjob job -p '{\"spec\":{\"suspend\":true}}'"),
    step("patch trainjob job --type=merge -p '{\"spec\":{\"trainer\":{\"numNodes\":5}}}'"), step("get configmap made -o jsonpath={.data}"),
    step("patch pod pod -p '{\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"localhost/other:1\"}]}}'"),
    step("get pod pod -o jsonpath={.spec.containers[*].image}"), step("patch pod pod -p '{\"spec\":{\"restartPolicy\":\"Always\"}}'"),
    step("label configmap made new=label"), step("label configmap made new=other"), step("label configmap made new=other --overwrite"),
    step("label configmap made new-"), step("label configmap made new-"), step("label configmap made 'bad label=x'"),
    step("annotate configmap made acme.io/a=b"), step("annotate configmap made acme.io/a-"),
    step("edit configmap made", env={"KUBE_EDITOR": "sed -i 's/a: \"3\"/a: \"30\"/'"}), step("edit configmap made", env={"KUBE_EDITOR": "true"}),
    step("edit trainjob job", env={"KUBE_EDITOR": "sed -i 's/suspend: true/suspend: false/'"}), step("get trainjob job -o jsonpath={.spec.suspend}"),
    step("replace -f -", {**MAP, "metadata": {"name": "created"}, "data": {"z": "1"}}), step("get configmap created -o jsonpath={.data}"),
    step("replace -f -", {**MAP, "metadata": {"name": "created", "resourceVersion": "1"}}), step("replace -f -", {**MAP, "metadata": {"name": "none"}}),
    step("set env pod/pod --list"), step("wait --for=jsonpath={.data.a}=30 configmap/made --timeout=10s"),
    step("wait --for=condition=Complete job/batch --timeout=1s"), step("wait --for=delete configmap/none --timeout=5s"),
    # Deletes.
    step("create configmap owner"), step("get configmap owner -o jsonpath={.metadata.uid}", keep="OWNER"), step("create -f -", owned("left")),
    step("delete configmap owner --cascade=orphan"), step("get configmap left -o jsonpath={.metadata.ownerReferences}", until="[]"),
    step("create configmap owner"), step("get configmap owner -o jsonpath={.metadata.uid}", keep="OWNER"), step("create -f -", owned("first")),
    step("delete configmap owner --cascade=foreground --timeout=20s"), step("get configmap first owner"),
    step("create configmap owner"), step("get configmap owner -o jsonpath={.metadata.uid}", keep="OWNER"), step("create -f -", owned("later")),
    step("delete configmap owner"), step("wait --for=delete configmap/later --timeout=20s"), step("get configmap later"),
    step("create -f -", {**MAP, "metadata": {"name": "held", "finalizers": ["acme.io/hold"]}}), step("delete configmap held --wait=false"),
    step("get configmap held -o jsonpath={.metadata.finalizers}"), step("patch configmap held --type=merge -p '{\"metadata\":{\"finalizers\":null}}'"),
    step("get configmap held"), step("delete configmap none"), step("delete configmap none --ignore-not-found"), step("delete configmap -l script=yes"),
    step("delete trainjob job --dry-run=server"), step("delete trainjob/job jobset/set"), step("delete pod pod --grace-period=0 --force"),
    step("delete -f -", RUNTIME, SERVICE), step("get trainjob,jobset"),
]

# Taken out of what is compared, in this order.
PLAIN = (
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b", "TIME"), (r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?( [+-]\d{4})?( \w+)?", "TIME"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"), (r'("?resourceVersion"?: )"\d+"', r'\1"VERSION"'),
    (r"(Resource Version: +)\d+", r"\1VERSION"), (r"https?://[\w.:-]+", "SERVER"), (r"\b(\d+y)?(\d+d)?(\d+h)?(\d+m)?\d+s\b", "AGE"),
    (r"\b\d+[mhdy](\d+[hmd])?\b", "AGE"), (r"\S*/(LIVE|MERGED)-\d+/", r"\1/"), (r"kubectl-edit-\w+\.yaml", "EDITED"), (r" {2,}", "  "), (r" +$", ""),
    # The difference of two pods as structs of Go.
    (r"(if it was previously negative\))[\s\S]*", r"\1\n"),
    # Which field is refused counts, and not the words.
    (r"(: (Invalid|Unsupported|Duplicate) value): .*", r"\1"),
)


def normalised(text, rows, is_sorted):
    for pattern, instead in PLAIN:
        text = re.sub(pattern, instead, text, flags=re.M)
    lines = text.split("\n")
    if rows:
        lines = [line for line in lines if re.search(rows, line)]
    return "\n".join(sorted(lines) if is_sorted else lines)


class Kubectl:
    def __init__(self, kubeconfig, cache):
        self.env = {**os.environ, "KUBECONFIG": kubeconfig, "KUBECTL_EXTERNAL_DIFF": "diff -u", "KUBECACHEDIR": cache}
        self.kept = {}

    def call(self, command, text="", env=None):
        # The namespace comes after the command, and before a "--" of its own.
        words = shlex.split(command)
        more = [] if words[0] in ("explain", "api-resources") or "namespace" in words[:2] or "--raw" in words else ["-n", NAMESPACE]
        return subprocess.run(["kubectl", *words, *more], input=text, env={**self.env, **(env or {})}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)

    def run(self, entry):
        text = "---\n".join(yaml.safe_dump(o) for o in entry["objects"])
        for name, value in self.kept.items():
            text = text.replace("$" + name, value)
        end = time.monotonic() + 20
        done = self.call(entry["command"], text, entry["env"])
        # `until` "[]": nothing is printed about deleted objects.
        while entry["until"] and time.monotonic() < end and done.stdout.strip() not in ("", entry["until"]):
            time.sleep(0.1)
            done = self.call(entry["command"], text, entry["env"])
        if entry["keep"]:
            self.kept[entry["keep"]] = done.stdout.strip()
        return {"exit": done.returncode, "stdout": normalised(done.stdout, entry["rows"], entry["is_sorted"]),
                "stderr": normalised(done.stderr, "", False)}

    def watch(self):
        """The output of `get -w` while an object is made, changed and deleted."""
        with subprocess.Popen(["kubectl", "-n", NAMESPACE, "get", "configmap", "-l", "watched", "-w", "--output-watch-events"], env=self.env,
                              text=True, stdout=subprocess.PIPE) as watching:
            try:
                self.call("create -f -", yaml.safe_dump({**MAP, "metadata": {"name": "seen", "labels": {"watched": "yes"}}}))
                lines = [watching.stdout.readline(), watching.stdout.readline()]   # the head, and ADDED
                for command in ("patch configmap seen --type=merge -p '{\"data\":{\"c\":\"3\"}}'", "label configmap seen watched-"):
                    self.call(command)
                    lines.append(watching.stdout.readline())
            finally:
                watching.kill()
        self.call("delete configmap seen")
        return {"exit": 0, "stdout": normalised("".join(lines), "", False), "stderr": ""}


def play(kubeconfig):
    """[(command, answer)] of the script in a fresh namespace."""
    with tempfile.TemporaryDirectory() as cache:
        kubectl = Kubectl(kubeconfig, cache)
        names = f"namespace {NAMESPACE} {NAMESPACE}-other"
        kubectl.call(f"delete {names} --ignore-not-found --timeout=50s")
        made = kubectl.call(f"create namespace {NAMESPACE}")
        if made.returncode != 0:
            sys.exit(f"kubectl_test: namespace {NAMESPACE}: {made.stderr}")
        # A genuine server lets pods in once the namespace has its account, which here is made where no controller makes it.
        kubectl.call("create serviceaccount default")
        try:
            answers = [[entry["command"], kubectl.run(entry)] for entry in SCRIPT]
            answers.append(["get -w", kubectl.watch()])
        finally:
            kubectl.call(f"delete {names} --ignore-not-found --wait=false")
    return answers


def compare(expected, answers, is_verbose):
    passed = failed = 0
    for (command, wanted), (_, found) in zip(expected, answers):
        is_same = wanted == found
        passed, failed = passed + is_same, failed + (not is_same)
        if is_verbose and is_same:
            print(f"ok   kubectl {command}")
        if is_same:
            continue
        print(f"FAIL kubectl {command}")
        for part in ("exit", "stdout", "stderr"):
            lines = difflib.unified_diff(str(wanted[part]).splitlines(), str(found[part]).splitlines(), "genuine", "local", lineterm="", n=1)
            for line in list(lines)[:40]:
                print(f"     {part}: {line}")
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--genuine")
    parser.add_argument("--against", default=str(HERE / "kubectl.json"))
    parser.add_argument("--record")
    parser.add_argument("--local")
    parser.add_argument("--verbose", action="store_true")
    args, _ = parser.parse_known_args()
    if not args.genuine and not os.path.exists(args.against):
        print(f"{args.against} is not there: --record writes it, of a genuine server\n0 passed, 1 failed")
        sys.exit(1)
    expected = play(args.genuine) if args.genuine else json.loads(pathlib.Path(args.against).read_text())
    if args.record:
        pathlib.Path(args.record).write_text(json.dumps(expected, indent=1) + "\n")
        print(f"{len(expected)} recorded, 0 failed")
        return
    if [command for command, _ in expected] != [entry["command"] for entry in SCRIPT] + ["get -w"]:
        sys.exit("kubectl_test: these answers are of another script: record them again")
    with contextlib.ExitStack() as stack:
        passed, failed = compare(expected, play(args.local or stack.enter_context(api_client.kubeconfig_of_local())), args.verbose)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
