#!/usr/bin/env python3
"""Reduce the OpenAPI documents of Kubernetes to the types that our CustomResourceDefinitions embed, and the kinds that local mode serves.

usage: reduce_openapi.py [--kubernetes VERSION] [--openapi FOLDER] api/schema/kubernetes.json

Without --openapi the documents come from the Go module k8s.io/kubernetes at VERSION (needs `go`). The output is deterministic:
    source      the module and version
    roots       the types that definitions refer to (`embedded`), and the kinds that are served (`kinds`)
    types       by short name, the types reachable from the roots, as structural schemas; {"$ref": "#/NAME"} refers within `types`
    metadata    the properties of ObjectMeta that no template has, but an object
    mergeKeys   by part and root, the strategic-merge key of every list below the root: {dotted path of members: key}
The build takes the two parts from it (tools/kubernetes_part.py).
The parts of a type are kept but for descriptions (api/schema/descriptions.json has the project's), defaults that are only Go's zero value, and what a
CustomResourceDefinition cannot hold.
"""
import argparse
import json
import pathlib
import subprocess
import sys

VERSION = "v1.36.3"
DOCUMENTS = ("api__v1_openapi.json", "apis__autoscaling__v2_openapi.json", "apis__batch__v1_openapi.json",
             "apis__coordination.k8s.io__v1_openapi.json", "apis__rbac.authorization.k8s.io__v1_openapi.json",
             "apis__scheduling.k8s.io__v1_openapi.json")
ROOTS = ("JobTemplateSpec", "PersistentVolumeClaim", "EnvVar", "ResourceRequirements", "SecurityContext",
         "PodSecurityContext", "Affinity", "Toleration", "PodSchedulingGate", "Volume", "VolumeMount",
         "LocalObjectReference", "MetricSpec")
MERGE_ROOTS = ("JobTemplateSpec",)
# Local mode serves these besides the kinds of this project.
KINDS = ("ConfigMap", "Event", "HorizontalPodAutoscaler", "Job", "Lease", "Namespace", "Node", "PersistentVolumeClaim", "Pod",
         "PriorityClass", "Role", "RoleBinding", "Secret", "Service", "ServiceAccount")

STRING_MAP = {"type": "object", "additionalProperties": {"type": "string"}}
# Types whose wire form says more than their OpenAPI, or that a template may only hold in part.
REPLACED = {
    "Quantity": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
                   r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        "x-kubernetes-int-or-string": True,
    },
    "IntOrString": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
    "ObjectMeta": {
        "type": "object",
        "properties": {
            "annotations": STRING_MAP,
            "finalizers": {"type": "array", "items": {"type": "string"}},
            "labels": STRING_MAP,
            "name": {"type": "string"},
            "namespace": {"type": "string"},
        },
    },
}
# Defaults that upstream's definitions do not have: a generator's zero value of a member that became optional while its Go type stayed a
# plain string, and two that are written as references to constants.
NO_DEFAULT = {("PodFailurePolicyOnPodConditionsPattern", "status"), ("AzureDiskVolumeSource", "cachingMode"),
              ("AzureDiskVolumeSource", "kind")}
# Types whose Go struct inlines LocalObjectReference, and with it the map type, which their OpenAPI leaves out.
INLINED_ATOMIC = {"ConfigMapEnvSource", "ConfigMapProjection", "ConfigMapVolumeSource", "SecretEnvSource",
                  "SecretProjection"}
