#!/usr/bin/python3
"""The official SDK of V1 jobs, unmodified, as its users call it (see frameworks). It is installed from PyPI into the user's cache."""
import dataclasses
import os
import pathlib
import shutil
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
import harness  # noqa: E402
import v1jobs  # noqa: E402
from harness import wait_until  # noqa: E402

# With the newest client of Kubernetes it sends the names of members as Python has them.
harness.use_sdk("kubeflow-training==1.9.3 kubernetes==31.0.0")
# Read when the SDK is imported. Without a tag the kubelet would ask the registry for a newer image.
IMAGES = {"STORAGE_INITIALIZER_IMAGE": "ghcr.io/kubeflow/training-v1/storage-initializer:stand-in",
          "TRAINER_TRANSFORMER_IMAGE": "ghcr.io/kubeflow/training-v1/trainer-huggingface:stand-in"}
os.environ.update(IMAGES)
from kubeflow.training import TrainingClient, models  # noqa: E402
from kubeflow.training.constants import constants  # noqa: E402

# The roles of each kind. The one that decides is first, and says hello.
ROLES = {"PyTorchJob": ("Master", "Worker"), "TFJob": ("Chief", "Worker"), "XGBoostJob": ("Master", "Worker"),
         "PaddleJob": ("Master", "Worker"), "JAXJob": ("Worker",), "MPIJob": ("Launcher", "Worker")}


def model_of(kind, name, namespace):
    """A job of one pod for each role, as users build it of the SDK's classes."""
    parameters = constants.JOB_PARAMETERS[kind]
    spec_class = getattr(models, parameters["model"] + "Spec")
    member = next(name for name in spec_class.attribute_map if name.endswith("replica_specs"))

    def replicas(command):
        container = models.V1Container(name=parameters["container"], image=v1jobs.INIT_IMAGE, command=["sh", "-c", command])
        return models.KubeflowOrgV1ReplicaSpec(replicas=1, template=models.V1PodTemplateSpec(
            spec=models.V1PodSpec(termination_grace_period_seconds=1, containers=[container])))

    first, *others = ROLES[kind]
    specs = {first: replicas("sleep 1; echo hello from $HOSTNAME"), **{role: replicas("sleep 600") for role in others}}
    return getattr(models, parameters["model"])(
        api_version=constants.API_VERSION, kind=kind, metadata=models.V1ObjectMeta(name=name, namespace=namespace),
        spec=spec_class(run_policy=models.KubeflowOrgV1RunPolicy(clean_pod_policy="None"), **{member: specs}))


def test_all_kinds(cluster):
    """Created, waited for, read and deleted."""
    client = TrainingClient(namespace=cluster.namespace)
    for kind in ROLES:
        client.create_job(job=model_of(kind, kind.lower(), cluster.namespace))
    for kind, roles in ROLES.items():
        name = kind.lower()
        pods = [f"{name}-launcher" if role == "Launcher" else f"{name}-{role.lower()}-0" for role in roles]
        job = client.wait_for_job_conditions(name, job_kind=kind, wait_timeout=90, polling_interval=1)
        assert client.is_job_succeeded(name, job_kind=kind) and not client.is_job_failed(name, job_kind=kind), job
        assert client.is_job_created(name, job_kind=kind), job.status.conditions
        assert sorted(client.get_job_pod_names(name)) == pods, client.get_job_pod_names(name)
        assert client.get_job_pod_names(name, replica_type=roles[0].lower()) == pods[:1]
        logs, _ = client.get_job_logs(name, job_kind=kind, is_master=True)
        assert logs == {pods[0]: f"hello from {pods[0]}\n"}, (kind, logs)
        assert [j.metadata.name for j in client.list_jobs(job_kind=kind)] == [name]
        client.delete_job(name, job_kind=kind)
    wait_until("nothing is left", lambda: not cluster.list("pods,services"), seconds=60)


def hello():
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo")
    total = torch.ones(1)
    dist.all_reduce(total)
    print("rank", dist.get_rank(), "counts", int(total.item()))


