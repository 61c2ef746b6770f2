#!/usr/bin/python3
"""The subcommands of `trainer local`: what each does, prints and answers."""
import json
import re
import signal
import time

import bed
from bed import trainjob, wait_until

# Says that it was asked to end, and ends.
POLITE = 'trap "echo asked to end; exit 0" TERM; echo begun; while :; do sleep 0.1; done # '
DEAF = 'trap "" TERM; echo begun; while :; do sleep 0.1; done # '


def test_down_does_not_end_what_it_cannot_stop(local):
    """First, because it waits longest. A job that no controller suspends: its pod continues, and so does the daemon."""
    local.up("--no-controller")
    local.create(trainjob("driven", "true"))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "driven", "labels": {"jobset.sigs.k8s.io/jobset-name": "driven"}},
           "spec": {"nodeName": "local", "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "c", "image": "localhost/none:1", "command": ["sleep", "1000"]}]}}
    local.request(bed.PODS, pod, "POST")
    wait_until("it runs", lambda: local.pods()[0].get("status", {}).get("phase") == "Running")
    done = local.run("down", code=1)
    assert "TrainJob default/driven: its pods have 0 s to end: waiting for them\n" == done.stdout, done.stdout
    assert "have not ended within 30 s" in done.stderr and "The daemon goes on." in done.stderr, done.stderr
    assert local.pods()[0]["status"]["phase"] == "Running"
    local.request(f"{bed.PODS}/driven", method="DELETE")
    local.run("down")


def test_up_status_env_down(local):
    for command in ("status", "env", "logs x", "stop x"):
        assert "no daemon is up" in local.run(*command.split(), code=1).stderr
    assert "no daemon is up" in local.run("down").stderr
    done = local.run("up")
    assert re.match(r"up at https://127\.0\.0\.1:\d+, tier [123], ", done.stdout) and "no sandbox" in done.stdout, done.stdout
    address = local.daemon()["address"]
    assert "it is up at" in local.run("up").stderr
    assert "trainer local down` first" in local.run("up", "--capacity", "nvidia.com/gpu=8", code=1).stderr
    said = json.loads(local.run("status", "-o", "json").stdout)
    assert said["pid"] == local.daemon()["pid"] and said["allocatable"]["cpu"] and said["jobs"] == [], said
    assert f"KUBECONFIG='{local.state}/kubeconfig'" in local.run("env").stdout
    assert (local.state / "kubeconfig").stat().st_mode & 0o777 == 0o600
    local.run("down")
    assert not local.left_over()
    # The address is kept, so that kubeconfigs stay good.
    again = local.run("up")
    assert address in again.stdout and "no sandbox" not in again.stdout, again.stdout
    assert local.request("/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/torch-distributed")


def test_up_where_it_is_up(local):
    """A daemon of `run` stays from now on, with the jobs that run; equal options are no change."""
    local.run("run", "--detach", local.write("job.yaml", trainjob("goes-on", POLITE)))
    pid = local.daemon()["pid"]
    options = local.state / "options"
    assert options.read_text().split() == ["--idle", "600"]
    local.wait_for("goes-on", "Running")
    assert "it is up at" in local.run("up").stderr
    assert local.daemon()["pid"] == pid and local.phase("goes-on") == "Running"
    assert options.read_text().split() == ["--idle", "0"] and (local.state / "stays").exists()
    local.run("down")
    gpus = ("--capacity", "nvidia.com/gpu=8")
    local.run("up", *gpus)
    assert not (local.state / "stays").exists()
    for words in ((), gpus):
        assert "it is up at" in local.run("up", *words).stderr
    assert "trainer local down` first" in local.run("up", "--capacity", "nvidia.com/gpu=4", code=1).stderr


def test_wrong_words(local):
    for words, said in ((["nothing"], 'there is no subcommand "nothing": choose from run, logs'), ([], "subcommand is required"),
                        (["run"], "there is nothing to run"), (["run", "--nodes", "0", "x"], "--nodes"), (["up", "--tier", "4"], "--tier")):
        done = local.run(*words, code=2)
        assert said in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_without_a_node(local):
    done = local.run("up", "--no-node")
    for said in (done.stdout, local.run("up", code=None).stderr, local.run("status").stdout):
        assert said.count("without a node: pods stay Pending") == 1 and "tier" not in said, said
    assert "tier" not in json.loads(local.run("status", "-o", "json").stdout)
    local.create(trainjob("waits", "true"))
    wait_until("there is a pod", lambda: local.pods("waits"))
    followed = local.start("run", local.write("job.yaml", trainjob("follows", "true")))
    assert "-- local mode without a node: pods stay Pending" in followed.stdout.readline()
    followed.kill()
    followed.wait()
    assert local.pods("waits")[0]["status"]["phase"] == "Pending"


def test_without_the_node_of_before(local):
    """Pods are not placed on a node that an earlier daemon had: they would never run, nor end with `down`."""
    local.up()
    local.run("down")
    local.up("--no-node")
    assert local.request("/api/v1/nodes")["items"] == []
    local.create(trainjob("waits", "true"))
    wait_until("there is a pod", lambda: local.pods("waits"))
    began = time.monotonic()
    local.run("down")
    assert time.monotonic() - began < 20
    local.up()
    assert [node["metadata"]["name"] for node in local.request("/api/v1/nodes")["items"]] == ["local"]


def test_a_capacity_that_is_not_there(local):
    local.up("--capacity", "nvidia.com/gpu=8")
    assert "nvidia.com/gpu 8" in local.run("status").stdout


def test_run_starts_the_daemon_and_ends_with_the_job(local):
    done = local.run("run", local.write("job.yaml", trainjob("hello", "echo hello from $JOB_COMPLETION_INDEX", nodes=2)))
    assert sorted(done.stdout.splitlines()) == ["[node-0] hello from 0", "[node-1] hello from 1"], done.stdout
    assert "TrainJob default/hello: Complete" in done.stderr, done.stderr
    assert local.run("logs", "hello").stdout.count("hello from") == 2


def test_run_replaces_a_finished_job_and_refuses_a_running_one(local):
    file = local.write("job.yaml", trainjob("again", "echo one"))
    local.run("run", file)
    first = local.job("again")["metadata"]["uid"]
    local.run("run", file)
    assert local.job("again")["metadata"]["uid"] != first
    endless = local.write("endless.yaml", trainjob("endless", POLITE))
    started = local.run("run", "--detach", endless)
    assert "trainer local logs -f endless" in started.stderr, started.stderr
    local.wait_for("endless", "Running")
    refused = local.run("run", endless, code=1).stderr
    assert "TrainJob default/endless: a job of this name runs" in refused and "trainer local stop endless" in refused, refused
    # Nothing of the file was written.
    refused = local.run("run", local.write("both.yaml", trainjob("other", "true"), trainjob("endless", "true")), code=1).stderr
    assert local.job("other") is None, refused


def test_names(local):
    job = trainjob("unused", "echo named")
    job["metadata"] = {"generateName": "made-"}
    done = local.run("run", local.write("job.yaml", job, job))
    assert done.stdout.count("named") == 2 and "TrainJob default/made-" in done.stderr, done.stdout + done.stderr
    job["metadata"] = {}
    assert "TrainJob without a name: metadata.name is missing" in local.run("run", local.write("job.yaml", job), code=1).stderr
    job["metadata"] = {"name": "same"}
    assert "TrainJob default/same: the files have it twice" in local.run("run", local.write("job.yaml", job, job), code=1).stderr
    assert local.job("same") is None


def processes_end(script):
    """A pod that is killed is deleted before its processes end."""
    wait_until("its processes are gone", lambda: not bed.processes_with(script), seconds=10)


def test_stop_suspends_and_kill_does_not_wait(local):
    for name, script, options in (("polite", POLITE, []), ("deaf", DEAF, ["--kill"])):
        script += str(local.scratch)
        local.run("run", "--detach", local.write(f"{name}.yaml", trainjob(name, script)))
        local.wait_for(name, "Running")
        began = time.monotonic()
        local.run("stop", *options, name)
        assert time.monotonic() - began < 10
        processes_end(script)
        local.wait_for(name, "Suspended", seconds=5)
        assert "does not run" in local.run("stop", name, code=1).stderr
        assert "does not run" in local.run("stop", "--kill", name, code=1).stderr
    assert "Suspended" in local.run("status").stdout
    # A stopped job can be run again.
    done = local.run("run", local.write("polite.yaml", trainjob("polite", "echo second")))
    assert "second" in done.stdout


def interrupted(local, script, times):
    """The output of `local run` when it gets so many SIGINT, the first one once the job has begun; its exit status must be 1."""
    started = local.start("run", local.write("job.yaml", trainjob("stopped", script)))
    said = []
    for line in started.stdout:
        said.append(line)
        if "begun" in line or ("a second interrupt" in line and times > 0):
            if times > 0:
                started.send_signal(signal.SIGINT)
            times -= 1
    assert started.wait(30) == 1, said
    return "".join(said)


def test_one_interrupt_asks_the_job_to_end(local):
    script = POLITE + str(local.scratch)
    said = interrupted(local, script, 1)
    assert "[node-0] asked to end" in said, said
    assert not bed.processes_with(script)
    local.wait_for("stopped", "Suspended", seconds=5)


def test_a_second_interrupt_kills_it(local):
    script = DEAF + str(local.scratch)
    began = time.monotonic()
    interrupted(local, script, 2)
    assert time.monotonic() - began < 20
    processes_end(script)


def test_a_stop_that_takes_long_can_be_made_a_kill(local):
    script = DEAF + str(local.scratch)
    local.run("run", "--detach", local.write("deaf.yaml", trainjob("deaf", script)))
    wait_until("it ignores SIGTERM", lambda: "begun" in local.run("logs", "deaf", code=None).stdout)
    stopping = local.start("stop", "deaf")
    local.wait_for("deaf", "Suspended")
    began = time.monotonic()
    local.run("stop", "--kill", "deaf")
    assert stopping.wait(10) == 0 and time.monotonic() - began < 10
    processes_end(script)


def test_an_interrupt_ends_where_pods_had_failed(local):
    """A suspended Job keeps the pods that failed."""
    job = trainjob("retried", "echo begun; exit 1")
    runtime = local.runtime("retries", backoffLimit=6)
    job["spec"]["runtimeRef"] = {"name": "retries", "kind": "TrainingRuntime"}
    started = local.start("run", local.write("job.yaml", runtime, job))
    for line in started.stdout:
        if "begun" in line:
            break
    wait_until("the pod has failed", lambda: any(pod["status"]["phase"] == "Failed" for pod in local.pods("retried")))
    started.send_signal(signal.SIGINT)
    started.communicate(timeout=20)
    assert started.returncode == 1 and local.phase("retried") == "Suspended"


def test_a_daemon_that_was_asked_to_end_stays_away(local):
    started = local.start("run", local.write("job.yaml", trainjob("followed", POLITE)))
    for line in started.stdout:
        if "begun" in line:
            break
    local.run("down")
    said = started.communicate(timeout=20)[0]
    assert started.returncode == 1 and "started again" not in said.replace("not started again", ""), said
    assert "no daemon is up" in local.run("status", code=1).stderr


def test_a_run_that_is_killed_leaves_the_job(local):
    started = local.start("run", local.write("job.yaml", trainjob("stays", POLITE)))
    for line in started.stdout:
        if "begun" in line:
            break
    started.kill()
    started.wait()
    local.wait_for("stays", "Running")
    followed = local.start("logs", "-f", "stays")
    wait_until("its output is shown again", lambda: "begun" in followed.stdout.readline())
    local.run("stop", "stays")
    said = followed.communicate(timeout=10)[0]
    assert followed.returncode == 0 and "Suspended" in said, (followed.returncode, said)


def test_other_objects_of_the_file(local):
    meta = {"namespace": "default"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **meta}, "data": {"greeting": "good morning"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", **meta}, "stringData": {"token": "hush"}}
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "greeting"}}},
           {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}}]
    file = local.write("all.yaml", config, secret, trainjob("uses", "echo $A $B", env=env))
    assert "[node-0] good morning hush" in local.run("run", file).stdout
    config["data"]["greeting"] = "good evening"
    assert "[node-0] good evening hush" in local.run("run", local.write("all.yaml", config, secret, trainjob("uses", "echo $A $B", env=env))).stdout


