#!/usr/bin/python3
"""A real Prometheus scrapes a real run: every query of dashboard and alerts returns what the run did. Queues, caches and the log level are
shown, and changed, for those who have the right.

Needs a control plane without node, since the test ends the pods, and Debian's package prometheus ($PROMETHEUS and $PROMTOOL name others).
"""
import collections
import contextlib
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml

import harness
import v1_test
from clients_test import runtime, trainjob
from harness import ROOT, Failed, run, wait_until

sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/manifests"))
from alerts_test import panels, rules, series_of  # noqa: E402

HOST = os.environ.get("TESTBED_HOST")
PROMETHEUS = os.environ.get("PROMETHEUS", "prometheus")
PROMTOOL = os.environ.get("PROMTOOL", "promtool")
# Alerts that nothing in the run below causes. The others depend on how busy this machine is, or are caused on purpose.
QUIET = {"TrainerDown", "TrainerHasNoLeader", "TrainerHasTwoLeaders", "TrainerHasABug", "TrainerWatchIsSilent", "TrainerCertificateEnds",
         "TrainerStatusIsRefused", "TrainerMemoryIsHigh", "TrainingJobsFail", "TrainingJobsRestart", "TrainingJobsStartSlowly"}


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failed(f"{what}: {seen} instead of {wanted}")


# ---- the run


def pods_of(cluster, selector):
    return [p["metadata"]["name"] for p in cluster.list("pods", "-l", selector)
            if p["status"]["phase"] in ("Pending", "Running") and "deletionTimestamp" not in p["metadata"]]


def set_pods(cluster, selector, phase):
    """As a kubelet: the pods of this selector that are not over."""
    status = {"phase": phase}
    if phase == "Running":
        status["conditions"] = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")]
    for name in wait_until(f"pods with {selector}", lambda: pods_of(cluster, selector)):
        cluster.kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))


def phase(cluster, name):
    return (cluster.get("trainjob", name) or {}).get("status", {}).get("phase")


