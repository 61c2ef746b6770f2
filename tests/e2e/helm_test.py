#!/usr/bin/python3
"""The Helm charts with real pods, for Helm 3 and 4 (see run): installed, upgraded, removed, and over other installations."""
import contextlib
import json
import pathlib
import tempfile
import time

import installations
import v1jobs
import yaml
from installations import NAMESPACE, RELEASE, apply_until_taken, create_trainjob, remove_everything

import harness
from harness import ROOT, run, wait_until

CHART, OPERATOR = (str(ROOT / "manifests/charts" / name) for name in ("kubeflow-trainer", "training-operator"))
MANAGER = "kubeflow-trainer-controller-manager"
SYSTEM = harness.Cluster(NAMESPACE)
IMAGE = ["--set", "image.registry=localhost,image.repository=trainer,image.tag=1"]
RUNTIMES = ["--set", "runtimes.defaultEnabled=true"]
WEBHOOKS = ("defaulter.trainer.kubeflow.org", "validator.trainer.kubeflow.org", "jobset.trainer.kubeflow.org", "validator.training-operator.kubeflow.org")
BUILTIN = {o["metadata"]["name"] for o in yaml.safe_load_all((ROOT / "manifests/overlays/runtimes/blueprints.yaml").read_text())}


class Helm(installations.Helm):
    def install(self, *options, **others):
        return self("install", RELEASE, CHART, "--create-namespace", "--wait", "--timeout", "60s", *IMAGE, *options, **others)

    def upgrade(self, *options, **others):
        return self("upgrade", RELEASE, CHART, "--wait", "--timeout", "120s", *IMAGE, *options, **others)