KEPT = ("type", "format", "pattern", "enum", "required", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type")


# The metadata of a pod template that is sent as a typed client prints it.
METADATA = {**{name: {"type": "string"} for name in ("generateName", "resourceVersion", "selfLink", "uid")},
            **{name: {"type": "string", "format": "date-time"} for name in ("creationTimestamp", "deletionTimestamp")},
            **{name: {"type": "integer", "format": "int64"} for name in ("deletionGracePeriodSeconds", "generation")}}


def short(name):
    return name.rsplit(".", 1)[-1]


def reference(schema):
    """The type that a schema refers to, directly or as its only allOf."""
    target = schema.get("$ref")
    if target is None and len(schema.get("allOf", [])) == 1:
        target = schema["allOf"][0].get("$ref")
    return target and short(target)


def default_of(schema, is_required):
    """A default that means something: the generator also writes Go's zero value for every required member."""
    value = schema.get("default")
    if isinstance(value, (dict, list)) or value is None:
        return {}
    return {} if is_required and not value else {"default": value}


class Reducer:
    def __init__(self, documents):
        self.source, self.types = {}, {}
        for document in documents:
            for name, schema in document["components"]["schemas"].items():
                other = self.source.setdefault(short(name), (name, schema))
                # Both documents hold the shared types. Two types of one short name would be mixed up.
                if other[0] != name:
                    self.source[short(name)] = (name, None)

    def type(self, name):
        if name in self.types:
            return
        self.types[name] = {}
        full, schema = self.source[name]
        if schema is None:
            sys.exit(f"two types are called {name}; refer to them by longer names")
        self.types[name] = REPLACED.get(name) or self.reduce(schema, full)
        if name in INLINED_ATOMIC:
            self.types[name]["x-kubernetes-map-type"] = "atomic"

    def reduce(self, schema, where, is_required=False):
        """`is_required` also where a zero default says nothing for another reason."""
        out = {key: schema[key] for key in KEPT if key in schema}
        target = reference(schema)
        if target:
            self.type(target)
            out["$ref"] = f"#/{target}"
        elif "allOf" in schema or "oneOf" in schema or "anyOf" in schema:
            sys.exit(f"{where}: cannot be expressed")
        required = schema.get("required", ())
        if "properties" in schema:
            out["properties"] = {
                name: self.reduce(member, f"{where}.{name}",
                                  name in required or (short(where), name) in NO_DEFAULT)
                for name, member in schema["properties"].items()}
        for inner in ("items", "additionalProperties"):
            if inner in schema:
                # Items of lists of strings carry Go's zero value as well.
                out[inner] = self.reduce(schema[inner], f"{where}.{inner}", is_required=True)
        return {**out, **default_of(schema, is_required)}

    def merge_keys(self, name, path=""):
        keys = {}
        for member, schema in self.source[name][1].get("properties", {}).items():
            below = f"{path}.{member}" if path else member
            key = schema.get("x-kubernetes-patch-merge-key")
            if key:
                keys[below] = key
            target = reference(schema) or reference(schema.get("items", {}))
            # A list without a key is replaced as a whole, so nothing below it merges.
            if target and target not in REPLACED and (key or schema.get("type") != "array"):
                keys.update(self.merge_keys(target, below))
        return keys


def folder_of(version):
    found = subprocess.run(["go", "mod", "download", "-json", f"k8s.io/kubernetes@{version}"], check=True, cwd="/",
                           stdout=subprocess.PIPE)
    return pathlib.Path(json.loads(found.stdout)["Dir"]) / "api/openapi-spec/v3"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubernetes", default=VERSION, metavar="VERSION")
    parser.add_argument("--openapi", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("output", type=pathlib.Path)
    args = parser.parse_args()
    folder = args.openapi or folder_of(args.kubernetes)
    reducer = Reducer([json.loads((folder / name).read_text()) for name in DOCUMENTS])
    for root in (*ROOTS, *KINDS):
        reducer.type(root)
    reduced = {"source": f"k8s.io/kubernetes {args.kubernetes}", "roots": {"embedded": ROOTS, "kinds": KINDS}, "types": reducer.types,
               "metadata": METADATA, "mergeKeys": {part: {root: reducer.merge_keys(root) for root in roots}
                                                   for part, roots in (("embedded", MERGE_ROOTS), ("kinds", KINDS))}}
    args.output.write_text(json.dumps(reduced, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
