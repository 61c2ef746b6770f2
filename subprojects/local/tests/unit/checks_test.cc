// Local mode refuses the same objects as kube-apiserver.
#include <functional>
#include <utility>

#include "kube/server/decoding.hh"
#include "kube/server/object_rules.hh"
#include "kube/tests/catch.hh"
#include "local/tests/unit/support.hh"

using namespace trainer::test;
using kube::Json;

namespace {

Json pod_with(const std::string& spec) {
  return defaulted("Pod", "{metadata: {name: p}, spec: {" + spec + "}}");
}

Json job_with(const std::string& spec, const std::string& status = "") {
  return defaulted("Job", "{metadata: {name: j, uid: u}, spec: {" + spec +
                              ", template: {spec: {restartPolicy: Never, containers: [{name: a, "
                              "image: x}]}}}, status: {" +
                              status + "}}");
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("no kind takes a name that leads elsewhere as a path") {
  for (const auto& kind : kinds()) {
    for (const char* name : {"..", ".", "../../x", "a/b", "a%2fb", ""}) {
      INFO(kind.resource.kind << " " << name);
      Json object = Json::object({{"metadata", Json::object({{"name", name}})}});
      object["metadata"].set("namespace", "default");
      const auto errors = kube::server::check_metadata(kind, object, nullptr);
      REQUIRE_FALSE(errors.empty());
      CHECK(errors.front().path == "metadata.name");
    }
  }
}

TEST_CASE("pods that cannot be right") {
  const struct {
    std::string spec, refusal;
  } kCases[] = {
      {"containers: [{name: a, image: x}]", ""},
      {"containers: []", "spec.containers: Required value"},
      {"restartPolicy: Never", "spec.containers: Required value"},
      {"containers: [{name: a}]", "spec.containers[0].image: Required value"},
      {"containers: [{name: A, image: x}]", "spec.containers[0].name: Invalid value: \"A\""},
      {"containers: [{name: a, image: x}, {name: a, image: x}]",
       "spec.containers[1].name: Duplicate value: \"a\""},
      {"initContainers: [{name: a, image: x}], containers: [{name: a, image: x}]",
       "spec.initContainers[0].name: Duplicate value: \"a\""},
      {"restartPolicy: Sometimes, containers: [{name: a, image: x}]",
       "spec.restartPolicy: Unsupported value: \"Sometimes\""},
      {"containers: [{name: a, image: x, volumeMounts: [{name: v, mountPath: /v}]}]",
       "spec.containers[0].volumeMounts[0].name: Invalid value: \"v\": not found"},
      {"volumes: [{name: v, emptyDir: {}, secret: {secretName: s}}], containers: [{name: a, image: "
       "x}]",
       "spec.volumes[0]: Forbidden: may not specify more than 1 volume type"},
      {"volumes: [{name: v}], containers: [{name: a, image: x, volumeMounts: [{name: v, mountPath: "
       "/v}, {name: v, mountPath: /v}]}]",
       "spec.containers[0].volumeMounts[1].mountPath: Duplicate value: \"/v\""},
      {"containers: [{name: a, image: x, ports: [{containerPort: 70000}]}]",
       "spec.containers[0].ports[0].containerPort: Invalid value: 70000"},
      {"containers: [{name: a, image: x, env: [{value: v}]}]",
       "spec.containers[0].env[0].name: Required value"},
      {"containers: [{name: a, image: x, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]",
       "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to "
       "cpu limit of 1"},
  };
  for (const auto& c : kCases) {
    INFO(c.spec);
    const std::string text = refusal("Pod", pod_with(c.spec));
    CHECK((c.refusal.empty() ? text.empty() : has(text, c.refusal)));
  }
}

TEST_CASE("objects that cannot be decoded") {
  const std::string kUnmarshal = "json: cannot unmarshal ";
  const struct {
    std::string kind, object, problem;
  } kCases[] = {
      {"Pod", "spec: {containers: [{name: a, image: x, env: null}], volumes: null, extra: 1}", ""},
      {"Pod", "spec: {containers: 5}",
       kUnmarshal + "number into Go struct field PodSpec.spec.containers of type []v1.Container"},
      {"Pod", "spec: {containers: [{env: {a: b}}]}",
       kUnmarshal +
           "object into Go struct field Container.spec.containers.env of type []v1.EnvVar"},
      {"Pod", "spec: {containers: [{env: [{name: a, value: 1}]}]}",
       kUnmarshal + "number into Go struct field EnvVar.spec.containers.env.value of type string"},
      {"Pod", "spec: {volumes: [3]}",
       kUnmarshal + "number into Go struct field PodSpec.spec.volumes of type v1.Volume"},
      {"Pod", "spec: {terminationGracePeriodSeconds: '3'}",
       kUnmarshal +
           "string into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64"},
      {"Pod", "status: {phase: 1}",
       kUnmarshal + "number into Go struct field PodStatus.status.phase of type string"},
      {"Pod", "spec: {containers: [{resources: {requests: {cpu: lots}}}]}",
       "quantities must match the regular expression "
       "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
      {"Job", "spec: {completions: many}",
       kUnmarshal + "string into Go struct field JobSpec.spec.completions of type int32"},
      {"Job", "spec: {template: {spec: {hostNetwork: maybe}}}",
       kUnmarshal +
           "string into Go struct field PodSpec.spec.template.spec.hostNetwork of type bool"},
      {"Service", "spec: {ports: 80}",
       kUnmarshal + "number into Go struct field ServiceSpec.spec.ports of type []v1.ServicePort"},
      {"ConfigMap", "data: {a: 1}",
       kUnmarshal + "number into Go struct field ConfigMap.data of type string"},
      {"ConfigMap", "binaryData: {a: '*'}", "illegal base64 data at input byte 0"},
      // It is not shown.
      {"Secret", "data: {a: pass word}", "illegal base64 data at input byte 4"},
      {"Namespace", "status: 5",
       kUnmarshal + "number into Go struct field Namespace.status of type v1.NamespaceStatus"},
      {"HorizontalPodAutoscaler", "spec: []",
       kUnmarshal + "array into Go struct field HorizontalPodAutoscaler.spec of type "
                    "v2.HorizontalPodAutoscalerSpec"},
      {"CustomResourceDefinition", "status: 5",
       kUnmarshal + "number into Go struct field CustomResourceDefinition.status of type "
                    "v1.CustomResourceDefinitionStatus"},
  };
  for (const auto& c : kCases) {
    INFO(c.kind << " " << c.object);
    CHECK(misfit(c.kind, c.object) == c.problem);
  }
}

namespace {

using Around = std::function<Json(Json inner)>;

// Puts values of each kind in the place of each part of an object, one at a time, and gives the
// kind those that can be decoded.
void try_values(const kube::server::ServedKind& kind, const Json& schema, int depth,
                const Around& around) {
  const Json values[] = {Json(),
                         true,
                         5,
                         0.5,
                         "x",
                         "",
                         Json::object(),
                         Json::array(),
                         Json::array({Json()}),
                         Json::array({5}),
                         Json::array({Json::object()}),
                         Json::object({{"a", "b"}}),
                         Json::object({{"a", Json::object()}})};
  for (const Json& value : values) {
    Json object = around(value);
    if (!kube::server::decoding_problem(object, *kind.schema, {}).empty()) continue;
    INFO(kube::print_json(object));
    kind.set_defaults(object);
    const Json defaulted = object;
    kind.set_defaults(object);
    CHECK(object == defaulted);  // an object that has its defaults gets no more
    for (const kube::FieldError& error : kind.check(object, nullptr))
      CHECK_FALSE(error.path.empty());
  }
  if (depth == 0) return;
  for (const auto& [name, member] : schema.get_object("properties"))
    try_values(kind, member, depth - 1, [&around, &name = name](Json inner) {
      return around(Json::object({{name, std::move(inner)}}));
    });
  if (const Json* items = schema.find("items"))
    try_values(kind, *items, depth - 1,
               [&around](Json inner) { return around(Json::array({std::move(inner)})); });
}

}  // namespace

TEST_CASE("defaults and checks take whatever can be decoded") {
  for (const auto& kind : kinds()) {
    if (!kind.decoding_problem || !kind.schema) continue;
    INFO(kind.resource.kind);
    const bool is_job = kind.resource.kind == "Job";  // its pods are two levels further below
    for (const auto& [name, member] : kind.schema->get_object("properties"))
      try_values(kind, member, is_job ? 7 : 5, [&name = name](Json inner) {
        return Json::object({{name, std::move(inner)}});
      });
  }
}

TEST_CASE("what changes of a stored pod") {
  const Json before = pod_with("containers: [{name: a, image: x}]");
  const auto updated = [&before](const std::string& spec) {
    return refusal("Pod", pod_with(spec), &before);
  };
  CHECK(updated("containers: [{name: a, image: other}]").empty());
  CHECK(updated("nodeName: local, containers: [{name: a, image: x}]").empty());  // a binding
  CHECK(has(updated("containers: [{name: b, image: x}]"), "pod updates may not change fields"));
  const Json bound = pod_with("nodeName: local, containers: [{name: a, image: x}]");
  CHECK_FALSE(refusal("Pod", pod_with("nodeName: other, containers: [{name: a, image: x}]"), &bound)
                  .empty());
  const Json gated =
      pod_with("schedulingGates: [{name: acme.io/gate}], containers: [{name: a, image: x}]");
  CHECK(refusal("Pod", pod_with("nodeSelector: {a: b}, containers: [{name: a, image: x}]"), &gated)
            .empty());
}

TEST_CASE("statuses are stored as they come, with members of the right types") {
  Json pod = pod_with("containers: [{name: a, image: x}]");
  // Members of a container's status that are required are empty in a struct, too.
  pod["status"] = from_yaml("{phase: Running, containerStatuses: [{name: a, ready: true}]}");
  CHECK(refusal("Pod", pod).empty());
}

TEST_CASE("Jobs that cannot be right") {
  const struct {
    std::string spec, refusal;
  } kCases[] = {
      {"suspend: true", ""},
      {"parallelism: -1",
       "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"},
      {"completionMode: Other", "spec.completionMode: Unsupported value: \"Other\""},
      {"completionMode: Indexed, parallelism: 1", "spec.completions: Required value"},
      {"completionMode: Indexed, completions: 1, parallelism: 100001",
       "spec.parallelism: Invalid value: 100001"},
      {"backoffLimitPerIndex: 1", "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed"},
      {"successPolicy: {rules: [{succeededCount: 1}]}", "spec.successPolicy: Invalid value"},
  };
  for (const auto& c : kCases) {
    INFO(c.spec);
    const std::string text = refusal("Job", job_with(c.spec));
    CHECK((c.refusal.empty() ? text.empty() : has(text, c.refusal)));
  }
  const Json always = defaulted(
      "Job",
      "{metadata: {name: j}, spec: {template: {spec: {containers: [{name: a, image: x}]}}}}");
  CHECK(has(refusal("Job", always), "spec.template.spec.restartPolicy: Required value"));
  Json foreign = job_with("suspend: true");
  foreign["spec"]["template"]["metadata"]["labels"].set("batch.kubernetes.io/controller-uid", "x");
  CHECK(has(refusal("Job", foreign), "`selector` does not match template `labels`"));
}

TEST_CASE("what changes of a stored Job") {
  const Json before = job_with("completions: 2");
  CHECK(refusal("Job", job_with("completions: 2, suspend: true, parallelism: 2"), &before).empty());
  CHECK(has(refusal("Job", job_with("completions: 3"), &before),
            "spec.completions: Invalid value: 3: field is immutable"));
  CHECK(has(refusal("Job", job_with("completions: 2, completionMode: Indexed"), &before),
            "spec.completionMode: Invalid value: \"Indexed\": field is immutable"));

  const std::string indexed = "completionMode: Indexed, ";
  const Json elastic = job_with(indexed + "completions: 2, parallelism: 2");
  CHECK(refusal("Job", job_with(indexed + "completions: 3, parallelism: 3"), &elastic).empty());
  CHECK(has(refusal("Job", job_with(indexed + "completions: 3, parallelism: 2"), &elastic),
            "can only be modified in tandem with spec.parallelism"));
}

TEST_CASE("the template of a Job changes only what places pods, before the Job starts") {
  const auto placed = [](Json job) {
    job["spec"]["template"]["spec"].set("nodeSelector", from_yaml("{a: b}"));
    job["spec"]["template"]["metadata"]["annotations"].set("c", "d");
    return job;
  };
  const auto renamed = [](Json job) {
    job["spec"]["template"]["spec"]["containers"].as_array()[0].set("image", "other");
    return job;
  };
  const Json running = job_with("completions: 1");
  const Json held = job_with("completions: 1, suspend: true");
  const Json stopped =
      job_with("completions: 1, suspend: true", "startTime: '2026-01-01T00:00:00Z'");
  CHECK(refusal("Job", placed(held), &held).empty());
  for (const Json* before : {&running, &stopped})
    CHECK(has(refusal("Job", placed(*before), before), "spec.template: Invalid value"));
  CHECK(has(refusal("Job", renamed(held), &held), "field is immutable"));
}

TEST_CASE("ConfigMaps and Secrets") {
  const Json map = from_yaml("{data: {a: b}, immutable: true}");
  CHECK(refusal("ConfigMap", map).empty());
  CHECK(has(refusal("ConfigMap", from_yaml("{data: {'a b': c}}")), "data[a b]: Invalid value"));
  CHECK(has(refusal("ConfigMap", from_yaml("{data: {a: b}, binaryData: {a: Yg==}}")),
            "duplicate of key present in binaryData"));
  Json large = from_yaml("{data: {a: b}}");
  large["data"].set("big", std::string((1U << 20) + 1, 'x'));
  CHECK(has(refusal("ConfigMap", large), "Too long"));
  CHECK(refusal("ConfigMap", map, &map).empty());
  CHECK(has(refusal("ConfigMap", from_yaml("{data: {a: c}, immutable: true}"), &map),
            "data: Forbidden: field is immutable when `immutable` is set"));
  CHECK(has(refusal("ConfigMap", from_yaml("{data: {a: b}}"), &map), "immutable: Forbidden"));

  const Json secret = from_yaml("{type: Opaque, data: {a: Yg==}}");
  CHECK(refusal("Secret", secret).empty());
  CHECK(has(refusal("Secret", from_yaml("{type: Other, data: {a: Yg==}}"), &secret),
            "type: Invalid value: \"Other\": field is immutable"));
}

TEST_CASE("other kinds") {
  const Json service = defaulted("Service", "{metadata: {name: s}}");
  CHECK(refusal("Service", service).empty());
  CHECK(has(refusal("Service",
                    defaulted("Service",
                              "{metadata: {name: s}, spec: {clusterIP: "
                              "10.0.0.1}}"),
                    &service),
            "spec.clusterIP: Invalid value: \"10.0.0.1\": field is immutable"));
  CHECK(has(refusal("Service", defaulted("Service",
                                         "{metadata: {name: s}, spec: {ports: [{port: "
                                         "80}, {port: 81}]}}")),
            "spec.ports[0].name: Required value"));
  const Json claim =
      defaulted("PersistentVolumeClaim",
                "{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}");
  CHECK(refusal("PersistentVolumeClaim", claim).empty());
  CHECK(has(refusal("PersistentVolumeClaim", from_yaml("{spec: {}}")),
            "spec.accessModes: Required value"));
  Json other = claim;
  other["spec"].set("storageClassName", "fast");
  CHECK(has(refusal("PersistentVolumeClaim", other, &claim), "spec: Forbidden"));
  CHECK(
      has(refusal("Event", from_yaml("{metadata: {namespace: a}, involvedObject: {namespace: b}}")),
          "does not match event.namespace"));
  CHECK(refusal("Event", from_yaml("{metadata: {namespace: default}, involvedObject: {name: n1}}"))
            .empty());
}

TEST_CASE("TrainJobs: the schema, rules, and fields that do not change") {
  const auto job = [](const std::string& spec) {
    return defaulted("TrainJob",
                     "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, "
                     "metadata: {name: j}, spec: {" +
                         spec + "}}");
  };
  const Json before = job("runtimeRef: {name: a}");
  CHECK(before.get("spec").get("runtimeRef").get_string("kind") == "ClusterTrainingRuntime");
  CHECK(refusal("TrainJob", before).empty());
  CHECK(has(refusal("TrainJob", job("suspend: true")), "spec.runtimeRef: Required value"));
  CHECK(refusal("TrainJob", job("runtimeRef: {name: a}, suspend: true"), &before).empty());
  CHECK(has(refusal("TrainJob", job("runtimeRef: {name: b}"), &before), "field is immutable"));
  CHECK(has(
      refusal("TrainJob", job("runtimeRef: {name: a}, failurePolicy: {maxRestarts: 1}"), &before),
      "failurePolicy"));
}
