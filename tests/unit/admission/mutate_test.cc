// The mutating webhooks: times of patches, extension fields, the YAML of v2.0 and v2.1.
#include "runtimes/trainjob/legacy.hh"
#include "tests/support/catch.hh"
#include "tests/unit/admission/fixture.hh"

namespace trainer::test {
namespace {

using kube::Json;

const kube::Time kNone = *kube::Time::parse("2027-01-15T08:00:00Z");
constexpr const char* kNowText = "2027-01-15T08:00:00Z";
constexpr const char* kThen = "2027-01-01T00:00:00Z";

Json job_with(Json list) {
  Json job = train_job();
  job["spec"].set("runtimePatches", std::move(list));
  return job;
}

std::string time_of(const Json& job, std::size_t i) {
  return std::string(job.find("spec")->get_array("runtimePatches").at(i).get_string("time"));
}

Json timed(Json list, std::string_view time) {
  list.as_array()[0].set("time", time);
  return list;
}

TEST_CASE("a job without patches is not changed") {
  const auto answer = mutate_trainjob(create(train_job()), kNone);
  CHECK(answer.is_allowed);
  CHECK(answer.json_patch.is_null());
  CHECK(answer.warnings.empty());
}

TEST_CASE("new patches are stamped, times of users are kept") {
  Json list = patches("acme.io/a", "x");
  list.push_back(timed(patches("acme.io/b", "y"), kThen).as_array()[0]);
  const auto request = create(job_with(list));
  const Json job = apply(request, mutate_trainjob(request, kNone));
  CHECK(time_of(job, 0) == kNowText);
  CHECK(time_of(job, 1) == kThen);
  CHECK(job.find("spec")->get_array("runtimePatches")[0].get_string("manager") == "acme.io/a");
}

TEST_CASE("fields that an earlier version has stored are converted only when they change") {
  for (const char* spec :
       {"podTemplateOverrides: [{targetJobs: [{name: node}], spec: {nodeSelector: {a: b}}}]",
        "labels: {a: b}", "trainer: {numProcPerNode: auto}"}) {
    INFO(spec);
    Json before = train_job();
    const Json stored = yaml(spec);
    for (const auto& [name, value] : stored.as_object()) before["spec"].set(name, value);
    Json after = before;
    after["spec"].set("suspend", true);
    const auto kept = mutate_trainjob(update(before, after), kNone);
    CHECK(kept.is_allowed);
    CHECK(kept.json_patch.is_null());
    CHECK(kept.warnings.empty());
    after["spec"].set("labels", yaml("{changed: 'yes'}"));
    const auto request = update(before, after);
    CHECK_FALSE(has_legacy_fields(apply(request, mutate_trainjob(request, kNone))));
  }
}

TEST_CASE("fields that an earlier version has stored are put back for a client of today") {
  Json before = train_job();
  before["spec"].set("labels", yaml("{a: b}"));
  AdmissionRequest request = update(before, train_job());
  request.may_lack_fields = true;
  CHECK(apply(request, mutate_trainjob(request, kNone)).get("spec").get("labels") ==
        yaml("{a: b}"));
}

TEST_CASE("metadata of a runtime that an earlier version has stored can change") {
  Json before = torch_runtime();
  before["spec"]["mlPolicy"]["torch"].set(
      "elasticPolicy", yaml("{minNodes: 1, maxNodes: 2, metrics: [{type: Resource}]}"));
  Json after = before;
  after["metadata"].set("labels", yaml("{team: a}"));
  CHECK(mutate_runtime(update(before, after)).is_allowed);
  after["spec"]["mlPolicy"].set("numNodes", 2);
  CHECK_FALSE(mutate_runtime(update(before, after)).is_allowed);
}

TEST_CASE("an update stamps what changed and nothing else") {
  struct Row {
    const char* about;
    Json before;
    Json after;
    std::string expected;  // time of the first patch
    bool has_patch;
  };
  const Json stored = timed(patches("acme.io/a", "x"), kThen);
  Json with_empties = stored;
  with_empties.as_array()[0]["trainingRuntimeSpec"]["template"].set(
      "metadata", yaml("{creationTimestamp: null}"));
  const Row row = GENERATE_COPY(
      Row{"unchanged", stored, stored, kThen, false},
      Row{"time edited", stored, timed(stored, "2020-01-01T00:00:00Z"), kThen, true},
      Row{"time dropped by a client", stored, patches("acme.io/a", "x"), kThen, true},
      Row{"content changed", stored, timed(patches("acme.io/a", "y"), kThen), kNowText, true},
      Row{"content and time changed", stored,
          timed(patches("acme.io/a", "y"), "2020-01-01T00:00:00Z"), kNowText, true},
      Row{"empty members added by a client", stored, with_empties, kThen, false},
      Row{"never had a time, unchanged", patches("acme.io/a", "x"), patches("acme.io/a", "x"), "",
          false},
      Row{"never had a time, changed", patches("acme.io/a", "x"), patches("acme.io/a", "y"),
          kNowText, true},
      Row{"new manager", yaml("[]"), patches("acme.io/a", "x"), kNowText, true},
      Row{"new manager with a time", yaml("[]"), timed(patches("acme.io/a", "x"), kThen), kThen,
          false});
  INFO(row.about);
  const auto request = update(job_with(row.before), job_with(row.after));
  const auto answer = mutate_trainjob(request, kNone);
  CHECK(answer.json_patch.is_null() != row.has_patch);
  CHECK(time_of(apply(request, answer), 0) == row.expected);
}

TEST_CASE("an empty patch survives") {
  const auto request = create(job_with(
      yaml("[{manager: kueue.x-k8s.io/manager, trainingRuntimeSpec: {template: {spec: {}}}}]")));
  const Json job = apply(request, mutate_trainjob(request, kNone));
  const Json& patch = job.find("spec")->get_array("runtimePatches")[0];
  REQUIRE(patch.find_path({"trainingRuntimeSpec", "template", "spec"}));
  CHECK(patch.find_path({"trainingRuntimeSpec", "template", "spec"})->is_object());
}

TEST_CASE("an extension field that a client may not know is put back, others remove it") {
  Json before = train_job();
  before["spec"].set("ttlSecondsAfterFinished", 60);
  Json after = train_job();
  after["spec"].set("suspend", true);
  AdmissionRequest request = update(before, after);
  CHECK(mutate_trainjob(request, kNone).json_patch.is_null());
  request.may_lack_fields = true;
  CHECK(apply(request, mutate_trainjob(request, kNone))
            .find_path({"spec", "ttlSecondsAfterFinished"})
            ->as_int() == 60);
  request.object["spec"].set("ttlSecondsAfterFinished", 5);
  CHECK(mutate_trainjob(request, kNone).json_patch.is_null());
}

TEST_CASE("failure and run policies are put back whole") {
  Json before = train_job();
  before["spec"].set("failurePolicy", yaml("{maxRestarts: 3, maxDisruptionRestarts: 2}"));
  AdmissionRequest request = update(before, train_job());
  request.may_lack_fields = true;
  CHECK(apply(request, mutate_trainjob(request, kNone)).get("spec") == before.get("spec"));
  Json runtime = torch_runtime();
  runtime["spec"].set("runPolicy", yaml("{ttlSecondsAfterFinished: 5, failurePolicy: {}}"));
  request = update(runtime, torch_runtime());
  CHECK(mutate_runtime(request).json_patch.is_null());
  request.may_lack_fields = true;
  CHECK(apply(request, mutate_runtime(request)).get("spec") == runtime.get("spec"));
}

// A torchtune job as Kueue 0.20 finds it: its patch is empty until it starts the job.
Json queued_job(bool is_started, bool is_suspended) {
  Json job = train_job();
  job["spec"].set("trainer", yaml("{command: [tune, run], args: [epochs=1]}"));
  job["spec"].set("suspend", is_suspended);
  Json list = timed(patches("kueue.x-k8s.io/manager", "a"), kThen);
  if (!is_started) list.as_array()[0].set("trainingRuntimeSpec", yaml("{template: {spec: {}}}"));
  job["spec"].set("runtimePatches", std::move(list));
  return job;
}

TEST_CASE("Kueue's PUT does not carry what its copy of the pipeline made of the command") {
  struct Row {
    const char* about;
    Json before;
    Json after;
    bool may_lack_fields;
    bool is_restored;
  };
  Json foreign = queued_job(true, false);
  foreign["spec"]["runtimePatches"].as_array()[0].set("manager", "acme.io/a");
  Json foreign_stopped = foreign;
  foreign_stopped["spec"].set("suspend", true);
  const Row row = GENERATE_COPY(
      Row{"start: fills its patch", queued_job(false, true), queued_job(true, true), true, true},
      Row{"stop: suspends", queued_job(true, false), queued_job(true, true), true, true},
      Row{"stopped: clears its patch", queued_job(true, true), queued_job(false, true), true, true},
      Row{"never started, suspend cleared by hand", queued_job(false, false),
          queued_job(false, true), true, true},
      Row{"kubectl", queued_job(false, true), queued_job(true, true), false, false},
      Row{"nothing that Kueue does", queued_job(true, false), queued_job(true, false), true, false},
      Row{"another's patch", foreign, foreign_stopped, true, false});
  INFO(row.about);
  const auto changed =
      GENERATE("{command: [tune, run, full_finetune_single_device, --config, x], args: [epochs=1]}",
               "{command: [/bin/bash, /etc/flux-config/entrypoint.sh, tune run epochs=1]}",
               "{command: [tune, run], args: [epochs=1], image: other}");
  CAPTURE(changed);
  AdmissionRequest request = update(row.before, row.after);
  request.may_lack_fields = row.may_lack_fields;
  request.object["spec"].set("trainer", yaml(changed));
  const Json job = apply(request, mutate_trainjob(request, kNone));
  const Json* trainer = job.find_path({"spec", "trainer"});
  // The schema refuses other changes.
  Json expected = yaml(changed);
  if (row.is_restored) {
    expected.set("command", yaml("[tune, run]"));
    expected.set("args", yaml("[epochs=1]"));
  }
  CHECK(*trainer == expected);
}

TEST_CASE("a command that was not there is taken away again") {
  Json before = queued_job(false, true);
  before["spec"].set("trainer", yaml("{}"));
  AdmissionRequest request = update(before, queued_job(true, true));
  request.may_lack_fields = true;
  request.object["spec"].set("trainer", yaml("{command: [/bin/bash, x, '']}"));
  const Json job = apply(request, mutate_trainjob(request, kNone));
  CHECK(*job.find_path({"spec", "trainer"}) == yaml("{}"));
  CHECK(time_of(job, 0) == kNowText);
}

TEST_CASE("overrides of v2.1 become a patch") {
  Json job = train_job();
  job["spec"].set("podTemplateOverrides", yaml(R"(
- targetJobs: [{name: node}]
  metadata: {labels: {a: b}}
  spec: {nodeSelector: {pool: x}, tolerations: [{key: k}], containers: [{name: side, env: [{name: A, value: '1'}]}]}
- targetJobs: [{name: node}, {name: launcher}]
  spec: {nodeSelector: {zone: z}, serviceAccountName: sa}
)"));
  job["spec"].set("labels", yaml("{team: x}"));
  job["spec"].set("annotations", yaml("{note: y}"));
  const auto request = create(job);
  const auto answer = mutate_trainjob(request, kNone);
  REQUIRE(answer.is_allowed);
  const Json changed = apply(request, answer);
  for (const char* gone : {"podTemplateOverrides", "labels", "annotations"})
    CHECK_FALSE(changed.find("spec")->find(gone));
  Json expected = yaml(R"(
- manager: trainer.kubeflow.org/legacy
  time: x
  trainingRuntimeSpec:
    template:
      metadata: {labels: {team: x}, annotations: {note: y}}
      spec:
        replicatedJobs:
        - name: node
          template:
            spec:
              template:
                metadata: {labels: {a: b}}
                spec:
                  nodeSelector: {pool: x, zone: z}
                  serviceAccountName: sa
                  tolerations: [{key: k}]
                  containers: [{name: side, env: [{name: A, value: '1'}]}]
        - name: launcher
          template: {spec: {template: {spec: {nodeSelector: {zone: z}, serviceAccountName: sa}}}}
)");
  expected.as_array()[0].set("time", kNowText);
  // The order of the jobs within a patch follows from the merge; the content of each does not.
  Json got = *changed.find_path({"spec", "runtimePatches"});
  auto& jobs =
      got.as_array()[0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"].as_array();
  REQUIRE(jobs.size() == 2);
  if (jobs[0].get_string("name") == "launcher") std::swap(jobs[0], jobs[1]);
  CHECK(got == expected);
  REQUIRE(answer.warnings.size() == 3);
  CHECK(answer.warnings[0].find("spec.podTemplateOverrides is a field of Trainer v2.0 or v2.1") ==
        0);
  CHECK(answer.warnings[0].find("spec.runtimePatches[]") != std::string::npos);

  SECTION("applying the old file again changes nothing") {
    Json again = changed;
    for (const char* field : {"podTemplateOverrides", "labels", "annotations"})
      again["spec"].set(field, *job.find_path({"spec", field}));
    const auto second = update(changed, again);
    CHECK(apply(second, mutate_trainjob(second, kNone + std::chrono::hours(1))) == changed);
  }
}

TEST_CASE("overrides of v2.0 have the pod spec beside their targets") {
  Json job = train_job();
  job["spec"].set(
      "podSpecOverrides",
      yaml("[{targetJobs: [{name: node}], nodeSelector: {pool: x}, serviceAccountName: sa}]"));
  const auto request = create(job);
  const Json changed = apply(request, mutate_trainjob(request, kNone));
  const Json& patch = changed.find("spec")->get_array("runtimePatches").at(0);
  const Json& node = patch.find_path({"trainingRuntimeSpec", "template", "spec"})
                         ->get_array("replicatedJobs")
                         .at(0);
  CHECK(*node.find_path({"template", "spec", "template"}) ==
        yaml("{spec: {nodeSelector: {pool: x}, serviceAccountName: sa}}"));
}

TEST_CASE("what no older API had in an override is warned about") {
  struct Row {
    const char* field;
    const char* override_;
    const char* warning;
  };
  const Row row = GENERATE(
      Row{"podTemplateOverrides",
          "{targetJob: [x], targetJobs: [{name: node}], metadata: {lables: {}}, "
          "spec: {nodeSelectr: {a: b}, containers: [{name: c, image: i}]}}",
          "spec.podTemplateOverrides[0]: unknown field \"metadata.lables\", unknown field "
          "\"spec.containers[0].image\", unknown field \"spec.nodeSelectr\", unknown field "
          "\"targetJob\", which has no effect"},
      Row{"podSpecOverrides", "{targetJobs: [{name: node}], nodeSelectr: {a: b}}",
          "spec.podSpecOverrides[0]: unknown field \"nodeSelectr\", which has no effect"},
      Row{"podSpecOverrides", "{targetJobs: [{name: node}], a: 1, b: 1, c: 1, d: 1, e: 1, f: 1}",
          "spec.podSpecOverrides[0]: unknown field \"a\", unknown field \"b\", unknown field "
          "\"c\", unknown field \"d\", unknown field \"e\" and 1 more, which has no effect"});
  Json job = train_job();
  job["spec"].set(row.field, Json::array({yaml(row.override_)}));
  const auto answer = mutate_trainjob(create(job), kNone);
  CHECK(answer.is_allowed);
  REQUIRE(answer.warnings.size() == 2);
  CHECK(answer.warnings[0] == row.warning);
}

TEST_CASE("an override without targets is refused by its path") {
  Json job = train_job();
  job["spec"].set("podTemplateOverrides", yaml("[{spec: {nodeSelector: {a: b}}}]"));
  const auto answer = mutate_trainjob(create(job), kNone);
  CHECK_FALSE(answer.is_allowed);
  CHECK(answer.code == 403);
  CHECK(answer.message.find("spec.podTemplateOverrides[0].targetJobs: Required value") == 0);
}

TEST_CASE("older overrides that would become larger than any object are refused") {
  Json job = train_job();
  Json entry = yaml("{targetJobs: [], spec: {}}");
  for (int i = 0; i < 2'000; ++i)
    entry["targetJobs"].push_back(Json::object({{"name", "j" + std::to_string(i)}}));
  entry["spec"].set("schedulerName", std::string(1'000, 'a'));
  job["spec"].set("podTemplateOverrides", Json::array({entry}));
  auto answer = mutate_trainjob(create(job), kNone);
  CHECK_FALSE(answer.is_allowed);
  CHECK(answer.message.find("spec.podTemplateOverrides[0].targetJobs: Invalid value: 2000: the "
                            "overrides would have more than 1500000 bytes") == 0);
  const Json small = yaml("{targetJobs: [{name: node}], spec: {nodeSelector: {a: b}}}");
  job["spec"].set("podTemplateOverrides", Json(Json::Array(32, small)));
  CHECK(mutate_trainjob(create(job), kNone).is_allowed);
  job["spec"].set("podTemplateOverrides", Json(Json::Array(33, small)));
  answer = mutate_trainjob(create(job), kNone);
  CHECK(answer.message == "spec.podTemplateOverrides: Too many: 33: must have at most 32 items");
}

TEST_CASE("processes were a word once") {
  struct Row {
    const char* value;
    const char* resources;
    std::optional<std::int64_t> expected;
    bool is_allowed;
  };
  const Row row = GENERATE(
      Row{"'4'", "{}", 4, true}, Row{"auto", "{}", std::nullopt, true},
      Row{"gpu", "{}", std::nullopt, true}, Row{"cpu", "{requests: {cpu: 2500m}}", 3, true},
      Row{"cpu", "{limits: {cpu: 8}}", 8, true}, Row{"cpu", "{}", std::nullopt, false},
      Row{"many", "{}", std::nullopt, false}, Row{"''", "{}", std::nullopt, false});
  CAPTURE(row.value, row.resources);
  Json job = train_job();
  job["spec"].set("trainer", Json::object({{"numProcPerNode", yaml(row.value)},
                                           {"resourcesPerNode", yaml(row.resources)}}));
  const auto request = create(job);
  const auto answer = mutate_trainjob(request, kNone);
  REQUIRE(answer.is_allowed == row.is_allowed);
  if (!row.is_allowed) {
    CHECK(answer.message.find("spec.trainer.numProcPerNode: Invalid value: ") == 0);
    return;
  }
  CHECK(answer.warnings.size() == 1);
  const Json changed = apply(request, answer);
  const Json* stored = changed.find_path({"spec", "trainer", "numProcPerNode"});
  CHECK((stored ? std::optional(stored->as_int()) : std::nullopt) == row.expected);
}

TEST_CASE("an integer stays what it is") {
  Json job = train_job();
  job["spec"].set("trainer", yaml("{numProcPerNode: 4}"));
  CHECK(mutate_trainjob(create(job), kNone).json_patch.is_null());
}

TEST_CASE("runtimes of v2.0 and v2.1") {
  struct Row {
    const char* policy;
    const char* expected;  // the policy; nullptr: refused
    const char* refusal;
  };
  const Row row = GENERATE(
      Row{"{numNodes: 1, torch: {elasticPolicy: {minNodes: 2, maxNodes: 2, maxRestarts: 3}}}",
          "{numNodes: 2, torch: {}}", ""},
      Row{"{torch: {elasticPolicy: {maxRestarts: 3}}}", "{torch: {}}", ""},
      Row{"{torch: {elasticPolicy: {minNodes: 1, maxNodes: 4, metrics: [{type: Resource}]}}}",
          nullptr, "spec.mlPolicy.torch.elasticPolicy.metrics: Invalid value: "},
      Row{"{mpi: {mpiImplementation: IntelMPI}}", "{mpi: {mpiImplementation: Intel}}", ""},
      Row{"{mpi: {mpiImplementation: openmpi}}", "{mpi: {mpiImplementation: OpenMPI}}", ""});
  CAPTURE(row.policy);
  Json runtime = torch_runtime();
  runtime["spec"].set("mlPolicy", yaml(row.policy));
  const auto request = create(runtime);
  const auto answer = mutate_runtime(request);
  if (!row.expected) {
    CHECK_FALSE(answer.is_allowed);
    CHECK_THAT(answer.message, kube::test::starts_with(row.refusal));
    CHECK_FALSE(validate_runtime(request).is_allowed);
    return;
  }
  REQUIRE(answer.is_allowed);
  CHECK(answer.warnings.size() == 1);
  const Json changed = apply(request, answer);
  CHECK(*changed.find_path({"spec", "mlPolicy"}) == yaml(row.expected));
  const bool has_restarts =
      std::string_view(row.policy).find("maxRestarts") != std::string_view::npos;
  const Json& policy = changed.get_path({"spec", "runPolicy", "failurePolicy"});
  CHECK(policy == (has_restarts ? yaml("{processRestarts: 3}") : Json()));
}

TEST_CASE("a runtime's own processRestarts is kept beside an elasticPolicy") {
  Json runtime = torch_runtime();
  runtime["spec"].set("mlPolicy", yaml("{torch: {elasticPolicy: {maxRestarts: 3}}}"));
  runtime["spec"].set("runPolicy", yaml("{failurePolicy: {processRestarts: 7}}"));
  const auto request = create(runtime);
  const auto answer = mutate_runtime(request);
  REQUIRE(answer.warnings.size() == 1);
  CHECK_THAT(answer.warnings[0],
             kube::test::contains("spec.runPolicy.failurePolicy.processRestarts"));
  CHECK(apply(request, answer).get_path({"spec", "runPolicy", "failurePolicy"}) ==
        yaml("{processRestarts: 7}"));
}

TEST_CASE("a runtime of today is not changed") {
  for (const char* torch : {"{}", "{numProcPerNode: auto}", "{numProcPerNode: 4, launcher: env}",
                            "{elasticPolicy: {minNodes: 1, maxNodes: 4, maxRestarts: 2}}"}) {
    CAPTURE(torch);
    Json runtime = torch_runtime();
    runtime["spec"]["mlPolicy"].set("torch", yaml(torch));
    CHECK(mutate_runtime(create(runtime)).json_patch.is_null());
  }
}

TEST_CASE("extension fields of a runtime that a client may not know are put back") {
  Json before = torch_runtime();
  before["spec"]["mlPolicy"].set("torch", yaml("{numProcPerNode: gpu, launcher: torchrun}"));
  AdmissionRequest request = update(before, torch_runtime());
  request.object["spec"]["mlPolicy"].set("torch", yaml("{}"));
  CHECK(mutate_runtime(request).json_patch.is_null());
  request.may_lack_fields = true;
  CHECK(*apply(request, mutate_runtime(request)).find_path({"spec", "mlPolicy", "torch"}) ==
        yaml("{numProcPerNode: gpu, launcher: torchrun}"));
  request.object["spec"].erase("mlPolicy");
  CHECK(mutate_runtime(request).json_patch.is_null());
}

TEST_CASE("hostile objects are left to the schema") {
  const auto text = GENERATE(
      "{}", "[]", "{spec: 5}", "{spec: {runtimePatches: 7, podTemplateOverrides: text, labels: 3}}",
      "{spec: {runtimePatches: [1, {manager: []}], trainer: x}}",
      "{spec: {mlPolicy: {torch: {elasticPolicy: 3}}, template: 7}}",
      "{spec: {mlPolicy: {torch: {elasticPolicy: {maxRestarts: 3}}}, template: {spec: text}}}",
      "{spec: {mlPolicy: {torch: {elasticPolicy: {maxRestarts: 3}}}, runPolicy: text}}",
      "{spec: {podSpecOverrides: [{targetJobs: [{name: a}, {}], containers: [{env: 5}]}]}}");
  const Json object = yaml(text);
  for (const AdmissionRequest& request : {create(object), update(object, object)}) {
    const auto answer = mutate_trainjob(request, kNone);
    CHECK(answer.is_allowed);
    check_consistent(request, answer);
    check_consistent(request, mutate_runtime(request));
  }
  CHECK(needs_of(create(object)).claims.empty());
}

}  // namespace
}  // namespace trainer::test
