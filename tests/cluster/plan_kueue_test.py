#!/usr/bin/python3
"""`trainer plan` and a real Kueue: a job is said to fit now exactly where Kueue then reserves quota for it.

Random ClusterQueues with flavors, quotas and cohorts, which have admitted some jobs and let others wait. PLAN_QUEUES is how many scenes (default
20; LONG=yes: 200), PLAN_SEED where they begin. Needs a control plane without node, with Kueue beside it. Scenes of one batch are in the control
plane at the same time; each has queues and cohorts of its own.
"""
import concurrent.futures
import contextlib
import json
import os
import random
import sys

import harness
import kueue
import kueue_test
from harness import Failed, run

sys.path.insert(0, str(harness.ROOT / "tests/conformance"))
from conform import Api  # noqa: E402
from plan_test import EXIT, TOLERATED  # noqa: E402

wait_until = kueue_test.wait_until
SCENES = int(os.environ.get("PLAN_QUEUES", "200" if harness.IS_LONG else "20"))
SEED = int(os.environ.get("PLAN_SEED", "1"))
BATCH = 40
QUEUES = "/apis/kueue.x-k8s.io/v1beta2"
SPOT = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
# Each scene uses these flavors, the nodes that they mean, and these priorities.
FLAVORS = {"plan-a": {"nodeLabels": {"pool": "a"}}, "plan-b": {"nodeLabels": {"pool": "b"}},
           "plan-spot": {"nodeLabels": {"pool": "spot"}, "nodeTaints": [SPOT]}}
PRIORITIES = {"plan-low": -5, "plan-high": 5}


class Generator:
    """The queues and jobs of one scene; the same seed makes the same."""

    def __init__(self, seed):
        self.random, self.seed = random.Random(seed), seed
        self.flavors = self.random.sample(list(FLAVORS), self.of(1, 2, 2))
        self.covered = self.of(["cpu"], ["cpu"], ["cpu", "memory"])
        self.has_cohort = self.chance(0.75)
        self.is_nested = self.has_cohort and self.chance(0.3)

    def chance(self, of):
        return self.random.random() < of

    def of(self, *choices):
        return self.random.choice(choices)

    def quota(self, resource, most, borrows):
        unit = "Gi" if resource == "memory" else ""
        nominal = self.random.randint(0, most)
        made = {"name": resource, "nominalQuota": f"{nominal}{unit}"}
        if borrows and self.chance(0.3):
            made["borrowingLimit"] = f"{self.random.randint(0, 6)}{unit}"
        if borrows and self.chance(0.3):
            made["lendingLimit"] = f"{self.random.randint(0, nominal)}{unit}"
        return made

    def group(self, most, borrows):
        return [{"coveredResources": self.covered, "flavors": [
            {"name": flavor, "resources": [self.quota(resource, most, borrows) for resource in self.covered]} for flavor in self.flavors]}]

    def cohorts(self):
        """Cohorts that are objects. One that only has a name in ClusterQueues has none."""
        if not self.is_nested:
            return []
        return [{"metadata": {"name": f"outer-{self.seed}"}, "spec": self.of({}, {"resourceGroups": self.group(4, False)})},
                {"metadata": {"name": f"inner-{self.seed}"}, "spec": {
                    "parentName": f"outer-{self.seed}", **self.of({}, {"resourceGroups": self.group(3, True)})}}]

    def cohort(self):
        if not self.has_cohort:
            return {}
        return {"cohortName": f"{self.of('inner', 'outer') if self.is_nested else 'cohort'}-{self.seed}"}

    def preemption(self):
        made = {}
        if self.chance(0.2):
            made["withinClusterQueue"] = "LowerPriority"
        if self.has_cohort and self.chance(0.2):
            made["reclaimWithinCohort"] = self.of("Any", "LowerPriority")
            if self.chance(0.3):
                made["borrowWithinCohort"] = {"policy": "LowerPriority"}
        return made

    def queues(self):
        made = []
        for i in range(self.random.randint(1, 3)):
            spec = {"namespaceSelector": {}, "queueingStrategy": self.of("BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"),
                    "preemption": self.preemption(), "resourceGroups": self.group(8, self.has_cohort), **self.cohort()}
            if self.chance(0.2):
                spec["flavorFungibility"] = {"whenCanBorrow": "TryNextFlavor"}
            made.append({"metadata": {"name": f"plan-{self.seed}-{i}"}, "spec": spec})
        return made

    def pod(self):
        spec = {"restartPolicy": "Never", "tolerations": list(TOLERATED), "containers": [
            {"name": "c", "image": "localhost/none:1", "resources": {"requests": {"cpu": self.of("500m", "1", "1", "2", "3")}}}]}
        if "memory" in self.covered:
            spec["containers"][0]["resources"]["requests"]["memory"] = self.of("512Mi", "1Gi", "2Gi")
        if self.chance(0.2):
            spec["nodeSelector"] = {"pool": self.of("a", "b", "spot")}
        if self.chance(0.4):
            spec["tolerations"].append({"key": "spot", "operator": "Exists"})
        return {"spec": spec}

    def jobset(self, name, queue):
        jobs = []
        for i in range(self.of(1, 1, 2)):
            count = self.random.randint(1, 3)
            jobs.append({"name": f"r{i}", "replicas": 1, "template": {"spec": {"parallelism": count, "completions": count, "template": self.pod()}}})
        labels = {kueue.QUEUE: queue}
        if self.chance(0.4):
            labels[kueue.PRIORITY] = self.of(*PRIORITIES)
        return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name, "labels": labels},
                "spec": {"replicatedJobs": jobs}}


