"""How the reporter comes into a program, and what stays as it was: sitecustomize, versions, flags, paths, file systems."""
import os
import subprocess
import sys
import unittest

import harness
from harness import PYTHON, Program, environment, run
from server import Server

PLACES = ("first", "second")


def site(name, text):
    folder = harness.FOLDER / f"site-{name}"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(text)
    return folder


class Versions(unittest.TestCase):
    def test_each_python_of_the_machine(self):
        """Those from 3.7 on report, also over TLS. Older ones run as if nothing were there."""
        with Server(lambda m: {"dump": "a"}, harness.certificate()) as server:
            for version, python in harness.pythons():
                with self.subTest(version=version):
                    env = environment(server, rank=version[1], world=100, KUBEFLOW_TRAINER_REPORTER_PERIOD="0.1")
                    text = "import sys\nprint('x')\nsys.stdin.readline()"
                    if version < (3, 7):
                        self.assertEqual(run(text, env, python=python), (0, "x\n", ""))
                        continue
                    with Program(text, env, python=python) as program:
                        dump = server.wait_for(lambda m: m["rank"] == version[1] and "dump" in m)["dump"]
                        self.assertEqual(dump["threads"][0]["frames"], [f"{program.path}:3 <module>"])
                        self.assertEqual(program.end(), (0, "x\n", ""))
                        server.wait_for(lambda m: m["rank"] == version[1] and m["bye"])
            ranks = {m["rank"] for m in server.messages}
            self.assertEqual(ranks, {version[1] for version, _ in harness.pythons() if version >= (3, 7)})
            print("ran", ", ".join(f"{major}.{minor}" for (major, minor), _ in harness.pythons()))

    def test_programs_that_end_at_once(self):
        """Some versions crash if a program ends while a thread begins, and show it with their checks of memory."""
        with Server(certificate=harness.certificate()) as server:
            for version, python in harness.pythons():
                for text in ("pass", "import time; time.sleep(0.03)") * 8 if version >= (3, 7) else ():
                    with self.subTest(version=version, text=text):
                        env = environment(server, KUBEFLOW_TRAINER_REPORTER_PERIOD="0.05")
                        self.assertEqual(run(text, env, python=python, options=("-X", "dev")), (0, "", ""))

    def test_syntax_of_old_versions(self):
        """Python 2.7 to 3.6 parse only sitecustomize.py; where there is none of them, their grammar here does."""
        path = harness.REPORTER / "sitecustomize.py"
        for version, python in harness.pythons():
            if version < (3, 7):
                code = f"compile(open({str(path)!r}).read(), 'x', 'exec')"
                self.assertEqual(subprocess.run([python, "-W", "error", "-c", code]).returncode, 0, version)
        if sys.version_info < (3, 13):
            old = subprocess.run([sys.executable, "-W", "ignore", "-c", "from lib2to3 import pygram, pytree\nfrom lib2to3.pgen2 import driver\n"
                                  f"driver.Driver(pygram.python_grammar_no_print_statement, pytree.convert).parse_file({str(path)!r})"])
            self.assertEqual(old.returncode, 0)


class Chain(unittest.TestCase):
    def test_the_sitecustomize_of_the_image_is_loaded(self):
        """It runs once, with the name that it has without the reporter, and its errors are shown as they are without."""
        cases = {
            "sets": ("import sys; sys.from_site = (__name__, __file__, __spec__.name)", "import sys; print(sys.from_site)"),
            "module": ("x = 5", "import sitecustomize; print(sitecustomize.x, sitecustomize.__file__)"),
            "prints": ("print('site')", "print('main')"), "fails": ("raise ValueError('x')", "print('main')"),
            "misses": ("import no_such_module", "print('main')"), "exits": ("import os; os._exit(3)", "print('main')"),
            "leaves": ("import sys; sys.exit(4)", "print('main')"), "wrong": ("def", "print('main')"),
            "paths": ("import sys; sys.path.insert(0, '/somewhere')", "import sys; print(sys.path[1])"),
        }
        for version, python in harness.pythons():
            if version < (3, 0) and version != (2, 7):
                continue
            for name, (text, main) in cases.items():
                if version < (3, 4) and name in ("sets", "module", "paths"):
                    continue
                folder = site(name, text)
                with self.subTest(name, version=version), Server() as server:
                    without = run(main, environment(server, PYTHONPATH=str(folder)), python=python)
                    found = run(main, environment(server, PYTHONPATH=f"{harness.REPORTER}:{folder}"), python=python)
                    self.assertEqual((found[0], found[1]), (without[0], without[1]))
                    self.assertEqual(found[2].strip().split("\n")[-1].replace("sitecustomize", ""), without[2].strip().split("\n")[-1].replace("sitecustomize", ""))

    def test_a_rank_reports_whatever_the_other_one_does(self):
        with Server() as server:
            env = environment(server, PYTHONPATH=f"{harness.REPORTER}:{site('fails', 'raise ValueError(1)')}")
            with Program("input()", env) as program:
                server.wait_for_number(1)
                self.assertEqual(program.end()[0], 0)

    def test_names_of_the_program_come_first(self):
        """A module of the image that has a name of the reporter's files is the one that the program imports."""
        names = [path.stem for path in harness.REPORTER.glob("trainer_*.py")]
        self.assertEqual(len(names), 5)
        folder = harness.FOLDER / "same-names"
        folder.mkdir()
        for name in names:
            (folder / f"{name}.py").write_text("IS_PROGRAMS = True")
        text = "import sys\n" + "".join(f"import {name}; assert {name}.IS_PROGRAMS\n" for name in names) + "print([n for n in sys.modules if n == 'trainer'])"
        with Server() as server:
            self.assertEqual(run(text, environment(server, PYTHONPATH=f"{harness.REPORTER}:{folder}")), (0, "[]\n", ""))

    def test_the_same_with_its_own_path_twice(self):
        with Server() as server, Program("input()", environment(server, PYTHONPATH=f"{harness.REPORTER}:{harness.REPORTER}/:.")) as program:
            server.wait_for_number(1)
            self.assertEqual(program.end(), (0, "", ""))


