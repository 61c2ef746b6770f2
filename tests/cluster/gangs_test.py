#!/usr/bin/python3
"""Gangs of Kubernetes' own scheduler: no pod of a job is placed before there is room for all, and a cluster without them says so.

Needs a control plane without node; the nodes are mere objects. That of 1.37 has such gangs with this gate:
KUBERNETES=1.37.2 FEATURE_GATES=GenericWorkload=true RUNTIME_CONFIG=scheduling.k8s.io/v1beta1=true run gangs_test.py
The controller has the rights of the shipped ServiceAccount, and uses all of those to gangs.
"""
import contextlib
import json
import tempfile

import harness
from harness import Skipped, TRAINER, run, wait_until
from placement_test import rights
from rights_test import OF_NATIVE_GANGS, Audit

GROUPS, WORKLOADS = "podgroups.scheduling.k8s.io", "workloads.scheduling.k8s.io"
CPUS = 3   # of a node; a pod asks for one


def is_served():
    return "scheduling.k8s.io/v1beta1" in run("kubectl", "api-versions").stdout.split()


def needs_gangs():
    if not is_served():
        raise Skipped("scheduling.k8s.io/v1beta1 is not served here")


def runtime():
    container = {"name": "node", "image": "localhost/none:1", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}
    # No kubelet reports about the nodes, so they are tainted after a while.
    pod = {"restartPolicy": "Never", "tolerations": [{"operator": "Exists"}], "containers": [container]}
    job = {"name": "node", "template": {"metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                                        "spec": {"backoffLimit": 0, "template": {"spec": pod}}}}
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime",
            "metadata": {"name": "gang", "labels": {"trainer.kubeflow.org/framework": "torch"}},
            "spec": {"mlPolicy": {"torch": {}}, "podGroupPolicy": {"workload": {}}, "template": {"spec": {"replicatedJobs": [job]}}}}


def trainjob(name, nodes, **spec):
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": name},
            "spec": {"runtimeRef": {"name": "gang", "kind": "TrainingRuntime"}, "trainer": {"numNodes": nodes}, **spec}}


class Scene:
    def __init__(self, cluster):
        self.cluster, self.nodes = cluster, []

    def add_node(self):
        name = f"{self.cluster.namespace}-{len(self.nodes)}"
        room = {"cpu": str(CPUS), "memory": "16Gi", "pods": "20"}
        run("kubectl", "create", "-f", "-", text=json.dumps(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"capacity": room, "allocatable": room}}))
        self.nodes.append(name)

    def remove_node(self):
        run("kubectl", "delete", "node", self.nodes.pop())

    def pods(self, job):
        """The pods that live: for each, whether it is bound."""
        return ["nodeName" in p["spec"] for p in self.cluster.list("pods", "-l", f"jobset.sigs.k8s.io/jobset-name={job}")
                if "deletionTimestamp" not in p["metadata"]]

    def wait_for_pods(self, job, bound, pods):
        wait_until(f"{bound} of {pods} pods of {job} are bound", lambda: sorted(self.pods(job)) == [False] * (pods - bound) + [True] * bound,
                   shown=lambda: self.pods(job))

    def wait_until_refused(self, job):
        """The scheduler has tried to place the gang, and said so about the group."""
        def has_tried():
            conditions = (self.cluster.get(GROUPS, job) or {}).get("status", {}).get("conditions", [])
            return any(c["reason"] == "Unschedulable" and c["status"] == "False" for c in conditions)
        wait_until(f"the scheduler refuses the group of {job}", has_tried, shown=lambda: self.cluster.get(GROUPS, job))

    def reason(self, job):
        return ((self.cluster.get("trainjob", job) or {}).get("status") or {}).get("reason")


