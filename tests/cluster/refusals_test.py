#!/usr/bin/python3
"""A refused child of a job (a Job, pod, Service or claim) is in its status within 15 s, and in `trainer why` with a next step. The API
server, its admission plugins, a policy or a webhook of others refuse it. Each refuser is tried with a TrainJob, a JobSet and a PyTorchJob, with
admission by this controller and without. Needs a control plane without node.
"""
import concurrent.futures
import contextlib
import json
import os
import tempfile
import time

import harness
import v1_test
from harness import Failed, TRAINER, run, wait_until

SECONDS = 15   # from the creation of the object to the sentence in its status
LABEL = "refusals-test"
FULL = os.environ.get("FULL") == "yes"   # without webhooks, too, each refuser is tried


def pod_spec(**more):
    container = {"name": "node", "image": "localhost/none:1", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "100m"}}}
    container.update(more.pop("container", {}))
    return {"containers": [container], **more}


def jobset_spec(pod, claims=False):
    # Without webhooks nothing fills in that pods have host names, and so a Service.
    spec = {"network": {"enableDNSHostnames": True}, "replicatedJobs": [{"name": "node", "replicas": 1, "template": {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", **pod}}}}}]}
    if claims:
        spec["volumeClaimPolicies"] = [{"templates": [{"metadata": {"name": "data"}, "spec": CLAIM_SPEC}]}]
    return spec


def objects_of(kind, name, pod, claims):
    """The objects to apply; the last one is the job."""
    if kind == "jobset":
        return [{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": jobset_spec(pod, claims)}]
    if kind == "pytorchjob":
        master = json.loads(json.dumps(pod).replace('"node"', '"pytorch"'))
        return [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name},
                 "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": {"spec": master}}}}}]
    runtime = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime",
               "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
               "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": jobset_spec(pod, claims)}}}
    return [runtime, {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": name},
                      "spec": {"runtimeRef": {"name": name, "kind": "TrainingRuntime"}}}]


def quota(hard):
    return [{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {"hard": hard}}]


LIMIT_RANGE = [{"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"},
                "spec": {"limits": [{"type": "Container", "max": {"cpu": "50m"}}]}}]


class Row:
    """One refuser. `says`: words of the status; `advice`: words of the next step; `reason`: by kind of job; `probe`: an object that the
    namespace refuses once the refuser is known there, None where it refuses a field; `setup`: objects of the namespace; `label`: of the
    namespace; `pod`: what the pod template has."""
    def __init__(self, name, says, advice, reason, probe=None, setup=(), label="a=b", kinds=("trainjob", "jobset", "pytorchjob"), **pod):
        self.name, self.says, self.advice, self.reason, self.probe = name, says, advice, reason, probe
        self.setup, self.label, self.kinds, self.pod = setup, label, kinds, pod


BY_POD = {"trainjob": "PodsRefused", "jobset": "PodsRefused", "pytorchjob": "PodsRefused"}
BY_JOB = {"trainjob": "JobsRefused", "jobset": "JobsRefused", "pytorchjob": "PodsRefused"}
QUOTA = dict.fromkeys(BY_POD, "QuotaExceeded")
BY_SERVICE = dict.fromkeys(BY_POD, "ServicesRefused")

NOT_V1 = ("trainjob", "jobset")
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": pod_spec()}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "probe"},
       "spec": {"template": {"spec": {"restartPolicy": "Never", **pod_spec()}}}}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "probe"}, "spec": {"ports": [{"port": 1}]}}
CLAIM_SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "probe"}, "spec": CLAIM_SPEC}

ROWS = [
    Row("gpu-without-limit", "Limit must be set for non overcommitable resources", "under limits, too", BY_JOB,
        container={"resources": {"requests": {"nvidia.com/gpu": "1"}}}),
    Row("mount-without-volume", "volumeMounts[0].name: Not found", "add the volume", BY_JOB,
        container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]}),
    Row("toleration", "tolerations[0]", "Correct the toleration", BY_JOB, tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
    Row("quota-of-pods", "exceeded quota: small", "resourcequota small", QUOTA, POD, quota({"pods": "0"})),
    Row("quota-of-jobs", "exceeded quota: small", "resourcequota small", QUOTA, JOB, quota({"count/jobs.batch": "0"}), kinds=NOT_V1),
    Row("quota-of-services", "exceeded quota: small", "resourcequota small", QUOTA, SERVICE, quota({"services": "0"})),
    Row("quota-of-claims", "exceeded quota: small", "resourcequota small", QUOTA, CLAIM, quota({"persistentvolumeclaims": "0"}), kinds=NOT_V1,
        container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]}),
    Row("limit-range", "maximum cpu usage per Container is 50m", "LimitRange", BY_POD, POD, LIMIT_RANGE),
    Row("pod-security", "violates PodSecurity", "Pod Security", BY_POD, POD, label="pod-security.kubernetes.io/enforce=restricted"),
    Row("service-account", 'serviceaccount "absent" not found', "Create the ServiceAccount", BY_POD, serviceAccountName="absent"),
    Row("policy", "no pods of training here", "admission policy", BY_POD, POD, label=f"{LABEL}=pods"),
    Row("policy-of-services", "no services of training here", "admission policy", BY_SERVICE, SERVICE, label=f"{LABEL}=services"),
    Row("webhook", "failed calling webhook", "does not answer", BY_POD, POD, label=f"{LABEL}=webhook"),
]