class Scene:
    """Some queues of one cohort, what is said of a job, and what Kueue does with it."""

    def __init__(self, namespace, seed):
        self.namespace, self.seed, self.name = namespace, seed, f"job-{seed}"
        generator = Generator(seed)
        self.cohorts, self.queues = generator.cohorts(), generator.queues()
        names = [queue["metadata"]["name"] for queue in self.queues]
        self.before = [generator.jobset(f"before-{seed}-{i}", generator.of(*names)) for i in range(generator.random.randint(1, 5))]
        self.job = generator.jobset(self.name, generator.of(*names))
        self.said = None

    def make(self, api):
        for o in self.cohorts:
            post(api, f"{QUEUES}/cohorts", {**typed("Cohort"), **o})
        for o in self.queues:
            post(api, f"{QUEUES}/clusterqueues", {**typed("ClusterQueue"), **o})
            name = o["metadata"]["name"]
            post(api, f"{QUEUES}/namespaces/{self.namespace}/localqueues", kueue.local_queue(name, name))

    def plan(self):
        done = run(harness.TRAINER, "plan", "-n", self.namespace, "-o", "json", "-f", "-", text=json.dumps(self.job), check=False)
        try:
            self.said = json.loads(done.stdout)
        except ValueError:
            raise Failed(f"PLAN_SEED={self.seed}: plan ended with {done.returncode}: {done.stderr}{done.stdout}\n{json.dumps(self.job)}") from None
        assert done.returncode == EXIT.get(self.said["answer"], 1), f"{done.returncode}: {done.stdout}"

    def is_said(self):
        """Whether Kueue should reserve quota, maybe after it has preempted others."""
        return self.said["answer"] == "now" or bool(self.said["queue"].get("preempts"))

    def show(self, workloads):
        mine = [w for w in workloads.values() if owner(w).endswith(f"-{self.seed}") or f"-{self.seed}-" in owner(w)]
        return (f"PLAN_SEED={self.seed}: plan says {self.said['answer']}, and Kueue says {message(workloads[self.name])}\n  {json.dumps(self.said)}\n"
                f"  {json.dumps(self.queues)}\n  {json.dumps(self.cohorts)}\n  {json.dumps(self.job)}\n"
                f"  {[(owner(w), message(w), w['spec']['queueName'], w['spec'].get('priority'), w['status'].get('admission')) for w in mine]}")


def typed(kind):
    return {"apiVersion": kueue.API, "kind": kind}


def post(api, path, o):
    code, answer = api.call("POST", path, o)
    assert code == 201, f"POST {path}: {code} {answer}"


def owner(workload):
    return workload["metadata"]["ownerReferences"][0]["name"]


def condition(workload):
    return next((c for c in workload.get("status", {}).get("conditions", []) if c["type"] == "QuotaReserved"), {})


def message(workload):
    return condition(workload).get("message", "nothing yet")


def is_admitted(workload):
    return condition(workload).get("status") == "True"


def workloads_of(api, namespace):
    """The Workloads by the names of their JobSets."""
    return {owner(w): w for w in api.call("GET", f"{QUEUES}/namespaces/{namespace}/workloads")[1]["items"]}


def is_decided(workload, workloads, strict):
    """Kueue has said something about the workload; in a StrictFIFO queue it says nothing of those behind the first that waits."""
    queue = workload["spec"]["queueName"]
    others = (w for w in workloads if w["spec"]["queueName"] == queue)
    return condition(workload) or queue in strict and any(condition(w).get("status") == "False" for w in others)


