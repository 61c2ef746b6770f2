#include <algorithm>
#include <set>
#include <string>

#include "api/api.hh"
#include "api/kinds/kinds.hh"
#include "api/schema/kubernetes_types.hh"
#include "api/schema/structural_schema.hh"
#include "kube/model/json_text.hh"
#include "kube/model/yaml.hh"
#include "tests/support/catch.hh"

namespace trainer {
namespace {

using kube::Json;

Json yaml(const std::string& text) {
  auto value = kube::parse_yaml(text);
  if (!value) throw std::logic_error(value.error().message);
  return *std::move(value);
}

Json trainjob(const std::string& spec) {
  return yaml(
      "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: j}, spec: {" +
      spec + "}}");
}

Json elastic(const std::string& spec) {
  return trainjob(spec).set("status", yaml("{elastic: {minNodes: 2, maxNodes: 4}}"));
}

// A job that has run.
Json begun(const std::string& spec) {
  return trainjob(spec).set("status", yaml("{startTime: '2026-08-20T10:00:00Z'}"));
}

Json runtime(const std::string& spec) {
  return yaml(
      "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: r}, "
      "spec: {" +
      spec + "}}");
}

Json jobset(const std::string& spec) {
  return yaml("{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: s}, spec: {" +
              spec + "}}");
}

struct FrozenSpec {
  kube::Time time;
  std::vector<std::string> choices;
  std::vector<Json> patches;

  template <class D>
  static void describe(D& d) {
    d.field("time", &FrozenSpec::time);
    d.field("choices", &FrozenSpec::choices).list_set();
    d.field("patches", &FrozenSpec::patches);
  }
};

struct Frozen {
  FrozenSpec spec;

