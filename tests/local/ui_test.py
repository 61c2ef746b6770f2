#!/usr/bin/python3
"""`trainer ui` in a real browser: a job runs and its curve moves, a failing job's cause is on the page, and no one else gets in.

PICTURE=docs/users/ui.png run test_a_curve_moves   writes the picture of the page of docs
"""
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import shutil
import threading
import time
import urllib.parse

import bed
from browser import Browser

MARKUP = '<img src=x onerror="window.isRun = true">'


def browser_of(local):
    if not shutil.which("chromium-headless-shell"):
        raise bed.Skipped("there is no chromium-headless-shell: tools/debian-packages installs it")
    return Browser(local.folder / "browser")


def served(local, *words):
    """Starts `trainer local ui`, and the address to open."""
    started = local.start("ui", *words)
    assert "works once" in started.stdout.readline()
    return started, started.stdout.readline().strip()


@contextlib.contextmanager
def opened(local, *words):
    """A page on which the list is shown, and its server. Both end with the test."""
    started, address = served(local, *words)
    browser = browser_of(local)
    try:
        page = browser.page()
        page.open(address)
        bed.wait_until("the list is shown", lambda: "Jobs of namespace default" in page.text(), shown=page.text)
        assert "For another browser: http://127.0.0.1:" in started.stdout.readline()
        yield page, started
    finally:
        browser.close()
        started.terminate()
        started.wait(10)


def report(local, name, percent, **more):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + percent))   # a later time for each
    local.patch(f"{bed.TRAINJOBS}/{name}/status", {"status": {"trainerStatus": {"progressPercentage": percent, "lastUpdatedTime": now, **more}}})


def choose(page, name):
    bed.wait_until(f"{name} is in the list", lambda: page.evaluate(f"!!document.querySelector('a[href*=\"name={name}\"]')"), shown=page.text)
    page.evaluate(f"document.querySelector('a[href*=\"name={name}\"]').click()")
    bed.wait_until(f"the page of {name} is shown", lambda: f"TrainJob default/{name}" in page.text(), shown=page.text)


def test_a_curve_moves(local):
    local.up()
    done = local.scratch / "done"
    job = bed.trainjob("curve", f"i=0; while [ ! -e {done} ]; do i=$((i + 1)); echo step $i; sleep 0.5; done", nodes=2)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team-a"}
    local.create(job)
    local.wait_for("curve", "Running")
    report(local, "curve", 5, metrics=[{"name": "loss", "value": "2.4"}])
    with opened(local) as (page, _):
        bed.wait_until("the list has the state", lambda: all(word in page.text() for word in ("curve", "Running", "2/2", "team-a", "5 %")),
                       shown=page.text)
        choose(page, "curve")
        page.evaluate("window.isSame = true")   # no page is loaded from here on
        points = "document.querySelector('.curve').getAttribute('points').trim().split(' ').length"
        bed.wait_until("the first report is a point", lambda: page.evaluate(points) == 1, shown=page.text)
        for count, (percent, loss) in enumerate([(20, "1.3"), (35, "0.8"), (50, "0.55"), (65, "0.42")], 2):
            report(local, "curve", percent, estimatedRemainingSeconds=100 - percent, metrics=[{"name": "loss", "value": loss}])
            bed.wait_until(f"the curve has {count} points", lambda count=count: page.evaluate(points) == count, shown=page.text)
        assert "65 %" in page.text() and page.evaluate("window.isSame")
        bed.wait_until("lines of both ranks are shown", lambda: all(f"[node-{rank}] step" in page.text() for rank in (0, 1)), shown=page.text)
        if "PICTURE" in os.environ:
            page.picture(pathlib.Path(bed.ROOT, os.environ["PICTURE"]))
        page.evaluate("document.querySelector('a[href*=\"pod=curve-node-0-1\"]').click()")
        bed.wait_until("the log of one rank is shown", lambda: "Log of curve-node-0-1" in page.text(), shown=page.text)
        assert "[node-0] step" not in page.text(), page.text()
        done.touch()
        bed.wait_until("the page says that it is Complete", lambda: page.evaluate("document.querySelector('#state').innerText") == "Complete",
                       shown=page.text)


