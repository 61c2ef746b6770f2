"""A proxy before the API server that can end a controller at a chosen write: before the server hears of it, or after the
server has done it and before the controller hears of that. So a test can try every point at which a process can die.
"""
import base64
import contextlib
import http.client
import http.server
import pathlib
import socket
import ssl
import tempfile
import threading
import urllib.parse

import yaml

# Writes of a controller about itself, or besides its work. Losing them is never an error, so the controller is not killed at them.
ASIDE = ("/leases", "/events", "/selfsubjectreviews", "webhookconfigurations")


class Proxy:
    """Serves plain HTTP on 127.0.0.1 until closed. `requests` grows by (method, path, status or None when cut off).
    Only writes into `namespace` count: the one of an earlier test may be on its way out still, which costs some, too."""

    def __init__(self, kubeconfig, namespace):
        self.namespace = namespace
        config = yaml.safe_load(pathlib.Path(kubeconfig).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.upstream = cluster["server"].split("://")[1]
        self.tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        self.token = user.get("token", "")   # otherwise a client certificate
        if not self.token:
            with tempfile.NamedTemporaryFile() as certificate, tempfile.NamedTemporaryFile() as key:
                certificate.write(base64.b64decode(user["client-certificate-data"]))
                key.write(base64.b64decode(user["client-key-data"]))
                certificate.flush()
                key.flush()
                self.tls.load_cert_chain(certificate.name, key.name)
        self.lock = threading.Lock()
        self.sockets = []   # to the API server
        self.requests = []
        self.writes = 0
        self.crash_at = None     # (number of the write, is_before)
        self.on_crash = lambda: None

        proxy = self

        class Handler(_Handler):
            def __init__(self, *arguments):
                self.proxy = proxy
                super().__init__(*arguments)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def kubeconfig(self, directory):
        path = pathlib.Path(directory) / "proxy.kubeconfig"
        path.write_text(f"""apiVersion: v1
kind: Config
current-context: proxy
clusters: [{{name: proxy, cluster: {{server: "http://127.0.0.1:{self.server.server_address[1]}"}}}}]
users: [{{name: proxy, user: {{}}}}]
contexts: [{{name: proxy, context: {{cluster: proxy, user: proxy}}}}]
""")
        return path

    def arm(self, number, is_before, on_crash):
        """Calls on_crash once, at the write of this number from now (1 is the next); None arms nothing but counts. The watches of
        controllers that are gone end: no one else ends them soon, and local mode has 250 connections at most."""
        with self.lock:
            for each in self.sockets:
                with contextlib.suppress(OSError):   # it has ended
                    socket.socket.shutdown(each, socket.SHUT_RDWR)
            self.sockets = []
            self.requests, self.writes = [], 0
            self.crash_at = (number, is_before) if number else None
            self.on_crash = on_crash

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def record(self, method, path, status):
        self.requests.append((method, path, status))

    def count(self, method, path):
        """None, or "before" or "after" if the connection is cut there, which is where the controller dies. A class derived from
        this one may also answer "stream", to cut a watch after its first piece, or (status, body), to answer this."""
        if method == "GET" or any(word in path for word in ASIDE) or f"/namespaces/{self.namespace}/" not in path:
            return None
        with self.lock:
            self.writes += 1
            if self.crash_at and self.crash_at[0] == self.writes:
                is_before = self.crash_at[1]
                self.crash_at = None
                return "before" if is_before else "after"
        return None


class _Upstream(http.client.HTTPSConnection):
    def __init__(self, proxy):
        super().__init__(proxy.upstream, context=proxy.tls)
        self.proxy = proxy

    def connect(self):
        super().connect()
        with self.proxy.lock:
            self.proxy.sockets.append(self.sock)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (ConnectionError, ssl.SSLError, http.client.HTTPException):
            self.close_connection = True

    def finish(self):
        try:
            super().finish()
        except ConnectionError:
            pass   # the controller was killed, as it should be

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        crash = self.proxy.count(self.command, self.path)
        if crash == "before":
            return self.cut_off()
        if isinstance(crash, tuple):
            return self.answer(*crash, {"Content-Type": "application/json", "Retry-After": "1"})
        # One connection to the API server for each of the controller's.
        if not hasattr(self, "connection_up"):
            self.connection_up = _Upstream(self.proxy)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "content-length")}
        if self.proxy.token:
            headers["Authorization"] = f"Bearer {self.proxy.token}"
        self.connection_up.request(self.command, self.path, body or None, headers)
        answer = self.connection_up.getresponse()
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        if query.get("watch", ["false"])[0] in ("true", "1"):
            return self.stream(answer, is_cut=crash == "stream")
        data = answer.read()
        if crash == "after":
            return self.cut_off(answer.status)
        self.proxy.record(self.command, self.path, answer.status)
        self.answer(answer.status, data, answer.headers)

    def answer(self, status, data, headers):
        self.send_response(status)
        for name in ("Content-Type", "Retry-After", "Warning"):
            if headers.get(name):
                self.send_header(name, headers[name])
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def stream(self, answer, is_cut):
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        while chunk := answer.read1(1 << 16):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.flush()
            if is_cut:
                return self.cut_off(answer.status)
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def cut_off(self, status=None):
        self.proxy.record(self.command, self.path, status)
        self.proxy.on_crash()
        self.close_connection = True
        with contextlib.suppress(OSError):   # the other side may have closed it
            self.connection.shutdown(socket.SHUT_RDWR)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward
