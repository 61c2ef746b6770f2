"""Stacks: of threads, of children, of a rank in which Python does not go on."""
import os
import signal
import time
import unittest

import harness
from harness import PYTHON, Program, environment
from server import Server

REGEX = r're.match(r"(a+)+$", "a" * 60 + "b")'


def ask(message):
    return {"dump": "a"}


def main_thread(message):
    return message["dump"]["threads"][0]


class Stacks(unittest.TestCase):
    def test_threads(self):
        text = """
            import threading
            def prefetch():
                threading.Event().wait()
            class Odd(str):
                pass
            threading.Thread(target=prefetch, name="prefetch", daemon=True).start()
            other = threading.Thread(target=prefetch, daemon=True)
            other._name = 7
            other.start()
            def train():
                input()
            train()
        """
        with Server(ask) as server, Program(text, environment(server)) as program:
            threads = server.wait_for(lambda m: "dump" in m)["dump"]["threads"]
            main = threads[0]
            self.assertEqual((main["main"], main["name"], main["state"]), (True, "MainThread", "S"))
            self.assertEqual(main["frames"][:2], [f"{program.path}:{program.line('input()')} train", f"{program.path}:{program.line('train()') + 2} <module>"])
            self.assertEqual(sorted(each["name"] for each in threads), ["", "MainThread", "prefetch"])   # the reporter's own are left out
            for thread in threads[1:]:
                self.assertEqual(set(thread), {"name", "main", "state", "wchan", "frames"})
                self.assertIn(f"{program.path}:{program.line('.wait()')} prefetch", thread["frames"])

    def test_children(self):
        text = """
            import multiprocessing, subprocess, sys
            def load(done):
                print("in", flush=True)
                done.wait()
            if __name__ == "__main__":
                context = multiprocessing.get_context(sys.argv[1])
                done = context.Event()
                child = context.Process(target=load, args=(done,), daemon=True)
                child.start()
                other = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                child.join()
        """
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method=method), Server() as server, Program(text, environment(server), arguments=(method,)) as program:
                self.assertEqual(program.said(), "in")
                server.answer = ask
                children = server.wait_for(lambda m: "dump" in m)["dump"]["children"]
                line = f'File "{program.path}", line {program.line("done.wait()")} in load'
                self.assertEqual(sum(line in each["text"] for each in children), 1, children)
                self.assertFalse(any("resource_tracker.py" in each["text"] for each in children), children)   # it never hangs
                sleeper = next(each for each in children if each["command"] == "sleep")
                self.assertEqual((sleeper["text"], sleeper["state"]), ("", "S"))
                self.assertEqual(set(sleeper), {"pid", "command", "state", "wchan", "text"})

    def test_a_rank_whose_children_write_stacks_is_not_silent(self):
        """Otherwise torchrun's process would send it the signal, and its stacks would be among theirs."""
        signals = {}
        with open(harness.REPORTER / "trainer_signals.py") as file:
            exec(compile(file.read(), "trainer_signals.py", "exec"), signals)
        file = os.memfd_create("file")
        self.addCleanup(os.close, file)
        path = f"/proc/self/fd/{file}"
        signals["leave_time"](file, time.time() + 100)
        os.write(file, b"stacks")
        self.assertFalse(signals["is_silent"](path))
        signals["leave_time"](file, time.time() - 1)
        self.assertTrue(signals["is_silent"](path))

    def test_the_lock_of_python_is_held(self):
        """The rank is silent. Torchrun's process sends the signal; the watchdog writes to the rank's standard error."""
        text = f"""
            import os, re, sys
            def match():
                {REGEX}
            print(os.getpid(), flush=True)
            if os.environ["RANK"] == "1":
                sys.stdin.readline()
                match()
            import time
            while True: time.sleep(1)
        """
        env = dict(KUBEFLOW_TRAINER_REPORTER_WATCHDOG="1")
        with Server() as server, Program(text, environment(server, **env), options=("-m", "torch.distributed.run", "2", PYTHON)) as program:
            server.wait_for(lambda m: m["role"] == "rank" and m["rank"] == 1 and m["sent"] > 1)
            server.wait_for(lambda m: m["role"] == "rank" and m["rank"] == 0 and m["sent"] > 1)
            server.answer = lambda m: {"dump": str(len(server.messages))} if m["role"] == "agent" else {}
            asked = server.wait_for(lambda m: m["role"] == "agent" and m["sent"] > 0 and m["workers"])
            self.assertEqual({each["text"] for each in asked["workers"]}, {""})   # none is silent, so none gets a signal
            program.go_on()
            line = f'File "{program.path}", line {program.line("re.match")} in match'
            found = server.wait_for(lambda m: m["role"] == "agent" and any(line in each["text"] for each in m["workers"]))
            texts = {each["rank"]: each["text"] for each in found["workers"]}
            self.assertEqual(texts[0], "")
            self.assertLessEqual(len(texts[1]), 16384)
            error = ""
            while line not in error:
                read = program.process.stderr.readline()
                self.assertTrue(read, error)
                error += read
            self.assertIn("Timeout (0:00:01)!", error)

    def test_a_stopped_rank(self):
        text = "import sys; sys.stdin.readline()"
        with Server() as server, Program(text, environment(server), options=("-m", "torch.distributed.run", "2", PYTHON)):
            rank = server.wait_for(lambda m: m["role"] == "rank" and m["rank"] == 1)
            os.kill(rank["pid"], signal.SIGSTOP)
            server.answer = lambda m: {"dump": str(len(server.messages))}
            seen = server.wait_for(lambda m: m["role"] == "agent" and any(each["state"] == "T" for each in m["workers"]))
            worker = next(each for each in seen["workers"] if each["state"] == "T")
            self.assertEqual((worker["rank"], worker["pid"], worker["text"]), (1, rank["pid"], ""))
            os.kill(rank["pid"], signal.SIGCONT)
            server.wait_for(lambda m: m["role"] == "agent" and m["sent"] > seen["sent"] and all(each["state"] == "S" for each in m["workers"]))

    def test_large_texts_are_cut(self):
        """The main thread is at the end of a text, so the end is kept."""
        text = """
            import threading, multiprocessing
            def deep(n):
                return deep(n - 1) if n else threading.Event().wait()
            def work(ready):
                for i in range(20):
                    threading.Thread(target=deep, args=(90,), daemon=True).start()
                ready.set()
                wait_in_child()
            def wait_in_child():
                threading.Event().wait()
            if __name__ == "__main__":
                for i in range(5):
                    ready = multiprocessing.Event()
                    multiprocessing.Process(target=work, args=(ready,), daemon=True).start()
                    ready.wait()
                print("in", flush=True)
                input()
        """
        with Server() as server, Program(text, environment(server)) as program:
            self.assertEqual(program.said(), "in")
            server.answer = ask
            server.wait_for(lambda m: "dump" in m)
            bodies = [len(body) for _, body in server.requests]
            self.assertLessEqual(max(bodies), 65536)
            children = server.wait_for(lambda m: "dump" in m)["dump"]["children"]
            self.assertEqual(len(children), 5)
            for child in children:
                self.assertIn("in wait_in_child", child["text"])
                self.assertLessEqual(len(child["text"]), 16384)