def test_a_mount(local):
    local.up_in_tier(1)
    (local.scratch / "train.sh").write_text("echo the script runs; echo kept > /workspace/result\n")
    job = trainjob("mounted", "sh /workspace/train.sh")
    assert "the script runs" in local.run("run", "--mount", f"{local.scratch}:/workspace", local.write("job.yaml", job)).stdout
    assert local.lines("result") == ["kept"]


def with_initializer(local, command):
    """A runtime with a claim that an initializer and the nodes share, and a job of it."""
    runtime = local.runtime("prepared", backoffLimit=0)
    steps = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    steps[0]["dependsOn"] = [{"name": "dataset-initializer", "status": "Complete"}]
    first = json.loads(json.dumps(steps[0]).replace('"node"', '"dataset-initializer"').replace(': "trainer"', ': "dataset-initializer"'))
    del first["dependsOn"]
    steps.insert(0, first)
    for step in steps:
        pod = step["template"]["spec"]["template"]["spec"]
        pod["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        pod["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/workspace"}]
    if command:
        first["template"]["spec"]["template"]["spec"]["containers"][0]["command"] = command
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
             "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}}
    job = trainjob("prepared", "echo trained on $(cat /workspace/data)", nodes=2, initializer={"dataset": {"storageUri": "hf://some/data"}})
    job["spec"]["runtimeRef"] = {"name": "prepared", "kind": "TrainingRuntime"}
    return local.write("job.yaml", claim, runtime, job)


def test_an_initializer_with_a_command(local):
    """It runs before the nodes, and they see what it has written."""
    local.up_in_tier(1)
    done = local.run("run", with_initializer(local, ["sh", "-c", "sleep 0.3; echo what came from $STORAGE_URI > /workspace/data; echo loaded"]))
    assert sorted(done.stdout.splitlines()) == ["[dataset-initializer-0] loaded", "[node-0] trained on what came from hf://some/data",
                                                "[node-1] trained on what came from hf://some/data"], done.stdout
    # The data of a claim is deleted with it.
    path = "/api/v1/namespaces/default/persistentvolumeclaims/data"
    folder = local.state / "volumes" / local.request(path)["metadata"]["uid"]
    assert (folder / "data").exists()
    local.request(path, method="DELETE")
    wait_until("its folder is gone", lambda: not folder.exists())


def test_an_initializer_of_an_image_alone(local):
    local.up_in_tier(1)
    done = local.run("run", with_initializer(local, None), code=1)
    said = "    spec.containers[0].command: local mode has no images, so it does not know what this one runs: state it\n"
    assert said in done.stdout and "trained" not in done.stdout, done.stdout


def test_a_job_of_a_cluster_is_cut_to_the_machine(local):
    local.up("--capacity", "cpu=2", "--capacity", "memory=4Gi")
    job = trainjob("large", "echo node of $PET_NNODES", nodes=64, requests={"cpu": "48", "memory": "500Gi", "nvidia.com/gpu": "8"})
    job["spec"]["trainer"]["resourcesPerNode"]["limits"] = {"nvidia.com/gpu": "8"}
    job["spec"]["trainer"]["numProcPerNode"] = 8
    waits = local.start("run", local.write("job.yaml", job))
    wait_until("it says what would help", lambda: "run it with --fit" in waits.stdout.readline())
    waits.send_signal(signal.SIGINT)
    waits.communicate(timeout=20)
    done = local.run("run", "--fit", local.write("job.yaml", job))
    for cut in ("nodes: 64 -> 2", "cpu per node: 48 -> 1", "nvidia.com/gpu per node: 8 -> 0", "processes per node: 8 -> 1", "memory per node"):
        assert cut in done.stderr, done.stderr
    assert done.stdout.count("node of 2") == 2, done.stdout
    done = local.run("run", "--nodes", "3", "--procs", "1", local.write("small.yaml", trainjob("small", "echo node of $PET_NNODES", nodes=1)))
    assert done.stdout.count("node of 3") == 3, done.stdout


def test_the_callers_python_is_used(local):
    """Also by a daemon that another environment has started."""
    local.up()
    programs = local.scratch / "venv/bin"
    programs.mkdir(parents=True)
    (programs / "python3").write_text("#!/bin/sh\necho python of the environment\n")
    (programs / "python3").chmod(0o755)
    job = trainjob("python", "")
    job["spec"]["trainer"]["command"] = ["python3", "x.py"]
    done = local.run("run", local.write("job.yaml", job), env={"VIRTUAL_ENV": str(programs.parent)})
    assert "[node-0] python of the environment" in done.stdout and f"python3 is {programs}/python3" in done.stderr, done.stderr


def test_the_daemon_leaves_when_it_is_idle(local):
    local.run("up", "--idle", "1")
    pid = local.daemon()["pid"]
    wait_until("the daemon has left", lambda: bed.is_zombie(pid), seconds=20)
    local.run("run", local.write("job.yaml", trainjob("wakes", "true")))


if __name__ == "__main__":
    bed.main(parallel=2)
