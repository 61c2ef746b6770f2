#!/usr/bin/python3
"""Replay conformance cases against the cluster of $KUBECONFIG and compare what the controllers make of them.

usage: conform.py [--record | --record-departed] [--only GLOB] [--verbose] [--messages]
                  [--departures FILE] [--departed FILE] [--exceptions FILE] [--expected FILE] CASEDIR...

A case is CASEDIR/NAME.yaml:
    about: one line
    steps:                      # run in order, each answered by the API server
    - apply: {object}           # create, or update (PUT over the stored object) when it exists
    - patch: {kind, name, body, type: merge|json|strategic, subresource: status}
    - delete: {kind, name, propagation: Background}
    - wait: {kind, name, path: a.b.0.c, equals: value, seconds: 30}
    - show: [Kind, ...]         # wait until nothing changes, then take down every object of these kinds;
                                # Event: what was said of kubeflow.org jobs, one entry however often it was said
    - show: {Kind: all, Kind: [status], Kind: []}   # of each object these members; with [] only that it is there
    - pause: seconds
A kind is Kind or Kind.group, in the version that the API server prefers, or Kind.version.group. An applied object is sent in the
version of its apiVersion. A name of patch, delete and wait may be a pattern, such as j-launcher-*: it means the newest object that matches and
is not being deleted.
The answer (CASEDIR/NAME.expect.json) lists, for each step, the HTTP status and message of a refusal and what was shown, with uids,
times, key material and the empty maps of JobSets and Jobs taken out. --record writes it, of all cases that can be run, and prints
'N recorded, N failed'; without it the run compares and prints 'N passed, N failed'. The words of a refusal count only with
--messages. Pods are shown with the phase only as status, and without the token volume; those that a Job has made are named by their
generateName and a number, in the order in which they were made. Pods, Services and Jobs of kubeflow.org jobs are shown without what
the API server fills in. These Services keep clusterIP None, and their ports are in the order of names. The text of scripts
(kubexec.sh, the init container that waits) is not compared, only that it is there and, of the latter, for which host it waits.

A departures file lists differences that are meant: [{case: GLOB, path: REGEX, reason: why}, ...], for shown and kept-back cases
alike. With `added: true` only what is there beyond the record is meant, and not what is missing or changed. A departed file says what is there instead, {case: {path: text}}, so that a case it names may differ in just that;
--record-departed writes it. An exceptions file lists, as a departures file does, what differs on this server alone, such as local
mode; one that does not occur fails. An expected file names, one in a line, the cases that are held, by their path from the folder of
this file and without .yaml (# begins a comment); all others are not run but listed as open, and a path where there is no case fails.
Every case runs in a namespace of its own, named after it. Cluster-scoped objects of a case are removed before it starts and after it
ends.
"""
import argparse
import base64
import collections
import fnmatch
import glob
import http.client
import json
import os
import re
import ssl
import sys
import tempfile
import time

import yaml

from answers import events, number_pods_of_jobs, refusal, shown


