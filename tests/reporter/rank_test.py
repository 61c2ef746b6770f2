"""A rank's heartbeats, and how it follows the server's answers."""
import json
import os
import time
import unittest

import harness
from harness import Program, environment
from server import Server

TRAIN = """
    import os
    import torch
    from torch.distributed import all_reduce, init_process_group

    init_process_group(int(os.environ["RANK"]), 2)
    optimizer = torch.optim.SGD()
    for batch in torch.utils.data.DataLoader(range(7)):
        all_reduce()
        optimizer.step()
    for batch in torch.utils.data.DataLoader(range(3)):
        pass
    def wait_here():
        input()
    wait_here()
"""
TYPES = {"v": int, "role": str, "pid": int, "born": str, "attempt": str, "restart": str, "sent": int, "bye": bool, "rank": int, "world": int,
         "steps": int, "batches": int, "seq": int, "idle": (int, float), "gap": (int, float), "own": (int, float), "top": str, "leaf": str,
         "cpu": (int, float), "io": int, "saved": int, "loaded": int}


class Heartbeats(unittest.TestCase):
    def test_members_and_counters(self):
        for paths in (harness.TORCH, harness.TORCH_1):
            with self.subTest(torch=paths), Server() as server:
                env = environment(server, rank=1, TRAINER_ATTEMPT="3", TORCHELASTIC_RESTART_COUNT="2", PYTHONPATH=f"{harness.REPORTER}:{paths}")
                with Program(TRAIN, env) as program:
                    message = server.wait_for(lambda m: m["steps"] == 7 and m["batches"] == 10 and m["sent"] > 0)
                    self.assertEqual(set(message), set(TYPES))
                    for name, kind in TYPES.items():
                        self.assertIsInstance(message[name], kind, name)
                    self.assertEqual([message[name] for name in ("v", "role", "pid", "rank", "world", "attempt", "restart", "seq", "bye")],
                                     [1, "rank", program.pid, 1, 2, "3", "2", 7, False])
                    self.assertEqual(message["born"], f"{start_of(program.pid)}-{program.pid}")
                    self.assertEqual(message["top"], f"{program.path}:{program.line('input()')} wait_here")
                    self.assertGreaterEqual(message["gap"], 0)
                    self.assertEqual(program.end()[0], 0)
                    last = server.wait_for(lambda m: m["bye"])
                    self.assertEqual((last["steps"], last["sent"]), (7, len(server.messages) - 1))
                self.assertEqual([m["sent"] for m in server.messages], list(range(len(server.messages))))
                head = server.requests[0][0].decode()
                self.assertTrue(head.startswith("POST /apis/trainer/namespaces/default/trainjobs/job/heartbeat HTTP/1.1\r\n"), head)
                self.assertIn("\r\nAuthorization: Bearer a-token", head)

    def test_the_token_is_read_for_each(self):
        token = harness.FOLDER / "another-token"
        token.write_text("first")
        with Server() as server, Program("input()", environment(server, KUBEFLOW_TRAINER_SERVER_TOKEN=str(token))) as program:
            server.wait_for_number(1)
            token.write_text("second")
            first = len(server.messages)
            server.wait_for_number(first + 2)
            self.assertIn(b"Bearer second", server.requests[-1][0])
            program.end()

    def test_without_torch(self):
        with Server() as server, Program("def here():\n    input()\nhere()", environment(server)) as program:
            message = server.wait_for(lambda m: m["idle"] > 0.3)
            self.assertEqual([message[name] for name in ("steps", "batches", "seq", "gap", "own")], [0, 0, -1, -1, -1])
            self.assertEqual(message["top"], f"{program.path}:2 here")
            self.assertNotIn("trainer_", message["leaf"])
            program.end()

    def test_a_hang_during_imports(self):
        with Server() as server:
            env = environment(server)
            with Program("import hanging", env) as program:
                (program.path.parent / "hanging.py").write_text("input()")
                message = server.wait_for(lambda m: m["top"].endswith("hanging.py:1 <module>") or m["bye"])
                if not message["bye"]:   # else the import was faster than this test
                    program.end()

    def test_idle_begins_again_with_each_mark_of_progress(self):
        text = """
            import torch
            from torch.distributed import all_reduce, init_process_group
            init_process_group(0, 2)
            optimizer = torch.optim.SGD()
            loader = iter(torch.utils.data.DataLoader(range(7)))
            for mark in (optimizer.step, lambda: next(loader), all_reduce):
                input()
                mark()
            input()
        """
        with Server() as server, Program(text, environment(server)) as program:
            for _ in range(3):
                count = len(server.messages)
                idle = server.wait_for(lambda m: m["sent"] >= count and m["idle"] >= 0.3)
                marks = [idle[name] for name in ("steps", "batches", "seq")]
                program.go_on()
                after = server.wait_for(lambda m: m["sent"] > idle["sent"] and [m[name] for name in ("steps", "batches", "seq")] != marks)
                self.assertEqual(after["idle"], 0)
            program.end()

    def test_idle_counts_from_the_last_step(self):
        """It does not count from the next heartbeat, so that a verdict need not wait for that one."""
        text = """
            import torch
            from torch.distributed import init_process_group
            init_process_group(0, 2)
            optimizer = torch.optim.SGD()
            for _ in range(2):
                for _ in range(5):
                    optimizer.step()
                input()
        """
        with Server() as server, Program(text, environment(server, KUBEFLOW_TRAINER_REPORTER_PERIOD="4")) as program:
            server.wait_for(lambda m: m["steps"] == 5)
            program.go_on()
            self.assertGreater(server.wait_for(lambda m: m["steps"] == 10)["idle"], 1)
            program.end()

    def test_own_time_leaves_waiting_out(self):
        text = """
            import time
            import torch
            from torch.distributed import all_reduce, init_process_group
            init_process_group(0, 2)
            optimizer = torch.optim.SGD()
            while True:
                time.sleep(0.03)
                all_reduce(0.09)
                optimizer.step()
        """
        with Server() as server, Program(text, environment(server)):
            message = server.wait_for(lambda m: m["own"] >= 0 and m["steps"] > 60)
            self.assertGreater(message["own"], 0.003)
            self.assertLess(message["own"], 0.08)
            self.assertGreater(message["gap"], 0.1)

    def test_names_that_are_no_text(self):
        text = r"""
            exec(compile("def f():\n    input()", "/x/\udcff\u00e4" + "y" * 500 + ".py", "exec"))
            f()
        """
        with Server() as server, Program(text, environment(server)) as program:
            message = server.wait_for(lambda m: m["top"].endswith("yyyy.py:2 f"))
            self.assertLessEqual(len(message["top"].encode()), 200)
            program.end()

    def test_the_first_is_sent_at_the_phase_of_the_rank(self):
        begun = time.monotonic()
        with Server() as server, Program("input()", environment(server, rank=3, world=4, KUBEFLOW_TRAINER_REPORTER_PERIOD="2")):
            server.wait_for_number(1)
            self.assertGreater(server.times[0] - begun, 2 * (3 * 0.618 % 1))


