"""Requests to the API server of a kubeconfig, for tests that compare two servers."""
import atexit
import base64
import contextlib
import http.client
import json
import os
import pathlib
import ssl
import subprocess
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAINER = os.environ.get("TRAINER", str(ROOT / "build/trainer"))


class Server:
    """One connection. Answers are (status, object)."""

    def __init__(self, kubeconfig):
        config = json.loads(subprocess.check_output(
            ["kubectl", "config", "view", "--raw", "--minify", "-o", "json", "--kubeconfig", kubeconfig]))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.address = urllib.parse.urlsplit(cluster["server"])
        self.headers = {"Authorization": "Bearer " + user["token"]} if "token" in user else {}
        self.tls = None
        if self.address.scheme == "https":
            self.tls = ssl.create_default_context(cafile=self.file(cluster, "certificate-authority"))
            if self.file(user, "client-certificate"):
                self.tls.load_cert_chain(self.file(user, "client-certificate"), self.file(user, "client-key"))
        self.connection = None

    @staticmethod
    def file(entry, name):
        """The path of a certificate or key, which is in the kubeconfig or beside it; None without one."""
        if name + "-data" not in entry:
            return entry.get(name)
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(base64.b64decode(entry[name + "-data"]))
        atexit.register(os.unlink, file.name)
        return file.name

    def connect(self):
        if self.tls is None:
            return http.client.HTTPConnection(self.address.netloc, timeout=30)
        return http.client.HTTPSConnection(self.address.netloc, timeout=30, context=self.tls)

    def send(self, method, target, body, content_type):
        self.connection = self.connection or self.connect()
        headers = {**self.headers, "Accept": "application/json", "User-Agent": "twins/1",
                   **({"Content-Type": content_type} if body is not None else {})}
        self.connection.request(method, target, body, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def request(self, method, target, body=None, content_type="application/json"):
        """`body` is sent as JSON, but for a text, which is sent as it is."""
        data = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        try:
            status, text = self.send(method, target, data, content_type)
        except (http.client.RemoteDisconnected, ConnectionResetError):   # an idle connection that the server has closed
            self.connection = None
            status, text = self.send(method, target, data, content_type)
        try:
            return status, json.loads(text)
        except ValueError:
            return status, {"text": text.decode(errors="replace")}


@contextlib.contextmanager
def kubeconfig_of_local():
    """The kubeconfig of $KUBECONFIG, or of an API server of local mode that runs until the block ends, without controllers."""
    if os.environ.get("KUBECONFIG"):
        yield os.environ["KUBECONFIG"]
        return
    with tempfile.TemporaryDirectory() as state:
        subprocess.check_call([TRAINER, "local", "up", "--no-node", "--no-controller", "--state", state], stdout=subprocess.DEVNULL)
        try:
            yield os.path.join(state, "kubeconfig")
        finally:
            subprocess.check_call([TRAINER, "local", "down", "--state", state], stdout=subprocess.DEVNULL)
