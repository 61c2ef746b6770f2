#!/usr/bin/python3
"""Exclusive placement: a Job's first pod chooses a rack for itself, the others follow it there, also when it moves; and pods of other
workloads are not touched.

Needs a control plane without node. The nodes are mere objects; pods are bound to them by the test where it matters when, else by the
scheduler. The controller has the rights of the shipped ServiceAccount with those of the overlay.
"""
import contextlib
import json
import os
import pathlib
import shutil
import sys
import tempfile

import harness
from harness import ROOT, run, wait_until

sys.path.insert(0, str(ROOT / "tests/conformance"))
from conform import Api  # noqa: E402

TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
NAME, JOB_KEY, PRIORITY = (f"jobset.sigs.k8s.io/{what}" for what in ("jobset-name", "job-key", "priority"))
INDEX = "batch.kubernetes.io/job-completion-index"
RACK = "example.com/rack"
MANAGER = "kubeflow-trainer-controller-manager"
POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "localhost/none:1"}]}


def jobset(name, pods=3, annotations=None, **pod):
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name, "annotations": annotations or {}}, "spec": {
        "replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": {
            "parallelism": pods, "completions": pods, "completionMode": "Indexed", "podReplacementPolicy": "Failed",
            "template": {"spec": {**POD, **pod}}}}}]}}


def rights(directory):
    """The kubeconfig of the shipped ServiceAccount, which outside of a cluster also makes webhook configurations."""
    for how, what in (("-k", "manifests/rbac"), ("-f", "manifests/overlays/exclusive-placement/rbac.yaml")):
        run("kubectl", "apply", "--server-side", how, str(ROOT / what))
    for command in (("clusterrole", "testbed-webhooks", "--verb=create,delete,get,patch",
                     "--resource=mutatingwebhookconfigurations,validatingwebhookconfigurations"),
                    ("clusterrolebinding", "testbed-webhooks", "--clusterrole=testbed-webhooks",
                     f"--serviceaccount=kubeflow-system:{MANAGER}")):
        made = run("kubectl", "create", *command, "--dry-run=client", "-o", "yaml").stdout
        run("kubectl", "apply", "--server-side", "-f", "-", text=made)
    path = pathlib.Path(directory) / "kubeconfig"
    shutil.copy(os.environ["KUBECONFIG"], path)
    token = run("kubectl", "-n", "kubeflow-system", "create", "token", MANAGER).stdout.strip()
    run("kubectl", "--kubeconfig", str(path), "config", "unset", "users")
    run("kubectl", "--kubeconfig", str(path), "config", "set-credentials", "admin", f"--token={token}")
    return path


