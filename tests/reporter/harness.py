"""The code that the tests of the reporter share: programs that run with it, and a count at the end.

A program waits for a line of its input (`input()`), or the test for a heartbeat: no test sleeps to wait for something.
"""
import atexit
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="trainer-reporter-"))
REPORTER = FOLDER / "reporter"
TORCH = FOLDER / "site-packages"    # a package that looks like torch 2
TORCH_1 = FOLDER / "old/site-packages"
TOKEN, CA, KEY = FOLDER / "token", FOLDER / "ca.crt", FOLDER / "ca.key"
PYTHON = "/usr/bin/python3"
PERIOD = 0.2

atexit.register(shutil.rmtree, FOLDER, True)
shutil.copytree(ROOT / "runtimes/plugins/reporter", REPORTER)
shutil.copytree(ROOT / "tests/reporter/like_torch", TORCH / "torch")
shutil.copytree(TORCH / "torch", TORCH_1 / "torch")
shutil.copy(ROOT / "tests/reporter/like_torch/optim/optimizer_1.py", TORCH_1 / "torch/optim/optimizer.py")
TOKEN.write_text("a-token\n")


def certificate():
    """The certificate of 127.0.0.1, which is its own CA."""
    if not CA.exists():
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", KEY, "-out", CA], check=True, capture_output=True)
    return CA, KEY


def environment(server=None, rank=0, world=2, **more):
    url = server if isinstance(server, str) else server.url if server else "http://127.0.0.1:9/status"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{REPORTER}:{TORCH}", "KUBEFLOW_TRAINER_REPORTER": "1", "KUBEFLOW_TRAINER_SERVER_URL": url,
           "KUBEFLOW_TRAINER_SERVER_TOKEN": str(TOKEN), "KUBEFLOW_TRAINER_SERVER_CA_CERT": str(CA), "KUBEFLOW_TRAINER_REPORTER_PERIOD": str(PERIOD),
           "RANK": str(rank), "WORLD_SIZE": str(world)}
    env.update(more)
    return {name: value for name, value in env.items() if value is not None}


class Program:
    """A Python that runs a text, in a process group of its own."""

    def __init__(self, text, env, name="train.py", python=PYTHON, options=(), arguments=()):
        self.path = pathlib.Path(tempfile.mkdtemp(dir=FOLDER)) / name
        self.path.write_text(textwrap.dedent(text))
        self.process = subprocess.Popen([str(python), *options, str(self.path), *arguments], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Ends it with all that it started."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.communicate()

    def line(self, text):
        """The number of the first line that has a text."""
        return next(number for number, line in enumerate(self.path.read_text().split("\n"), 1) if text in line)

    def said(self):
        return self.process.stdout.readline().strip()

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self, timeout=40):
        """(exit status, standard output, standard error); it may read an empty line first."""
        output, error = self.process.communicate("\n", timeout=timeout)
        return self.process.returncode, output, error


def run(text, env, **options):
    with Program(text, env, **options) as program:
        return program.end()


def pythons():
    """(version, path) of each Python of this machine."""
    candidates = glob.glob(os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions/*/bin/python"))
    candidates += [path for folder in os.environ["PATH"].split(":") if "shims" not in folder for path in glob.glob(folder + "/python[23].*")
                   if path.rpartition(".")[2].isdigit()]
    found = {}
    for path in [PYTHON, *sorted(candidates)]:
        done = subprocess.run([path, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True)
        if done.returncode == 0:
            major, minor = done.stdout.strip("()\n").split(",")
            found.setdefault((int(major), int(minor)), path)
    return sorted(found.items())


def main():
    """Runs the tests of the file, or those that are named, and counts them."""
    result = unittest.main(argv=sys.argv[:1] + [each for each in sys.argv[1:]], exit=False, verbosity=2).result
    failed = len(result.failures) + len(result.errors)
    for test, reason in result.skipped:
        print(f"SKIP {test}: {reason}")
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed")
    sys.exit(1 if failed else 0)
