#!/usr/bin/env python3
"""Checks manifests/crds, and the CRD of overlays/optimizationjob, on the API server of $KUBECONFIG: what it accepts, defaults, refuses, prunes, merges and prints.

usage: schema_test.py [--verbose]

Every row is an object or a change to one, and the answer it must get. The definitions are applied first. The rows test the schema
alone, so no admission webhook of trainer may be installed. The last line is 'N passed, N failed'.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/conformance"))
from conform import Api  # noqa: E402

NS = "schema-test"
TRAINER = "/apis/trainer.kubeflow.org/v1alpha1"
COLLECTIONS = {
    "TrainJob": f"{TRAINER}/namespaces/{NS}/trainjobs",
    "TrainingRuntime": f"{TRAINER}/namespaces/{NS}/trainingruntimes",
    "ClusterTrainingRuntime": f"{TRAINER}/clustertrainingruntimes",
    "OptimizationJob": f"{TRAINER}/namespaces/{NS}/optimizationjobs",
    "JobSet": f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{NS}/jobsets",
}
LONG = "x" * 1048576


def document(kind, spec, name="probe"):
    version = "jobset.x-k8s.io/v1alpha2" if kind == "JobSet" else "trainer.kubeflow.org/v1alpha1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def trainjob(**spec):
    return {"runtimeRef": {"name": "r"}, **spec}


def patch(pod_spec, manager="test.io/manager", job="node", **levels):
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
        {"name": job, "template": {**levels, "spec": {"template": {"spec": pod_spec}}}}]}}}}


def pods(**pod):
    return {"spec": {"template": {"spec": {"containers": [{"name": "node"}], **pod}}}}


def job(name, **more):
    """A replicated job."""
    return {"name": name, "template": pods(), **more}


def claims(count, **metadata):
    return [{"metadata": {"name": f"c{i}", **metadata}, "spec": {}} for i in range(count)]


def study(**spec):
    return {"objectives": [{"metric": "loss"}],
            "parameters": [{"name": "lr", "searchSpace": {"uniform": {"min": "0.1", "max": "1"}}}],
            "trainJobTemplate": {"spec": trainjob()}, **spec}


def parameter(**space):
    return {"parameters": [{"name": "lr", "searchSpace": space}]}


POLICY = "Only one of the policy can be configured"
URI = "storageUri may be empty, or it must be a valid URI (scheme://...)"
LABEL = "metadata.name must match RFC 1035 DNS label format"

# kind, spec, text of the refusal or None where the object is accepted
SPECS = [
    ("TrainJob", trainjob(), None),
    ("TrainJob", {}, "spec.runtimeRef: Required value"),
    ("TrainJob", {"runtimeRef": {}}, "spec.runtimeRef.name: Required value"),
    ("TrainJob", {"runtimeRef": {"name": "x" * 254}}, "spec.runtimeRef.name: Too long"),
    ("TrainJob", trainjob(trainer={"numNodes": -1}), "spec.trainer.numNodes in body should be greater than or equal to 0"),
    ("TrainJob", trainjob(trainer={"numNodes": 0}), None),
    ("TrainJob", trainjob(trainer={"numProcPerNode": -5}), "numProcPerNode must be greater than or equal to 1"),
    ("TrainJob", trainjob(trainer={"numProcPerNode": 0}), "numProcPerNode must be greater than or equal to 1"),
    ("TrainJob", trainjob(trainer={"numNodes": 1, "numProcPerNode": 1}), None),
    ("TrainJob", trainjob(trainer={"numProcPerNode": "auto"}), "spec.trainer.numProcPerNode in body must be of type integer"),
    ("TrainJob", trainjob(trainer={"image": "x" * 501}), "spec.trainer.image: Too long"),
    ("TrainJob", trainjob(trainer={"command": [LONG]}), None),
    ("TrainJob", trainjob(trainer={"command": [LONG + "x"]}), "spec.trainer.command[0]: Too long"),
    ("TrainJob", trainjob(trainer={"args": [LONG]}), None),
    ("TrainJob", trainjob(trainer={"args": [LONG + "x"]}), "spec.trainer.args[0]: Too long"),
    ("TrainJob", trainjob(trainer={"args": ["x"] * 129}), "must have at most 128 items"),
    ("TrainJob", trainjob(trainer={"env": [{"name": f"A{i}"} for i in range(129)]}), "must have at most 128 items"),
    ("TrainJob", trainjob(trainer={"env": [{"name": "A"}, {"name": "A"}]}), "spec.trainer.env[1]: Duplicate value"),
    ("TrainJob", trainjob(trainer={"resourcesPerNode": {"limits": {"cpu": "lots"}}}), "spec.trainer.resourcesPerNode.limits.cpu"),
    ("TrainJob", trainjob(trainer={"resourcesPerNode": {"limits": {"cpu": 2, "memory": "1.5Gi", "nvidia.com/gpu": "1"}}}), None),
    ("TrainJob", trainjob(initializer={"dataset": {"storageUri": "invalid-uri"}}), URI),
    ("TrainJob", trainjob(initializer={"dataset": {"storageUri": ""}}), None),
    ("TrainJob", trainjob(initializer={"dataset": {"storageUri": "s3://"}}), URI),
    ("TrainJob", trainjob(initializer={"dataset": {"storageUri": "s3://bucket/path"}}), None),
    ("TrainJob", trainjob(initializer={"model": {"storageUri": "invalid-uri"}}), URI),
    ("TrainJob", trainjob(initializer={"model": {"storageUri": "gs://bucket/model"}}), None),
    ("TrainJob", trainjob(managedBy="trainer.kubeflow.org/trainjob-controller"), None),
    ("TrainJob", trainjob(managedBy="kueue.x-k8s.io/multikueue"), None),
    ("TrainJob", trainjob(managedBy="invalid"),
     "ManagedBy must be trainer.kubeflow.org/trainjob-controller or kueue.x-k8s.io/multikueue if set"),
    ("TrainJob", trainjob(activeDeadlineSeconds=0), "should be greater than or equal to 1"),
    ("TrainJob", trainjob(ttlSecondsAfterFinished=0), None),
    ("TrainJob", trainjob(ttlSecondsAfterFinished=-1), "should be greater than or equal to 0"),
    ("TrainJob", trainjob(failurePolicy={"maxRestarts": 3, "maxDisruptionRestarts": 2, "rules": [{"name": "a", "action": "FailJobSet"}]}), None),
    ("TrainJob", trainjob(failurePolicy={"maxRestarts": -1}), "should be greater than or equal to 0"),
    ("TrainJob", trainjob(failurePolicy={"rules": [{"name": "a", "action": "Hope"}]}), "Unsupported value"),
    ("TrainingRuntime", {"runPolicy": {"activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 0, "failurePolicy": {"maxRestarts": 1}}}, None),
    ("ClusterTrainingRuntime", {"runPolicy": {"activeDeadlineSeconds": 0}}, "should be greater than or equal to 1"),
    ("TrainingRuntime", {"runPolicy": {"ttlSecondsAfterFinished": -1}}, "should be greater than or equal to 0"),
    ("TrainJob", trainjob(runtimePatches=[patch({}, "a.io/b"), patch({}, "c.io/d")]), None),
    ("TrainJob", trainjob(runtimePatches=[patch({}, "a.io/b"), patch({}, "a.io/b")]), "spec.runtimePatches[1]: Duplicate value"),
    ("TrainJob", trainjob(runtimePatches=[patch({}, f"a.io/{i}") for i in range(17)]), "must have at most 16 items"),
    ("TrainJob", trainjob(runtimePatches=[patch({}, "")]),
     "spec.runtimePatches[0].manager in body should be at least 1 chars long"),
    ("TrainJob", trainjob(runtimePatches=[patch({"terminationGracePeriodSeconds": 300})]), None),
    ("TrainJob", trainjob(runtimePatches=[patch({"terminationGracePeriodSeconds": 0})]), None),
    ("TrainJob", trainjob(runtimePatches=[patch({"terminationGracePeriodSeconds": -1})]), "should be greater than or equal to 0"),
    ("TrainJob", trainjob(runtimePatches=[patch({"containers": [{"name": "a", "volumeMounts": [
        {"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]}]})]), "volumeMounts[1]: Duplicate value"),
    ("TrainJob", trainjob(runtimePatches=[patch({"schedulingGates": [{"name": f"g{i}"} for i in range(17)]})]),
     "must have at most 16 items"),
    # what guides for v2.0 and v2.1 show, where nothing converts it
    ("TrainJob", trainjob(podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "spec": {}}]),
     "spec.podTemplateOverrides: Forbidden: was removed in v2.2"),
    ("TrainJob", trainjob(podSpecOverrides=[{"targetJobs": [{"name": "node"}]}]),
     "spec.podSpecOverrides: Forbidden: was removed in v2.1"),
    ("TrainJob", trainjob(labels={"a": "b"}), "spec.labels: Forbidden: was removed in v2.2"),
    ("TrainJob", trainjob(annotations={"a": "b"}), "spec.annotations: Forbidden: was removed in v2.2"),
    ("TrainingRuntime", {"mlPolicy": {"torch": {"numProcPerNode": "auto", "launcher": "torchrun"}}}, None),
    ("TrainingRuntime", {"mlPolicy": {"torch": {"numProcPerNode": 4, "launcher": "env"}}}, None),
    ("TrainingRuntime", {"mlPolicy": {"torch": {"numProcPerNode": 0}}}, "numProcPerNode must be auto, gpu, cpu or an int32"),
    ("TrainingRuntime", {"mlPolicy": {"torch": {"numProcPerNode": "4"}}}, "numProcPerNode must be auto, gpu, cpu or an int32"),
    ("TrainingRuntime", {"mlPolicy": {"torch": {"launcher": "mpirun"}}}, "Unsupported value"),
    ("TrainingRuntime", {"mlPolicy": {"torch": {"elasticPolicy": {"maxRestarts": 3}}}}, None),
    ("TrainingRuntime", {"mlPolicy": {"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 4}}}}, None),
    ("TrainingRuntime", {"mlPolicy": {"torch": {"elasticPolicy": {"minNodes": 3, "maxNodes": 2}}}}, "minNodes and maxNodes must be set together"),
    ("TrainingRuntime", {"mlPolicy": {"torch": {"elasticPolicy": {"minNodes": 1}}}}, "minNodes and maxNodes must be set together"),
    ("TrainingRuntime", {"mlPolicy": {"torch": {"elasticPolicy": {"metrics": [{"type": "Resource"}]}}}},
     "spec.mlPolicy.torch.elasticPolicy.metrics: Forbidden: is not supported"),
    ("TrainingRuntime", {"mlPolicy": {"mpi": {"mpiImplementation": "IntelMPI"}}},
     'supported values: "OpenMPI", "", "Intel", "MPICH"'),

    ("TrainingRuntime", {}, "spec in body should have at least 1 properties"),
    ("TrainingRuntime", {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": [job("node")]}}},
     None),
    ("ClusterTrainingRuntime", {"mlPolicy": {"numNodes": 1}}, None),
    ("TrainingRuntime", {"mlPolicy": {"mpi": {}, "torch": {}}}, POLICY),
    ("TrainingRuntime", {"mlPolicy": {"jax": {}, "torch": {}}}, POLICY),
    ("TrainingRuntime", {"mlPolicy": {"torch": {}, "flux": {}}}, POLICY),
    ("TrainingRuntime", {"mlPolicy": {"mpi": {}, "flux": {}}}, POLICY),
    ("TrainingRuntime", {"mlPolicy": {"jax": {}, "flux": {}}}, POLICY),
    ("TrainingRuntime", {"mlPolicy": {"jax": {}, "mpi": {}}}, POLICY),
    ("TrainingRuntime", {"mlPolicy": {"jax": {}, "mpi": {}, "torch": {}, "flux": {}}}, POLICY),
    ("TrainingRuntime", {"mlPolicy": {"xgboost": {}, "mpi": {}}}, POLICY),
    ("TrainingRuntime", {"mlPolicy": {"mpi": {"mpiImplementation": "unknown"}}}, "Unsupported value"),
    ("TrainingRuntime", {"mlPolicy": {"mpi": {"mpiImplementation": ""}}}, None),
    ("TrainingRuntime", {"mlPolicy": {"mpi": {"mpiImplementation": "Intel"}}}, None),
    ("TrainingRuntime", {"mlPolicy": {"mpi": {"mpiImplementation": "MPICH"}}}, None),
    ("TrainingRuntime", {"mlPolicy": {"mpi": {"numProcPerNode": 0}}}, "NumProcPerNode in mpiPolicy must be >= 1"),
    ("TrainingRuntime", {"mlPolicy": {"flux": {"numProcPerNode": 0}}}, "NumProcPerNode in fluxPolicy must be >= 1"),
    ("TrainingRuntime", {"mlPolicy": {"torch": {"envInjection": {"targets": [{"jobName": "a", "containerNames": ["b", "node"]}]}}}},
     "containerNames must not include the main node container"),
    ("TrainingRuntime", {"mlPolicy": {"torch": {"envInjection": {"targets": [{"jobName": "a", "containerNames": []}]}}}},
     "should have at least 1 items"),
    ("TrainingRuntime", {"podGroupPolicy": {"volcano": {"networkTopology": {"mode": "firm"}}}}, "Unsupported value"),
    ("TrainingRuntime", {"podGroupPolicy": {"volcano": {}, "coscheduling": {}}}, None),
    ("TrainingRuntime", {"template": {}}, "spec.template in body should have at least 1 properties"),
    ("TrainingRuntime", {"template": {"spec": {"replicatedJobs": [{"name": "node"}]}}}, "template: Required value"),

    ("JobSet", {}, None),
    ("JobSet", {"replicatedJobs": [job("a", replicas=-1)]}, "should be greater than or equal to 0"),
    ("JobSet", {"replicatedJobs": [job("a", replicas=0)]}, None),
    ("JobSet", {"replicatedJobs": [job("a"), job("a")]},
     "spec.replicatedJobs[1]: Duplicate value"),
    ("JobSet", {"startupPolicy": {"startupPolicyOrder": "AnyOrder"}, "replicatedJobs": [
        job("a"), job("b", dependsOn=[{"name": "a", "status": "Ready"}])]}, None),
    ("JobSet", {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": [
        job("a"), job("b", dependsOn=[{"name": "a", "status": "Ready"}])]},
     "StartupPolicy and DependsOn APIs are mutually exclusive"),
    ("JobSet", {"replicatedJobs": [job("a"), job("b", dependsOn=[{"name": "a", "status": "Failed"}])]},
     "Unsupported value"),
    ("JobSet", {"replicatedJobs": [job("b", dependsOn=[{"name": f"a{i}", "status": "Ready"} for i in range(6)])]},
     "must have at most 5 items"),
    ("JobSet", {"volumeClaimPolicies": [{"templates": claims(1, namespace="other")}]},
     "namespace cannot be set for VolumeClaimPolicies templates"),
    ("JobSet", {"volumeClaimPolicies": [{"templates": claims(1)}] * 51}, "must have at most 50 items"),
    ("JobSet", {"volumeClaimPolicies": [{"templates": claims(51)}]}, "must have at most 50 items"),
    ("JobSet", {"failurePolicy": {"restartStrategy": "Often"}}, "Unsupported value"),
    ("JobSet", {"failurePolicy": {"rules": [{"name": "r", "action": "Ignore"}]}}, "Unsupported value"),
    ("JobSet", {"successPolicy": {"operator": "Some"}}, "Unsupported value"),
    ("JobSet", {"ttlSecondsAfterFinished": -1}, "should be greater than or equal to 0"),

    ("OptimizationJob", study(), None),
    ("OptimizationJob", {}, "spec.objectives: Required value"),
    ("OptimizationJob", study(objectives=[{"metric": "a"}, {"metric": "b"}]), "must have at most 1 item"),
    ("OptimizationJob", study(numTrials=2, parallelTrials=3), "parallelTrials cannot exceed numTrials"),
    ("OptimizationJob", study(numTrials=101), "should be less than or equal to 100"),
    ("OptimizationJob", study(searchAlgorithm={"random": {}, "grid": {}}),
     "exactly one of the fields in [random grid] must be set"),
    ("OptimizationJob", study(searchAlgorithm={"grid": {}}), "Grid search requires all parameters to be Categorical"),
    ("OptimizationJob", study(searchAlgorithm={"grid": {}}, **parameter(categorical={"choices": ["a"]})), None),
    ("OptimizationJob", study(**parameter()), "exactly one of the fields in [uniform logUniform categorical] must be set"),
    ("OptimizationJob", study(**parameter(uniform={"min": "1", "max": "1"})), "min must be strictly less than max"),
    ("OptimizationJob", study(**parameter(logUniform={"min": "0", "max": "1"})), "min must be strictly greater than 0"),
    ("OptimizationJob", study(**parameter(uniform={"min": "01", "max": "1"})), "should match"),
    ("OptimizationJob", study(trainJobTemplate={"metadata": {"name": "n"}, "spec": trainjob()}),
     "name and namespace cannot be set in a template."),
    ("OptimizationJob", study(trainJobTemplate={"spec": trainjob(labels={"a": "b"})}), "labels: Forbidden: was removed in v2.2"),
]

NAMES = [("valid-job-name", None), ("a" * 63, None), ("a" * 64, "metadata.name must be no more than 63 characters"),
         ("9lives", LABEL), ("a.b", LABEL)]

# kind, spec, path, value after the API server's defaults
DEFAULTS = [
    ("TrainJob", trainjob(), "suspend", False),
    ("TrainJob", trainjob(), "managedBy", "trainer.kubeflow.org/trainjob-controller"),
    ("TrainJob", trainjob(), "runtimeRef", {"name": "r", "apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"}),
    ("TrainJob", trainjob(initializer={"dataset": {"secretRef": {}}}), "initializer.dataset.secretRef.name", ""),
    ("TrainingRuntime", {"mlPolicy": {"mpi": {}}}, "mlPolicy.mpi",
     {"mpiImplementation": "OpenMPI", "numProcPerNode": 1, "runLauncherAsNode": False, "sshAuthMountPath": "/root/.ssh"}),
    ("TrainingRuntime", {"mlPolicy": {"flux": {}}}, "mlPolicy.flux.numProcPerNode", 1),
    ("TrainingRuntime", {"podGroupPolicy": {"coscheduling": {}}}, "podGroupPolicy.coscheduling.scheduleTimeoutSeconds", 60),
    ("TrainingRuntime", {"podGroupPolicy": {"volcano": {"networkTopology": {}}}}, "podGroupPolicy.volcano.networkTopology",
     {"mode": "hard", "highestTierAllowed": 1}),
    ("TrainingRuntime", {"template": {"spec": {"replicatedJobs": [job("node")]}}}, "template.spec.replicatedJobs.0.replicas",
     1),
    ("TrainingRuntime", {"template": {"spec": {"failurePolicy": {}}}}, "template.spec.failurePolicy.restartStrategy", "Recreate"),
    ("JobSet", {"replicatedJobs": [job("a")]}, "replicatedJobs.0.replicas", 1),
    ("JobSet", {"replicatedJobs": [job("a")]}, "replicatedJobs.0.groupName", "default"),
    ("JobSet", {"replicatedJobs": [job("a", replicas=0)]}, "replicatedJobs.0.replicas", 0),
    ("JobSet", {"replicatedJobs": [{"name": "a", "template": pods(containers=[{"name": "c", "ports": [{"containerPort": 1}]}])}]},
     "replicatedJobs.0.template.spec.template.spec.containers.0.ports.0.protocol", "TCP"),
    ("JobSet", {"failurePolicy": {}}, "failurePolicy.restartStrategy", "Recreate"),
    ("JobSet", {"volumeClaimPolicies": [{"templates": claims(1), "retentionPolicy": {}}]}, "volumeClaimPolicies.0.retentionPolicy.whenDeleted",
     "Delete"),
    ("OptimizationJob", study(), "searchAlgorithm", {"random": {}}),
    ("OptimizationJob", study(), "objectives.0.direction", "Minimize"),
    ("OptimizationJob", study(), "parameters.0.searchSpace.uniform.type", "Float"),
    # pruned, as a template's metadata holds only what a template may say
    ("JobSet", {"replicatedJobs": [{"name": "a", "template": {"metadata": {"labels": {"a": "b"}, "uid": "u"}, **pods()}}]},
     "replicatedJobs.0.template.metadata", {"labels": {"a": "b"}}),
    ("JobSet", {"replicatedJobs": [{"name": "a", "template": pods(tolerances=1)}]},
     "replicatedJobs.0.template.spec.template.spec", {"containers": [{"name": "node"}]}),
]

WHOLE = trainjob(trainer={"numNodes": 1}, initializer={"dataset": {"storageUri": "s3://a/b"}}, activeDeadlineSeconds=60, suspend=True,
                 runtimePatches=[patch({"serviceAccountName": "a", "terminationGracePeriodSeconds": 5})])
POLICIES = {"replicatedJobs": [job("a"), job("b", dependsOn=[{"name": "a", "status": "Ready"}])],
            "network": {"subdomain": "a"}, "successPolicy": {"operator": "All"}, "failurePolicy": {"maxRestarts": 1},
            "volumeClaimPolicies": [{"templates": claims(1)}]}
IMMUTABLE = "field is immutable"
VALUE = "Value is immutable"

# kind, stored spec, merge patch of the spec, text of the refusal or None
CHANGES = [
    ("TrainJob", WHOLE, {"managedBy": "kueue.x-k8s.io/multikueue"}, IMMUTABLE),
    ("TrainJob", WHOLE, {"runtimeRef": {"name": "other"}}, IMMUTABLE),
    ("TrainJob", WHOLE, {"initializer": {"dataset": {"storageUri": "s3://a/c"}}}, IMMUTABLE),
    ("TrainJob", WHOLE, {"trainer": {"numNodes": 2}}, IMMUTABLE),
    ("TrainJob", WHOLE, {"activeDeadlineSeconds": 61}, IMMUTABLE),
    ("TrainJob", WHOLE, {"suspend": False}, None),
    ("TrainJob", WHOLE, {"ttlSecondsAfterFinished": 10}, None),
    ("TrainJob", WHOLE, {"failurePolicy": {"maxRestarts": 1}}, "failurePolicy is immutable, and can be neither added nor removed"),
    ("TrainJob", trainjob(failurePolicy={"maxRestarts": 1}), {"failurePolicy": {"maxRestarts": 2}}, IMMUTABLE),
    ("TrainJob", trainjob(failurePolicy={"maxRestarts": 1}), {"failurePolicy": None}, "failurePolicy is immutable"),
    ("TrainJob", trainjob(failurePolicy={"maxRestarts": 1}), {"suspend": True}, None),
    ("TrainJob", WHOLE, {"runtimePatches": [patch({"serviceAccountName": "a", "terminationGracePeriodSeconds": 5, "nodeSelector": {"a": "b"}})]},
     None),
    ("TrainJob", WHOLE, {"runtimePatches": [patch({"serviceAccountName": "a", "terminationGracePeriodSeconds": 6})]}, IMMUTABLE),
    ("TrainJob", WHOLE, {"runtimePatches": [patch({"serviceAccountName": "b", "terminationGracePeriodSeconds": 5})]}, IMMUTABLE),
    # a rule that compares needs both values, so what was not there can be added, as upstream; a webhook refuses it once the job has run
    ("TrainJob", trainjob(), {"trainer": {"numNodes": 2}}, None),
    ("JobSet", POLICIES, {"suspend": True}, None),
    ("JobSet", POLICIES, {"suspend": None}, None),
    ("JobSet", POLICIES, {"network": {"subdomain": "b"}}, VALUE),
    ("JobSet", POLICIES, {"successPolicy": {"operator": "Any"}}, VALUE),
    ("JobSet", POLICIES, {"failurePolicy": {"maxRestarts": 2}}, VALUE),
    ("JobSet", POLICIES, {"volumeClaimPolicies": [{"templates": claims(2)}]}, VALUE),
    ("JobSet", POLICIES, {"replicatedJobs": [POLICIES["replicatedJobs"][0], {**POLICIES["replicatedJobs"][1], "dependsOn": [{"name": "a", "status": "Complete"}]}]},
     VALUE),
    ("JobSet", {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": []}, {"startupPolicy": {"startupPolicyOrder": "AnyOrder"}},
     VALUE),
    ("TrainingRuntime", {"template": {"spec": POLICIES}}, {"template": {"spec": {"failurePolicy": {"maxRestarts": 2}}}}, VALUE),
    ("TrainingRuntime", {"template": {"spec": POLICIES}}, {"mlPolicy": {"numNodes": 3}}, None),
    ("TrainingRuntime", {"runPolicy": {"failurePolicy": {"maxRestarts": 1}}}, {"runPolicy": {"failurePolicy": {"maxRestarts": 2}}}, None),
    ("OptimizationJob", study(), {"numTrials": 5}, "OptimizationJobSpec is immutable and cannot be updated after creation"),
]

CONDITION = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "", "lastTransitionTime": "2026-08-20T10:00:00Z"}
# kind, status, text of the refusal or None
STATUSES = [
    ("TrainJob", {"conditions": [CONDITION]}, None),
    ("TrainJob", {"conditions": [{**CONDITION, "reason": "not one word"}]}, "should match"),
    ("TrainJob", {"conditions": [CONDITION, CONDITION]}, "Duplicate value"),
    ("TrainJob", {"conditions": [{**CONDITION, "type": f"T{i}"} for i in range(9)]}, "must have at most 8 items"),
    ("TrainJob", {"jobsStatus": [{"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 0}]},
     "suspended: Required value"),
    ("TrainJob", {"jobsStatus": [{"name": "node", "ready": -1, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}]},
     "should be greater than or equal to 0"),
    ("TrainJob", {"trainerStatus": {"progressPercentage": 50}}, "lastUpdatedTime is required when trainerStatus is present"),
    ("TrainJob", {"trainerStatus": {"progressPercentage": 150, "lastUpdatedTime": "2026-08-20T10:00:00Z"}},
     "should be less than or equal to 100"),
    ("TrainJob", {"phase": "Asleep"}, "Unsupported value"),
    ("TrainJob", {"phase": "Failed", "reason": "PodFailed", "message": "m", "nodes": {"total": 2, "ready": 1, "summary": "1/2"}, "restarts": 0,
                  "firstFailure": {"pod": "p", "job": "node", "index": 0, "node": "m", "container": "node", "exitCode": 3, "reason": "Error",
                                   "message": "x" * 2048, "time": "2026-08-20T10:00:00Z"},
                  "startTime": "2026-08-20T10:00:00Z", "completionTime": "2026-08-20T10:00:00Z", "runtimeSnapshotHash": "a" * 64}, None),
    ("JobSet", {"restarts": 0, "replicatedJobsStatus": [{"name": "a", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}]},
     None),
    ("JobSet", {"restarts": 0, "replicatedJobsStatus": [{"name": "a"}]}, "Required value"),
    ("JobSet", {"restarts": 0, "currentInPlaceRestartAttempt": -1}, "should be greater than or equal to 0"),
]


class Bench:
    def __init__(self, is_verbose):
        self.api, self.passed, self.failed, self.is_verbose = Api(os.environ["KUBECONFIG"]), 0, 0, is_verbose

    def expect(self, what, is_good, seen):
        if is_good:
            self.passed += 1
        else:
            self.failed += 1
        if self.is_verbose or not is_good:
            print("ok  " if is_good else "FAIL", what, "" if is_good else f"\n     {str(seen)[:1000]}")

    def answer(self, what, code, body, refusal):
        message = body.get("message", "") if isinstance(body, dict) else str(body)
        if refusal is None:
            self.expect(what, code < 300, f"{code} {message}")
        else:
            self.expect(f"{what}: {refusal}", code == 422 and refusal in message, f"{code} {message}")

    def create(self, kind, spec, name="probe", dry=True):
        path = COLLECTIONS[kind] + ("?dryRun=All" if dry else "")
        return self.api.call("POST", path, document(kind, spec, name))

    def remove(self, kind, name="probe"):
        self.api.call("DELETE", f"{COLLECTIONS[kind]}/{name}")


def brief(value):
    text = json.dumps(value)
    return text if len(text) < 160 else text[:150] + "..."


def dig(value, path):
    for step in path.split("."):
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def check_specs(bench):
    for kind, spec, refusal in SPECS:
        bench.answer(f"{kind} {brief(spec)}", *bench.create(kind, spec), refusal)
    for name, refusal in NAMES:
        bench.answer(f"TrainJob named {name}", *bench.create("TrainJob", trainjob(), name), refusal)
    for kind, spec, path, want in DEFAULTS:
        _, body = bench.create(kind, spec)
        seen = dig(body.get("spec"), path)
        bench.expect(f"{kind} {brief(spec)} has {path} {brief(want)}", seen == want, seen or body)


def check_changes(bench):
    for kind, spec, change, refusal in CHANGES:
        code, body = bench.create(kind, spec, dry=False)
        bench.expect(f"{kind} {brief(spec)}", code == 201, body)
        answer = bench.api.call("PATCH", f"{COLLECTIONS[kind]}/probe", {"spec": change}, "application/merge-patch+json")
        bench.answer(f"{kind} change {brief(change)}", *answer, refusal)
        bench.remove(kind)


def check_statuses(bench):
    for kind, status, refusal in STATUSES:
        bench.create(kind, trainjob() if kind == "TrainJob" else {}, dry=False)
        answer = bench.api.call("PATCH", f"{COLLECTIONS[kind]}/probe/status", {"status": status}, "application/merge-patch+json")
        bench.answer(f"{kind} status {brief(status)}", *answer, refusal)
        bench.remove(kind)


def apply(bench, kind, name, spec, manager):
    body = document(kind, spec, name)
    return bench.api.call("PATCH", f"{COLLECTIONS[kind]}/{name}?fieldManager={manager}&force=true", body, "application/apply-patch+yaml")


def check_apply(bench):
    """Lists merge by their keys when two managers apply parts of one object."""
    def part(**container):
        return {"replicatedJobs": [{"name": "a", "template": pods(containers=[{"name": "c", **container}])}]}
    apply(bench, "JobSet", "merged", part(env=[{"name": "A", "value": "1"}], ports=[{"containerPort": 1}]), "one")
    second = part(env=[{"name": "B", "value": "2"}], ports=[{"containerPort": 1, "protocol": "UDP"}])
    code, body = apply(bench, "JobSet", "merged", second, "two")
    container = dig(body.get("spec"), "replicatedJobs.0.template.spec.template.spec.containers.0") or {}
    bench.expect("server-side apply merges env by name", [e["name"] for e in container.get("env", [])] == ["A", "B"], (code, body))
    bench.expect("server-side apply merges ports by number and protocol", len(container.get("ports", [])) == 2, container)
    bench.remove("JobSet", "merged")


def kubectl(*args):
    return subprocess.run(["kubectl", *args], capture_output=True, text=True, check=False)


def check_definitions(bench):
    """A plain `kubectl apply` takes the definitions, twice, and the API server serves them."""
    for _ in range(2):
        done = kubectl("apply", "-f", str(ROOT / "manifests/crds"))
        bench.expect("kubectl apply -f manifests/crds", done.returncode == 0, done.stderr)
        done = kubectl("apply", "-k", str(ROOT / "manifests/overlays/optimizationjob"))
        bench.expect("kubectl apply -k manifests/overlays/optimizationjob", done.returncode == 0, done.stderr)
    for kind in COLLECTIONS:
        group = COLLECTIONS[kind].split("/")[2]
        name = f"{COLLECTIONS[kind].rsplit('/', 1)[1]}.{group}"
        done = kubectl("wait", "--for=condition=Established", "--timeout=30s", f"crd/{name}")
        bench.expect(f"{name} is served", done.returncode == 0, done.stderr)
        conditions = bench.api.call("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")[1]["status"]["conditions"]
        bench.expect(f"{name} is structural", not any(c["type"] == "NonStructuralSchema" for c in conditions), conditions)
    done = kubectl("explain", "trainjob.spec.trainer.numNodes")
    bench.expect("kubectl explain knows what a field is for", "How many training nodes there are" in done.stdout, done.stdout + done.stderr)


def check_columns(bench):
    bench.create("TrainJob", trainjob(), "shown", dry=False)
    status = {"phase": "Running", "reason": "Training", "nodes": {"total": 3, "ready": 2, "summary": "2/3"}, "restarts": 1,
              "trainerStatus": {"progressPercentage": 42, "lastUpdatedTime": "2026-08-20T10:00:00Z"}}
    bench.api.call("PATCH", f"{COLLECTIONS['TrainJob']}/shown/status", {"status": status}, "application/merge-patch+json")
    shown = kubectl("get", "trainjobs", "-n", NS, "shown").stdout.split()
    bench.expect("columns of TrainJobs", shown[:7] == ["NAME", "STATE", "NODES", "RESTARTS", "PROGRESS", "RUNTIME", "AGE"], shown)
    bench.expect("their values", shown[7:13] == ["shown", "Running", "2/3", "1", "42", "r"], shown)
    bench.api.call("PATCH", f"{COLLECTIONS['TrainJob']}/shown/status", {"status": {"restartBudget": "1/3+0/2"}}, "application/merge-patch+json")
    shown = kubectl("get", "trainjobs", "-n", NS, "shown", "--no-headers").stdout.split()
    bench.expect("restarts of those allowed", shown[3] == "1/3+0/2", shown)
    status = {"firstFailure": {"pod": "shown-node-0-1-x"}, "message": "2 pods wait"}
    bench.api.call("PATCH", f"{COLLECTIONS['TrainJob']}/shown/status", {"status": status}, "application/merge-patch+json")
    kubectl("label", "trainjob", "-n", NS, "shown", "kueue.x-k8s.io/queue-name=research")
    head, line = kubectl("get", "trainjobs", "-n", NS, "shown", "-o", "wide").stdout.splitlines()
    wide = {name: line[head.index(name):].split("   ")[0] for name in ("REASON", "QUEUE", "ATTEMPT", "FIRST FAILURE", "WAITING FOR")}
    bench.expect("columns of TrainJobs with -o wide", wide == {
        "REASON": "Training", "QUEUE": "research", "ATTEMPT": "1", "FIRST FAILURE": "shown-node-0-1-x", "WAITING FOR": "2 pods wait"}, wide)
    bench.create("JobSet", {"suspend": True}, "shown", dry=False)
    status = {"restarts": 2, "terminalState": "Completed", "conditions": [{**CONDITION, "type": "Completed"}]}
    bench.api.call("PATCH", f"{COLLECTIONS['JobSet']}/shown/status", {"status": status}, "application/merge-patch+json")
    shown = kubectl("get", "jobsets", "-n", NS, "shown").stdout.split()
    bench.expect("columns of JobSets", shown[:6] == ["NAME", "TERMINALSTATE", "RESTARTS", "COMPLETED", "SUSPENDED", "AGE"], shown)
    bench.expect("their values", shown[6:11] == ["shown", "Completed", "2", "True", "true"], shown)


def make_namespace(bench):
    """A fresh one: what an earlier run left is waited for."""
    for _ in range(300):
        code, body = bench.api.call("POST", "/api/v1/namespaces", {"metadata": {"name": NS}})
        if code == 201:
            return
        bench.api.call("DELETE", f"/api/v1/namespaces/{NS}")
        time.sleep(0.2)
    sys.exit(f"namespace {NS}: {body.get('message')}")


def main():
    bench = Bench("--verbose" in sys.argv)
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        found = bench.api.call("GET", f"/apis/admissionregistration.k8s.io/v1/{kind}")[1]["items"]
        if any("trainer.kubeflow.org" in item["metadata"]["name"] for item in found):
            sys.exit("an admission webhook of trainer is installed; these rows test the schema alone")
    check_definitions(bench)
    make_namespace(bench)
    try:
        for check in (check_specs, check_changes, check_statuses, check_apply, check_columns):
            check(bench)
    finally:
        bench.api.call("DELETE", f"/api/v1/namespaces/{NS}")
    print(f"{bench.passed} passed, {bench.failed} failed")
    sys.exit(1 if bench.failed else 0)


if __name__ == "__main__":
    main()
