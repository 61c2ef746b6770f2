#!/usr/bin/python3
"""Runs schedules of faults beside jobs, and checks what is there at the end, by the objects and by the audit log."""
import argparse
import collections
import datetime
import functools
import json
import pathlib
import signal
import sys
import tempfile
import threading
import time

from bed import RUN, AdmissionService, Component, Controller, etcd_alarm, token_kubeconfig
import harness
import schedule
from conform import Api
from crash_test import runtime, trainjob
from harness import run, wait_until

NAME, ATTEMPT = "jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/restart-attempt"
# Seconds until every job is as its script says, from when the last fault is over and Kubernetes' own controllers work again. A Lease
# lasts 15 s, pauses up to 30 s.
SETTLED_WITHIN = 75
# Seconds. An API server that has just started serves the watch of one resource before that of another. A controller that has not
# seen the deletion of a job makes objects for it meanwhile, and the garbage collector deletes them.
DELETION_SEEN_WITHIN = 10
RUNTIME_CRD = harness.ROOT / "manifests/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml"
BINDING = "kubeflow-trainer-controller-manager"
SECRET = ("kubeflow-system", "kubeflow-trainer-webhook-cert")
ENDS = {"complete": "Complete", "restart": "Complete", "suspend": "Complete", "fail": "Failed", "delete": None}


class Kubelet(threading.Thread):
    """Ends pods as the jobs' scripts say."""

    def __init__(self, world):
        super().__init__(daemon=True)
        self.world, self.api, self.is_over, self.seen = world, world.new_api(), False, {}

    def run(self):
        while not self.is_over:
            try:
                self.step()
            except (OSError, AssertionError, ValueError):
                pass   # the API server is away
            time.sleep(0.3)

    def step(self):
        for pod in self.world.list("Pod", self.api):
            labels, uid = pod["metadata"]["labels"], pod["metadata"]["uid"]
            job = self.world.jobs.get(labels.get(NAME, ""))
            began = self.seen.setdefault(uid, time.monotonic())
            if not job or pod["status"]["phase"] != "Pending" or "deletionTimestamp" in pod["metadata"]:
                continue
            if time.monotonic() - began >= job.pod_seconds:
                fails = job.pod_fails(int(labels.get(ATTEMPT, "0"))) and labels["jobset.sigs.k8s.io/replicatedjob-name"] == "node"
                self.api.call("PATCH", self.api.path("Pod", self.world.namespace, pod["metadata"]["name"]) + "/status",
                              {"status": {"phase": "Failed" if fails else "Succeeded"}}, "application/merge-patch+json")


def is_crd_back():
    """One that is still being deleted takes the apply, and goes."""
    done = run("kubectl", "apply", "--server-side", "-f", str(RUNTIME_CRD), "-o", "json", check=False)
    return done.returncode == 0 and "deletionTimestamp" not in json.loads(done.stdout)["metadata"]


def in_turn(steps):
    """(when, what) of steps about one thing. While the API server is stalled, a later one must not overtake an earlier one."""
    earlier = None
    for when, what in steps:
        done = threading.Event()

        def act(what=what, earlier=earlier, done=done):
            if earlier:
                earlier.wait(60)
            what()
            done.set()

        yield when, act
        earlier = done


