#!/usr/bin/python3
"""`kubectl explain` answers for every field of our kinds, Kubernetes' own inside our specs included.

It prints the schemas that the API server publishes, so every field is looked up there, and `kubectl explain` itself is asked for some, by seed
(EXPLAIN_SEED, EXPLAIN_FIELDS a kind; `all` for each of them). Needs a control plane without node.
"""
import json
import os
import random

import harness
import v1_test
from harness import Failed, run, wait_until

KINDS = {"trainer.kubeflow.org/v1alpha1": {"TrainJob", "TrainingRuntime", "ClusterTrainingRuntime"},
         "jobset.x-k8s.io/v1alpha2": {"JobSet"},
         "kubeflow.org/v1": {"PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob"}}


def fields(schema, path):
    """(path, description) of each field, as `kubectl explain` names it. metadata of the object itself is Kubernetes' own text."""
    while schema:
        for name, member in schema.get("properties", {}).items():
            yield f"{path}.{name}", member.get("description", "")
            if "$ref" not in member and "allOf" not in member:
                yield from fields(member, f"{path}.{name}")
        schema = schema.get("items") or schema.get("additionalProperties")


def published(version):
    """The schema of each of our kinds, once all are there."""
    document = json.loads(run("kubectl", "get", "--raw", f"/openapi/v3/apis/{version}").stdout)
    found = {kind["kind"]: schema for schema in document["components"]["schemas"].values()
             for kind in schema.get("x-kubernetes-group-version-kind", []) if kind["kind"] in KINDS[version]}
    return found if set(found) == KINDS[version] else None


def check_explained(version, path, description):
    done = run("kubectl", "explain", path, f"--api-version={version}", check=False)
    if done.returncode or " ".join(description.split()) not in " ".join(done.stdout.split()):
        raise Failed(f"kubectl explain {path} does not say \"{description}\":\n{done.stdout}{done.stderr}")


def test_every_field_is_explained(_):
    v1_test.install()
    chosen = random.Random(int(os.environ.get("EXPLAIN_SEED", "1")))
    wanted = os.environ.get("EXPLAIN_FIELDS", "5")
    asked, mute = 0, []
    for version in KINDS:
        for kind, schema in wait_until(f"what is published of {version}", lambda version=version: published(version)).items():
            assert schema.get("description"), f"{kind} has no description"
            known = list(fields(schema, kind.lower() + "s"))
            assert len(known) > 100, f"of {kind} only {known} is published"
            mute += [path for path, description in known if not description]
            known = [each for each in known if each[1]]
            for each in known if wanted == "all" else chosen.sample(known, int(wanted)):
                asked += 1
                check_explained(version, *each)
    if mute:
        raise Failed(f"{len(mute)} fields without a description: {mute[:20]}")
    print(f"     asked for {asked} fields")


def test_kubernetes_own_fields_are_explained(_):
    """One of each level, by the words that users look for."""
    for path, text in (("trainjob", "A training job"), ("trainjob.spec.trainer.numNodes", "How many training nodes there are."),
                       ("trainjob.spec.trainer.env.valueFrom.secretKeyRef.key", "Key in the Secret."),
                       ("jobset.spec.replicatedJobs.template.spec.template.spec.dnsPolicy", "ClusterFirst"),
                       ("trainingruntime.spec.template.spec.replicatedJobs.template.spec.backoffLimit", "failed pods"),
                       ("clustertrainingruntime.spec.mlPolicy.torch", "torchrun"),
                       ("pytorchjob.spec.pytorchReplicaSpecs.template.spec.containers.imagePullPolicy", "When the image is pulled.")):
        said = " ".join(run("kubectl", "explain", path).stdout.split())
        assert text in said, f"kubectl explain {path} does not say \"{text}\": {said[:500]}"


if __name__ == "__main__":
    harness.main(__file__)
