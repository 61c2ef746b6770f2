"""The upstream JobSet controller as a process on the host: the real program, with its own leader election."""
import os
import pathlib
import subprocess

import harness
from harness import Failed, run, wait_until

LEASE = "6d4f6a47.jobset.x-k8s.io"
LEASE_SECONDS = 8   # upstream's is 15; a test has to wait for it to run out


class UpstreamJobSet:
    """No webhook configuration points at it, so that JobSets reach it as they were written."""

    def __init__(self, directory, namespace):
        self.directory, self.namespace = pathlib.Path(directory), namespace
        self.log = self.directory / "upstream.log"
        self.program = run(harness.TESTBED, "upstream-jobset").stdout.strip()
        # Its webhook server needs a certificate, even if nothing calls it.
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=jobset",
            "-keyout", str(self.directory / "tls.key"), "-out", str(self.directory / "tls.crt"))
        host = os.environ["TESTBED_HOST"]
        self.config = self.directory / "upstream.yaml"
        self.config.write_text(f"""apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
webhook: {{host: "{host}", port: 9543, certDir: "{self.directory}"}}
health: {{healthProbeBindAddress: "{host}:8181"}}
metrics: {{bindAddress: "0"}}
internalCertManagement: {{enable: false}}
leaderElection:
  leaderElect: true
  resourceName: {LEASE}
  resourceNamespace: {namespace}
  leaseDuration: {LEASE_SECONDS}s
  renewDeadline: {LEASE_SECONDS - 2}s
  retryPeriod: 1s
""")
        self.process = None

    def start(self):
        """Until it leads; a Lease that a killed one has left must run out first."""
        before = self.holder()
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([self.program, "--config", str(self.config)], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)
        wait_until("upstream's controller leads; see " + str(self.log), lambda: self._leads(before), seconds=40)
        return self

    def _leads(self, before):
        if self.process.poll() is not None:
            raise Failed(f"upstream's controller ended with {self.process.returncode}:\n{self.log.read_text()[-2000:]}")
        return self.holder() not in ("", before)

    def holder(self):
        found = run("kubectl", "-n", self.namespace, "get", "lease", LEASE, "--ignore-not-found",
                    "-o", "jsonpath={.spec.holderIdentity}")
        return found.stdout

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def release(self):
        """Ends it and releases its Lease at once, as a clean end does where the manager is configured to."""
        self.kill()
        if not self.holder():
            return
        run("kubectl", "-n", self.namespace, "patch", "lease", LEASE, "--type=merge",
            "-p", '{"spec": {"holderIdentity": ""}}')