@contextlib.contextmanager
def refusers():
    """A policy for pods, one for Services, and a webhook for pods that does not answer, for namespaces with our label."""
    def policy(what):
        name = f"{LABEL}-{what}"
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [what]}
        return [{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
                 "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
                          "validations": [{"expression": "false", "message": f"no {what} of training here"}]}},
                {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
                 "spec": {"policyName": name, "validationActions": ["Deny"],
                          "matchResources": {"namespaceSelector": {"matchLabels": {LABEL: what}}}}}]
    webhook = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": LABEL},
               "webhooks": [{"name": "absent.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
                             "timeoutSeconds": 1, "clientConfig": {"url": "https://127.0.0.1:1/refuse"},
                             "namespaceSelector": {"matchLabels": {LABEL: "webhook"}},
                             "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}]}
    made = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*policy("pods"), *policy("services"), webhook]})
    run("kubectl", "apply", "-f", "-", text=made)
    try:
        yield
    finally:
        run("kubectl", "delete", "--ignore-not-found", "-f", "-", text=made)


def sentence(kind, status):
    """(reason, message) of what the status says is refused."""
    if kind == "trainjob":
        return status.get("reason", ""), status.get("message", "")
    return next(((c["reason"], c["message"]) for c in status.get("conditions", [])
                 if c["type"] == "ReplicaFailure" and c["status"] == "True"), ("", ""))


def check(cluster, row, kind):
    *before, job = objects_of(kind, f"{kind[:2]}-{row.name}", pod_spec(**row.pod), row.probe is CLAIM)
    if before:
        cluster.apply(*before)
    cluster.apply(job)
    name, began = job["metadata"]["name"], time.monotonic()

    def status():
        return (cluster.get(kind, name) or {}).get("status", {})
    wait_until(f"{kind} {name} says \"{row.says}\"", lambda: row.says in sentence(kind, status())[1], seconds=SECONDS,
               shown=lambda: f"its status is {json.dumps(status())}")
    took = time.monotonic() - began
    reason, message = sentence(kind, status())
    if reason != row.reason[kind]:
        raise Failed(f"{kind} {name}: the reason is {reason} instead of {row.reason[kind]}: {message}")
    report = json.loads(run(TRAINER, "why", f"{kind}/{name}", "-n", cluster.namespace, "-o", "json", check=False).stdout)
    if row.says not in report["message"] or row.advice not in report["nextStep"]:
        raise Failed(f"{kind} {name}: `trainer why` says {json.dumps(report)}")
    print(f"     {took:4.1f} s {kind} {row.name}: {reason}: {message[:160]}")


def check_row(row, namespace):
    cluster = harness.Cluster(f"{namespace}-{row.name}")
    run("kubectl", "delete", "namespace", cluster.namespace, "--ignore-not-found", "--wait", "--timeout=60s")
    run("kubectl", "create", "namespace", cluster.namespace)
    run("kubectl", "label", "namespace", cluster.namespace, row.label)
    if row.setup:
        cluster.apply(*row.setup)
    if row.probe:
        wait_until(f"{row.name} is in force", lambda: run("kubectl", "-n", cluster.namespace, "create", "--dry-run=server", "-f", "-",
                                                          text=json.dumps(row.probe), check=False).returncode != 0)
    errors = []
    for kind in row.kinds:
        try:
            check(cluster, row, kind)
        except AssertionError as error:
            errors.append(str(error))
    run("kubectl", "delete", "namespace", cluster.namespace, "--wait=false")
    return errors


def check_all(rows, namespace, *flags):
    v1_test.install()
    with tempfile.TemporaryDirectory() as directory, refusers():
        controller = harness.Controller(directory, "--enable-scheme", *flags).start()
        try:
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                errors = [e for found in pool.map(lambda row: check_row(row, namespace), rows) for e in found]
            controller.stop()
        finally:
            controller.kill()
    if errors:
        raise Failed("\n     ".join([f"{len(errors)} refusals are not reported:", *errors]))


def test_each_refusal_is_reported_with_webhooks(cluster):
    harness.not_with_local_mode("it has no admission plugins")
    check_all(ROWS, "with", *harness.ADMISSION)


def test_each_refusal_is_reported_without_webhooks(cluster):
    harness.not_with_local_mode("it has no admission plugins")
    sample = ("gpu-without-limit", "quota-of-services", "limit-range")   # a Job, a Service and a pod
    check_all([row for row in ROWS if FULL or row.name in sample], "without", "--no-webhooks")


if __name__ == "__main__":
    harness.main(__file__)
