#!/usr/bin/python3
"""Random runtimes, jobs and patches: what the API server takes, keeps and gets from us is what `trainer render` says.

RANDOM_COMBINATIONS is how many (default 100), RANDOM_SEED where they begin. Needs a control plane without node; all jobs
are suspended, so that none of them makes pods.
"""
import json
import os
import random
import sys
import tempfile

import harness
from harness import Failed, run, wait_until

sys.path.insert(0, str(harness.ROOT / "tests/conformance"))
from conform import Api  # noqa: E402

COMBINATIONS = int(os.environ.get("RANDOM_COMBINATIONS", "100"))
SEED = int(os.environ.get("RANDOM_SEED", "1"))
GROUP = "trainer.kubeflow.org/v1alpha1"
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
POLICIES = [{}, {"torch": {}}, {"mpi": {}}, {"mpi": {"runLauncherAsNode": True}}, {"jax": {}},
            {"xgboost": {}}, {"flux": {}}, {"torch": {"envInjection": {"targets": [{"jobName": "node", "containerNames": ["side"]}]}}}]
AMOUNTS = ["1", "500m", "2Gi", "0.5", "1e3"]


class Generator:
    """One combination; the same seed makes the same."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def maybe(self, one_in=2):
        return self.random.randrange(one_in) == 0

    def of(self, *choices):
        return self.random.choice(choices)

    def some(self, **choices):
        """Each member with a chance of a half."""
        return {k: v for k, v in choices.items() if self.maybe()}

    def env(self):
        names = self.random.sample(["A", "B", "PET_NNODES", "OMPI_X", "HOME"], self.random.randrange(4))
        return [{"name": n, "value": str(self.random.randrange(9))} for n in names]

    def resources(self):
        kinds = ["cpu", "memory", "nvidia.com/gpu", "example.com/mig-1g.5gb"]
        amounts = {k: self.of(*AMOUNTS[:3]) if k in kinds[:2] else "2" for k in kinds if self.maybe()}
        return self.some(limits=amounts, requests={k: v for k, v in amounts.items() if self.maybe()})

    def container(self, name):
        return {"name": name, "image": "localhost/none:1", **self.some(
            env=self.env(), resources=self.resources(), command=["python", "x.py"], args=["a", "b"],
            volumeMounts=[{"name": "data", "mountPath": "/data"}], ports=[{"containerPort": 29500}])}

    def replicated_job(self, name, earlier):
        step = self.of("", "trainer", "dataset-initializer")
        containers = [self.container("node" if step != "dataset-initializer" else step)]
        if self.maybe(3):
            containers.append(self.container("side"))
        pod = {"containers": containers, "volumes": [{"name": "data", "emptyDir": {}}], **self.some(
            initContainers=[self.container("init")], nodeSelector={"pool": "a"}, restartPolicy="Never",
            tolerations=[{"key": "k", "operator": "Exists"}])}
        job = {"name": name, "template": {"spec": {"template": {"spec": pod}, **self.some(parallelism=2, backoffLimit=3)}}}
        if step:
            job["template"]["metadata"] = {"labels": {STEP: step}}
        if earlier and self.maybe():
            job["dependsOn"] = [{"name": self.of(*earlier), "status": self.of("Ready", "Complete")}]
        return job

    def runtime(self, name):
        jobs, names = [], [n for n in ("dataset-initializer", "node", "launcher", "other") if self.maybe()] or ["node"]
        for i, job in enumerate(names):
            jobs.append(self.replicated_job(job, names[:i]))
        spec = {"template": {"spec": {"replicatedJobs": jobs}}}
        if not self.maybe(4):
            spec["mlPolicy"] = {**self.of(*POLICIES), **self.some(numNodes=1 + self.random.randrange(4))}
        return {"apiVersion": GROUP, "kind": "TrainingRuntime", "metadata": {"name": name}, "spec": spec}

    def patch(self, manager):
        pod = self.some(nodeSelector={self.of("pool", "zone"): "b"}, tolerations=[{"key": "q", "operator": "Exists"}],
                        volumes=[{"name": "more", "emptyDir": {}}], terminationGracePeriodSeconds=5)
        if self.maybe(3):
            pod["containers"] = [{"name": self.of("node", "side", "missing"), **self.some(
                volumeMounts=[{"name": "data", "mountPath": "/more"}], env=self.env())}]
        job = {"name": self.of("node", "launcher", "other", "nowhere"), "template": {"spec": {"template": {"spec": pod}}}}
        if self.maybe(3):
            job["template"]["metadata"] = {"labels": {"l": "v"}}
        return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}

    def job(self, name):
        spec = {"suspend": True, "runtimeRef": {"name": name, "kind": "TrainingRuntime"}, "trainer": self.some(
            numNodes=1 + self.random.randrange(4), env=self.env(), resourcesPerNode=self.resources(), image="mine:2",
            command=["run"], args=["y"], numProcPerNode=1 + self.random.randrange(3))}
        patches = [self.patch(m) for m in ("a.example.com/x", "b.example.com/y") if self.maybe(3)]
        if patches:
            spec["runtimePatches"] = patches
        if self.maybe(4):
            spec["initializer"] = {"dataset": {"storageUri": "hf://a/b"}}
        return {"apiVersion": GROUP, "kind": "TrainJob", "metadata": {"name": name}, "spec": spec}


def lost(sent, kept, path=""):
    """The first place where `kept` lacks what was sent, or None; it may hold more."""
    if isinstance(sent, dict) and isinstance(kept, dict):
        for name, value in sent.items():
            if name not in kept and value not in ({}, [], None):
                return f"{path}.{name}"
            if name in kept and (missing := lost(value, kept[name], f"{path}.{name}")):
                return missing
        return None
    if isinstance(sent, list) and isinstance(kept, list) and len(sent) == len(kept):
        return next((m for i, (a, b) in enumerate(zip(sent, kept)) if (m := lost(a, b, f"{path}[{i}]"))), None)
    return None if sent == kept else f"{path}: {json.dumps(sent)} became {json.dumps(kept)}"


def rendered(runtime, job, namespace):
    """The JobSet that `trainer render` makes of them, or None; and its messages. It also makes a JobSet whose Jobs the API server would refuse."""
    for o in (runtime, job):
        o["metadata"]["namespace"] = namespace
    done = run(harness.TRAINER, "render", "-o", "json", "-", text=json.dumps(runtime) + "\n---\n" + json.dumps(job), check=False)
    if done.returncode not in (0, 1):
        raise Failed(f"render ended with {done.returncode}: {done.stderr}")
    objects = json.loads(done.stdout)["items"]
    return next((o for o in objects if o["kind"] == "JobSet"), None), done.stderr


class Combination:
    def __init__(self, api, namespace, seed):
        self.api, self.namespace, self.name = api, namespace, f"r{seed}"
        generator = Generator(seed)
        self.runtime, self.job = generator.runtime(self.name), generator.job(self.name)

    def post(self, o):
        return self.api.call("POST", self.api.path(o["kind"], self.namespace), o)

    def read(self, kind):
        status, found = self.api.call("GET", self.api.path(kind, self.namespace, self.name))
        return found if status == 200 else None

    def check(self):
        """One of "ran", "refused" and "blocked"; a property that does not hold is an AssertionError."""
        jobset, why = rendered(self.runtime, self.job, self.namespace)
        for o in (self.runtime, self.job):
            status, answer = self.post(o)
            assert status in (201, 403, 422), f"{status}: {answer}"
            if status != 201:
                assert jobset is None, f"{o['kind']} refused: {answer['message']}; render makes a JobSet"
                return "refused"
            missing = lost(o["spec"], self.read(o["kind"])["spec"])
            assert not missing, f"{o['kind']} lost spec{missing}"

        def settled():
            status = self.read("TrainJob").get("status", {})
            return self.read("JobSet") or (status.get("reason") == "ChildRefused" and status)

        made = wait_until("a JobSet, or why there is none", settled, seconds=20, every=0.05)
        if made.get("kind") != "JobSet":
            assert jobset is None, f"render makes a JobSet; the cluster says {made}"
            return "blocked"
        assert jobset is not None, f"the cluster has a JobSet; render says {why}"
        for part in ("labels", "annotations"):
            missing = lost(jobset["metadata"].get(part, {}), made["metadata"].get(part, {}))
            assert not missing, f"JobSet lost metadata.{part}{missing}"
        missing = lost(jobset["spec"], made["spec"])
        assert not missing, f"JobSet lost spec{missing}"
        return "ran"


def test_random_combinations(cluster):
    harness.needs_admission()
    api, outcomes = Api(os.environ["KUBECONFIG"]), {"ran": 0, "refused": 0, "blocked": 0}
    with tempfile.TemporaryDirectory() as directory:
        controller = harness.Controller(directory, *harness.ADMISSION).start()
        try:
            for seed in range(SEED, SEED + COMBINATIONS):
                one = Combination(api, cluster.namespace, seed)
                try:
                    outcomes[one.check()] += 1
                except AssertionError as error:
                    raise Failed(f"RANDOM_SEED={seed}: {error}\n{json.dumps(one.runtime)}\n{json.dumps(one.job)}")
            controller.stop()
        finally:
            controller.kill()
    print(f"     {outcomes}")
    assert outcomes["ran"] >= COMBINATIONS // 5, outcomes   # else the generator tests refusals only


if __name__ == "__main__":
    harness.main(__file__)