class Scene:
    """A namespace, a controller with the pod webhooks, and two racks of one node."""

    def __init__(self, cluster, directory):
        self.cluster = cluster
        self.api = Api(os.environ["KUBECONFIG"])
        self.racks = {rack: f"{cluster.namespace}-{rack}" for rack in ("a", "b")}
        self.controller = harness.Controller(directory, "--webhook-url", f"https://{os.environ['TESTBED_HOST']}:9443",
                                             kubeconfig=rights(directory))
        config = pathlib.Path(directory) / "controller.yaml"
        config.write_text(config.read_text().replace("port: 9443}", "port: 9443, exclusivePlacement: true}"))

    def call(self, method, path, body=None, content_type="application/json"):
        code, answer = self.api.call(method, path, body, content_type)
        assert code < 300, f"{method} {path}: {code} {answer}"
        return answer

    def make_nodes(self):
        room = {"cpu": "8", "memory": "16Gi", "pods": "20"}
        for rack, name in self.racks.items():
            # Racks have the test in their name: what another test left behind cannot be in them.
            self.call("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {RACK: f"{self.cluster.namespace}-{rack}"}},
                                                "status": {"capacity": room, "allocatable": room}})

    def clean_up(self):
        self.cluster.kubectl("delete", "jobsets,pods", "--all", "--force", "--grace-period=0", "--wait=false", check=False)
        run("kubectl", "delete", "nodes", *self.racks.values(), check=False)

    def pods(self, owner):
        """The pods that live, by index."""
        return {int(p["metadata"]["annotations"][INDEX]): p for p in self.cluster.list("pods", "-l", f"{NAME}={owner}")
                if "deletionTimestamp" not in p["metadata"]}

    def bind(self, pod, rack):
        path = self.api.path("Pod", self.cluster.namespace, pod["metadata"]["name"])
        self.call("POST", path + "/binding", {"target": {"kind": "Node", "name": self.racks[rack]}, "metadata": {"name": pod["metadata"]["name"]}})

    def lose(self, pod):
        """Removes a pod at once and past the Job controller, which would wait for a kubelet, and then for longer after each failure."""
        path = self.api.path("Pod", self.cluster.namespace, pod["metadata"]["name"])
        self.call("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        code, answer = self.api.call("DELETE", path, {"gracePeriodSeconds": 0})
        assert code in (200, 404), answer

    def leader(self, owner, other_than=None):
        uid = other_than and other_than["metadata"]["uid"]
        return wait_until(f"a leader of {owner}", lambda: next(
            (p for i, p in self.pods(owner).items() if i == 0 and p["metadata"]["uid"] != uid), None))

    def followers(self, owner, rack, count=2):
        """Waits until so many followers are sent to this rack, and none elsewhere."""
        def sent():
            pods = [p for i, p in self.pods(owner).items() if i != 0]
            wanted = f"{self.cluster.namespace}-{rack}"
            return pods if len(pods) == count and all(p["spec"].get("nodeSelector") == {RACK: wanted} for p in pods) else None
        return wait_until(f"{count} followers of {owner} in rack {rack}", sent)

    def refusals(self, text):
        return [e for e in self.cluster.list("events") if e["reason"] == "FailedCreate" and text in e["message"]]


@contextlib.contextmanager
def scene(cluster):
    with tempfile.TemporaryDirectory() as directory:
        made = Scene(cluster, directory)
        made.controller.start()
        try:
            made.make_nodes()
            yield made
            made.controller.stop()
        finally:
            made.clean_up()
            made.controller.kill()


def webhooks():
    """The names of this controller's webhook configurations that exist."""
    found = run("kubectl", "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "name").stdout
    return [name for name in found.split() if name.endswith("trainer.kubeflow.org")]


def terms(pod, kind):
    return pod["spec"].get("affinity", {}).get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution", [])


def test_followers_go_where_their_leader_is(cluster):
    with scene(cluster) as s:
        cluster.apply(jobset("s", annotations={TOPOLOGY: RACK}, schedulerName="none"))
        leader = s.leader("s")
        key = leader["metadata"]["labels"][JOB_KEY]
        together, = terms(leader, "podAffinity")
        assert together["topologyKey"] == RACK and together["namespaceSelector"] == {}, together
        assert together["labelSelector"]["matchExpressions"] == [{"key": JOB_KEY, "operator": "In", "values": [key]}], together
        apart, = terms(leader, "podAntiAffinity")
        assert {"key": PRIORITY, "operator": "In", "values": ["0"]} in apart["labelSelector"]["matchExpressions"], apart
        assert leader["metadata"]["labels"][PRIORITY] == "0"
        wait_until("followers are refused", lambda: s.refusals("follower pod node selector not set"))
        assert set(s.pods("s")) == {0}

        s.bind(leader, "a")
        followers = s.followers("s", "a")
        for follower in followers:
            assert not terms(follower, "podAffinity") and follower["metadata"]["labels"][PRIORITY] == "0"
            s.bind(follower, "a")   # pods of no node that end are soon collected

        # The leader is lost, and its successor is placed elsewhere.
        s.lose(leader)
        second = s.leader("s", other_than=leader)
        s.bind(second, "b")
        for follower in followers:
            name = follower["metadata"]["name"]
            going = wait_until(f"{name} is deleted", lambda name=name: (p := cluster.get("pod", name))["metadata"].get("deletionTimestamp") and p)
            mark = next(c for c in going["status"]["conditions"] if c["type"] == "DisruptionTarget")
            assert (mark["status"], mark["reason"]) == ("True", "ExclusivePlacementViolation"), mark
            assert mark["message"] == "Pod violated JobSet exclusive placement policy", mark
            s.lose(going)
        s.followers("s", "b")
        assert s.pods("s")[0]["metadata"]["uid"] == second["metadata"]["uid"], "the leader was replaced"


def test_the_scheduler_gives_each_job_a_rack_of_its_own(cluster):
    with scene(cluster) as s:
        for name in ("one", "two", "three"):
            # Nodes without a kubelet are soon taken for lost.
            cluster.apply(jobset(name, pods=2, annotations={TOPOLOGY: RACK}, tolerations=[{"operator": "Exists"}]))

        def placed():
            found = {}
            for name in ("one", "two", "three"):
                pods = s.pods(name)
                nodes = {p["spec"].get("nodeName") for p in pods.values()}
                if len(pods) == 2 and None not in nodes:
                    found[name] = nodes
            return found if len(found) == 2 else None

        found = wait_until("two of three JobSets have a rack", placed)
        assert sorted(map(sorted, found.values())) == [[n] for n in sorted(s.racks.values())], found
        waiting, = {"one", "two", "three"} - set(found)
        wait_until("the third has its leader", lambda: s.pods(waiting))
        assert set(s.pods(waiting)) == {0} and "nodeName" not in s.pods(waiting)[0]["spec"]


def test_a_restart_prefers_another_node(cluster):
    """Both nodes would do; the one that lost the pod is avoided by the next attempt, and only preferably."""
    with scene(cluster) as s:
        made = jobset("moves", pods=1, tolerations=[{"operator": "Exists"}])
        made["spec"]["failurePolicy"] = {"maxRestarts": 1}
        made["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 0
        cluster.apply(made)

        def placed(attempt):
            pod = s.pods("moves").get(0)
            return pod if pod and pod["spec"].get("nodeName") and pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] == attempt else None

        first = wait_until("attempt 0 has a node", lambda: placed("0"))
        lost = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager", "message": "the node is gone"}
        s.call("PATCH", s.api.path("Pod", cluster.namespace, first["metadata"]["name"]) + "/status",
               {"status": {"phase": "Failed", "conditions": [lost]}}, "application/strategic-merge-patch+json")
        second = wait_until("attempt 1 has a node", lambda: placed("1"), seconds=60)
        node = first["spec"]["nodeName"]
        assert second["spec"]["nodeName"] != node, second["spec"]
        term = {"weight": 100, "preference": {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [node]}]}}
        assert second["spec"]["affinity"] == {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}, second["spec"]["affinity"]
        assert cluster.condition("jobset", "moves", "AvoidedNode")["message"].startswith(node + ": "), cluster.get("jobset", "moves")["status"]