class Api:
    """A connection to the API server of a kubeconfig, kept open."""

    def __init__(self, path):
        with open(path) as f:
            config = yaml.safe_load(f)

        def named(section, name):
            return next(entry[section[:-1]] for entry in config[section] if entry["name"] == name)

        context = named("contexts", config["current-context"])
        cluster, user = named("clusters", context["cluster"]), named("users", context["user"])
        scheme, rest = cluster["server"].split("://")
        self.host = rest.rstrip("/")
        self.ssl = self._tls(cluster, user) if scheme == "https" else None
        self.headers = {"Authorization": "Bearer " + user["token"]} if user.get("token") else {}
        self.connection = None
        self.kinds = {}

    @staticmethod
    def _tls(cluster, user):
        def data(section, key):
            if key + "-data" in section:
                return base64.b64decode(section[key + "-data"])
            if key in section:
                with open(section[key], "rb") as f:
                    return f.read()
            return None

        authority = data(cluster, "certificate-authority")
        tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
        if cluster.get("insecure-skip-tls-verify"):
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        if certificate := data(user, "client-certificate"):
            with tempfile.NamedTemporaryFile() as c, tempfile.NamedTemporaryFile() as k:
                c.write(certificate)
                c.flush()
                k.write(data(user, "client-key"))
                k.flush()
                tls.load_cert_chain(c.name, k.name)
        return tls

    def call(self, method, path, body=None, content_type="application/json"):
        """(status, decoded answer); a connection that the server has closed is opened again."""
        for attempt in (0, 1):
            try:
                if not self.connection:
                    self.connection = (http.client.HTTPSConnection(self.host, context=self.ssl, timeout=60) if self.ssl
                                       else http.client.HTTPConnection(self.host, timeout=60))
                self.connection.request(method, path, None if body is None else json.dumps(body),
                                        {**self.headers, "Content-Type": content_type, "Accept": "application/json"})
                response = self.connection.getresponse()
                raw = response.read()
                return response.status, json.loads(raw) if raw[:1] in (b"{", b"[") else raw.decode(errors="replace")
            except (http.client.HTTPException, OSError):
                self.connection = None
                if attempt:
                    raise

    def discover(self):
        self.kinds = {}
        groups = self.call("GET", "/apis")[1]["groups"]
        preferred = [g["preferredVersion"] for g in groups]
        others = [v for g in groups for v in g["versions"] if v != g["preferredVersion"]]
        for base in ["/api/v1"] + [f"/apis/{v['groupVersion']}" for v in preferred + others]:
            group, version = base.split("/")[2] if base.startswith("/apis") else "", base.split("/")[-1]
            for resource in self.call("GET", base)[1].get("resources", []):
                if "/" not in resource["name"]:
                    kind, entry = resource["kind"], (base, resource["name"], resource["namespaced"])
                    for name in (f"{kind}.{version}.{group}", f"{kind}.{group}", kind):
                        self.kinds.setdefault(name, entry)

    def kind_of(self, obj):
        """Kind.version.group of an object if that is served, otherwise its kind."""
        group, _, version = obj.get("apiVersion", "v1").rpartition("/")
        kind = f"{obj['kind']}.{version}.{group}"
        return kind if kind in self.kinds else obj["kind"]

    def is_namespaced(self, kind):
        return self.kinds.get(kind, ("", "", True))[2]

    def path(self, kind, namespace, name=None):
        if kind not in self.kinds:
            self.discover()
        base, plural, namespaced = self.kinds[kind]
        return base + (f"/namespaces/{namespace}" if namespaced else "") + "/" + plural + (f"/{name}" if name else "")

    def path_of_named(self, kind, namespace, name):
        """The path of an object. A pattern of names means the newest object that it matches and that is not being deleted."""
        if "*" not in name:
            return self.path(kind, namespace, name)
        found = [m for m in (i["metadata"] for i in self.call("GET", self.path(kind, namespace))[1].get("items", []))
                 if fnmatch.fnmatch(m["name"], name) and "deletionTimestamp" not in m]
        newest = max(found, key=lambda m: (m["creationTimestamp"], m["name"]), default={"name": name})   # no object has the pattern's name
        return self.path(kind, namespace, newest["name"])


def dig(value, path):
    for part in path.split("."):
        if isinstance(value, list):
            value = value[int(part)] if -len(value) <= int(part) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value


# ---- running a case

PATCHES = {"merge": "application/merge-patch+json", "json": "application/json-patch+json",
           "strategic": "application/strategic-merge-patch+json"}


