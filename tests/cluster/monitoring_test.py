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
from harness import ROOT, TRAINER, Failed, run, wait_until

sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/manifests"))
from alerts_test import panels, rules, series_of  # noqa: E402

HOST = os.environ.get("TESTBED_HOST")
PROMETHEUS = os.environ.get("PROMETHEUS", "prometheus")
PROMTOOL = os.environ.get("PROMTOOL", "promtool")
# Alerts that nothing in the run below causes, those that it causes, by what each names, and those that depend on how busy this machine is.
QUIET = {"TrainerDown", "TrainerHasNoLeader", "TrainerHasTwoLeaders", "TrainerHasABug", "TrainerWatchIsSilent", "TrainerCertificateEnds",
         "TrainerAdmissionFails", "TrainerIsCrowded", "TrainerStatusIsRefused", "TrainerMemoryIsHigh", "TrainingJobsFail", "TrainingJobsRestart",
         "TrainingJobsStartSlowly", "TrainingJobsStall"}
CAUSED = {"TrainingJobsAreBlocked": ("TrainJob", "JobSetNameTaken"), "TrainingJobsHaveNoRoom": ("TrainJob", "Unschedulable"),
          "TrainingJobsDoNotStart": ("TrainJob", "ImagePullFailed")}
FAILURES = {("TrainJob", "FailedJobs"): 1, ("JobSet", "FailedJobs"): 1, ("PyTorchJob", "BackoffLimitExceeded"): 1}
BUSY = {"TrainerReconcilesFail", "TrainerIsBehind", "TrainerRequestsFail"}
V1_KINDS = "pytorchjobs,tfjobs,xgboostjobs,paddlejobs,jaxjobs,mpijobs"


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failed(f"{what}: {seen} instead of {wanted}")


# ---- the run


def pods_of(cluster, selector):
    return [p["metadata"]["name"] for p in cluster.list("pods", "-l", selector)
            if p["status"]["phase"] in ("Pending", "Running") and "deletionTimestamp" not in p["metadata"]]


def set_pods(cluster, selector, phase, **more):
    """Sets the status of the pods of this selector that have not ended, like a kubelet."""
    status = {"phase": phase, **more}
    if phase == "Running":
        status["conditions"] = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")]
    for name in wait_until(f"pods with {selector}", lambda: pods_of(cluster, selector)):
        cluster.kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))


def phase(cluster, name):
    return (cluster.get("trainjob", name) or {}).get("status", {}).get("phase")


def jobset(name, **spec):
    jobs = runtime()["spec"]["template"]["spec"]["replicatedJobs"]
    jobs[0]["template"]["spec"]["backoffLimit"] = 0
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": {"replicatedJobs": jobs, **spec}}


