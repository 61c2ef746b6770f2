"""Debian's Chromium without a screen, steered through pipes by its DevTools protocol: for tests of pages."""
import atexit
import base64
import contextlib
import fcntl
import json
import os
import signal
import subprocess

# Chromium expects the descriptors 3 and 4, which bash opens. Those of this process are above them.
LOWEST = 10


class Browser:
    """`folder`: where the profile goes."""

    def __init__(self, folder):
        read, self.out = os.pipe()
        self.answers, write = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, LOWEST) for end in (read, write)]
        command = ["chromium-headless-shell", "--remote-debugging-pipe", f"--user-data-dir={folder}", "--disable-gpu",
                   "--window-size=1000,800", "--force-color-profile=srgb", *(["--no-sandbox"] if os.getuid() == 0 else []), "about:blank"]
        self.process = subprocess.Popen(["bash", "-c", f'exec "$0" "$@" 3<&{ends[0]} 4>&{ends[1]}', *command], pass_fds=ends, start_new_session=True,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (read, write, *ends):
            os.close(end)
        atexit.register(self.close)
        self.text, self.last = b"", 0

    def call(self, method, session=None, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:   # events come between answers
            while b"\0" not in self.text:
                piece = os.read(self.answers, 1 << 16)
                if not piece:
                    raise AssertionError(f"{method}: Chromium has ended with {self.process.wait()}")
                self.text += piece
            line, _, self.text = self.text.partition(b"\0")
            answer = json.loads(line)
            if answer.get("id") == self.last:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def page(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        return Page(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])

    def close(self):
        """Ends all of its processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.call("Page.enable")

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def open(self, address):
        """The error's name, or None."""
        return self.call("Page.navigate", url=address).get("errorText")

    def evaluate(self, script):
        """The value of an expression, of a promise the value that it brings. None while one page makes room for another."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        return None if "exceptionDetails" in answer else answer["result"].get("value")

    def text(self):
        return self.evaluate("document.body.innerText") or ""

    def picture(self, path):
        shot = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))