def play(cluster):
    """Jobs of both APIs in several phases; one is blocked, one was restarted, some wait for machines."""
    cluster.apply({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "taken"}, "spec": {
        "suspend": True, "replicatedJobs": runtime()["spec"]["template"]["spec"]["replicatedJobs"]}})
    once = runtime()
    once["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 0
    cluster.apply(once, *(trainjob(name) for name in ("done", "fails", "runs", "waits", "taken")), trainjob("paused", suspend=True),
                  trainjob("again", failurePolicy={"maxRestarts": 3}), v1_test.pytorchjob("v1-done", backoffLimit=0),
                  v1_test.pytorchjob("v1-fails", backoffLimit=0))
    for name, ends in (("done", "Succeeded"), ("fails", "Failed"), ("runs", None), ("again", "Failed")):
        set_pods(cluster, f"jobset.sigs.k8s.io/jobset-name={name}", "Running")
        wait_until(f"{name} runs", lambda name=name: phase(cluster, name) == "Running")
        if ends:
            set_pods(cluster, f"jobset.sigs.k8s.io/jobset-name={name}", ends)
    for name, ends in (("v1-done", "Succeeded"), ("v1-fails", "Failed")):
        for role in ("master", "worker"):
            v1_test.run_pod(cluster, wait_until("the pod", lambda name=name, role=role: pods_of(
                cluster, f"training.kubeflow.org/job-name={name},training.kubeflow.org/replica-type={role}"))[0])
        wait_until(f"{name} runs", lambda name=name: cluster.condition("pytorchjob", name, "Running"))
        v1_test.run_pod(cluster, f"{name}-master-0", ends,
                        terminated={"exitCode": 0 if ends == "Succeeded" else 1, "reason": "Completed" if ends == "Succeeded" else "Error"})
        wait_until(f"{name} ends", lambda name=name, ends=ends: cluster.condition("pytorchjob", name, ends))
    for name, wanted in (("done", "Complete"), ("fails", "Failed"), ("paused", "Suspended")):
        wait_until(f"{name} is {wanted}", lambda name=name, wanted=wanted: phase(cluster, name) == wanted)
    wait_until("the restart", lambda: (cluster.get("trainjob", "again") or {}).get("status", {}).get("restarts") == 1)
    wait_until("what blocks", lambda: cluster.get("trainjob", "taken").get("status", {}).get("reason") == "JobSetNameTaken")
    wait_until("no room", lambda: cluster.get("trainjob", "waits").get("status", {}).get("reason") == "Unschedulable", seconds=40)


# ---- Prometheus


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Prometheus:
    def __init__(self, directory, target):
        if shutil.which(PROMETHEUS) is None:
            raise Failed("prometheus is missing: install Debian's package of that name, or set PROMETHEUS and PROMTOOL")
        directory = pathlib.Path(directory)
        self.address = f"127.0.0.1:{free_port()}"
        (directory / "prometheus.yaml").write_text(yaml.safe_dump({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(ROOT / "manifests/monitoring/rules.yaml")],
            "scrape_configs": [{"job_name": "trainer", "honor_labels": True, "static_configs": [{"targets": [target]}]}]}))
        self.log = open(directory / "prometheus.log", "w")
        self.process = subprocess.Popen(
            [PROMETHEUS, f"--config.file={directory}/prometheus.yaml", f"--storage.tsdb.path={directory}/data",
             f"--web.listen-address={self.address}", "--log.level=warn"], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)

    def ask(self, path, **query):
        url = f"http://{self.address}{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Failed(f"{query}: {error.read().decode()}") from error

    def is_up(self):
        try:
            # It answers queries with 503 until it has read its own files.
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=10):
                return bool(self.query("trainer_build_info"))
        except OSError:
            return False

    def query(self, text):
        """[(labels, value)]"""
        answer = self.ask("/api/v1/query", query=text)
        assert answer["status"] == "success" and not answer.get("warnings"), answer
        return [(each["metric"], float(each["value"][1])) for each in answer["data"]["result"]]

    def by(self, text, *labels):
        """The values of a query by these labels of its series."""
        return {tuple(found.get(label, "") for label in labels) if len(labels) > 1 else found.get(labels[0], ""): value
                for found, value in self.query(text)}

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


@contextlib.contextmanager
def observed(cluster):
    """A controller with all kinds and admission, and a Prometheus that has scraped it."""
    with tempfile.TemporaryDirectory() as directory, v1_test.served() as controller:
        wait_until("admission", lambda: "webhooks published" in controller.said())
        prometheus = Prometheus(directory, controller.metrics)
        try:
            wait_until("a first scrape", prometheus.is_up)
            yield controller, prometheus
        finally:
            prometheus.stop()


def filled_in(query, namespace):
    return query.replace("$kind", ".*").replace("$namespace", namespace).replace("$__rate_interval", "1m")


def waiting():
    """How many TrainJobs of the cluster wait for each reason, other tests' included."""
    jobs = json.loads(run("kubectl", "get", "trainjobs", "-A", "-o", "json").stdout)["items"]
    return collections.Counter(job["status"]["reason"] for job in jobs if job["status"]["phase"] not in ("Running", "Complete", "Failed"))


