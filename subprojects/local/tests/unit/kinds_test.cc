// Local mode serves these kinds, and fills in the same defaults as kube-apiserver.
#include <set>

#include "kube/model/patch.hh"
#include "kube/tests/catch.hh"
#include "local/tests/unit/support.hh"

using namespace trainer::test;
using kube::Json;

TEST_CASE("each kind is served once, with a schema but for the definitions of kinds") {
  std::set<std::string> seen;
  for (const auto& kind : kinds()) {
    INFO(kind.resource.kind);
    CHECK(
        seen.insert(kind.resource.group + "/" + kind.resource.version + "/" + kind.resource.plural)
            .second);
    CHECK_FALSE(kind.singular.empty());
    if (kind.resource.kind == "CustomResourceDefinition") continue;
    REQUIRE(kind.schema);
    CHECK(kind.schema->get_string("type") == "object");
    // A schema has no references, or the means to resolve them.
    const bool has_references =
        kube::print_json(*kind.schema).find("\"$ref\"") != std::string::npos;
    CHECK((!has_references || kind.target_of));
  }
  for (const char* kind : {"TrainJob", "TrainingRuntime", "ClusterTrainingRuntime", "JobSet", "Job",
                           "Pod", "Service", "ConfigMap", "Secret", "PersistentVolumeClaim",
                           "Event", "Namespace", "Lease", "Node", "ServiceAccount"})
    CHECK_NOTHROW(kind_of(kind));
}

TEST_CASE("this project's kinds have what their definitions say") {
  const auto& job = kind_of("TrainJob");
  CHECK(job.resource.api_version() == "trainer.kubeflow.org/v1alpha1");
  CHECK(job.has_status);
  CHECK(job.has_generation);
  CHECK_FALSE(job.merge_keys);  // strategic merge patches are refused
  REQUIRE(job.columns.size() == 11);
  CHECK(job.columns[0].path == ".status.phase");
  CHECK_FALSE(kind_of("TrainingRuntime").has_status);
  CHECK_FALSE(kind_of("ClusterTrainingRuntime").resource.namespaced);
}

TEST_CASE("strategic merge patches of built-in kinds know the keys of lists") {
  CHECK(kind_of("Pod").merge_keys->key_of("spec.containers") == "name");
  CHECK(kind_of("Pod").merge_keys->key_of("status.conditions") == "type");
  CHECK(kind_of("Job").merge_keys->key_of("spec.template.spec.containers.env") == "name");
  CHECK(kind_of("Service").merge_keys->key_of("spec.ports") == "port");
  CHECK(kind_of("ConfigMap").merge_keys->key_of("metadata.ownerReferences") == "uid");
}

TEST_CASE("server-side apply finds the types of lists") {
  const Json& containers =
      kind_of("Pod").schema->get("properties").get("spec").get("properties").get("containers");
  CHECK(containers.get_string("x-kubernetes-list-type") == "map");
  CHECK(kube::print_json(containers.get("x-kubernetes-list-map-keys")) == R"(["name"])");
}

TEST_CASE("unknown fields are found at any depth") {
  const Json pod = from_yaml(R"(
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {a: b}, extra: 1}
spec: {containers: [{name: a, image: x, imagePolicy: Always}], hots: true}
stats: {})");
  CHECK(kind_of("Pod").unknown_fields(pod) ==
        std::vector<std::string>{"metadata.extra", "spec.containers[0].imagePolicy", "spec.hots",
                                 "stats"});
  // Members that a typed client prints in a template's metadata are known.
  CHECK(kind_of("Job")
            .unknown_fields(from_yaml("spec: {template: {metadata: {creationTimestamp: null}}}"))
            .empty());
}

TEST_CASE("defaults of a Pod") {
  const Json pod = defaulted("Pod", R"(
metadata: {name: p}
spec:
  containers:
  - name: a
    image: acme.io:5000/x
    resources: {limits: {cpu: "1000m", memory: 1024Mi}}
    ports: [{containerPort: 80}]
    livenessProbe: {httpGet: {port: 80}}
    env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
  volumes:
  - {name: scratch}
  - {name: config, configMap: {name: c}}
  - {name: host, hostPath: {path: /tmp}})");
  const Json expected = from_yaml(R"(
containers:
- name: a
  image: acme.io:5000/x
  imagePullPolicy: Always
  terminationMessagePath: /dev/termination-log
  terminationMessagePolicy: File
  resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: "1", memory: 1Gi}}
  ports: [{containerPort: 80, protocol: TCP}]
  livenessProbe: {httpGet: {port: 80, path: /, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10,
                  successThreshold: 1, failureThreshold: 3}
  env: [{name: NODE, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}]
dnsPolicy: ClusterFirst
enableServiceLinks: true
preemptionPolicy: PreemptLowerPriority
priority: 0
restartPolicy: Always
schedulerName: default-scheduler
securityContext: {}
serviceAccount: default
serviceAccountName: default
terminationGracePeriodSeconds: 30
tolerations:
- {effect: NoExecute, key: node.kubernetes.io/not-ready, operator: Exists, tolerationSeconds: 300}
- {effect: NoExecute, key: node.kubernetes.io/unreachable, operator: Exists, tolerationSeconds: 300}
volumes:
- {name: scratch, emptyDir: {}}
- {name: config, configMap: {name: c, defaultMode: 420}}
- {name: host, hostPath: {path: /tmp, type: ""}})");
  CHECK(kube::print_json(pod.get("spec")) == kube::print_json(expected));
  CHECK(pod.get("status") == from_yaml("{phase: Pending, qosClass: Guaranteed}"));
}