def spend(cluster, seconds):
    """The job `runs` has been productive for so long; no rank of it reports, so that the controller adds nothing."""
    status = {"goodput": {"productive": seconds, "current": "productive", "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}}
    cluster.kubectl("patch", "trainjob/runs", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))


def play(cluster):
    """Jobs of all APIs in several phases; one is blocked, one was restarted, some wait for machines, one for its image."""
    cluster.apply(jobset("taken", suspend=True), jobset("own-runs"), jobset("own-fails"))
    once, elsewhere = runtime(), runtime("elsewhere")
    once["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 0
    # No scheduler says of its pods that there is no room.
    elsewhere["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["schedulerName"] = "none"
    cluster.apply(once, elsewhere, *(trainjob(name) for name in ("done", "fails", "runs", "waits", "taken")), trainjob("paused", suspend=True),
                  trainjob("pulls", runtimeRef={"name": "elsewhere", "kind": "TrainingRuntime"}),
                  trainjob("again", failurePolicy={"maxRestarts": 3}), v1_test.pytorchjob("v1-done", backoffLimit=0),
                  v1_test.pytorchjob("v1-fails", backoffLimit=0))
    for name, ends in (("done", "Succeeded"), ("fails", "Failed"), ("runs", None), ("again", "Failed")):
        set_pods(cluster, f"jobset.sigs.k8s.io/jobset-name={name}", "Running")
        wait_until(f"{name} runs", lambda name=name: phase(cluster, name) == "Running")
        if ends:
            set_pods(cluster, f"jobset.sigs.k8s.io/jobset-name={name}", ends)
    set_pods(cluster, "jobset.sigs.k8s.io/jobset-name=pulls", "Pending", containerStatuses=[
        {"name": "node", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": {"waiting": {"reason": "ErrImagePull"}}}])
    spend(cluster, 10)
    for name in ("own-runs", "own-fails"):
        set_pods(cluster, f"jobset.sigs.k8s.io/jobset-name={name}", "Running")
        wait_until(f"{name} runs", lambda name=name: cluster.get("jobset", name)["status"]["replicatedJobsStatus"][0]["ready"] == 1)
    set_pods(cluster, "jobset.sigs.k8s.io/jobset-name=own-fails", "Failed")
    wait_until("the JobSet fails", lambda: cluster.condition("jobset", "own-fails", "Failed"))
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
    wait_until("no image", lambda: cluster.get("trainjob", "pulls").get("status", {}).get("reason") == "ImagePullFailed")
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
            "global": {"scrape_interval": "2s", "evaluation_interval": "1s"}, "rule_files": [str(ROOT / "manifests/monitoring/rules.yaml")],
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
    """The query for an interval that contains the whole run."""
    return query.replace("$kind", ".*").replace("$namespace", namespace).replace("$__rate_interval", "1h")


def everywhere(kinds):
    return json.loads(run("kubectl", "get", kinds, "-A", "-o", "json").stdout)["items"]


def waiting():
    """How many TrainJobs of the cluster wait for each reason, other tests' included."""
    jobs = [job["status"] for job in everywhere("trainjobs")]
    return collections.Counter(job["reason"] for job in jobs if job["phase"] not in ("Running", "Complete", "Failed"))


def waiting_of_all_kinds():
    """The same of all jobs, but JobSets of TrainJobs."""
    found = waiting()
    for each in everywhere("jobsets"):
        status, spec = each.get("status", {}), each["spec"]
        if status.get("terminalState") or any(owner["kind"] == "TrainJob" for owner in each["metadata"].get("ownerReferences", [])):
            continue
        counts = {job["name"]: job["ready"] + job["succeeded"] for job in status.get("replicatedJobsStatus", [])}
        if spec.get("suspend"):
            found["Suspended"] += 1
        elif not all(counts.get(job["name"], 0) >= job["replicas"] for job in spec["replicatedJobs"]):
            found["NodesReplaced" if status.get("restarts") else "CreatingPods"] += 1
    for each in everywhere(V1_KINDS):
        now = {c["type"] for c in each.get("status", {}).get("conditions", []) if c["status"] == "True"}
        if not now & {"Succeeded", "Failed"}:
            reasons = {"Suspended": "Suspended", "Restarting": "NodesReplaced", "Running": None}
            reason = next((reasons[word] for word in reasons if word in now), "CreatingPods")
            found.update([reason] if reason else [])
    return found


def check_values(cluster, prometheus):
    """The gauges are what the API server has, the counters what the run did."""
    gauge = f'trainer_jobs{{namespace="{cluster.namespace}", kind="TrainJob"}}'
    wait_until("the gauge of phases", lambda: prometheus.by(f"sum by (phase) ({gauge})", "phase") == dict(
        collections.Counter(job["status"]["phase"] for job in cluster.list("trainjobs"))))
    expect("the runtimes", set(prometheus.by(gauge, "runtime")), {"plain", "elsewhere"})
    wait_until("the gauge of reasons", lambda: prometheus.by('trainer_jobs_waiting{kind="TrainJob"}', "reason") == dict(waiting()))
    of_v1 = f'trainer_jobs{{namespace="{cluster.namespace}", kind="PyTorchJob"}}'
    wait_until("the gauge of V1 jobs", lambda: prometheus.by(of_v1, "phase") == {"Complete": 1, "Failed": 1})
    # One that a TrainJob owns is counted as that.
    of_jobsets = f'trainer_jobs{{namespace="{cluster.namespace}", kind="JobSet"}}'
    wait_until("the gauge of JobSets", lambda: prometheus.by(of_jobsets, "phase") == {"Suspended": 1, "Running": 1, "Failed": 1})
    expect("what has ended", prometheus.by("trainer_finished_total > 0", "kind", "result"), {
        **{(kind, result): 1 for kind in ("TrainJob", "PyTorchJob") for result in ("succeeded", "failed")}, ("JobSet", "failed"): 1})
    failures = {k: v for k, v in prometheus.by("trainer_job_failures_total > 0", "kind", "reason").items()}
    expect("failures", failures, FAILURES)
    expect("restarts", prometheus.by('trainer_job_restarts_total{kind="TrainJob"} > 0', "cause"), {"failure": 1})
    # "taken" and "paused" have no pods; "again" ran, too.
    for step, count in (("jobset", 7), ("first_pod", 6), ("running", 4)):
        seen = prometheus.by(f'trainer_job_time_to_{step}_seconds_count{{kind="TrainJob"}}', "kind")
        expect(f"times to {step}", seen, {"TrainJob": count})
        slowest = prometheus.by(f'trainer_job_time_to_{step}_seconds_sum{{kind="TrainJob"}}', "kind")["TrainJob"] / count
        assert 0 < slowest < 120, f"{slowest} s to {step}"
    for counter, count in (("jobset_completed_total", 1), ("jobset_failed_total", 2)):
        expect(counter, prometheus.by(counter, "job"), {"trainer": count})
    ends = prometheus.by("trainer_certificate_expiry_timestamp_seconds - time()", "certificate")
    assert 364 * 86400 < ends["server"] < 366 * 86400 and ends["ca"] > 3640 * 86400, ends
    ages = prometheus.by("trainer_watch_age_seconds", "resource")
    assert {"trainjobs", "jobsets", "jobs", "pods", "pytorchjobs"} <= set(ages) and max(ages.values()) < 120, ages


def check_panels(cluster, controller, prometheus):
    """Values of the panels that show what the run has determined, and bounds of what depends on this machine."""
    shown = {title: filled_in(query, cluster.namespace) for title, query in panels()}

    def values(title, *labels):
        return prometheus.by(shown[title], *labels) if labels else [value for _, value in prometheus.query(shown[title])]

    def increases(title, *labels):
        """Prometheus extrapolates an increase by up to a scrape at each end."""
        return {key: round(value) for key, value in values(title, *labels).items() if round(value)}

    jobs = [job["status"]["phase"] for job in cluster.list("trainjobs")]
    running = jobs.count("Running") + 1   # and a JobSet
    expect("Running", values("Running"), [running])
    phases = collections.Counter(jobs) + collections.Counter({"Complete": 1, "Failed": 2, "Running": 1, "Suspended": 1})
    expect("Jobs by phase", values("Jobs by phase", "phase"), dict(phases))
    expect("Running jobs by namespace", values("Running jobs by namespace", "namespace"), {cluster.namespace: running})
    expect("Running jobs by runtime", values("Running jobs by runtime", "runtime"), {"plain": running - 1, "": 1})
    wait_until("Why jobs wait", lambda: values("Why jobs wait", "reason") == dict(waiting_of_all_kinds()),
               shown=lambda: f"{values('Why jobs wait', 'reason')} instead of {waiting_of_all_kinds()}")
    wait_until("Waiting", lambda: values("Waiting") == [sum(waiting_of_all_kinds().values())])
    for title, count in (("Failed in the last hour", 3), ("Succeeded in the last hour", 2)):
        expect(title, [round(value) for value in values(title)], [count])
    expect("Failures by reason", increases("Failures by reason", "kind", "reason"), FAILURES)
    expect("Restarts by cause", increases("Restarts by cause", "kind", "cause"), {("TrainJob", "failure"): 1})
    expect("Leaders", values("Leaders", "name"), {"trainer.kubeflow.org": 1})
    expect("Versions", values("Versions", "version"), {run(TRAINER, "version").stdout.split()[1]: 1})
    days = values("Days until a certificate ends", "certificate")
    assert 364 < days["server"] < 366 and days["ca"] > 3640, days
    for title in ("Until the JobSet (median, 90 %)", "Until the first pod (median, 90 %)", "Until it runs (median, 90 %)"):
        assert all(0 < value < 300 for value in values(title)), f"{title}: {values(title)}"
    wait_until("Keys that wait for a worker", lambda: set(values("Keys that wait for a worker", "name").values()) == {0})
    assert all(0 <= share <= 1 for share in values("Busy workers")), values("Busy workers")
    results = values("Reconciles by result", "controller", "result")
    for name in ("trainjob_controller", "jobset", "pytorchjob-controller"):
        assert results.get((name, "success"), 0) > 0, results
    answers = values("Admission by answer", "webhook", "code")
    # A rate is 0 where all requests came before the first scrape that has the series.
    assert ("/validate-trainer-kubeflow-org-v1alpha1-trainjob", "200") in answers and "500" not in {code for _, code in answers}, answers
    codes = values("Requests to the API server by code", "code")
    assert codes["200"] > 0 and codes["201"] > 0, codes
    silences = values("Silence of watches", "resource")
    assert {"trainjobs", "jobsets", "jobs", "pods", "pytorchjobs"} <= set(silences) and max(silences.values()) < 120, silences
    wait_until("Objects in the caches", lambda: values("Objects in the caches", "kind")["TrainJob"] == len(everywhere("trainjobs")))
    [line] = [line for line in pathlib.Path(f"/proc/{controller.process.pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    [memory] = values("Memory")
    assert 0.7 < memory / 1024 / int(line.split()[1]) < 1.4, f"{memory} beside {line}"
    [processor] = values("Processor")
    assert 0 < processor < 2, processor


def check_alerts(prometheus):
    expressions = {rule["alert"]: rule["expr"] for rule in rules()}
    expect("the alerts", set(expressions), QUIET | set(CAUSED) | BUSY)
    for alert in QUIET:
        expect(alert, prometheus.query(expressions[alert]), [])
    for alert, named in CAUSED.items():
        found = prometheus.by(expressions[alert], "kind", "reason")
        assert found.get(named, 0) >= 1, f"{alert}: {found}"
    for alert in BUSY:
        prometheus.query(expressions[alert])


def test_every_query_returns_what_the_run_did(cluster):
    with observed(cluster) as (controller, prometheus):
        play(cluster)
        check_values(cluster, prometheus)
        spend(cluster, 50)
        time.sleep(8)   # rates are made of scrapes that lie apart

        for title, query in panels():
            found = prometheus.query(filled_in(query, cluster.namespace))
            assert found, f"the panel \"{title}\" is empty: {query}"
        check_panels(cluster, controller, prometheus)
        check_alerts(prometheus)
        for group in prometheus.ask("/api/v1/rules")["data"]["groups"]:
            for rule in group["rules"]:
                expect(f"{rule['name']}: {rule.get('lastError')}", rule["health"], "ok")

        with urllib.request.urlopen(f"http://{controller.metrics}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        run(PROMTOOL, "check", "metrics", text=text)
        # The series that kube-state-metrics would show of these objects.
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
