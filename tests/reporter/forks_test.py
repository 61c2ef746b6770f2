"""Forks, signals and ends of a program are what they are without the reporter."""
import os
import signal
import subprocess
import unittest

import harness
from harness import Program, environment, run
from server import Server

STORM = """
    import os, signal, socket, ssl, sys, time
    input()
    hung = 0
    for i in range(int(sys.argv[1])):
        child = os.fork()
        if child == 0:
            signal.setitimer(signal.ITIMER_REAL, 10)
            import csv
            socket.getaddrinfo("localhost", 80)
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            ssl.RAND_bytes(4)
            sys.exit(0) if i % 2 else os._exit(0)
        hung += os.waitpid(child, 0)[1] != 0
    print(hung)
"""


class Forks(unittest.TestCase):
    def test_a_storm_beside_heartbeats(self):
        """A child never inherits a lock of OpenSSL or of an import, nor a watchdog that it would wait for."""
        env = dict(KUBEFLOW_TRAINER_REPORTER_PERIOD="0.05", KUBEFLOW_TRAINER_REPORTER_WATCHDOG="100")
        with Server(certificate=harness.certificate()) as server:
            programs = [Program(STORM, environment(server, **env), arguments=("400",)) for _ in range(2)]
            server.wait_for_number(2)
            for program in programs:
                self.assertEqual(program.end(120), (0, "0\n", ""))

    def test_forks_while_the_reporter_begins(self):
        """The first heartbeat imports and compiles what it needs, and a child can import the same."""
        text = """
            import os, signal, sys, time
            end = time.monotonic() + 1
            bad = 0
            while time.monotonic() < end:
                child = os.fork()
                if child == 0:
                    signal.setitimer(signal.ITIMER_REAL, 10)
                    import json, ssl
                    os._exit(0)
                bad += os.waitpid(child, 0)[1] != 0
            print(bad)
        """
        with Server(certificate=harness.certificate()) as server:
            for _ in range(3):
                self.assertEqual(run(text, environment(server)), (0, "0\n", ""))

    def test_children_do_not_end_the_rank(self):
        """The end of a child is not the rank's, and its copy of a connection is closed."""
        text = """
            import os, sys
            if os.fork() == 0:
                sys.exit(0)
            os.wait()
            print("done", flush=True)
            input()
        """
        with Server() as server, Program(text, environment(server)) as program:
            server.wait_for_number(2)
            self.assertEqual(program.said(), "done")
            server.wait_for_number(len(server.messages) + 2)
            self.assertFalse(any(m["bye"] for m in server.messages))

    def test_multiprocessing(self):
        text = """
            import multiprocessing, sys, os
            def square(n):
                return n * n
            if __name__ == "__main__":
                multiprocessing.set_start_method(sys.argv[1])
                with multiprocessing.Pool(3) as pool:
                    print(sum(pool.map(square, range(50))))
                queue = multiprocessing.Queue()
                child = multiprocessing.Process(target=queue.put, args=(5,))
                child.start()
                print(queue.get())
                child.join()
                print(child.exitcode)
        """
        for certificate in (None, harness.certificate()):
            with Server(certificate=certificate) as server:
                for method in ("fork", "spawn", "forkserver"):
                    with self.subTest(method=method):
                        env = environment(server, KUBEFLOW_TRAINER_REPORTER_PERIOD="0.05")
                        self.assertEqual(run(text, env, arguments=(method,)), (0, "40425\n5\n0\n", ""))
                self.assertEqual(len({m["pid"] for m in server.messages}), 3)

    def test_a_fork_in_a_handler_of_a_signal(self):
        text = """
            import os, signal
            count = 0
            def handle(*_):
                global count
                child = os.fork()
                if child == 0:
                    os._exit(0)
                os.waitpid(child, 0)
                count += 1
                signal.setitimer(signal.ITIMER_REAL, 0.001)
            signal.signal(signal.SIGALRM, handle)
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            while count < 300:
                child = os.fork()
                if child == 0:
                    os._exit(0)
                os.waitpid(child, 0)
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            print("done")
        """
        with Server(certificate=harness.certificate()) as server:
            self.assertEqual(run(text, environment(server, KUBEFLOW_TRAINER_REPORTER_PERIOD="0.05")), (0, "done\n", ""))