TEST_CASE("defaults are the same the second time") {
  for (const char* yaml :
       {"metadata: {name: x}\nspec: {containers: [{name: a, image: 'b:1'}]}",
        "metadata: {name: x, uid: u}\nspec: {template: {metadata: {labels: {a: b}}, spec: "
        "{restartPolicy: Never, containers: [{name: a, image: b}]}}}"}) {
    const std::string kind =
        std::string(yaml).find("template") == std::string::npos ? "Pod" : "Job";
    const Json once = defaulted(kind, yaml);
    Json twice = once;
    kind_of(kind).set_defaults(twice);
    CHECK(once == twice);
  }
}

TEST_CASE("when images are pulled") {
  const auto policy = [](const std::string& image) {
    const Json pod = defaulted("Pod", "spec: {containers: [{name: a, image: '" + image + "'}]}");
    return std::string(pod.get("spec").get_array("containers")[0].get_string("imagePullPolicy"));
  };
  CHECK(policy("x") == "Always");
  CHECK(policy("x:latest") == "Always");
  CHECK(policy("acme.io:5000/x") == "Always");
  CHECK(policy("x:1") == "IfNotPresent");
  CHECK(policy("acme.io:5000/x:1") == "IfNotPresent");
  CHECK(policy("x@sha256:0000") == "IfNotPresent");
}

TEST_CASE("the class of a pod by its resources") {
  const auto qos = [](const std::string& resources) {
    const Json pod = defaulted(
        "Pod", "spec: {containers: [{name: a, image: x, resources: {" + resources + "}}]}");
    return std::string(pod.get("status").get_string("qosClass"));
  };
  CHECK(qos("") == "BestEffort");
  CHECK(qos("requests: {acme.io/gpu: 1}") == "BestEffort");
  CHECK(qos("requests: {cpu: 1}") == "Burstable");
  CHECK(qos("limits: {cpu: 1}") == "Burstable");
  CHECK(qos("limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 500m}") == "Burstable");
  CHECK(qos("limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1000m}") == "Guaranteed");
}

TEST_CASE("defaults of a Job") {
  const Json job = defaulted("Job", R"(
metadata: {name: j, uid: u-1}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'x:1'}]}}})");
  const Json& spec = job.get("spec");
  CHECK(spec.get_int("completions") == 1);
  CHECK(spec.get_int("parallelism") == 1);
  CHECK(spec.get_int("backoffLimit") == 6);
  CHECK(spec.get_string("completionMode") == "NonIndexed");
  CHECK(spec.get_string("podReplacementPolicy") == "TerminatingOrFailed");
  CHECK(spec.get("suspend") == Json(false));
  CHECK(spec.get("selector") ==
        from_yaml("matchLabels: {batch.kubernetes.io/controller-uid: u-1}"));
  const Json labels = from_yaml(
      "{batch.kubernetes.io/controller-uid: u-1, batch.kubernetes.io/job-name: j, controller-uid: "
      "u-1, job-name: j}");
  CHECK(spec.get_path({"template", "metadata", "labels"}) == labels);
  CHECK(job.get("metadata").get("labels") == labels);
  CHECK(spec.get_path({"template", "spec"}).get_string("dnsPolicy") == "ClusterFirst");
  // Only Pods get these.
  CHECK(spec.get_path({"template", "spec"}).find("tolerations") == nullptr);
  CHECK(refusal("Job", job).empty());
}

TEST_CASE("defaults of a Job that depend on others") {
  const std::string rest =
      "template: {spec: {restartPolicy: Never, containers: [{name: a, image: x}]}}}";
  const Json parallel = defaulted("Job", "spec: {parallelism: 3, " + rest).get("spec");
  CHECK(parallel.find("completions") == nullptr);
  const Json indexed =
      defaulted("Job",
                "spec: {backoffLimitPerIndex: 1, completions: 2, completionMode: Indexed, " + rest)
          .get("spec");
  CHECK(indexed.get_int("backoffLimit") == 2147483647);
  CHECK(indexed.get_int("parallelism") == 1);
  const Json policy =
      defaulted("Job",
                "spec: {podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: "
                "DisruptionTarget}]}]}, " +
                    rest)
          .get("spec");
  CHECK(policy.get_string("podReplacementPolicy") == "Failed");
  CHECK(
      kube::print_json(policy.get("podFailurePolicy")) ==
      R"({"rules":[{"action":"Ignore","onPodConditions":[{"status":"True","type":"DisruptionTarget"}]}]})");
  // A Job without labels gets those of the template, and no selector is made without uid.
  const Json labelled = defaulted(
      "Job", "spec: {template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never}}}");
  CHECK(labelled.get("metadata").get("labels") == from_yaml("{a: b}"));
  CHECK(labelled.get("spec").find("selector") == nullptr);
}