class Switches(unittest.TestCase):
    def test_flags_that_switch_it_off(self):
        text = "import os; print(len(os.listdir('/proc/self/task')), 'KUBEFLOW_TRAINER_REPORTER_OWNER' in os.environ)"
        for flags, expected in ((["-I"], "1 False"), (["-S"], "1 False"), (["-E"], "1 False"), (["-s"], None), (["-B", "-O"], None), (["-X", "dev"], None)):
            with self.subTest(flags=flags), Server() as server:
                status, output, error = run(text, environment(server), options=flags)
                self.assertEqual((status, error), (0, ""))
                self.assertEqual(output.strip() == "1 False", expected is not None)

    def test_strict_programs(self):
        """Warnings are errors, resources are watched, the hash seed is fixed, output is not buffered: nothing is said."""
        text = "import sys\nfor line in iter(input, 'end'): break"
        for more in (["-W", "error"], ["-X", "dev"], ["-bb"], ["-u"], ["-X", "tracemalloc"], ["-OO"]):
            with self.subTest(more), Server(lambda m: {"dump": "a"}, harness.certificate()) as server:
                with Program(text, environment(server), options=more) as program:
                    server.wait_for_number(3)
                    self.assertEqual(program.end(), (0, "", ""))


class Files(unittest.TestCase):
    def check(self, prefix, expected_io=True):
        with Server(lambda m: {"dump": "a"}, harness.certificate()) as server:
            with Program("input()", environment(server), python=prefix[0], options=prefix[1:]) as program:
                message = server.wait_for(lambda m: "dump" in m)
                self.assertEqual(program.end(), (0, "", ""))
                return message

    def mounted(self, commands):
        prefix = ["unshare", "--mount", "sh", "-c", commands + ' && exec "$@"', "sh"]
        if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
            self.skipTest("this user cannot mount")
        return [*prefix, PYTHON]

    def test_a_read_only_root(self):
        self.check(self.mounted("mount --bind / / && mount -o remount,ro,bind /"))

    def test_no_proc(self):
        message = self.check(self.mounted("mount -t tmpfs none /proc"))
        self.assertEqual((message["io"], message["dump"]["children"]), (-1, []))
        self.assertTrue(message["top"])

    def test_broken_files(self):
        """A file that is missing, empty or wrong leaves the program as it is."""
        for name in ("trainer_reporter", "trainer_post", "trainer_stacks", "trainer_counters", "trainer_signals"):
            for text in (None, "", "def", "raise SystemExit(9)" if name in ("trainer_post", "trainer_stacks") else "1 / 0"):
                folder = harness.FOLDER / f"broken-{name}-{abs(hash(text))}"
                subprocess.run(["cp", "-r", harness.REPORTER, folder], check=True)
                subprocess.run(["rm", "-rf", folder / "__pycache__", folder / f"{name}.py"], check=True)
                if text is not None:
                    (folder / f"{name}.py").write_text(text)
                with self.subTest(name, text=text), Server() as server:
                    env = environment(server, PYTHONPATH=f"{folder}:{harness.TORCH}", KUBEFLOW_TRAINER_REPORTER_PERIOD="0.05")
                    main = "import os, sys, time, torch\ntorch.optim.SGD().step()\ntime.sleep(0.2)\nif os.fork() == 0: os._exit(0)\nprint(os.wait()[1])"
                    self.assertEqual(run(main, env), (0, "0\n", ""))

    def test_an_import_of_torch_that_fails(self):
        folder = harness.FOLDER / "bad/site-packages"
        subprocess.run(["mkdir", "-p", folder], check=True)
        subprocess.run(["cp", "-r", harness.TORCH / "torch", folder], check=True)
        (folder / "torch/optim/optimizer.py").write_text("raise ImportError('no library')")
        text = """
            import importlib, sys
            for finder in list(sys.meta_path): getattr(finder, "x", None)
            importlib.invalidate_caches()
            try:
                import torch
            except ImportError as error:
                print(error)
            import json
        """
        with Server() as server:
            self.assertEqual(run(text, environment(server, PYTHONPATH=f"{harness.REPORTER}:{folder}")), (0, "no library\n", ""))

    def test_other_shapes_of_torch(self):
        """A version whose parts have other names or refuse to be changed trains on."""
        folder = harness.FOLDER / "other/site-packages"
        subprocess.run(["mkdir", "-p", folder], check=True)
        subprocess.run(["cp", "-r", harness.TORCH / "torch", folder], check=True)
        (folder / "torch/optim/optimizer.py").write_text("class Optimizer:\n    pass\n")
        (folder / "torch/utils/data/dataloader.py").write_text("class DataLoader:\n    pass\n")
        (folder / "torch/distributed/distributed_c10d.py").write_text("all_reduce = init_process_group = None\ndef is_initialized(): return 1 / 0\n")
        text = "import torch, torch.distributed; torch.optim.SGD().step(); input()"
        with Server() as server, Program(text, environment(server, PYTHONPATH=f"{harness.REPORTER}:{folder}")) as program:
            message = server.wait_for_number(2)
            self.assertEqual((message["steps"], message["batches"], message["seq"]), (0, 0, -1))
            self.assertEqual(program.end(), (0, "", ""))


if __name__ == "__main__":
    os.chdir("/")
    harness.main()
