#!/usr/bin/python3
"""The controller as a Deployment with admission through its Service, and jobs in real pods (see run)."""
import json
import os
import pathlib
import re
import shutil
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("cluster", "conformance", "manifests")]
import harness  # noqa: E402
import pages  # noqa: E402
from conform import Api  # noqa: E402
from harness import ROOT, TRAINER, Failed, run, wait_until  # noqa: E402

SYSTEM = harness.Cluster("kubeflow-system")
MANAGER = "kubeflow-trainer-controller-manager"


def trainjob(name, **trainer):
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": name},
            "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer}}


def test_installs_and_becomes_ready(_):
    run("kubectl", "apply", "--server-side", "-k", str(ROOT / "tests/e2e/manager"))
    SYSTEM.kubectl("rollout", "status", f"deployment/{MANAGER}", "--timeout=60s")
    pod, = SYSTEM.list("pods", "-l", "app.kubernetes.io/component=manager")
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    metrics = run("kubectl", "get", "--raw", f"/api/v1/namespaces/{SYSTEM.namespace}/pods/https:{pod['metadata']['name']}:8443/proxy/metrics").stdout
    assert f"\ntrainer_memory_limit_bytes {1 << 30}\n" in metrics, "the limit of the Deployment is not in the metrics"
    run("kubectl", "apply", "--server-side", "-k", str(ROOT / "tests/cluster/runtimes"))
    assert run("kubectl", "get", "clustertrainingruntime", "torch-distributed").returncode == 0


