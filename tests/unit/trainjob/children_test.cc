// Snapshots, names that are taken, dependent objects, and what counts as unchanged.
#include "runtimes/trainjob/children.hh"

#include "api/api.hh"
#include "kube/model/difference.hh"
#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "runtimes/trainjob/difference.hh"
#include "runtimes/trainjob/known_objects.hh"
#include "runtimes/trainjob/snapshot.hh"
#include "runtimes/views/pod.hh"
#include "tests/support/catch.hh"
#include "tests/unit/trainjob/world.hh"

namespace trainer::test {
namespace {

using kube::Json;
using Reasons = std::vector<std::string>;

constexpr const char* kSnapshot = "ConfigMap/j-runtime-snapshot";

TEST_CASE("equal runtimes have equal snapshots") {
  Json again = torch_runtime();
  again["metadata"].set("uid", "another").set("resourceVersion", "99").set("generation", 4);
  again["metadata"].set("managedFields", Json::array({Json::object({{"manager", "kubectl"}})}));
  again["metadata"].set("annotations",
                        Json::object({{"kubectl.kubernetes.io/last-applied-configuration", "{}"}}));
  CHECK(snapshot_of(again)->text == snapshot_of(torch_runtime())->text);
  again["spec"]["mlPolicy"].set("numNodes", 3);
  CHECK(snapshot_of(again)->text != snapshot_of(torch_runtime())->text);
}

TEST_CASE("a snapshot reads back as the runtime it was made from") {
  RuntimeRef ref;
  ref.name = "rt";
  const auto written = snapshot_of(torch_runtime());
  const auto read = snapshot_from(written->text);
  CHECK(read->hash == written->hash);
  for (const auto& snapshot : {written, read}) {
    const auto runtime = runtime_in(*snapshot, ref, "ns");
    REQUIRE(runtime);
    CHECK((*runtime)->kind == "ClusterTrainingRuntime");
    CHECK((*runtime)->metadata.name == "rt");
    CHECK((*runtime)->spec.mlPolicy->numNodes == 2);
    REQUIRE((*runtime)->spec.template_->spec->replicatedJobs.size() == 1);
  }
}

TEST_CASE("snapshots that cannot be used say why, in upstream's words") {
  struct Row {
    std::string owner;
    std::optional<std::string> text;
    std::string kind;
    std::string expected;
  };
  const std::string good = snapshot_of(torch_runtime())->text;
  const Row row = GENERATE_COPY(
      Row{"another client", good, "ClusterTrainingRuntime",
          "getting runtime snapshot: invalid runtime snapshot: a snapshot configmap exists but is "
          "owned by another object"},
      Row{"job-uid", std::nullopt, "ClusterTrainingRuntime",
          "getting runtime snapshot: invalid runtime snapshot: snapshot ConfigMap missing "
          "\"runtime\" data key"},
      Row{"job-uid", std::nullopt, "TrainingRuntime",
          "unable to get runtime snapshot: invalid runtime snapshot: snapshot ConfigMap missing "
          "\"runtime\" data key"},
      Row{"job-uid", "{[", "ClusterTrainingRuntime",
          "getting runtime snapshot: invalid runtime snapshot: unable to unmarshal the snapshot: "},
      Row{"job-uid", "just a text", "ClusterTrainingRuntime",
          "getting runtime snapshot: invalid runtime snapshot: unable to unmarshal the snapshot: "
          "it is of type string"},
      Row{"job-uid", good, "TrainingRuntime",
          "unable to get runtime snapshot: invalid runtime snapshot: the snapshot refers to the "
          "wrong runtime: expecting a runtime with "
          "name, api group and kind of \"rt\", \"trainer.kubeflow.org\", \"TrainingRuntime\" but "
          "found runtime with name, api group and "
          "kind of \"rt\", \"trainer.kubeflow.org\", \"ClusterTrainingRuntime\""});
  Json start = train_job();
  start["spec"]["runtimeRef"].set("kind", row.kind);
  World world(start);
  Json config_map = yaml("{metadata: {ownerReferences: [{controller: true}]}, data: {}}");
  config_map["metadata"]["ownerReferences"].as_array()[0].set("uid", row.owner);
  if (row.text) config_map["data"].set("runtime", *row.text);
  world.others["ConfigMap/j-runtime-snapshot"] = config_map;
  world.known.end_first_plan();  // else it would be known not to exist
  CHECK(world.settle() == Reasons{"TrainJobResourcesCreationFailed"});
  CHECK(world.reason() == "RuntimeSnapshotInvalid");
  CHECK(world.message().substr(0, row.expected.size()) == row.expected);
  CHECK_FALSE(world.jobset);
  CHECK(world.phase() == "Pending");
  // No watch shows when a client has deleted it.
  CHECK(world.reconcile().requeue_after == std::chrono::seconds(30));
}

TEST_CASE("a snapshot that is too large is not read, nor written") {
  const std::string good = snapshot_of(torch_runtime())->text;
  std::string many = good + "more:\n";
  for (int i = 0; i < 41'000; ++i) many += "- a\n";
  std::string brackets = "{\"a\":[1";
  for (int i = 0; i < 41'000; ++i) brackets += ",1";
  for (const std::string& text :
       {many, brackets + "]}", brackets, good + "# " + std::string(513U << 10, 'x') + "\n"}) {
    const auto snapshot = snapshot_from(text);
    CHECK_FALSE(snapshot->is_object);
    CHECK_FALSE(snapshot->runtime);
    CHECK(snapshot->hash == kube::sha256_hex(text));
    CHECK(snapshot->text.empty());
  }
  CHECK(unread_snapshot(many)->text.empty());
  CHECK(unread_snapshot(many)->hash == kube::sha256_hex(many));

  Json annotations = Json::object();
  for (int i = 0; i < 25'000; ++i) annotations.set(std::to_string(100'000 + i), "");
  for (const Json& large : {annotations, Json::object({{"a", std::string(513U << 10, 'x')}}),
                            Json::object({{"a", std::string(41'000, ',')}})}) {
    World world;
    world.runtime["metadata"].set("annotations", large);
    CHECK(world.settle() == Reasons{"TrainJobResourcesCreationFailed"});
    CHECK(world.reason() == "RuntimeSnapshotInvalid");
    CHECK(world.message().find("larger than 524288 bytes or 40000 values") != std::string::npos);
    CHECK_FALSE(world.jobset);
    CHECK_FALSE(world.others.contains(kSnapshot));
  }
}

TEST_CASE("a text that the controller wrote is read up to the size of a ConfigMap") {
  const std::string good = snapshot_of(torch_runtime())->text + "# ";
  const std::string hash = kube::sha256_hex("another");
  const auto padded = [&](std::size_t size) { return good + std::string(size - good.size(), 'x'); };
  std::string many = good + "\nmore:\n";
  for (int i = 0; i < 41'000; ++i) many += "- a\n";
  const struct {
    std::string text;
    bool is_read_as_own;
    bool is_read_for_others;
  } rows[] = {{padded(512U << 10), true, true},
              {padded((512U << 10) + 1), true, false},
              {padded(1U << 20), true, false},
              {padded((1U << 20) + 1), false, false},
              {many, false, false}};
  for (const auto& row : rows) {
    CAPTURE(row.text.size());
    CHECK(snapshot_from(row.text, kube::sha256_hex(row.text))->is_object == row.is_read_as_own);
    CHECK(snapshot_from(row.text, hash)->is_object == row.is_read_for_others);
    CHECK(snapshot_from(row.text)->is_object == row.is_read_for_others);
  }
}

TEST_CASE("unset parts of a reference print as any") {
  RuntimeRef ref;
  ref.name = "other";
  const auto snapshot = snapshot_of(torch_runtime());
  const auto runtime = runtime_in(*snapshot, ref, "ns");
  REQUIRE_FALSE(runtime);
  CHECK(runtime.error().message.find("\"other\", \"<any>\", \"<any>\" but found") !=
        std::string::npos);
}

TEST_CASE("an edited snapshot is refused, a running job goes on") {
  World world;
  world.settle();
  const Json before = *world.jobset;
  world.others[kSnapshot]["data"].set("runtime", snapshot_of(torch_runtime())->text + "# edited\n");
  world.restart();
  CHECK(world.settle().empty());
  world.set_spec("suspend", true);
  world.settle();
  CHECK(world.reason() == "RuntimeSnapshotInvalid");
  CHECK(world.message().find("status.runtimeSnapshotHash says") != std::string::npos);
  // Its machines are free nevertheless, and nothing else of the JobSet has changed.
  Json stopped = before;
  stopped["spec"].set("suspend", true);
  CHECK(*world.jobset == stopped);
}

const kube::Refusal kImmutable{kJobSets, "JobSet ns/j: spec.replicatedJobs: field is immutable",
                               kube::ErrorCode::kInvalid};

TEST_CASE("what cannot be built, or is refused, is stopped all the same") {
  World world;
  world.settle();
  SECTION("it cannot be built") {
    world.object["metadata"].set("annotations",
                                 yaml("{trainer.kubeflow.org/torch-launcher: none}"));
  }
  SECTION("the API server refuses it") {
    world.refusal = kImmutable;
  }
  world.set_spec("suspend", true);
  const TrainJobPlan plan = world.reconcile();
  const kube::Action* stop = find_action(plan, kube::Action::Verb::kMergePatch, "JobSet");
  REQUIRE(stop);
  CHECK(stop->stage == 0);
  CHECK(kube::print_json(stop->body) ==
        R"({"metadata":{"uid":"jobset-uid"},"spec":{"suspend":true}})");
  CHECK(world.reason() == "ChildRefused");
  // Once.
  CHECK_FALSE(find_action(world.reconcile(), kube::Action::Verb::kMergePatch, "JobSet"));
}

TEST_CASE("a deleted snapshot is written again from an unchanged runtime only") {
  World world;
  world.settle();
  world.others.erase(kSnapshot);
  world.restart();
  SECTION("unchanged") {
    world.settle();
    REQUIRE(world.others.count(kSnapshot) == 1);
    CHECK(kube::sha256_hex(world.others[kSnapshot].find_path({"data", "runtime"})->as_string()) ==
          world.status().get_string("runtimeSnapshotHash"));
  }
  SECTION("changed, while running: nothing depends on it") {
    world.runtime["spec"]["mlPolicy"].set("numNodes", 5);
    CHECK(world.settle().empty());
    CHECK(world.others.count(kSnapshot) == 0);
  }
  SECTION("changed, and needed") {
    world.runtime["spec"]["mlPolicy"].set("numNodes", 5);
    world.set_spec("suspend", true);
    world.settle();
    CHECK(world.reason() == "RuntimeSnapshotLost");
    CHECK(world.others.count(kSnapshot) == 0);
  }
}

TEST_CASE("a job of before is trusted with the snapshot it finds") {
  World world;
  world.settle();
  world.object["status"].erase("runtimeSnapshotHash");
  world.restart();
  world.settle();
  CHECK(world.status().get_string("runtimeSnapshotHash") ==
        kube::sha256_hex(snapshot_of(torch_runtime())->text));
}

TEST_CASE("a runtime that does not exist is waited for") {
  World world;
  world.is_runtime_deleted = true;
  const TrainJobPlan plan = world.reconcile();
  CHECK(plan.requeue_after);
  CHECK(world.reason() == "RuntimeNotFound");
  CHECK(world.message() ==
        "not found ClusterTrainingRuntime specified in TrainJob: "
        "clustertrainingruntimes.trainer.kubeflow.org \"rt\" not found");
  CHECK(reasons_of(plan) == Reasons{"TrainJobResourcesCreationFailed"});
  CHECK(plan.events[0].message.find("TrainJob resources reconciliation failed: not found") == 0);
  CHECK(world.conditions().empty());
  CHECK(world.settle().empty());
  world.is_runtime_deleted = false;
  world.settle();
  CHECK(world.jobset);
  CHECK(world.reason() == "CreatingPods");
}

TEST_CASE("a foreign JobSet is never touched") {
  World world;
  world.jobset = yaml(R"(
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: j, namespace: ns, uid: foreign, ownerReferences: [{kind: TrainJob, name: x, uid: x-uid, controller: true, apiVersion: trainer.kubeflow.org/v1alpha1}]}
spec: {replicatedJobs: []}
status: {conditions: [{type: Failed, status: "True", reason: FailedJobs, message: no, lastTransitionTime: "2027-01-15T08:30:00Z"}]}
)");
  const Json before = *world.jobset;
  const TrainJobPlan plan = world.reconcile();
  CHECK(plan.actions.empty());
  CHECK(plan.requeue_after == std::chrono::seconds(30));
  CHECK(world.reason() == "JobSetNameTaken");
  CHECK(world.message().find("is controlled by TrainJob \"x\"") != std::string::npos);
  CHECK(reasons_of(plan) == Reasons{"TrainJobResourcesCreationFailed"});
  CHECK(world.settle().empty());
  CHECK(*world.jobset == before);
  CHECK(world.phase() == "Pending");
  CHECK(world.conditions().empty());
}

TEST_CASE("what the API server refused stays in the status until it is settled") {
  World world;
  world.refusal = kube::Refusal{
      kJobSets, "JobSet ns/j: admission webhook \"vjobset.kb.io\" denied the request: no",
      kube::ErrorCode::kForbidden};
  TrainJobPlan plan = world.reconcile();
  CHECK(world.reason() == "ChildRefused");
  CHECK(world.message() == world.refusal->message);
  // The writer that was refused has recorded the event.
  CHECK(reasons_of(plan) == Reasons{"Created"});
  world.refusal.reset();
  world.settle();
  CHECK(world.reason() == "CreatingPods");
}

TEST_CASE("a JobSet that cannot become what is built now can be made again") {
  World world;
  world.set_spec("suspend", true);
  world.settle();
  world.set_spec("suspend", false);
  world.refusal = kImmutable;
  world.reconcile();
  CHECK(world.message() ==
        world.refusal->message + "; or delete JobSet \"ns/j\" to have it made again");
}

TEST_CASE("a job that breaks a rule is refused without a webhook, too") {
  Json start = train_job();
  start["spec"].set("runtimePatches",
                    yaml("[{manager: nodomain, trainingRuntimeSpec: {template: {spec: {}}}}]"));
  World world(start);
  world.settle();
  CHECK(world.reason() == "ChildRefused");
  CAPTURE(world.message());
  CHECK(world.message().rfind("spec.runtimePatches[0].manager", 0) == 0);
  CHECK_FALSE(world.jobset);
}

TEST_CASE("fields of v2.1 work without a webhook, too") {
  Json start = train_job();
  start["spec"].set("podTemplateOverrides",
                    yaml("[{targetJobs: [{name: node}], spec: {nodeSelector: {pool: a}}}]"));
  World world(start);
  world.settle();
  REQUIRE(world.jobset);
  const Json& node = world.jobset->find("spec")->get_array("replicatedJobs")[0];
  CHECK(node.find_path({"template", "spec", "template", "spec", "nodeSelector", "pool"}));
}

TEST_CASE("containment") {
  const auto contained = [](std::string_view desired, std::string_view stored) {
    return is_contained(yaml(desired), yaml(stored));
  };
  CHECK(contained("{a: 1}", "{a: 1, b: 2}"));
  CHECK_FALSE(contained("{a: 1, b: 2}", "{a: 1}"));
  CHECK(contained("{a: {}, b: [], c: null}", "{}"));
  CHECK(contained("{a: {b: {}}}", "{}"));
  CHECK_FALSE(contained("{a: {b: 1}}", "{a: text}"));
  CHECK_FALSE(contained("[1, 2]", "[1]"));
  CHECK_FALSE(contained("[1]", "[1, 2]"));
  CHECK(contained("[{name: a}]", "[{name: a, value: b}]"));
  CHECK_FALSE(contained("{a: [1]}", "{a: {b: 1}}"));
  CHECK_FALSE(contained("{a: false}", "{}"));
}

Json jobset_with(std::string_view labels, std::string_view fields = "") {
  Json jobset = yaml(R"(
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: j}
spec:
  suspend: true
  replicatedJobs:
  - name: node
    template: {spec: {template: {metadata: {}, spec: {nodeSelector: {pool: a}}}}}
)");
  (*jobset.find_path({"spec", "replicatedJobs"}))
      .as_array()[0]["template"]["spec"]["template"]["metadata"]
      .set("labels", yaml(labels));
  if (!fields.empty()) {
    jobset["metadata"].set(
        "managedFields",
        Json::array({Json::object(
            {{"manager", "trainer"}, {"operation", "Apply"}, {"fieldsV1", yaml(fields)}})}));
  }
  return jobset;
}

TEST_CASE("a label of others on a suspended JobSet is no change where our fields are known") {
  const Json desired = jobset_with("{own: x}");
  const Json stored = jobset_with("{own: x, theirs: y}");
  CHECK(is_jobset_changed(desired, stored, std::nullopt));
  const Json applied = jobset_with(
      "{}",
      R"({f:metadata: {f:labels: {f:more: {}}}, f:spec: {f:suspend: {}, f:replicatedJobs: {'k:{"name":"node"}': {.: {}, f:name: {}, f:template: {f:spec: {f:backoffLimit: {}, f:template: {f:spec: {}, f:metadata: {f:labels: {f:own: {}}}}}}}}}})");
  CHECK(owned_template_fields(applied));
  const auto owned = owned_template_fields(jobset_with(
      "{}",
      R"({f:spec: {f:replicatedJobs: {'k:{"name":"node"}': {f:template: {f:spec: {f:template: {f:metadata: {f:labels: {f:own: {}}}}}}}}}})"));
  REQUIRE(owned);
  CHECK(owned != owned_template_fields(applied));
  // The stores read no more of managedFields than this function reads.
  const kube::JsonFilter seen{
      "", kube::JsonFilter::Members::kInclude, {kube::metadata_with({seen_of_managed_fields()})}};
  const auto read = kube::parse_json(kube::print_json(applied), {}, seen);
  REQUIRE(read);
  CHECK(owned_template_fields(*read) == owned_template_fields(applied));
  const auto fields = [](const Json& object) {
    return kube::print_json(*object.find_path({"metadata", "managedFields"})).size();
  };
  CHECK(fields(*read) < fields(applied));
  CHECK_FALSE(is_jobset_changed(desired, stored, owned));
  // A label of its own that must go, and one whose value is another.
  CHECK(is_jobset_changed(jobset_with("{}"), stored, owned));
  CHECK(is_jobset_changed(jobset_with("{own: z}"), stored, owned));
  CHECK_FALSE(owned_template_fields(stored));
}

TEST_CASE("suspension and scheduling fields are compared exactly") {
  Json stored = jobset_with("{a: b}");
  Json desired = stored;
  CHECK_FALSE(is_jobset_changed(desired, stored, std::nullopt));
  desired["spec"].erase("suspend");
  CHECK(is_jobset_changed(desired, stored, std::nullopt));
  desired = stored;
  desired["spec"]["replicatedJobs"].as_array()[0]["template"]["spec"]["template"]["spec"].erase(
      "nodeSelector");
  CHECK(is_jobset_changed(desired, stored, std::nullopt));
}

TEST_CASE("a dependent object is unchanged by what its own controller adds") {
  const Json desired = yaml("{metadata: {name: j}, spec: {minMember: 2}}");
  Json stored = yaml(
      "{metadata: {name: j, resourceVersion: '1'}, spec: {minMember: 2, queue: default}, status: "
      "{phase: Inqueue}}");
  CHECK_FALSE(is_dependent_changed(desired, stored));
  stored["metadata"].set("managedFields", yaml("[{manager: trainer, operation: Apply, fieldsV1: "
                                               "{f:spec: {f:minMember: {}, f:queue: {}}}}]"));
  CHECK(is_dependent_changed(desired, stored));
  // This is the controller's own body, remembered from its apply.
  CHECK(
      is_dependent_changed(desired, yaml("{metadata: {name: j}, spec: {minMember: 2, queue: q}}")));
  CHECK(is_dependent_changed(yaml("{data: {a: x}}"),
                             yaml("{metadata: {resourceVersion: '1'}, data: {a: x, b: y}}")));
}

TEST_CASE("dependent objects: created before the JobSet, never adopted, silent when unchanged") {
  Json runtime = torch_runtime();
  runtime["spec"].set("podGroupPolicy", yaml("{coscheduling: {scheduleTimeoutSeconds: 60}}"));
  Json start = train_job();
  start["spec"].set("suspend", true);
  World world(start, runtime);
  const std::string name = "PodGroup.scheduling.x-k8s.io/j";

  SECTION("its life") {
    const TrainJobPlan plan = world.reconcile();
    const kube::Action* group = find_action(plan, kube::Action::Verb::kApply, "PodGroup");
    REQUIRE(group);
    CHECK(group->stage == 1);
    CHECK(group->body.find_path({"spec", "minMember"})->as_int() == 2);
    world.settle();
    const int requests = world.requests;
    world.restart();
    world.settle();
    CHECK(world.requests == requests);

    world.others[name]["spec"].set("minMember", 7);
    world.restart();
    world.settle();
    CHECK(world.others[name].find_path({"spec", "minMember"})->as_int() == 2);
  }
  SECTION("another's") {
    world.others[name] =
        yaml("{metadata: {name: j, uid: foreign, resourceVersion: '1'}, spec: {minMember: 7}}");
    world.settle();
    CHECK(world.reason() == "ChildNameTaken");
    CHECK(world.others[name].find_path({"spec", "minMember"})->as_int() == 7);
    CHECK_FALSE(world.jobset);
  }
}

TEST_CASE("a Workload and its PodGroup are made before the JobSet, and cost nothing afterwards") {
  Json runtime = torch_runtime();
  runtime["spec"].set("podGroupPolicy", yaml("{workload: {}}"));
  World world(train_job(), runtime);
  const TrainJobPlan plan = world.reconcile();
  const auto stage = [&plan](const char* kind) {
    const kube::Action* action = find_action(plan, kube::Action::Verb::kApply, kind);
    REQUIRE(action);
    return action->stage;
  };
  CHECK(stage("Workload") < stage("JobSet"));
  CHECK(stage("PodGroup") < stage("JobSet"));
  world.settle();
  const int requests = world.requests;
  world.restart();
  world.settle();
  CHECK(world.requests == requests);
}

TEST_CASE("pods that report progress get a new CA while they run") {
  const std::string name = "ConfigMap/j-tls-config";
  const auto ca_of = [&name](World& world) {
    return std::string(world.others.at(name).find_path({"data", "ca.crt"})->as_string());
  };
  World world;
  world.options.is_progress_enabled = true;
  world.options.status_server_ca = "old";
  world.settle();
  REQUIRE(ca_of(world) == "old");
  REQUIRE_FALSE(world.job().is_suspended());

  world.options.status_server_ca = "new+old";
  world.restart();
  const TrainJobPlan plan = world.reconcile();
  const kube::Action* write = find_action(plan, kube::Action::Verb::kApply, "ConfigMap");
  REQUIRE(write);
  CHECK(write->owner_uid == world.job().metadata.uid);
  CHECK_FALSE(find_action(plan, kube::Action::Verb::kApply, "JobSet"));
  CHECK(ca_of(world) == "new+old");
  world.restart();
  world.settle();
  CHECK_FALSE(find_action(world.reconcile(), kube::Action::Verb::kApply, "ConfigMap"));

  SECTION("but not one that is another's by now") {
    world.others[name] = yaml("{metadata: {name: j-tls-config, uid: x}, data: {ca.crt: theirs}}");
    world.restart();
    world.settle();
    CHECK(ca_of(world) == "theirs");
  }
  SECTION("and a job without reports gets none") {
    World plain;
    plain.settle();
    plain.options.is_progress_enabled = true;
    plain.restart();
    plain.settle();
    CHECK_FALSE(plain.others.contains(name));
  }
}

// A launcher that trains, and a worker.
Json mpi_runtime() {
  Json runtime = torch_runtime();
  runtime["spec"].set("mlPolicy", yaml("{numNodes: 2, mpi: {mpiImplementation: OpenMPI, "
                                       "runLauncherAsNode: true}}"));
  Json& jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"];
  Json launcher = jobs.as_array()[0];
  launcher.set("name", "launcher");
  jobs.as_array()[0]["template"].erase("metadata");
  jobs.push_back(std::move(launcher));
  return runtime;
}

TEST_CASE("a launcher that trains counts as a node of a job that another controller has started") {
  World world(train_job(), mpi_runtime());
  world.settle();
  REQUIRE(world.jobset);
  REQUIRE(world.job().status.nodes->total == 3);
  // Upstream's controllers leave this state: neither these members of the status nor a snapshot.
  world.object.erase("status");
  world.others.erase("ConfigMap/j-runtime-snapshot");
  world.restart();
  world.settle();
  CHECK(world.job().status.nodes->total == 3);
}

TEST_CASE("the Secret of SSH keys: made once, and again where no pod has the old keys") {
  Json start = train_job();
  start["spec"].set("suspend", true);
  World world(start, mpi_runtime());
  const std::string name = "Secret/j-mpi-ssh-auth";
  // This is the only Secret that a plan makes; the plan says that it wants keys.
  const auto check_made = [&name](const TrainJobPlan& plan) {
    REQUIRE(plan.ssh_key_actions.size() == 1);
    const kube::Action& secret = plan.actions.at(plan.ssh_key_actions[0]);
    CHECK(&secret == find_action(plan, kube::Action::Verb::kCreate, "Secret"));
    CHECK(name_in_world({secret.resource, secret.key}) == name);
    CHECK(secret.key.ns == "ns");
    CHECK(secret.owner_uid == "job-uid");
    CHECK(kube::ObjectMeta::of(secret.body).controller()->uid == "job-uid");
    CHECK(secret.body.get_string("type") == "kubernetes.io/ssh-auth");
    CHECK(secret.body.get_bool("immutable"));
    CHECK(secret.body.find("data") == nullptr);
  };
  const TrainJobPlan first = world.reconcile();
  check_made(first);
  // Pods mount it.
  const kube::Action* jobset = find_action(first, kube::Action::Verb::kApply, "JobSet");
  REQUIRE(jobset);
  CHECK(first.actions.at(first.ssh_key_actions[0]).stage < jobset->stage);
  world.settle();
  REQUIRE(world.jobset);
  REQUIRE(world.others.count(name) == 1);
  REQUIRE(world.others.count("ConfigMap/j-mpi-hostfile") == 1);

  SECTION("once") {
    const int requests = world.requests;
    world.restart();
    world.settle();
    CHECK(world.requests == requests);
    world.set_spec("suspend", false);
    const TrainJobPlan resumed = world.reconcile();
    CHECK(find_action(resumed, kube::Action::Verb::kApply, "JobSet"));
    CHECK(resumed.ssh_key_actions.empty());
    CHECK_FALSE(find_action(resumed, kube::Action::Verb::kCreate, "Secret"));
  }
  SECTION("gone, and no pod has had its keys") {
    world.others.erase(name);
    world.restart();
    check_made(world.reconcile());
    CHECK(world.others.count(name) == 1);
    CHECK(world.settle().empty());
  }
  SECTION("gone, and pods have its keys") {
    PodSpec pod;
    pod.phase = "Running";
    world.put_pod(pod);
    world.others.erase(name);
    world.restart();
    const TrainJobPlan plan = world.reconcile();
    CHECK(plan.ssh_key_actions.empty());
    world.settle();
    CHECK(world.others.count(name) == 0);
    // The pods end; the next pods get keys of their own.
    world.pods.clear();
    check_made(world.reconcile());
  }
  SECTION("another's") {
    world.others[name] =
        yaml("{metadata: {name: j-mpi-ssh-auth, uid: foreign, resourceVersion: '1'}, data: {}}");
    const Json before = world.others[name];
    world.restart();
    CHECK(world.settle() == Reasons{"TrainJobResourcesCreationFailed"});
    CHECK(world.reason() == "ChildNameTaken");
    CHECK(world.message() ==
          "Secret \"ns/j-mpi-ssh-auth\" exists and is not controlled by this TrainJob: delete it "
          "or create the TrainJob under another name");
    CHECK(world.others[name] == before);
    CHECK(world.reconcile().requeue_after == std::chrono::seconds(30));
  }
}

TEST_CASE("what was deleted under a running job is made again when pods start again") {
  World world(train_job(), mpi_runtime());
  world.settle();
  const std::string secret = "Secret/j-mpi-ssh-auth", hosts = "ConfigMap/j-mpi-hostfile";
  const auto exist = [&] { return world.others.contains(secret) && world.others.contains(hosts); };
  REQUIRE(exist());
  PodSpec pod;
  pod.phase = "Running";
  world.put_pod(pod);
  world.settle();
  world.others.erase(secret);
  world.others.erase(hosts);
  world.settle();
  CHECK_FALSE(exist());  // no pod needs it, and nothing was read

  SECTION("the kubelet of a later pod misses it") {
    world.pods.clear();
    world.waiting_event = "FailedMount: MountVolume.SetUp failed: configmap not found";
    world.settle();
    CHECK(exist());
    const int writes = world.requests, reads = world.reads;
    world.settle();
    CHECK(world.requests == writes);
    CHECK(world.reads == reads);
  }
  SECTION("a restart is counted") {
    world.set_jobset_status(
        yaml("{restarts: 1, conditions: [{type: RestartingJobSet, status: 'True', reason: R, "
             "message: m, "
             "lastTransitionTime: '2027-01-15T08:00:00Z'}]}"));
    SECTION("pods of the attempt before do not count") {
      world.settle();
      CHECK(exist());
    }
    SECTION("one of this attempt has the keys, and another waits") {
      pod.attempt = 1;
      world.put_pod(pod);
      pod.name = "j-launcher-0-0-abcde";
      pod.phase = "Pending";
      world.put_pod(pod);
      world.settle();
      CHECK(world.others.contains(hosts));
      CHECK_FALSE(world.others.contains(secret));
      CHECK(world.reason() == "ChildMissing");
      CHECK(world.message() ==
            "Secret \"ns/j-mpi-ssh-auth\" was deleted, and pods run with its keys, without which "
            "others cannot start: delete JobSet \"ns/j\" to start all pods with new keys");
      CHECK(world.reconcile().requeue_after == std::chrono::seconds(30));
      world.pods.clear();
      world.settle();
      CHECK(exist());
    }
    SECTION("the snapshot and its runtime are gone, and nothing is missing") {
      World torch;
      torch.settle();
      torch.others.clear();
      torch.is_runtime_deleted = true;
      torch.set_jobset_status(*world.jobset->find("status"));
      torch.restart();
      torch.settle();
      CHECK(torch.reason() != "RuntimeSnapshotLost");
      CHECK(torch.job().status.restarts == 1);
    }
  }
}

TEST_CASE("no job waits for the CA of its reports") {
  const std::string name = "ConfigMap/j-tls-config";
  World world;
  world.options.is_progress_enabled = true;
  const auto stages = [](const TrainJobPlan& plan) {
    const kube::Action* ca = find_action(plan, kube::Action::Verb::kApply, "ConfigMap");
    const kube::Action* jobset = find_action(plan, kube::Action::Verb::kApply, "JobSet");
    REQUIRE((ca && jobset));
    return std::pair(ca->stage, jobset->stage);
  };
  SECTION("before the JobSet, but not once it was refused") {
    CHECK(stages(world.reconcile()) == std::pair(1, 2));
    World refused;
    refused.options.is_progress_enabled = true;
    refused.refusal =
        kube::Refusal{kube::kConfigMaps, "configmaps \"j-tls-config\" is forbidden: exceeded quota",
                      kube::ErrorCode::kForbidden};
    CHECK(stages(refused.reconcile()) == std::pair(3, 2));
  }
  SECTION("another's is left alone") {
    world.others[name] = yaml("{metadata: {name: j-tls-config, uid: x}, data: {ca.crt: theirs}}");
    world.settle();
    CHECK(world.jobset);
    CHECK(world.others[name].find_path({"data", "ca.crt"})->as_string() == "theirs");
  }
  SECTION("deleted while the job runs, together with all else: written again, and nothing else") {
    world.settle();
    world.others.clear();
    world.is_runtime_deleted = true;
    world.restart();
    world.settle();
    CHECK(world.others.contains(name));
    CHECK(world.others.size() == 1);
    CHECK(world.reason() == "CreatingPods");
  }
}

TEST_CASE("whatever shape its children have, a job has a phase and a reason") {
  struct Row {
    const char* jobset;
    const char* reason;  // nullptr: the store keeps no object of this shape
  };
  const Row row = GENERATE(
      Row{"{metadata: {name: j}}", "JobSetNameTaken"},
      Row{"{metadata: {name: j, ownerReferences: 5}, spec: 7, status: []}", nullptr},
      Row{"{metadata: {name: j, ownerReferences: [{uid: job-uid, controller: true}]}, spec: "
          "{replicatedJobs: [{name: node, replicas: -5, "
          "template: {spec: {parallelism: 99999999999}}}]}, status: {restarts: -3, "
          "replicatedJobsStatus: [{name: ghost, active: 5}], conditions: "
          "[{type: Completed}, {}]}}",
          "Scheduling"},
      Row{"{metadata: {name: j, ownerReferences: [{uid: job-uid, controller: true}], "
          "deletionTimestamp: x}, spec: {suspend: true, "
          "replicatedJobs: [{name: node, template: text}, {name: node}]}}",
          nullptr});
  CAPTURE(row.jobset);
  World world;
  PodSpec pod;
  pod.index = -7;
  world.put_pod(pod);
  world.pods.begin()->second->job_index = "99999999999999999999";
  pod.name = "stray";
  pod.replicated_job = "none";
  world.put_pod(pod);
  const Json object = yaml(row.jobset);
  auto typed = read_jobset(object);
  REQUIRE(typed.has_value() == (row.reason != nullptr));
  if (!typed) return;
  const TrainJob job = world.job();
  kube::NamedObjects objects;
  objects.set(snapshot_object(job), {.object = std::make_shared<const Json>(Json::object())});
  TrainJobObserved observed{job, world.object, objects};
  observed.jobset = &*typed;
  observed.jobset_object = &object;
  for (const auto& [name, view] : world.pods) observed.pods.push_back(view.get());
  observed.pods.push_back(nullptr);
  observed.now = world.now;
  const auto plan = plan_trainjob(observed, PipelineOptions(production_plugins()));
  REQUIRE(plan.status_patch);
  const Json& status = *plan.status_patch->find("status");
  CHECK(status.get_string("phase") == "Pending");
  CHECK(status.get_string("reason") == row.reason);
}

}  // namespace
}  // namespace trainer::test
