#!/usr/bin/python3
"""Kubernetes' roles view, edit and admin, and Kubeflow's, hold what users of our kinds need, and no more: tried by impersonation.

Needs a control plane without node.
"""
import contextlib
import json

import yaml

import harness
import v1_test
from clients_test import runtime, trainjob
from harness import ROOT, run, wait_until

LEVELS = ("view", "edit", "admin")
JOBSET = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "s"}, "spec": {"suspend": True, "replicatedJobs":
          runtime()["spec"]["template"]["spec"]["replicatedJobs"]}}


def cluster_runtime():
    return {**runtime("for-all"), "kind": "ClusterTrainingRuntime"}


def is_allowed(cluster, user, *arguments, sent=None):
    """Whether the API server lets this user do that. Nothing is changed: what writes is a dry run."""
    done = run("kubectl", "-n", cluster.namespace, f"--as={user}", *arguments, text=json.dumps(sent) if sent else None, check=False)
    assert done.returncode == 0 or "orbidden" in done.stderr, f"{user}: {' '.join(arguments)}: {done.stderr}"
    return done.returncode == 0


def may(cluster, user, verb, resource):
    # kubectl reads what follows a slash as a name.
    resource, _, part = resource.partition("/")
    return run("kubectl", "-n", cluster.namespace, f"--as={user}", "auth", "can-i", verb, resource, f"--subresource={part}",
               check=False).stdout.strip() == "yes"


def bind(cluster, user, role):
    cluster.kubectl("create", "rolebinding", user, f"--clusterrole={role}", f"--user={user}")


@contextlib.contextmanager
def roles(objects):
    """These ClusterRoles, without those that other tests have left: some aggregate, and then their rules are Kubernetes' to write."""
    names = [o["metadata"]["name"] for o in objects]

    def remove():
        run("kubectl", "delete", "--ignore-not-found", "clusterroles", *names)

    remove()
    run("kubectl", "apply", "--server-side", "-f", "-", text=yaml.safe_dump_all(objects))
    try:
        yield
    finally:
        remove()


def cluster_roles(overlay, prefix):
    return [o for o in yaml.safe_load_all(run("kubectl", "kustomize", str(ROOT / overlay)).stdout)
            if o["kind"] == "ClusterRole" and o["metadata"]["name"] in [f"{prefix}-{level}" for level in LEVELS]]


def try_rows(cluster, rows):
    """(what is tried, what is sent, who may: the levels from this one on, or none)"""
    wrong = []
    for words, sent, least in rows:
        allowed = LEVELS[LEVELS.index(least):] if least else ()
        for level in LEVELS:
            if is_allowed(cluster, level, *words.split(), sent=sent) != (level in allowed):
                wrong.append(f"{level}: {words} {(sent or {}).get('kind', '')} {'is refused' if level in allowed else 'is allowed'}")
    assert not wrong, "\n".join(wrong)


READS = [(f"get {kind}", None, "view") for kind in ("trainjobs", "jobsets", "trainingruntimes", "pods", "events")]
CREATE = "create --dry-run=server -f -"
TRAINJOBS = [
    *READS,
    (CREATE, trainjob("new"), "edit"), (CREATE, {**JOBSET, "metadata": {"name": "new"}}, "edit"),
    ("patch trainjob j --dry-run=server --type=merge -p {\"spec\":{\"suspend\":false}}", None, "edit"),
    ("delete trainjob j --dry-run=server", None, "edit"), ("delete jobset s --dry-run=server", None, "edit"),
    ("delete trainjobs --all --dry-run=server", None, "edit"),
    (CREATE, runtime("new"), "admin"), ("delete trainingruntime plain --dry-run=server", None, "admin"),
    # These are for all namespaces: no role in one of them gives it.
    (CREATE, cluster_runtime(), None), ("get trainjobs --all-namespaces", None, None),
    # The controller's.
    ("patch trainjob j --dry-run=server --subresource=status --type=merge -p {\"status\":{\"phase\":\"Complete\"}}", None, None),
]


