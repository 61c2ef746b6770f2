#!/usr/bin/python3
"""The Helm charts: they install what the kustomize overlays install, but for the differences below, and each value of upstream's
chart has an effect or is refused by its name.

    charts.py             ACCEPT=1 charts.py writes the files that the charts share with the manifests

$HELM names the programs, by default those of `testbed helm`; $KUBECTL is for kustomize. No cluster is needed.
"""
import base64
import concurrent.futures
import fnmatch
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "manifests"
CHARTS = MANIFESTS / "charts"
KUBECTL = os.environ.get("KUBECTL", "kubectl")
KUBERNETES = "1.34.0"   # for which templates are rendered; a Helm that was built from its module knows none
TRAINER, OPERATOR = CHARTS / "kubeflow-trainer", CHARTS / "training-operator"

# Files of a chart's own folder that its templates read, and where they are from.
COPIES = {
    "kubeflow-trainer/files/webhooks.yaml": "base/webhooks.yaml",
    "kubeflow-trainer/files/exclusive-placement-webhooks.yaml": "overlays/exclusive-placement/webhooks.yaml",
    "kubeflow-trainer/files/v1-webhooks.yaml": "v1/controller/webhooks.yaml",
    "kubeflow-trainer/files/restrict-controller.yaml": "overlays/restrict-controller/policy.yaml",
    "kubeflow-trainer/files/roles/cluster-role.yaml": "rbac/cluster-role.yaml",
    "kubeflow-trainer/files/roles/coscheduling.yaml": "rbac/coscheduling.yaml",
    "kubeflow-trainer/files/roles/volcano.yaml": "rbac/volcano.yaml",
    "kubeflow-trainer/files/roles/workload.yaml": "rbac/workload.yaml",
    "kubeflow-trainer/files/roles/users.yaml": "rbac/users.yaml",
    "kubeflow-trainer/files/roles/public.yaml": "rbac/public.yaml",
    "kubeflow-trainer/files/roles/legacy-finalizers.yaml": "overlays/legacy-finalizers/cluster-role.yaml",
    "kubeflow-trainer/files/roles/finished-marker.yaml": "overlays/finished-marker/cluster-role.yaml",
    "kubeflow-trainer/files/roles/v1-finished-marker.yaml": "overlays/finished-marker-v1/cluster-role.yaml",
    "kubeflow-trainer/files/roles/access.yaml": "monitoring/access.yaml",
    "kubeflow-trainer/files/rules.yaml": "monitoring/rules.yaml",
    "kubeflow-trainer/files/dashboard.json": "monitoring/dashboard.json",
    "kubeflow-trainer/files/roles/exclusive-placement.yaml": "overlays/exclusive-placement/rbac.yaml",
    "kubeflow-trainer/files/roles/v1.yaml": "v1/controller/cluster-role.yaml",
    "kubeflow-trainer/files/roles/mpi.yaml": "overlays/mpi/cluster-role.yaml",
    "kubeflow-trainer/files/mpi-webhooks.yaml": "overlays/mpi/webhooks.yaml",
    "kubeflow-trainer/files/roles/v1-mpijob.yaml": "v1/controller/mpijob-cluster-role.yaml",
    "kubeflow-trainer/files/restrict-v1-controller.yaml": "overlays/restrict-v1-controller/policy.yaml",
    "kubeflow-trainer/files/roles/data-cache.yaml": "overlays/data-cache/cluster-role.yaml",
    "training-operator/files/webhooks.yaml": "v1/controller/webhooks.yaml",
    "training-operator/files/cluster-role.yaml": "v1/controller/cluster-role.yaml",
    "training-operator/files/mpijob.yaml": "v1/controller/mpijob-cluster-role.yaml",
    "training-operator/files/restrict-controller.yaml": "overlays/restrict-v1-controller/policy.yaml",
    "training-operator/files/restrict-mpijob.yaml": "overlays/restrict-v1-controller/mpijob-policy.yaml",
    "training-operator/files/finished-marker.yaml": "overlays/finished-marker-v1/cluster-role.yaml",
    "training-operator/files/users.yaml": "overlays/kubeflow/kubeflow-training-roles.yaml",
}
# Labels that only the chart sets, and by which nothing is selected.
OWN_LABELS = ("helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by",
              "app.kubernetes.io/name", "app.kubernetes.io/part-of", "app.kubernetes.io/component", "app")
