#!/usr/bin/python3
"""Other users of the machine, and peers without a token."""
import contextlib
import os
import resource
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

import bed
from bed import wait_until

RAN = []

SERVER = r"""
import os, select, socket, sys, time
name, port, rank = os.environ["PET_MASTER_ADDR"], int(os.environ["PET_MASTER_PORT"]), int(os.environ["PET_NODE_RANK"])

def say(text):
    with open(FILE, "a") as f:
        print(text, file=f)

def until(act):
    while True:
        try:
            return act()
        except OSError:
            time.sleep(0.1)

# As Boost.Asio and Netty have it: in an epoll set before it is bound or connected.
early, waits = socket.socket(), select.epoll()
early.setblocking(False)
waits.register(early, select.EPOLLIN | select.EPOLLOUT)
if rank == 0:
    early.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 50_000)
    early.bind(("127.0.0.1", EARLY))
    early.listen()
    assert early.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 100_000 and not early.getblocking()
    waits.modify(early, select.EPOLLIN)
    any_port = socket.create_server(("", 0))
    say(f"bound {any_port.getsockname()[0]}")
    # Of its own: by 127.0.0.1, too.
    socket.create_connection(("127.0.0.1", any_port.getsockname()[1])).close()
    any_port.accept()
    server = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    server.accept()[0].sendall(str(any_port.getsockname()[1]).encode())
    any_port.accept()[0].sendall(b"any")
    assert waits.poll(20), "no event"
    early.accept()[0].sendall(b"early")
else:
    there = int(until(lambda: socket.create_connection((name, port), timeout=5)).recv(99))
    say(socket.create_connection((name, there)).recv(99).decode())
    # A socket that has a port of the pods' network already.
    bound = socket.socket()
    bound.bind(("", 0))
    bound.connect(("127.0.0.1", HOST))
    say("bound " + bound.recv(99).decode())
    assert early.connect_ex((socket.gethostbyname(name), EARLY)) in (0, 115)
    assert waits.poll(20), "no event"
    early.setblocking(True)
    say(early.recv(99).decode())
    say(socket.create_connection(("127.0.0.1", HOST)).recv(99).decode())
while not os.path.exists(FILE + ".go"):
    time.sleep(0.05)
"""
CONNECT = """
import socket, sys
for host, port in (each.rsplit(":", 1) for each in sys.argv[1:]):
    try:
        socket.create_connection((host, int(port)), timeout=2)
        print("open")
    except OSError as error:
        print(type(error).__name__)
"""
EARLY = 7101


