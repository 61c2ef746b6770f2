"""The code that tests on a genuine cluster share: kubectl, waiting, a controller on the host, and a count at the end.

A test file defines functions test_*, each taking a Cluster, and ends with `harness.main(__file__)`. Each test runs in a
namespace of its own, named after it, so those of a file that says `parallel` run side by side. The cluster is that of
$KUBECONFIG; `testbed env` sets it. With local mode, what cannot be tried there is skipped with the reason.
"""
import atexit
import concurrent.futures
import contextlib
import importlib.util
import inspect
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAINER = os.environ.get("TRAINER", str(ROOT / "build/trainer"))
TESTBED = str(ROOT / "tests/cluster/testbed")
# "": a genuine control plane serves the API. Otherwise it is local mode, with the controller "beside" it or "within" it.
LOCAL = os.environ.get("LOCAL_MODE", "")
# A controller's options for admission; "beside" has none, since local mode calls no webhooks of others.
ADMISSION = ("--no-webhooks",) if LOCAL else ("--webhook-url", f"https://{os.environ.get('TESTBED_HOST')}:9443")


class Failed(AssertionError):
    pass


class Skipped(Exception):
    pass


def not_with_local_mode(reason):
    if LOCAL:
        raise Skipped(reason)


def needs_admission():
    if LOCAL == "beside":
        raise Skipped("local mode calls no webhooks")


def run(*command, text=None, check=True, **options):
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def wait_until(what, probe, seconds=30, every=0.1, shown=None):
    """Calls probe() until it answers something true, which is returned. Where it does not, the failure says what shown() answers."""
    end = time.monotonic() + seconds
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > end:
            raise Failed(f"not within {seconds} s: {what}" + (f"; {shown()}" if shown else ""))
        time.sleep(every)


def use_sdk(package="kubeflow==0.5.0"):
    """Starts the test again with the official Python SDK, from PyPI, where this Python has none."""
    if importlib.util.find_spec("kubeflow") is None:
        python = run(str(ROOT / "tools/python-tool"), package, "python").stdout.strip()
        os.execv(python, [python, *sys.argv])


@contextlib.contextmanager
def at_rate(per_second, act):
    """Calls act(1), act(2), ... so many times a second in a thread, until the block ends. Their exceptions fail the block."""
    is_over, errors, began = threading.Event(), [], time.monotonic()

    def act_all():
        number = 0
        while not is_over.wait(max(0, began + number / per_second - time.monotonic())):
            number += 1
            try:
                act(number)
            except Exception as error:
                errors.append(error)

    thread = threading.Thread(target=act_all)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
    if errors:
        raise Failed(f"{len(errors)} failed, first: {errors[0]}")


def only_with_long(test):
    """A test that takes long beside what it adds to the others of its file: it runs where it is named, and with LONG=yes (`./check --long`)."""
    test.is_long = True
    return test


IS_LONG = os.environ.get("LONG") == "yes"


