"""How objects, events and refusals look in the answers that conform.py records and compares: without what differs from run to run."""
import re

import yaml

NOISE = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink", "deletionTimestamp",
         "deletionGracePeriodSeconds")
UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid", "jobset.sigs.k8s.io/jobset-uid")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")


def clean(value, key=""):
    if isinstance(value, dict):
        out = {}
        for k, v in sorted(value.items()):
            if (k in NOISE and key == "metadata") or k == "kubectl.kubernetes.io/last-applied-configuration":
                continue
            out[k] = "<uid>" if k in UID_LABELS or k == "uid" else clean(v, k)
        return out
    if isinstance(value, list):
        return [clean(v, key) for v in value]
    if isinstance(value, str) and TIME.match(value):
        return "<time>"
    return value


def without_empty(value):
    """Go clients write empty maps (resources, metadata) that say nothing; they are no part of the contract."""
    if isinstance(value, dict):
        return {k: w for k, v in value.items() if (w := without_empty(v)) != {} or k == "emptyDir"}
    return [without_empty(v) for v in value] if isinstance(value, list) else value


# The API server fills these into pods, their templates and Services: a controller that writes the same says nothing.
SERVER_DEFAULTS = {
    "dnsPolicy": "ClusterFirst", "enableServiceLinks": True, "imagePullPolicy": "IfNotPresent", "preemptionPolicy": "PreemptLowerPriority",
    "priority": 0, "protocol": "TCP", "schedulerName": "default-scheduler", "securityContext": {}, "serviceAccount": "default",
    "serviceAccountName": "default", "terminationGracePeriodSeconds": 30, "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File", "type": "ClusterIP",
    "tolerations": [{"effect": "NoExecute", "key": f"node.kubernetes.io/{key}", "operator": "Exists", "tolerationSeconds": 300}
                    for key in ("not-ready", "unreachable")]}


def without_defaults(value):
    if isinstance(value, dict):
        return {k: without_defaults(v) for k, v in value.items() if k not in SERVER_DEFAULTS or SERVER_DEFAULTS[k] != v}
    return [without_defaults(v) for v in value] if isinstance(value, list) else value


JOB_KINDS = ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob")   # those of the group kubeflow.org


def is_of_kubeflow_job(obj):
    """Whether a job of kubeflow.org has made the object. The owner of an MPIJob's launcher pods is a Job: they are known by their label."""
    metadata = obj.get("metadata", {})
    owners = [r.get("apiVersion", "") for r in metadata.get("ownerReferences", [])]
    return any(owner.startswith("kubeflow.org/") for owner in owners) or \
        ("batch/v1" in owners and "training.kubeflow.org/job-name" in metadata.get("labels", {}))


def number_pods_of_jobs(pods):
    """Gives pods that a Job has made, whose names are random, their generateName and a number, in the order in which they were made."""
    counts = {}
    for metadata in sorted((pod["metadata"] for pod in pods), key=lambda m: (m["creationTimestamp"], m["name"])):
        if "generateName" in metadata and any(r["kind"] == "Job" for r in metadata.get("ownerReferences", [])):
            number = counts.get(metadata["generateName"], 0)
            counts[metadata["generateName"]] = number + 1
            metadata["name"] = f"{metadata['generateName']}<{number}>"


def keep_of_pod(o):
    """The fields of the controller, and the phase: not the token volume, nor fields of the scheduler and the kubelet."""
    def drop_token(holder, lists):
        kept = [v for v in holder.get(lists, []) if not v["name"].startswith("kube-api-access-")]
        holder.pop(lists, None)
        if kept:
            holder[lists] = kept

    spec = o.get("spec", {})
    drop_token(spec, "volumes")
    for container in spec.get("containers", []) + spec.get("initContainers", []):
        drop_token(container, "volumeMounts")
        if container["name"] == "init-pytorch":
            host = re.search(r"nslookup (\S+?)[;)\s]", " ".join(container.get("command", []) + container.pop("args", [])) + " ")
            container["command"] = f"<waits for {host[1]}>" if host else "<waits for nothing>"
    o["status"] = {"phase": o.get("status", {}).get("phase")}


# mpi-operator says this of a pod that it has just made itself, while its cache does not have the pod yet.
LATE_CACHE = re.compile(r"pod created failed: .* already exists$")
# mpi-operator leaves the kind empty here.
KIND_IN_THE_WAY = re.compile(r'(?<=of Kind ")\w*(?=" already exists)')


def events(items):
    """The set of what was said of kubeflow.org jobs, but for what depends on when the scheduler or a cache looked."""
    out = {}
    for item in items:
        about, message = item.get("involvedObject", {}), item["message"]
        if about.get("kind") in JOB_KINDS and item["reason"] != "Unschedulable" and not LATE_CACHE.search(message):
            message = KIND_IN_THE_WAY.sub("<kind>", refusal(message))
            out[f"{about['kind']} {about['name']}: {item['type']} {item['reason']}: {message}"] = \
                item.get("source", {}).get("component") or item.get("reportingComponent", "")
    return out


def shown(obj):
    o = clean(obj)
    o.pop("kind", None)
    o.pop("apiVersion", None)
    if obj.get("kind") == "Pod":
        keep_of_pod(o)
    if obj.get("kind") == "HorizontalPodAutoscaler":
        o.pop("status", None)   # the autoscaler's
    if "kubexec.sh" in o.get("data", {}):
        o["data"]["kubexec.sh"] = "<script>"
    if obj.get("kind") in ("JobSet", "Job") and "spec" in o:
        o["spec"] = without_empty(o["spec"])
    if obj.get("kind") == "Secret" or ("data" in obj and "type" in obj):
        o["data"] = {k: "<data>" for k in sorted(o.get("data", {}))}
    if obj.get("kind") == "Job":
        o.pop("status", None)   # the Job controller writes it
    if isinstance(o.get("data", {}).get("runtime"), str):
        try:
            o["data"]["runtime"] = clean(yaml.load(o["data"]["runtime"], Loader=yaml.BaseLoader))
        except yaml.YAMLError:
            pass   # compared as text, then
    if "clusterIP" in (obj.get("spec") or {}):
        for k in ("clusterIP", "clusterIPs", "internalTrafficPolicy", "ipFamilies", "ipFamilyPolicy", "sessionAffinity"):
            o["spec"].pop(k, None)
    if obj.get("kind") == "Service" and is_of_kubeflow_job(obj):
        o["spec"]["ports"] = sorted(o["spec"].get("ports", []), key=lambda p: p.get("name", ""))
        o["spec"]["clusterIP"] = "None" if obj["spec"].get("clusterIP") == "None" else "<address>"
    return without_defaults(o) if obj.get("kind") in ("Pod", "Service", "Job") and is_of_kubeflow_job(obj) else o


def refusal(message):
    """A refusal without its times and without the value it quotes: the field path and the reason are what counts."""
    message = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>", message)
    return re.sub(r"Invalid value: (\{.*\}|\[.*\]): ", "Invalid value: <value>: ", message)