@contextlib.contextmanager
def service_of_host():
    with socket.create_server(("127.0.0.1", 0)) as server:
        def serve():
            with contextlib.suppress(OSError):
                while True:
                    server.accept()[0].sendall(b"host")
        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def attempts(places, uid):
    """The answers to another user of the machine who connects there."""
    user = ["setpriv", f"--reuid={uid}", "--clear-groups"] if uid else []
    done = subprocess.run([*user, "/usr/bin/python3", "-c", CONNECT, *places], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split()


def listening_on_loopback():
    """All that listens on 127.x of the machine, but for 127.0.0.1 and the etcd of test beds."""
    found = []
    with open("/proc/net/tcp", encoding="ascii") as table:
        for words in (line.split() for line in list(table)[1:]):
            host, port = words[1].split(":")
            address = socket.inet_ntoa(bytes.fromhex(host)[::-1])
            if words[3] == "0A" and address.startswith("127.") and address != "127.0.0.1" and int(port, 16) not in (2379, 2380):
                found.append(f"{address}:{int(port, 16)}")
    return found


def sockets():
    """All sockets that listen on this machine, with their processes."""
    return subprocess.run(["ss", "-ltnpe"], stdout=subprocess.PIPE, text=True, check=True).stdout


def pods_and_others(local, tier):
    if os.getuid() != 0:
        raise bed.Skipped("only root can become another user")
    local.up_in_tier(tier)
    notices = [each for each in local.daemon()["notices"] if "other users of this machine can connect to the ports of pods" in each]
    with service_of_host() as host:
        file = local.scratch / "said"
        job = bed.trainjob("pair", "", nodes=2, requests={"cpu": "100m"})
        values = f"FILE, EARLY, HOST = {str(file)!r}, {EARLY}, {host}\n"
        job["spec"]["trainer"]["command"] = ["python3", "-c", values + SERVER]
        local.create(job)
        wait_until("the pods have said all", lambda: "host" in local.lines("said") or local.phase("pair") == "Failed", seconds=40)
        said = local.lines("said")
        assert said[1:] == ["any", "bound host", "early", "host"], said
        places = [f"{pod['status']['podIP']}:{port}" for pod in local.pods("pair") for port in (29500, EARLY)]
        got = attempts(places, bed.ORDINARY)
        if notices:
            RAN.append(f"tier {tier}: pods have no network of their own: {notices[0]}")
            assert tier != 1 or "namespace" in notices[0], notices
            assert "open" in got, got
        else:
            assert tier == 1 and said[0].startswith("bound 127."), said
            assert set(got) == {"ConnectionRefusedError"} and set(attempts(places, None)) == set(got), got
            assert not listening_on_loopback(), sockets()
            RAN.append("tier 1: another user of the machine reaches no port of a pod")
        file.with_suffix(".go").touch()
        local.wait_for("pair", "Complete", seconds=20)


def test_ports_of_pods_in_tier_1(local):
    pods_and_others(local, 1)


def test_ports_of_pods_of_an_ordinary_user_in_tier_1(local):
    if os.getuid() != 0:
        raise bed.Skipped("only root can become another user")
    user = bed.Local(local.folder / "ordinary", uid=bed.ORDINARY)
    try:
        user.up_in_tier(1)
        notices = [each for each in user.daemon()["notices"] if "other users" in each]
        job = bed.trainjob("serves", "", nodes=1)
        job["spec"]["trainer"]["command"] = ["python3", "-c", f"import socket; socket.create_server(('', {EARLY})).accept()"]
        user.create(job)
        user.wait_for("serves", "Running")
        place = f"{user.pods('serves')[0]['status']['podIP']}:{EARLY}"
        wait_until("it listens", lambda: attempts([place], 12345) == ["open"] or not notices, seconds=10)
        time.sleep(0 if notices else 2)   # in its own network no one else sees whether it listens
        assert attempts([place], 12345) == (["open"] if notices else ["ConnectionRefusedError"]), notices
        RAN.append("tier 1 as an ordinary user: " + (notices[0] if notices else "no port of a pod is open to another"))
    finally:
        user.end()


def test_ports_of_pods_in_tier_2(local):
    pods_and_others(local, 2)


def test_two_torch_jobs_and_another_user(local):
    """While both train, the other one tries every port on the loopback."""
    if os.getuid() != 0:
        raise bed.Skipped("only root can become another user")
    local.env["PATH"] = bed.torch() + ":" + local.env["PATH"]
    local.up_in_tier(1)
    if any("other users" in each for each in local.daemon()["notices"]):
        raise bed.Skipped("pods have no network of their own here")
    runs = []
    for name in ("one", "two"):
        text = (bed.EXAMPLES / "torch-ddp.yaml").read_text()
        job = local.scratch / f"{name}.yaml"
        job.write_text(text.replace("name: torch-ddp", f"name: {name}"))
        runs.append(local.start("run", job))
    tried, opened = 0, set()
    while any(run.poll() is None for run in runs):
        places = [f"{pod['status']['podIP']}:29500" for pod in local.pods() if pod["status"].get("podIP")] + listening_on_loopback()
        got = attempts(places, bed.ORDINARY) if places else []
        tried += len(got)
        opened.update(place for place, answer in zip(places, got, strict=True) if answer == "open")
    for run in runs:
        said = run.communicate()[0]
        assert run.returncode == 0 and said.count("y = 3.0") == 4, said
    assert tried > 4 and not opened, (tried, opened, sockets())
    RAN.append(f"two torch jobs side by side in tier 1; another user tried {tried} ports meanwhile, none was open")


def test_a_sub_path_does_not_leave_its_volume(local):
    """A pod has put links into its claim; those of another job lead to the same folders, or the pod does not start."""
    local.up_in_tier(1)
    outside = local.scratch / "outside"
    outside.mkdir()
    (outside / "secret").write_text("of the machine\n")
    local.request("/api/v1/namespaces/default/persistentvolumeclaims", {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "shared"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}, "POST")

    def job(name, script, sub_path=""):
        runtime = local.runtime(name, backoffLimit=0)
        spec = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "shared"}}]
        spec["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/m", **({"subPath": sub_path} if sub_path else {})}]
        made = bed.trainjob(name, script)
        made["spec"]["runtimeRef"] = {"name": name, "kind": "TrainingRuntime"}
        return local.write("job.yaml", runtime, made)

    local.run("run", job("plants", f"mkdir /m/runs; echo kept > /m/runs/secret; ln -s runs /m/latest; ln -s {outside} /m/out; ln -s /proc/self/root /m/root"))
    assert "[node-0] kept\n" in local.run("run", job("reads", "cat /m/secret", "latest")).stdout
    for number, path in enumerate(("out", "root", "out/made")):
        done = local.run("run", job(f"leaves-{number}", "cat /m/secret", path), code=1)
        assert "leads out of the volume" in done.stdout + done.stderr and "of the machine" not in done.stdout, done.stdout + done.stderr
    assert [file.name for file in outside.iterdir()] == ["secret"]


def test_peers_without_a_token(local):
    """Half-open connections, and requests with bodies: neither memory nor time of others is theirs."""
    most = 1_800
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < most:
        raise bed.Skipped(f"no more than {hard} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    local.up("--no-node")
    port = urllib.parse.urlparse(local.daemon()["address"]).port
    plain = ssl._create_unverified_context()
    local.request("/api/v1/namespaces")
    before, pid = bed.memory(local.daemon()["pid"]), local.daemon()["pid"]
    request = (b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
               b"Content-Length: 70000\r\n\r\n") + b"x" * 60_000
    peers, peak, slowest = [], before, 0.0
    for i in range(1_500):
        peer = socket.socket()
        peer.settimeout(10)
        with contextlib.suppress(OSError):   # it may be cut off at once
            peer.connect(("127.0.0.1", port))
            if i % 5 == 0:
                peer = plain.wrap_socket(peer)
                peer.sendall(request)
            elif i % 5 == 1:
                hello = ssl.MemoryBIO()
                with contextlib.suppress(ssl.SSLWantReadError):
                    plain.wrap_bio(ssl.MemoryBIO(), hello).do_handshake()
                peer.sendall(hello.read())
        peers.append(peer)
        if i % 250 == 249:
            begin = time.monotonic()
            local.request("/api/v1/namespaces")
            slowest = max(slowest, time.monotonic() - begin)
            peak = max(peak, bed.memory(pid))
    assert peak - before < 16, (before, peak)
    assert slowest < 5, slowest
    RAN.append(f"1,500 peers without a token: {before:.0f} MB, then {peak:.0f} MB at most; a request with it took {slowest:.1f} s at most")


if __name__ == "__main__":
    bed.main(RAN)
