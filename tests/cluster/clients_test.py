#!/usr/bin/python3
"""Requests of clients, as the API server passes them on: fields that a client may not know, a finalizer
of an earlier Trainer, a Service that exists already, an object of another owner. Needs a control plane without node.
"""
import contextlib
import json
import os
import tempfile

import harness
from harness import Failed, run, wait_until

TRAINER = "trainer.kubeflow.org/v1alpha1"
FINALIZER = "trainer.kubeflow.org/resource-in-use"
CONTAINER = {"name": "node", "image": "localhost/none:1", "resources": {"requests": {"cpu": "1"}}}


def runtime(name="plain", run_policy=None, **metadata):
    job = {"name": "node", "template": {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}}}
    return {"apiVersion": TRAINER, "kind": "TrainingRuntime", "metadata": {"name": name, **metadata},
            "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": [job]}},
                     **({"runPolicy": run_policy} if run_policy else {})}}


def trainjob(name, **spec):
    return {"apiVersion": TRAINER, "kind": "TrainJob", "metadata": {"name": name},
            "spec": {"runtimeRef": {"name": "plain", "kind": "TrainingRuntime"}, **spec}}


@contextlib.contextmanager
def served(cluster):
    """A controller with admission, and a runtime in the namespace."""
    with tempfile.TemporaryDirectory() as directory:
        controller = harness.Controller(directory, "--webhook-url", f"https://{os.environ['TESTBED_HOST']}:9443")
        with open(os.path.join(directory, "controller.yaml"), "a") as config:
            config.write("removeLegacyFinalizers: true\n")
        controller.start()
        try:
            wait_until("admission", lambda: "webhooks published" in controller.said())
            cluster.apply(runtime())
            yield controller
            controller.stop()
        finally:
            controller.kill()


def time_to_live(cluster, name):
    return cluster.get("trainjob", name)["spec"].get("ttlSecondsAfterFinished")


def test_kubectl_removes_a_field_of_this_controller(cluster):
    with served(cluster):
        cluster.apply(trainjob("ttl-patch", suspend=True, ttlSecondsAfterFinished=60))
        cluster.kubectl("patch", "trainjob", "ttl-patch", "--type=merge", "-p", '{"spec":{"ttlSecondsAfterFinished":null}}')
        if time_to_live(cluster, "ttl-patch") is not None:
            raise Failed("the field came back")


def test_a_client_that_does_not_know_a_field_keeps_it(cluster):
    with served(cluster):
        policy = {"maxRestarts": 3, "maxDisruptionRestarts": 2, "rules": [{"name": "a", "action": "FailJobSet"}]}
        cluster.apply(trainjob("ttl-put", suspend=True, ttlSecondsAfterFinished=60, failurePolicy=policy))

        def leave_out(spec):
            spec.pop("ttlSecondsAfterFinished")
            spec.pop("failurePolicy")

        cluster.put_trainjob("ttl-put", leave_out)
        if time_to_live(cluster, "ttl-put") != 60:
            raise Failed("a PUT without field manager has removed the field")
        if cluster.get("trainjob", "ttl-put")["spec"].get("failurePolicy") != policy:
            raise Failed("a PUT without field manager has removed the failure policy")
        cluster.put_trainjob("ttl-put", lambda spec: spec.pop("ttlSecondsAfterFinished"), "someone")
        if time_to_live(cluster, "ttl-put") is not None:
            raise Failed("a client that names itself could not remove the field")


def test_a_client_that_does_not_know_a_run_policy_keeps_it(cluster):
    with served(cluster):
        cluster.apply(runtime("defaults", run_policy={"ttlSecondsAfterFinished": 60}))
        made = cluster.get("trainingruntime", "defaults")
        made["spec"].pop("runPolicy")
        cluster.kubectl("replace", "--raw", f"/apis/{TRAINER}/namespaces/{cluster.namespace}/trainingruntimes/defaults", "-f", "-",
                        text=json.dumps(made))
        if cluster.get("trainingruntime", "defaults")["spec"].get("runPolicy") != {"ttlSecondsAfterFinished": 60}:
            raise Failed("a PUT without field manager has removed the run policy")