# (object, path) that may differ, and why. Each must occur, or it has to go.
DIFFERENCES = {
    ("Deployment/*", "spec/selector/matchLabels/app.kubernetes.io/name"): "the selector is that of upstream's chart, so that a release of it can be upgraded",
    ("Deployment/*", "spec/selector/matchLabels/app.kubernetes.io/instance"): "as above",
    ("Deployment/*", "spec/template/metadata/labels/app.kubernetes.io/name"): "as above",
    ("Deployment/*", "spec/template/metadata/labels/app.kubernetes.io/instance"): "as above",
    ("Service/*", "spec/selector/app.kubernetes.io/name"): "as above",
    ("Service/*", "spec/selector/app.kubernetes.io/instance"): "as above",
    ("PodDisruptionBudget/*", "spec/selector/matchLabels/app.kubernetes.io/*"): "as above",
    ("NetworkPolicy/*", "spec/podSelector/matchLabels/app.kubernetes.io/*"): "as above",
    ("Deployment/*", "spec/template/spec/topologySpreadConstraints/*/labelSelector/matchLabels/app.kubernetes.io/*"): "as above",
    ("Deployment/*", "spec/template/metadata/annotations/checksum/config"): "a changed configuration restarts the controller, which reads it once",
    ("Deployment/*", "spec/template/spec/containers/*/imagePullPolicy"): "the value image.pullPolicy; Kubernetes' default is the same",
    ("Deployment/*", "spec/template/spec/containers/*/securityContext/seccompProfile/type"): "as in upstream's chart; the pod has it already",
    ("ServiceMonitor/*", "spec/selector/matchLabels/app.kubernetes.io/*"): "as above",
    ("ServiceMonitor/*", "spec/endpoints/*/interval"): "a value; where none is set, Prometheus has one",
    ("NetworkPolicy/*", "spec/ingress/*/from/*/ipBlock/cidr"): "a value, where the overlay is to be edited",
}
HOOKS = "helm.sh/hook"

