#!/usr/bin/python3
"""Jobs that fail, and machines that refuse: one sentence each, and nothing is lost."""
import contextlib
import fcntl
import os
import pathlib
import signal
import socket
import sqlite3
import subprocess
import urllib.parse

import bed
from bed import trainjob, wait_until


def test_a_failing_job_says_why(local):
    done = local.run("run", bed.EXAMPLES / "failing.yaml", code=1)
    for words in ("TrainJob default/failing: Failed", "exit code 3", "FileNotFoundError: /data/train.parquet", "Next step:"):
        assert words in done.stdout, done.stdout
    # Once in the log and once in what was wrong, with a command that needs no kubeconfig.
    assert (done.stdout + done.stderr).count("FileNotFoundError: /data/train.parquet") == 2, done.stdout + done.stderr
    assert "-- TrainJob default/failing: Failed\n" in done.stderr, done.stderr
    assert "`trainer local logs failing -n default`" in done.stdout, done.stdout
    assert "FileNotFoundError" in local.run("logs", "failing", "-n", "default").stdout
    assert not bed.processes_with("train.parquet")


def failure_of(local, job, **options):
    done = local.run("run", local.write("job.yaml", job), code=1, **options)
    return done.stdout + done.stderr


def test_a_field_that_does_not_exist(local):
    """A field that does not exist is refused as by kubectl, before anything runs."""
    job = trainjob("typo", "true")
    job["spec"]["trainer"]["comand"] = ["true"]
    assert 'unknown field "spec.trainer.comand"' in failure_of(local, job)
    assert not local.request("/apis/trainer.kubeflow.org/v1alpha1/trainjobs")["items"]


def test_a_warning_of_admission(local):
    job = trainjob("alone", "true", nodes=2)
    job["spec"]["trainer"]["command"] = ["python3", "-c", "print('trained')"]
    done = local.run("run", local.write("job.yaml", job))
    assert "-- warning: spec.trainer.command" in done.stderr and "torch-launcher" in done.stderr, done.stderr


def test_a_script_that_is_not_there(local):
    """Python's sentence, once as output and once as the reason."""
    job = trainjob("lost", "")
    job["spec"]["trainer"]["command"] = ["python3", "/nowhere/train.py"]
    lines = failure_of(local, job).splitlines()
    ends = "can't open file '/nowhere/train.py': [Errno 2] No such file or directory"
    assert [line.split(" ", 1)[0] for line in lines if line.endswith(ends)] == ["[node-0]", ""], lines


NOT_FOUND = '    exec: "{}": executable file not found in $PATH: activate the environment that has it, or install it'


def test_a_program_that_is_not_there(local):
    job = trainjob("lost", "")
    job["spec"]["trainer"]["command"] = ["no-such-program", "x"]
    assert NOT_FOUND.format("no-such-program") in failure_of(local, job).splitlines()