class Answers(unittest.TestCase):
    def test_too_many_reports_double_the_period(self):
        for status in (429, 503):
            with self.subTest(status=status), Server(lambda m: status) as server, Program("input()", environment(server)) as program:
                server.wait_for_number(4)
                self.assertGreater(server.times[3] - server.times[0], 1.4)   # 0.4 + 0.8 + 1.6; without it, 3 * 0.2
                program.end()

    def test_a_job_without_reports_ends_them(self):
        text = """
            import os
            input()
            print(len(os.listdir("/proc/self/task")), flush=True)
            input()
        """
        for status in (404, 410):
            with self.subTest(status=status), Server(lambda m: status) as server, Program(text, environment(server)) as program:
                server.wait_for_number(1)
                while len(os.listdir(f"/proc/{program.pid}/task")) > 1:
                    time.sleep(0.01)   # the threads' end is no event that a test can wait for
                program.go_on()
                self.assertEqual(program.said(), "1")
                self.assertEqual(program.end(), (0, "", ""))
                self.assertEqual(len(server.messages), 1)

    def test_periods(self):
        # Beside a short period, the answer asks for a second: the values are clamped, and nonsense changes nothing. A machine that is
        # busy delays single heartbeats.
        for period, is_a_second in ((0.001, True), (1, True), (-5, True), ("1", False), (True, False), (None, False), ([1], False)):
            with self.subTest(period=period), Server(lambda m: {"period": period}) as server, Program("input()", environment(server)):
                server.wait_for_number(3 if is_a_second else 8)
                gaps = [after - before for before, after in zip(server.times, server.times[1:])]
                self.assertEqual(max(gaps) > 0.8 if is_a_second else min(gaps) > 0.8, is_a_second, gaps)

    def test_a_longer_period_begins_at_the_phase_of_the_rank(self):
        with Server(lambda m: {"period": 100}) as server, Program("input()", environment(server, rank=5, world=6)):
            server.wait_for_number(2)
            self.assertGreater(server.times[1] - server.times[0], 0.2 + 99.8 * (5 * 0.618 % 1) - 1)   # and it came before 100 seconds

    def test_a_failure_keeps_the_period(self):
        for status in (500, 401, 422, 301):
            with self.subTest(status=status), Server(lambda m: status) as server, Program("input()", environment(server)) as program:
                server.wait_for_number(4)
                program.end()
                self.assertFalse(server.messages[-1]["bye"])   # the server did not take the one before

    def test_a_replica_that_does_not_lead(self):
        """The same heartbeat is sent again at once, at most six times, and the next one is sent after the period."""
        with Server(lambda m: 421) as server, Program("input()", environment(server)) as program:
            server.wait_for_number(8)
            self.assertEqual([m["sent"] for m in server.messages[:8]], [0] * 7 + [1])
            server.answer = lambda m: {} if len(server.messages) % 3 == 0 else 421
            server.wait_for_number(len(server.messages) + 8)
            program.end()
            server.wait_for(lambda m: m["bye"])

    def test_stacks_are_sent_once_for_an_id(self):
        with Server(lambda m: {"dump": "a"}) as server, Program("input()", environment(server)) as program:
            self.assertEqual(server.wait_for(lambda m: "dump" in m)["dump"]["id"], "a")
            server.wait_for_number(6)
            self.assertEqual(sum("dump" in m for m in server.messages), 1)
            server.answer = lambda m: {"dump": "b"} if "dump" not in m else 500
            server.wait_for(lambda m: m.get("dump", {}).get("id") == "b")
            count = len(server.messages)
            server.wait_for(lambda m: m["sent"] > count and m.get("dump", {}).get("id") == "b")   # it was not taken
            program.end()

    def test_large_stacks_are_cut(self):
        text = """
            import sys, threading
            def deep(n):
                return deep(n - 1) if n else threading.Event().wait()
            for i in range(60):
                threading.Thread(target=deep, args=(100,), daemon=True, name="t" * 200).start()
            exec(compile("def f():\\n    input()", "/" + "\\x01" * 190 + ".py", "exec"))
            print("in", flush=True)
            f()
        """
        with Server() as server, Program(text, environment(server)) as program:
            self.assertEqual(program.said(), "in")
            server.answer = lambda m: {"dump": "a"}
            dump = server.wait_for(lambda m: "dump" in m)["dump"]
            self.assertLessEqual(max(len(body) for _, body in server.requests), 65536)
            self.assertTrue(dump["threads"][0]["main"])
            self.assertGreater(len(dump["threads"]), 5)
            self.assertLessEqual(len(dump["threads"]), 32)
            self.assertEqual({len(each["frames"]) for each in dump["threads"][1:]}, {48})
            self.assertLessEqual(max(len(each["name"]) for each in dump["threads"]), 64)
            program.end()


class Quiet(unittest.TestCase):
    def test_nothing_is_said_and_nothing_leaks(self):
        text = """
            import os, sys, threading
            os.environ["SECRET"] = "s3cret"
            def f(argument):
                local = "s3cret"
                input()
            print("out")
            print("err", file=sys.stderr)
            print(threading.active_count(), [t.name for t in threading.enumerate()], threading.Thread().name)
            f("s3cret")
        """
        with Server(lambda m: {"dump": "a"}) as server, Program(text, environment(server)) as program:
            server.wait_for(lambda m: "dump" in m)
            status, output, error = program.end()
            self.assertEqual((status, output.split("\n")[:2], error), (0, ["out", "1 ['MainThread'] Thread-1"], "err\n"))
            self.assertNotIn("s3cret", json.dumps(server.messages))


def start_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[19]


if __name__ == "__main__":
    harness.main()
