#!/usr/bin/python3
"""A stolen token of the controller of V1 jobs is used: with each set of kinds, and with the policies of
overlays/restrict-v1-controller. v1_rights_test.py shows that the controller does all of its work under these.

Needs a control plane without node and with an audit log (AUDIT=yes).
"""
import json
import tempfile

import harness
import rights_test
import v1_rights_test
from harness import Failed, run, wait_until
from rights_test import documents
from v1_rights_test import ACCOUNT, FRAMEWORKS, SYSTEM, job

RBAC = "rbac.authorization.k8s.io"
# Only MPIJobs need these: verb and resource, some with a group or a subresource.
OF_MPIJOBS = [("create", "pods/exec"), ("create", "serviceaccounts"), ("create", "configmaps"), ("patch", "configmaps"),
              ("create", f"roles.{RBAC}"), ("patch", f"roles.{RBAC}"), ("create", f"rolebindings.{RBAC}"), ("patch", f"rolebindings.{RBAC}"),
              ("list", "mpijobs.kubeflow.org"), ("delete", "mpijobs.kubeflow.org"), ("patch", "mpijobs.kubeflow.org/status")]
OF_ALL = [("create", "pods"), ("delete", "pods"), ("patch", "pods"), ("list", "pytorchjobs.kubeflow.org"), ("create", "services")]
NOT_NEEDED = [("get", "secrets"), ("create", "secrets"), ("create", "jobs.batch"), ("create", f"clusterrolebindings.{RBAC}"),
             ("create", "pods/attach"), ("create", "pods/portforward"), ("update", "pods"), ("delete", f"roles.{RBAC}")]


def objects_of(*overlays):
    """Without Deployment, Namespace and CRDs, which rights_test.install() has its own way of applying."""
    return [o for o in documents(*overlays) if o["kind"] not in ("Deployment", "Namespace", "CustomResourceDefinition")]


def which_are_granted(rights, namespace):
    """Whether the controller's token has each right, by one request of kubectl for all of them."""
    def review(verb, right):
        kind, _, subresource = right.partition("/")
        resource, _, group = kind.partition(".")
        return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": f"system:serviceaccount:{SYSTEM}:{ACCOUNT}", "groups": ["system:serviceaccounts", "system:authenticated"],
                         "resourceAttributes": {"namespace": namespace, "verb": verb, "group": group, "resource": resource, "subresource": subresource}}}

    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [review(*right) for right in rights]})
    answers = run("kubectl", "create", "-f", "-", "-o", "jsonpath={.status.allowed} ", text=text).stdout.split()
    assert len(answers) == len(rights), answers
    return [answer == "true" for answer in answers]


def controller_of(directory, kinds):
    controller = harness.Controller(directory, kubeconfig=rights_test.kubeconfig(directory, SYSTEM, ACCOUNT),
                                    env={"KUBERNETES_SERVICE_HOST": rights_test.HOST, "MY_POD_NAMESPACE": SYSTEM})
    controller.command = harness.manager_command(directory, "--leader-elect", *(f"--enable-scheme={kind}" for kind in kinds))
    return controller


def check_kinds_work(cluster, kinds):
    """Each kind gets its pod, and nothing that the controller asks for is refused."""
    audit = rights_test.Audit(cluster.namespace, SYSTEM, ACCOUNT)
    with tempfile.TemporaryDirectory() as directory:
        controller = controller_of(directory, kinds)
        controller.start()
        try:
            jobs = [job(kind, f"a-{kind.lower()}") for kind in FRAMEWORKS if kind.lower() in kinds]
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs})
            wait_until("the jobs are admitted", lambda: run("kubectl", "-n", cluster.namespace, "apply", "-f", "-", text=text,
                                                            check=False).returncode == 0)
            for o in jobs:
                wait_until(f"{o['kind']} has Created", lambda o=o: cluster.condition(o["kind"].lower(), o["metadata"]["name"], "Created"))
            wait_until("each has a pod", lambda: len({p["metadata"]["ownerReferences"][0]["name"] for p in cluster.list("pods")}) == len(jobs))
            audit.read()
            assert not audit.refused, audit.refused
        finally:
            controller.kill()
            cluster.kubectl("delete", ",".join(f"{kind}s.kubeflow.org" for kind in kinds), "--all", "--wait=false", check=False)
            cluster.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", check=False)


