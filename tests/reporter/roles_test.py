"""Which processes report, and as what."""
import unittest

import harness
from harness import PYTHON, Program, environment
from server import Server

STEP = "import torch, sys; o = torch.optim.SGD(); o.step(); sys.stdin.readline()"


def is_rank(message):
    return message["role"] == "rank"


class Roles(unittest.TestCase):
    def test_command_lines(self):
        """A launcher is known by what its command line runs, not by words in it."""
        reporter = {}
        with open(harness.REPORTER / "trainer_reporter.py") as file:
            exec(compile(file.read(), "trainer_reporter.py", "exec"), reporter)
        cases = [
            ("python train.py", "train.py"), ("python -u train.py torchrun", "train.py"), ("python", ""), ("python -", "-"),
            ("python -m torch.distributed.run a.py", "torch.distributed.run"), ("python -um torch.distributed.run", "torch.distributed.run"),
            ("python -mtorch.distributed.run", "torch.distributed.run"), ("python -c torchrun", ""), ("python -uc x torchrun", ""),
            ("python -X faulthandler -W error /bin/torchrun x", "/bin/torchrun"), ("python -Xdev -Werror a.py", "a.py"),
            ("python --check-hash-based-pycs always a.py", "a.py"), ("python -X", ""), ("python -m", ""),
        ]
        for line, expected in cases:
            with self.subTest(line=line):
                self.assertEqual(reporter["program"](line.split()), expected)

    def test_who_reports(self):
        """Each case runs for a moment; a rank sends a heartbeat, and one that is none has no thread."""
        text = "import os; print(len(os.listdir('/proc/self/task'))); input()"
        cases = [
            ({}, True), ({"RANK": "1"}, True),
            ({"KUBEFLOW_TRAINER_REPORTER": "0"}, False), ({"KUBEFLOW_TRAINER_REPORTER": None}, False), ({"KUBEFLOW_TRAINER_REPORTER": "yes"}, False),
            ({"KUBEFLOW_TRAINER_SERVER_URL": None}, False), ({"KUBEFLOW_TRAINER_SERVER_TOKEN": ""}, False),
            ({"KUBEFLOW_TRAINER_SERVER_CA_CERT": None}, False),
            ({"RANK": None}, False), ({"WORLD_SIZE": None}, False), ({"RANK": "2"}, False), ({"RANK": "-1"}, False), ({"RANK": "x"}, False),
            ({"RANK": "\u0662"}, False), ({"RANK": "0", "WORLD_SIZE": "16385"}, False), ({"RANK": "16383", "WORLD_SIZE": "16384"}, True),
            ({"RANK": "1" * 100}, False),
        ]
        for change, reports in cases:
            env = {name: value for name, value in dict(environment("http://127.0.0.1:9/status"), **change).items() if value is not None}
            with self.subTest(env=change), Program(text, env) as program:
                self.assertEqual(int(program.said()) > 1, reports)
                program.end()

    def test_torchrun_and_its_ranks(self):
        """Torchrun's process has RANK here, too, since it is in the environment of some pods."""
        for text in (STEP, "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', " + repr(STEP) + "]))"):
            with self.subTest(text=text), Server() as server:
                with Program(text, environment(server, 0, 1), options=("-m", "torch.distributed.run", "2", harness.PYTHON)) as program:
                    agent = server.wait_for(lambda m: m["role"] == "agent" and len(m["workers"]) == 2)
                    self.assertEqual(agent["pid"], program.pid)
                    self.assertNotIn("rank", agent)
                    workers = {each["rank"]: each for each in agent["workers"]}
                    for rank in (0, 1):
                        message = server.wait_for(lambda m: is_rank(m) and m["rank"] == rank and m["world"] == 2)
                        self.assertEqual((workers[rank]["pid"], workers[rank]["born"]), (message["pid"], message["born"]))
                        server.wait_for(lambda m: is_rank(m) and m["rank"] == rank and m["steps"] == 1)

    def test_a_worker_that_has_ended_is_gone(self):
        text = "import os, time\nif os.environ['RANK'] == '1': input()\nelse: time.sleep(1000)"
        with Server() as server, Program(text, environment(server), options=("-m", "torch.distributed.run", "2", PYTHON)) as program:
            server.wait_for(lambda m: m["role"] == "agent" and len(m["workers"]) == 2)
            program.go_on()
            server.wait_for(lambda m: m["role"] == "agent" and {each["rank"]: each["state"] for each in m["workers"]}.get(1) in ("Z", "gone"))

    def test_what_a_rank_leaves_behind_is_no_worker(self):
        """Torchrun's process is the first one of its container here, which becomes the parent of processes whose own one has ended."""
        first = harness.FOLDER / "first"
        first.write_text(f"#!{PYTHON} -I\nimport ctypes, os, sys\nctypes.CDLL(None).prctl(36, 1)\nos.execv({PYTHON!r}, [{PYTHON!r}, *sys.argv[1:]])\n")
        first.chmod(0o755)
        text = """
            import os, time
            if os.environ["RANK"] == "1":
                input()
                if os.fork(): os._exit(0)
            time.sleep(1000)
        """
        with Server() as server, Program(text, environment(server), python=first, options=("-m", "torch.distributed.run", "2", PYTHON)) as program:
            pid = server.wait_for(lambda m: is_rank(m) and m["rank"] == 1)["pid"]
            count = max([m["sent"] for m in server.messages if m["role"] == "agent"], default=0)
            agent = server.wait_for(lambda m: m["role"] == "agent" and m["sent"] > count + 1)   # it has seen the file of that rank
            program.go_on()
            ended = server.wait_for(lambda m: m["role"] == "agent" and {each["pid"]: each["state"] for each in m["workers"]}.get(pid) in ("Z", "gone"))
            self.assertEqual([each["pid"] for each in ended["workers"]], [each["pid"] for each in agent["workers"]])

    def test_a_script_between_torchrun_and_python(self):
        with Server() as server:
            command = ("/bin/sh", "-c", f'{PYTHON} "$0"; exit')
            with Program(STEP, environment(server), options=("-m", "torch.distributed.run", "1", *command)):
                message = server.wait_for(lambda m: is_rank(m) and m["steps"] == 1)
                server.wait_for(lambda m: m["role"] == "agent" and [each["born"] for each in m["workers"]] == [message["born"]])

    def test_launchers_that_have_the_variables_of_a_rank(self):
        """The launcher waits; what it starts trains, and is heard as the rank."""
        spawn = """
            import multiprocessing, os, sys
            def train(rank):
                import torch
                from torch.distributed import init_process_group
                init_process_group(rank, 2)
                torch.optim.SGD().step()
                os.read(int(os.environ["WAIT"]), 1)
            if __name__ == "__main__":
                read, write = os.pipe()
                os.set_inheritable(read, True)
                os.environ["WAIT"] = str(read)
                context = multiprocessing.get_context("fork")
                children = [context.Process(target=train, args=(rank,)) for rank in (0, 1)]
                for child in children: child.start()
                for child in children: child.join()
        """
        cases = {
            "subprocess": ("import subprocess, sys; subprocess.call([sys.executable, '-c', " + repr(STEP) + "])", {0}),
            "fork": ("import os, sys\nif os.fork(): os.wait()\nelse: exec(" + repr(STEP) + ")", {0}),
            "multiprocessing": (spawn, {0, 1}),
        }
        for name, (text, ranks) in cases.items():
            with self.subTest(name), Server() as server, Program(text, environment(server)) as program:
                for rank in ranks:
                    message = server.wait_for(lambda m: is_rank(m) and m["rank"] == rank and m["steps"] == 1)
                    self.assertNotEqual(message["pid"], program.pid)

    def test_a_launcher_of_ranks_is_an_agent(self):
        """It is no program that is known, has RANK, and its ranks have LOCAL_RANK."""
        text = f"""
            import os, subprocess, sys
            step = {STEP!r}
            ranks = [subprocess.Popen([sys.executable, "-c", step], env=dict(os.environ, RANK=str(r), LOCAL_RANK=str(r))) for r in (0, 1)]
            for each in ranks: each.wait()
        """
        with Server() as server, Program(text, environment(server)) as program:
            for rank in (0, 1):
                server.wait_for(lambda m: is_rank(m) and m["rank"] == rank and m["steps"] == 1)
            agent = server.wait_for(lambda m: m["role"] == "agent" and len(m["workers"]) == 2)
            self.assertEqual(agent["pid"], program.pid)

    def test_helpers_of_a_rank_do_not_report(self):
        """Loader processes that import torch, and programs that a rank calls, are children, and steps of a helper make no rank of it."""
        text = """
            import multiprocessing, os, subprocess, sys
            def work(done):
                import torch
                torch.optim.SGD().step()
                done.get()
            if __name__ == "__main__":
                sleeper = subprocess.Popen([sys.executable, "-c", "import torch, sys; sys.stdin.readline()"])
                for method in ("fork", "spawn", "forkserver"):
                    context = multiprocessing.get_context(method)
                    done = context.Queue()
                    child = context.Process(target=work, args=(done,), daemon=True)
                    child.start()
                print("started", flush=True)
                sleeper.wait()
        """
        with Server(lambda m: {"dump": "a"}) as server, Program(text, environment(server)) as program:
            self.assertEqual(program.said(), "started")
            count = len(server.messages)
            server.wait_for_number(count + 5)
            self.assertEqual({m["pid"] for m in server.messages}, {program.pid})

    def test_a_program_that_replaces_itself_goes_on(self):
        text = """
            import os, sys
            input()
            os.execv(sys.executable, [sys.executable, "-c", "print('second', flush=True); input()"])
        """
        with Server() as server, Program(text, environment(server)) as program:
            server.wait_for_number(2)
            program.go_on()
            self.assertEqual(program.said(), "second")
            count = len(server.messages)
            server.wait_for_number(count + 3)
            sent = [m["sent"] for m in server.messages]
            self.assertEqual(sent, sorted(set(sent)))
            self.assertEqual(len({m["born"] for m in server.messages}), 1)
            program.end()


if __name__ == "__main__":
    harness.main()
