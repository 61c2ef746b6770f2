#!/usr/bin/python3
"""Topology-aware scheduling of a real Kueue: the job's annotations reach the right pods, neighbouring ranks are in one rack, and where a
machine is lost only its pod is replaced.

Needs a control plane without node. The nodes are mere objects, which the test keeps alive.
"""
import contextlib
import datetime
import json

import harness
import kueue
import kueue_test
from kueue_test import Client, Job, trainjob, v1_job, wait_until

HOST, RACK = "kubernetes.io/hostname", "example.com/rack"
REQUIRED, GATE = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/topology"
INDEX, V1_INDEX = "batch.kubernetes.io/job-completion-index", "training.kubeflow.org/replica-index"


class Machines:
    """Nodes of one CPU, so many in each rack, that report as a kubelet does. They start the pods that are bound to them, and end those that are to
    be deleted."""

    def __init__(self, cluster, racks):
        self.cluster, self.client = cluster, Client(cluster.namespace)
        self.nodes = {f"{cluster.namespace}-{rack}{i}": rack for rack, size in racks.items() for i in range(size)}

    @contextlib.contextmanager
    def live(self):
        room = {"cpu": "1", "memory": "16Gi", "pods": "20"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now(), "lastTransitionTime": now()}
        self.client.apply(*({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {
            HOST: name, RACK: rack, "pool": self.cluster.namespace}}} for name, rack in self.nodes.items()))
        leases = Client("kube-node-lease")
        leases.apply(*({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": {
            "holderIdentity": name, "leaseDurationSeconds": 40}} for name in self.nodes))
        for name in self.nodes:
            self.client.call("PATCH", "Node", name, "/status", {"status": {"capacity": room, "allocatable": room, "conditions": [ready]}})
        try:
            with harness.at_rate(4, lambda number: self.beat(number, leases)):
                yield self
        finally:
            for name in self.nodes:
                self.client.call("DELETE", "Node", name)

    def beat(self, number, leases):
        if number % 20 == 1:
            for name in list(self.nodes):
                leases.call("PATCH", "Lease", name, body={"spec": {"renewTime": now()}})
        for pod in self.client.list("Pod"):
            if pod["spec"].get("nodeName") not in self.nodes:
                continue
            if "deletionTimestamp" in pod["metadata"]:
                self.client.call("DELETE", "Pod", pod["metadata"]["name"], "?gracePeriodSeconds=0")
            elif pod["status"]["phase"] == "Pending":
                self.client.set_pod(pod, "Running")

    def lose(self, name):
        """The machine is gone with its pods, and Kubernetes knows it."""
        del self.nodes[name]
        self.client.call("DELETE", "Node", name)
        for pod in self.client.list("Pod"):
            if pod["spec"].get("nodeName") == name:
                self.client.call("DELETE", "Pod", pod["metadata"]["name"], "?gracePeriodSeconds=0")


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def topology(cluster, cpus):
    """A flavor of the machines of this test, in racks, and a queue of it."""
    name = cluster.namespace
    Client(name).apply({"apiVersion": kueue.API, "kind": "Topology", "metadata": {"name": name}, "spec": {
        "levels": [{"nodeLabel": RACK}, {"nodeLabel": HOST}]}}, kueue.flavor(name, name, name), kueue.cluster_queue(name, {name: cpus}),
        kueue.local_queue("queue", name))


def annotated(**annotations):
    """A patch of a user that annotates the pods of the replicated job `node`."""
    return {"manager": "example.com/me", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{"name": "node", "template": {
        "spec": {"template": {"metadata": {"annotations": annotations}}}}}]}}}}


def racks_by_rank(cluster, machines, pods, index):
    """The rack of each pod, ordered by the pods' ranks."""
    def rank(pod):
        return int(pod["metadata"]["labels"][index])
    return [machines.nodes[pod["spec"]["nodeSelector"][HOST]] for pod in sorted(pods, key=rank)]


def ungated(job, count):
    def placed():
        pods = [pod for pod in job.pods() if not pod["spec"].get("schedulingGates") and pod["spec"].get("nodeName")]
        return len(pods) == count and pods
    return wait_until(f"{count} pods of {job.name} are on their machines", placed, shown=job.said)