def run_as_any_user(cluster, deployment):
    """The platform chooses the user, as on OpenShift: it owns no file of the image, and is in no group but root's."""
    security = {"spec": {"template": {"spec": {"securityContext": {"runAsUser": 1_000_650_000, "runAsGroup": 0, "fsGroup": 1_000_650_000}}}}}
    for change in (security, {"spec": {"template": {"spec": {"securityContext": dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"))}}}}):
        cluster.kubectl("patch", f"deployment/{deployment}", "--type=merge", "-p", json.dumps(change))
        cluster.kubectl("rollout", "status", f"deployment/{deployment}", "--timeout=90s")


def test_any_user_will_do(_):
    run_as_any_user(SYSTEM, MANAGER)
    assert SYSTEM.kubectl("get", "namespace", SYSTEM.namespace, "-o", r"jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}") == "restricted"


def test_webhooks_are_those_that_are_shipped(_):
    """The webhooks of manifests/base/webhooks.yaml are those that the program itself installs outside a cluster."""
    def configurations():
        items = []
        for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            items += json.loads(run("kubectl", "get", kind, "-o", "json").stdout)["items"]
        for item in items:
            for webhook in item["webhooks"]:
                assert webhook["clientConfig"].get("caBundle"), f"{webhook['name']} has no CA"
                # Who calls and where to differ; what is sent and when must not.
                webhook["clientConfig"] = None
                for condition in webhook.get("matchConditions", []):
                    condition["expression"] = condition["expression"].replace("system:serviceaccount:kubeflow-system:" + MANAGER, "ME")
                    condition["expression"] = " ".join(condition["expression"].replace("'admin'", "'ME'").split())
        return {(i["kind"], i["metadata"]["name"]): i["webhooks"] for i in items}

    shipped = wait_until("every webhook has a CA", lambda: _quiet(configurations))
    SYSTEM.kubectl("scale", f"deployment/{MANAGER}", "--replicas=0")
    run("kubectl", "delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--all")
    wait_until("the Deployment's pod is gone", lambda: not SYSTEM.list("pods", "-l", "app.kubernetes.io/component=manager"))
    controller = harness.Controller(os.path.dirname(os.environ["KUBECONFIG"]), "--webhook-url", f"https://{os.environ['TESTBED_HOST']}:9443")
    try:
        controller.start()
        own = wait_until("the program's own webhooks", configurations)
        controller.stop()
        assert not configurations(), "webhooks were left behind on SIGTERM"
    finally:
        controller.kill()
        run("kubectl", "apply", "--server-side", "--force-conflicts", "-k", str(ROOT / "tests/e2e/manager"))
        SYSTEM.kubectl("rollout", "status", f"deployment/{MANAGER}", "--timeout=60s")
    # The leader before gave its Lease back: so no other replica waits the fifteen seconds after which a Lease expires.
    wait_until("the next leader says what CA it has", lambda: _quiet(configurations), seconds=10)
    assert own == shipped, f"the program installs\n{json.dumps(own, indent=1)}\nthe manifests say\n{json.dumps(shipped, indent=1)}"


def _quiet(probe):
    try:
        return probe()
    except AssertionError:
        return None


def test_admission_through_the_service(cluster):
    orphan = trainjob("orphan")
    orphan["spec"]["runtimeRef"]["name"] = "nowhere"
    refused = cluster.refusal(orphan)
    assert "nowhere" in refused and "validator.trainjob.trainer.kubeflow.org" in refused, refused
    refused = cluster.refusal(trainjob("reserved", env=[{"name": "PET_NNODES", "value": "7"}]))
    assert "PET_NNODES" in refused, refused


def test_main_job(cluster):
    """docs/examples/torch-ddp.yaml: two pods, two ranks each, an all-reduce that all of them check."""
    cluster.kubectl("apply", "-f", str(ROOT / "docs/examples/torch-ddp.yaml"))
    seen = []

    def phase():
        now = (cluster.get("trainjob", "torch-ddp").get("status") or {}).get("phase")
        if now and (not seen or seen[-1] != now):
            seen.append(now)
        return now in ("Complete", "Failed")

    wait_until("the job ends", phase, seconds=120)
    assert seen[-1] == "Complete" and "Running" in seen, seen
    logs = run(TRAINER, "logs", "-n", cluster.namespace, "torch-ddp").stdout
    for rank in range(4):
        assert re.search(rf"rank {rank} \w+ y = 3\.0", logs), logs
    status = cluster.get("trainjob", "torch-ddp")["status"]
    assert [c["type"] for c in status["conditions"]] == ["Complete"], status
    assert status["nodes"] == {"ready": 0, "total": 2} or status["nodes"]["total"] == 2, status
    row = cluster.kubectl("get", "trainjob", "torch-ddp", "--no-headers").split()
    assert row[1] == "Complete", row


def test_failure_leaves_evidence(cluster):
    """Exit 3 on one of two nodes: Failed within 15 s, and the status says why, also when the pods are deleted."""
    run("kubectl", "apply", "-n", cluster.namespace, "-f", str(ROOT / "docs/examples/failing.yaml"))
    wait_until("the node that fails has begun", lambda: any(
        c.get("state", {}).get("running") or c.get("state", {}).get("terminated")
        for p in cluster.list("pods") if p["metadata"]["name"].startswith("failing-node-0-1-")
        for c in p["status"].get("containerStatuses", [])), seconds=60)
    began = time.monotonic()
    wait_until("the job is Failed", lambda: cluster.condition("trainjob", "failing", "Failed"), seconds=15)
    print(f"     Failed {time.monotonic() - began:.1f} s after its container ran")
    cluster.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    wait_until("the pods are gone", lambda: not cluster.list("pods"))
    time.sleep(2)   # were anything going to be overwritten, it would be by the pods' end
    first = cluster.get("trainjob", "failing")["status"]["firstFailure"]
    assert first["exitCode"] == 3 and first["container"] == "node", first
    assert first["pod"].startswith("failing-node-0-1-"), first
    assert "FileNotFoundError: /data/train.parquet" in json.dumps(first), first
    why = cluster.why("failing")
    assert "FileNotFoundError: /data/train.parquet" in why and "3" in why, why


def test_goes_on_from_its_checkpoint(cluster):
    """docs/examples/checkpoint.yaml: the pod is killed, and attempt 1 continues after the step that attempt 0 has saved."""
    path = f"/var/tmp/{cluster.namespace}"
    cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": cluster.namespace}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": cluster.namespace, "name": "checkpoints"}, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}})
    try:
        cluster.kubectl("apply", "-f", str(ROOT / "docs/examples/checkpoint.yaml"))

        def printed():
            return run(TRAINER, "logs", "-n", cluster.namespace, "checkpoint", check=False).stdout

        wait_until("attempt 0 has saved a few steps", lambda: "step 4:" in printed(), seconds=90, every=0.5)
        assert "attempt 0 starts at step 0" in printed(), printed()
        cluster.kubectl("delete", "pod", "--all", "--grace-period=1", "--wait=false")
        wait_until("the job has ended", lambda: cluster.get("trainjob", "checkpoint")["status"]["phase"] in ("Complete", "Failed"), seconds=120)
        text, status = printed(), cluster.get("trainjob", "checkpoint")["status"]
        assert status["phase"] == "Complete" and status["restarts"] == 1, status
        begun = re.search(r"attempt 1 goes on after step (\d+)", text)
        assert begun and int(begun[1]) >= 4 and "attempt 1 is done" in text, text
        pod, = (p for p in cluster.list("pods") if p["status"]["phase"] == "Succeeded")
        env = {e["name"]: e for e in pod["spec"]["containers"][0]["env"]}
        assert env["TRAINER_CHECKPOINT_DIR"]["value"] == "/checkpoints/" + cluster.get("trainjob", "checkpoint")["metadata"]["uid"], env
    finally:
        run("kubectl", "delete", "persistentvolume", cluster.namespace, "--wait=false")
        shutil.rmtree(path, ignore_errors=True)


REPORTS = """
import json, os, ssl, time, urllib.request
def report(percent):
    context = ssl.create_default_context(cafile=os.environ["KUBEFLOW_TRAINER_SERVER_CA_CERT"])
    body = {"trainerStatus": {"progressPercentage": percent, "lastUpdatedTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}}
    head = {"Authorization": "Bearer " + open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read(), "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["KUBEFLOW_TRAINER_SERVER_URL"], json.dumps(body).encode(), head, method="POST")
    return urllib.request.urlopen(request, context=context, timeout=2).status
for percent in range(0, 101, 10):
    try:
        print(percent, report(percent))
    except Exception as error:
        print(percent, "not reported:", error)
    time.sleep(1)
print("trained")
"""


def test_reports_by_annotation_never_disturb(cluster):
    """With the status server and without the gate, jobs of the built-in torch runtimes report; one whose CA is refused trains
    all the same, and so does one whose server goes away."""
    config = SYSTEM.get("configmap", "kubeflow-trainer-config")
    key = "controller_manager_config.yaml"

    def restart_with(text):
        SYSTEM.kubectl("patch", "configmap/kubeflow-trainer-config", "--type=merge", "-p", json.dumps({"data": {key: text}}))
        SYSTEM.kubectl("rollout", "restart", f"deployment/{MANAGER}")
        SYSTEM.kubectl("rollout", "status", f"deployment/{MANAGER}", "--timeout=90s")

    def printed(name):
        return run(TRAINER, "logs", "-n", cluster.namespace, name, check=False).stdout

    def completes(name):
        wait_until(f"{name} is Complete", lambda: cluster.condition("trainjob", name, "Complete"), seconds=120)
        assert "trained" in printed(name), printed(name)

    restart_with(config["data"][key].replace("statusServer:\n", "statusServer:\n  enabled: true\n"))
    try:
        cluster.apply(trainjob("reports", numNodes=1, command=["python3", "-c", REPORTS]))
        quiet = trainjob("silent", numNodes=1, command=["python3", "-c", "import os; assert 'KUBEFLOW_TRAINER_SERVER_URL' not in os.environ; print('trained')"])
        quiet["metadata"]["annotations"] = {"trainer.kubeflow.org/report-progress": "false"}
        cluster.apply(quiet)
        completes("reports")
        assert cluster.get("trainjob", "reports")["status"]["trainerStatus"]["progressPercentage"] == 100, printed("reports")
        completes("silent")

        # There is room for the snapshot and not for the CA. Meanwhile the server ends.
        room = len(cluster.list("configmaps")) + 1
        cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"count/configmaps": str(room)}}})
        wait_until("the quota counts", lambda: cluster.get("resourcequota", "few").get("status", {}).get("used"))
        cluster.apply(trainjob("alone", numNodes=1, command=["python3", "-c", REPORTS]))
        wait_until("it trains", lambda: "not reported:" in printed("alone"), seconds=60, every=0.5)
        assert not cluster.get("configmap", "alone-tls-config")
        SYSTEM.kubectl("scale", f"deployment/{MANAGER}", "--replicas=0")
        wait_until("it has trained", lambda: any(p["status"]["phase"] == "Succeeded" for p in cluster.list(
            "pods", "-l", "jobset.sigs.k8s.io/jobset-name=alone")), seconds=60)
    finally:
        SYSTEM.kubectl("scale", f"deployment/{MANAGER}", "--replicas=1")
        restart_with(config["data"][key])
    completes("alone")