class Cluster:
    def __init__(self, namespace):
        self.namespace = namespace

    def kubectl(self, *arguments, **options):
        return run("kubectl", "-n", self.namespace, *arguments, **options).stdout

    def apply(self, *objects):
        """Creates or changes objects (dicts) by kubectl apply."""
        return self.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def refusal(self, *objects):
        """The message of kubectl on standard error when an apply is refused."""
        done = run("kubectl", "-n", self.namespace, "apply", "-f", "-", check=False,
                   text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        if done.returncode == 0:
            raise Failed("accepted: " + done.stdout)
        return done.stderr

    def get(self, kind, name):
        """The object, or None."""
        done = run("kubectl", "-n", self.namespace, "get", kind, name, "-o", "json", check=False)
        if done.returncode == 0:
            return json.loads(done.stdout)
        if "NotFound" in done.stderr:
            return None
        raise Failed(done.stderr)

    def put(self, api, kind, name, change, manager=""):
        """Updates an object like a typed client: reads it, calls change(object), sends it whole under this field manager, and
        starts again when a status write came between."""
        query = f"?fieldManager={manager}" if manager else ""
        path = f"/apis/{api}/namespaces/{self.namespace}/{kind}s/{name}{query}"

        def is_taken():
            o = self.get(kind, name)
            change(o)
            done = run("kubectl", "replace", "--raw", path, "-f", "-", text=json.dumps(o), check=False)
            if done.returncode != 0 and "Conflict" not in done.stderr:
                raise Failed(f"PUT of {kind} {name}: {done.stderr}")
            return done.returncode == 0

        wait_until(f"the PUT of {kind} {name} is taken", is_taken)

    def put_trainjob(self, name, change, manager=""):
        self.put("trainer.kubeflow.org/v1alpha1", "trainjob", name, lambda job: change(job["spec"]), manager)

    def list(self, kind, *arguments):
        return json.loads(self.kubectl("get", kind, "-o", "json", *arguments))["items"]

    def why(self, job):
        return run(TRAINER, "why", "-n", self.namespace, job, check=False).stdout

    def pods_of(self, job):
        """The uids of the pods of a JobSet."""
        return {pod["metadata"]["uid"] for pod in self.list("pods", "-l", f"jobset.sigs.k8s.io/jobset-name={job}")}

    def condition(self, kind, name, wanted):
        """The condition of this type if it is True."""
        o = self.get(kind, name)
        conditions = (o or {}).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == wanted and c["status"] == "True"), None)


def port_holders():
    """The sockets that keep a controller from listening for webhooks."""
    return run("ss", "-Htanpe", "exclude", "time-wait", f"sport = :9443 and ( src {os.environ['TESTBED_HOST']} or src 0.0.0.0 )").stdout


# Upstream's manager listens on all addresses of the machine, so no controller on another test bed may have this port.
MANAGER_PORT = 9000 + int(os.environ.get("TESTBED_HOST", "0.0.0.0").split(".")[1])


def manager_command(directory, *flags, metrics=None):
    """The program called as the Training Operator's manager."""
    host = os.environ["TESTBED_HOST"]
    (pathlib.Path(directory) / "manager").symlink_to(TRAINER)
    return [f"{directory}/manager", *flags, f"--webhook-server-port={MANAGER_PORT}", f"--metrics-bind-address={metrics or host + ':8443'}",
            f"--health-probe-bind-address={host}:8081"]


