#!/usr/bin/python3
"""A data cache as the official Python SDK asks for it: how many pods it has, how large, and with which role. Needs a control
plane without node.
"""
import json

import harness
from clients_test import TRAINER, served
from harness import run, wait_until

harness.use_sdk()
from kubeflow.common.types import KubernetesBackendConfig  # noqa: E402
from kubeflow.trainer import CustomTrainer, DataCacheInitializer, Initializer, TrainerClient  # noqa: E402
from kubeflow.trainer.options import Name  # noqa: E402

RUNTIME = "torch-distributed-with-cache"
CACHE = ("-l", "jobset.sigs.k8s.io/replicatedjob-name=dataset-initializer")
ROLE = "arn:aws:iam::123456789012:role/table"


def train():
    print("trains")


def container_of(pod):
    return pod["spec"]["containers"][0]


def env_of(pod):
    return {one["name"]: one.get("value") for one in container_of(pod)["env"]}


def test_sizes_and_roles_through_the_sdk(cluster):
    run("kubectl", "apply", "-f", str(harness.ROOT / "manifests/base/public.yaml"))
    run("kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-", text=run(harness.TRAINER, "runtimes", RUNTIME).stdout)
    with served(cluster):
        client = TrainerClient(KubernetesBackendConfig(namespace=cluster.namespace))
        dataset = DataCacheInitializer(storage_uri="cache://schema/table", metadata_loc="s3a://b/m.json", num_data_nodes=4, worker_mem="64Gi")
        name = client.train(runtime=client.get_runtime(RUNTIME), initializer=Initializer(dataset=dataset), options=[Name("sized")],
                            trainer=CustomTrainer(func=train, num_nodes=2))
        pods = wait_until("five cache pods", lambda: len(found := cluster.list("pods", *CACHE)) >= 5 and found)
        assert len(pods) == 5, [pod["metadata"]["name"] for pod in pods]
        for pod in pods:
            asked = {"cpu": "2", "memory": "64Gi"}
            assert container_of(pod)["resources"] == {"requests": asked, "limits": asked}, pod
            assert env_of(pod)["LWS_GROUP_SIZE"] == "5", pod
        assert len(cluster.list("pods")) == 5, "the trainer waits until the cache is ready"
        service = cluster.get("service", "sized-cache-service")
        assert service["metadata"]["ownerReferences"][0]["kind"] == "TrainJob", service
        # Pods have the labels by which the Service finds the head.
        selector = ",".join(f"{key}={value}" for key, value in service["spec"]["selector"].items())
        head, = cluster.list("pods", "-l", selector)
        assert head["metadata"]["name"].startswith("sized-dataset-initializer-0-0-"), head

        spec = cluster.get("trainjob", name)["spec"]
        cluster.kubectl("delete", "trainjob", name)
        job = {"apiVersion": TRAINER, "kind": "TrainJob", "metadata": {"name": "queued", "labels": {"kueue.x-k8s.io/queue-name": "q"}}, "spec": spec}
        said = cluster.refusal(job)
        for i, value in ((0, "5"), (2, "64Gi")):
            assert f'spec.initializer.dataset.env[{i}].value: Invalid value: "{value}": with label kueue.x-k8s.io/queue-name' in said, said

        spec["initializer"]["dataset"]["env"] = [{"name": "METADATA_LOC", "value": "m"}, {"name": "IAM_ROLE", "value": ROLE}]
        job["metadata"] = {"name": "with-role"}
        said = cluster.refusal(job)
        assert f'ClusterTrainingRuntime "{RUNTIME}" does not allow this IAM_ROLE' in said, said
        cluster.kubectl("annotate", "clustertrainingruntime", RUNTIME, f"trainer.kubeflow.org/data-cache-iam-roles={ROLE}")
        wait_until("the role is allowed", lambda: run(
            "kubectl", "-n", cluster.namespace, "apply", "-f", "-", text=json.dumps(job), check=False).returncode == 0)
        of_job = CACHE[1] + ",jobset.sigs.k8s.io/jobset-name=with-role"
        pods = wait_until("three cache pods", lambda: len(found := cluster.list("pods", "-l", of_job)) == 3 and found)
        assert {env_of(pod).get("AWS_ROLE_ARN") for pod in pods} == {ROLE}, pods
        cluster.kubectl("delete", "trainjob", "with-role")
    run("kubectl", "delete", "clustertrainingruntime", RUNTIME)


if __name__ == "__main__":
    harness.main(__file__)