# Each value of upstream's chart 2.3.0 (charts/kubeflow-trainer/values.yaml), with what is set to see its effect. A pair has what
# must be set beside it.
ON = {"runtimes.defaultEnabled": True}
UPSTREAM = {
    "nameOverride": "other", "fullnameOverride": "other", "crds.enabled": False, "jobset.install": False, "jobset.fullnameOverride": "mine",
    "commonLabels": {"team": "a"}, "image.registry": "registry.example.com", "image.repository": "a/b", "image.tag": "v9", "image.pullPolicy": "Always",
    "image.pullSecrets": [{"name": "s"}], "manager.replicas": 2, "manager.selectorLabels": {"a": "b"}, "manager.podAnnotations": {"a": "b"},
    "manager.labels": {"a": "b"}, "manager.volumes": [{"name": "v", "emptyDir": {}}], "manager.nodeSelector": {"a": "b"},
    "manager.affinity": {"nodeAffinity": {}}, "manager.tolerations": [{"operator": "Exists"}], "manager.env": [{"name": "A", "value": "b"}],
    "manager.envFrom": [{"secretRef": {"name": "s"}}], "manager.volumeMounts": [{"name": "v", "mountPath": "/v"}],
    "manager.resources": {"limits": {"cpu": "1"}}, "manager.securityContext.allowPrivilegeEscalation": True,
    "manager.securityContext.runAsNonRoot": False, "manager.securityContext.capabilities.drop": ["NET_RAW"],
    "manager.securityContext.seccompProfile.type": "Unconfined", "manager.config.health.healthProbeBindAddress": ":9081",
    "manager.config.health.readinessEndpointName": "ready", "manager.config.health.livenessEndpointName": "live",
    "manager.config.metrics.bindAddress": ":9444", "manager.config.metrics.secureServing": False, "manager.config.webhook.port": 9445,
    "manager.config.webhook.host": "10.0.0.1", "manager.config.leaderElection.leaderElect": False,
    "manager.config.leaderElection.resourceName": "mine", "manager.config.leaderElection.resourceNamespace": "leases",
    "manager.config.leaderElection.leaseDuration": "30s", "manager.config.leaderElection.renewDeadline": "9s",
    "manager.config.leaderElection.retryPeriod": "3s", "manager.config.controller.groupKindConcurrency.trainJob": 7,
    "manager.config.controller.groupKindConcurrency.trainingRuntime": 7, "manager.config.controller.groupKindConcurrency.clusterTrainingRuntime": 7,
    "manager.config.certManagement.enable": False, "manager.config.certManagement.webhookServiceName": "mine",
    "manager.config.certManagement.webhookSecretName": "mine", "manager.config.clientConnection.qps": 0.5,
    "manager.config.clientConnection.burst": 9, "manager.config.statusServer.port": 10444, "manager.config.statusServer.qps": 2.5,
    "manager.config.statusServer.burst": 9, "manager.config.featureGates": {"TrainJobStatus": True}, "webhook.failurePolicy": "Ignore",
    "dataCache.enabled": True, "dataCache.lws.install": False, "dataCache.lws.fullnameOverride": "mine",
    "dataCache.cacheImage.registry": ("r.example.com", ON), "dataCache.cacheImage.repository": ("a/b", ON), "dataCache.cacheImage.tag": ("v9", ON),
    "dataCache.runtimes.torchDistributedWithCache.enabled": True, "runtimes.defaultEnabled": True, "runtimes.commonLabels": ({"a": "b"}, ON),
    "runtimes.installer.image.registry": "r.example.com", "runtimes.installer.image.repository": "a/b", "runtimes.installer.image.tag": "4",
    "runtimes.installer.imagePullSecrets": [{"name": "s"}], "runtimes.installer.resources": {"limits": {"cpu": "1"}},
    "runtimes.installer.nodeSelector": {"a": "b"}, "runtimes.installer.affinity": {"nodeAffinity": {}}, "runtimes.installer.tolerations": [{"operator": "Exists"}],
    **{f"runtimes.{name}.enabled": True for name in ("torchDistributed", "deepspeedDistributed", "mlxDistributed", "jaxDistributed", "xgboostDistributed",
                                                     "torchtuneDistributed.llama3_2_1B", "torchtuneDistributed.llama3_2_3B", "torchtuneDistributed.qwen2_5_1_5B")},
    **{f"runtimes.{name}.image.{part}": (value, ON) for name in ("deepspeedDistributed", "mlxDistributed", "xgboostDistributed", "torchtuneDistributed")
       for part, value in (("registry", "r.example.com"), ("repository", "a/b"), ("tag", "v9"))},
}
# Defaults of upstream's chart, of values that are refused otherwise.
UPSTREAM_DEFAULTS = {"jobset.fullnameOverride": "jobset", "dataCache.lws.fullnameOverride": "lws", "runtimes.installer.image.registry": "docker.io",
                     "runtimes.installer.image.repository": "alpine", "runtimes.installer.image.tag": "3.21",
                     "manager.config.health.readinessEndpointName": "readyz", "manager.config.health.livenessEndpointName": "healthz",
                     "manager.config.controller.groupKindConcurrency.trainingRuntime": 1,
                     "manager.config.controller.groupKindConcurrency.clusterTrainingRuntime": 1}
# Without effect by their meaning: nothing is installed that could be left out.
MEANS_NOTHING = {"dataCache.lws.install"}


def run(*command, text=None):
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def helms():
    if "HELM" in os.environ:
        return os.environ["HELM"].split()
    code, out, err = run(str(ROOT / "tests/cluster/testbed"), "helm")
    if code:
        sys.exit(err)
    return [f"{out.strip()}/helm3", f"{out.strip()}/helm4"]


def nested(values):
    """{"a.b": 1} as {"a": {"b": 1}}."""
    tree = {}
    for path, value in values.items():
        at = tree
        *folders, name = path.split(".")
        for folder in folders:
            at = at.setdefault(folder, {})
        at[name] = value
    return tree