def submit(api, scenes, jobs):
    """Makes the jobs, and waits until Kueue has decided about each."""
    namespace = scenes[0].namespace
    strict = {q["metadata"]["name"] for s in scenes for q in s.queues if q["spec"]["queueingStrategy"] == "StrictFIFO"}
    for o in jobs:
        post(api, f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets", o)
    names = [o["metadata"]["name"] for o in jobs]

    def are_decided():
        found = workloads_of(api, namespace)
        return all(name in found and is_decided(found[name], found.values(), strict) for name in names)

    wait_until("Kueue has decided about each job", are_decided, seconds=120)


def is_settled(api, scenes):
    """The counts of each ClusterQueue are those of its Workloads, and none is being evicted."""
    workloads = list(workloads_of(api, scenes[0].namespace).values())
    queues = {o["metadata"]["name"]: o.get("status", {}) for o in api.call("GET", f"{QUEUES}/clusterqueues")[1]["items"]}

    def count(name, admitted):
        return sum(is_admitted(w) == admitted for w in workloads if w["spec"]["queueName"] == name)

    for scene in scenes:
        for queue in scene.queues:
            name = queue["metadata"]["name"]
            status = queues[name]
            if (status.get("reservingWorkloads"), status.get("pendingWorkloads")) != (count(name, True), count(name, False)):
                return False
    return not any("Pending the preemption" in message(w) for w in workloads)


def clear(api):
    for name in FLAVORS:
        api.call("DELETE", f"/api/v1/nodes/{name}")
        api.call("DELETE", f"{QUEUES}/resourceflavors/{name}")
    for name in PRIORITIES:
        api.call("DELETE", f"{QUEUES}/workloadpriorityclasses/{name}")
    wait_until("Kueue lets the flavors go", lambda: all(api.call("GET", f"{QUEUES}/resourceflavors/{name}")[0] == 404 for name in FLAVORS))


def prepare(api):
    """Makes what all scenes share: nodes with room for every job, flavors and priorities."""
    clear(api)
    for name, spec in FLAVORS.items():
        pool = spec["nodeLabels"]["pool"]
        room = {"cpu": "1000", "memory": "1000Gi", "pods": "1000"}
        taints = [{"key": t["key"], "value": t["value"], "effect": t["effect"]} for t in spec.get("nodeTaints", [])]
        post(api, "/api/v1/nodes", {"metadata": {"name": name, "labels": {"pool": pool}}, "spec": {"taints": taints},
                                    "status": {"capacity": room, "allocatable": room}})
        post(api, f"{QUEUES}/resourceflavors", {**typed("ResourceFlavor"), "metadata": {"name": name}, "spec": spec})
    for name, value in PRIORITIES.items():
        post(api, f"{QUEUES}/workloadpriorityclasses", {**typed("WorkloadPriorityClass"), "metadata": {"name": name}, "value": value, "description": "of a test"})


def remove(api, namespace, scenes):
    """A ClusterQueue goes when the Workloads that use it have gone."""
    jobsets = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets"
    for o in [o for scene in scenes for o in (*scene.before, scene.job)]:
        api.call("DELETE", f"{jobsets}/{o['metadata']['name']}")
    wait_until("Kueue lets the Workloads go", lambda: not workloads_of(api, namespace), seconds=120)
    for scene in scenes:
        for kind, objects in ((f"namespaces/{namespace}/localqueues", scene.queues), ("clusterqueues", scene.queues), ("cohorts", scene.cohorts)):
            for o in objects:
                api.call("DELETE", f"{QUEUES}/{kind}/{o['metadata']['name']}")


def run_batch(api, namespace, seeds):
    scenes = [Scene(namespace, seed) for seed in seeds]
    try:
        for scene in scenes:
            scene.make(api)
        for i in range(max(len(scene.before) for scene in scenes)):
            submit(api, scenes, [scene.before[i] for scene in scenes if i < len(scene.before)])
        wait_until("the queues have counted their workloads", lambda: is_settled(api, scenes), seconds=120)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(Scene.plan, scenes))
        submit(api, scenes, [scene.job for scene in scenes])

        def are_as_said():
            found = workloads_of(api, namespace)
            return all(is_admitted(found[scene.name]) == scene.is_said() for scene in scenes)

        with contextlib.suppress(Failed):
            wait_until("all is as it was said", are_as_said, seconds=30)
        workloads = workloads_of(api, namespace)
    finally:
        remove(api, namespace, scenes)
    return scenes, [s.show(workloads) for s in scenes if is_admitted(workloads[s.name]) != s.is_said()]