def test_only_with_mpijobs_the_token_reaches_into_pods(cluster):
    others = [kind.lower() for kind in FRAMEWORKS if kind != "MPIJob"]
    alone = [("manifests/overlays/standalone", ["mpijob"])] if harness.IS_LONG else []
    for overlay, kinds in (("manifests/overlays/standalone-without-mpijob", others), *alone, ("manifests/overlays/standalone", [*others, "mpijob"])):
        objects = objects_of(overlay)
        has_mpijob = "mpijob" in kinds
        v1_rights_test.install(objects)
        try:
            wait_until("the rights are there", lambda: which_are_granted([("create", "pods")], cluster.namespace) == [True])
            expected = [(right, wanted) for rights, wanted in ((OF_MPIJOBS, has_mpijob), (OF_ALL, True), (NOT_NEEDED, False)) for right in rights]
            granted = which_are_granted([right for right, _ in expected], cluster.namespace)
            wrong = [f"{overlay}: {verb} {resource}: {is_granted}"
                     for ((verb, resource), wanted), is_granted in zip(expected, granted) if is_granted != wanted]
            assert not wrong, "\n".join(wrong)
            check_kinds_work(cluster, kinds)
        finally:
            v1_rights_test.uninstall(objects)


def pod(name, *owners, labels=None):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "ownerReferences": list(owners), "labels": labels or {}},
            "spec": {"containers": [{"name": "a", "image": "localhost/none:1"}]}}


def pods_path(cluster, name="", more=""):
    return f"/api/v1/namespaces/{cluster.namespace}/pods" + (f"/{name}{more}" if name else "")


def expect(thief, cluster, what, method, path, body, reason):
    """Refused for this reason, once the policies are in force; None: it is allowed."""
    content = "application/" + ("json" if method != "PATCH" else "json-patch+json" if isinstance(body, list) else "merge-patch+json")
    said = []

    def is_so():
        code, answer = thief.call(method, path, body, content)
        said[:] = [code, answer]
        if reason is None:
            return code in (200, 201)
        if method == "POST" and code == 201:   # before the policy is in force
            run("kubectl", "-n", cluster.namespace, "delete", body["kind"], body["metadata"]["name"], "--force", "--grace-period=0", check=False)
        return code in (403, 422) and reason in json.dumps(answer)

    try:
        wait_until(f"{what}: {reason or 'allowed'}", is_so, every=0.5)
    except Failed as late:
        raise Failed(f"{late}: {said}") from late


def check_pods(thief, cluster, owner, of_replica_set):
    owns, changes, connects = "only pods that a V1 job controls", "nothing of a pod but activeDeadlineSeconds", "connects to no pod"
    image = {"op": "replace", "path": "/spec/containers/0/image", "value": "x"}
    rows = (
        ("exec into a pod of others", "POST", pods_path(cluster, "theirs", "/exec?command=id&stdout=1"), None, connects),
        ("exec into a pod of a job", "POST", pods_path(cluster, "m-worker-0", "/exec?command=id&stdout=1"), None, connects),
        ("a pod of others is changed", "PATCH", pods_path(cluster, "theirs"), {"spec": {"activeDeadlineSeconds": 1}}, owns),
        ("the image of a pod of others", "PATCH", pods_path(cluster, "theirs"), [image], owns),
        ("a pod of others is taken over", "PATCH", pods_path(cluster, "theirs"), {"metadata": {"ownerReferences": [owner]}}, owns),
        ("the image of a job's pod", "PATCH", pods_path(cluster, "m-worker-0"),
         [image, {"op": "add", "path": "/spec/activeDeadlineSeconds", "value": 1}], changes),
        ("the labels of a job's pod", "PATCH", pods_path(cluster, "m-worker-0"),
         {"metadata": {"labels": {"a": "c"}}, "spec": {"activeDeadlineSeconds": 1}}, "no labels, annotations, finalizers and owners"),
        ("a pod of others is deleted", "DELETE", pods_path(cluster, "theirs"), None, owns),
        ("a pod of a ReplicaSet is deleted", "DELETE", pods_path(cluster, of_replica_set), None, owns),
        ("a pod of no job", "POST", pods_path(cluster), pod("planted"), owns),
        ("a pod of another name", "POST", pods_path(cluster), pod("kube-proxy", owner), owns),
        ("a job's pod is ended", "PATCH", pods_path(cluster, "m-worker-0"), {"spec": {"activeDeadlineSeconds": 1}}, None),
        ("a job's pod is created", "POST", pods_path(cluster), pod("m-worker-1", owner), None),
        ("a job's pod is deleted", "DELETE", pods_path(cluster, "m-worker-0"), None, None))
    for row in rows:
        expect(thief, cluster, *row)