def template(helm, chart, values=None, namespace=None, release=None):
    """The objects that are rendered, or what Helm says."""
    release = release or chart.name
    namespace = namespace or ("kubeflow" if chart == OPERATOR else "kubeflow-system")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(nested(values or {}), file)
        file.flush()
        code, out, err = run(helm, "template", release, str(chart), "--namespace", namespace, "--kube-version", KUBERNETES, "--values", file.name)
    return [o for o in yaml.safe_load_all(out) if o] if code == 0 else err


def rendered(helm, chart, values=None, **options):
    objects = template(helm, chart, values, **options)
    assert not isinstance(objects, str), objects
    return objects


def kustomized(*overlays):
    objects = []
    for overlay in overlays:
        code, out, err = run(KUBECTL, "kustomize", str(MANIFESTS / overlay))
        assert code == 0, err
        objects += [o for o in yaml.safe_load_all(out) if o]
    return objects


def kinds(objects):
    return {o["kind"] for o in objects}


def only(kind, objects):
    [found] = [o for o in objects if o["kind"] == kind]
    return found


def name_of(o):
    return f"{o['kind']}/{o['metadata']['name']}"


def comparable(objects):
    """By kind and name, without hooks and labels of the chart, and with texts that are YAML parsed."""
    found = {}
    for o in objects:
        metadata = o["metadata"]
        if HOOKS in metadata.get("annotations", {}) or "-runtimes-installer" in metadata["name"]:
            continue
        labels = {k: v for k, v in metadata.get("labels", {}).items() if k not in OWN_LABELS}
        metadata["labels"] = labels
        if not labels:
            del metadata["labels"]
        for key, text in (o.get("data") or {}).items():
            o["data"][key] = yaml.safe_load(text)
        found[name_of(o)] = o
    return found