class World:
    """One run: a namespace, two controllers, jobs and faults."""

    def __init__(self, seed, directory):
        self.seed, self.namespace = seed, f"faults-{seed}"
        self.api = self.new_api()
        jobs, self.faults = schedule.make(seed)
        self.jobs = {job.name: job for job in jobs}
        run("kubectl", "create", "namespace", self.namespace)
        kubeconfig = token_kubeconfig(directory)
        self.controllers = [Controller(number, directory, kubeconfig, seed + number, has_admission=True) for number in (0, 1)]
        self.audit_begins = (RUN / "audit.log").stat().st_size

    @staticmethod
    def new_api():
        api = Api(str(RUN / "admin.kubeconfig"))
        api.discover()
        return api

    def list(self, kind, api=None):
        api = api or self.api
        status, found = api.call("GET", api.path(kind, self.namespace))
        if status in (429, 503):   # it has just started, and does not serve all resources yet
            raise ConnectionError(found)
        assert status == 200, found
        return found["items"]

    def request(self, method, kind, body, name="", content_type="application/json"):
        """A user's request, tried again while the API server is away, or no controller answers its reviews."""
        api = Api(str(RUN / "admin.kubeconfig"))   # of this thread
        api.kinds = self.api.kinds
        path = api.path(kind, self.namespace, *([name] if name else []))

        answer = None

        def is_done():
            nonlocal answer
            try:
                status, answer = api.call(method, path, body, content_type)
            except OSError as error:
                answer = error
                return False
            # Made by an earlier try whose answer was lost; or deleted.
            return status < 300 or status == 404 or (method == "POST" and status == 409)

        wait_until(f"{method} {kind} {name}", is_done, seconds=60, shown=lambda: answer)

    # ---- what happens

    def actions(self):
        """(when, what) of everything that users and faults do, in order."""
        found = []
        for job in self.jobs.values():
            body = trainjob(job.name, f"restarts-{1 if job.script == 'restart' else 0}")
            requests = [(job.created, ("POST", "TrainJob", body))]
            if job.script == "suspend":
                requests += [(when, ("PATCH", "TrainJob", {"spec": {"suspend": value}}, job.name, "application/merge-patch+json"))
                             for when, value in ((job.acted, True), (job.resumed, False))]
            elif job.script == "delete":
                requests.append((job.acted, ("DELETE", "TrainJob", None, job.name)))
            found += in_turn((when, functools.partial(self.request, *arguments)) for when, arguments in requests)
        for fault in self.faults:
            found += in_turn([(fault.begin, functools.partial(self.begin, fault)),
                              (fault.begin + fault.seconds, functools.partial(self.end, fault))])
        return sorted(found, key=lambda action: action[0])

    def begin(self, fault):
        controller = self.controllers[fault.target]
        component, _, what = fault.kind.partition("-")
        if fault.kind == "kill":
            controller.kill()
        elif fault.kind == "stall":
            controller.stall(True)
        elif fault.kind == "clock":
            controller.set_clock(int((fault.rate - 0.4) * 36000))
        elif fault.kind == "etcd-full":
            etcd_alarm("ACTIVATE")
        elif fault.kind == "rights":
            run("kubectl", "delete", "clusterrolebinding", BINDING)
        elif fault.kind == "runtime-crd":
            # Another fault may have filled etcd, or stopped the API server.
            wait_until("the CRD is deleted", seconds=60, probe=lambda: run(
                "kubectl", "delete", "--ignore-not-found", "-f", str(RUNTIME_CRD), "--wait=false", check=False).returncode == 0)
        elif fault.kind == "secret":
            wait_until("the Secret is deleted", seconds=60, probe=lambda: run(
                "kubectl", "delete", "secret", "--ignore-not-found", "-n", *SECRET, check=False).returncode == 0)
        elif component in ("api", "etcd"):
            process = fault.process = Component("apiserver" if component == "api" else "etcd")
            process.signal(signal.SIGSTOP) if what == "stall" else process.kill()
        else:
            controller.proxy.fault = fault

    def end(self, fault):
        controller = self.controllers[fault.target]
        component, _, what = fault.kind.partition("-")
        if fault.kind == "stall":
            controller.stall(False)
        elif fault.kind == "clock":
            controller.set_clock(0)
        elif fault.kind == "etcd-full":
            etcd_alarm("DEACTIVATE")
        elif fault.kind == "rights":
            wait_until("rights are given back", lambda: run(
                "kubectl", "apply", "--server-side", "-k", str(harness.ROOT / "manifests/rbac"), check=False).returncode == 0, seconds=60)
        elif fault.kind == "runtime-crd":
            wait_until("the CRD is back", is_crd_back, seconds=60, every=1)
        elif component in ("api", "etcd"):
            fault.process.signal(signal.SIGCONT) if what == "stall" else fault.process.start()
        elif fault.kind not in ("kill", "secret"):
            controller.proxy.fault = None

    def play(self):
        for controller in self.controllers:
            controller.start(wait=False)
        wait_until("both controllers are alive", lambda: all(c.is_ready() for c in self.controllers), seconds=30)
        admission = AdmissionService(self.controllers)
        admission.start()
        for restarts in (0, 1):
            self.request("POST", "TrainingRuntime", runtime(f"restarts-{restarts}", restarts))
        kubelet = Kubelet(self)
        kubelet.start()
        began = time.monotonic()
        down_until = {fault.target: began + fault.begin + fault.seconds for fault in self.faults if fault.kind == "kill"}
        threads = []
        for when, act in self.actions():
            while (left := began + when - time.monotonic()) > 0:
                time.sleep(min(left, 0.2))
                self.revive(down_until)
            # A user who waits for a stalled API server holds up no fault.
            threads.append(threading.Thread(target=act, daemon=True))
            threads[-1].start()
        for thread in threads:
            thread.join(60)
        self.await_kubernetes()

        def is_settled():
            self.revive({})
            try:
                return not self.complaints()
            except OSError:
                return False

        try:
            wait_until("every job is as its script says", is_settled, seconds=SETTLED_WITHIN, every=1)
            self.check_admission()
        except harness.Failed:
            raise AssertionError("; ".join(self.complaints()) or "admission does not work") from None
        finally:
            kubelet.is_over = admission.is_over = True
            for controller in self.controllers:
                controller.stall(False)
                controller.kill()
                controller.proxy.close()

    def await_kubernetes(self):
        """Waits until the controller manager has seen a Job begin, end and go. When the API server has been away often, its watches
        wait for more than a minute, and jobs cannot go on meanwhile."""
        name = "kubernetes-works"
        jobs, pods = (self.api.path(kind, "default") for kind in ("Job", "Pod"))
        pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": name, "image": "localhost/none:1"}]}}

        def call(*arguments):
            self.revive({})
            try:
                status, answer = self.api.call(*arguments)
            except OSError:
                return None
            return answer if status in (200, 201) else None

        def pods_of_it():
            answer = call("GET", f"{pods}?labelSelector=job-name={name}")
            return None if answer is None else [o["metadata"]["name"] for o in answer["items"]]

        def is_complete():
            job = call("GET", f"{jobs}/{name}")
            return job and any(c["type"] == "Complete" for c in job["status"].get("conditions", []))

        wait_until("the API server takes a Job", seconds=60, probe=lambda: call(
            "POST", jobs, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": pod}}))
        made, = wait_until("the controller manager makes its pod", pods_of_it, seconds=240)
        call("PATCH", f"{pods}/{made}/status", {"status": {"phase": "Succeeded"}}, "application/merge-patch+json")
        wait_until("it sees the pod's end", is_complete, seconds=240)
        call("DELETE", f"{jobs}/{name}", {"propagationPolicy": "Background"})
        wait_until("it removes the pod", lambda: pods_of_it() == [], seconds=240)

    def revive(self, down_until):
        for number, controller in enumerate(self.controllers):
            if time.monotonic() > down_until.get(number, 0):
                controller.revive()

    # ---- the checks

    def check_admission(self):
        """The certificates are stored, and every controller is ready. Invalid objects are refused with the reason, and valid ones
        are accepted."""
        path = self.api.path("TrainJob", self.namespace) + "?dryRun=All"

        def is_reviewed():
            self.revive({})
            try:
                refused, why = self.api.call("POST", path, trainjob("refused", "nowhere"))
                taken, _ = self.api.call("POST", path, trainjob("taken", "restarts-0"))
                stored, secret = self.api.call("GET", self.api.path("Secret", *SECRET))
            except OSError:
                return False
            has_certificates = stored == 200 and "tls.crt" in secret.get("data", {})
            return refused == 403 and "must be created before the TrainJob" in str(why) and taken == 201 and has_certificates

        wait_until("all controllers are ready", lambda: all(c.answers("readyz") for c in self.controllers), seconds=60)
        wait_until("admission works", is_reviewed, seconds=60)

    def complaints(self):
        """The objects that are not yet, or not any more, as they must be at the end."""
        trainjobs = {o["metadata"]["name"]: o for o in self.list("TrainJob")}
        jobsets = {o["metadata"]["name"]: o for o in self.list("JobSet")}
        found = []
        for job in self.jobs.values():
            wanted, there = ENDS[job.script], trainjobs.get(job.name)
            conditions = {c["type"] for c in (there or {}).get("status", {}).get("conditions", []) if c["status"] == "True"}
            ended = conditions & {"Complete", "Failed"}
            if wanted is None and there:
                found.append(f"TrainJob {job.name} is not deleted")
            elif wanted and ended != {wanted}:
                found.append(f"TrainJob {job.name} is {sorted(conditions)}, not {wanted}")
            if wanted and there and jobsets.get(job.name, {}).get("status", {}).get("restarts", 0) != (job.script == "restart"):
                found.append(f"JobSet {job.name} has {jobsets.get(job.name, {}).get('status')}")
        return found + self.orphans(trainjobs, jobsets) + self.unlike_statuses(trainjobs, jobsets)

    def orphans(self, trainjobs, jobsets):
        uids = {o["metadata"]["uid"] for o in [*trainjobs.values(), *jobsets.values()]}
        objects = [(kind, o) for kind in ("JobSet", "Job", "Service", "ConfigMap", "Pod") for o in self.list(kind)]
        uids |= {o["metadata"]["uid"] for kind, o in objects if kind == "Job"}
        return [f"{kind} {o['metadata']['name']} has no owner" for kind, o in objects if o["metadata"]["name"] != "kube-root-ca.crt"
                and not any(r["uid"] in uids for r in o["metadata"].get("ownerReferences", []))]

    def unlike_statuses(self, trainjobs, jobsets):
        """Statuses that say something else than the Jobs they are about."""
        jobs = collections.defaultdict(list)
        for job in self.list("Job"):
            jobs[job["metadata"]["labels"][NAME]].append(job)
        found = []
        for name, jobset in jobsets.items():
            counted = {s["name"]: s["succeeded"] for s in jobset.get("status", {}).get("replicatedJobsStatus", [])}
            real = collections.Counter(job["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] for job in jobs[name]
                                       if any(c["type"] == "Complete" and c["status"] == "True" for c in job["status"].get("conditions", [])))
            if any(real[step] != count for step, count in counted.items()):
                found.append(f"JobSet {name} counts {counted}, Jobs are {dict(real)}")
            if name in trainjobs and {s["name"]: s["succeeded"] for s in trainjobs[name].get("status", {}).get("jobsStatus", [])} != counted:
                found.append(f"TrainJob {name} counts {trainjobs[name].get('status', {}).get('jobsStatus')}, its JobSet {counted}")
        return found

    def check_requests(self):
        """By the audit log: no child is made twice, so none once its job has ended."""
        created, deleted_at, late = collections.Counter(), {}, []
        for entry in sorted(harness.audit_entries(self.audit_begins), key=lambda entry: entry["stageTimestamp"]):
            what, code = entry.get("objectRef", {}), entry.get("responseStatus", {}).get("code")
            if what.get("namespace") != self.namespace:
                continue
            job, when = self.job_of(entry), datetime.datetime.fromisoformat(entry["stageTimestamp"].replace("Z", "+00:00"))
            if entry["verb"] == "delete" and what.get("resource") == "trainjobs" and code == 200:
                deleted_at.setdefault(job, when)
            # An apply of what does not exist is answered 201, too.
            is_made = entry["verb"] in ("create", "patch") and code == 201 and what.get("resource") != "events"
            if not is_made or not entry.get("userAgent", "").startswith("trainer"):
                continue
            if job in deleted_at and (when - deleted_at[job]).total_seconds() > DELETION_SEEN_WITHIN:
                late.append(f"{what.get('resource')} {what.get('name')} was created at {when}, its job was deleted at {deleted_at[job]}")
            if job not in deleted_at:
                created[what.get("resource"), what.get("name"), job] += 1
        assert not late, "; ".join(late)
        found = []
        for (resource, name, job), count in created.items():
            if job not in self.jobs:
                continue
            most = 2 if self.jobs[job].script == "restart" and resource == "jobs" else 1
            if count > most:
                found.append(f"{resource} {name} was created {count} times, at most {most} is right")
        assert any(resource == "jobs" for resource, *_ in created), "the audit log has no Job of this run"
        assert not found, "; ".join(found)

    def job_of(self, entry):
        name = entry["objectRef"].get("name") or ""
        return next((job for job in self.jobs if name == job or name.startswith(job + "-")), name)

    def check_writes(self):
        """A controller that was stalled for longer than its Lease writes nothing after the other one has begun to."""
        for number, controller in enumerate(self.controllers):
            other = self.controllers[1 - number]
            for stall in (f for f in self.faults if f.kind == "stall" and f.target == number and f.seconds > 16):
                taken = [when for when, *_ in other.proxy.writes_of(self.namespace) if when > controller.stalled_at]
                late = [w for w in controller.proxy.writes_of(self.namespace) if taken and taken[0] < w[0] < controller.continued_at + 5]
                assert not late, f"controller {number} was stalled for {stall.seconds:.0f} s and then wrote {late[:3]}"


def simulate(seed):
    jobs, faults = schedule.make(seed)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        world = World(seed, directory)
        try:
            world.play()
            world.check_requests()
            world.check_writes()
            print(f"ok   seed {seed} ({time.monotonic() - began:.0f} s): {', '.join(fault.kind for fault in faults)}", flush=True)
            return True
        except AssertionError as error:
            print(f"FAIL seed {seed} ({time.monotonic() - began:.0f} s): {error}\n     " + "\n     ".join(map(str, faults)), flush=True)
            for controller in world.controllers:
                kept = pathlib.Path(tempfile.gettempdir()) / f"faults-{seed}-{controller.health.split(':')[1]}.log"
                kept.write_text(controller.log.read_text())
                print(f"     log of a controller: {kept}", flush=True)
            return False
        finally:
            run("kubectl", "delete", "namespace", world.namespace, "--wait=false", check=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--minutes", type=float, help="begin no run after this time")
    arguments = parser.parse_args()
    ends = time.monotonic() + 60 * arguments.minutes if arguments.minutes else None
    results = []
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        if ends and time.monotonic() > ends:
            break
        results.append(simulate(seed))
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    sys.exit(0 if results and all(results) else 1)


if __name__ == "__main__":
    main()
