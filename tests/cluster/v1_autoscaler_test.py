#!/usr/bin/python3
"""An elastic PyTorchJob that Kubernetes' own HorizontalPodAutoscaler controller scales, by a metric that this test serves.

Needs a control plane without node and with an audit log (AUDIT=yes).
"""
import contextlib
import http.server
import json
import os
import pathlib
import ssl
import tempfile
import threading

import harness
from harness import run, wait_until
from v1_test import have, served

HOST, PORT, GROUP, METRIC = os.environ.get("TESTBED_HOST"), 9555, "external.metrics.k8s.io", "waiting-batches"


class Metrics(http.server.BaseHTTPRequestHandler):
    """An API server of external metrics with one metric, of the class's value."""
    value = 0

    def do_GET(self):
        base = f"/apis/{GROUP}/v1beta1"
        path = self.path.split("?")[0]
        if path.rstrip("/") == base:
            answer = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1beta1", "resources": [
                {"name": METRIC, "namespaced": True, "kind": "ExternalMetricValueList", "singularName": "", "verbs": ["get"]}]}
        elif path.endswith("/" + METRIC):
            answer = {"kind": "ExternalMetricValueList", "apiVersion": f"{GROUP}/v1beta1", "metadata": {}, "items": [
                {"metricName": METRIC, "metricLabels": {}, "timestamp": "2026-01-01T00:00:00Z", "value": str(self.value)}]}
        else:
            self.send_error(404)
            return
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def metrics_api():
    """The API server forwards the group to this process."""
    namespace = "metrics-stand-in"
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics", "namespace": namespace},
         "spec": {"ports": [{"name": "https", "port": 443, "targetPort": PORT}]}},
        {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
         "metadata": {"name": "metrics", "namespace": namespace, "labels": {"kubernetes.io/service-name": "metrics"}},
         "endpoints": [{"addresses": [HOST], "conditions": {"ready": True}}], "ports": [{"name": "https", "port": PORT, "protocol": "TCP"}]},
        {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"v1beta1.{GROUP}"}, "spec": {
            "group": GROUP, "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": True,
            "service": {"name": "metrics", "namespace": namespace, "port": 443}}}]
    with tempfile.TemporaryDirectory() as directory:
        certificate = pathlib.Path(directory) / "tls"
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", "/CN=metrics",
            "-keyout", f"{certificate}.key", "-out", f"{certificate}.crt")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{certificate}.crt", f"{certificate}.key")
        server = http.server.ThreadingHTTPServer((HOST, PORT), Metrics)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            run("kubectl", "apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
            run("kubectl", "wait", "--for=condition=Available", "--timeout=60s", f"apiservice/v1beta1.{GROUP}")
            yield
        finally:
            run("kubectl", "delete", "--ignore-not-found", f"apiservice/v1beta1.{GROUP}")
            run("kubectl", "delete", "--ignore-not-found", "--wait=false", f"namespace/{namespace}")
            server.shutdown()
            server.server_close()


def test_the_autoscaler_moves_the_workers(cluster):
    target = {"type": "External", "external": {"metric": {"name": METRIC}, "target": {"type": "AverageValue", "averageValue": "1"}}}
    template = {"spec": {"containers": [{"name": "pytorch", "image": "localhost/none:1"}]}}
    with metrics_api(), served():
        Metrics.value = 2
        cluster.apply({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "e"}, "spec": {
            "elasticPolicy": {"minReplicas": 2, "maxReplicas": 4, "metrics": [target]},
            "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}}})
        workers = [f"e-worker-{i}" for i in range(4)]
        have(cluster, *workers[:2])
        first = {name: cluster.get("pod", name)["metadata"]["uid"] for name in workers[:2]}
        Metrics.value = 9   # more than its maximum takes
        wait_until("four workers", lambda: len(cluster.list("pods")) == 4, seconds=90, every=0.5)
        have(cluster, *workers)
        assert {name: cluster.get("pod", name)["metadata"]["uid"] for name in first} == first, "workers that ran were made again"
        assert cluster.get("pytorchjob", "e")["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 4
        Metrics.value = 2
        wait_until("two workers", lambda: len(cluster.list("pods")) == 2, seconds=90, every=0.5)
        have(cluster, *workers[:2])
        assert {name: cluster.get("pod", name)["metadata"]["uid"] for name in first} == first


if __name__ == "__main__":
    harness.main(__file__)