def test_a_cause_and_markup_are_text(local):
    local.up()
    job = bed.trainjob("fails", f"echo 'torch.OutOfMemoryError: CUDA out of memory. {MARKUP}'; exit 3")
    job["metadata"]["annotations"] = {"example.com/note": MARKUP}
    local.create(job)
    local.wait_for("fails", "Failed")
    with opened(local) as (page, server):
        choose(page, "fails")
        why = "document.querySelector('#why').innerText"
        bed.wait_until("the cause is shown", lambda: "memory" in (page.evaluate("document.querySelector('.cause').innerText") or ""), shown=page.text)
        assert "exit code 3" in page.evaluate(why) and "Next step" in page.evaluate(why), page.evaluate(why)
        bed.wait_until("the log is shown", lambda: MARKUP in (page.evaluate("document.querySelector('#log').innerText") or ""), shown=page.text)
        annotations = "[...document.querySelectorAll('td')].map((cell) => cell.innerText)"
        assert MARKUP in page.evaluate(annotations), page.text()
        assert page.evaluate("document.images.length") == 0 and page.evaluate("window.isRun === undefined")
        # The page's policy holds: a script that is written into the document does not run.
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<b id=x></b>'); document.querySelector('#x').setAttribute('onclick', 'window.isRun = true')")
        page.evaluate("document.querySelector('#x').click()")
        assert page.evaluate("window.isRun === undefined")
        server.terminate()
        assert server.wait(10) == 0
        bed.wait_until("the page says that it is old", lambda: "does not answer" in page.text(), shown=page.text)


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """A page of another program on this machine."""
    cookies = []

    def do_GET(self):   # noqa: N802, its base calls it
        self.cookies.append(self.headers.get("Cookie"))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title><body>elsewhere")

    def log_message(self, *_):
        pass


def test_others_get_nothing(local):
    local.up()
    with opened(local) as (page, _):
        own = page.evaluate("location.href")
        assert page.evaluate("document.cookie") == ""   # no script reads it
        other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        try:
            other_page = f"http://127.0.0.1:{other.server_port}/"
            assert page.evaluate(f"fetch('{other_page}', {{mode: 'no-cors'}}).then(() => 'loaded', () => 'refused')") == "refused"
            assert not Elsewhere.cookies   # its policy loads nothing from elsewhere: no request came
            page.open(other_page)
            bed.wait_until("the other page is shown", lambda: page.text() == "elsewhere", shown=page.text)
            assert Elsewhere.cookies and set(Elsewhere.cookies) == {None}, Elsewhere.cookies
            for mode in ("cors", "no-cors"):
                got = page.evaluate(f"fetch({json.dumps(own)}, {{mode: '{mode}', credentials: 'include'}}).then((a) => a.text(), () => 'refused')")
                assert got == "refused", (mode, got)
            for tag, source in (("script", "script.js"), ("iframe", "")):
                page.evaluate(f"""new Promise((done) => {{
                    const made = document.createElement('{tag}');
                    made.onload = () => done('loaded'); made.onerror = () => done('refused');
                    made.src = {json.dumps(own)} + '{source}'; document.body.append(made); setTimeout(done, 3000); }})""")
            assert page.evaluate("typeof keepFresh") == "undefined"   # a function of the script
            frames = page.call("Page.getFrameTree")["frameTree"]["childFrames"]
            assert [frame["frame"]["url"] for frame in frames] == ["chrome-error://chromewebdata/"], frames
            folder = urllib.parse.urlparse(own)
            for host, path in ((folder.netloc, folder.path), ("evil.example", folder.path), (folder.netloc, "/")):
                connection = http.client.HTTPConnection(folder.hostname, folder.port, timeout=10)
                connection.request("GET", path, headers={"Host": host})
                answer = connection.getresponse()
                text = answer.read().decode()
                assert answer.status == 403 and "<" not in text and answer.headers["Content-Security-Policy"], (host, path, text)
        finally:
            other.shutdown()


if __name__ == "__main__":
    bed.main()