def test_no_torch_on_the_path(local):
    programs = local.scratch / "bin"
    programs.mkdir()
    for name in ("sh", "python3"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    done = local.run("run", bed.EXAMPLES / "torch-ddp.yaml", code=1, env={"PATH": str(programs)})
    assert NOT_FOUND.format("torchrun") in done.stdout.splitlines(), done.stdout
    assert f"python3 is {programs}/python3\n" in done.stderr, done.stderr


def test_what_local_mode_does_not_have(local):
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    said = failure_of(local, deployment)
    assert "local mode has no apps/v1 Deployment" in said, said
    for version, kind, instead in (("kubeflow.org/v1", "PyTorchJob", "write a TrainJob with the runtime torch-distributed, or send it to a cluster"),
                                   ("kubeflow.org/v2beta1", "MPIJob", "nothing here starts processes by mpirun: write a TrainJob with a runtime without MPI"),
                                   ("example.com/v1", "MPIJob", "leave this document out")):
        said = failure_of(local, {"apiVersion": version, "kind": kind, "metadata": {"name": "j"}})
        assert f"{kind} j: local mode has no {version} {kind}: {instead}" in said, said
    said = failure_of(local, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
    assert "there is nothing to run" in said, said
    assert "cannot be read" in local.run("run", "nowhere.yaml", code=1).stderr
    job = trainjob("r", "true")
    job["spec"]["runtimeRef"]["name"] = "nowhere"
    assert "nowhere" in failure_of(local, job)
    there = local.write("job.yaml", trainjob("m", "true"))
    assert "/nowhere does not exist" in local.run("run", "--mount", "/nowhere:/x", there, code=1).stderr
    assert "write a path below /" in local.run("run", "--mount", ".:/", there, code=1).stderr
    assert "write DIR:/PATH" in local.run("run", "--mount", "x", local.write("job.yaml", trainjob("m", "true")), code=1).stderr


def test_runtimes_whose_processes_are_not_started(local):
    """By `local run` and by any other client; the job is not created."""
    own = {"apiVersion": bed.API, "kind": "TrainingRuntime", "metadata": {"name": "own", "namespace": "default"},
           "spec": {**local.runtime("own")["spec"], "mlPolicy": {"mpi": {}}}}
    for kind, runtime, policy in (("ClusterTrainingRuntime", "deepspeed-distributed", "MPI"), ("ClusterTrainingRuntime", "mlx-distributed", "MPI"),
                                  ("ClusterTrainingRuntime", "flux-distributed", "Flux"), ("TrainingRuntime", "own", "MPI")):
        job = trainjob("refused", "true")
        job["spec"]["runtimeRef"] = {"name": runtime, "kind": kind}
        said = (f"spec.runtimeRef: local mode has no {policy}, which {kind} {runtime} uses: name a runtime without it, such as torch-distributed")
        done = local.run("run", local.write("job.yaml", *([own] if runtime == "own" else []), job), code=1)
        assert f"trainer: local run: TrainJob default/refused: {said}\n" in done.stderr, done.stderr
        try:
            local.create(job)
            raise AssertionError(f"{runtime} was not refused")
        except bed.Failed as error:
            assert " 403 " in str(error) and said in str(error), error
        assert local.job("refused") is None
    # An API server alone takes them: there another program, or nothing, runs the pods.
    local.run("down")
    local.up("--no-node")
    local.create(job)
    assert local.job("refused")


NO_SUBDOMAIN = ("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
                "alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?"
                "(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")
# The settings of the pod and of its container, and the sentence.
REFUSED = (
    ({}, {"startupProbe": {"exec": {"command": ["true"]}}}, "spec.containers[0].startupProbe: local mode has no startup probes: remove it"),
    ({}, {"livenessProbe": {"exec": {"command": ["true"]}}}, "spec.containers[0].livenessProbe: local mode has no liveness probes: remove it"),
    ({"initContainers": [{"name": "side", "image": "localhost/none:1", "command": ["true"], "restartPolicy": "Always"}]}, {},
     "spec.initContainers[0].restartPolicy: local mode has no sidecars among init containers: make it one of containers"),
    ({"hostPID": True}, {}, "spec.hostPID: pods of local mode have their own process numbers: remove it"),
    ({}, {"securityContext": {"privileged": True}},
     "spec.containers[0].securityContext.privileged: pods of local mode have the rights of their user: remove it"),
    ({"volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "claim"}}]}, {"volumeDevices": [{"name": "disk", "devicePath": "/dev/x"}]},
     "spec.containers[0].volumeDevices: local mode has no block devices: use a volume mount"),
    ({"volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "../../stolen"}}]}, {"volumeMounts": [{"name": "disk", "mountPath": "/disk"}]},
     'spec.volumes: "disk": persistentVolumeClaim.claimName: "../../stolen" is no name of a claim: ' + NO_SUBDOMAIN),
    ({"volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "a\u202eb"}}]}, {"volumeMounts": [{"name": "disk", "mountPath": "/disk"}]},
     'spec.volumes: "disk": persistentVolumeClaim.claimName: "a\\u202eb" is no name of a claim: ' + NO_SUBDOMAIN),
    ({"volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "x" * 300}}]}, {"volumeMounts": [{"name": "disk", "mountPath": "/disk"}]},
     'spec.volumes: "disk": persistentVolumeClaim.claimName: "' + "x" * 80 + '"... is no name of a claim: must be no more than 253 characters'),
)


def test_fields_of_pods_that_a_node_does_not_have(local):
    """Nothing runs, and the job says why at once."""
    for number, (pod, container, sentence) in enumerate(REFUSED):
        name = f"refused-{number}"
        runtime = local.runtime(name, backoffLimit=0)
        spec = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        spec.update(pod)
        spec["containers"][0].update(container)
        job = trainjob(name, f"echo started >> {local.scratch}/started")
        job["spec"]["runtimeRef"] = {"name": name, "kind": "TrainingRuntime"}
        done = local.run("run", local.write("job.yaml", runtime, job), code=1)
        assert f"    {sentence}\n" in done.stdout, done.stdout
    assert not local.lines("started")
    assert not (local.state / "stolen").exists() and not (local.state.parent / "stolen").exists()


def test_a_container_that_is_started_again(local):
    """JobSet's default, where a runtime says nothing: the job continues, and the output of each start is shown."""
    runtime = local.runtime("again")
    del runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["restartPolicy"]
    mark = local.scratch / "mark"
    job = trainjob("again", f"[ -e {mark} ] || {{ touch {mark}; echo failed; exit 1; }}; echo trained")
    job["spec"]["runtimeRef"] = {"name": "again", "kind": "TrainingRuntime"}
    done = local.run("run", local.write("job.yaml", runtime, job))
    assert done.stdout.splitlines() == ["[node-0] failed", "[node-0] trained"], done.stdout + done.stderr


def one_sentence(done):
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert done.returncode == 1 and len(lines) == 1, done.stderr
    return lines[0]


def test_capacities_and_states_that_are_none(local):
    for capacity, said in (("x", "write NAME=AMOUNT"), ("=3", "write NAME=AMOUNT"), ("cpu=a", "is no quantity"), ("cpu=-1", "an amount of 0 or more")):
        refused = one_sentence(local.run("up", "--capacity", capacity, code=1))
        assert said in refused and refused.count("local up") == 1, refused
    assert "name a directory" in local.run("status", "--state", "", code=2).stderr
    if os.getuid() != 0:
        raise bed.Skipped("only root can be another user")
    local.up()
    for command in ("up", "status"):
        done = subprocess.run(["setpriv", f"--reuid={bed.ORDINARY}", "--clear-groups", *local.command(command)], env=local.env, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        one_sentence(done)


def test_the_port_is_taken(local):
    local.up()
    local.run("run", local.write("job.yaml", trainjob("kept", "true")))
    port = urllib.parse.urlparse(local.daemon()["address"]).port
    local.run("down")
    with socket.socket() as taker:
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taker.bind(("127.0.0.1", port))
        taker.listen()
        said = local.run("up").stdout
        new = urllib.parse.urlparse(local.daemon()["address"]).port
        notice = (f"port {port} is taken by another program: the server has port {new} from now on. Clients that read {local.state}/kubeconfig "
                  "again find it; copies of that file have to be made again")
        assert new != port and f"  {notice}\n" in said, said
        for command in ("status", "up"):   # said once
            done = local.run(command)
            assert "is taken by another program" not in done.stdout + done.stderr, done
        assert f"https://127.0.0.1:{new}\n" in (local.state / "kubeconfig").read_text()
        assert local.phase("kept") == "Complete"
        local.run("down")
    local.up()   # and stays there
    assert urllib.parse.urlparse(local.daemon()["address"]).port == new
    assert not local.daemon()["changes"] and "is taken" not in local.run("status", "-o", "json").stdout, local.daemon()


def is_bound(taker, port):
    """The kernel closes the sockets of a killed process a moment after its first thread has ended."""
    with contextlib.suppress(OSError):
        taker.bind(("127.0.0.1", port))
        return True
    return False


def test_the_port_is_taken_while_a_job_is_followed(local):
    """The command does not continue with the other program; the job does without it."""
    local.up()
    run = local.start("run", local.write("job.yaml", trainjob("long", f"sleep 3; echo ended >> {local.scratch}/ended")))
    local.wait_for("long", "Running")
    port = urllib.parse.urlparse(local.daemon()["address"]).port
    # A command starts a daemon only while it holds this lock. Without it the next daemon might be first.
    with socket.socket() as taker, (local.state / "start.lock").open() as starts:
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        fcntl.flock(starts, fcntl.LOCK_EX)
        local.kill_daemon()
        wait_until("the port is free", lambda: is_bound(taker, port))
        taker.listen()
        fcntl.flock(starts, fcntl.LOCK_UN)
        said = run.communicate(timeout=30)[0]
        assert run.returncode == 1 and f"port {port} is taken by another program" in said and "local logs -f JOB" in said, said
        local.wait_for("long", "Complete", seconds=20)
    assert local.lines("ended") == ["ended"]


def databases(local):
    return [path for path in local.state.iterdir() if path.is_file() and path.read_bytes()[:15] == b"SQLite format 3"]


def test_a_database_of_a_newer_version(local):
    local.up()
    local.run("run", local.write("job.yaml", trainjob("kept", "true")))
    local.run("down")
    database, = databases(local)
    with sqlite3.connect(database) as connection:
        version, = connection.execute("PRAGMA user_version").fetchone()
        connection.execute("PRAGMA user_version = 1000")
    connection.close()
    said = one_sentence(local.run("up", code=1))
    assert said == (f"trainer: local up: {database}: a newer version of this program has written it (format 1000, this one knows {version}): "
                    "use that version, or another state directory"), said
    with sqlite3.connect(database) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    local.up()
    assert local.phase("kept") == "Complete"


def test_a_second_daemon(local):
    local.up()
    pid = local.daemon()["pid"]
    done = local.run("up", "--foreground", code=1)
    assert one_sentence(done) == (f"trainer local: {local.state}: another daemon uses it (process {pid}): `trainer local status` shows it, "
                                  "`trainer local down` ends it"), done.stderr
    assert local.daemon()["pid"] == pid
    local.run("run", local.write("job.yaml", trainjob("works", "true")))


def shims(local):
    found = []
    for pid in bed.processes_with(str(local.folder)):
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"shim" in words[:3] and b"network" not in words:
            found.append(pid)
    return found


def test_a_shim_is_killed(local):
    """Its pod is Failed with 137, its children have ended, and the job says why. With a PID namespace it is two processes."""
    script = f"echo begun; sleep 1000 & wait # {local.scratch}"
    local.up()
    for which in (0, -1):
        name = "outer" if which == 0 else "inner"
        local.create(trainjob(name, script))
        local.wait_for(name, "Running")
        wait_until("the script runs", lambda: bed.processes_with(script))
        os.kill(sorted(shims(local))[which], signal.SIGKILL)
        local.wait_for(name, "Failed", seconds=10)
        failure = local.job(name)["status"]["firstFailure"]
        assert failure["exitCode"] == 137, failure
        pod, = local.pods(name)
        ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (pod["status"]["phase"], ended["exitCode"]) == ("Failed", 137), pod["status"]
        why = subprocess.run([bed.TRAINER, "why", name], env={**local.env, "KUBECONFIG": str(local.state / "kubeconfig")}, check=False, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        assert why.startswith(f"TrainJob default/{name}: Failed "), why
        assert (f"pod {pod['metadata']['name']} (node 0) on local: container node ended with exit code 137, signal 9\n"
                "    the process that held this pod (trainer shim) was killed\n") in why, why
        wait_until("its children are gone", lambda: not [p for p in bed.processes_with(script) if not bed.is_zombie(p)], seconds=5)


def test_a_run_outlives_the_daemon(local):
    """`local run` starts a daemon that was killed again, and the job continues."""
    script = f"echo script begun; sleep 4; echo script ended # {local.scratch}"
    started = local.start("run", local.write("job.yaml", trainjob("goes-on", script)))
    said = []
    for line in started.stdout:
        said.append(line)
        if "script begun" in line:
            local.kill_daemon()
    assert started.wait(60) == 0, said
    assert sum("script begun" in line for line in said) == 1 and sum("script ended" in line for line in said) == 1, said
    assert any("it is started again" in line for line in said), said


if __name__ == "__main__":
    bed.main()