def check_values(cluster, prometheus):
    """The gauges are what the API server has, the counters what the run did."""
    gauge = f'trainer_jobs{{namespace="{cluster.namespace}", kind="TrainJob"}}'
    wait_until("the gauge of phases", lambda: prometheus.by(f"sum by (phase) ({gauge})", "phase") == dict(
        collections.Counter(job["status"]["phase"] for job in cluster.list("trainjobs"))))
    expect("the runtime", set(prometheus.by(gauge, "runtime")), {"plain"})
    wait_until("the gauge of reasons", lambda: prometheus.by('trainer_jobs_waiting{kind="TrainJob"}', "reason") == dict(waiting()))
    of_v1 = f'trainer_jobs{{namespace="{cluster.namespace}", kind="PyTorchJob"}}'
    wait_until("the gauge of V1 jobs", lambda: prometheus.by(of_v1, "phase") == {"Complete": 1, "Failed": 1})
    finished = prometheus.by("trainer_finished_total", "kind", "result")
    for kind in ("TrainJob", "PyTorchJob"):
        for result in ("succeeded", "failed"):
            expect(f"{kind} {result}", finished.get((kind, result)), 1)
    failures = {k: v for k, v in prometheus.by("trainer_job_failures_total > 0", "kind", "reason").items()}
    expect("failures", failures, {("TrainJob", "FailedJobs"): 1, ("PyTorchJob", "BackoffLimitExceeded"): 1})
    expect("restarts", prometheus.by('trainer_job_restarts_total{kind="TrainJob"} > 0', "cause"), {"failure": 1})
    # "taken" and "paused" have no pods; "again" ran, too.
    for step, count in (("jobset", 6), ("first_pod", 5), ("running", 4)):
        seen = prometheus.by(f'trainer_job_time_to_{step}_seconds_count{{kind="TrainJob"}}', "kind")
        expect(f"times to {step}", seen, {"TrainJob": count})
        slowest = prometheus.by(f'trainer_job_time_to_{step}_seconds_sum{{kind="TrainJob"}}', "kind")["TrainJob"] / count
        assert 0 < slowest < 120, f"{slowest} s to {step}"
    for counter in ("jobset_completed_total", "jobset_failed_total"):
        expect(counter, prometheus.by(counter, "job"), {"trainer": 1})
    ends = prometheus.by("trainer_certificate_expiry_timestamp_seconds - time()", "certificate")
    assert 364 * 86400 < ends["server"] < 366 * 86400 and ends["ca"] > 3640 * 86400, ends
    ages = prometheus.by("trainer_watch_age_seconds", "resource")
    assert {"trainjobs", "jobsets", "jobs", "pods", "pytorchjobs"} <= set(ages) and max(ages.values()) < 120, ages