class Ends(unittest.TestCase):
    CASES = {
        "returns": ("", 0), "exits": ("sys.exit(5)", 5), "text": ("sys.exit('why')", 1), "raises": ("raise ValueError('x')", 1), "_exit": ("os._exit(6)", 6),
        "SIGTERM": ("os.kill(os.getpid(), 15)", -15), "SIGKILL": ("os.kill(os.getpid(), 9)", -9), "SIGINT": ("os.kill(os.getpid(), 2); time.sleep(9)", -2),
        "abort": ("os.abort()", -6), "handler": ("signal.signal(15, lambda *_: sys.exit(8)); os.kill(os.getpid(), 15); time.sleep(9)", 8),
        "atexit": ("import atexit; atexit.register(lambda: print('last'))", 0), "atexit raises": ("import atexit; atexit.register(exec, '1 / 0')", 0),
        "thread": ("import threading; threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()", 0),
        "waits for a signal": ("signal.pthread_sigmask(0, [15]); os.kill(os.getpid(), 15); print(signal.sigwait([15]))", 0),
        "pipe": ("signal.signal(13, signal.SIG_DFL); r, w = os.pipe(); os.close(r); os.write(w, b'x')", -13),
        "closes all": ("os.closerange(3, 1000)", 0), "executes": ("os.execv('/bin/sh', ['sh', '-c', 'exit 4'])", 4),
    }

    def test_ends_are_the_same_with_and_without(self):
        for name, (how, status) in self.CASES.items():
            text = f"import os, signal, sys, time\nprint('begun')\ninput()\n{how}\n"
            with self.subTest(name), Server(certificate=harness.certificate()) as server:
                with Program(text, environment(server, KUBEFLOW_TRAINER_REPORTER="0")) as without:
                    expected = without.end()
                with Program(text, environment(server)) as program:
                    server.wait_for_number(2)
                    found = program.end()
                self.assertEqual(found[0], status)
                self.assertEqual((found[0], found[1], found[2].replace(str(program.path), "PATH")),
                                 (expected[0], expected[1], expected[2].replace(str(without.path), "PATH")))
                if name != "closes all":   # a connection may have been among them
                    if name in ("_exit", "SIGTERM", "SIGKILL", "abort", "pipe", "executes"):
                        self.assertFalse(any(message["bye"] for message in server.messages))
                    else:
                        server.wait_for(lambda m: m["bye"])

    def test_interrupts_at_the_terminal(self):
        """SIGINT while the last heartbeat waits for its answer leaves the status and the output."""
        def hold(line, is_over):
            is_over.wait(30)

        with Server(lambda m: hold if m["bye"] else {}) as server, Program("input()", environment(server)) as program:
            server.wait_for_number(2)
            program.go_on()
            server.wait_for(lambda m: m["bye"])
            os.kill(program.pid, signal.SIGINT)
            self.assertEqual(program.end(), (0, "", ""))

    def test_few_descriptors(self):
        """The program has them all, and goes on; so does the reporter when one is free again."""
        text = """
            import os
            input()
            held = []
            try:
                while True: held.append(os.open("/dev/null", 0))
            except OSError: pass
            print(len(held) > 10, flush=True)
            input()
            for fd in held: os.close(fd)
            print("free", flush=True)
            input()
        """
        with Server(certificate=harness.certificate()) as server:
            limited = ["sh", "-c", 'ulimit -n 40; exec "$@"', "sh", harness.PYTHON]
            env = environment(server)
            with Program(text, env, python=limited[0], options=limited[1:]) as program:
                server.wait_for_number(2)
                program.go_on()
                self.assertEqual(program.said(), "True")
                program.go_on()
                self.assertEqual(program.said(), "free")
                server.wait_for_number(len(server.messages) + 2)
                self.assertEqual(program.end(), (0, "", ""))

    def test_subprocesses(self):
        text = """
            import subprocess, sys
            print(subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, preexec_fn=lambda: None).stdout)
            print(subprocess.run(["sh", "-c", "exit 3"]).returncode)
        """
        with Server() as server:
            self.assertEqual(run(text, environment(server)), (0, "b'1\\n'\n3\n", ""))

    def test_warnings_of_forks(self):
        """From 3.12 on Python warns if a program with threads forks; the reporter's are not the program's."""
        for version, python in harness.pythons():
            if version >= (3, 12):
                with self.subTest(version=version), Server() as server:
                    with Program("import os\ninput()\nif os.fork() == 0: os._exit(0)\nos.wait()", environment(server), python=python, options=("-W", "error")) as program:
                        server.wait_for_number(1)
                        self.assertEqual(program.end(), (0, "", ""))


class Limits(unittest.TestCase):
    def test_memory(self):
        """A rank that has its own copies of the modules uses at most 3 MB more for the reporter."""
        text = """
            import json, re, socket, ssl
            ssl.create_default_context()
            input()
            print(sum(int(l.split()[1]) for l in open("/proc/self/smaps_rollup") if l.startswith(("Private_Clean", "Private_Dirty"))), flush=True)
            input()
        """
        with Server(certificate=harness.certificate()) as server:
            used = []
            for switch in ("0", "1"):
                with Program(text, environment(server, KUBEFLOW_TRAINER_REPORTER=switch, KUBEFLOW_TRAINER_REPORTER_PERIOD="0.05")) as program:
                    if switch == "1":
                        server.wait_for_number(20)
                    program.go_on()
                    used.append(int(program.said()))
                    program.end()
            print(f"memory of a rank: {used[1] - used[0]} KB", flush=True)
            self.assertLess(used[1] - used[0], 3072)

    def test_size(self):
        done = subprocess.run(["cat", *sorted(harness.REPORTER.glob("*.py"))], capture_output=True)
        self.assertLess(len(done.stdout), 60000)


if __name__ == "__main__":
    harness.main()