def check_what_mpijobs_own(thief, cluster, owner):
    roles = f"/apis/{RBAC}/v1/namespaces/{cluster.namespace}/roles"
    bindings = roles.replace("/roles", "/rolebindings")

    def role_of(name, *rules, owners=(owner,)):
        return {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": name, "ownerReferences": list(owners)}, "rules": list(rules)}

    def binding(name, of="m-launcher", namespace=cluster.namespace):
        return {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": {"name": name, "ownerReferences": [owner]},
                "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": of},
                "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}]}

    def config_map(name, *owners):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": list(owners)}, "data": {"a": "b"}}

    reads = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}

    def execs(**names):
        return {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"], **names}

    maps = f"/api/v1/namespaces/{cluster.namespace}/configmaps"
    controlled, gives = "only objects that an MPIJob controls", "no right but to read pods, and to exec into workers of the same MPIJob"
    rows = (
        ("exec into every pod", "POST", roles, role_of("m-launcher", reads, execs()), gives),
        ("exec into a pod of others", "POST", roles, role_of("m-launcher", reads, execs(resourceNames=["theirs"])), gives),
        ("a Role of no job", "POST", roles, role_of("planted", reads, owners=()), controlled),
        ("a ConfigMap of others", "PATCH", f"{maps}/theirs", {"data": {"a": "c"}}, controlled),
        ("a ConfigMap of no job", "POST", maps, config_map("planted"), controlled),
        ("a ServiceAccount of no job", "POST", maps.replace("configmaps", "serviceaccounts"),
         {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "planted"}}, controlled),
        ("the launcher's Role", "POST", roles, role_of("m-launcher", reads, execs(resourceNames=["m-worker-0"])), None),
        ("a binding for another namespace", "POST", bindings, binding("m-launcher", namespace="default"), "a ServiceAccount of the same namespace"),
        ("the launcher's binding", "POST", bindings, binding("m-launcher"), None),
        ("the job's ConfigMap", "POST", maps, config_map("m-config", owner), None))
    for row in rows:
        expect(thief, cluster, *row)


def test_a_stolen_token_changes_no_pod_of_others(cluster):
    objects = objects_of("manifests/overlays/standalone", "manifests/overlays/restrict-v1-controller")
    v1_rights_test.install(objects)
    try:
        # It exists, since garbage collection would take what an invented owner has.
        cluster.apply(job("MPIJob", "m", runPolicy={"suspend": True}))
        owner = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "m", "controller": True,
                 "uid": cluster.get("mpijob", "m")["metadata"]["uid"]}
        template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("a")["spec"]}
        cluster.apply(pod("theirs"), pod("m-worker-0", owner), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}},
                      {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"},
                       "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template}})
        [web] = wait_until("the ReplicaSet has a pod", lambda: cluster.list("pods", "-l", "app=web"))
        with tempfile.TemporaryDirectory() as directory:
            thief = rights_test.Api(rights_test.kubeconfig(directory, SYSTEM, ACCOUNT))
            check_pods(thief, cluster, owner, web["metadata"]["name"])
            check_what_mpijobs_own(thief, cluster, owner)
    finally:
        cluster.kubectl("delete", "mpijobs.kubeflow.org,replicasets", "--all", "--wait=false", check=False)
        v1_rights_test.uninstall(objects)


if __name__ == "__main__":
    harness.main(__file__)