def test_roles_of_kubernetes(cluster):
    cluster.apply(runtime(), trainjob("j", suspend=True), JOBSET)
    users = [o for o in yaml.safe_load_all((ROOT / "manifests/rbac/users.yaml").read_text()) if o]
    with roles([o for o in users if o["kind"] == "ClusterRole"]):
        run("kubectl", "apply", "--server-side", "-f", "-", text=yaml.safe_dump_all([o for o in users if o["kind"] != "ClusterRole"]))
        for level in LEVELS:
            bind(cluster, level, level)
        wait_until("the roles are aggregated", lambda: may(cluster, "view", "list", "trainjobs") and may(cluster, "edit", "create", "jobsets")
                   and may(cluster, "admin", "create", "trainingruntimes"))
        try_rows(cluster, TRAINJOBS)
        # Runtimes of the cluster are for all to see, and jobs are not.
        assert is_allowed(cluster, "stranger", "get", "clustertrainingruntimes")
        assert not is_allowed(cluster, "stranger", "get", "trainjobs")
        for level in LEVELS:
            assert may(cluster, level, "get", "pods/log") and not may(cluster, level, "update", "trainjobs/status"), level
        # One life of a job by one who may edit, with what the SDK and kubectl ask.
        for words, sent in ((("apply", "-f", "-"), trainjob("mine", suspend=True)), (("get", "trainjob", "mine", "-o", "yaml"), None),
                            (("patch", "trainjob", "mine", "--type=merge", "-p", '{"spec":{"suspend":false}}'), None),
                            (("delete", "trainjob", "mine"), None)):
            assert is_allowed(cluster, "edit", *words, sent=sent), words


def platform(level, prefix):
    """Kubeflow's own role of this level, which collects others by their label."""
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": f"kubeflow-{level}"},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {f"rbac.authorization.kubeflow.org/{prefix}-{level}": "true"}}]}}


@harness.only_with_long
def test_roles_of_kubeflow(cluster):
    cluster.apply(runtime(), trainjob("j", suspend=True), JOBSET)
    kubeflow = [platform(level, "aggregate-to-kubeflow") for level in LEVELS]
    with roles(cluster_roles("manifests/overlays/kubeflow-platform", "kubeflow-trainer") + kubeflow):
        for level in LEVELS:
            bind(cluster, level, f"kubeflow-{level}")
            bind(cluster, f"direct-{level}", f"kubeflow-trainer-{level}")
        wait_until("the roles are aggregated", lambda: may(cluster, "view", "list", "trainjobs") and may(cluster, "edit", "create", "jobsets")
                   and may(cluster, "admin", "create", "trainjobs") and may(cluster, "direct-admin", "create", "trainjobs"))
        # Pods and events are also in what a platform has for itself; here there is nothing else.
        for level in ("edit", "admin"):
            for user in (level, f"direct-{level}"):
                assert is_allowed(cluster, user, *CREATE.split(), sent=trainjob("new")), user
                assert is_allowed(cluster, user, "delete", "trainjob", "j", "--dry-run=server"), user
        for user in ("view", "direct-view"):
            assert is_allowed(cluster, user, "get", "trainjobs"), user
            assert not is_allowed(cluster, user, *CREATE.split(), sent=trainjob("new")), user


def test_roles_of_v1_jobs(cluster):
    v1_test.install()
    cluster.apply(v1_test.pytorchjob("p", suspend=True))
    with roles(cluster_roles("manifests/overlays/kubeflow", "kubeflow-training")):
        for level in LEVELS:
            bind(cluster, level, f"kubeflow-training-{level}")
        wait_until("the role of admins is aggregated", lambda: may(cluster, "admin", "create", "pytorchjobs.kubeflow.org"))
        try_rows(cluster, [
            ("get pytorchjobs", None, "view"), (CREATE, v1_test.pytorchjob("new"), "edit"), ("delete pytorchjob p --dry-run=server", None, "edit"),
            ("patch pytorchjob p --dry-run=server --subresource=status --type=merge -p {\"status\":{\"startTime\":null}}", None, None)])


if __name__ == "__main__":
    harness.main(__file__)