def test_what_fits_is_admitted(cluster):
    kueue_test.install()
    kueue.running()
    api = Api(os.environ["KUBECONFIG"])
    prepare(api)
    answers, missed = [], []
    for first in range(SEED, SEED + SCENES, BATCH):
        scenes, wrong = run_batch(api, cluster.namespace, range(first, min(first + BATCH, SEED + SCENES)))
        answers += ["preempts" if s.said["answer"] == "waits" and s.is_said() else s.said["answer"] for s in scenes]
        missed += wrong
    clear(api)
    counts = {answer: answers.count(answer) for answer in sorted(set(answers))}
    print(f"     {len(answers)} queues, {len(answers) - len(missed)} as said: {counts}")
    for each in missed:
        print("     " + each)
    assert len(missed) <= len(answers) // 50, f"{len(missed)} of {len(answers)} queues were not as said"
    assert "unknown" not in counts, counts
    assert SCENES < 20 or all(counts.get(answer, 0) >= SCENES // 20 for answer in EXIT), counts


def test_what_is_preempted_is_named(cluster):
    kueue_test.install()
    kueue.running()
    api = Api(os.environ["KUBECONFIG"])
    prepare(api)
    scene = Scene(cluster.namespace, 0)
    spec = {"namespaceSelector": {}, "queueingStrategy": "BestEffortFIFO", "preemption": {"withinClusterQueue": "LowerPriority"}}
    scene.cohorts, scene.queues = [], [kueue.cluster_queue("preempting", {"plan-a": 2}, **spec)]
    scene.before, scene.job = [preemptible("old", "plan-low")], preemptible(scene.name, "plan-high")
    try:
        scene.make(api)
        submit(api, [scene], scene.before)
        wait_until("the queue has counted its workload", lambda: is_settled(api, [scene]))
        scene.plan()
        submit(api, [scene], [scene.job])
        wait_until("the job is admitted", lambda: is_admitted(workloads_of(api, cluster.namespace)[scene.name]))
        assert not is_admitted(workloads_of(api, cluster.namespace)["old"])
    finally:
        remove(api, cluster.namespace, [scene])
        clear(api)
    said = scene.said["queue"].get("preempts")
    assert said == [{"kind": "jobset", "namespace": cluster.namespace, "name": "old"}], scene.said
    assert scene.said["answer"] == "waits", scene.said


def test_a_queue_that_decides_is_named(cluster):
    """A LocalQueue or ClusterQueue that is not there, and jobs that Kueue admits one by one, do not fit now."""
    kueue_test.install()
    kueue.running()
    api = Api(os.environ["KUBECONFIG"])
    prepare(api)
    post(api, f"{QUEUES}/namespaces/{cluster.namespace}/localqueues", kueue.local_queue("preempting", "plan-gone"))
    job, other = preemptible("one", "plan-low"), preemptible("two", "plan-low")
    wrong = preemptible("three", "plan-low")
    wrong["metadata"]["labels"][kueue.QUEUE] = "plan-typo"
    local = f"LocalQueue {cluster.namespace}"
    for jobs, answer, message in (
            ([job], "waits", f"ClusterQueue plan-gone: not found: create it or correct spec.clusterQueue of the {local}/preempting"),
            ([wrong], "waits", f"{local}/plan-typo: not found: create it or correct the label kueue.x-k8s.io/queue-name of the job"),
            ([job, other], "unknown", f"{local}/preempting: Kueue admits each of the 2 jobs of the files by itself: plan the jobs one by one")):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs})
        done = run(harness.TRAINER, "plan", "-n", cluster.namespace, "-o", "json", "-f", "-", text=text, check=False)
        said = json.loads(done.stdout)
        assert (done.returncode, said["answer"]) == (1, answer), f"{done.returncode}: {done.stdout}{done.stderr}"
        assert message in [reason["message"] for reason in said["reasons"]], said
    api.call("DELETE", f"{QUEUES}/namespaces/{cluster.namespace}/localqueues/preempting")
    clear(api)


def preemptible(name, priority):
    """A job that takes all of the quota."""
    pod = {"restartPolicy": "Never", "tolerations": list(TOLERATED), "containers": [{"name": "c", "image": "localhost/none:1", "resources": {
        "requests": {"cpu": "2"}}}]}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {
        "name": name, "labels": {kueue.QUEUE: "preempting", kueue.PRIORITY: priority}}, "spec": {"replicatedJobs": [
            {"name": "r", "replicas": 1, "template": {"spec": {"parallelism": 1, "completions": 1, "template": {"spec": pod}}}}]}}


if __name__ == "__main__":
    harness.main(__file__)