def test_other_pods_are_left_alone(cluster):
    with scene(cluster) as s:
        # With nodes that were prepared for the Job there are no leaders and no followers.
        cluster.apply(jobset("prepared", annotations={TOPOLOGY: RACK, NODE_SELECTOR: "true"}, schedulerName="none"))
        pods = wait_until("all pods on prepared nodes", lambda: len(found := s.pods("prepared")) == 3 and found)
        for pod in pods.values():
            assert list(pod["spec"]["nodeSelector"]) == ["alpha.jobset.sigs.k8s.io/namespaced-job"], pod["spec"]
            assert "affinity" not in pod["spec"] and PRIORITY not in pod["metadata"]["labels"]
        s.bind(pods[0], "a")

        # Without the annotation, leaders of equal priority must know them; that is all.
        cluster.apply(jobset("plain", schedulerName="none"))
        pods = wait_until("all pods of an ordinary JobSet", lambda: len(found := s.pods("plain")) == 3 and found)
        for pod in pods.values():
            assert "affinity" not in pod["spec"] and "nodeSelector" not in pod["spec"]
            assert pod["metadata"]["labels"][PRIORITY] == "0"
        s.bind(pods[0], "a")

        # A pod that belongs to no JobSet is not sent to the webhook. While the controller is down, only pods of exclusive JobSets wait.
        s.controller.kill()
        annotations = {NAME: "x", TOPOLOGY: RACK, INDEX: "1"}
        cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger", "annotations": annotations}, "spec": POD},
                      {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "member", "labels": {NAME: "x"}, "annotations": {NAME: "x"}}, "spec": POD})
        stranger = cluster.get("pod", "stranger")
        assert "affinity" not in stranger["spec"] and "labels" not in stranger["metadata"]
        exclusive = {"apiVersion": "v1", "kind": "Pod", "spec": POD, "metadata": {
            "name": "exclusive", "labels": {NAME: "x"}, "annotations": annotations}}
        refused = cluster.refusal(exclusive)
        assert "failed calling webhook" in refused and "placer.pods.jobset.trainer.kubeflow.org" in refused, refused
        assert webhooks(), "the webhooks of a process that was killed are gone"
        # The next process takes the webhooks over, and takes them away at its end.
        s.controller.start()
        wait_until("pods of exclusive JobSets are checked again", lambda: "failed calling webhook" not in run(
            "kubectl", "-n", cluster.namespace, "apply", "-f", "-", text=json.dumps(exclusive), check=False).stderr)
        for name in ("prepared", "plain"):
            assert len(s.pods(name)) == 3, f"pods of {name} were deleted"
        s.controller.stop()
        assert not webhooks(), f"left behind: {webhooks()}"


if __name__ == "__main__":
    harness.main(__file__)
