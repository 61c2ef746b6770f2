"""Servers that are down, slow, wrong or hostile: the program neither notices nor ends later or otherwise."""
import os
import socket
import time
import unittest

import harness
from harness import Program, environment
from server import Server, http

DEEP = b'{"period": 1e999, "dump": {"a": [1]}, "x": ' + b"[" * 8000 + b"]" * 8000 + b"}"
# It ends with a status of its own, and what it writes is complete.
TEXT = """
    import sys, time
    input()
    begun = time.monotonic()
    print("out")
    print("err", file=sys.stderr)
    sys.exit(7)
"""


def drip(line, is_over):
    for byte in b"HTTP/1.1 200 OK\r\nX: " + b"a" * 1000:
        line.sendall(bytes([byte]))
        if is_over.wait(0.2):
            return


def hold(line, is_over):
    is_over.wait(60)


def flood(line, is_over):
    while not is_over.is_set():
        line.sendall(b"HTTP/1.1 200 OK\r\n" + b"x" * 65536)


def unended(line, is_over):
    line.sendall(http(200, b"{}", length=1000))
    is_over.wait(60)


BAD = {
    "slow": hold, "drip": drip, "flood": flood, "closed at once": b"", "half a head": b"HTTP/1.1 200", "unended": unended,
    "garbage": b"\x00\xff{{{ no http at all\r\n\r\n[1,2" * 500, "status 500": 500, "status 302": 302, "status of words": b"HTTP/1.1 abc\r\n\r\n{}",
    "no JSON": http(200, b"no JSON"), "deep": http(200, DEEP), "a list": http(200, b"[1]"), "huge length": http(200, b"{}", length=10 ** 30),
    "no UTF-8": http(200, b'{"period": "\xff\xfe"}'), "infinite": http(200, b'{"period": 1e999}'), "not a number": http(200, b'{"period": NaN}'),
    "many digits": http(200, b'{"period": ' + b"9" * 9000 + b"}"), "other types": http(200, b'{"period": {"a": 1}, "dump": ["x"]}'),
    "long id": http(200, b'{"dump": "' + b"x" * 9000 + b'"}'), "null": http(200, b'{"period": null, "dump": null}'), "empty id": http(200, b'{"dump": ""}'),
}


