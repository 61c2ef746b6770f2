// The validating webhooks: which rules a request meets, and in which words it is refused.
#include <fmt/format.h>

#include "kube/model/digest.hh"
#include "kube/model/json_text.hh"
#include "runtimes/plugins/registry.hh"
#include "runtimes/trainjob/legacy.hh"
#include "runtimes/trainjob/plan.hh"
#include "runtimes/trainjob/runtime_snapshot.hh"
#include "tests/support/catch.hh"
#include "tests/unit/admission/fixture.hh"

namespace trainer::test {
namespace {

using kube::Json;

AdmissionAnswer validate(const AdmissionRequest& request, const Cluster& cluster = {}) {
  return validate_trainjob(request, cluster.lookups(), PipelineOptions(production_plugins()));
}

Json job_with(std::string_view member, std::string_view value) {
  Json job = train_job();
  job["spec"].set(member, yaml(value));
  return job;
}

TEST_CASE("creation: upstream's rules in upstream's words") {
  struct Row {
    const char* about;
    Json job;
    std::string message;
  };
  const Row row = GENERATE(
      Row{"rule 1", job_with("runtimeRef", "{name: x, kind: Deployment}"),
          "unsupported runtime: Deployment.trainer.kubeflow.org; in spec.runtimeRef write kind "
          "ClusterTrainingRuntime or "
          "TrainingRuntime, and apiGroup trainer.kubeflow.org or none"},
      Row{"rule 1, group", job_with("runtimeRef", "{name: rt, apiGroup: apps}"),
          "unsupported runtime: ClusterTrainingRuntime.apps; in spec.runtimeRef write kind "
          "ClusterTrainingRuntime or "
          "TrainingRuntime, and apiGroup trainer.kubeflow.org or none"},
      Row{"rule 2",
          job_with("runtimeRef",
                   "{name: none, kind: TrainingRuntime, apiGroup: trainer.kubeflow.org}"),
          "spec.runtimeRef: Invalid value: "
          "{\"apiGroup\":\"trainer.kubeflow.org\",\"kind\":\"TrainingRuntime\",\"name\":\"none\"}: "
          "TrainingRuntime.trainer.kubeflow.org \"none\" not found: specified trainingRuntime must "
          "be created before the TrainJob is created"},
      Row{"rule 3", job_with("runtimeRef", "{name: none}"),
          "spec.RuntimeRef: Invalid value: {\"name\":\"none\"}: "
          "ClusterTrainingRuntime.trainer.kubeflow.org \"none\" not found: specified "
          "clusterTrainingRuntime must be created before the TrainJob is created"});
  INFO(row.about);
  const auto answer = validate(create(row.job));
  CHECK_FALSE(answer.is_allowed);
  CHECK(answer.code == 403);
  CHECK(answer.reason == "Forbidden");
  CHECK(answer.message == row.message);
}

TEST_CASE("a good job passes") {
  const auto answer = validate(create(train_job()));
  CHECK(answer.message.empty());
  CHECK(answer.is_allowed);
  CHECK(answer.json_patch.is_null());
}

TEST_CASE("rules of job and runtime are asked") {
  for (const char* list : {"[{manager: nodomain, trainingRuntimeSpec: {template: {spec: {}}}}]",
                           "[{manager: acme.io/, trainingRuntimeSpec: {template: {spec: {}}}}]",
                           "[{manager: acme.io/a, trainingRuntimeSpec: {template: {spec: "
                           "{replicatedJobs: [{name: ghost}]}}}}]"}) {
    INFO(list);
    CHECK_FALSE(validate(create(job_with("runtimePatches", list))).is_allowed);
  }
  CHECK_FALSE(
      validate(create(job_with("trainer", "{env: [{name: PET_NNODES, value: '1'}]}"))).is_allowed);
  CHECK(
      validate(
          create(job_with(
              "runtimePatches",
              "[{manager: kueue.x-k8s.io/manager, trainingRuntimeSpec: {template: {spec: {}}}}]")))
          .is_allowed);
}

TEST_CASE("rules 10 and 11: when patches may change") {
  struct Row {
    bool was_suspended;
    bool is_suspended;
    const char* jobset_status;  // nullptr: no JobSet
    const char* message;        // "" when allowed
  };
  constexpr const char* kGate =
      "spec.runtimePatches: Forbidden: RuntimePatches can only be modified when the TrainJob is "
      "suspended before or after the update";
  constexpr const char* kActive =
      "spec.runtimePatches: Forbidden: RuntimePatches cannot be modified when the JobSet's "
      "ReplicatedJob node is still active";
  constexpr const char* kTwoActive =
      "[spec.runtimePatches: Forbidden: RuntimePatches cannot be modified when the JobSet's "
      "ReplicatedJob a is still active, "
      "spec.runtimePatches: Forbidden: RuntimePatches cannot be modified when the JobSet's "
      "ReplicatedJob b is still active]";
  const Row row = GENERATE_REF(
      Row{false, false, nullptr, kGate}, Row{false, false, "[{name: node, active: 1}]", kGate},
      Row{true, false, nullptr, ""}, Row{true, false, "[{name: node, active: 0}]", ""},
      Row{true, false, "[{name: node, active: 1}]", kActive},
      Row{false, true, "[{name: node, active: 1}]", kActive}, Row{true, true, "[]", ""},
      Row{true, true, "[{name: a, active: 2}, {name: b, active: 1}, {name: c, active: 0}]",
          kTwoActive});
  Json before = train_job();
  before["spec"].set("suspend", row.was_suspended);
  Json after = before;
  after["spec"].set("suspend", row.is_suspended);
  after["spec"].set("runtimePatches", patches("acme.io/a", "x"));
  Cluster cluster;
  if (row.jobset_status) {
    cluster.jobset = yaml(
        "{metadata: {name: j, namespace: ns, ownerReferences: [{apiVersion: "
        "trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: j, uid: "
        "job-uid, controller: true}]}, spec: {replicatedJobs: []}}");
    Json statuses = yaml(row.jobset_status);
    for (Json& status : statuses.as_array()) {
      for (const char* counter : {"ready", "succeeded", "failed", "suspended"})
        status.set(counter, 0);
    }
    cluster.jobset->set("status", Json::object({{"replicatedJobsStatus", std::move(statuses)}}));
  }
  CHECK(validate(update(before, after), cluster).message == row.message);
}

TEST_CASE("once a job has run, a patch comes or goes only with what a Job takes over") {
  constexpr const char* kPatch =
      "[{{manager: acme.io/a, trainingRuntimeSpec: {{template: {{spec: {{replicatedJobs: [{{name: "
      "node, template: {{spec: {{template: {{metadata: {{labels: {{a: b}}}}, spec: "
      "{{{}}}}}}}}}}}]}}}}}}}}]";
  struct Row {
    const char* spec;
    bool has_run;
    bool is_allowed;
  };
  for (const Row& row : {Row{"serviceAccountName: s", true, false},
                         Row{"containers: [{name: node, env: [{name: A, value: b}]}]", true, false},
                         Row{"serviceAccountName: s", false, true},
                         Row{"nodeSelector: {a: b}, tolerations: [{operator: Exists}]", true, true},
                         Row{"schedulingGates: [{name: a/b}]", true, true}}) {
    for (const bool is_removed : {false, true}) {
      INFO(row.spec << " " << row.has_run << " " << is_removed);
      Json without = train_job();
      without["spec"].set("suspend", true);
      if (row.has_run) without.set("status", yaml("{startTime: '2027-01-01T00:00:00Z'}"));
      Json with = without;
      with["spec"].set("runtimePatches", yaml(fmt::format(kPatch, row.spec)));
      Cluster cluster;
      cluster.jobset = yaml(
          "{metadata: {name: j, namespace: ns, ownerReferences: [{apiVersion: "
          "trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: j, uid: job-uid, controller: "
          "true}]}, spec: {replicatedJobs: []}}");
      const auto answer =
          validate(is_removed ? update(with, without) : update(without, with), cluster);
      CHECK(answer.is_allowed == row.is_allowed);
    }
  }
}

TEST_CASE("once a job has run, trainer and initializer can be neither added nor removed") {
  for (const auto& [part, value] : std::vector<std::pair<const char*, const char*>>{
           {"trainer", "{numNodes: 2}"}, {"initializer", "{}"}}) {
    for (const bool has_run : {false, true}) {
      INFO(part << " " << has_run);
      Json without = train_job();
      without["spec"].erase(part);
      if (has_run) without.set("status", yaml("{startTime: '2027-01-01T00:00:00Z'}"));
      Json with = without;
      with["spec"].set(part, yaml(value));
      CHECK(validate(update(without, with)).is_allowed == !has_run);
      CHECK(validate(update(with, without)).is_allowed == !has_run);
    }
  }
  // Parts that are added before that have to keep the rules.
  Json after = train_job();
  after["spec"].set("trainer", yaml("{env: [{name: PET_NNODES, value: '1'}]}"));
  CHECK_FALSE(validate(update(train_job(), after)).is_allowed);
}

// Jobs that v2.0 and v2.1 have stored.
TEST_CASE("what a job of an earlier version has stored is no reason to refuse a change") {
  for (const char* spec :
       {"podTemplateOverrides: [{targetJobs: [{name: node}], spec: {nodeSelector: {a: b}}}]",
        "podSpecOverrides: [{targetJobs: [{name: node}], nodeSelector: {a: b}}]",
        "{labels: {a: b}, annotations: {c: d}}", "trainer: {numProcPerNode: auto}",
        "trainer: {numProcPerNode: '4'}"}) {
    INFO(spec);
    Json before = train_job();
    const Json stored = yaml(spec);
    for (const auto& [name, value] : stored.as_object()) before["spec"].set(name, value);
    Json after = before;
    after["metadata"].set("labels", yaml("{team: a}"));
    CHECK(validate(update(before, after)).is_allowed);
    after["spec"].set("suspend", true);
    CHECK(validate(update(before, after)).is_allowed);
    after["spec"].set("runtimePatches", patches("kueue.x-k8s.io/manager", "x"));
    CHECK(validate(update(before, after)).is_allowed);
    // The mutating webhook converts a change of such a field; this one refuses it.
    after["spec"].set("labels", yaml("{changed: 'yes'}"));
    CHECK_FALSE(validate(update(before, after)).is_allowed);
    const auto read = read_stored_trainjob(before);
    CHECK(read.has_value());
  }
}

TEST_CASE("a foreign JobSet's activity is none of the job's") {
  Json before = train_job();
  before["spec"].set("suspend", true);
  Json after = before;
  after["spec"].set("runtimePatches", patches("acme.io/a", "x"));
  Cluster cluster;
  cluster.jobset = yaml(
      "{metadata: {name: j, namespace: ns}, spec: {replicatedJobs: []}, status: "
      "{replicatedJobsStatus: [{name: node, ready: 0, succeeded: 0, "
      "failed: 0, active: 1, suspended: 0}]}}");
  CHECK(validate(update(before, after), cluster).is_allowed);
}

TEST_CASE("a scheduler that evicts a running job changes suspend only") {
  Json before = train_job();
  before["spec"].set("runtimePatches", patches("kueue.x-k8s.io/manager", "x"));
  Json after = before;
  after["spec"].set("suspend", true);
  // The client writes the patches of others in another spelling.
  after["spec"]["runtimePatches"].as_array()[0]["trainingRuntimeSpec"]["template"].set(
      "metadata", yaml("{creationTimestamp: null}"));
  CHECK(validate(update(before, after)).is_allowed);
}

TEST_CASE("rules of a job's failure policy that no JobSet could have are refused") {
  const std::string good = "name: a, action: FailJobSet";
  struct Row {
    std::string rules;
    const char* message;  // its start; "" where it is accepted
  };
  const Row rows[] = {
      {"[{" + good + "}, {name: b, action: RestartJobSet, targetReplicatedJobs: [node]}]", ""},
      {"[{" + good + ", onJobFailureMessagePatterns: [exit code 3]}]", ""},
      {"[{" + good + "}, {" + good + "}]",
       "spec.failurePolicy.rules[1].name: Duplicate value: \"a\": give each rule"},
      {"[{name: a-b, action: FailJobSet}]",
       "spec.failurePolicy.rules[0].name: Invalid value: \"a-b\": becomes part of a reason"},
      {"[{name: " + std::string(129, 'a') + ", action: FailJobSet}]",
       "spec.failurePolicy.rules[0].name: Too long: "},
      {"[{" + good + ", targetReplicatedJobs: [node, nodes]}]",
       "spec.failurePolicy.rules[0].targetReplicatedJobs[1]: Invalid value: \"nodes\": is no job"},
      {"[{" + good + ", onJobFailureReasons: [PodFailurePolicy, Evicted]}]",
       "spec.failurePolicy.rules[0].onJobFailureReasons[1]: Unsupported value: \"Evicted\""},
      {"[{" + good + ", onJobFailureMessagePatterns: ['(']}]",
       "spec.failurePolicy.rules[0].onJobFailureMessagePatterns[0]: Invalid value: \"(\": finds"},
  };
  for (const Row& row : rows) {
    INFO(row.rules);
    Json job = train_job();
    job["spec"].set("failurePolicy", yaml("{rules: " + row.rules + "}"));
    const auto answer = validate(create(job));
    CHECK(answer.warnings.empty());
    if (*row.message == '\0') {
      CHECK(answer.message.empty());
      CHECK(answer.is_allowed);
    } else {
      CHECK_FALSE(answer.is_allowed);
      CHECK_THAT(answer.message, kube::test::starts_with(row.message));
    }
  }

  Json job = train_job();
  job["spec"].set("failurePolicy", yaml("{rules: [{" + good + "}]}"));
  Json patterns = Json::array();
  for (int i = 0; i < 51; ++i) patterns.push_back("x");
  job["spec"]["failurePolicy"]["rules"].as_array()[0].set("onJobFailureMessagePatterns", patterns);
  CHECK(validate(create(job))
            .message.find(
                "spec.failurePolicy.rules[0].onJobFailureMessagePatterns[50]: Invalid value") == 0);
  // A job that an earlier version accepted is still started by a scheduler.
  Json before = job;
  before["spec"].set("suspend", true);
  job["spec"].set("runtimePatches", patches("kueue.x-k8s.io/manager", "x"));
  CHECK(validate(update(before, job)).message.empty());
}

TEST_CASE("rules of a runtime that no JobSet could have are warned about") {
  struct Row {
    const char* policy;   // a policy of the runtime's template
    const char* warning;  // its start
  };
  const Row rows[] = {
      {"{rules: [{name: a-b, action: FailJobSet}]}", "the JobSet of this job will be refused: "},
      {"{rules: [{name: a, action: FailJobSet, targetReplicatedJobs: [nodes]}]}",
       "the JobSet of this job will be refused: "},
      {"{rules: [{name: a, action: FailJobSet, onJobFailureMessagePatterns: ['(']}]}",
       "spec.runtimeRef: of ClusterTrainingRuntime \"rt\", in the JobSet: "
       "spec.failurePolicy.rules"},
  };
  for (const Row& row : rows) {
    INFO(row.policy);
    Cluster cluster;
    cluster.runtimes["ClusterTrainingRuntime/rt"]["spec"]["template"]["spec"].set("failurePolicy",
                                                                                  yaml(row.policy));
    const auto answer = validate(create(train_job()), cluster);
    CHECK(answer.is_allowed);
    REQUIRE(answer.warnings.size() == 1);
    CHECK_THAT(answer.warnings[0], kube::test::starts_with(row.warning));
  }
}

TEST_CASE("what a job had before its patches changed keeps no scheduler from starting it") {
  Json before = train_job();
  before["spec"].set("suspend", true);
  // The error came without a change of the spec, which no rule reads.
  before["metadata"].set("annotations", yaml("{trainer.kubeflow.org/checkpoint-volume: none, "
                                             "trainer.kubeflow.org/restart-environment: x}"));
  Json after = before;
  after["spec"].set("suspend", false);
  after["spec"].set("runtimePatches", patches("kueue.x-k8s.io/manager", "x"));
  CHECK(validate(update(before, after)).message.empty());
  CHECK_FALSE(validate(create(after)).is_allowed);
  after["spec"].set("runtimePatches", patches("nodomain", "x"));
  CHECK(validate(update(before, after)).message.find("spec.runtimePatches[0].manager: ") == 0);
}

TEST_CASE("what never depends on a runtime is never blocked by its absence") {
  Cluster nothing;
  nothing.runtimes.clear();
  const Json before = train_job();
  SECTION("labels and finalizers") {
    Json after = before;
    after["metadata"].set("labels", yaml("{a: b}"));
    after["metadata"].set("finalizers", yaml("[x]"));
    CHECK(validate(update(before, after), nothing).is_allowed);
  }
  SECTION("suspension") {
    Json after = before;
    after["spec"].set("suspend", true);
    CHECK(validate(update(before, after), nothing).is_allowed);
    CHECK(validate(update(after, before), nothing).is_allowed);
  }
  SECTION("deletion, also of a job that breaks every rule") {
    Json after = before;
    after["metadata"].set("deletionTimestamp", "2027-01-15T08:00:00Z");
    after["spec"].set("runtimePatches", patches("nodomain", "x"));
    CHECK(validate(update(before, after), nothing).is_allowed);
    AdmissionRequest request = update(before, Json());
    request.operation = "DELETE";
    CHECK(validate(request, nothing).is_allowed);
  }
}

TEST_CASE("patches are checked against the snapshot once there is one") {
  Json before = train_job();
  before["spec"].set("suspend", true);
  Json after = before;
  after["spec"].set("runtimePatches", patches("acme.io/a", "x"));
  Cluster cluster;
  cluster.snapshot = snapshot_of(torch_runtime())->text;
  SECTION("the live runtime is gone") {
    cluster.runtimes.clear();
  }
  SECTION("the live runtime has another job") {
    cluster.runtimes["ClusterTrainingRuntime/rt"]["spec"]["template"]["spec"]["replicatedJobs"]
        .as_array()[0]
        .set("name", "other");
  }
  SECTION("its hash is in the status") {
    before.set("status",
               Json::object({{"runtimeSnapshotHash", kube::sha256_hex(*cluster.snapshot)}}));
    cluster.runtimes.clear();
  }
  SECTION("an older controller wrote a large one") {
    *cluster.snapshot += "# " + std::string(600U << 10, 'x') + "\n";
    before.set("status",
               Json::object({{"runtimeSnapshotHash", kube::sha256_hex(*cluster.snapshot)}}));
    cluster.runtimes.clear();
  }
  CHECK(validate(update(before, after), cluster).message.empty());
}

TEST_CASE("an edited snapshot does not count") {
  Json before = train_job();
  before["spec"].set("suspend", true);
  before.set("status", Json::object({{"runtimeSnapshotHash", "0000"}}));
  Json after = before;
  after["spec"].set("runtimePatches", patches("acme.io/a", "x"));
  Cluster cluster;
  cluster.snapshot = snapshot_of(torch_runtime())->text;
  cluster.runtimes.clear();
  CHECK(validate(update(before, after), cluster).message.find("spec.RuntimeRef: Invalid value: ") ==
        0);
  // A new job is not checked against the snapshot of an earlier one of its name that is still being
  // deleted.
  CHECK_FALSE(validate(create(train_job()), cluster).is_allowed);
}

Json volcano_runtime(std::string_view first, std::string_view second) {
  Json runtime = torch_runtime();
  runtime["spec"].set("podGroupPolicy", yaml("{volcano: {}}"));
  Json& jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"];
  Json other = jobs.as_array()[0];
  other.set("name", "other");
  other["template"].erase("metadata");
  if (!first.empty())
    jobs.as_array()[0]["template"]["spec"]["template"]["spec"].set("priorityClassName", first);
  if (!second.empty())
    other["template"]["spec"]["template"]["spec"].set("priorityClassName", second);
  jobs.push_back(other);
  return runtime;
}

TEST_CASE("rule 29: Volcano's priority classes exist") {
  struct Row {
    const char* first;
    const char* second;
    const char* message;
    std::vector<std::string> asked_for;
  };
  constexpr const char* kMissing =
      "spec.templateSpec.priorityClassName: Invalid value: \"none\": PriorityClass \"none\" "
      "doesn't exist: "
      "priorityclasses.scheduling.k8s.io \"none\" not found";
  const Row row = GENERATE_REF(Row{"", "", "", {}}, Row{"high", "", "", {"high"}},
                               Row{"none", "high", kMissing, {"none", "high"}},
                               Row{"high", "none", kMissing, {"high", "none"}},
                               Row{"system-node-critical", "none", "", {}},
                               Row{"none", "system-cluster-critical", kMissing, {"none"}});
  Cluster cluster;
  cluster.priority_classes = {"high"};
  const Json runtime = volcano_runtime(row.first, row.second);
  cluster.runtimes["ClusterTrainingRuntime/rt"] = runtime;
  CHECK(validate(create(train_job()), cluster).message == row.message);
  // All objects that are checked are read beforehand, and nothing else.
  CHECK(needs_of(create(train_job()), &runtime).priority_classes == row.asked_for);
}

TEST_CASE("old fields that nothing converted are refused with what to write") {
  const auto answer = validate(
      create(job_with("podTemplateOverrides", "[{targetJobs: [{name: node}], spec: {}}]")));
  CHECK_FALSE(answer.is_allowed);
  CHECK(answer.message.find("spec.podTemplateOverrides") == 0);
  CHECK(answer.message.find("runtimePatches") != std::string::npos);
}

TEST_CASE("warnings about what is allowed and will not work") {
  Cluster cluster;
  SECTION("more pods than a TrainJob can have") {
    cluster.runtimes["ClusterTrainingRuntime/rt"]["spec"]["template"]["spec"]["replicatedJobs"]
        .push_back(yaml("{name: other, replicas: 2000000000, template: {spec: {template: {spec: "
                        "{containers: [{name: c, image: i}]}}}}}"));
    const auto answer = validate(create(train_job()), cluster);
    CHECK(answer.is_allowed);
    REQUIRE(answer.warnings.size() == 1);
    CHECK(answer.warnings[0].find("this job cannot be started: spec.") == 0);
    CHECK(answer.warnings[0].find("(2000000000 replicas of 1); a TrainJob has 100000 at most") !=
          std::string::npos);
  }
  SECTION("a claim of one machine") {
    Json& pod =
        cluster.runtimes["ClusterTrainingRuntime/rt"]["spec"]["template"]["spec"]["replicatedJobs"]
            .as_array()[0]["template"]["spec"]["template"]["spec"];
    pod.set("volumes", yaml("[{name: data, persistentVolumeClaim: {claimName: data}}]"));
    cluster.claims["data"] = yaml("{spec: {accessModes: [ReadWriteOnce]}}");
    const Json runtime = cluster.runtimes["ClusterTrainingRuntime/rt"];
    const Json job = job_with("trainer", "{numNodes: 2}");
    REQUIRE(needs_of(create(job), &runtime).claims.size() == 1);
    CHECK(needs_of(create(job), &runtime).claims[0].to_string() == "ns/data");
    const auto answer = validate(create(job), cluster);
    CHECK(answer.is_allowed);
    REQUIRE_FALSE(answer.warnings.empty());
    CHECK(answer.warnings.back() ==
          "PersistentVolumeClaim \"data\" can be mounted on one machine only, and this job has 2 "
          "nodes: use a claim with access mode "
          "ReadWriteMany or ReadOnlyMany");
    cluster.claims["data"] = yaml("{spec: {accessModes: [ReadWriteOnce, ReadWriteMany]}}");
    for (const std::string& warning : validate(create(job), cluster).warnings)
      CHECK(warning.find("one machine") == std::string::npos);
  }
  SECTION("a runtime of the namespace with the same name") {
    cluster.runtimes["TrainingRuntime/rt"] = torch_runtime();
    const auto answer = validate(create(train_job()), cluster);
    CHECK(answer.is_allowed);
    REQUIRE_FALSE(answer.warnings.empty());
    CHECK(answer.warnings.back().find("TrainingRuntime \"rt\" in this namespace has the name of "
                                      "the ClusterTrainingRuntime") == 0);
  }
  SECTION("what the API server will refuse of its Jobs") {
    const auto answer = validate(create(job_with("trainer", "{env: [{name: A=B}]}")), cluster);
    CHECK(answer.is_allowed);
    REQUIRE(answer.warnings.size() == 1);
    CHECK(answer.warnings[0].find(
              "this job cannot start, since the API server refuses what its JobSet says: "
              "spec.replicatedJobs[0].template.spec.template.spec.containers[0].env[") == 0);
  }
  SECTION("a name that is too long for the pods") {
    Json job = train_job();
    job["metadata"].set("name", std::string(63, 'j'));
    const auto answer = validate(create(job), cluster);
    CHECK(answer.is_allowed);
    CHECK_FALSE(answer.warnings.empty());
  }
}

TEST_CASE("runtimes: rules on creation and on every change of the spec") {
  Json bad = torch_runtime();
  bad["spec"]["template"]["spec"]["replicatedJobs"].as_array()[0].set("replicas", 2);
  constexpr const char* kMessage =
      "spec.template.spec.replicatedJobs[0].replicas: Invalid value: 2: always must be 1";
  CHECK(validate_runtime(create(bad)).message == kMessage);
  CHECK(validate_runtime(create(bad)).code == 403);
  CHECK(validate_runtime(update(torch_runtime(), bad)).message == kMessage);
  Json relabelled = bad;
  relabelled["metadata"].set("labels", yaml("{a: b}"));
  CHECK(validate_runtime(update(bad, relabelled)).is_allowed);
  CHECK(validate_runtime(create(torch_runtime())).is_allowed);
  Json leaving = bad;
  leaving["metadata"].set("deletionTimestamp", "2027-01-15T08:00:00Z");
  CHECK(validate_runtime(update(torch_runtime(), leaving)).is_allowed);
}

Json jobset() {
  return yaml(R"(
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: s, namespace: ns}
spec:
  successPolicy: {operator: All, targetReplicatedJobs: [none]}
  replicatedJobs:
  - {name: w, replicas: 1, groupName: default, template: {spec: {template: {spec: {containers: [{name: c, image: i}]}}}}}
)");
}

TEST_CASE("JobSets are refused as invalid") {
  const auto answer = validate_jobset(create(jobset()), Cluster().lookups(), {});
  CHECK_FALSE(answer.is_allowed);
  CHECK(answer.code == 422);
  CHECK(answer.reason == "Invalid");
  CHECK(answer.message ==
        "JobSet.jobset.x-k8s.io \"s\" is invalid: <nil>: Internal error: invalid replicatedJob "
        "name 'none' does not appear in .spec.ReplicatedJobs");
}

TEST_CASE("JobSets: defaults on creation, immutability on updates, nothing on deletion") {
  Json good = jobset();
  good["spec"].erase("successPolicy");
  const auto request = create(good);
  const auto answer = mutate_jobset(request);
  REQUIRE_FALSE(answer.json_patch.is_null());
  const Json defaulted = apply(request, answer);
  CHECK(defaulted.find_path({"spec", "successPolicy", "operator"})->as_string() == "All");
  CHECK(mutate_jobset(create(defaulted)).json_patch.is_null());
  // The job was stored without defaults: they are immutable.
  CHECK(mutate_jobset(update(good, good)).json_patch.is_null());
  // The user's file again.
  const auto again = update(defaulted, good);
  CHECK(apply(again, mutate_jobset(again)) == defaulted);

  Json changed = defaulted;
  changed["spec"].set("managedBy", "acme.io/other");
  CHECK(validate_jobset(update(defaulted, changed), Cluster().lookups(), {}).code == 422);
  changed["metadata"].set("deletionTimestamp", "2027-01-15T08:00:00Z");
  CHECK(validate_jobset(update(defaulted, changed), Cluster().lookups(), {}).is_allowed);
}

TEST_CASE("JobSets: patterns that nothing searches for are warned about") {
  Json plain = jobset();
  plain["spec"].erase("successPolicy");
  Json bomb = plain;
  bomb["spec"].set("failurePolicy", yaml(R"(
rules: [{name: r, action: FailJobSet, onJobFailureMessagePatterns: [".{999}y"]}]
)"));
  for (const auto& request : {create(bomb), update(plain, bomb)}) {
    const auto answer = validate_jobset(request, Cluster().lookups(), {});
    CHECK(answer.is_allowed);
    REQUIRE(answer.warnings.size() == 1);
    CHECK(answer.warnings[0].find("onJobFailureMessagePatterns[0]: Invalid value: \".{999}y") !=
          std::string::npos);
  }
  CHECK(validate_jobset(update(bomb, bomb), Cluster().lookups(), {}).warnings.empty());
}

TEST_CASE("what a request needs read") {
  const auto needs = needs_of(create(train_job()));
  REQUIRE(needs.runtime);
  CHECK(needs.runtime->first == "ClusterTrainingRuntime");
  CHECK(needs.runtime->second.to_string() == "rt");
  const auto namespaced =
      needs_of(create(job_with("runtimeRef", "{name: r, kind: TrainingRuntime}")));
  CHECK(namespaced.runtime->second.to_string() == "ns/r");
  CHECK_FALSE(needs_of(create(job_with("runtimeRef", "{}"))).runtime);
  Json with_claims = jobset();
  with_claims["spec"].set("volumeClaimPolicies", yaml("[{templates: [{metadata: {name: data}}]}]"));
  REQUIRE(needs_of(create(with_claims)).claims.size() == 1);
  CHECK(needs_of(create(with_claims)).claims[0].to_string() == "ns/data-s");
}

TEST_CASE("the envelope") {
  const Json review = yaml(R"(
apiVersion: admission.k8s.io/v1
kind: AdmissionReview
request:
  uid: u
  operation: UPDATE
  namespace: ns
  name: j
  dryRun: true
  kind: {group: trainer.kubeflow.org, version: v1alpha1, kind: TrainJob}
  options: {kind: UpdateOptions}
  object: {kind: TrainJob}
  oldObject: {kind: TrainJob, metadata: {name: j}}
)");
  const auto request = read_admission_review(review);
  REQUIRE(request);
  CHECK(request->operation == "UPDATE");
  CHECK(request->is_dry_run);
  CHECK(request->may_lack_fields);
  CHECK(request->kind == "TrainJob");
  CHECK(request->old_object.find_path({"metadata", "name"}));

  struct Row {
    const char* manager;
    bool may_lack_fields;
  };
  for (const Row& row : {Row{"", true}, Row{"kueue", true}, Row{"kueue-trainjob-controller", true},
                         Row{"kubectl-edit", false}, Row{"kubectl-patch", false}}) {
    Json named = review;
    named["request"]["options"].set("fieldManager", row.manager);
    CAPTURE(row.manager);
    CHECK(read_admission_review(named)->may_lack_fields == row.may_lack_fields);
  }

  AdmissionAnswer denied;
  denied.is_allowed = false;
  denied.code = 403;
  denied.reason = "Forbidden";
  denied.message = "no";
  CHECK(admission_review_response(review, denied) ==
        yaml("{apiVersion: admission.k8s.io/v1, kind: AdmissionReview, response: {uid: u, allowed: "
             "false, status: {status: Failure, code: 403, "
             "reason: Forbidden, message: 'no'}}}"));
  AdmissionAnswer changed;
  changed.warnings = {"w"};
  changed.json_patch = yaml("[{op: remove, path: /spec/labels}]");
  const Json response = *admission_review_response(review, changed).find("response");
  CHECK(response.get_string("patchType") == "JSONPatch");
  CHECK(*kube::base64_decode(response.get_string("patch")) == kube::print_json(changed.json_patch));
  CHECK(response.get_array("warnings").size() == 1);

  CHECK_FALSE(read_admission_review(yaml("{}")));
  CHECK_FALSE(read_admission_review(yaml("{request: 5}")));
  CHECK_FALSE(read_admission_review(yaml("{request: {operation: CREATE}}")));
}

TEST_CASE("hostile objects are answered, not crashed by") {
  const auto text = GENERATE("{}", "[]", "text", "{spec: 5, metadata: 7}",
                             "{kind: TrainJob, spec: {runtimeRef: 3, runtimePatches: [1]}}",
                             "{kind: JobSet, metadata: {name: s}, spec: {replicatedJobs: text, "
                             "volumeClaimPolicies: [{templates: [7]}]}}");
  const Json object = yaml(text);
  const Cluster cluster;
  for (const AdmissionRequest& request :
       {create(object), update(object, train_job()), update(train_job(), object)}) {
    check_consistent(request, validate_trainjob(request, cluster.lookups(),
                                                PipelineOptions(production_plugins())));
    check_consistent(request, validate_runtime(request));
    check_consistent(request, mutate_jobset(request));
    check_consistent(request, validate_jobset(request, cluster.lookups(), {}));
    CHECK(needs_of(request).claims.empty());
  }
}

Json env_of_bytes(std::size_t bytes) {
  Json job = train_job();
  job["spec"].set("trainer", Json::object());
  const std::string value(bytes - std::string("NAME=").size() - 1, 'x');
  job["spec"]["trainer"].set("env",
                             Json::array({Json::object({{"name", "NAME"}, {"value", value}})}));
  return job;
}

TEST_CASE("a variable that no process can be started with is refused, and not of stored jobs") {
  constexpr std::size_t kMost = 131072;
  CHECK(validate(create(env_of_bytes(kMost))).is_allowed);
  const auto answer = validate(create(env_of_bytes(kMost + 1)));
  CHECK_FALSE(answer.is_allowed);
  CHECK(answer.code == 403);
  CHECK(
      answer.message.starts_with("spec.trainer.env[0].value: Too long: variable NAME of container "
                                 "node in job node has 131073 bytes"));
  Json stored = env_of_bytes(kMost + 1);
  stored["spec"].set("suspend", true);
  Json patched = stored;
  patched["spec"].set("runtimePatches", patches("acme.io/a", "x"));
  CHECK(validate(update(stored, patched)).is_allowed);
  // A change that makes it too long is refused.
  Json before = train_job();
  before["spec"].set("suspend", true);
  Json after = before;
  after["spec"].set("trainer", env_of_bytes(kMost + 1)["spec"]["trainer"]);
  CHECK(validate(update(before, after)).message.starts_with("spec.trainer.env[0].value: Too long"));
}

}  // namespace
}  // namespace trainer::test