def test_every_query_returns_what_the_run_did(cluster):
    with observed(cluster) as (controller, prometheus):
        play(cluster)
        check_values(cluster, prometheus)
        time.sleep(5)   # rates are made of scrapes that lie apart

        for title, query in panels():
            found = prometheus.query(filled_in(query, cluster.namespace))
            assert found, f"the panel \"{title}\" is empty: {query}"
        shown = {title: filled_in(query, cluster.namespace) for title, query in panels()}
        running = sum(phase(cluster, job["metadata"]["name"]) == "Running" for job in cluster.list("trainjobs"))
        expect("Running", prometheus.query(shown["Running"]), [({}, running)])
        expect("Why jobs wait", prometheus.by(shown["Why jobs wait"], "reason"),
               prometheus.by("sum by (reason) (trainer_jobs_waiting)", "reason"))
        expect("Leaders", prometheus.by(shown["Leaders"], "name"), {"trainer.kubeflow.org": 1})

        for rule in rules():
            found = prometheus.query(rule["expr"])
            if rule["alert"] in QUIET:
                expect(rule["alert"], found, [])
        expressions = {rule["alert"]: rule["expr"] for rule in rules()}
        assert prometheus.by(expressions["TrainingJobsAreBlocked"], "kind", "reason").get(("TrainJob", "JobSetNameTaken"), 0) >= 1
        assert prometheus.by(expressions["TrainingJobsHaveNoRoom"], "kind", "reason").get(("TrainJob", "Unschedulable"), 0) >= 1
        for group in prometheus.ask("/api/v1/rules")["data"]["groups"]:
            for rule in group["rules"]:
                expect(f"{rule['name']}: {rule.get('lastError')}", rule["health"], "ok")

        with urllib.request.urlopen(f"http://{controller.metrics}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        run(PROMTOOL, "check", "metrics", text=text)
        # What kube-state-metrics would show of these objects.
        series = [line for name in ("done", "runs") for line in series_of(cluster.get("trainjob", name))]
        here = f'namespace="{cluster.namespace}"'
        for wanted in (f'kube_trainjob_status_phase{{{here},phase="Complete",trainjob="done"}} 1',
                       f'kube_trainjob_status_phase{{{here},phase="Running",trainjob="runs"}} 1',
                       f'kube_trainjob_status_nodes_ready{{{here},trainjob="runs"}} 1'):
            assert wanted in series, f"no {wanted} in {series}"
        for member in ("completion_time", "start_time", 'condition{'):
            assert any(f"kube_trainjob_status_{member}" in line and 'trainjob="done"' in line for line in series), f"no {member} in {series}"


def test_a_deleted_job_is_counted_no_more(cluster):
    with observed(cluster) as (_, prometheus):
        cluster.apply(runtime(), trainjob("gone"), trainjob("stays", suspend=True))
        query = f'sum by (phase) (trainer_jobs{{namespace="{cluster.namespace}"}})'
        wait_until("both are counted", lambda: sum(prometheus.by(query, "phase").values()) == 2)
        cluster.kubectl("delete", "trainjob", "gone")
        wait_until("one is counted", lambda: prometheus.by(query, "phase") == {"Suspended": 1})


# ---- at run time


def ask(controller, path, token="", method="GET", body=None):
    """(status, text)"""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(f"https://{controller.metrics}{path}", body, method=method)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_state_and_log_level_are_for_those_who_have_the_right(cluster):
    run("kubectl", "apply", "--server-side", "-f", str(ROOT / "manifests/monitoring/access.yaml"))
    tokens = {}
    for account, role in (("scraper", "kubeflow-trainer-metrics-reader"), ("person", "kubeflow-trainer-debugger")):
        cluster.kubectl("create", "serviceaccount", account)
        binding = f"{account}-{cluster.namespace}"
        run("kubectl", "delete", "clusterrolebinding", binding, "--ignore-not-found")
        run("kubectl", "create", "clusterrolebinding", binding, f"--clusterrole={role}", f"--serviceaccount={cluster.namespace}:{account}")
        tokens[account] = cluster.kubectl("create", "token", account).strip()

    def with_tokens(config):
        return config.replace("secureServing: false", "secureServing: true, auth: {enabled: true}")

    with tempfile.TemporaryDirectory() as directory:
        controller = harness.Controller(directory, "--webhook-url", f"https://{HOST}:9443", change_config=with_tokens).start()
        try:
            for path in ("/metrics", "/debug/state", "/debug/loglevel"):
                expect(f"{path} without a token", ask(controller, path)[0], 401)
            expect("the scraper scrapes", ask(controller, "/metrics", tokens["scraper"])[0], 200)
            for path in ("/debug/state", "/debug/loglevel"):
                expect(f"the scraper asks {path}", ask(controller, path, tokens["scraper"])[0], 403)
            expect("the scraper changes the level", ask(controller, "/debug/loglevel", tokens["scraper"], "PUT", b"debug")[0], 403)
            expect("the level", ask(controller, "/debug/loglevel", tokens["person"]), (200, "info\n"))

            cluster.apply(runtime(), trainjob("before", suspend=True))
            wait_until("its JobSet", lambda: cluster.get("jobset", "before"))
            assert "debug " not in controller.said()
            expect("a change", ask(controller, "/debug/loglevel", tokens["person"], "PUT", b"debug"), (200, "debug\n"))
            cluster.apply(trainjob("after", suspend=True))
            wait_until("writes are logged", lambda: "debug " in controller.said() and "after" in controller.said())
            assert "warn log level from=info to=debug" in controller.said()

            status, text = ask(controller, "/debug/state", tokens["person"])
            expect("the dump", status, 200)
            state = json.loads(text)
            expect("its level", state["logLevel"], "debug")
            expect("leadership", (state["manager"]["isLeading"], state["manager"]["isReady"], state["notReady"]), (True, True, ""))
            caches = {cache["resource"]: cache for cache in state["manager"]["caches"]}
            assert caches["trainjobs.trainer.kubeflow.org"]["objects"] >= 2, caches
            assert all(cache["isSynced"] and cache["silentSeconds"] < 120 for cache in caches.values() if cache["isServed"]), caches
            expect("workers", state["manager"]["controllers"]["jobset"]["workers"], 32)
            controller.stop()
        finally:
            controller.kill()


if __name__ == "__main__":
    harness.main(__file__)
