#!/usr/bin/python3
"""kubectl follows jobs that run on this machine: logs -f, wait, get -w; in a shell in which `eval "$(trainer local env)"` was called."""
import os
import shutil
import signal
import subprocess

import bed
from bed import trainjob, wait_until

SELECTOR = "jobset.sigs.k8s.io/jobset-name=followed"


def shell(local, script):
    """A shell that begins with what docs/local.md says."""
    if shutil.which("kubectl") is None:
        raise bed.Skipped("there is no kubectl in PATH")
    started = subprocess.Popen(["timeout", "60", "bash", "-c", f'set -e; eval "$({bed.TRAINER} local env)"; {script}'], env=local.env, cwd=local.folder, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    return started


def end(started):
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()
    started.stdout.close()


def test_a_job_is_followed(local):
    """Two nodes that each print a line, wait for a file, print another and end."""
    local.up()
    gate = local.scratch / "gate"
    watching = waiting = following = several = None
    try:
        script = f"echo begun on $JOB_COMPLETION_INDEX; until [ -e {gate} ]; do sleep 0.05; done; echo went on"
        local.create(trainjob("followed", script, nodes=2))
        local.wait_for("followed", "Running")
        watching = shell(local, "exec kubectl get trainjobs -w --output-watch-events")
        assert watching.stdout.readline().split()[:3] == ["EVENT", "NAME", "STATE"]
        assert watching.stdout.readline().split()[:4] == ["ADDED", "followed", "Running", "2/2"]
        waiting = shell(local, "kubectl wait --for=condition=Complete trainjob/followed --timeout=60s")
        pod = next(p["metadata"]["name"] for p in local.pods("followed") if "-node-0-0-" in p["metadata"]["name"])
        following = shell(local, f"kubectl logs -f {pod}")
        several = shell(local, f"kubectl logs -f -l {SELECTOR} --prefix")
        # The output is shown while the job still runs.
        first = following.stdout.readline()
        assert first == "begun on 0\n", first
        assert "begun on" in several.stdout.readline() and "begun on" in several.stdout.readline()
        assert waiting.poll() is None and local.phase("followed") == "Running"
        gate.write_text("")
        said = following.communicate(timeout=30)[0]
        assert (following.returncode, said) == (0, "went on\n"), said
        said = several.communicate(timeout=30)[0]
        assert several.returncode == 0 and said.count("went on\n") == 2, said
        said = waiting.communicate(timeout=30)[0]
        assert (waiting.returncode, said) == (0, "trainjob.trainer.kubeflow.org/followed condition met\n"), said
        changes = [watching.stdout.readline().split()[:3]]
        while changes[-1] == ["MODIFIED", "followed", "Running"]:
            changes.append(watching.stdout.readline().split()[:3])
        assert changes[-1] == ["MODIFIED", "followed", "Complete"], changes
    finally:
        for started in (watching, waiting, following, several):
            if started is not None and started.poll() is None:
                end(started)


def test_a_job_that_fails(local):
    """`kubectl wait` ends for the other condition, and what is left can be read."""
    local.up()
    made = shell(local, f"kubectl apply -f {local.write('job.yaml', trainjob('fails', 'echo bad luck; exit 3'))}")
    assert made.communicate(timeout=30)[0] == "trainjob.trainer.kubeflow.org/fails created\n" and made.returncode == 0
    waited = shell(local, "kubectl wait --for=condition=Failed trainjob/fails --timeout=60s")
    assert waited.communicate(timeout=90)[0] == "trainjob.trainer.kubeflow.org/fails condition met\n" and waited.returncode == 0
    pod, = local.pods("fails")
    read = shell(local, f"kubectl logs {pod['metadata']['name']}; kubectl get pod {pod['metadata']['name']} --no-headers")
    lines = read.communicate(timeout=30)[0].splitlines()
    assert lines[0] == "bad luck" and "Error" in lines[1], lines
    deleted = shell(local, "kubectl delete trainjob fails --timeout=30s")
    assert deleted.communicate(timeout=60)[0].startswith('trainjob.trainer.kubeflow.org "fails" deleted') and deleted.returncode == 0
    wait_until("its pods are gone", lambda: not local.pods("fails"), seconds=10)


if __name__ == "__main__":
    bed.main()