def flat(value, path=""):
    """Each leaf by its path. Items of a list that have names are found by them."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from flat(item, f"{path}/{key}" if path else key)
    elif isinstance(value, list) and value:
        for i, item in enumerate(value):
            key = item["name"] if isinstance(item, dict) and "name" in item else i
            yield from flat(item, f"{path}/{key}")
    else:
        yield path, value


used_differences = set()


def check_same(chart_objects, kustomize_objects):
    chart, manifests = comparable(chart_objects), comparable(kustomize_objects)
    wrong = [f"only in the chart: {name}" for name in chart.keys() - manifests.keys()] + [f"only in the manifests: {name}" for name in manifests.keys() - chart.keys()]
    for name in sorted(chart.keys() & manifests.keys()):
        a, b = dict(flat(chart[name])), dict(flat(manifests[name]))
        for path in sorted(a.keys() | b.keys()):
            if a.get(path) == b.get(path):
                continue
            known = [d for d in DIFFERENCES if fnmatch.fnmatch(name, d[0]) and fnmatch.fnmatch(path, d[1])]
            used_differences.update(known)
            if not known:
                wrong.append(f"{name}: {path}: {a.get(path)!r} in the chart, {b.get(path)!r} in the manifests")
    assert not wrong, "\n  ".join(["", *wrong])


# ---- tests


def test_shared_files_are_the_manifests_own(_):
    wrong = []
    for copy, source in COPIES.items():
        text = (MANIFESTS / source).read_text()
        if os.environ.get("ACCEPT") == "1":
            (CHARTS / copy).write_text(text)
        elif (CHARTS / copy).read_text() != text:
            wrong.append(f"manifests/charts/{copy} is not manifests/{source}")
    assert not wrong, "\n  ".join(["", *wrong, "ACCEPT=1 tests/manifests/charts.py writes them again"])


def test_lint(helm):
    for chart in (TRAINER, OPERATOR):
        code, out, err = run(helm, "lint", "--strict", "--kube-version", KUBERNETES, str(chart))
        assert code == 0, out + err


def test_as_kustomize(helm):
    base = "overlays/controller-only"
    check_same(rendered(helm, TRAINER), kustomized(base))
    check_same(rendered(helm, TRAINER, {"manager.replicas": 2}),
               [o for o in kustomized("overlays/ha") if o["kind"] not in ("CustomResourceDefinition", "Namespace")])
    for values, overlay in (({"exclusivePlacement.enabled": True}, "overlays/exclusive-placement"),
                            ({"restrictController.enabled": True}, "overlays/restrict-controller"),
                            ({"networkPolicy.enabled": True, "networkPolicy.apiServerCIDRs": ["10.0.0.0/8"]}, "overlays/network-policy")):
        check_same(rendered(helm, TRAINER, values), kustomized(base, overlay))
    monitoring = kustomized("monitoring")
    access = [o for o in monitoring if o["kind"] == "ClusterRole"]
    assert len(access) == 2, "the roles of monitoring/access.yaml"
    observed = {"serviceMonitor.enabled": True, "prometheusRules.enabled": True, "dashboard.enabled": True}
    check_same(rendered(helm, TRAINER, observed), kustomized(base) + [o for o in monitoring if o not in access])
    check_same([o for o in rendered(helm, TRAINER, {"manager.config.metrics.auth": {"enabled": True}}) if o["kind"] == "ClusterRole"],
               [o for o in kustomized(base) if o["kind"] == "ClusterRole"] + access)
    check_same(rendered(helm, OPERATOR), kustomized("v1/controller"))
    check_same(rendered(helm, OPERATOR, {"restrictController.enabled": True}), kustomized("v1/controller", "overlays/restrict-v1-controller"))
    check_same(rendered(helm, OPERATOR, {"platformRoles.enabled": True}),
               [o for o in kustomized("overlays/kubeflow") if o["kind"] != "CustomResourceDefinition"])


def test_in_another_namespace_nothing_names_the_usual_one(helm):
    for chart, usual in ((TRAINER, "kubeflow-system"), (OPERATOR, "kubeflow")):
        values = {"v1.enabled": True, "v1.schemes": ["pytorchjob"], "exclusivePlacement.enabled": True, "restrictController.enabled": True, "dataCache.enabled": True} if chart == TRAINER else {}
        for o in rendered(helm, chart, values, namespace="elsewhere", release="mine"):
            assert o["metadata"].get("namespace", "elsewhere") == "elsewhere", name_of(o)
            assert usual not in [v for p, v in flat(o) if p.endswith("namespace")], name_of(o)
            assert f"serviceaccount:{usual}:" not in json.dumps(o), name_of(o)


def outcome(path, value, before, after):
    """"honoured" or "refused"; else why neither."""
    if isinstance(after, str):
        message = re.search(r": (\S+): (.{20,})", after)
        return "refused" if message and path.startswith(message[1]) else f"{path}: refused without its name: {after}"
    return "honoured" if after != before or path in MEANS_NOTHING else f"{path}: {value!r} has no effect"


def test_values_of_upstreams_chart(helm):
    assert len(UPSTREAM) == 90, len(UPSTREAM)
    usual = {False: rendered(helm, TRAINER), True: rendered(helm, TRAINER, ON)}

    def outcome_of(entry):
        path, value = entry
        value, beside = value if isinstance(value, tuple) else (value, {})
        return outcome(path, value, usual[beside == ON], template(helm, TRAINER, {**beside, path: value}))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        outcomes = dict(zip(UPSTREAM, pool.map(outcome_of, UPSTREAM.items())))
    wrong = [each for each in outcomes.values() if each not in ("honoured", "refused")]
    assert not wrong, "\n  ".join(["", *wrong])
    assert {path for path, each in outcomes.items() if each == "refused"} == set(UPSTREAM_DEFAULTS), outcomes
    assert rendered(helm, TRAINER, UPSTREAM_DEFAULTS) == usual[False]


def test_refusals(helm):
    for values, words in (({"manager.replica": 2}, "replica"), ({"certManager.enabled": True}, "certManager.issuerRef.name"),
                          ({"networkPolicy.enabled": True}, "networkPolicy.apiServerCIDRs"), ({"manager.config.namespaced": True}, "overlays/namespaced"),
                          ({"image.registry": "ghcr.io", "image.repository": "kubeflow/trainer/trainer-controller-manager"}, "image.repository"),
                          ({"image.pullPolicy": "Sometimes"}, "pullPolicy"), ({"manager.config.webhook.port": 0}, "port"),
                          ({"image.tag": 1.1}, "tag"), ({"v1.enabled": True, "v1.schemes": []}, "schemes"), ({"fullnameOverride": 37 * "a"}, "fullnameOverride"),
                          ({"restrictController.enabled": True, "v1.enabled": True}, "leave mpijob out of v1.schemes")):
        said = template(helm, TRAINER, values)
        assert isinstance(said, str) and words in said, f"{values}: {said if isinstance(said, str) else 'accepted'}"


def test_names_are_as_long_as_kubernetes_allows(helm):
    for o in rendered(helm, TRAINER, {"fullnameOverride": 36 * "a", "v1.enabled": True, "exclusivePlacement.enabled": True,
                                      "manager.config.marksFinishedJobs": True, "dashboard.enabled": True, **ON}):
        assert len(o["metadata"]["name"]) <= (63 if o["kind"] in ("Job", "Pod", "Service") else 253), name_of(o)


def test_no_pod_of_a_hook_has_a_sidecar(helm):
    """It would continue when the pod's program has ended."""
    objects = rendered(helm, TRAINER, ON)
    pods = [o if o["kind"] == "Pod" else o["spec"]["template"] for o in objects if o["kind"] in ("Pod", "Job")]
    assert len(pods) == 4, [name_of(o) for o in objects if o["kind"] in ("Pod", "Job")]
    for pod in pods:
        assert pod["metadata"].get("annotations", {}).get("sidecar.istio.io/inject") == "false", pod["metadata"]


