#!/usr/bin/python3
"""docs/examples whose libraries want a newer PyTorch than Debian 12 has: FSDP, DeepSpeed, TRL (see frameworks).

Their image is made of Debian 13 and PyPI, once on a machine (`testbed frameworks`), which takes minutes: so they run with LONG=yes only.
"""
import functools
import json
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
import blueprints  # noqa: E402
import harness  # noqa: E402
from harness import ROOT, TRAINER, Failed, run, wait_until  # noqa: E402

IMAGE = "localhost/frameworks:1"


@functools.cache
def load_image():
    run(str(ROOT / "tests/cluster/testbed"), "frameworks")


def completes(cluster, name, runtime_kind="ClusterTrainingRuntime"):
    """Runs an example, with the image above, and answers what it has printed."""
    load_image()
    job = json.loads(run("kubectl", "create", "--dry-run=client", "-o", "json", "-f", str(ROOT / f"docs/examples/{name}.yaml")).stdout)
    job["metadata"].pop("namespace", None)
    job["spec"]["trainer"]["image"] = IMAGE
    job["spec"]["runtimeRef"]["kind"] = runtime_kind
    cluster.apply(job)

    def ended():
        if cluster.condition("trainjob", name, "Failed"):
            raise Failed(cluster.why(name))
        return cluster.condition("trainjob", name, "Complete")

    wait_until(f"{name} is Complete", ended, seconds=300)
    return run(TRAINER, "logs", "-n", cluster.namespace, name, "--tail", "1000").stdout


def losses(printed):
    return [float(loss) for loss in re.findall(r"loss'?:? '?([0-9.]+)", printed)]


@harness.only_with_long
def test_fsdp(cluster):
    printed = completes(cluster, "fsdp")
    held = re.findall(r"rank (\d) of 2 holds (\d+) of (\d+) parameters", printed)
    assert {rank for rank, _, _ in held} == {"0", "1"}, printed
    assert all(int(mine) < 0.51 * int(whole) for _, mine, whole in held), printed
    assert f"saved {held[0][2]} parameters" in printed, printed
    assert len(losses(printed)) == 3 and losses(printed)[2] < losses(printed)[0], printed


@harness.only_with_long
def test_deepspeed_zero(cluster):
    load_image()
    blueprints.mpi_runtime(cluster, "deepspeed-distributed", IMAGE)
    printed = completes(cluster, "deepspeed-zero", "TrainingRuntime")
    held = re.findall(r"rank (\d) of 2 on (\S+) optimizes (\d+) of (\d+) parameters", printed)
    assert {rank for rank, _, _, _ in held} == {"0", "1"} and len({host for _, host, _, _ in held}) == 2, printed
    assert all(int(mine) < 0.51 * int(whole) for _, _, mine, whole in held), printed
    assert len(losses(printed)) == 3 and losses(printed)[2] < losses(printed)[0], printed


# A model of a megabyte that knows nothing, a tokenizer of whole words, and what is to be learned.
BASE = """
import json, os
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
capitals = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo"}
texts = [f"the capital of {country} is {capital} ." for country, capital in capitals.items()] * 32
words = Tokenizer(models.WordLevel(unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
words.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=["<unk>", "<pad>", "<eos>"]))
PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", pad_token="<pad>", eos_token="<eos>").save_pretrained("/models/base")
LlamaForCausalLM(LlamaConfig(vocab_size=words.get_vocab_size(), hidden_size=64, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4,
                             max_position_embeddings=64, pad_token_id=1, eos_token_id=2)).save_pretrained("/models/base")
os.makedirs("/models/data")
with open("/models/data/train.jsonl", "w") as file:
    file.writelines(json.dumps({"text": text}) + "\\n" for text in texts)
"""


@harness.only_with_long
def test_lora_trl(cluster):
    load_image()
    path = pathlib.Path("/var/tmp", cluster.namespace)
    mount = {"name": "models", "mountPath": "/models"}
    cluster.apply(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": cluster.namespace}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": cluster.namespace, "name": "models"}, "hostPath": {"path": str(path), "type": "DirectoryOrCreate"}}},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models"}, "spec": {
            "accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": cluster.namespace, "resources": {"requests": {"storage": "1Gi"}}}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "base"}, "spec": {
            "restartPolicy": "Never", "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}],
            "containers": [{"name": "base", "image": IMAGE, "command": ["python3", "-c", BASE], "volumeMounts": [mount]}]}})
    try:
        wait_until("the base model is made", lambda: cluster.get("pod", "base")["status"].get("phase") == "Succeeded", seconds=300)
        printed = completes(cluster, "lora-trl")
        assert losses(printed)[3] < losses(printed)[0], printed
        adapter, base = path / "adapter/adapter_model.safetensors", path / "base/model.safetensors"
        assert 0 < adapter.stat().st_size < base.stat().st_size / 2, printed
        assert json.loads((path / "adapter/adapter_config.json").read_text())["r"] == 8, printed
    finally:
        run("kubectl", "delete", "persistentvolume", cluster.namespace, "--wait=false")
        shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    harness.main(__file__)