  template <class D>
  static void describe(D& d) {
    d.field("spec", &Frozen::spec).immutable("field is immutable");
  }
};

Json frozen(const std::string& spec) {
  return yaml("{spec: {" + spec + "}}");
}

std::string defaulted(Json object) {
  apply_schema_defaults(object);
  return kube::print_json(*object.find("spec"));
}

std::string schema_errors(const Json& object) {
  return kube::to_string(check_schema(object));
}

TEST_CASE("a TrainJob gets its defaults") {
  CHECK(
      defaulted(trainjob("runtimeRef: {name: r}")) ==
      R"({"managedBy":"trainer.kubeflow.org/trainjob-controller","runtimeRef":{"apiGroup":"trainer.kubeflow.org",)"
      R"("kind":"ClusterTrainingRuntime","name":"r"},"suspend":false})");
  CHECK(
      defaulted(trainjob(
          "runtimeRef: {name: r, kind: TrainingRuntime}, suspend: true, "
          "managedBy: kueue.x-k8s.io/multikueue, initializer: {dataset: {secretRef: {}}}")) ==
      R"({"initializer":{"dataset":{"secretRef":{"name":""}}},"managedBy":"kueue.x-k8s.io/multikueue",)"
      R"("runtimeRef":{"apiGroup":"trainer.kubeflow.org","kind":"TrainingRuntime","name":"r"},"suspend":true})");
}

TEST_CASE("a runtime gets the defaults of its policies and of the JobSet in it") {
  CHECK(
      defaulted(runtime("mlPolicy: {mpi: {}}")) ==
      R"({"mlPolicy":{"mpi":{"mpiImplementation":"OpenMPI","numProcPerNode":1,"runLauncherAsNode":false,)"
      R"("sshAuthMountPath":"/root/.ssh"}}})");
  CHECK(
      defaulted(runtime("mlPolicy: {flux: {}, numNodes: 2}, podGroupPolicy: {coscheduling: {}}")) ==
      R"({"mlPolicy":{"flux":{"numProcPerNode":1},"numNodes":2},)"
      R"("podGroupPolicy":{"coscheduling":{"scheduleTimeoutSeconds":60}}})");
  CHECK(
      defaulted(runtime("podGroupPolicy: {volcano: {networkTopology: {}}}")) ==
      R"({"podGroupPolicy":{"volcano":{"networkTopology":{"highestTierAllowed":1,"mode":"hard"}}}})");
  CHECK(defaulted(runtime("mlPolicy: {torch: {}}")) == R"({"mlPolicy":{"torch":{}}})");
  CHECK(
      defaulted(runtime(
          "template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: "
          "{containers: [{name: node, ports: [{containerPort: 1}]}]}}}}}]}}")) ==
      R"({"template":{"spec":{"replicatedJobs":[{"groupName":"default","name":"node","replicas":1,"template":)"
      R"({"spec":{"template":{"spec":{"containers":[{"name":"node","ports":[{"containerPort":1,)"
      R"("protocol":"TCP"}]}]}}}}}]}}})");
}

TEST_CASE("a JobSet gets its defaults") {
  CHECK(defaulted(jobset(
            "failurePolicy: {}, volumeClaimPolicies: [{retentionPolicy: {}, templates: []}]")) ==
        R"({"failurePolicy":{"restartStrategy":"Recreate"},)"
        R"("volumeClaimPolicies":[{"retentionPolicy":{"whenDeleted":"Delete"},"templates":[]}]})");
  CHECK(defaulted(jobset("replicatedJobs: [{name: a, replicas: 0}]")) ==
        R"({"replicatedJobs":[{"groupName":"default","name":"a","replicas":0}]})");
}

TEST_CASE("null takes the default, or is removed where there is none") {
  CHECK(
      defaulted(trainjob("runtimeRef: {name: r, kind: null}, suspend: null, trainer: null, "
                         "activeDeadlineSeconds: null, own: null")) ==
      R"({"managedBy":"trainer.kubeflow.org/trainjob-controller","own":null,"runtimeRef":)"
      R"({"apiGroup":"trainer.kubeflow.org","kind":"ClusterTrainingRuntime","name":"r"},"suspend":false})");
}

TEST_CASE("objects of other kinds are left alone by defaults and refused by the check") {
  Json pod = yaml("{kind: Pod, spec: {a: null}}");
  const Json before = pod;
  apply_schema_defaults(pod);
  CHECK(pod == before);
  CHECK(schema_errors(pod) ==
        R"(kind: Unsupported value: "Pod": supported values: "TrainJob", "TrainingRuntime", )"
        R"("ClusterTrainingRuntime", "JobSet")");
}

TEST_CASE("the schema check refuses what the API server refuses") {
  const auto [object, message] = GENERATE(table<Json, std::string>({
      {trainjob("runtimeRef: {name: r}, trainer: {numNodes: 0, numProcPerNode: 1}"), ""},
      {trainjob("trainer: {numNodes: 1}"), "spec.runtimeRef: Required value"},
      {trainjob("runtimeRef: {}"), "spec.runtimeRef.name: Required value"},
      {trainjob("runtimeRef: {name: ''}"),
       R"(spec.runtimeRef.name: Invalid value: "": should be at least 1 chars long)"},
      {trainjob("runtimeRef: {name: r}, trainer: {numNodes: -1}"),
       "spec.trainer.numNodes: Invalid value: -1: should be greater than or equal to 0"},
      {trainjob("runtimeRef: {name: r}, trainer: {numNodes: 3000000000}"),
       "spec.trainer.numNodes: Invalid value: 3000000000: must be between -2147483648 and "
       "2147483647"},
      {trainjob("runtimeRef: {name: r}, trainer: {numProcPerNode: 0}"),
       "spec.trainer.numProcPerNode: Invalid value: 0: numProcPerNode must be greater than or "
       "equal to 1"},
      {trainjob("runtimeRef: {name: r}, trainer: {numProcPerNode: auto}"),
       R"(spec.trainer.numProcPerNode: Invalid value: "auto": must be of type integer, found string)"},
      {trainjob("runtimeRef: {name: r}, activeDeadlineSeconds: 0"),
       "spec.activeDeadlineSeconds: Invalid value: 0: should be greater than or equal to 1"},
      {trainjob("runtimeRef: {name: r}, managedBy: me"),
       R"(spec.managedBy: Invalid value: "me": ManagedBy must be trainer.kubeflow.org/trainjob-controller or )"
       "kueue.x-k8s.io/multikueue if set"},
      {trainjob("runtimeRef: {name: r}, initializer: {dataset: {storageUri: nope}}"),
       R"(spec.initializer.dataset.storageUri: Invalid value: "nope": storageUri may be empty, or it must be a )"
       "valid URI (scheme://...)"},
      {trainjob("runtimeRef: {name: r}, initializer: {dataset: {storageUri: ''}, model: "
                "{storageUri: 's3://b/p'}}"),
       ""},
      {trainjob("runtimeRef: {name: r}, initializer: {model: {storageUri: 's3://'}}"),
       R"(spec.initializer.model.storageUri: Invalid value: "s3://": storageUri may be empty, or it must be a valid )"
       "URI (scheme://...)"},
      {trainjob("runtimeRef: {name: r}, trainer: {env: [{name: A}, {name: B}, {name: A}]}"),
       R"(spec.trainer.env[2]: Duplicate value: {"name":"A"})"},
      // The API server takes a list for a string that has a format.
      {trainjob("runtimeRef: {name: r}, runtimePatches: [{manager: m, time: [1]}]"), ""},
      {trainjob("runtimeRef: {name: r}, runtimePatches: [{manager: m, time: {}}]"),
       "spec.runtimePatches[0].time: Invalid value: {}: must be of type string, found object"},
      {trainjob("runtimeRef: {name: r}, trainer: {env: [{value: b}]}"),
       "spec.trainer.env[0].name: Required value"},
      {trainjob("runtimeRef: {name: r}, trainer: {resourcesPerNode: {limits: {cpu: 1.5}}}"),
       "spec.trainer.resourcesPerNode.limits.cpu: Invalid value: 1.5: must be of type integer or "
       "string, found number"},
      {trainjob("runtimeRef: {name: r}, trainer: {resourcesPerNode: {limits: {cpu: 500m, memory: "
                "1Gi, a/b: 2}}}"),
       ""},
      {trainjob("runtimeRef: {name: r}, runtimePatches: [{manager: a/b, trainingRuntimeSpec: "
                "{template: {spec: "
                "{replicatedJobs: [{name: node, template: {spec: {template: {spec: {tolerations: "
                "{}}}}}}]}}}}]"),
       "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec."
       "template.spec."
       "tolerations: Invalid value: {}: must be of type array, found object"},
      {trainjob("runtimeRef: {name: r}, podTemplateOverrides: [{targetJobs: [{name: node}]}]"),
       "spec.podTemplateOverrides: Forbidden: was removed in v2.2: write the same into "
       "runtimePatches[]."
       "trainingRuntimeSpec.template.spec.replicatedJobs[].template.spec.template"},
      {runtime("mlPolicy: {torch: {}, mpi: {}}"),
       R"(spec.mlPolicy: Invalid value: {"mpi":{},"torch":{}}: Only one of the policy can be configured)"},
      {runtime("mlPolicy: {mpi: {mpiImplementation: Open}}"),
       R"(spec.mlPolicy.mpi.mpiImplementation: Unsupported value: "Open": supported values: "OpenMPI", "", "Intel", "MPICH")"},
      {runtime("mlPolicy: {torch: {numProcPerNode: auto, launcher: torchrun}}"), ""},
      {runtime("mlPolicy: {torch: {numProcPerNode: 4, launcher: env}}"), ""},
      {runtime("mlPolicy: {torch: {numProcPerNode: 0}}"),
       "spec.mlPolicy.torch.numProcPerNode: Invalid value: 0: numProcPerNode must be auto, gpu, "
       "cpu or an int32 of at least 1"},
      {runtime("mlPolicy: {torch: {numProcPerNode: '4'}}"),
       R"(spec.mlPolicy.torch.numProcPerNode: Invalid value: "4": numProcPerNode must be auto, gpu, )"
       "cpu or an int32 of at least 1"},
      {runtime("mlPolicy: {torch: {numProcPerNode: true}}"),
       "spec.mlPolicy.torch.numProcPerNode: Invalid value: true: must be of type integer or "
       "string, found boolean"},
      {runtime("mlPolicy: {torch: {launcher: mpirun}}"),
       R"(spec.mlPolicy.torch.launcher: Unsupported value: "mpirun": supported values: "torchrun", "env")"},
      {runtime(
           "mlPolicy: {torch: {envInjection: {targets: [{jobName: a, containerNames: [node]}]}}}"),
       R"(spec.mlPolicy.torch.envInjection.targets[0].containerNames: Invalid value: ["node"]: containerNames must not )"
       "include the main node container because PET_* envs are always injected into it"},
      {runtime(
           "mlPolicy: {torch: {envInjection: {targets: [{jobName: a, containerNames: [b, b]}]}}}"),
       R"(spec.mlPolicy.torch.envInjection.targets[0].containerNames[1]: Duplicate value: "b")"},
      {runtime(""), "spec: Invalid value: 0: should have at least 1 properties"},
      {jobset("startupPolicy: {startupPolicyOrder: InOrder}, replicatedJobs: [{name: a, template: "
              "{}}, "
              "{name: b, template: {}, dependsOn: [{name: a, status: Ready}]}]"),
       R"(spec: Invalid value: {"replicatedJobs":[{"name":"a","template":{}},{"dependsOn":[{"name":"a","status":"Ready"}],)"
       R"("name":"b","template":{}}],"startupPolicy":{"startupPolicyOrder":"InOrder"}}: StartupPolicy and DependsOn APIs )"
       "are mutually exclusive"},
      {jobset("replicatedJobs: [{name: a, template: {}, replicas: -1}]"),
       "spec.replicatedJobs[0].replicas: Invalid value: -1: should be greater than or equal to 0"},
      {jobset("replicatedJobs: [{name: a, template: {}, dependsOn: [{name: b, status: Failed}]}]"),
       R"(spec.replicatedJobs[0].dependsOn[0].status: Unsupported value: "Failed": supported values: "Ready", "Complete")"},
      {jobset("volumeClaimPolicies: [{templates: [{metadata: {name: a, namespace: b}}]}]"),
       R"(spec.volumeClaimPolicies[0]: Invalid value: {"templates":[{"metadata":{"name":"a","namespace":"b"}}]}: )"
       "namespace cannot be set for VolumeClaimPolicies templates"},
      {jobset("replicatedJobs: [{name: a, template: {spec: {template: {spec: {containers: [{name: "
              "c, ports: "
              "[{containerPort: 1}, {containerPort: 1, protocol: TCP}]}]}}}}}]"),
       "spec.replicatedJobs[0].template.spec.template.spec.containers[0].ports[1]: Duplicate "
       "value: "
       R"({"containerPort":1,"protocol":"TCP"})"},
  }));
  CHECK(schema_errors(object) == message);
}

TEST_CASE("a whole number with a point breaks a rule about an integer, as in CEL") {
  Json object = trainjob("runtimeRef: {name: r}, trainer: {numNodes: 2}");
  object["spec"]["trainer"].set("numNodes", 2.0);
  CHECK(schema_errors(object).empty());
  object["spec"]["trainer"].set("numProcPerNode", 2.0);
  CHECK(schema_errors(object) ==
        "spec.trainer.numProcPerNode: Invalid value: 2: numProcPerNode must be greater than or "
        "equal to 1");
}

TEST_CASE("names of TrainJobs are DNS labels that start with a letter") {
  const auto [name, is_good] = GENERATE(table<std::string, bool>({
      {"valid-job-name", true},
      {std::string(63, 'a'), true},
      {std::string(64, 'a'), false},
      {"Upper", false},
      {"9lives", false},
      {"trailing-", false},
      {"dots.in.it", false},
      {"", true},  // the API server has yet to generate it
  }));
  Json object = trainjob("runtimeRef: {name: r}");
  object["metadata"].set("name", name);
  CHECK(check_schema(object).empty() == is_good);
}

TEST_CASE("lists and strings have their bounds") {
  Json object = trainjob("runtimeRef: {name: r}, trainer: {}");
  Json& trainer = object["spec"]["trainer"];
  trainer.set("command", Json::array({std::string(1048576, 'x')}));
  CHECK(schema_errors(object).empty());
  trainer.set("command", Json::array({std::string(1048577, 'x')}));
  CHECK(schema_errors(object) ==
        "spec.trainer.command[0]: Too long: may not be more than 1048576 bytes");
  trainer.set("command", Json(Json::Array(129, Json("x"))));
  CHECK(schema_errors(object) ==
        "spec.trainer.command: Too many: 129: must have at most 128 items");
}

TEST_CASE("patterns accept and refuse as the API server's regular expressions do") {
  struct Row {
    wire::Pattern pattern;
    std::vector<std::string_view> good;
    std::vector<std::string_view> bad;
  };
  const Row rows[] = {
      {wire::kQuantity,
       {"1", "+1.", ".5", "1.5Gi", "100m", "1e3", "1E-3", "1E", "2k"},
       {"", ".", "1gi", "1 Gi", "Gi", "1e", "1Kii", "--1", "1k5"}},
      {wire::kConditionReason,
       {"A", "A_", "Ab:c", "FailurePolicy_x"},
       {"", "_A", "A:", "A b", "1A"}},
      {wire::kConditionType,
       {"Complete", "a.io/B", "a-b.c/D_e.f"},
       {"", "-a", "a-", "A.io/b", "a..b/c", "a/b/c", "/b"}},
  };
  for (const Row& row : rows) {
    INFO(row.pattern.regex);
    for (const std::string_view text : row.good) CHECK(row.pattern.matches(text));
    for (const std::string_view text : row.bad) CHECK_FALSE(row.pattern.matches(text));
  }
}

void collect(const Json& schema, std::string_view keyword, std::set<std::string>& found) {
  if (keyword == "pattern" && !schema.get_string(keyword).empty())
    found.insert(std::string(schema.get_string(keyword)));
  for (const Json& rule : schema.get_array(keyword))
    found.insert(std::string(rule.get_string("rule")));
  for (const auto& [name, member] : schema.get_object("properties"))
    collect(member, keyword, found);
  for (const char* inner : {"items", "additionalProperties"})
    if (const Json* below = schema.find(inner)) collect(*below, keyword, found);
}

TEST_CASE(
    "every rule that needs no stored object and every pattern is also checked without an API "
    "server") {
  for (const ApiKind& kind : api_kinds()) {
    const wire::Schema& schema = *find_schema(kind.resource.kind);
    const Json whole = KubernetesTypes::instance().expand(schema.document);
    std::set<std::string> texts;
    collect(whole, "pattern", texts);
    collect(whole, "x-kubernetes-validations", texts);
    CHECK_FALSE(texts.empty());
    for (const std::string& text : texts) {
      INFO(kind.resource.kind << " " << text);
      // The stored object is optional for fields that were removed: their rules hold for a new
      // object, too.
      const bool needs_stored =
          schema.predicates.transitions.contains(text) ||
          (text.find("oldSelf") != std::string::npos && !text.starts_with("!has(self."));
      CHECK(schema.predicates.rules.contains(text) == !needs_stored);
    }
  }
}

TEST_CASE("an update is compared with the stored object as CEL compares") {
  const std::string with_container =
      "runtimeRef: {name: r}, runtimePatches: [{manager: m, trainingRuntimeSpec: {template: {spec: "
      "{replicatedJobs: [{name: n, template: {spec: {template: {spec: {containers: ";
  const std::string end = "}}}}}]}}}}]";
  struct Row {
    Json before;
    Json after;
    std::string schema_errors;  // the fields that are named
  };
  const Row rows[] = {
      {trainjob("trainer: {numNodes: 1}"), trainjob("trainer: {numNodes: 1}"), ""},
      {trainjob("trainer: {numNodes: 1}"), trainjob("trainer: {numNodes: 2}"), "spec.trainer"},
      {trainjob("trainer: {numNodes: 1}"), trainjob(""), ""},
      // The number of nodes of an elastic job changes between its bounds, and nothing else.
      {elastic("trainer: {numNodes: 3}"), elastic("trainer: {numNodes: 4}"), ""},
      {elastic("trainer: {numNodes: 3}"), elastic("trainer: {numNodes: 5}"), "spec.trainer"},
      {elastic("trainer: {numNodes: 3}"), elastic("trainer: {numNodes: 1}"), "spec.trainer"},
      {elastic("trainer: {numNodes: 9}"), elastic("trainer: {numNodes: 9}"), ""},
      {elastic("trainer: {numNodes: 3}"), elastic("trainer: {}"), "spec.trainer"},
      {elastic("trainer: {numNodes: 3}"), elastic(""), "spec.trainerspec.trainer"},
      {elastic("trainer: {}"), elastic(""), "spec.trainer"},
      {elastic(""), elastic("trainer: {numNodes: 3}"), ""},
      {elastic(""), elastic("trainer: {numNodes: 3, image: i}"), "spec.trainer"},
      {elastic("trainer: {numNodes: 3}"), elastic("trainer: {numNodes: 4, image: i}"),
       "spec.trainer"},
      {elastic("trainer: {env: [{name: A}, {name: B}]}"),
       elastic("trainer: {numNodes: 2, env: [{name: B}, {name: A}]}"), ""},
      {begun(""), begun("trainer: {numNodes: 1}"), "spec.trainer"},
      {begun("trainer: {}"), begun(""), "spec.trainer"},
      {begun("trainer: {}"), begun("trainer: {}"), ""},
      {trainjob(""), trainjob("trainer: {numNodes: 1}"), ""},
      {trainjob(""), trainjob("failurePolicy: {}"), "spec"},
      {trainjob("failurePolicy: {}"), trainjob(""), "spec"},
      {trainjob("failurePolicy: {}"), trainjob("failurePolicy: {maxRestarts: 1}"),
       "spec.failurePolicy"},
      // A list that is a map has no order, at each level; other lists have.
      {trainjob("trainer: {env: [{name: A}, {name: B}]}"),
       trainjob("trainer: {env: [{name: B}, {name: A}]}"), ""},
      {trainjob("trainer: {env: [{name: A}, {name: B}]}"),
       trainjob("trainer: {env: [{name: B}, {name: A, value: v}]}"), "spec.trainer"},
      {trainjob("trainer: {env: [{name: A}, {name: B}]}"),
       trainjob("trainer: {env: [{name: B}, {name: C}]}"), "spec.trainer"},
      {trainjob("trainer: {args: [a, b]}"), trainjob("trainer: {args: [b, a]}"), "spec.trainer"},
      // Items of the list above correspond by their keys.
      {trainjob(with_container + "[{name: a}, {name: b}]" + end),
       trainjob(with_container + "[{name: b}, {name: a}]" + end), ""},
      {trainjob(with_container + "[{name: a}]" + end),
       trainjob(with_container + "[{name: b}]" + end),
       "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec."
       "template.spec.containers"},
      // Times are instants; a set has no order; an undeclared member is not missed.
      {frozen("time: '2026-08-20T10:00:00Z'"), frozen("time: '2026-08-20T12:00:00.0+02:00'"), ""},
      {frozen("time: '2026-08-20T10:00:00Z'"), frozen("time: '2026-08-20T10:00:01Z'"), "spec"},
      {frozen("choices: [a, b]"), frozen("choices: [b, a]"), ""},
      {frozen("choices: [a, b]"), frozen("choices: [b, c]"), "spec"},
      {frozen("patches: [{a: 1}]"), frozen("patches: [{b: 1}]"), ""},
      {frozen("patches: [{a: 1}]"), frozen("patches: [{a: 2}]"), "spec"},
  };
  for (const Row& row : rows) {
    CAPTURE(kube::print_json(row.before), kube::print_json(row.after));
    const wire::Schema* known = find_schema(row.after.get_string("kind"));
    const wire::Schema schema = known != nullptr ? *known : root_schema<Frozen>();
    std::string fields;
    for (const kube::FieldError& error : check_transitions(row.after, row.before, schema))
      fields += error.path;
    CHECK(fields == row.schema_errors);
  }
}

TEST_CASE("a member that was removed from the API stays where it was stored") {
  const Json before = trainjob("runtimeRef: {name: r}, labels: {a: b}");
  const wire::Schema& schema = *find_schema("TrainJob");
  CHECK(kube::to_string(check_schema(before, schema)).starts_with("spec.labels: Forbidden"));
  CHECK(check_schema(before, schema, &before).empty());
  CHECK(check_schema(trainjob("runtimeRef: {name: r}, labels: {a: c}"), schema, &before).empty());
  CHECK(check_schema(trainjob("runtimeRef: {name: r}, annotations: {a: b}"), schema, &before)
            .size() == 1);
}

TEST_CASE("fields that the schema does not have, as the API server's strict decoding names them") {
  struct Row {
    Json object;
    std::vector<std::string> expected;
  };
  const Row rows[] = {
      {trainjob("runtimeRef: {name: r}, labels: {a: b}, trainer: {resourcesPerNode: {limits: "
                "{x/gpu: 1}}}"),
       {}},
      {trainjob("trainer: {comand: [x], env: [{name: a, valu: b}]}"),
       {"spec.trainer.comand", "spec.trainer.env[0].valu"}},
      {yaml("{kind: TrainJob, spce: 1, metadata: {lables: {}, labels: {a: b}, uid: u}}"),
       {"metadata.lables", "spce"}},
      // Converted by the webhook: the schema still takes what older versions had.
      {trainjob("podTemplateOverrides: [{anything: 1}]"), {}},
      {trainjob("runtimePatches: [{manager: m, trainingRuntimeSpec: {template: {spec: {"
                "replicatedJobs: [{nam: node}]}}}}]"),
       {"spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].nam"}},
      {Json("no object"), {}},
  };
  for (const Row& row : rows) {
    CAPTURE(kube::print_json(row.object));
    CHECK(unknown_fields(row.object, trainjob_kind().versions[0].make_schema()) == row.expected);
  }
}

struct Gadget {
  std::string size;