class HostController:
    """A controller on the host. Its ports are on the test bed's address."""

    def __init__(self, directory, *options, kubeconfig=None, env=None, change_config=str):
        directory = pathlib.Path(directory)
        self.log = directory / "controller.log"
        config = directory / "controller.yaml"
        config.write_text(change_config(run(TESTBED, "config").stdout))
        self.command = [TRAINER, "controller", "--config", str(config), *options]
        self.env = {**os.environ, **(env or {})}
        if kubeconfig:
            self.env["KUBECONFIG"] = str(kubeconfig)
        self.health, self.metrics = (f"{os.environ['TESTBED_HOST']}:{port}" for port in (8081, 8443))
        self.process = None
        self.log_begins = 0   # of the process that was started last

    def start(self, wait=True):
        with open(self.log, "a") as log:
            self.log_begins = self.log.stat().st_size
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.env)
        atexit.register(self.kill)   # one that is left behind would hold the ports of all that follow
        if wait:
            try:
                wait_until("the controller is ready", self.is_ready)
            except Failed as error:
                self.kill()
                raise Failed(f"{error}; its log ends with:\n{self.log.read_text()[-2000:]}") from error
        return self

    def is_ready(self):
        if self.process.poll() is not None:
            raise Failed(f"the controller ended with {self.process.returncode}:\n{self.log.read_text()[-2000:]}{port_holders()}")
        return self.answers("readyz")

    def answers(self, probe):
        try:
            with urllib.request.urlopen(f"http://{self.health}/{probe}", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    def said(self):
        """The log of the process that was started last."""
        with open(self.log) as log:
            log.seek(self.log_begins)
            return log.read()

    def metric(self, name, label=""):
        """The sum of a metric's samples, of those with a label such as 'code="200"'; 0 where it has none yet."""
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        assert "\nprocess_resident_memory_bytes " in text, f"these are no metrics of a controller:\n{text[:1000]}"
        return sum(float(line.split()[-1]) for line in text.splitlines() if re.match(re.escape(name) + "[{ ]", line) and label in line)

    def kill(self):
        """Kills the process, which cannot clean up, as in a power cut."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        """Ends the process like a rolling update; the exit status must be 0."""
        self.process.terminate()
        try:
            status = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed("the controller did not end within 30 s of SIGTERM")
        if status != 0:
            raise Failed(f"the controller ended with {status} on SIGTERM:\n{self.log.read_text()[-2000:]}")


class OfDaemon:
    """The controller within local mode, which runs from the beginning to the end, whatever a test does."""

    def __init__(self, *_, **__):
        pass

    def start(self):
        return self

    def stop(self):
        pass

    kill = stop


Controller = OfDaemon if LOCAL == "within" else HostController


class Neighbour:
    """Another user of the cluster, with a namespace of their own, whom nothing in the namespace of a test may delay. Requests go
    through `kubectl proxy`, since starting kubectl takes longer than what is measured."""

    def __init__(self, cluster):
        self.namespace = f"{cluster.namespace[:50]}-neighbour"
        self.jobsets = 0

    def __enter__(self):
        run("kubectl", "delete", "namespace", self.namespace, "--ignore-not-found", "--wait", "--timeout=60s")
        run("kubectl", "create", "namespace", self.namespace)
        self.proxy = subprocess.Popen(["kubectl", "proxy", "--port=0"], stdout=subprocess.PIPE, text=True)
        self.url = "http://" + re.search(r"127\.0\.0\.1:\d+", self.proxy.stdout.readline())[0]
        return self

    def __exit__(self, *_):
        self.proxy.kill()
        self.proxy.wait()
        run("kubectl", "delete", "namespace", self.namespace, "--wait=false")

    def request(self, path, body=None, method=None, content_type="application/json"):
        """The answer; None for a 404."""
        data = json.dumps(body).encode() if body else None
        try:
            asked = urllib.request.Request(self.url + path, data, {"Content-Type": content_type}, method=method)
            with urllib.request.urlopen(asked, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise Failed(f"{path}: {error.code} {error.read().decode()[:500]}") from error
            return None

    def wait_for_job(self):
        """Creates a ConfigMap and a JobSet; answers the seconds until the API server has answered each, and from the JobSet's POST until
        its Job exists."""
        self.jobsets += 1
        name = f"n{self.jobsets}"
        pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "localhost/none:1"}]}
        began = time.monotonic()
        self.request(f"/api/v1/namespaces/{self.namespace}/configmaps", {"metadata": {"name": name}})
        posted = time.monotonic()
        self.request(f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{self.namespace}/jobsets", {
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name},
            "spec": {"replicatedJobs": [{"name": "w", "template": {"spec": {
                "parallelism": 0, "completions": 1, "template": {"spec": pod}}}}]}})
        answered = time.monotonic()
        job = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}-w-0"
        wait_until(f"the Job of the neighbour's JobSet {name} exists", lambda: self.request(job), every=0.005)
        return posted - began, answered - posted, time.monotonic() - posted

    def check_is_served(self, times=20):
        """95 % of the neighbour's JobSets have their Job in 150 ms, and the controller's health probe answers within a second. Where the
        API server itself is busy, by the attack or because others use the cores, it takes longer than 10 ms to store a ConfigMap, which
        this controller does not review: what it takes longer is not counted, for five requests. These are the JobSet, the watch, a write of
        another namespace that has the place, the Job, and the look at it. There 75 % count, since others take the cores for a while; an attack
        that delays the neighbour delays most of its JobSets."""
        taken, probes = [], []
        for _ in range(times):
            taken.append(self.wait_for_job())
            began = time.monotonic()
            with urllib.request.urlopen(f"http://{os.environ['TESTBED_HOST']}:8081/healthz", timeout=10) as answer:
                assert answer.status == 200
            probes.append(time.monotonic() - began)
        config_maps, posts, ends = (sorted(each) for each in zip(*taken))
        config_map, post = (each[int(0.95 * (times - 1))] for each in (config_maps, posts))
        is_quick = post < 0.02 or config_map < 0.01
        share = 0.95 if is_quick else 0.75
        waited = ends[int(share * (times - 1))]
        limit = 0.15 if is_quick else 0.15 + 5 * (config_map - 0.01)
        print(f"     a neighbour's Job exists after {waited * 1000:.0f} ms, of {limit * 1000:.0f} ({share:.0%} of {times}; the API server's answer "
              f"{post * 1000:.0f} ms, to a ConfigMap {config_map * 1000:.0f} ms), healthz after {max(probes) * 1000:.0f} ms")
        waits = [round(wait, 3) for _, _, wait in taken]
        assert waited < limit, f"a neighbour's JobSets waited for their Jobs, {waited:.3f} s where {limit:.3f} s are allowed: {waits} s"
        assert max(probes) < 1, f"healthz took {max(probes):.1f} s"


def audit_log():
    return pathlib.Path(os.environ["KUBECONFIG"]).parent / "audit.log"


def audit_entries(since=0):
    """The entries of the API server's audit log after this size of it."""
    with open(audit_log()) as log:
        log.seek(since)
        for line in log:
            # Not a line that is being written, nor one whose beginning is before that.
            if line.startswith("{") and line.endswith("\n"):
                yield json.loads(line)


def remove_unserved_webhooks():
    """A controller that was killed leaves its webhook configurations, which would refuse what the tests after it write."""
    if LOCAL:
        return
    host = f"{os.environ['TESTBED_HOST']}:9443"
    with contextlib.suppress(OSError), socket.create_connection(host.split(":"), timeout=5):
        return
    found = json.loads(run("kubectl", "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "json").stdout)["items"]
    left = [f"{o['kind']}/{o['metadata']['name']}".lower() for o in found
            if any(w["clientConfig"].get("url", "").startswith(f"https://{host}/") for w in o.get("webhooks", []))]
    if left:
        run("kubectl", "delete", "--ignore-not-found", *left)


def run_test(path, name, test):
    """Runs one test in its namespace and says how it went; answers whether it passed, None where it was skipped."""
    namespace = re.sub("[^a-z0-9]+", "-", f"{pathlib.Path(path).stem}-{name[5:]}")[:63].strip("-")
    began = time.monotonic()
    try:
        remove_unserved_webhooks()
        run("kubectl", "delete", "namespace", namespace, "--ignore-not-found", "--wait", "--timeout=60s")
        run("kubectl", "create", "namespace", namespace)
        test(Cluster(namespace))
        print(f"ok   {name} ({time.monotonic() - began:.1f} s)", flush=True)
        run("kubectl", "delete", "namespace", namespace, "--wait=false")
        return True
    except Skipped as reason:
        print(f"SKIP {name}: {reason}", flush=True)
        return None
    except Exception as error:   # the other tests still have something to say
        print(f"FAIL {name} ({time.monotonic() - began:.1f} s): {error}", flush=True)
        if not isinstance(error, AssertionError):
            traceback.print_exc(file=sys.stdout)
        return False


def selected_tests():
    """The test_* functions of the program, or those named on the command line, with their names, in the order they are written. Without names
    those that are only_with_long() are left out, unless LONG=yes."""
    wanted = sys.argv[1:]
    return [(n, f) for n, f in vars(sys.modules["__main__"]).items()
            if n.startswith("test_") and inspect.isfunction(f) and (n in wanted if wanted else IS_LONG or not hasattr(f, "is_long"))]


def main(path, parallel=1):
    """Runs the tests of the calling file: see selected_tests()."""
    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        results = list(pool.map(lambda test: run_test(path, *test), selected_tests()))
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)
