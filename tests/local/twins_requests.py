"""The fixed requests of twins.py: each kind, changed in many ways by each kind of write, and the rules of writes."""
import copy
import json

TRAINER = "trainer.kubeflow.org/v1alpha1"
JOBSET = "jobset.x-k8s.io/v1alpha2"
MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
# A controller that is not there, so that nothing acts on the jobs where controllers run.
ELSEWHERE = "kueue.x-k8s.io/multikueue"
POD = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x", "env": [{"name": "A", "value": "1"}]}]}

BASES = {
    "configmap": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": {"twins": "yes"}},
                  "data": {"a": "1", "b": "2"}},
    "trainjob": {"apiVersion": TRAINER, "kind": "TrainJob", "metadata": {"name": "x", "labels": {"twins": "yes"}},
                 "spec": {"runtimeRef": {"name": "torch"}, "suspend": True, "managedBy": ELSEWHERE,
                          "trainer": {"numNodes": 2, "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}}},
    "jobset": {"apiVersion": JOBSET, "kind": "JobSet", "metadata": {"name": "x", "labels": {"twins": "yes"}},
               "spec": {"suspend": True, "managedBy": ELSEWHERE, "replicatedJobs": [
                   {"name": "w", "replicas": 1, "template": {"spec": {"parallelism": 1, "completions": 1,
                                                                     "template": {"spec": POD}}}}]}},
}
COLLECTIONS = {
    "configmap": "/api/v1/namespaces/$namespace/configmaps",
    "trainjob": f"/apis/{TRAINER}/namespaces/$namespace/trainjobs",
    "jobset": f"/apis/{JOBSET}/namespaces/$namespace/jobsets",
}
# (path, value) that a write sets; None removes. The first list is for the metadata of each kind, the second for each kind's own members.
OF_METADATA = [
    ("metadata.labels.new", "label"), ("metadata.labels.twins", None), ("metadata.labels.bad", "not valid!"),
    ("metadata.annotations", {"acme.io/a": "b"}), ("metadata.annotations", {"acme.io/": "b"}),
    ("metadata.finalizers", ["acme.io/hold"]), ("metadata.finalizers", ["hold"]),
    ("metadata.ownerReferences", [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "o-1"}]),
    ("metadata.ownerReferences", [{"apiVersion": "v1", "kind": "ConfigMap", "name": "", "uid": "o-1"}]),
    ("metadata.resourceVersion", "1"), ("metadata.uid", "11111111-2222-3333-4444-555555555555"), ("metadata.generation", 7),
    ("metadata.creationTimestamp", "2020-01-01T00:00:00Z"), ("metadata.unknown", 1), ("unknown", {"a": 1}), ("kind", "Pod"),
]
OF_KIND = {
    "configmap": [
        ("data.c", "3"), ("data.a", None), ("data.a", 1), ("data", None), ("data", {}), ("data.bad key", "x"), ("data.a", "1"),
        ("binaryData", {"c": "aGVsbG8="}), ("binaryData", {"a": "aGVsbG8="}), ("binaryData", {"c": "*"}), ("immutable", True),
        ("immutable", "yes"),
    ],
    "trainjob": [
        ("spec.trainer.numNodes", 3), ("spec.trainer.numNodes", -1), ("spec.trainer.numNodes", "3"), ("spec.trainer.unknown", 1),
        ("spec.trainer.env", [{"name": "A", "value": "2"}]), ("spec.trainer.env", [{"name": "A"}, {"name": "A"}]),
        ("spec.trainer.numProcPerNode", 0), ("spec.trainer.numProcPerNode", 4), ("spec.trainer.command", ["python", "train.py"]),
        ("spec.trainer.resourcesPerNode", {"requests": {"cpu": "1000m"}}), ("spec.trainer", None), ("spec.suspend", False),
        ("spec.suspend", None), ("spec.suspend", "true"), ("spec.runtimeRef.name", "other"), ("spec.runtimeRef.name", ""),
        ("spec.runtimeRef", None), ("spec.ttlSecondsAfterFinished", 60), ("spec.ttlSecondsAfterFinished", -1),
        ("spec.failurePolicy", {"maxRestarts": 1}), ("spec.managedBy", "acme.io/controller"), ("spec.labels", {"a": "b"}),
        ("spec.activeDeadlineSeconds", 60), ("spec.activeDeadlineSeconds", 0), ("spec", None),
        ("spec.runtimePatches", [{"manager": "acme.io/a", "trainingRuntimeSpec": {"template": {"spec": {}}}}]),
        ("status", {"conditions": []}),
    ],
    "jobset": [
        ("spec.suspend", False), ("spec.suspend", None), ("spec.ttlSecondsAfterFinished", 60), ("spec.ttlSecondsAfterFinished", -1),
        ("spec.unknown", 1), ("spec.replicatedJobs", None), ("spec.replicatedJobs", []), ("spec.failurePolicy", {"maxRestarts": 2}),
        ("spec.failurePolicy", {"maxRestarts": "2"}), ("spec.successPolicy", {"operator": "Any"}),
        ("spec.successPolicy", {"operator": "Some"}), ("spec.network", {"enableDNSHostnames": True, "subdomain": "a"}),
        ("spec.startupPolicy", {"startupPolicyOrder": "InOrder"}), ("spec.managedBy", "acme.io/controller"),
        ("spec.coordinator", {"replicatedJob": "w"}), ("spec", None), ("status", {"restarts": 1}),
        ("spec.replicatedJobs.0.replicas", 2), ("spec.replicatedJobs.0.template.spec.completions", 2),
        ("spec.replicatedJobs.0.template.spec.template.spec.containers.0.image", "y"),
        ("spec.replicatedJobs.0.template.spec.template.spec.containers.0.resources", {"limits": {"cpu": 2}}),
        ("spec.replicatedJobs.0.template.spec.template.spec.hots", 1),
    ],
}


def request(method, path, body=None, query="", type="application/json"):
    return {"method": method, "path": path, "query": query, "body": body, "type": type}


def changed(base, path, value):
    """A copy with one member set or removed."""
    out = copy.deepcopy(base)
    *names, last = path.split(".")
    at = out
    for name in names:
        at = at[int(name)] if isinstance(at, list) else at.setdefault(name, {})
    if value is None:
        at.pop(last, None)
    else:
        at[last] = value
    return out


def merge_patch(base, path, value):
    """A merge patch; a list is sent whole."""
    names = path.split(".")
    for i, name in enumerate(names):
        if name.isdigit():   # the list above it, changed
            return merge_patch(base, ".".join(names[:i]), at(changed(base, path, value), names[:i]))
    for name in reversed(names):
        value = {name: value}
    return value


def at(value, names):
    for name in names:
        value = value[name]
    return value


def json_patch(path, value):
    pointer = "/" + path.replace(".", "/")
    return [{"op": "remove", "path": pointer}] if value is None else [{"op": "add", "path": pointer, "value": value}]


def ways(kind, path, value):
    """(way, steps) by which a change is written."""
    base, collection = BASES[kind], COLLECTIONS[kind]
    item, whole = collection + "/x", changed(BASES[kind], path, value)
    create = request("POST", collection, base, "fieldManager=creator")
    yield "create", [request("POST", collection, whole, "fieldManager=creator&fieldValidation=Strict")]
    yield "put", [create, request("PUT", item, whole, "fieldManager=changer")]
    yield "merge", [create, request("PATCH", item, merge_patch(base, path, value), "fieldManager=changer", MERGE)]
    yield "json", [create, request("PATCH", item, json_patch(path, value), "fieldManager=changer", JSON)]
    yield "apply", [request("PATCH", item, base, "fieldManager=creator", APPLY),
                    request("PATCH", item, whole, "fieldManager=creator", APPLY)]
    yield "force", [create, request("PATCH", item, whole, "fieldManager=changer&force=true", APPLY)]


def clean_up(kind):
    """Deletes x, also if a finalizer holds it."""
    item = COLLECTIONS[kind] + "/x"
    return [request("PATCH", item, {"metadata": {"finalizers": None}}, "", MERGE), request("DELETE", item)]


def changes():
    for kind in BASES:
        for number, (path, value) in enumerate(OF_METADATA + OF_KIND[kind]):
            for way, steps in ways(kind, path, value):
                last = steps[-1]
                after = [request("GET", COLLECTIONS[kind] + "/x")]
                yield f"{kind}/{path}={json.dumps(value)[:20]}#{number}/{way}", [*steps[:-1], last, *after, *clean_up(kind)]


def rules(kind):
    """(name, steps) of what holds for each kind."""
    base, collection = BASES[kind], COLLECTIONS[kind]
    item = collection + "/x"
    label = {"metadata": {"labels": {"c": "d"}}}
    head = {"apiVersion": base["apiVersion"], "kind": base["kind"], "metadata": {"name": "x"}}
    create = request("POST", collection, base, "fieldManager=creator")
    get, delete = request("GET", item), request("DELETE", item)

    def apply(body, manager, more=""):
        return request("PATCH", item, body, f"fieldManager={manager}{more}", APPLY)

    def labelled(**labels):
        return {**head, "metadata": {"name": "x", "labels": labels}}

    yield "nothing there", [get, delete, request("PUT", item, base), request("PATCH", item, label, "", MERGE),
                            request("PATCH", item, [], "", JSON)]
    yield "there already", [create, create]
    yield "names", [request("POST", collection, changed(base, "metadata.name", "Not_valid")),
                    request("POST", collection, changed(base, "metadata.name", None)),
                    request("PUT", item, changed(base, "metadata.name", "other")),
                    request("POST", collection, changed(base, "metadata.namespace", "other"))]
    yield "types", [request("POST", collection, "no json"), request("POST", collection, []), request("POST", collection, {}),
                    create, request("PATCH", item, label, "", "application/unknown"), request("PATCH", item, "{", "", MERGE),
                    request("PATCH", item, {"op": "add"}, "", JSON), request("PATCH", item, [{"op": "no", "path": "/a"}], "", JSON),
                    request("PATCH", item, [{"op": "remove", "path": "/metadata/none"}], "", JSON),
                    request("PATCH", item, [{"op": "test", "path": "/kind", "value": "no"}], "", JSON),
                    request("PATCH", item, "a: [", "fieldManager=a", APPLY), request("POST", item, base), request("PUT", collection, base)]
    yield "nothing changes", [create, request("PATCH", item, {}, "", MERGE), get, request("PUT", item, base, "fieldManager=creator"),
                              request("PATCH", item, [], "", JSON)]
    yield "versions", [create, request("PATCH", item, {"metadata": {"resourceVersion": "$version", "labels": {"a": "b"}}}, "", MERGE),
                       request("PATCH", item, {"metadata": {"resourceVersion": "1", "labels": {"a": "c"}}}, "", MERGE),
                       get, request("PUT", item, changed(base, "metadata.resourceVersion", "$version")),
                       request("PUT", item, changed(base, "metadata.resourceVersion", "1")),
                       request("POST", collection, changed(base, "metadata.resourceVersion", "1"))]
    yield "uids", [create, request("PATCH", item, {"metadata": {"uid": "$uid", "labels": {"a": "b"}}}, "", MERGE),
                   request("PATCH", item, {"metadata": {"uid": "other"}}, "", MERGE), apply({**head, "metadata": {
                       "name": "x", "uid": "other"}}, "a")]
    yield "dry runs", [request("POST", collection, base, "dryRun=All&fieldManager=a"), get, create,
                       request("PATCH", item, label, "dryRun=All", MERGE), get, request("DELETE", item, None, "dryRun=All"), get,
                       request("PATCH", item, label, "dryRun=Some", MERGE)]
    yield "validation", [request("POST", collection, {**base, "extra": 1}, "fieldValidation=Warn"), delete,
                         request("POST", collection, {**base, "extra": 1}, "fieldValidation=Ignore"), delete,
                         request("POST", collection, {**base, "extra": 1}, "fieldValidation=Strict"),
                         request("POST", collection, base, "fieldValidation=Other")]
    yield "preconditions", [create, request("DELETE", item, {"preconditions": {"uid": "other"}}),
                            request("DELETE", item, {"preconditions": {"resourceVersion": "1"}}), get,
                            request("DELETE", item, {"preconditions": {"uid": "$uid", "resourceVersion": "$version"}}), get]
    yield "finalizers", [request("POST", collection, changed(base, "metadata.finalizers", ["acme.io/a", "acme.io/b"])), delete, get, delete,
                         request("PATCH", item, {"metadata": {"finalizers": ["acme.io/a", "acme.io/c"]}}, "", MERGE),
                         request("PATCH", item, {"metadata": {"finalizers": ["acme.io/a"]}}, "", MERGE),
                         request("PATCH", item, label, "", MERGE),
                         request("PATCH", item, {"metadata": {"finalizers": None}}, "", MERGE), get]
    yield "applied by two", [apply(base, "a"), apply(base, "b"), apply(labelled(a="1"), "a"), get, apply(labelled(a="2"), "b"),
                             apply(labelled(a="2"), "b", "&force=true"), get, apply(head, "b"), get, apply(head, "a"), get]
    yield "applied after a write", [create, apply(labelled(twins="other"), "a"), apply(labelled(twins="yes"), "a"),
                                    apply(labelled(twins="other"), "a", "&force=true"), apply(head, "a"), get]
    yield "written after an apply", [apply(labelled(a="1", b="2"), "a") if kind == "configmap" else apply(base, "a"),
                                     request("PATCH", item, {"metadata": {"labels": {"a": "3"}}}, "fieldManager=b", MERGE), get,
                                     request("PATCH", item, {"metadata": {"labels": None}}, "fieldManager=b", MERGE), get,
                                     apply(labelled(a="4"), "a"), get]
    yield "managed fields", [create, request("PATCH", item, {"metadata": {"managedFields": [{}]}}, "fieldManager=b", MERGE), get,
                             request("PATCH", item, {"metadata": {"managedFields": []}}, "fieldManager=b", MERGE),
                             request("PATCH", item, label, "fieldManager=b", MERGE),
                             apply({**head, "metadata": {"name": "x", "managedFields": [{"manager": "x"}]}}, "a")]
    yield "apply needs a manager", [request("PATCH", item, base, "", APPLY), apply(base, "a" * 129), apply({}, "a"), apply([], "a"),
                                    apply({**base, "extra": 1}, "a"), apply({**base, "kind": "Pod"}, "a")]
    yield "names by generation", [request("POST", collection, changed(changed(base, "metadata.name", "named"), "metadata.generateName",
                                                                    "base-")),
                                  request("DELETE", collection + "/named")]
    yield "lists", [request("POST", collection, changed(base, "metadata.name", name)) for name in ("l1", "l2", "l3")] + [
        request("GET", collection, None, "labelSelector=twins%3Dyes"), request("GET", collection, None, "labelSelector=twins%3Dyes&limit=2"),
        request("GET", collection, None, "labelSelector=twins%20in%20(no,yes),none&limit=500"),
        request("GET", collection, None, "labelSelector=!twins,other"), request("GET", collection, None, "labelSelector=a%3D%3D%3Db"),
        request("GET", collection, None, "fieldSelector=metadata.name%3Dl2"), request("GET", collection, None, "fieldSelector=none%3Da"),
        request("DELETE", collection, None, "labelSelector=twins%3Dyes"), request("GET", collection, None, "labelSelector=twins%3Dyes")]


def status_rules(kind, status, wrong):
    """Requests for kinds with the subresource."""
    base, collection = BASES[kind], COLLECTIONS[kind]
    item, below = collection + "/x", collection + "/x/status"
    head = {"apiVersion": base["apiVersion"], "kind": base["kind"], "metadata": {"name": "x"}}
    create = request("POST", collection, {**base, "status": status}, "fieldManager=creator")
    both = {"status": status, "spec": {"suspend": False}, "metadata": {"labels": {"a": "b"}}}
    return [create, request("GET", below), request("PATCH", below, both, "fieldManager=s", MERGE), request("GET", item),
            request("PATCH", item, {"status": None}, "fieldManager=b", MERGE), request("PATCH", below, {"status": wrong}, "", MERGE),
            request("PATCH", below, {**head, "status": status}, "fieldManager=t", APPLY),
            request("PATCH", below, {**head, "status": status}, "fieldManager=t&force=true", APPLY),
            request("PUT", below, {**base, "status": {}}, "fieldManager=s"), request("GET", item), request("GET", item + "/none")]


def sequences():
    """(name, steps), each of which begins and ends without an object x."""
    yield from changes()
    for kind in BASES:
        for name, steps in rules(kind):
            yield f"{kind}/{name}", [*steps, *clean_up(kind)]
    yield "trainjob/status", [*status_rules("trainjob", {"jobsStatus": []}, {"jobsStatus": 1}), *clean_up("trainjob")]
    yield "jobset/status", [*status_rules("jobset", {"restarts": 1}, {"restarts": "1"}), *clean_up("jobset")]
    strategic = request("PATCH", COLLECTIONS["configmap"] + "/x", {"data": {"a": None, "$retainKeys": ["b"]}}, "fieldManager=b", STRATEGIC)
    create = request("POST", COLLECTIONS["configmap"], BASES["configmap"], "fieldManager=creator")
    yield "configmap/strategic", [create, strategic, request("PATCH", COLLECTIONS["configmap"] + "/x", {
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["acme.io/a"]}, "data": {"$patch": "replace", "z": "1"}}, "", STRATEGIC),
        *clean_up("configmap")]
    yield "trainjob/strategic", [request("POST", COLLECTIONS["trainjob"], BASES["trainjob"]),
                                 request("PATCH", COLLECTIONS["trainjob"] + "/x", {"spec": {}}, "", STRATEGIC), *clean_up("trainjob")]
