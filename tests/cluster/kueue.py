"""Kueue's own program on the host, with its CRDs, webhooks and rights, and the objects that tests make for it."""
import atexit
import base64
import contextlib
import functools
import json
import os
import pathlib
import subprocess
import tempfile
import urllib.request

import yaml

import harness
from harness import Failed, run, wait_until

SYSTEM = "kueue-system"
ACCOUNT = "kueue-controller-manager"
SERVICE, SECRET = "kueue-webhook-service", "kueue-webhook-server-cert"
WEBHOOKS_PORT, HEALTH_PORT = 9543, 8181
FRAMEWORKS = ["trainer.kubeflow.org/trainjob", "jobset.x-k8s.io/jobset", "batch/job"] + [
    f"kubeflow.org/{kind}job" for kind in ("jax", "mpi", "paddle", "pytorch", "tf", "xgboost")]
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
API = "kueue.x-k8s.io/v1beta2"
# No pod of it runs here; the API server would ask a visibility server whenever a namespace is deleted.
LEFT_OUT = ("Deployment", "APIService")


_installed = set()   # kubeconfigs of the clusters that have Kueue's CRDs and rights


@functools.lru_cache
def manifests(home):
    """The objects that Kueue's kustomization installs, but for its Deployment. An EndpointSlice says where Kueue is, so its Services select no pods."""
    found = [o for o in yaml.load_all((home / "install.yaml").read_text(), yaml.CSafeLoader) if o["kind"] not in LEFT_OUT]
    for o in found:
        if o["kind"] == "Service":
            del o["spec"]["selector"]
    return found


class Kueue:
    """A Kueue with this configuration beside the usual one. Its webhooks are called through its Service, as in a cluster."""

    def __init__(self, directory, **config):
        self.directory, self.host = pathlib.Path(directory), os.environ["TESTBED_HOST"]
        self.home = pathlib.Path(run(harness.TESTBED, "kueue").stdout.strip())
        self.log = self.directory / "kueue.log"
        self.certificates = self.directory / "kueue-certificates"
        self.config = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "namespace": SYSTEM,
            "webhook": {"host": self.host, "port": WEBHOOKS_PORT, "certDir": str(self.certificates)},
            "health": {"healthProbeBindAddress": f"{self.host}:{HEALTH_PORT}"}, "metrics": {"bindAddress": "0"},
            "internalCertManagement": {"enable": True, "webhookServiceName": SERVICE, "webhookSecretName": SECRET},
            "leaderElection": {"leaderElect": False}, "clientConnection": {"qps": 1000, "burst": 2000},
            "integrations": {"frameworks": FRAMEWORKS}, **config}
        self.config["featureGates"] = {"VisibilityOnDemand": False, **config.get("featureGates", {})}
        self.process = None

    def install(self):
        """Applies what Kueue's kustomization has: all of it once on each cluster, and the webhooks, which go when a Kueue stops, each time."""
        wanted = list(manifests(self.home))
        if os.environ["KUBECONFIG"] in _installed:
            wanted = [o for o in wanted if o["kind"].endswith("WebhookConfiguration")]
        else:
            wanted.append({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": {"name": SERVICE, "namespace": SYSTEM, "labels": {"kubernetes.io/service-name": SERVICE}},
                "endpoints": [{"addresses": [self.host], "conditions": {"ready": True}}], "ports": [{"port": WEBHOOKS_PORT, "name": ""}]})
        run("kubectl", "apply", "--server-side", "--force-conflicts", "--validate=false", "-f", "-",
            text=json.dumps({"apiVersion": "v1", "kind": "List", "items": wanted}))
        _installed.add(os.environ["KUBECONFIG"])

    def kubeconfig(self):
        """The kubeconfig of Kueue's ServiceAccount, so that it has the rights that its manifests give it."""
        path = self.directory / "kueue.kubeconfig"
        path.write_text(pathlib.Path(os.environ["KUBECONFIG"]).read_text())
        token = run("kubectl", "-n", SYSTEM, "create", "token", ACCOUNT, "--duration=24h").stdout.strip()
        run("kubectl", "--kubeconfig", str(path), "config", "unset", "users")
        run("kubectl", "--kubeconfig", str(path), "config", "set-credentials", "admin", f"--token={token}")
        return path

    def start(self):
        self.install()
        file = self.directory / "kueue.yaml"
        file.write_text(json.dumps(self.config))
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([str(self.home / "kueue"), "--config", str(file), "--zap-log-level=2"], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, env={**os.environ, "KUBECONFIG": str(self.kubeconfig())})
        atexit.register(self.stop)
        wait_until("Kueue has made its certificates", self._mount_certificates, seconds=90)
        wait_until("Kueue is ready", self._is_ready, seconds=90)
        return self

    def said(self):
        return self.log.read_text()

    def errors(self):
        """The last errors of its log."""
        return "\n".join([line[:1000] for line in self.said().splitlines() if '"level":"error"' in line][-5:])

    def _check_alive(self):
        if self.process.poll() is not None:
            raise Failed(f"Kueue ended with {self.process.returncode}:\n{self.said()[-2000:]}")

    def _mount_certificates(self):
        """Copies the Secret's files to where Kueue waits for them, as a kubelet does."""
        self._check_alive()
        files = harness.Cluster(SYSTEM).get("secret", SECRET).get("data")
        if files:
            self.certificates.mkdir(exist_ok=True)
            for name, content in files.items():
                (self.certificates / name).write_bytes(base64.b64decode(content))
        return files

    def _is_ready(self):
        self._check_alive()
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{self.host}:{HEALTH_PORT}/readyz", timeout=1) as answer:
            return answer.status == 200
        return False

    def stop(self):
        """Ends it. Its webhooks would refuse from now on what others write, so they go, too."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)
            run("kubectl", "delete", "--ignore-not-found", "validatingwebhookconfiguration/kueue-validating-webhook-configuration",
                "mutatingwebhookconfiguration/kueue-mutating-webhook-configuration")


def running(**config):
    """A Kueue with this configuration. It runs until a test wants another one, since its manifests are large."""
    if _running and _running[0] == config:
        return _running[1]
    if _running:
        _running[1].stop()
        _running.clear()
    directory = tempfile.TemporaryDirectory(prefix="kueue-")
    atexit.register(directory.cleanup)
    started = Kueue(directory.name, **config).start()
    _running.extend((config, started))
    return started


_running = []   # the configuration and the Kueue


def flavor(name, pool, topology=None):
    """A flavor of the nodes with the label pool, and of their taint, which its pods tolerate."""
    spec = {"nodeLabels": {"pool": pool}, "tolerations": [{"key": "pool", "operator": "Equal", "value": pool, "effect": "NoSchedule"}]}
    return {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {**spec, "topologyName": topology} if topology else spec}


def cluster_queue(name, quotas, **spec):
    """A queue of all namespaces with so many CPUs of each flavor."""
    return {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": {
        "namespaceSelector": {}, "queueingStrategy": "BestEffortFIFO", "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
            {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": str(cpus)}]} for flavor, cpus in quotas.items()]}], **spec}}


def local_queue(name, of):
    return {"apiVersion": API, "kind": "LocalQueue", "metadata": {"name": name}, "spec": {"clusterQueue": of}}


def queued(o, queue="queue", priority=None):
    """The job with the labels that put it into a queue."""
    labels = o["metadata"].setdefault("labels", {})
    labels[QUEUE] = queue
    if priority:
        labels[PRIORITY] = priority
    return o
