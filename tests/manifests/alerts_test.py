#!/usr/bin/python3
"""manifests/monitoring: Prometheus takes the rules, each alert fires for what it names and has its paragraph in docs/operators/alerts.md,
queries name metrics that the program has, and the paths for kube-state-metrics exist in the schemas and give golden values of recorded
objects. Needs promtool (Debian's package prometheus), no cluster; tests/cluster/monitoring_test.py asks a real Prometheus.

ACCEPT=1 writes the generated files again: manifests/monitoring/prometheus-rule.yaml and kube-state-metrics.golden.
"""
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "manifests/monitoring"
TESTS = ROOT / "tests/manifests/monitoring"
OBJECTS = [ROOT / f"tests/instructions/objects/{name}.json" for name in ("trainjob", "trainjob-new", "jobset")]
ALERTS = ROOT / "docs/operators/alerts.md"
failures, checked = [], 0


def check(what, is_right, complaint=""):
    global checked
    checked += 1
    if not is_right:
        failures.append(f"{what}: {complaint}")


def promtool(*arguments):
    program = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if program is None:
        return 1, "promtool is missing: install Debian's package prometheus, or set PROMTOOL"
    done = subprocess.run([program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def same(path, text):
    if os.environ.get("ACCEPT") == "1":
        path.write_text(text)
    check(path.name, path.exists() and path.read_text() == text, f"ACCEPT=1 {pathlib.Path(__file__).name} writes it again; review the difference")


# ---- queries


def rules():
    return [rule for group in yaml.safe_load((FOLDER / "rules.yaml").read_text())["groups"] for rule in group["rules"]]


def panels():
    """(title, query) of the dashboard."""
    for panel in json.loads((FOLDER / "dashboard.json").read_text())["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def metrics_in(query):
    """The names of metrics in a query: words that are no function, label or keyword."""
    bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(by|on|without|ignoring) *\([^)]*\)', " ", query)
    words = set(re.findall(r"[a-zA-Z_:][\w:]*(?! *\()\b", bare))
    return {w for w in words if "_" in w and not re.search(rf"\b{w} *\(", bare)}


def metrics_of_the_program():
    sources = [*ROOT.glob("controller/**/*.cc"), *ROOT.glob("controller/**/*.hh")]
    names = set()
    for path in sources:
        names |= set(re.findall(r'"((?:trainer|controller_runtime|workqueue|rest_client|leader_election|certwatcher|process|jobset)_\w+)"',
                                path.read_text()))
    return names | {f"trainer_job_time_to_{step}_seconds" for step in ("jobset", "first_pod", "running")}


def check_queries():
    known = metrics_of_the_program()
    queries = [(rule["alert"], rule["expr"]) for rule in rules()] + list(panels())
    check("queries", len(queries) > 30, "there are fewer than expected")
    for title, query in queries:
        names = metrics_in(query)
        check(title, names, f"no metric in {query}")
        for name in names:
            check(title, name in known or re.sub("_(bucket|count|sum)$", "", name) in known, f"the program has no metric {name}")


# ---- alerts


def check_alerts():
    text = (FOLDER / "rules.yaml").read_text()
    groups = yaml.safe_load(text)["groups"]
    wrapped = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
               "metadata": {"name": "kubeflow-trainer", "namespace": "kubeflow-system"}, "spec": {"groups": groups}}
    same(FOLDER / "prometheus-rule.yaml", "# Written from rules.yaml by `ACCEPT=1 tests/manifests/alerts_test.py`.\n" +
         yaml.safe_dump(wrapped, sort_keys=False, width=130))
    code, said = promtool("check", "rules", FOLDER / "rules.yaml")
    check("promtool check rules", code == 0, said)
    code, said = promtool("test", "rules", TESTS / "rules_test.yaml")
    check("promtool test rules", code == 0, said)
    names = [rule["alert"] for rule in rules()]
    fired = {case["alertname"] for test in yaml.safe_load((TESTS / "rules_test.yaml").read_text())["tests"]
             for case in test["alert_rule_test"] if case["exp_alerts"]}
    for name in names:
        check(name, name in fired, "rules_test.yaml does not let it fire")
    titles = re.findall(r"^## (.*)$", ALERTS.read_text(), re.M)
    check("docs/operators/alerts.md", [t for t in titles if t in names] == names, f"the alerts are {names}, in this order")
    for rule in rules():
        wanted = f"docs/operators/alerts.md#{rule['alert'].lower()}"
        check(rule["alert"], rule["annotations"].get("runbook") == wanted, f"its runbook is {wanted}")


# ---- kube-state-metrics (docs/metrics/extend/customresourcestate-metrics.md)


def get(value, path):
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def number(value, nil_is_zero=False):
    """Does the same as its toFloat64: booleans, conditions' statuses and times count too."""
    if value is None:
        return 0.0 if nil_is_zero else None
    if isinstance(value, str):
        if value.lower() in ("true", "false", "unknown"):
            return float(value.lower() == "true")
        return datetime.datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
    return float(value)


def labels_of(value, paths):
    found = {name: get(value, path) for name, path in (paths or {}).items()}
    return {name: str(each) for name, each in found.items() if each is not None}


def values_of(metric, obj):
    """(labels, value) of one metric of one object."""
    each = metric["each"]
    if each["type"] == "Info":
        labels = labels_of(obj, each["info"]["labelsFromPath"])
        return [(labels, 1.0)] if labels else []
    if each["type"] == "StateSet":
        now = get(obj, each["stateSet"]["path"])
        return [({each["stateSet"]["labelName"]: state}, float(state == now)) for state in each["stateSet"]["list"]] if isinstance(now, str) else []
    gauge = each["gauge"]
    found = get(obj, gauge["path"])
    values = []
    for item in found if isinstance(found, list) else [found]:
        value = number(get(item, gauge.get("valueFrom", [])), gauge.get("nilIsZero", False))
        if value is not None:
            values.append((labels_of(item, gauge.get("labelsFromPath")), value))
    return values


def series_of(obj):
    """The lines that kube-state-metrics would show of an object."""
    for resource in yaml.safe_load((FOLDER / "kube-state-metrics.yaml").read_text())["spec"]["resources"]:
        kind = resource["groupVersionKind"]
        if (f"{kind['group']}/{kind['version']}", kind["kind"]) != (obj["apiVersion"], obj["kind"]):
            continue
        for metric in resource["metrics"]:
            for labels, value in values_of(metric, obj):
                text = ",".join(f'{k}="{v}"' for k, v in sorted({**labels_of(obj, resource["labelsFromPath"]), **labels}.items()))
                yield f"{resource['metricNamePrefix']}_{metric['name']}{{{text}}} {value:.17g}"


def check_paths():
    """Each path exists in the schema of its CRD, and StateSets list all values of an enum."""
    for resource in yaml.safe_load((FOLDER / "kube-state-metrics.yaml").read_text())["spec"]["resources"]:
        kind = resource["groupVersionKind"]
        crds = [yaml.safe_load(p.read_text()) for p in (ROOT / "manifests/crds").glob(f"{kind['group']}_*.yaml")]
        [crd] = [c for c in crds if c["spec"]["names"]["kind"] == kind["kind"]]
        [version] = [v for v in crd["spec"]["versions"] if v["name"] == kind["version"]]
        schema = version["schema"]["openAPIV3Schema"]

        def below(node, path, where):
            for part in path:
                if node is not None and "items" in node:
                    node = node["items"]
                if node is None or part not in node.get("properties", {}):
                    check(where, False, f"{kind['kind']} has no {path}")
                    return None
                node = node["properties"][part]
            return node.get("items", node) if node else None

        for metric in resource["metrics"]:
            each = metric["each"]
            meta = each[{"Info": "info", "StateSet": "stateSet", "Gauge": "gauge"}[each["type"]]]
            path = meta.get("path", [])
            if path[:1] == ["metadata"]:
                continue   # of every object
            node = below(schema, path, metric["name"])
            for inner in [*meta.get("labelsFromPath", {}).values(), meta.get("valueFrom", [])]:
                if inner[:1] != ["metadata"]:
                    below(node, inner, metric["name"])
            if each["type"] == "StateSet" and node and "enum" in node:
                check(metric["name"], set(meta["list"]) == set(node["enum"]), f"the states are {node['enum']}")


def main():
    check_queries()
    check_alerts()
    check_paths()
    golden = "".join(line + "\n" for path in OBJECTS for line in series_of(json.loads(path.read_text())))
    same(TESTS / "kube-state-metrics.golden", golden)
    print(*failures, f"monitoring: {checked - len(failures)} passed, {len(failures)} failed", sep="\n")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