def test_a_tag_of_digits(helm):
    for chart in (TRAINER, OPERATOR):
        [deployment] = [o for o in rendered(helm, chart, {"image.tag": 20261124}) if o["kind"] == "Deployment"]
        assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "trainer:20261124"


def test_only_kinds_that_are_reconciled_have_a_webhook(helm):
    for schemes, resources in ((["jaxjob", "mpijob"], ["jaxjobs"]), (["mpijob"], [])):
        for chart, values in ((TRAINER, {"v1.enabled": True, "v1.schemes": schemes}), (OPERATOR, {"schemes": schemes})):
            found = [o["webhooks"] for o in rendered(helm, chart, values) if o["metadata"]["name"] == "validator.training-operator.kubeflow.org"]
            assert [w["rules"][0]["resources"] for webhooks in found for w in webhooks] == [[r] for r in resources], (schemes, found)


def test_only_where_mpijobs_are_reconciled_are_their_rights_bound(helm):
    for schemes, is_bound in ((["jaxjob", "mpijob"], True), (["jaxjob", "pytorchjob"], False), (None, True)):
        for chart, values, name in ((TRAINER, {"v1.enabled": True, "v1.schemes": schemes or ["all"]}, "kubeflow-trainer-v1-mpijob"),
                                    (OPERATOR, {"schemes": schemes or []}, "training-operator-mpijob")):
            objects = rendered(helm, chart, values)
            found = {o["kind"] for o in objects if o["metadata"]["name"] == name}
            assert found == ({"ClusterRole", "ClusterRoleBinding"} if is_bound else set()), (schemes, name, found)
            rights = {resource for o in objects if o["kind"] == "ClusterRole" for rule in o["rules"] for resource in rule["resources"]}
            assert ("pods/exec" in rights) == is_bound, (schemes, name)


