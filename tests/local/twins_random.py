"""Random sequences of writes by three field managers to one object."""
import copy

from twins_requests import APPLY, BASES, COLLECTIONS, JSON, MERGE, clean_up, request

MANAGERS = ("alice", "bob", "carol")
WRITES = 12


def scalars(random):
    return random.choice(("1", "2", "3"))


def some_map(random, names):
    """A part of a map of texts; now and then none of it."""
    return {name: scalars(random) for name in names if random.random() < 0.5}


def config_map(random):
    out = {"metadata": {"labels": some_map(random, "ab"), "annotations": some_map(random, ("acme.io/c",))}, "data": some_map(random, "defg")}
    if random.random() < 0.3:
        out["metadata"]["finalizers"] = random.sample(["acme.io/a", "acme.io/b"], random.randint(0, 2))
    return out


def env(random):
    return [{"name": name, "value": scalars(random)} for name in random.sample("ABC", random.randint(0, 3))]


def train_job(random):
    # Only what may change; the rest is the same in each write.
    spec = {"runtimeRef": {"name": "torch"}, "managedBy": BASES["trainjob"]["spec"]["managedBy"]}
    if random.random() < 0.7:
        spec["suspend"] = True
    if random.random() < 0.4:
        spec["ttlSecondsAfterFinished"] = random.choice((10, 20))
    if random.random() < 0.6:
        spec["runtimePatches"] = [
            {"manager": f"acme.io/{name}", "trainingRuntimeSpec": {"template": {"metadata": {"labels": some_map(random, "ab")}}}}
            for name in random.sample("ab", random.randint(0, 2))]
    return {"metadata": {"labels": some_map(random, "ab")}, "spec": spec}


def job_set(random):
    container = {"name": "c", "image": "x", "env": env(random)}
    if random.random() < 0.5:
        container["resources"] = {"limits": {"cpu": random.choice(("1", "1000m", 2))}}
    pod = {"restartPolicy": "Never", "containers": [container], **({"nodeSelector": some_map(random, "ab")} if random.random() < 0.5 else {})}
    jobs = [{"name": name, "replicas": random.randint(1, 2), "template": {"spec": {"template": {"spec": copy.deepcopy(pod)}}}}
            for name in random.sample(("w", "v"), random.randint(1, 2))]
    spec = {"managedBy": BASES["jobset"]["spec"]["managedBy"], "suspend": True, "replicatedJobs": jobs}
    return {"metadata": {"labels": some_map(random, "ab")}, "spec": spec}


MAKERS = {"configmap": config_map, "trainjob": train_job, "jobset": job_set}


def whole(kind, random):
    part = MAKERS[kind](random)
    base = BASES[kind]
    return {"apiVersion": base["apiVersion"], "kind": base["kind"], **part, "metadata": {**part["metadata"], "name": "x"}}


def write(kind, random):
    item = COLLECTIONS[kind] + "/x"
    query = "fieldManager=" + random.choice(MANAGERS)
    way = random.choices(("apply", "force", "put", "merge", "json", "status"), (6, 3, 2, 2, 1, 1))[0]
    if way in ("apply", "force"):
        return request("PATCH", item, whole(kind, random), query + ("&force=true" if way == "force" else ""), APPLY)
    if way == "put":
        return request("PUT", item, whole(kind, random), query)
    if way == "json":
        label = random.choice("ab")
        return request("PATCH", item, [{"op": "add", "path": "/metadata/labels", "value": {label: scalars(random)}}], query, JSON)
    if way == "status" and kind != "configmap":
        status = {"jobsStatus": []} if kind == "trainjob" else {"restarts": random.randint(0, 2)}
        return request("PATCH", item + "/status", {"status": status}, query, MERGE)
    patch = MAKERS[kind](random)
    for name in random.sample(sorted(patch["metadata"]["labels"]), min(1, len(patch["metadata"]["labels"]))):
        patch["metadata"]["labels"][name] = None
    return request("PATCH", item, patch, query, MERGE)


def sequence(random):
    kind = random.choice(sorted(BASES))
    item = COLLECTIONS[kind] + "/x"
    first = random.choice((request("POST", COLLECTIONS[kind], whole(kind, random), "fieldManager=alice"),
                           request("PATCH", item, whole(kind, random), "fieldManager=alice", APPLY)))
    steps = [first]
    for _ in range(random.randint(3, WRITES)):
        steps.append(write(kind, random))
    return [*steps, request("GET", item), *clean_up(kind)]