  template <class D>
  static void describe(D& d) {
    d.field("size", &Gadget::size).rule({"self != 'huge'", "too large", [](const Json& self) {
                                           return self != Json("huge");
                                         }});
  }
};

TEST_CASE("a kind outside the registry has a schema that is checked, and a definition") {
  const ApiKind kind{{"example.io", "v2", "gadgets", "Gadget", false},
                     {{.name = "v1", .make_schema = root_schema<Gadget>, .is_stored = false},
                      {.name = "v2",
                       .make_schema = root_schema<Gadget>,
                       .scale = ScaleSubresource{".spec.replicas", ".status.replicas"}}}};
  CHECK(kube::to_string(check_schema(yaml("{size: huge}"), kind.versions[1].make_schema())) ==
        R"(size: Invalid value: "huge": too large)");
  const Json definition = custom_resource_definition(kind);
  CHECK(definition.find("metadata")->get_string("name") == "gadgets.example.io");
  const Json::Array& versions = definition.find("spec")->get_array("versions");
  REQUIRE(versions.size() == 2);
  CHECK_FALSE(versions[0].get_bool("storage"));
  CHECK(kube::print_json(*versions[1].find("subresources")) ==
        R"({"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"},)"
        R"("status":{}})");
}

}  // namespace
}  // namespace trainer