def test_who_may_read_the_metrics(helm):
    policy = {"networkPolicy.enabled": True, "networkPolicy.apiServerCIDRs": ["10.0.0.0/8"], "networkPolicy.metricsNamespaceLabels": {"team": "a"},
              "networkPolicy.nodeCIDRs": ["10.1.0.0/16"]}
    _, status, metrics = only("NetworkPolicy", rendered(helm, TRAINER, policy))["spec"]["ingress"]
    assert metrics["from"] == [{"namespaceSelector": {"matchLabels": {"team": "a"}}}]
    assert status["from"] == [{"namespaceSelector": {}}, {"ipBlock": {"cidr": "10.1.0.0/16"}}]
    observed = {"serviceMonitor.enabled": True, "manager.config.metrics.auth": {"enabled": True}}
    [endpoint] = only("ServiceMonitor", rendered(helm, TRAINER, observed))["spec"]["endpoints"]
    assert "bearerTokenFile" in endpoint and "authorization" not in endpoint
    secret = {"credentials": {"name": "token", "key": "token"}}
    [endpoint] = only("ServiceMonitor", rendered(helm, TRAINER, {**observed, "serviceMonitor.authorization": secret}))["spec"]["endpoints"]
    assert "bearerTokenFile" not in endpoint and endpoint["authorization"] == secret
    [endpoint] = only("ServiceMonitor", rendered(helm, OPERATOR, {"serviceMonitor.enabled": True}))["spec"]["endpoints"]
    assert endpoint["honorLabels"]


def test_v1_jobs_alone_may_be_marked(helm):
    usual, marking = rendered(helm, OPERATOR), rendered(helm, OPERATOR, {"marksFinishedJobs": True})
    assert "--marks-finished-jobs" in only("Deployment", marking)["spec"]["template"]["spec"]["containers"][0]["args"]
    added = [o for o in marking if name_of(o) not in map(name_of, usual)]
    assert sorted(map(name_of, added)) == ["ClusterRole/training-operator-finished-marker", "ClusterRoleBinding/training-operator-finished-marker"]
    assert only("ClusterRole", added)["rules"] == only("ClusterRole", kustomized("overlays/finished-marker-v1"))["rules"]
    account = {"kind": "ServiceAccount", "name": "training-operator", "namespace": "kubeflow"}
    assert only("ClusterRoleBinding", added)["subjects"] == [account] == only("ClusterRoleBinding", kustomized("overlays/finished-marker-v1"))["subjects"]