class Signals(unittest.TestCase):
    def test_a_program_that_handles_the_signal_keeps_it(self):
        """It takes SIGURG, or the descriptor: then the reporter sends no signal and writes to no file of the program."""
        take_signal = "signal.signal(signal.SIGURG, lambda *_: print('urgent', flush=True))"
        take_file = """fd = next(int(n) for n in os.listdir("/proc/self/fd") if int(n) >= 200)
            mine = os.open(sys.argv[0] + ".data", os.O_RDWR | os.O_CREAT); os.write(mine, b"x" * 100000); os.dup2(mine, fd); os.utime(fd, (5, 5))"""
        for name, take in (("signal", take_signal), ("descriptor", take_file)):
            text = f"""
            import os, signal, sys
            {take}
            child = os.fork()
            if child == 0:
                signal.pause()
            print("ready", flush=True)
            input()
            print("no more", flush=True)
            """
            with self.subTest(name), Server() as server, Program(text, environment(server)) as program:
                self.assertEqual(program.said(), "ready")
                count = len(server.messages)
                server.wait_for_number(count + 2)
                server.answer = ask
                dump = server.wait_for(lambda m: "dump" in m)["dump"]
                self.assertEqual([child["text"] for child in dump["children"]], [""])
                program.go_on()
                self.assertEqual(program.said(), "no more")
                if name == "descriptor":
                    done = os.stat(str(program.path) + ".data")
                    self.assertEqual((done.st_size, done.st_mtime), (100000, 5))

    def test_signals_of_strangers(self):
        """Faulthandler's output for them does not pile up, and the program goes on."""
        text = """
            import os, signal
            fd = next(n for n in os.listdir("/proc/self/fd") if int(n) >= 200)
            while os.stat("/proc/self/fd/" + fd).st_size <= 65536:   # a heartbeat may be sent meanwhile
                os.kill(os.getpid(), signal.SIGURG)
            print("grown", flush=True)
            input()
            print(os.stat("/proc/self/fd/" + fd).st_size)
        """
        with Server() as server, Program(text, environment(server)) as program:
            self.assertEqual(program.said(), "grown")
            count = len(server.messages)
            server.wait_for_number(count + 3)
            self.assertEqual(program.end(), (0, "0\n", ""))

    def test_the_program_uses_the_watchdog(self):
        """There is one in a process: the program's own is neither replaced nor cancelled."""
        text = """
            import faulthandler, os, sys
            if sys.argv[1] == "arms":
                faulthandler.dump_traceback_later(1.5, file=sys.stderr)
            else:
                faulthandler.cancel_dump_traceback_later()
            if os.fork() == 0:
                os._exit(0)
            os.wait()
            print("ready", flush=True)
            input()
        """
        env = dict(KUBEFLOW_TRAINER_REPORTER_WATCHDOG="0.3")
        with Server() as server, Program(text, environment(server, **env), arguments=("arms",)) as program:
            self.assertIn("Timeout (0:00:01.500000)!", program.process.stderr.readline())
        with Server() as server, Program(text, environment(server, **env), arguments=("cancels",)) as program:
            server.wait_for_number(8)
            self.assertEqual(program.end()[2], "")


if __name__ == "__main__":
    harness.main()