def test_pages_for_users(cluster):
    """docs/users: each block with the mark `run`, in the page's order, prints what the page shows below it."""
    volumes = {f"{cluster.namespace}-{claim}": claim for claim in ("checkpoints", "models")}
    cluster.apply(*({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Delete",
        "claimRef": {"namespace": cluster.namespace, "name": claim},
        "hostPath": {"path": f"/var/tmp/{name}", "type": "DirectoryOrCreate"}}} for name, claim in volumes.items()))
    ran = []
    try:
        for page in pages.USERS:
            with pages.folder_of(page) as (folder, path):
                env = {**os.environ, "PATH": path, "KUBECONFIG": f"{folder}/.kubeconfig"}
                shutil.copy(os.environ["KUBECONFIG"], env["KUBECONFIG"])
                run("kubectl", "config", "set-context", "--current", "--namespace", cluster.namespace, env=env)
                found = pages.blocks(page)
                for block, shown in zip(found, found[1:]):
                    if "run" not in block.marks:
                        continue
                    ran.append(page.stem)
                    done = run("bash", "-ec", block.text, check=False, cwd=folder, env=env)
                    if done.returncode or not pages.is_shown(shown.text, done.stdout, cluster.namespace):
                        raise Failed(f"{block}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    finally:
        run("kubectl", "delete", "persistentvolume", *volumes, "--wait=false")
    assert set(ran) == {"first-job", "several-nodes", "checkpoints", "pipelines"}, ran


def test_suspended_costs_nothing_and_resumes(cluster):
    job = trainjob("waits", numNodes=1, command=["python3", "-c", "print('done')"])
    job["spec"]["suspend"] = True
    cluster.apply(job)
    wait_until("it is Suspended", lambda: cluster.condition("trainjob", "waits", "Suspended"))
    assert not cluster.list("pods") and not cluster.list("jobs"), "a suspended job has children"
    cluster.kubectl("patch", "trainjob", "waits", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    wait_until("it completes", lambda: cluster.condition("trainjob", "waits", "Complete"), seconds=60)


def test_a_queue_starts_evicts_and_starts_elsewhere(cluster):
    """The requests of Kueue, in its order: its patch and then suspend, suspend alone, an empty patch, another flavor's patch.

    The second start changes the node selectors of a Job that has run, which takes a write to its status.
    """
    run("kubectl", "label", "node", "node1", "pool=a", "--overwrite")
    job = trainjob("queued", numNodes=2, command=["sleep", "600"])
    job["spec"].update(suspend=True, runtimePatches=[_queue_patch(None)])
    job["metadata"]["annotations"] = {"trainer.kubeflow.org/restart-environment": "true"}
    cluster.apply(job)

    def put(change):
        cluster.put_trainjob("queued", change, "kubectl-replace")

    def start_on(pool, attempt):
        put(lambda spec: spec.update(runtimePatches=[_queue_patch(pool)]))
        cluster.kubectl("patch", "trainjob", "queued", "--type=merge", "-p", '{"spec": {"suspend": false}}')
        wait_until("its nodes are ready", lambda: cluster.get("trainjob", "queued")["status"].get("phase") == "Running", seconds=60)
        pods = [p for p in cluster.list("pods") if "deletionTimestamp" not in p["metadata"]]
        assert [p["spec"]["nodeSelector"] for p in pods] == [{"pool": pool}] * 2, pods
        attempts = [cluster.kubectl("exec", p["metadata"]["name"], "-c", "node", "--", "printenv", "TRAINER_ATTEMPT").strip() for p in pods]
        assert attempts == [attempt] * 2, attempts
        assert cluster.kubectl("get", "trainjob", "queued", "-o", "jsonpath={.status['executionAttempts','restarts']}").split()[0] == attempt

    start_on("a", "0")
    put(lambda spec: spec.update(suspend=True))
    wait_until("no Job is active", lambda: not any(j["active"] for j in cluster.get("trainjob", "queued")["status"]["jobsStatus"]), seconds=60)
    assert cluster.get("trainjob", "queued")["status"]["phase"] == "Suspended"
    put(lambda spec: spec.update(runtimePatches=[_queue_patch(None)]))
    run("kubectl", "label", "node", "node1", "pool=b", "--overwrite")
    start_on("b", "1")
    cluster.kubectl("delete", "trainjob", "queued", "--wait=false")
    run("kubectl", "label", "node", "node1", "pool-")


def _queue_patch(pool):
    jobs = [] if pool is None else [{"name": "node", "template": {"spec": {"template": {
        "metadata": {"labels": {"kueue.x-k8s.io/podset": "node"}}, "spec": {"nodeSelector": {"pool": pool}}}}}}]
    return {"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs} if jobs else {}}}}


def test_exclusive_placement(cluster):
    """Its overlay beside the Deployment: through the Service a Job's pods are placed where its first one runs."""
    overlay, topology = str(ROOT / "manifests/overlays/exclusive-placement"), "kubernetes.io/hostname"
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
           "containers": [{"name": "main", "image": "localhost/torch:1", "command": ["sleep", "600"]}]}
    run("kubectl", "apply", "--server-side", "-k", overlay)
    try:
        for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
            wait_until(f"the controller fills in the CA of the {kind}", lambda kind=kind: all(
                w["clientConfig"].get("caBundle") for w in cluster.get(kind, "pods.jobset.trainer.kubeflow.org")["webhooks"]))
        cluster.apply({
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": "placed", "annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": topology}},
            "spec": {"replicatedJobs": [{"name": "w", "template": {"spec": {
                "parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": {"spec": pod}}}}]}})
        wait_until("both pods run", lambda: [p["status"]["phase"] for p in cluster.list("pods")] == ["Running"] * 2, seconds=60)
        chosen = {p["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]: p["spec"].get("nodeSelector") for p in cluster.list("pods")}
        assert chosen == {"0": None, "1": {topology: "node1"}}, chosen
        cluster.kubectl("delete", "jobset", "placed")
        # Or they would be looked after without the rights. The garbage collector learns of new kinds every 30 s.
        wait_until("its pods are gone", lambda: not cluster.list("pods"), seconds=60)
    finally:
        run("kubectl", "delete", "-k", overlay)


def test_a_rollout_with_the_certificate_deleted(cluster):
    """Two replicas are replaced at 20 creates a second, while the Secret with the certificates is deleted."""
    api = Api(os.environ["KUBECONFIG"])

    def create_suspended(number):
        job = trainjob(f"r-{number}")
        job["spec"]["suspend"] = True
        status, answer = api.call("POST", f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{cluster.namespace}/trainjobs", job)
        assert status == 201, answer

    def wait_for_rollout():
        SYSTEM.kubectl("rollout", "status", f"deployment/{MANAGER}", "--timeout=180s")

    SYSTEM.kubectl("scale", f"deployment/{MANAGER}", "--replicas=2")
    wait_for_rollout()
    try:
        with harness.at_rate(20, create_suspended):
            SYSTEM.kubectl("delete", "secret", "kubeflow-trainer-webhook-cert")
            SYSTEM.kubectl("rollout", "restart", f"deployment/{MANAGER}")
            wait_for_rollout()
    finally:
        SYSTEM.kubectl("scale", f"deployment/{MANAGER}", "--replicas=1")
        cluster.kubectl("delete", "trainjobs", "--all", "--wait=false")
        wait_for_rollout()


def differences(*source):
    """The output of `kubectl diff` of these files, by the comparison of Flux (server-side) and by that of others."""
    found = ""
    for way in (("--server-side", "--force-conflicts"), ()):
        done = run("kubectl", "diff", *way, *source, check=False)
        if done.returncode not in (0, 1):
            raise Failed(f"kubectl diff {source}: exit {done.returncode}\n{done.stderr}")
        found += done.stdout
    return found


def test_gitops_sees_no_difference(cluster):
    """After all of the above, and a new CA: what was applied is what is there, a job that has run included."""
    example = str(ROOT / "docs/examples/torch-ddp.yaml")
    run("kubectl", "apply", "--server-side", "-n", cluster.namespace, "-f", example)
    bundle = "jsonpath={.webhooks[0].clientConfig.caBundle}"

    def ca():
        return run("kubectl", "get", "validatingwebhookconfiguration", "validator.trainer.kubeflow.org", "-o", bundle).stdout

    before = ca()
    SYSTEM.kubectl("patch", "secret", "kubeflow-trainer-webhook-cert", "--type=json", "-p", '[{"op": "remove", "path": "/data/ca.key"}]')
    wait_until("a new CA is trusted beside the old one", lambda: ca() != before, seconds=120)
    wait_until("the job completes", lambda: cluster.condition("trainjob", "torch-ddp", "Complete"), seconds=120)
    for source in (("-k", str(ROOT / "tests/e2e/manager")), ("-k", str(ROOT / "tests/cluster/runtimes")), ("-n", cluster.namespace, "-f", example)):
        shown = differences(*source)
        assert not shown, f"{' '.join(source)} differs:\n{shown[:3000]}"
    # It sees what another has changed.
    SYSTEM.kubectl("scale", f"deployment/{MANAGER}", "--replicas=2")
    try:
        assert "replicas: 2" in differences("-k", str(ROOT / "tests/e2e/manager"))
    finally:
        SYSTEM.kubectl("scale", f"deployment/{MANAGER}", "--replicas=1")


def test_nothing_was_forbidden(_):
    check_nothing_was_forbidden(f"system:serviceaccount:kubeflow-system:{MANAGER}")


def check_nothing_was_forbidden(account):
    """RBAC allows what the controller does: the API server's log has no refusal of it.

    A 403 of admission is none: the namespace of an earlier test, as it ends, takes no new objects.
    """
    refused, used, decisions = [], set(), set()
    for entry in harness.audit_entries():
        if entry["user"]["username"] != account:
            continue
        what = entry.get("objectRef", {})
        request = f"{entry['verb']} {what.get('apiGroup', '')}/{what.get('resource', entry['requestURI'])}"
        request += f"/{what['subresource']}" if "subresource" in what else ""
        used.add(request)
        decision = entry.get("annotations", {}).get("authorization.k8s.io/decision")
        decisions.add(decision)
        if decision == "forbid":
            refused.append(request)
    assert "allow" in decisions, f"the audit log knows of no request of the controller that was allowed: {decisions}"
    print("     " + ", ".join(sorted(used)))
    assert not refused, f"forbidden: {sorted(set(refused))}"


def test_uninstalls(_):
    run("kubectl", "delete", "--ignore-not-found", "-k", str(ROOT / "tests/cluster/runtimes"))

    def left(kinds):
        return [line for line in run("kubectl", "get", kinds, "-o", "name").stdout.splitlines() if "trainer" in line or "jobset" in line]

    crds = left("crds")
    run("kubectl", "delete", "--timeout=60s", "-k", str(ROOT / "manifests/overlays/controller-only"))
    rest = left("clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations")
    assert not rest, rest
    assert crds and left("crds") == crds, "the CRDs went with the controller"
    run("kubectl", "delete", "--ignore-not-found", "--timeout=60s", "-k", str(ROOT / "tests/e2e/manager"))
    assert not left("crds"), left("crds")


if __name__ == "__main__":
    harness.main(__file__)