def test_a_queue_stops_what_it_never_started(cluster):
    with served(cluster):
        patch = {"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": {"spec": {}}}}
        cluster.apply(trainjob("by-hand", suspend=True, trainer={"command": ["python"]}, runtimePatches=[patch]))
        cluster.kubectl("patch", "trainjob", "by-hand", "--type=merge", "-p", '{"spec":{"suspend":false}}')

        def stop_and_change(spec):
            spec["suspend"] = True
            spec["trainer"]["command"] = ["python", "--nnodes=1"]

        cluster.put_trainjob("by-hand", stop_and_change)
        stored = cluster.get("trainjob", "by-hand")["spec"]
        if not stored["suspend"] or stored["trainer"]["command"] != ["python"]:
            raise Failed(f"stored is {stored}")


def test_a_runtime_of_before_can_be_deleted(cluster):
    with served(cluster):
        cluster.apply(runtime("before", finalizers=[FINALIZER, "acme.io/keep"]))
        wait_until("the finalizer to go", lambda: cluster.get("trainingruntime", "before")["metadata"]["finalizers"] == ["acme.io/keep"])
        cluster.kubectl("patch", "trainingruntime", "before", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        cluster.kubectl("delete", "trainingruntime", "before", "--timeout=10s")


def test_a_service_without_a_controller_is_shared(cluster):
    with served(cluster):
        cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shared"},
                     "spec": {"clusterIP": "None", "selector": {"app": "x"}}})
        pods = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
        cluster.apply({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "beside"}, "spec": {
            "network": {"subdomain": "shared"}, "replicatedJobs": [{"name": "w", "template": {"spec": {"template": pods}}}]}})
        wait_until("the Job", lambda: cluster.get("job", "beside-w-0"))
        warnings = cluster.kubectl("get", "events", "--field-selector", "involvedObject.name=beside,type=Warning", "-o", "name")
        if warnings.strip():
            raise Failed(f"there is a Warning event: {warnings}")
        if cluster.get("service", "shared")["metadata"].get("ownerReferences"):
            raise Failed("the Service was adopted")


def test_an_object_that_takes_a_name_is_checked_again(cluster):
    with served(cluster):
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "waits-runtime-snapshot"}, "data": {"runtime": "x"}})
        cluster.apply(trainjob("waits"))
        wait_until("the refusal", lambda: cluster.get("trainjob", "waits").get("status", {}).get("reason") == "RuntimeSnapshotInvalid")
        cluster.kubectl("delete", "configmap", "waits-runtime-snapshot")
        wait_until("the job to go on", lambda: cluster.get("jobset", "waits"), seconds=60)


def test_only_a_job_that_has_patches_or_old_fields_is_sent_to_be_changed(cluster):
    def calls(what):
        return controller.metric("controller_runtime_webhook_requests_total",
                                 f'webhook="/{what}-trainer-kubeflow-org-v1alpha1-trainjob"')

    def create(made):
        # Older clients know nothing of the schema.
        return run("kubectl", "-n", cluster.namespace, "create", "--validate=false", "-f", "-", check=False, text=json.dumps(made)).stderr

    with served(cluster) as controller:
        cluster.apply(trainjob("as-it-is", suspend=True, trainer={"numNodes": 2, "numProcPerNode": 2}))
        if (calls("mutate"), calls("validate")) != (0, 1):
            raise Failed(f"{calls('mutate')} and {calls('validate')} calls")
        override = {"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"a": "b"}}}
        for name, spec in {
                "patched": {"runtimePatches": [{"manager": "a.io/b", "trainingRuntimeSpec": {}}]},
                "labelled": {"labels": {"a": "b"}},
                "overridden": {"podTemplateOverrides": [override]},
                "counted": {"trainer": {"numProcPerNode": "4"}}}.items():
            said = create(trainjob(name, suspend=True, **spec))
            if "Error" in said:
                raise Failed(f"{name}: {said}")
        for name in ("patched", "labelled", "overridden"):
            patch = cluster.get("trainjob", name)["spec"]["runtimePatches"][0]
            if not patch.get("time"):
                raise Failed(f"{name}: {patch}")
        if cluster.get("trainjob", "counted")["spec"]["trainer"]["numProcPerNode"] != 4:
            raise Failed("the number was not converted")
        if calls("mutate") != 4:
            raise Failed(f"{calls('mutate')} calls for four such jobs")
        # Conditions come before schemas, and must not be what refuses these.
        for spec in ("text", None, [1], {"trainer": "text"}, {"trainer": None, "runtimeRef": 1}):
            said = create({**trainjob("odd"), "spec": spec})
            if "is invalid" not in said and "not found: specified" not in said:
                raise Failed(f"spec {spec!r}: {said}")


if __name__ == "__main__":
    harness.main(__file__)
