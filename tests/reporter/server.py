"""A stand-in for the controller's server: it keeps the heartbeats, and answers what the test says, rightly or badly."""
import json
import socket
import ssl
import threading
import time


def http(status, body=b"", length=None):
    length = len(body) if length is None else length
    return b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (status, length, body)


class Server:
    """`answer(message)` is a status, an object, a (status, object), raw bytes, or a function that serves the connection itself."""

    def __init__(self, answer=lambda message: {}, certificate=None):
        self.answer, self.messages, self.requests, self.times = answer, [], [], []
        self.changed = threading.Condition()
        self.is_over = threading.Event()
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*certificate)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}/apis/trainer/namespaces/default/trainjobs/job/status"
        threading.Thread(target=self.listen, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.listener.close()

    def listen(self):
        while not self.is_over.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            connection.settimeout(30)
            with self.context.wrap_socket(connection, server_side=True) if self.context else connection as line:
                self.talk(line)
        except (OSError, ValueError):
            pass

    def talk(self, line):
        head, body = read_request(line)
        message = json.loads(body) if body else {}
        with self.changed:
            self.requests.append((head, body))
            self.messages.append(message)
            self.times.append(time.monotonic())
            self.changed.notify_all()
        answer = self.answer(message)
        if callable(answer):
            answer(line, self.is_over)
        elif isinstance(answer, bytes):
            line.sendall(answer)
        elif isinstance(answer, int):
            line.sendall(http(answer))
        else:
            status, value = answer if isinstance(answer, tuple) else (200, answer)
            line.sendall(http(status, json.dumps(value).encode()))

    def wait_for(self, wanted, timeout=40):
        """The first heartbeat, also of those before this call, that is wanted."""
        end = time.monotonic() + timeout
        with self.changed:
            seen = 0
            while True:
                for message in self.messages[seen:]:
                    if wanted(message):
                        return message
                seen = len(self.messages)
                if not self.changed.wait(end - time.monotonic()) and seen == len(self.messages):
                    raise AssertionError(f"no such heartbeat among {seen}: {json.dumps(self.messages[-3:])[:3000]}")

    def wait_for_number(self, number):
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.messages) >= number, 40):
                raise AssertionError(f"{len(self.messages)} heartbeats")
            return self.messages[number - 1]


def read_request(line):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = line.recv(65536)
        if not piece:
            raise OSError("no request")
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(field.split(b":")[1]) for field in head.split(b"\r\n") if field.lower().startswith(b"content-length:"))
    while len(body) < length:
        piece = line.recv(65536)
        if not piece:
            raise OSError("half a request")
        body += piece
    return head, body