def test_other_values_have_an_effect(helm):
    issuer = {"certManager.issuerRef": {"name": "ca", "kind": "ClusterIssuer"}}
    usual = rendered(helm, TRAINER)
    for values in ({"manager.priorityClassName": "system-cluster-critical"}, {"manager.hostNetwork": True}, {"manager.args": ["--log-level=debug"]},
                   {"manager.topologySpreadConstraints": [{"maxSkew": 1}]}, {"certManager.enabled": True, **issuer}, {"serviceMonitor.enabled": True},
                   {"prometheusRules.enabled": True}, {"dashboard.enabled": True}, {"manager.config.metrics.auth": {"enabled": True}},
                   {"v1.enabled": True}, {"image.digest": "sha256:0"}, {"manager.config.expander": {"mode": "Share"}},
                   {"manager.config.removeLegacyFinalizers": True}, {"manager.config.tls": {"minVersion": "1.3"}}):
        assert rendered(helm, TRAINER, values) != usual, values
    for beside, values in (({"manager.replicas": 2}, {"manager.podDisruptionBudget.enabled": False}), ({"v1.enabled": True}, {"v1.schemes": ["mpijob"]}),
                           ({"serviceMonitor.enabled": True}, {"serviceMonitor.interval": "7s"}),
                           ({"serviceMonitor.enabled": True}, {"serviceMonitor.labels": {"a": "b"}}),
                           ({"prometheusRules.enabled": True}, {"prometheusRules.labels": {"a": "b"}}),
                           ({"dashboard.enabled": True}, {"dashboard.labels": {"a": "b"}})):
        assert rendered(helm, TRAINER, {**beside, **values}) != rendered(helm, TRAINER, beside), values
    assert kinds(rendered(helm, TRAINER, {"manager.replicas": 2})) - kinds(
        rendered(helm, TRAINER, {"manager.replicas": 2, "manager.podDisruptionBudget.enabled": False})) == {"PodDisruptionBudget"}
    certified = {name_of(o): o for o in rendered(helm, TRAINER, {"certManager.enabled": True, **issuer})}
    assert "Secret/kubeflow-trainer-webhook-cert" not in certified
    for name, o in certified.items():
        if name.endswith("WebhookConfiguration/" + o["metadata"]["name"]):
            assert o["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] == "kubeflow-system/kubeflow-trainer-webhook-cert", name


def test_a_package_is_the_folder(helm):
    """The package that `helm push` uploads has every file that a template reads."""
    with tempfile.TemporaryDirectory() as folder:
        code, out, err = run(helm, "package", str(TRAINER), str(OPERATOR), "--destination", folder)
        assert code == 0, out + err
        everything = {"v1.enabled": True, "v1.schemes": ["pytorchjob"], "exclusivePlacement.enabled": True, "restrictController.enabled": True, "dataCache.enabled": True,
                      "prometheusRules.enabled": True, "dashboard.enabled": True, "manager.config.metrics.auth": {"enabled": True},
                      "manager.config.marksFinishedJobs": True, "manager.config.removeLegacyFinalizers": True, **ON}
        for chart, values in ((TRAINER, everything), (OPERATOR, {"platformRoles.enabled": True, "marksFinishedJobs": True})):
            [package] = pathlib.Path(folder).glob(f"{chart.name}-*.tgz")
            options = {"release": chart.name, "namespace": "kubeflow-system"}
            assert rendered(helm, package, values, **options) == rendered(helm, chart, values, **options), package.name


def command_of(objects, name):
    [job] = [o for o in objects if name_of(o) == f"Job/{name}"]
    return job["spec"]["template"]["spec"]["containers"][0]["command"]


def test_hooks_know_the_crds_and_the_runtimes_of_the_program(helm):
    objects = rendered(helm, TRAINER, {"v1.enabled": True, **ON})
    [role] = [o for o in objects if name_of(o) == "ClusterRole/kubeflow-trainer-crds"]
    assert set(role["rules"][1]["resourceNames"]) == {o["metadata"]["name"] for o in kustomized("crds", "v1/crds", "overlays/optimizationjob")}
    builtin = kustomized("overlays/runtimes")
    command = command_of(objects, "kubeflow-trainer-runtimes-installer")
    assert set(command[2:]) - {"--apply", "--remove-unused"} == {"--label=trainer.kubeflow.org/webhook-validation=disabled"} | {o["metadata"]["name"] for o in builtin}, command
    # An image that is a value's default is that of the program.
    images = {re.sub(":[^/]*$", "", v) for o in builtin for p, v in flat(o) if p.endswith("/image")}
    for path in [path for path in UPSTREAM if path.endswith(".image.tag") or path == "dataCache.cacheImage.tag"]:
        if path.startswith(("image.", "runtimes.installer")):
            continue
        changed = command_of(rendered(helm, TRAINER, {**ON, path: "v9"}), "kubeflow-trainer-runtimes-installer")
        [flag] = [word for word in changed if word.startswith("--image=")]
        name, image = flag.removeprefix("--image=").split("=")
        assert name in images and image == f"{name}:v9", flag


def test_what_a_release_keeps_is_small(helm):
    """Helm keeps the chart and what it rendered in a Secret, of which Kubernetes stores a mebibyte."""
    for chart in (TRAINER, OPERATOR):
        files = [{"name": str(p), "data": base64.b64encode(p.read_bytes()).decode()} for p in sorted(chart.rglob("*")) if p.is_file()]
        release = json.dumps({"chart": files, "manifest": yaml.safe_dump_all(rendered(helm, chart, ON if chart == TRAINER else {}))})
        size = len(base64.b64encode(gzip.compress(release.encode(), 9)))
        assert size < 200_000, f"{chart.name}: {size} bytes"


def main():
    programs = helms()
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_") and (len(sys.argv) < 2 or n in sys.argv[1:])]
    failed = 0
    for name, test in tests:
        for helm in programs:
            try:
                test(helm)
            except AssertionError as error:
                failed += 1
                print(f"FAIL {name} with {helm}: {error}")
    if len(sys.argv) < 2:
        for difference in DIFFERENCES.keys() - used_differences:
            failed += 1
            print(f"FAIL a difference is listed that does not exist: {difference}")
    print(f"{len(tests) * len(programs) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
