#!/usr/bin/python3
"""docs/examples in local mode, with the services and libraries that they are about: S3, MLflow, W&B. Those come from PyPI into the user's cache."""
import contextlib
import pathlib
import re
import shutil
import subprocess

import bed
import harness   # bed makes it known

S3 = "moto==5.1.22 flask-cors==6.0.2 py-partiql-parser==0.6.3 boto3==1.44.8"
TRACKERS = "mlflow-skinny==3.17.2 wandb==0.31.0"


def python_with(local, packages):
    """Gives pods a python3 that has PyTorch and these packages of PyPI, and answers the Python that has the packages alone."""
    python = pathlib.Path(subprocess.check_output([bed.ROOT / "tools/python-tool", packages, "python"], text=True).strip())
    found = next((python.parents[1] / "lib").glob("python3.*")) / "site-packages"
    local.env["PATH"] = bed.torch() + ":" + local.env["PATH"]
    local.env["PYTHONPATH"] = str(found)
    return python


# A server as it is in production but for its data, which is in its memory; it knows no user, so any key will do.
SERVER = """
import boto3
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0)
server.start()
host, port = server.get_host_and_port()
endpoint = f"http://{host}:{port}"
boto3.client("s3", endpoint_url=endpoint, aws_access_key_id="k", aws_secret_access_key="s", region_name="us-east-1").create_bucket(Bucket="checkpoints")
print("serves", endpoint, flush=True)
input()
"""


@contextlib.contextmanager
def s3_server(python):
    """The address of an S3 server with a bucket `checkpoints`."""
    with subprocess.Popen([python, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            yield next(line.split()[1] for line in server.stdout if line.startswith("serves "))
        finally:
            server.kill()


def killed_in(local, step, job, *words):
    """Runs an example, deletes the pod of its first node after this step, and answers what the job has printed when it is Complete."""
    running = local.start("run", bed.EXAMPLES / f"{job}.yaml", *words)
    printed = ""
    for line in running.stdout:
        printed += line
        if re.match(rf"\[node-0\] step {step}\b", line):
            break
    pod = next(p["metadata"]["name"] for p in local.pods(job) if f"{job}-node-0-0-" in p["metadata"]["name"])
    local.request(f"{bed.PODS}/{pod}", method="DELETE")
    printed += running.communicate(timeout=90)[0]
    assert running.returncode == 0 and local.job(job)["status"]["restarts"] == 1, printed
    return printed


def test_checkpoints_on_s3(local):
    python = python_with(local, S3)
    with s3_server(python) as endpoint:
        local.up()
        local.request("/api/v1/namespaces/default/secrets", {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3"}, "stringData": {"key": "k", "secret": "s", "endpoint": endpoint}}, "POST")
        printed = killed_in(local, 5, "checkpoint-s3")
    begun = re.search(r"^\[node-0 #1\] attempt 1 continues after step (\d+)$", printed, re.M)
    assert begun and int(begun[1]) >= 5, printed
    assert "attempt 0 starts at step 0" in printed and "[node-0 #1] step 20:" in printed and "attempt 1 is done" in printed, printed


def runs_of(printed):
    """The run that each of the attempts has logged to."""
    return re.findall(r"attempt \d logs to run (\S+)$", printed, re.M)


def test_one_run_of_mlflow(local):
    python_with(local, TRACKERS)
    printed = killed_in(local, 5, "mlflow")
    first, second = runs_of(printed)
    assert first == second, printed
    # The step in which the pod was killed may have been logged twice.
    values = re.search(r"the run has (\d+) values of loss", printed)
    assert values and int(values[1]) in (20, 21), printed


def test_one_run_of_wandb(local):
    python_with(local, TRACKERS)
    printed = killed_in(local, 5, "wandb")
    uid = local.job("wandb")["metadata"]["uid"]
    assert runs_of(printed) == [uid, uid], printed
    kept = [path for path in local.state.glob("volumes/**/offline-run-*") if path.name.endswith(f"-{uid}")]
    assert len(kept) == 2, kept   # of each attempt one; `wandb sync` makes one run of them


def test_an_evaluation_after_a_training(local):
    if shutil.which("kubectl") is None:
        raise bed.Skipped("there is no kubectl in PATH")
    local.env["PATH"] = f"{bed.torch()}:{bed.FOLDER}:{local.env['PATH']}"
    local.up()
    local.env["KUBECONFIG"] = str(local.state / "kubeconfig")
    script = bed.EXAMPLES / "train-then-evaluate/run.sh"

    def run():
        return subprocess.run([script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=local.env, timeout=120)

    done = run()
    assert done.returncode == 0 and re.search(r"the model is saved\n(?:.*\n)*.*largest error: 0\.0", done.stdout), done.stdout
    # The first job fails, so there is no second one.
    shutil.copytree(script.parent, local.scratch / "broken")
    script = local.scratch / "broken/run.sh"
    train = script.with_name("train.yaml")
    train.write_text(train.read_text().replace("torch.manual_seed(0)", "raise SystemExit('no data')"))
    done = run()
    assert done.returncode == 1 and "no data" in done.stdout and local.job("evaluate") is None, done.stdout


@harness.only_with_long
def test_a_pipeline_of_dvc(local):
    """All stages run once; then none does, and after a change of the evaluation that one alone."""
    dvc = subprocess.check_output([bed.ROOT / "tools/python-tool", "dvc==3.67.1", "dvc"], text=True).strip()
    local.env["PATH"] = f"{bed.torch()}:{bed.FOLDER}:{local.env['PATH']}"
    folder = local.scratch / "dvc"
    shutil.copytree(bed.EXAMPLES / "dvc", folder)

    def run(*command):
        return subprocess.run(command, cwd=folder, env=local.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, timeout=300).stdout

    run("git", "init", "-q", ".")
    run(dvc, "init", "-q")
    run(dvc, "repro")
    assert "didn't change, skipping" in run(dvc, "repro")
    assert re.search(r"metrics\.json +0\.0", run(dvc, "metrics", "show"))
    evaluate = folder / "evaluate.yaml"
    evaluate.write_text(evaluate.read_text() + "# changed\n")
    printed = run(dvc, "repro")
    assert "Running stage 'evaluate'" in printed and "Running stage 'train'" not in printed, printed


if __name__ == "__main__":
    bed.main()