TEST_CASE("defaults of other kinds") {
  const struct {
    std::string kind, sent, stored;
  } kCases[] = {
      {"Service", "{metadata: {name: s}, spec: {ports: [{port: 80}]}}",
       "{metadata: {name: s}, spec: {clusterIP: None, clusterIPs: [None], internalTrafficPolicy: "
       "Cluster, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80, protocol: "
       "TCP, "
       "targetPort: 80}], sessionAffinity: None, type: ClusterIP}, status: {loadBalancer: {}}}"},
      {"Namespace", "{metadata: {name: team}}",
       "{metadata: {name: team, labels: {kubernetes.io/metadata.name: team}}, spec: {finalizers: "
       "[kubernetes]}, status: {phase: Active}}"},
      {"Secret", "{data: {a: YQ==}, stringData: {a: b, c: d}}",
       "{data: {a: Yg==, c: ZA==}, type: Opaque}"},
      {"PersistentVolumeClaim", "{spec: {resources: {requests: {storage: 1024Mi}}}}",
       "{spec: {resources: {requests: {storage: 1Gi}}, volumeMode: Filesystem}, status: {phase: "
       "Pending}}"},
      {"Node", "{status: {capacity: {cpu: 2}}}",
       "{status: {allocatable: {cpu: '2'}, capacity: {cpu: '2'}}}"},
      {"PriorityClass", "{}", "{preemptionPolicy: PreemptLowerPriority, value: 0}"},
      {"ConfigMap", "{data: {a: b}}", "{data: {a: b}}"},
  };
  for (const auto& c : kCases) {
    INFO(c.kind);
    CHECK(kube::print_json(defaulted(c.kind, c.sent)) == kube::print_json(from_yaml(c.stored)));
  }
}

TEST_CASE("kinds of a CustomResourceDefinition") {
  const Json crd = from_yaml(R"(
spec:
  group: acme.io
  scope: Cluster
  names: {kind: Widget, plural: widgets, singular: widget, shortNames: [wi], categories: [all]}
  versions:
  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - name: v2
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size, priority: 1}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, default: 2}}}
  - {name: v0, served: false, storage: false})");
  const auto kinds = trainer::local::kinds_of_crd(crd);
  REQUIRE(kinds.size() == 2);
  const auto& stored = kinds[0];
  CHECK(stored.resource == kube::Resource{"acme.io", "v2", "widgets", "Widget", false});
  CHECK(stored.short_names == std::vector<std::string>{"wi"});
  CHECK(stored.has_status);
  REQUIRE(stored.scale);
  CHECK(stored.scale->spec_replicas == ".spec.size");
  REQUIRE(stored.columns.size() == 1);
  CHECK(stored.columns[0].priority == 1);
  CHECK(stored.unknown_fields(from_yaml("{spec: {x: 1}}")) == std::vector<std::string>{"spec.x"});
  Json widget = from_yaml("{kind: Widget, spec: {}}");
  stored.set_defaults(widget);
  CHECK(widget == from_yaml("{kind: Widget, spec: {size: 2}}"));
  CHECK_FALSE(stored.check(from_yaml("{spec: {size: two}}"), nullptr).empty());
  CHECK(kinds[1].resource.version == "v1");
  CHECK_FALSE(kinds[1].has_status);
}

TEST_CASE("a definition with an open schema keeps everything") {
  const auto kinds = trainer::local::kinds_of_crd(from_yaml(R"(
spec:
  group: acme.io
  names: {kind: PodGroup, plural: podgroups, singular: podgroup}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true,
     schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}})"));
  Json group = from_yaml("{metadata: {name: g}, spec: {minMember: 2}}");
  CHECK(kinds[0].unknown_fields(group).empty());
  const Json before = group;
  kinds[0].set_defaults(group);
  CHECK(group == before);
}

TEST_CASE("a stored definition is established at once") {
  const Json crd = defaulted("CustomResourceDefinition", R"(
spec: {names: {plural: widgets}, versions: [{name: v1, storage: true}, {name: v2}]})");
  const Json& status = crd.get("status");
  CHECK(kube::print_json(status.get("storedVersions")) == R"(["v1"])");
  CHECK(status.get("acceptedNames") == from_yaml("{plural: widgets}"));
  CHECK(status.get_array("conditions")[1].get_string("type") == "Established");
}