def test_neighbouring_ranks_are_in_one_rack(cluster):
    with kueue_test.scene(cluster), Machines(cluster, {"a": 2, "b": 3, "c": 2}).live() as machines:
        topology(cluster, 100)
        Client(cluster.namespace).apply(kueue_test.PLAIN)
        job = Job(cluster, kueue.queued(trainjob("ranks", trainer={"numNodes": 4}, runtimePatches=[
            annotated(**{"kueue.x-k8s.io/podset-preferred-topology": RACK})])))
        racks = racks_by_rank(cluster, machines, ungated(job, 4), INDEX)
        assert racks == sorted(racks) and len(set(racks)) == 2, racks
        cluster.kubectl("delete", "trainjob", "ranks", "--timeout=60s")
        wait_until("Kueue lets the Workload go", lambda: not cluster.list("workloads"))

        pytorchjob = v1_job("PyTorchJob", "pytorchReplicaSpecs", "pytorch", "Master", "Worker")
        worker = pytorchjob["spec"]["pytorchReplicaSpecs"]["Worker"]
        worker["replicas"] = 3
        worker["template"]["metadata"] = {"annotations": {REQUIRED: RACK}}
        pods = ungated(Job(cluster, kueue.queued(pytorchjob)), 4)
        workers = [pod for pod in pods if pod["metadata"]["labels"]["training.kubeflow.org/replica-type"] == "worker"]
        assert racks_by_rank(cluster, machines, workers, V1_INDEX) == ["b"] * 3, workers


def test_annotations_reach_the_pods_of_their_role(cluster):
    with kueue_test.scene(cluster), Machines(cluster, {"a": 2, "b": 2}).live() as machines:
        topology(cluster, 100)
        runtime = json.loads(json.dumps(kueue_test.PLAIN))
        helper = json.loads(json.dumps(runtime["spec"]["template"]["spec"]["replicatedJobs"][0]))
        runtime["spec"]["template"]["spec"]["replicatedJobs"].append({**helper, "name": "helper", "template": {"spec": helper["template"]["spec"]}})
        Client(cluster.namespace).apply(runtime)
        job = Job(cluster, kueue.queued(trainjob("roles", runtimePatches=[annotated(**{REQUIRED: RACK})])))
        requests = {each["name"]: each.get("topologyRequest", {}).get("required") for each in
                    wait_until("Kueue has its Workload", job.workload)["spec"]["podSets"]}
        assert requests == {"node": RACK, "helper": None}, requests
        pods = ungated(job, 3)
        for pod in pods:
            is_node = pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] == "node"
            assert pod["metadata"]["annotations"].get(REQUIRED) == (RACK if is_node else None), pod["metadata"]
        nodes = [pod for pod in pods if REQUIRED in pod["metadata"]["annotations"]]
        assert len(set(racks_by_rank(cluster, machines, nodes, INDEX))) == 1, nodes


def test_a_lost_machine_replaces_one_pod(cluster):
    """The Job is allowed to replace pods (backoffLimit), so that the training can go on with another machine of the rack."""
    with kueue_test.scene(cluster), Machines(cluster, {"a": 3}).live() as machines:
        topology(cluster, 100)
        runtime = json.loads(json.dumps(kueue_test.PLAIN))
        runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 3
        Client(cluster.namespace).apply(runtime)
        job = Job(cluster, kueue.queued(trainjob("swap", failurePolicy={"maxRestarts": 3}, runtimePatches=[annotated(**{REQUIRED: RACK})])))
        before = {pod["metadata"]["labels"][INDEX]: pod for pod in ungated(job, 2)}
        spare = set(machines.nodes) - {pod["spec"]["nodeName"] for pod in before.values()}
        machines.lose(before["1"]["spec"]["nodeName"])

        def replaced():
            pods = {pod["metadata"]["labels"][INDEX]: pod for pod in job.pods()}
            return pods.get("1", {"spec": {}})["spec"].get("nodeName") in spare and pods
        after = wait_until("the pod is on the spare machine", replaced, shown=job.said)
        assert after["0"]["metadata"]["uid"] == before["0"]["metadata"]["uid"], "the other pod was replaced, too"
        assert job.get()["status"].get("restarts", 0) == 0 and job.workload_condition("Admitted"), job.said()


if __name__ == "__main__":
    harness.main(__file__)
