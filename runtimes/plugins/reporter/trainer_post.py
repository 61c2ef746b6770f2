"""Sends one heartbeat over one connection, within a limit of time, and reads a small answer.

TLS computes between buffers in memory, under the lock that a fork waits for, and the network is used without it.
"""
import _socket
import os
from time import monotonic

LONGEST_BODY = 65536
LONGEST_ANSWER = 16384
LONGEST_TOKEN = 16384
MOST_REPLICAS = 6     # that are tried for the one that leads
DEEPEST = 32          # brackets of an answer; a parser would recurse for each
NO_SIGNAL = getattr(_socket, "MSG_NOSIGNAL", 0)   # a program may let SIGPIPE end it

open_socket = None    # a child closes its copy of it
addresses = []        # the server's; looked up again after a failure
tls = None            # the context, made again after a failure, since the file of the CA may be a new one


def prepare():
    """Imports what sending needs, on the way that a fork waits for."""
    if os.environ["KUBEFLOW_TRAINER_SERVER_URL"].startswith("https:"):
        global ssl
        import ssl


def forget():
    """In a child: its parent goes on with the connection, and with the context."""
    global open_socket, tls
    if open_socket is not None:
        open_socket.close()
    open_socket = tls = None


def parse(url):
    """(whether with TLS, host, port, the path of heartbeats)"""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdigit():
        name, port = host, "443" if scheme == "https" else "80"
    if scheme not in ("http", "https"):
        raise ValueError("no such scheme")
    return scheme == "https", name.strip("[]"), int(port), host, slash + path.split("?")[0].rpartition("/")[0] + "/heartbeat"


def connect(host, port, end, is_resolved):
    global addresses, open_socket
    if not addresses and not is_resolved:
        # In bytes, because for text Python imports the tables of Unicode.
        addresses = _socket.getaddrinfo(host.encode("ascii"), port, 0, _socket.SOCK_STREAM)
    for family, kind, protocol, _, address in addresses[:4]:
        made = _socket.socket(family, kind, protocol)
        open_socket = made
        try:
            made.settimeout(max(0.01, min(5.0, end - monotonic())))
            made.connect(address)
        except OSError:
            made.close()
            continue
        return made
    raise OSError("no address answers")


class Plain:
    def __init__(self, sock, end):
        self.sock, self.end = sock, end

    def begin(self):
        """Does what comes before the request."""

    def free(self):
        """Frees what takes locks as it goes, under the lock that a fork waits for."""

    def wait(self):
        left = self.end - monotonic()
        if left <= 0:
            raise OSError("too slow")
        self.sock.settimeout(left)

    def write(self, data):
        self.wait()
        self.sock.sendall(data, NO_SIGNAL)

    def read(self):
        self.wait()
        return self.sock.recv(4096)


class Tls(Plain):
    def __init__(self, state, sock, host, end):
        super().__init__(sock, end)
        self.lock = state.lock
        with self.lock:
            self.into, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
            self.tls = context().wrap_bio(self.into, self.out, server_hostname=host.encode("ascii"))

    def begin(self):
        self.compute("do_handshake")

    def free(self):
        with self.lock:
            self.tls = self.into = self.out = None

    def compute(self, name, *args):
        while True:
            is_done = False
            with self.lock:
                try:
                    result, is_done = getattr(self.tls, name)(*args), True
                except ssl.SSLWantReadError:
                    result = None
                data = self.out.read()
            if data:
                super().write(data)
            if is_done:
                return result
            piece = super().read()
            with self.lock:
                if piece:
                    self.into.write(piece)
                else:
                    self.into.write_eof()

    def write(self, data):
        self.compute("write", data)

    def read(self):
        try:
            return self.compute("read", 4096)
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return b""


def context():
    global tls
    if tls is None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.load_verify_locations(os.environ["KUBEFLOW_TRAINER_SERVER_CA_CERT"])
    return tls


def read_token():
    with open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"], "rb") as file:   # the kubelet renews it
        token = file.read(LONGEST_TOKEN).strip()
    if not token.isascii() or any(byte <= 32 for byte in token):
        raise ValueError("no token")
    return token


def body_of(state, message):
    """The text of a message. Stacks are cut until it is short enough."""
    while True:
        text = state.encode(message, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
        if len(text) <= LONGEST_BODY:
            return text
        if not state.stacks.shorten(message):
            raise ValueError("too long")


def read_answer(line):
    """(status, body). It ends where its length says, at the end of the connection, or at the limit."""
    data, end = b"", LONGEST_ANSWER
    while len(data) < end:
        try:
            piece = line.read()
        except OSError:
            if not data:
                raise
            break
        if not piece:
            break
        data += piece
        head, blank, body = data.partition(b"\r\n\r\n")
        if blank:
            for field in head.lower().split(b"\r\n")[1:]:
                name, _, value = field.partition(b":")
                if name == b"content-length" and value.strip().isdigit() and len(value) < 16:
                    end = min(LONGEST_ANSWER, len(head) + 4 + int(value))
    head, _, body = data[:LONGEST_ANSWER].partition(b"\r\n\r\n")
    words = head.split(None, 2)
    is_http = len(words) > 1 and words[0].startswith(b"HTTP/1.") and len(words[1]) == 3 and words[1].isdigit()
    return int(words[1]) if is_http else 0, body


def object_from(state, body):
    body = body[body.find(b"{"):body.rfind(b"}") + 1]
    if body.count(b"{") + body.count(b"[") > DEEPEST:
        return {}
    try:
        answer = state.decode(body.decode("utf-8"))
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def close(sock):
    global open_socket
    open_socket = None
    if sock is not None:
        try:
            sock.shutdown(_socket.SHUT_RDWR)   # a child may have a copy of the connection
        except OSError:
            pass
        sock.close()


def send(state, message, seconds, is_resolved=False):
    """(status, answer) of one heartbeat, or OSError, ValueError. Another connection may lead to another replica, which leads."""
    end = monotonic() + seconds
    body, token = body_of(state, message), read_token()
    for _ in range(1 + MOST_REPLICAS):
        status, text = send_once(state, body, token, end, is_resolved)
        if status != 421:
            break
    return status, object_from(state, text) if status == 200 else {}


def send_once(state, body, token, end, is_resolved):
    global tls, addresses
    is_tls, host, port, authority, path = parse(os.environ["KUBEFLOW_TRAINER_SERVER_URL"])
    head = ("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n"
            % (path, authority, len(body))).encode("ascii") + b"Authorization: Bearer " + token + b"\r\n\r\n"
    sock = line = None
    try:
        sock = connect(host, port, end, is_resolved)
        line = Tls(state, sock, host, end) if is_tls else Plain(sock, end)
        line.begin()
        line.write(head + body)
        status, text = read_answer(line)
    except BaseException:
        with state.lock:
            tls, addresses = None, []
        raise
    finally:
        if line:
            line.free()
        close(sock)
    return status, text