def webhooks():
    found = run("kubectl", "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "name").stdout.split()
    return [name for name in found if name.split("/")[1] in WEBHOOKS]


def runtimes():
    return set(run("kubectl", "get", "clustertrainingruntimes", "-o", "jsonpath={.items[*].metadata.name}").stdout.split())


def use_local_images():
    """The test bed has no registry: the built-in runtimes get its images."""
    run("kubectl", "apply", "--server-side", "--force-conflicts", "-k", str(ROOT / "tests/cluster/runtimes"))


# Values of each chart under which the API server is asked, in addition to the image.
DRY_RUNS = (
    (RELEASE, CHART, NAMESPACE, (
        "", "runtimes.defaultEnabled=true,v1.enabled=true,exclusivePlacement.enabled=true,manager.replicas=2,dataCache.enabled=true",
        "networkPolicy.enabled=true,networkPolicy.apiServerCIDRs={10.0.0.0/8},restrictController.enabled=true,commonLabels.team=a",
        "certManager.enabled=true,certManager.issuerRef.name=ca,certManager.issuerRef.kind=ClusterIssuer,manager.hostNetwork=true",
        "serviceMonitor.enabled=true,prometheusRules.enabled=true,dashboard.enabled=true,manager.config.metrics.auth.enabled=true",
        "manager.config.marksFinishedJobs=true,manager.config.removeLegacyFinalizers=true,v1.enabled=true,v1.schemes={mpijob}",
        "runtimes.trl.enabled=true,jobset.install=false,fullnameOverride=other,manager.config.leaderElection.resourceNamespace=default")),
    ("training-operator", OPERATOR, "kubeflow", ("", "replicas=2,platformRoles.enabled=true,commonLabels.team=a", "serviceMonitor.enabled=true")),
)
# Kinds of programs that the test bed lacks. tests/manifests/charts.py compares their objects.
OTHERS = {"Certificate", "ServiceMonitor", "PrometheusRule"}


def check_the_api_server_takes_it(helm, release, chart, namespace, values):
    rendered = helm("template", release, chart, *IMAGE, *(("--set", values) if values else ()),
                    "--kube-version", "1.34.0",   # a Helm that `go install` built believes in 1.20
                    "--skip-tests",               # a pod is admitted only where its ServiceAccount exists
                    namespace=namespace).stdout
    objects = [o for o in yaml.safe_load_all(rendered) if o]
    others = {o["kind"] for o in objects} & OTHERS
    expected = {"certManager.enabled": {"Certificate"}, "serviceMonitor.enabled": {"ServiceMonitor"}, "prometheusRules.enabled": {"PrometheusRule"}}
    assert others == set().union(*(kinds for value, kinds in expected.items() if f"{value}=true" in values)), (values, others)
    known = [o for o in objects if o["kind"] not in OTHERS]
    taken = run("kubectl", "apply", "--dry-run=server", "--server-side", "--validate=strict", "-f", "-", text=yaml.safe_dump_all(known)).stdout
    assert len(known) > 10 and taken.count("(server dry run)") == len(known), (values, taken)


def test_the_api_server_takes_what_is_rendered(_):
    """In a dry run of each chart, by both Helms, under values that render every template."""
    remove_everything()
    for namespace in (NAMESPACE, "kubeflow"):
        run("kubectl", "create", "namespace", namespace)
    for helm in (Helm(3), Helm(4)):
        for release, chart, namespace, all_values in DRY_RUNS:
            for values in all_values:
                check_the_api_server_takes_it(helm, release, chart, namespace, values)
    remove_everything()


class LiveJob:
    """A TrainJob that trains until a file says that it is over."""

    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name
        create_trainjob(cluster, name, "sh", "-c", "until [ -e /tmp/end ]; do sleep 0.2; done", nodes=2)
        wait_until("its pods run", lambda: [p["status"]["phase"] for p in self.pods()] == ["Running"] * 2, seconds=90)
        self.uids = self.state()

    def pods(self):
        return sorted(self.cluster.list("pods", "-l", f"jobset.sigs.k8s.io/jobset-name={self.name}"), key=lambda p: p["metadata"]["name"])

    def state(self):
        return [(p["metadata"]["uid"], p["status"]["phase"], [c["restartCount"] for c in p["status"].get("containerStatuses", [])]) for p in self.pods()]

    def check_is_untouched(self, when):
        assert self.state() == self.uids, f"{when}: {self.state()} instead of {self.uids}"

    def end(self):
        for pod in self.pods():
            self.cluster.kubectl("exec", pod["metadata"]["name"], "--", "touch", "/tmp/end")
        wait_until("the job is Complete", lambda: self.cluster.condition("trainjob", self.name, "Complete"), seconds=60)


def manager_pods():
    return {p["metadata"]["uid"] for p in SYSTEM.list("pods", "-l", "app.kubernetes.io/component=manager") if "deletionTimestamp" not in p["metadata"]}


def run_pytorchjob(cluster, helm):
    """Switches V1 jobs on, beside TrainJobs."""
    helm.upgrade(*RUNTIMES, "--set", "v1.enabled=true,v1.schemes={pytorchjob}")
    made = json.dumps(v1jobs.job("PyTorchJob", "v1", {"Master": (1, {"image": "localhost/torch:1", "command": ["echo", "trained"]})}))
    apply_until_taken("-n", cluster.namespace, "-f", "-", text=made)
    v1jobs.succeeds(cluster, "PyTorchJob", "v1")
    assert "validator.training-operator.kubeflow.org" in "".join(webhooks()), webhooks()


def life_of_a_release(cluster, helm):
    remove_everything()
    began = time.monotonic()
    helm.install(*RUNTIMES)
    print(f"     installed and ready after {time.monotonic() - began:.1f} s")
    assert runtimes() == BUILTIN, runtimes() ^ BUILTIN
    helm("test", RELEASE)

    use_local_images()
    cluster.kubectl("apply", "-f", str(ROOT / "docs/examples/torch-ddp.yaml"))
    wait_until("the main job is Complete", lambda: cluster.condition("trainjob", "torch-ddp", "Complete"), seconds=120)
    live = LiveJob(cluster, "live")
    before = manager_pods()
    helm.upgrade(*RUNTIMES, "--set", "manager.args={--log-level=debug}")
    assert not manager_pods() & before, "the controller was not started again"
    live.check_is_untouched("after an upgrade")
    run_pytorchjob(cluster, helm)
    live.check_is_untouched("after V1 jobs were switched on")
    helm.upgrade("--set", "runtimes.trl.enabled=true")   # the others are switched off, and one is in use
    assert runtimes() == {"trl", "torch-distributed"}, runtimes()

    helm("uninstall", RELEASE, "--wait")
    assert not webhooks(), webhooks()
    assert runtimes() == {"torch-distributed"}, runtimes()
    crds = run("kubectl", "get", "crds", "-o", "name").stdout
    assert all(f"{kind}.trainer.kubeflow.org" in crds for kind in ("trainjobs", "trainingruntimes", "clustertrainingruntimes")) and "jobsets.jobset.x-k8s.io" in crds
    assert not SYSTEM.list("deployments") and not SYSTEM.list("jobs"), "left behind"
    live.check_is_untouched("after the release was removed")
    helm.install(*RUNTIMES)
    live.check_is_untouched("after it was installed again")
    live.end()
    helm("uninstall", RELEASE, "--wait")


def test_helm_3(cluster):
    life_of_a_release(cluster, Helm(3))


def test_helm_4(cluster):
    life_of_a_release(cluster, Helm(4))


def test_over_a_kustomize_installation(cluster):
    """docs/helm.md: the controller is removed, nothing else is, and the chart takes its place."""
    remove_everything()
    run("kubectl", "apply", "--server-side", "-k", str(ROOT / "tests/e2e/manager"))
    SYSTEM.kubectl("rollout", "status", f"deployment/{MANAGER}", "--timeout=60s")
    use_local_images()
    live = LiveJob(cluster, "live")
    helm = Helm(4)
    refused = helm.install(check=False)
    assert refused.returncode != 0 and "ownership" in refused.stderr, refused.stderr
    helm("uninstall", RELEASE, "--no-hooks", check=False)   # Helm keeps the failed release
    wait_until("the webhooks of the overlay are there", webhooks)
    run("kubectl", "delete", "-k", str(ROOT / "manifests/overlays/controller-only"))
    helm.install(*RUNTIMES)
    live.check_is_untouched("after the chart was installed")
    live.end()


@contextlib.contextmanager
def chart_with_upstreams_names():
    """A chart of the same name as upstream's, whose release owns what upstream's does under the same names: CRDs, a Deployment with
    its selector, webhooks and roles. Its controller does nothing."""
    labels = {"app.kubernetes.io/name": RELEASE, "app.kubernetes.io/instance": RELEASE, "app.kubernetes.io/part-of": "kubeflow",
              "app.kubernetes.io/component": "manager"}

    def of(api, kind, name, namespaced=True, **members):
        return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "labels": labels, **({"namespace": NAMESPACE} if namespaced else {})}, **members}

    rbac, registration = "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1"
    objects = [
        of("v1", "ServiceAccount", MANAGER), of("v1", "Secret", "kubeflow-trainer-webhook-cert"), of("v1", "ConfigMap", "kubeflow-trainer-config"),
        of("v1", "Service", MANAGER, spec={"selector": labels, "ports": [{"name": "webhook-server", "port": 443, "targetPort": 9443}]}),
        of(rbac, "ClusterRole", MANAGER, namespaced=False, rules=[]),
        of(rbac, "ClusterRoleBinding", MANAGER, namespaced=False, roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": MANAGER},
           subjects=[{"kind": "ServiceAccount", "name": MANAGER, "namespace": NAMESPACE}]),
        of(registration, "MutatingWebhookConfiguration", "defaulter.trainer.kubeflow.org", namespaced=False, webhooks=[]),
        of(registration, "ValidatingWebhookConfiguration", "validator.trainer.kubeflow.org", namespaced=False, webhooks=[]),
        of("apps/v1", "Deployment", MANAGER, spec={"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "containers": [{"name": "manager", "image": "localhost/trainer:1", "command": ["trainer", "controller", "--no-webhooks", "--expander", "Off",
                                                                                           "--kubeconfig", "/none"]}]}}}),
    ]
    with tempfile.TemporaryDirectory() as directory:
        chart = pathlib.Path(directory)
        (chart / "templates").mkdir()
        (chart / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": RELEASE, "version": "2.3.0"}))
        (chart / "templates/objects.yaml").write_text(yaml.safe_dump_all(objects))
        for crd in (*(ROOT / "manifests/crds").glob("trainer.*.yaml"), *(ROOT / "manifests/overlays/optimizationjob").glob("trainer.*.yaml")):
            text = crd.read_text()
            (chart / "templates" / crd.name).write_text(text.replace("{{", "{{ `{{` }}"))
        yield str(chart)


def test_over_a_release_of_upstreams_chart(cluster):
    """Helm would delete the CRDs of a release whose next chart has none, and with them every TrainJob."""
    remove_everything()
    helm = Helm(4)
    helm.install(*RUNTIMES)
    use_local_images()
    live = LiveJob(cluster, "live")
    helm("uninstall", RELEASE, "--wait")
    crds = [f"{kind}.trainer.kubeflow.org" for kind in ("trainjobs", "trainingruntimes", "clustertrainingruntimes")]
    run("kubectl", "annotate", "crd", *crds, "helm.sh/resource-policy-")
    crds.append("optimizationjobs.trainer.kubeflow.org")   # upstream's chart has it, this one does not
    with chart_with_upstreams_names() as upstream:
        helm("install", RELEASE, upstream, "--take-ownership")
    refused = helm.upgrade("--set", "crds.enabled=false", check=False)
    assert refused.returncode != 0 and "crds.enabled: the release that you upgrade owns the CRD" in refused.stderr, refused.stderr
    helm.upgrade(*RUNTIMES)
    live.check_is_untouched("after the upgrade from upstream's chart")
    assert run("kubectl", "get", "crd", *crds, "-o", "name").stdout.count("\n") == 4
    live.end()
    helm("test", RELEASE)


def test_training_operator(_):
    remove_everything()
    for helm in (Helm(3), Helm(4)):
        options = ["--create-namespace", "--wait", "--timeout", "60s", *IMAGE]
        helm("install", "training-operator", OPERATOR, *options, namespace="kubeflow")
        bad = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "bad", "namespace": "kubeflow"},
               "spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"name": "other", "image": "a"}]}}}}}}
        refusal = wait_until("admission answers", lambda: run("kubectl", "create", "--dry-run=server", "-f", "-", text=json.dumps(bad), check=False).stderr)
        assert "validator.pytorchjob.training-operator.kubeflow.org" in refusal, refusal
        helm("uninstall", "training-operator", "--wait", namespace="kubeflow")
        assert not webhooks(), webhooks()
        assert "pytorchjobs.kubeflow.org" in run("kubectl", "get", "crds", "-o", "name").stdout
    remove_everything()


if __name__ == "__main__":
    harness.main(__file__)