def test_a_function_on_three_workers(cluster):
    client = TrainingClient(namespace=cluster.namespace)
    client.create_job(name="function", job_kind="PyTorchJob", train_func=hello, base_image=v1jobs.TORCH_IMAGE, num_workers=3,
                      num_procs_per_worker=1, env_vars={"OMP_NUM_THREADS": "1"})
    seen = []
    client.wait_for_job_conditions("function", job_kind="PyTorchJob", wait_timeout=150, polling_interval=1,
                                   callback=lambda job: seen.append([c.type for c in (job.status and job.status.conditions) or []]))
    assert sorted(client.get_job_pod_names("function")) == ["function-master-0", "function-worker-0", "function-worker-1"]
    logs, events = client.get_job_logs("function", job_kind="PyTorchJob", is_master=True, verbose=True)
    assert "rank 0 counts 3" in logs["function-master-0"], (logs, seen)
    assert any("Created pod: function-worker-1" in event for event in events["pytorchjob/function"]), events
    client.delete_job("function", job_kind="PyTorchJob")


def install_modules():
    """The names that train() uses of transformers and peft, which need PyTorch: for Linux, PyPI has it only with gigabytes of libraries for GPUs."""
    @dataclasses.dataclass
    class Parameters:
        epochs: int = 1

        def to_dict(self):
            return dataclasses.asdict(self)

    models_of = ("SequenceClassification", "TokenClassification", "QuestionAnswering", "CausalLM", "MaskedLM", "ImageClassification")
    members = {f"AutoModelFor{of}": type(f"AutoModelFor{of}", (), {}) for of in models_of}
    for name, attributes in {"transformers": {**members, "TrainingArguments": Parameters}, "peft": {"LoraConfig": Parameters}}.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(attributes)
    return sys.modules["transformers"]


def test_train(cluster):
    """A claim that the SDK makes, an init container on the master alone that fills it, and workers that read it. The images are
    stand-ins (see v1-images)."""
    transformers = install_modules()
    from kubeflow.storage_initializer import hugging_face
    folder = f"/var/tmp/{cluster.namespace}"
    shutil.rmtree(folder, ignore_errors=True)
    cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": cluster.namespace}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "persistentVolumeReclaimPolicy": "Delete",
        "claimRef": {"namespace": cluster.namespace, "name": "tune"}, "hostPath": {"path": folder, "type": "DirectoryOrCreate"}}})
    try:
        client = TrainingClient(namespace=cluster.namespace)
        client.train(
            name="tune", num_workers=3, num_procs_per_worker=1, storage_config={"size": "1Gi", "storage_class": None},
            model_provider_parameters=hugging_face.HuggingFaceModelParams(
                model_uri="hf://a/model", transformer_type=transformers.AutoModelForCausalLM),
            dataset_provider_parameters=hugging_face.HuggingFaceDatasetParams(repo_id="a/dataset"),
            trainer_parameters=hugging_face.HuggingFaceTrainerParams())
        client.wait_for_job_conditions("tune", job_kind="PyTorchJob", wait_timeout=150, polling_interval=1)
        pods = v1jobs.pods_of(cluster, "tune")
        images = {name: [c["image"] for c in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]] for name, pod in pods.items()}
        assert images == {"tune-master-0": list(IMAGES.values()),
                          **{f"tune-worker-{i}": [v1jobs.INIT_IMAGE, IMAGES["TRAINER_TRANSFORMER_IMAGE"]] for i in range(2)}}, images
        for rank, pod in enumerate(("master-0", "worker-0", "worker-1")):   # a worker may end after the job
            line = wait_until("all say so", lambda pod=f"tune-{pod}": harness.run(
                "kubectl", "-n", cluster.namespace, "logs", pod, check=False).stdout)
            assert line.startswith(f"rank {rank} of 3 trains hf://a/model with ") and "a/dataset" in line, line
        assert cluster.get("pvc", "tune")["status"]["phase"] == "Bound"
        client.delete_job("tune", job_kind="PyTorchJob")
    finally:
        harness.run("kubectl", "delete", "persistentvolume", cluster.namespace, "--wait=false")
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    harness.main(__file__, parallel=2)