@contextlib.contextmanager
def scene(cluster):
    with tempfile.TemporaryDirectory() as directory:
        controller = harness.Controller(directory, *harness.ADMISSION, kubeconfig=rights(directory))
        made = Scene(cluster)
        controller.start()
        try:
            wait_until("the runtime is admitted", lambda: run("kubectl", "-n", cluster.namespace, "apply", "-f", "-", check=False,
                                                              text=json.dumps(runtime())).returncode == 0)
            yield made
            controller.stop()
        finally:
            cluster.kubectl("delete", "trainjobs,jobsets,pods", "--all", "--force", "--grace-period=0", "--wait=false", check=False)
            for node in made.nodes:
                run("kubectl", "delete", "node", node, check=False)
            controller.kill()


def test_a_gang_is_placed_whole_or_not_at_all(cluster):
    needs_gangs()
    audit = Audit(cluster.namespace)
    with scene(cluster) as s:
        s.add_node()
        cluster.apply(trainjob("wide", 4))
        s.wait_for_pods("wide", bound=0, pods=4)
        s.wait_until_refused("wide")
        assert sum(s.pods("wide")) == 0, "pods of a gang that does not fit are bound"
        wait_until("the status says it", lambda: s.reason("wide") == "GangNotReady", shown=lambda: cluster.get("trainjob", "wide").get("status"))
        why = run(TRAINER, "why", "wide", "-n", cluster.namespace, check=False).stdout
        assert "GangNotReady" in why and "cpu" in why.lower(), why

        # Both objects are the job's, and go with it.
        for kind in (WORKLOADS, GROUPS):
            owner = cluster.get(kind, "wide")["metadata"]["ownerReferences"][0]
            assert (owner["kind"], owner["name"], owner["controller"]) == ("TrainJob", "wide", True), owner

        # A gang that fits passes one that does not.
        cluster.apply(trainjob("narrow", 2))
        s.wait_for_pods("narrow", bound=2, pods=2)
        s.add_node()
        s.wait_for_pods("wide", bound=4, pods=4)
    audit.read()
    assert not audit.refused, audit.refused
    assert OF_NATIVE_GANGS <= audit.used, OF_NATIVE_GANGS - audit.used


def test_a_gang_that_resumes_is_a_gang_again(cluster):
    needs_gangs()
    with scene(cluster) as s:
        s.add_node()
        s.add_node()
        cluster.apply(trainjob("again", 4))
        s.wait_for_pods("again", bound=4, pods=4)
        cluster.kubectl("patch", "trainjob", "again", "--type=merge", "-p", '{"spec": {"suspend": true}}')

        def are_gone():   # no kubelet ends them
            cluster.kubectl("delete", "pods", "-l", "jobset.sigs.k8s.io/jobset-name=again", "--force", "--grace-period=0", "--wait=false", check=False)
            return not cluster.list("pods")
        wait_until("the pods are gone", lambda: cluster.condition("trainjob", "again", "Suspended") and are_gone())
        s.remove_node()
        cluster.kubectl("patch", "trainjob", "again", "--type=merge", "-p", '{"spec": {"suspend": false}}')
        s.wait_for_pods("again", bound=0, pods=4)
        wait_until("the scheduler says why", lambda: any("FailedScheduling" == e["reason"] for e in cluster.list("events")))
        assert sum(s.pods("again")) == 0, "pods of a gang that does not fit any more are bound"
        s.add_node()
        s.wait_for_pods("again", bound=4, pods=4)


def test_a_cluster_without_such_gangs_says_so(cluster):
    if is_served():
        raise Skipped("scheduling.k8s.io/v1beta1 is served here")
    with scene(cluster) as s:
        cluster.apply(trainjob("unserved", 2))
        wait_until("the status says it", lambda: s.reason("unserved") == "ChildRefused", shown=lambda: cluster.get("trainjob", "unserved").get("status"))
        why = run(TRAINER, "why", "unserved", "-n", cluster.namespace, check=False).stdout
        assert "does not serve Workload of scheduling.k8s.io/v1beta1: switch it on in the API server" in why, why
        assert not cluster.list("pods"), "pods without their gang"


if __name__ == "__main__":
    harness.main(__file__)
