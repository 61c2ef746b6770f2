#!/usr/bin/python3
"""`trainer plan` and the genuine kube-scheduler: a job is said to fit now exactly where all of its pods are then bound.

Random clusters of Nodes without kubelets, half full, and random pods: taints, selectors, affinities, spread, ports, devices. PLAN_CLUSTERS is how
many (default 30; LONG=yes: 1000), PLAN_SEED where they begin. Needs a control plane without node. Clusters of one batch are in the control plane
at the same time; their labels have the number of the cluster, so that none has a node for another.
"""
import concurrent.futures
import contextlib
import json
import os
import random
import sys

import harness
from harness import Failed, run, wait_until

sys.path.insert(0, str(harness.ROOT / "tests/conformance"))
from conform import Api  # noqa: E402

CLUSTERS = int(os.environ.get("PLAN_CLUSTERS", "1000" if harness.IS_LONG else "30"))
SEED = int(os.environ.get("PLAN_SEED", "1"))
BATCH = 20
GPU = "nvidia.com/gpu"
# Nodes without a kubelet get these taints sooner or later, so that every pod tolerates them.
TOLERATED = [{"key": f"node.kubernetes.io/{what}", "operator": "Exists"} for what in ("not-ready", "unreachable")]
EXIT = {"now": 0, "waits": 1, "never": 4}


