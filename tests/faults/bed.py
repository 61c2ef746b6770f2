"""The parts of the test bed that faults break: components, controllers behind proxies, rights."""
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cluster"), str(HERE.parent / "conformance")]
import harness  # noqa: E402
from api_proxy import ASIDE, Proxy  # noqa: E402

RUN = pathlib.Path(os.environ["KUBECONFIG"]).parent
ACCOUNT = "kubeflow-trainer-controller-manager"
FAKETIME, = map(str, pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))   # one, or the test stops here
ERRORS = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


class Component:
    """A process of the control plane, as `testbed up` started it."""

    def __init__(self, name):
        self.name = name
        self.pid = int((RUN / f"{name}.pid").read_text().split()[0])
        self.command = pathlib.Path(f"/proc/{self.pid}/cmdline").read_bytes().decode().split("\0")[:-1]

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        while pathlib.Path(f"/proc/{self.pid}").exists() and "State:\tZ" not in pathlib.Path(f"/proc/{self.pid}/status").read_text():
            pass

    def start(self):
        with open(RUN / f"log/{self.name}.log", "a") as log:
            self.pid = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True).pid
        born = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
        (RUN / f"{self.name}.pid").write_text(f"{self.pid} {born}\n")   # `testbed down` stops it


class FaultyProxy(Proxy):
    """Answers some requests itself, with errors, or cuts them off before or after the API server has handled them."""

    def __init__(self, kubeconfig, seed):
        super().__init__(kubeconfig, "")
        self.chance = random.Random(seed)
        self.fault = None
        self.writes_at = []

    def record(self, method, path, status):
        super().record(method, path, status)
        if method != "GET":
            self.writes_at.append((time.monotonic(), method, path))

    def writes_of(self, namespace):
        return [write for write in self.writes_at if f"/namespaces/{namespace}/" in write[2] and not any(word in write[2] for word in ASIDE)]

    def count(self, method, path):
        fault = self.fault
        if fault is None or self.chance.random() > fault.rate:
            return None
        is_write = method != "GET"
        if fault.kind == "cut-writes" and is_write:
            return self.chance.choice(["before", "after"])
        if fault.kind == "cut-streams" and not is_write:
            return "stream" if "watch=true" in path else "before"
        if is_write == (fault.kind == "write-errors") and fault.kind in ("write-errors", "read-errors"):
            return fault.code, json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": fault.code,
                                           "reason": ERRORS[fault.code], "message": "injected"}).encode()
        return None


class Controller(harness.Controller):
    """One of two that elect a leader, each with ports, a proxy and a clock of its own. With admission it serves reviews as in a pod."""

    def __init__(self, number, directory, kubeconfig, seed, has_admission=False):
        directory = pathlib.Path(directory) / str(number)
        directory.mkdir()
        self.proxy = FaultyProxy(kubeconfig, seed)
        self.clock = directory / "clock"
        self.set_clock(0)
        env = {"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(self.clock), "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1"}
        if has_admission:
            env["KUBERNETES_SERVICE_HOST"] = os.environ["TESTBED_HOST"]   # by this it knows that there is a Service
        super().__init__(directory, *([] if has_admission else ["--no-webhooks"]), kubeconfig=self.proxy.kubeconfig(directory), env=env)
        self.health, self.metrics = (f"{os.environ['TESTBED_HOST']}:{port + 10 * number}" for port in (8081, 8443))
        self.webhook_port = 9443 + 10 * number
        config = directory / "controller.yaml"
        config.write_text(config.read_text().replace(":8081", f":{8081 + 10 * number}").replace(":8443", f":{8443 + 10 * number}")
                          .replace("port: 9443", f"port: {self.webhook_port}").replace("leaderElect: false", "leaderElect: true")
                          + f"statusServer: {{port: {10443 + 10 * number}}}\n")
        self.stalled_at = self.continued_at = 0.0

    def set_clock(self, seconds):
        self.clock.write_text(f"{seconds:+d}")

    def is_ready(self):
        # Another process may have its port.
        return self.process.poll() is None and self.answers("healthz")

    def resident(self):
        """Its resident memory in MB."""
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())[1]) / 1024

    def stall(self, is_stalled):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGSTOP if is_stalled else signal.SIGCONT)
            if is_stalled:
                self.stalled_at = time.monotonic()
            else:
                self.continued_at = time.monotonic()

    def revive(self):
        """Starts a process that has ended again, like a kubelet."""
        if self.process.poll() is not None:
            self.start(wait=False)


class AdmissionService(threading.Thread):
    """The shipped Service and webhook configurations. Its endpoints are the controllers that are ready, which Kubernetes finds out of
    pods, and this thread of processes on the host."""

    def __init__(self, controllers):
        super().__init__(daemon=True)
        self.controllers, self.is_over, self.written = controllers, False, {}
        manifests = harness.ROOT / "manifests/base"
        service = yaml.safe_load((manifests / "service.yaml").read_text())
        del service["spec"]["selector"]
        self.name, self.namespace = service["metadata"]["name"], service["metadata"]["namespace"]
        for number, _ in enumerate(controllers):
            self.write(number, False)
        for text in json.dumps(service), (manifests / "webhooks.yaml").read_text():
            assert self.apply(text), "the API server does not take Service and webhook configurations"

    @staticmethod
    def apply(text):
        """True where the API server has taken it."""
        return harness.run("kubectl", "apply", "--server-side", "--force-conflicts", "--request-timeout=5s", "-f", "-", text=text,
                           check=False).returncode == 0

    def write(self, number, is_ready):
        if self.apply(json.dumps({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "metadata": {
                    "name": f"{self.name}-{number}", "namespace": self.namespace, "labels": {"kubernetes.io/service-name": self.name}},
                "endpoints": [{"addresses": [os.environ["TESTBED_HOST"]], "conditions": {"ready": is_ready}}],
                "ports": [{"name": "webhook-server", "port": self.controllers[number].webhook_port, "protocol": "TCP"}]})):
            self.written[number] = is_ready

    def run(self):
        while not self.is_over:
            for number, controller in enumerate(self.controllers):
                is_ready = controller.answers("readyz")
                if is_ready != self.written.get(number):
                    self.write(number, is_ready)
            time.sleep(0.3)   # the period of the probe


def token_kubeconfig(directory):
    """A kubeconfig with the rights of the shipped ServiceAccount."""
    token = harness.run("kubectl", "-n", "kubeflow-system", "create", "token", ACCOUNT, "--duration=24h").stdout.strip()
    config = yaml.safe_load(pathlib.Path(os.environ["KUBECONFIG"]).read_text())
    config["users"][0]["user"] = {"token": token}
    path = pathlib.Path(directory) / "account.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def etcd_alarm(action):
    """Makes etcd refuse writes as if it were full, or ends that."""
    port = next(word for word in Component("etcd").command if word.startswith("http://"))
    body = json.dumps({"action": action, "memberID": "0", "alarm": "NOSPACE"}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{port}/v3/maintenance/alarm", body), timeout=10).read()
