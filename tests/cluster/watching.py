"""A `trainer run --watch` that goes on beside its test: what it has said, and edits of its folder."""
import atexit
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from harness import wait_until


class Watched:
    def __init__(self, command, code, **options):
        self.code = pathlib.Path(code)
        self.output = pathlib.Path(tempfile.mkdtemp()) / "output"
        with open(self.output, "w") as output:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, **options)
        atexit.register(lambda: self.process.poll() is None and self.process.kill())

    def said(self):
        return self.output.read_text(errors="replace")

    def wait_for(self, *texts, seconds=90):
        """Returns after how many seconds all texts were there."""
        begin = time.monotonic()
        for text in texts:
            wait_until(f"it says {text!r}", lambda text=text: text in self.said() or self.process.poll() is not None, seconds=seconds, every=0.05,
                       shown=self.said)
            assert text in self.said(), f"it has ended with {self.process.poll()} before it said {text!r}:\n{self.said()}"
        return time.monotonic() - begin

    def edit(self, **files):
        """Writes each file (`train__py` is train.py) as editors do: beside it, and then in its place."""
        for name, text in files.items():
            path = self.code / name.replace("__", ".")
            beside = path.with_name(path.name + "~")
            beside.write_text(text)
            os.replace(beside, path)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)