class Runner:
    def __init__(self, api, is_patient=False):
        self.api = api
        self.is_patient = is_patient   # lets the caches of what is recorded catch up with a runtime

    def settle(self, namespace, kinds, least=0.8, most=15):
        """Waits until no object of these kinds has changed for `least` seconds."""
        last, since, start = None, time.time(), time.time()
        while time.time() - start < most:
            now = []
            for kind in kinds:
                status, found = self.api.call("GET", self.api.path(kind, namespace))
                now.append([(i["metadata"]["name"], i["metadata"]["resourceVersion"]) for i in found.get("items", [])]
                           if status == 200 else status)
            if now != last:
                last, since = now, time.time()
            elif time.time() - since >= least:
                return
            time.sleep(0.1)

    def drop_cluster_objects(self, case):
        for step in case["steps"]:
            o = step.get("apply")
            if o and not self.api.is_namespaced(self.api.kind_of(o)) and o["kind"] not in ("CustomResourceDefinition", "Namespace"):
                self.api.call("DELETE", self.api.path(self.api.kind_of(o), "", o["metadata"]["name"]))

    def new_namespace(self, namespace):
        for _ in range(300):
            status, found = self.api.call("GET", f"/api/v1/namespaces/{namespace}")
            if status == 404:
                break
            if found.get("metadata", {}).get("deletionTimestamp") is None:
                self.api.call("DELETE", f"/api/v1/namespaces/{namespace}")
            time.sleep(0.2)
        self.api.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})

    def run(self, name, case, is_as_wanted=lambda at, answer: True):
        """The answers of all steps. The answers are recorded again for some seconds while they are not
        `is_as_wanted(index of the step, answer)`: on a slow machine, quiet is not yet the end."""
        namespace = ("c-" + name)[:63].rstrip("-")
        self.api.discover()
        self.drop_cluster_objects(case)
        self.new_namespace(namespace)
        answers = []
        for at, step in enumerate(case["steps"]):
            (verb, argument), = step.items()
            if not hasattr(self, "do_" + verb):
                raise ValueError(f"unknown step {verb}")
            answer = self.answer(namespace, verb, argument)
            end = time.time() + 10
            while verb == "show" and not is_as_wanted(at, answer) and time.time() < end:
                answer = self.answer(namespace, verb, argument)
            answers.append(answer)
        self.api.call("DELETE", f"/api/v1/namespaces/{namespace}")
        self.drop_cluster_objects(case)
        return answers

    def answer(self, namespace, verb, argument):
        answer = {"step": verb}
        status, body = getattr(self, "do_" + verb)(namespace, argument, answer)
        answer["code"] = status
        if status >= 400:
            answer["message"] = refusal(body.get("message", "") if isinstance(body, dict) else str(body))
        return answer

    def do_apply(self, namespace, argument, answer):
        o = json.loads(json.dumps(argument).replace("{ns}", namespace))
        kind, name = self.api.kind_of(o), o["metadata"]["name"]
        answer["object"] = f"{o['kind']}/{name}"
        if self.api.is_namespaced(kind):
            o["metadata"]["namespace"] = namespace
        status, body = self.api.call("POST", self.api.path(kind, namespace), o)
        tries = 10  # a status may come between GET and PUT
        while status == 409 and tries > 0:
            tries -= 1
            stored = self.api.call("GET", self.api.path(kind, namespace, name))[1]
            o["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
            status, body = self.api.call("PUT", self.api.path(kind, namespace, name), o)
        if self.is_patient and o["kind"].endswith("Runtime") and status < 300:
            time.sleep(0.7)
        return status, body

    def do_patch(self, namespace, argument, answer):
        answer["object"] = f"{argument['kind']}/{argument['name']}"
        path = self.api.path_of_named(argument["kind"], namespace, argument["name"])
        if "subresource" in argument:
            path += "/" + argument["subresource"]
        return self.api.call("PATCH", path, argument["body"], PATCHES[argument.get("type", "merge")])

    def do_delete(self, namespace, argument, answer):
        answer["object"] = f"{argument['kind']}/{argument['name']}"
        body = {"propagationPolicy": argument["propagation"]} if "propagation" in argument else None
        return self.api.call("DELETE", self.api.path_of_named(argument["kind"], namespace, argument["name"]), body)

    def do_wait(self, namespace, argument, answer):
        answer["object"] = f"{argument['kind']}/{argument['name']} {argument.get('path', '')}={argument['equals']}"
        end = time.time() + argument.get("seconds", 30)
        while time.time() < end:
            status, found = self.api.call("GET", self.api.path_of_named(argument["kind"], namespace, argument["name"]))
            if (dig(found, argument["path"]) if argument.get("path") else status) == argument["equals"]:
                return 200, {}
            time.sleep(0.1)
        return 408, {"message": "timed out"}

    def do_show(self, namespace, argument, answer):
        self.settle(namespace, argument)
        answer["shown"] = {}
        for kind in argument:
            members = argument[kind] if isinstance(argument, dict) else "all"
            status, found = self.api.call("GET", self.api.path(kind, namespace))
            items = [i for i in (found.get("items", []) if status == 200 else [])
                     if i["metadata"]["name"] not in ("kube-root-ca.crt", "default")]
            for i in items:
                i.setdefault("kind", kind.split(".")[0])
            if kind == "Pod":
                number_pods_of_jobs(items)
            answer["shown"][kind] = events(items) if kind == "Event" else {
                i["metadata"]["name"]: {k: v for k, v in shown(i).items() if members == "all" or k in members} for i in items}
        return 200, {}

    def do_pause(self, namespace, argument, answer):
        time.sleep(argument)
        return 200, {}


# ---- comparing

# Left to the implementation in every case: status beyond conditions and jobsStatus, the snapshot's form.
FREE = [r"shown/TrainJob/[^/]+/status/(?!conditions|jobsStatus)", r"shown/ConfigMap/[^/]+-runtime-snapshot"]


# Where an answer is not what was recorded; texts of what was wanted and of what was found.
Difference = collections.namedtuple("Difference", "path want got")


# The text of what is not there; that of a value has quotes.
NOTHING = "nothing"


def text(value):
    return json.dumps(value, sort_keys=True)


def diff(want, got, path=""):
    if type(want) is not type(got):
        return [Difference(path or "/", text(want), text(got))]
    if isinstance(want, dict):
        if re.search(r"shown/TrainJob/[^/]+$", path):
            want, got = {"status": {}, **want}, {"status": {}, **got}
        out = []
        for k in sorted(set(want) | set(got)):
            if k not in got:
                out.append(Difference(f"{path}/{k}", text(want[k]), NOTHING))
            elif k not in want:
                out.append(Difference(f"{path}/{k}", NOTHING, text(got[k])))
            else:
                out += diff(want[k], got[k], f"{path}/{k}")
        return out
    if isinstance(want, list):
        if len(want) != len(got):
            return [Difference(path, f"{len(want)} items {text(want)}", f"{len(got)} {text(got)}")]
        return [d for i, (w, g) in enumerate(zip(want, got)) for d in diff(w, g, f"{path}/{i}")]
    return [] if want == got else [Difference(path, text(want), text(got))]


class Expectation:
    """The answers of a case's recording, and which differences from it do not count."""

    def __init__(self, name, case, path, departures, departed, exceptions, with_messages):
        with open(path) as f:
            self.want = json.load(f)
        # A case may list, under 'free', regexes of difference paths that are left to the implementation.
        self.free = case.get("free", []) + FREE + ([] if with_messages else [r"^/\d+/message$"])
        self.meant = [d for d in departures if fnmatch.fnmatch(name, d["case"])]
        self.departed = departed.get(name)
        self.exceptions = [e["path"] for e in exceptions if fnmatch.fnmatch(name, e["case"])]

    def differences(self, answers):
        return self.counted(diff(self.want, answers), "/")

    def is_met(self, at, answer):
        return at >= len(self.want) or not self.counted(diff(self.want[at], answer, f"/{at}"), f"/{at}/")

    def departures(self, answers):
        """The answers where a difference is intended, by path."""
        return {d.path: d.got for d in diff(self.want, answers) if self.is_meant(d)}

    def counted(self, found, below):
        unused = [Difference(pattern, "an exception", "what was recorded") for pattern in self.exceptions
                  if not any(re.search(pattern, d.path) for d in found)]
        if self.departed is None:
            return unused + [d for d in found if not self.is_free(d) and not self.is_meant(d)]
        wanted = [d._replace(want=self.departed.get(d.path, d.want)) for d in found if not self.is_free(d)]
        gone = set(self.departed) - {d.path for d in found}
        return unused + [d for d in wanted if d.want != d.got] + \
               [Difference(path, self.departed[path], "what was recorded") for path in sorted(gone) if path.startswith(below)]

    def is_free(self, difference):
        return any(re.search(pattern, difference.path) for pattern in self.free + self.exceptions)

    def is_meant(self, difference):
        return not self.is_free(difference) and any(
            re.search(d["path"], difference.path) and (difference.want == NOTHING or not d.get("added")) for d in self.meant)


# ---- the run


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("dirs", nargs="+")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--only", default="*")
    parser.add_argument("--record-departed", action="store_true")
    parser.add_argument("--departures")
    parser.add_argument("--departed")
    parser.add_argument("--exceptions")
    parser.add_argument("--expected")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--messages", action="store_true", help="refusals must also read the same")
    return parser.parse_args()


class Expected:
    """The cases of an expected file, by their path from its folder and without .yaml: v1/volcano/gang-volcano."""

    def __init__(self, path):
        self.folder = os.path.dirname(os.path.abspath(path))
        with open(path) as f:
            self.cases = {line.split("#")[0].strip() for line in f} - {""}

    def case_of(self, path):
        return os.path.relpath(os.path.abspath(path), self.folder)[:-len(".yaml")]

    def without_file(self, only):
        """The cases, of those with a name like `only`, that are not there: no one would notice that they are missing."""
        return sorted(case for case in self.cases
                      if fnmatch.fnmatch(os.path.basename(case), only) and not os.path.exists(os.path.join(self.folder, case + ".yaml")))


def printed(value, indent="", width=160):
    """JSON in which what fits into a line is one."""
    line = json.dumps(value, sort_keys=True)
    if not isinstance(value, (dict, list)) or len(indent) + len(line) <= width:
        return line
    inner = indent + " "
    items = ([f"{json.dumps(k)}: {printed(value[k], inner, width)}" for k in sorted(value)] if isinstance(value, dict)
             else [printed(v, inner, width) for v in value])
    brackets = "{}" if isinstance(value, dict) else "[]"
    return brackets[0] + "\n" + ",\n".join(inner + item for item in items) + "\n" + indent + brackets[1]


def record(runner, name, path):
    with open(path) as f:
        case = yaml.safe_load(f)
    answers = runner.run(name, case)
    with open(path[:-5] + ".expect.json", "w") as f:
        f.write(printed(answers) + "\n")
    print("recorded", name, [a.get("code") for a in answers])


class Replay:
    """Compares cases with what was recorded of them, and gathers what departs with a reason."""

    def __init__(self, runner, args):
        self.runner, self.args = runner, args
        self.departures, self.exceptions = map(self.list_of, (args.departures, args.exceptions))
        self.departed = {}
        if args.departed and os.path.exists(args.departed):
            with open(args.departed) as f:
                self.departed = json.load(f)

    @staticmethod
    def list_of(path):
        if not path:
            return []
        with open(path) as f:
            return yaml.safe_load(f) or []

    def compare(self, name, path):
        """The subject of the case, and its differences from the recording."""
        about = ""
        if self.args.record_departed:
            self.departed.pop(name, None)
        try:
            with open(path) as f:
                case = yaml.safe_load(f)
            about = case.get("about", "")
            expectation = Expectation(name, case, path[:-5] + ".expect.json", self.departures, self.departed, self.exceptions,
                                      self.args.messages)
            answers = self.runner.run(name, case, expectation.is_met)
            wrong = expectation.differences(answers)
            if self.args.record_departed and not wrong:
                self.departed[name] = expectation.departures(answers)
            return about, wrong
        except Exception as error:   # one broken case must not hide the others
            return about, [Difference("", "an answer", repr(error))]

    def report(self, name, about, wrong):
        print(f"FAIL {name}: {about}")
        limit = None if self.args.verbose else 300
        for path, want, got in wrong if self.args.verbose else wrong[:6]:
            print(f"    {path}: want {want[:limit]} got {got[:limit]}")

    def keep_departed(self):
        with open(self.args.departed, "w") as f:
            json.dump(self.departed, f, indent=1, sort_keys=True)
            f.write("\n")


def main():
    args = arguments()
    expected, still_open = Expected(args.expected) if args.expected else None, []
    passed = failed = 0
    for case in expected.without_file(args.only) if expected else []:
        failed += 1
        print(f"FAIL {case}: {args.expected} names it, and there is no such case")

    runner = Runner(Api(os.environ["KUBECONFIG"]), args.record)
    replay = Replay(runner, args)
    for path in sorted(p for d in args.dirs for p in glob.glob(os.path.join(d, "*.yaml"))):
        name = os.path.basename(path)[:-5]
        if not fnmatch.fnmatch(name, args.only):
            continue
        if expected and expected.case_of(path) not in expected.cases:
            still_open.append(expected.case_of(path))
            continue
        if args.record:
            try:
                record(runner, name, path)
                passed += 1
            except Exception as error:   # nor must it keep the others from being recorded
                failed += 1
                print(f"FAIL {name}: not recorded: {error!r}")
            continue
        about, wrong = replay.compare(name, path)
        if wrong:
            failed += 1
            replay.report(name, about, wrong)
        else:
            passed += 1
            print(f"ok   {name}")
    if args.record_departed:
        replay.keep_departed()
    if still_open:
        print("\nopen:\n" + "\n".join(still_open) + "\n")
    print(f"{passed} {'recorded' if args.record else 'passed'}, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