class Generator:
    """One cluster and one job; the same seed makes the same."""

    def __init__(self, seed):
        self.random, self.seed = random.Random(seed), seed
        self.cluster_key, self.zone, self.host = f"cluster-{seed}", f"zone-{seed}", f"host-{seed}"

    def chance(self, of):
        return self.random.random() < of

    def of(self, *choices):
        return self.random.choice(choices)

    def app(self):
        return f"{self.of('x', 'y')}-{self.seed}"

    def nodes(self):
        made = []
        for i in range(self.random.randint(2, 8)):
            name = f"plan-{self.seed}-{i}"
            room = {"cpu": str(self.of(4, 8, 16)), "memory": f"{self.of(8, 16, 32)}Gi", "pods": str(self.of(3, 10, 20, 20))}
            if self.chance(0.7):
                room[GPU] = str(self.of(2, 4, 8))
            labels = {self.cluster_key: "yes", self.host: name, "pool": self.of("a", "b"), "generation": str(self.of(1, 2, 3))}
            if self.chance(0.9):
                labels[self.zone] = self.of("one", "two", "three")
            spec = {}
            if self.chance(0.2):
                spec["taints"] = [{"key": self.of("dedicated", "gpu"), "value": "yes", "effect": self.of("NoSchedule", "NoExecute", "PreferNoSchedule")}]
            if self.chance(0.08):
                spec["unschedulable"] = True
            made.append({"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"capacity": room, "allocatable": room}})
        return made

    def container(self, name, most_cpu=4):
        requests = {"cpu": self.of("500m", *map(str, range(1, most_cpu + 1))), "memory": self.of("512Mi", "1Gi", "4Gi")}
        if self.chance(0.15):
            requests = {}
        resources = {"requests": requests}
        if self.chance(0.3):
            count = str(self.of(1, 1, 1, 2, 2, 4, 8))
            resources["limits"] = {GPU: count}
        return {"name": name, "image": "localhost/none:1", "resources": resources}

    def term(self, key):
        return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": self.app()}}}

    def running(self, nodes):
        """Pods that are on the nodes, whatever the scheduler would have said."""
        made = []
        for node in nodes:
            for i in range(self.of(0, 0, 1, 2, 4)):
                pod = {"nodeName": node["metadata"]["name"], "containers": [self.container("c", 3)], "tolerations": [{"operator": "Exists"}]}
                if self.chance(0.1):
                    pod["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [self.term(self.host)]}}
                if self.chance(0.15):
                    pod["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 8080}]
                made.append({"metadata": {"name": f"{node['metadata']['name']}-{i}", "labels": {"app": self.app(), "seed": str(self.seed)}}, "spec": pod})
        return made

    def affinity(self):
        made = {}
        expressions = [{"key": self.cluster_key, "operator": "Exists"}]
        if self.chance(0.2):
            expressions.append(self.of({"key": "pool", "operator": "In", "values": ["a"]}, {"key": "pool", "operator": "NotIn", "values": ["b"]},
                                       {"key": "generation", "operator": "Gt", "values": ["1"]}, {"key": self.zone, "operator": "Exists"},
                                       {"key": self.zone, "operator": "In", "values": ["one", "two"]}))
        made["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
        if self.chance(0.1):
            made["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [self.term(self.of(self.host, self.zone))]}
        if self.chance(0.1):
            made["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [self.term(self.of(self.host, self.zone))]}
        return made

    def spread(self):
        return {"maxSkew": self.of(1, 1, 2), "topologyKey": self.of(self.zone, self.host), "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": self.app()}}, **self.of({}, {}, {"minDomains": 2}, {"minDomains": 3}),
                **self.of({}, {}, {"nodeTaintsPolicy": "Honor"}, {"nodeAffinityPolicy": "Ignore"})}

    def pod(self):
        spec = {"restartPolicy": "Never", "containers": [self.container("c") for _ in range(self.of(1, 1, 2))], "affinity": self.affinity(),
                "tolerations": list(TOLERATED)}
        for i, container in enumerate(spec["containers"]):
            container["name"] = f"c{i}"
        if self.chance(0.2):
            spec["initContainers"] = [{**self.container("init"), **self.of({}, {"restartPolicy": "Always"})}]
        if self.chance(0.25):
            spec["tolerations"].append(self.of({"key": "gpu", "operator": "Exists"}, {"key": "dedicated", "value": "yes"}, {"operator": "Exists"}))
        if self.chance(0.12):
            spec["nodeSelector"] = {"pool": "a"}
        if self.chance(0.25):
            spec["topologySpreadConstraints"] = [self.spread()]
        if self.chance(0.1):
            spec["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 8080}]
        return {"metadata": {"labels": {"app": self.app(), "seed": str(self.seed)}}, "spec": spec}

    def jobset(self, namespace):
        jobs = []
        for i in range(self.of(1, 1, 1, 2)):
            count = self.random.randint(1, 6)
            jobs.append({"name": f"r{i}", "replicas": 1, "template": {"spec": {"parallelism": count, "completions": count, "template": self.pod()}}})
        return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": f"j{self.seed}", "namespace": namespace},
                "spec": {"replicatedJobs": jobs}}


class Scene:
    """One cluster within the control plane, what is said of its job, and what the scheduler does."""

    def __init__(self, namespace, seed):
        self.namespace, self.seed = namespace, seed
        generator = Generator(seed)
        self.nodes = generator.nodes()
        self.running = generator.running(self.nodes)
        self.job = generator.jobset(namespace)
        self.said = None

    def make(self, api):
        for o in self.nodes:
            post(api, "/api/v1/nodes", o)
        for o in self.running:
            post(api, f"/api/v1/namespaces/{self.namespace}/pods", o)

    def plan(self):
        done = run(harness.TRAINER, "plan", "-o", "json", "-f", "-", text=json.dumps(self.job), check=False)
        try:
            self.said = json.loads(done.stdout)
        except ValueError:
            raise Failed(f"PLAN_SEED={self.seed}: plan ended with {done.returncode}: {done.stderr}{done.stdout}\n{json.dumps(self.job)}") from None
        assert done.returncode == EXIT[self.said["answer"]], f"{done.returncode}: {done.stdout}"

    def submit(self, api):
        """Makes the pods, as the controller of Jobs would."""
        rendered = json.loads(run(harness.TRAINER, "render", "--jobs", "-o", "json", "-f", "-", text=json.dumps(self.job)).stdout)["items"]
        for job in (o for o in rendered if o["kind"] == "Job"):
            template = job["spec"]["template"]
            for i in range(job["spec"]["parallelism"]):
                metadata = {"name": f"{job['metadata']['name']}-{i}", "labels": {**template["metadata"]["labels"], "job-of": str(self.seed)}}
                post(api, f"/api/v1/namespaces/{self.namespace}/pods", {"metadata": metadata, "spec": template["spec"]})

    def show(self, why):
        return (f"PLAN_SEED={self.seed}: plan says {self.said['answer']}, and {why}\n  {json.dumps(self.said['reasons'])}\n"
                f"  {json.dumps(self.nodes)}\n  {json.dumps(self.running)}\n  {json.dumps(self.job)}")


def post(api, path, o):
    code, answer = api.call("POST", path, o)
    assert code == 201, f"POST {path}: {code} {answer}"


def has_answer(pod):
    """The scheduler has bound the pod, or has said that it cannot."""
    return pod["spec"].get("nodeName") or any(c["type"] == "PodScheduled" for c in pod["status"].get("conditions", []))


def pods_of(api, namespace):
    """The pods of jobs, by cluster."""
    found = {}
    for pod in api.call("GET", f"/api/v1/namespaces/{namespace}/pods?labelSelector=job-of")[1]["items"]:
        found.setdefault(int(pod["metadata"]["labels"]["job-of"]), []).append(pod)
    return found


def are_bound(pods):
    return all(p["spec"].get("nodeName") for p in pods)


def settle(api, scenes):
    """Waits until the scheduler has answered about all pods, and until those are bound that were said to fit; a pod that found no place is tried
    again when others have been bound."""
    namespace = scenes[0].namespace
    wait_until("the scheduler has answered", lambda: all(has_answer(p) for pods in pods_of(api, namespace).values() for p in pods), seconds=60)
    said_now = [s.seed for s in scenes if s.said["answer"] == "now"]

    def as_said():
        pods = pods_of(api, namespace)
        return all(are_bound(pods[seed]) for seed in said_now)

    with contextlib.suppress(Failed):
        wait_until("what fits is bound", as_said, seconds=15)
    return pods_of(api, namespace)


def remove(api, scenes):
    api.call("DELETE", f"/api/v1/namespaces/{scenes[0].namespace}/pods", {"gracePeriodSeconds": 0})
    for scene in scenes:
        for node in scene.nodes:
            api.call("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")


def run_batch(namespace, seeds):
    api, scenes = Api(os.environ["KUBECONFIG"]), [Scene(namespace, seed) for seed in seeds]
    try:
        for scene in scenes:
            scene.make(api)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(Scene.plan, scenes))
        for scene in scenes:
            scene.submit(api)
        pods = settle(api, scenes)
    finally:
        remove(api, scenes)
    missed = []
    for scene in scenes:
        bound = are_bound(pods[scene.seed])
        if bound != (scene.said["answer"] == "now"):
            count = sum(bool(p["spec"].get("nodeName")) for p in pods[scene.seed])
            missed.append(scene.show(f"{count} of {len(pods[scene.seed])} pods are bound"))
    return [s.said["answer"] for s in scenes], missed


def test_what_fits_is_bound(cluster):
    answers, missed = [], []
    for first in range(SEED, SEED + CLUSTERS, BATCH):
        said, wrong = run_batch(cluster.namespace, range(first, min(first + BATCH, SEED + CLUSTERS)))
        answers += said
        missed += wrong
    counts = {answer: answers.count(answer) for answer in sorted(set(answers))}
    print(f"     {len(answers)} clusters, {len(answers) - len(missed)} as said: {counts}")
    for each in missed:
        print("     " + each)
    assert len(missed) <= len(answers) // 100, f"{len(missed)} of {len(answers)} clusters were not as said"
    assert CLUSTERS < 20 or all(counts.get(answer, 0) > CLUSTERS // 20 for answer in EXIT), counts


if __name__ == "__main__":
    harness.main(__file__)
