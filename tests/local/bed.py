"""The code that the tests of local mode share: a daemon with a state of its own, its API, jobs, and a count at the end.

A test file defines functions test_*, each taking a Local that is not up yet, and ends with `bed.main()`. A missing feature of the machine is no
failure: `raise bed.Skipped(reason)`. The program is $TRAINER (default: build/trainer), copied to where an ordinary user can read it.
"""
import atexit
import base64
import concurrent.futures
import contextlib
import functools
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
import harness  # noqa: E402
from harness import ROOT, Failed  # noqa: E402

EXAMPLES = ROOT / "docs/examples"
API = "trainer.kubeflow.org/v1alpha1"
TRAINJOBS = f"/apis/{API}/namespaces/default/trainjobs"
PODS = "/api/v1/namespaces/default/pods"
ORDINARY = 65534   # a user and group without rights
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="trainer-local-"))
TRAINER = FOLDER / "trainer"


class Skipped(Exception):
    pass


wait_until = functools.partial(harness.wait_until, every=0.02)   # nothing here is far away


TORCH = threading.Lock()


def torch():
    """A directory for the front of PATH in which torchrun works."""
    with TORCH:
        done = subprocess.run([ROOT / "tools/torch", FOLDER / "torch"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def processes_with(marker):
    """The ids of processes that have this text in their command line or environment, but for this one."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                pass   # it has ended, or is another user's
    return found


def peak_memory(pid):
    """In MB."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise Failed(f"process {pid} has ended")


def memory(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise Failed(f"process {pid} has ended")


def trainjob(name, script, nodes=1, requests=None, env=(), **spec):
    """A TrainJob whose nodes run a script of sh."""
    trainer = {"numNodes": nodes, "command": ["/bin/sh", "-c", script], "env": list(env)}
    if requests:
        trainer["resourcesPerNode"] = {"requests": requests}
    return {"apiVersion": API, "kind": "TrainJob", "metadata": {"name": name, "namespace": "default"},
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer, **spec}}


# A kind that takes any object.
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.x.io"},
    "spec": {"group": "x.io", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"},
             "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                 "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


UID = {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}


class Local:
    """Local mode with a state of its own; `uid`: as this user."""

    def __init__(self, folder, uid=None, wrapper=()):
        self.folder, self.uid, self.wrapper = pathlib.Path(folder), uid, list(wrapper)
        self.folder.mkdir(parents=True)
        self.state = self.folder / "state"
        self.scratch = self.folder / "scratch"   # for files of jobs
        self.scratch.mkdir()
        self.env = {**os.environ, "HOME": str(self.folder), "TRAINER_LOCAL_STATE": str(self.state)}
        self.env.pop("VIRTUAL_ENV", None)
        if uid is not None:
            for path in (self.folder, self.scratch):
                os.chown(path, uid, uid)
            self.wrapper = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *self.wrapper]

    def command(self, *words):
        return [*self.wrapper, str(TRAINER), "local", *map(str, words)]

    def run(self, *words, code=0, text=None, timeout=120, env=None):
        """A subcommand and what it has printed; `code`: the exit status it must have, None for any."""
        done = subprocess.run(self.command(*words), input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=timeout, env={**self.env, **(env or {})}, cwd=self.folder)
        if code is not None and done.returncode != code:
            raise Failed(f"trainer local {' '.join(map(str, words))}: exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}{self.log()}")
        return done

    def start(self, *words, **options):
        """A subcommand that continues."""
        started = subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.env,
                                   cwd=self.folder, **options)
        atexit.register(lambda: started.poll() is None and started.kill())
        return started

    def log(self):
        path = self.state / "daemon.log"
        return f"\nthe daemon's log ends with:\n{path.read_text(errors='replace')[-2000:]}" if path.exists() else ""

    def up(self, *options):
        self.run("up", *options)
        return self

    def up_in_tier(self, tier):
        done = self.run("up", "--tier", tier, code=None)
        if done.returncode != 0:
            raise Skipped(f"tier {tier}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
        return self

    def daemon(self):
        return json.loads((self.state / "daemon.json").read_text())

    def kill_daemon(self):
        """Kills the daemon as in a power cut, but not the pods."""
        pid = self.daemon()["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_until("the daemon is gone", lambda: not pathlib.Path(f"/proc/{pid}").exists() or is_zombie(pid))

    def patch(self, path, change):
        return self.request(path, change, "PATCH", "application/merge-patch+json")

    def request(self, path, body=None, method=None, media_type="application/json"):
        """The answer; None for a 404."""
        config = yaml.safe_load((self.state / "kubeconfig").read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        asked = urllib.request.Request(cluster["server"] + path, json.dumps(body).encode() if body is not None else None,
                                       {"Content-Type": media_type, "Authorization": "Bearer " + user["token"]}, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=30, context=context) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise Failed(f"{method or 'GET'} {path}: {error.code} {error.read().decode()[:500]}") from error

    def create(self, job):
        return self.request(TRAINJOBS, job, "POST")

    def job(self, name):
        return self.request(f"{TRAINJOBS}/{name}")

    def phase(self, name):
        return ((self.job(name) or {}).get("status") or {}).get("phase")

    def wait_for(self, name, phase, seconds=60):
        wait_until(f"TrainJob {name} is {phase}", lambda: self.phase(name) == phase, seconds)

    def pods(self, job=None):
        query = f"?labelSelector=jobset.sigs.k8s.io%2Fjobset-name%3D{job}" if job else ""
        return self.request(PODS + query)["items"]

    def runtime(self, name, **spec):
        """A TrainingRuntime whose Jobs have this, besides a container `node`."""
        pod = {"restartPolicy": "Never", "containers": [{"name": "node", "image": "localhost/none:1"}]}
        job = {"name": "node", "template": {"metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                                            "spec": {**spec, "template": {"spec": pod}}}}
        return {"apiVersion": API, "kind": "TrainingRuntime", "metadata": {"name": name, "namespace": "default"},
                "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [job]}}}}

    def write(self, name, *objects):
        """A file of YAML documents."""
        path = self.folder / name
        path.write_text(yaml.safe_dump_all(objects))
        path.chmod(0o644)
        return path

    def lines(self, name):
        """Those of a file of self.scratch."""
        path = self.scratch / name
        return path.read_text().splitlines() if path.exists() else []

    def end(self):
        self.run("down", code=None)
        wait_until("no process of this state is left", lambda: not self.left_over(), seconds=15)

    def left_over(self):
        """Processes of the daemon, of shims, and of pods whose scripts name a file of this test."""
        return processes_with(f"{self.folder}/")


def is_zombie(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def run_test(name, test):
    """True: passed, False: failed, None: skipped."""
    began = time.monotonic()
    local = Local(FOLDER / name)
    try:
        test(local)
        local.end()
        result, said = True, "ok  "
    except Skipped as reason:
        result, said = None, f"SKIP ({reason})"
    except Exception as error:   # the other tests still have something to say
        result, said = False, f"FAIL {error}"
        if not isinstance(error, AssertionError):
            traceback.print_exc(file=sys.stdout)
    finally:
        local.run("down", code=None)
        for pid in local.left_over():
            with contextlib.suppress(ProcessLookupError):   # it has ended since
                os.kill(pid, signal.SIGKILL)
    print(f"{said[:4]} {name} ({time.monotonic() - began:.1f} s){said[4:]}", flush=True)
    return result


def has_networks():
    """Pods have networks of their own, as in tier 1. In the others, jobs of two daemons would want the same ports."""
    return subprocess.run(["unshare", "--user", "--map-root-user", "--net", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def main(ran=(), parallel=1):
    """Runs the tests of the calling file: see harness.selected_tests(). `ran`: what the tests say that they have tried, for ./check.
    `parallel`: how many run side by side, each with a daemon of its own; for tests that ask for no tier, or listen to no port."""
    FOLDER.chmod(0o755)
    atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
    shutil.copy(os.environ.get("TRAINER", ROOT / "build/trainer"), TRAINER)
    TRAINER.chmod(0o755)
    with concurrent.futures.ThreadPoolExecutor(parallel if has_networks() else 1) as pool:
        results = list(pool.map(lambda test: run_test(*test), harness.selected_tests()))
    for where in ran:
        print(f"ran  {where}")
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