class Servers(unittest.TestCase):
    def check(self, env, wait, name):
        with self.subTest(name), Program(TEXT, env) as program:
            wait()
            begun = time.monotonic()
            self.assertEqual(program.end(), (7, "out\n", "err\n"))
            self.assertLess(time.monotonic() - begun, 8)   # a heartbeat's own limit is ten seconds

    def test_bad_servers(self):
        for name, answer in BAD.items():
            for certificate in (None, harness.certificate()):
                with Server(lambda m: answer, certificate) as server:
                    self.check(environment(server), lambda: server.wait_for_number(1), f"{name}, {'TLS' if certificate else 'plain'}")

    def test_it_goes_on_after_bad_answers(self):
        quick = [name for name, answer in BAD.items() if not callable(answer)]
        with Server(certificate=harness.certificate()) as server, Program("input()", environment(server)) as program:
            server.wait_for_number(1)
            for name in quick:
                with self.subTest(name):
                    server.answer = lambda m: BAD[name] if name != "infinite" else {}   # that asks for the longest period
                    count = len(server.messages)
                    if name != "not a number":
                        server.wait_for_number(count + 2)
            server.answer = lambda m: {}
            count = len(server.messages)
            server.wait_for_number(count + 2)
            self.assertEqual(program.end(), (0, "", ""))
            self.assertTrue(server.wait_for(lambda m: m["bye"]))

    def test_no_server(self):
        unused = socket.create_server(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        unused.close()
        for url in (f"http://127.0.0.1:{port}/status", f"https://127.0.0.1:{port}/status", "ftp://x/status", "nonsense", "http://", "http://[::1/x",
                    "http://\u00e4.example/status", "https://no-such-host.invalid/status", f"http://127.0.0.1:{10 ** 9}/status"):
            self.check(environment(url, LC_ALL="C.UTF-8"), lambda: None, url)

    def test_tokens_and_certificates(self):
        other = harness.FOLDER / "other.crt"
        other.write_text("no certificate")
        odd = harness.FOLDER / "odd-token"
        odd.write_text("a\r\nHost: evil")
        cases = [{"KUBEFLOW_TRAINER_SERVER_TOKEN": "/no/such/token"}, {"KUBEFLOW_TRAINER_SERVER_TOKEN": str(odd)},
                 {"KUBEFLOW_TRAINER_SERVER_CA_CERT": "/no/such/ca"}, {"KUBEFLOW_TRAINER_SERVER_CA_CERT": str(other)},
                 {"KUBEFLOW_TRAINER_SERVER_TOKEN": "/dev/zero"}]
        with Server(certificate=harness.certificate()) as server:
            for case in cases:
                self.check(environment(server, **case), lambda: None, str(case))
            wrong_name = server.url.replace("127.0.0.1", "localhost")
            self.check(environment(wrong_name), lambda: None, wrong_name)
            self.assertEqual(server.messages, [])   # nothing is sent to a server that is another

    def test_a_server_that_comes_back(self):
        with Server(certificate=harness.certificate()) as server, Program("input()", environment(server)) as program:
            server.wait_for_number(2)
            server.answer = lambda m: b""
            server.wait_for_number(len(server.messages) + 2)
            server.answer = lambda m: {}
            server.wait_for_number(len(server.messages) + 3)
            program.end()
            server.wait_for(lambda m: m["bye"])

    def test_the_end_waits_for_the_last_heartbeat_for_two_seconds_at_most(self):
        with Server(lambda m: {} if not m["bye"] else hold) as server, Program(TEXT, environment(server)) as program:
            server.wait_for_number(3)
            begun = time.monotonic()
            self.assertEqual(program.end(), (7, "out\n", "err\n"))
            self.assertLess(time.monotonic() - begun, 8)   # a heartbeat's own limit is ten seconds
            server.wait_for(lambda m: m["bye"])

    def test_sockets_and_time_of_the_program_are_not_used(self):
        """Programs replace functions of these modules, and set limits of their own."""
        text = """
            import signal, socket, ssl, time, json, threading
            def refuse(*args, **kwargs):
                raise SystemExit(3)
            socket.socket = socket.create_connection = socket.getaddrinfo = time.sleep = time.monotonic = time.time = threading.Thread = refuse
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            socket.setdefaulttimeout(0.000001)
            input()
        """
        # Before the first heartbeat, and after some.
        for certificate, period in ((None, "0.2"), (harness.certificate(), "0.2"), (None, "5"), (harness.certificate(), "5")):
            env = environment(KUBEFLOW_TRAINER_REPORTER_PERIOD=period)
            with Server(lambda m: {"period": 1}, certificate) as server, Program(text, dict(env, KUBEFLOW_TRAINER_SERVER_URL=server.url)) as program:
                server.wait_for_number(3)
                server.answer = lambda m: b""
                count = len(server.messages)
                server.wait_for_number(count + 2)
                self.assertEqual(program.end(), (0, "", ""))

    def test_connections_are_closed(self):
        """The number of descriptors is the same after many heartbeats, good and bad."""
        text = """
            import os
            for line in iter(input, "end"):
                print(len(os.listdir("/proc/self/fd")), flush=True)
        """
        with Server(certificate=harness.certificate()) as server, Program(text, environment(server, KUBEFLOW_TRAINER_REPORTER_PERIOD="0.05")) as program:
            server.wait_for_number(3)
            numbers = []
            for answer in ({}, 500, b"", BAD["garbage"]):
                server.answer = lambda m: answer
                server.wait_for_number(len(server.messages) + 10)
                program.go_on()
                numbers.append(int(program.said()))
            self.assertLess(max(numbers) - min(numbers), 4, numbers)   # one may be in flight, of ten each
            self.assertLess(len(os.listdir(f"/proc/{program.pid}/fd")), 8)


if __name__ == "__main__":
    harness.main()
