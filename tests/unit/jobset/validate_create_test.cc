// Refusals of new JobSets: the rules of JobSet, pkg/webhooks/jobset_webhook.go, with U1 to U6, W10,
// W21, W23, W26 and W27, and the recorded refusals.
#include <fstream>
#include <sstream>

#include "kube/model/json_text.hh"
#include "kube/model/names.hh"
#include "tests/support/source_root.hh"
#include "tests/unit/jobset/admission_support.hh"

using namespace trainer;
using namespace trainer::jobset;
using namespace trainer::jobset::test;
using kube::Json;

TEST_CASE("what is accepted") {
  const std::string rows[] = {
      single(),
      with_jobs(""),                         // W26
      single("suspend: true"),               // W13
      single("managedBy: acme.io/foo"),      //
      single("network: {subdomain: ring}"),  //
      single("network: {subdomain: \"\"}"),  //
      single("startupPolicy: {startupPolicyOrder: AnyOrder}"),
      with_jobs("{name: a, replicas: 0, " + kT + "}"),  // W12
      with_jobs("{name: a, " + kT + "}, {name: b, dependsOn: [{name: a, status: Ready}], " + kT +
                "}"),  // W21
      single("failurePolicy: {rules: [{name: 'a1_,:b', action: FailJobSet, onJobFailureReasons: "
             "[BackoffLimitExceeded, DeadlineExceeded, FailedIndexes, MaxFailedIndexesExceeded, "
             "PodFailurePolicy]}]}"),
      with_jobs("{name: w, template: {spec: {completions: 2, template: {spec: {}}}}}",
                "coordinator: {replicatedJob: w}"),
  };
  for (const std::string& row : rows) {
    INFO(row);
    CHECK(create_errors(defaulted(row)).empty());
  }
}

TEST_CASE("what a new JobSet is refused for") {
  const std::string long_name(62, 'j');
  const std::string dns1035 = kube::check_dns1035_label("a.b");
  const std::string too_long_job =
      "JobSet name is too long, job names generated for this JobSet will exceed 63 characters";
  struct Row {
    const char* about;
    std::string yaml;
    std::string errors;
  };
  const Row rows[] = {
      {"1", single("failurePolicy: {restartStrategy: InPlaceRestart}"),
       plain("InPlaceRestart restart strategy cannot be set when InPlaceRestart feature gate is "
             "disabled")},
      {"2, W23", with_jobs("{name: a, dependsOn: [{name: zz, status: Ready}], " + kT + "}"),
       "[" + plain("DependsOn can't be set for the first ReplicatedJob") + ", " +
           plain("replicatedJob: a cannot depend on replicatedJob: zz") + "]"},
      {"3", single("network: {subdomain: " + std::string(64, 'x') + "}"),
       "spec.network.subdomain: Invalid value: \"" + std::string(64, 'x') +
           "\": .spec.network.subdomain is too long, must be less than 63 characters"},
      {"4", single("managedBy: ''"), "spec.managedBy: Required value"},
      {"4 length", single("managedBy: acme.io/" + std::string(60, 'x')),
       "spec.managedBy: Too long: may not be more than 63 bytes"},
      {"5, U2",
       with_jobs("{name: w, replicas: 2147483647, template: {spec: {parallelism: 2147483647, "
                 "template: {}}}}"),
       plain("the product of replicas and parallelism must not exceed 2147483647 for replicatedJob "
             "'w'")},
      {"6", single("", "groupName: " + std::string(64, 'g')),
       "spec.replicatedJobs[0].groupName: Invalid value: \"" + std::string(64, 'g') +
           "\": .spec.replicatedJob[].groupName is too long, must be less than 63 characters"},
      {"7, U3", single("", "", "name: " + long_name),
       "spec.replicatedJobs[0].name: Invalid value: \"" + long_name + "-w-0\": " + too_long_job},
      {"7, U3 dot", with_jobs("{name: a.b, " + kT + "}"),
       "spec.replicatedJobs[0].name: Invalid value: \"s-a.b-0\": " + dns1035},
      {"7, U1",
       with_jobs("{name: " + std::string(20, 'w') + ", " + kT + "}", "",
                 "generateName: " + std::string(50, 'g')),
       "spec.replicatedJobs[0].name: Invalid value: \"" + std::string(50, 'g') + "xxxxx-" +
           std::string(20, 'w') + "-0\": " + too_long_job},
      {"8, U3",
       with_jobs("{name: w, template: {spec: {completions: 2, template: {}}}}", "",
                 "name: " + std::string(56, 'j')),
       "spec.replicatedJobs[0].name: Invalid value: \"" + std::string(56, 'j') +
           "-w-0\": JobSet name is too long, pod names generated for this JobSet will "
           "exceed 63 characters"},
      {"9, U5 forward",
       with_jobs("{name: a, " + kT +
                 "}, {name: b, dependsOn: [{name: a, status: Ready}, {name: c, "
                 "status: Ready}], " +
                 kT + "}, {name: c, " + kT + "}"),
       plain("replicatedJob: b cannot depend on replicatedJob: c")},
      {"9, itself",
       with_jobs("{name: a, " + kT + "}, {name: b, dependsOn: [{name: b, status: Ready}], " + kT +
                 "}"),
       plain("replicatedJob: b cannot depend on replicatedJob: b")},
      {"13, W10", single("successPolicy: {operator: All, targetReplicatedJobs: [none]}"),
       plain("invalid replicatedJob name 'none' does not appear in .spec.ReplicatedJobs")},
      {"14", single("failurePolicy: {rules: [{name: 1bad, action: RestartJob}]}"),
       plain("RestartJob and RestartJobAndIgnoreMaxRestarts failure policy actions are not allowed "
             "when RestartJob feature gate is disabled")},
      {"16, U4",
       single("failurePolicy: {rules: [{name: " + std::string(129, 'r') +
              ", action: FailJobSet}]}"),
       plain("invalid failure policy rule name of length 129, the rule name must be at least 1 "
             "characters long and at most 128 characters long")},
      {"18", single("failurePolicy: {rules: [{action: FailJobSet, targetReplicatedJobs: [x]}]}"),
       plain("invalid replicatedJob name 'x' in failure policy does not appear in "
             ".spec.ReplicatedJobs")},
      {"19", single("failurePolicy: {rules: [{action: FailJobSet, onJobFailureReasons: [Bored]}]}"),
       plain("invalid job failure reason 'Bored' in failure policy is not a recognized job failure "
             "reason")},
      {"20, U4",
       single(
           "failurePolicy: {rules: [{name: r, action: FailJobSet}, {name: q, action: FailJobSet}, "
           "{name: r, action: FailJobSet}]}"),
       plain("rule names are not unique, rules with indices [0 2] all have the same name 'r'")},
      {"21 job", single("coordinator: {replicatedJob: none}"),
       plain("coordinator replicatedJob none does not exist")},
      {"21 index", single("coordinator: {replicatedJob: w, jobIndex: 1}"),
       plain("coordinator job index 1 is invalid for replicatedJob w")},
      {"21 mode", single("coordinator: {replicatedJob: w}"),
       plain("job for coordinator pod must be indexed completion mode, and completions number must "
             "be set")},
      {"21 pod",
       with_jobs("{name: w, template: {spec: {completions: 1, template: {}}}}",
                 "coordinator: {replicatedJob: w, podIndex: 1}"),
       plain("coordinator pod index 1 is invalid for replicatedJob w job index 0")},
      {"22, W27",
       with_jobs(
           "{name: w, template: {spec: {completionMode: Indexed, completions: 1, template: {}}}}",
           "coordinator: {replicatedJob: w}, network: {subdomain: " + std::string(58, 'd') + "}"),
       plain("spec will lead to invalid label value \"s-w-0-0." + std::string(58, 'd') +
             "\" for coordinator label \"jobset.sigs.k8s.io/coordinator\" (long JobSet / "
             "ReplicatedJob / SubDomain name?): must be no more than 63 characters")},
  };
  for (const Row& row : rows) {
    INFO(row.about);
    CHECK(create_errors(defaulted(row.yaml)) == row.errors);
  }
}

TEST_CASE("17, U4: names of rules") {
  for (const char* name : {"1a", "a,", "a:", "bad name", "_a", "a-b"}) {
    INFO(name);
    const Json object = defaulted(single(
        fmt::format("failurePolicy: {{rules: [{{name: '{}', action: FailJobSet}}]}}", name)));
    CHECK(
        create_errors(object) ==
        plain(fmt::format("invalid failure policy rule name '{}', a failure policy rule name must "
                          "start with an alphabetic character, optionally followed by a string of "
                          "alphanumeric characters or '_,:', and must end with an alphanumeric "
                          "character or '_'",
                          name)));
  }
}

TEST_CASE("10 to 12, 15: behind open gates") {
  Gates gates;
  gates.in_place_restart = true;
  gates.restart_job = true;
  CHECK(
      create_errors(defaulted(single("failurePolicy: {restartStrategy: InPlaceRestart}")), gates) ==
      "[spec.replicatedJobs[0].template.spec.backoffLimit: Invalid value: null: replicatedJob w: "
      "must be set to 2147483647 (MaxInt32) when in-place restart is enabled, "
      "spec.replicatedJobs[0].template.spec.podReplacementPolicy: Invalid value: null: "
      "replicatedJob w: must be set to Failed when in-place restart is enabled, "
      "spec.replicatedJobs[0].template.spec.completions: Invalid value: null: replicatedJob w: "
      "completions and parallelism must be set and equal to each other when in-place restart is "
      "enabled]");
  CHECK(create_errors(
            defaulted(with_jobs("{name: w, template: {spec: {backoffLimit: 2147483647, "
                                "podReplacementPolicy: Failed, completions: 2, parallelism: 2, "
                                "template: {}}}}",
                                "failurePolicy: {restartStrategy: InPlaceRestart}")),
            gates)
            .empty());
  CHECK(create_errors(defaulted(with_jobs("{name: w, replicas: 1025, " + kT + "}",
                                          "failurePolicy: {rules: [{action: RestartJob}]}")),
                      gates) ==
        plain("JobSet cannot have a failure policy rule with RestartJob or "
              "RestartJobAndIgnoreMaxRestarts action and a replicated job with replicas > 1024"));
}

TEST_CASE("23 to 29, U6: claims") {
  const auto mounting = [](const char* list, const char* more = "") {
    return fmt::format(
        "{{name: w, template: {{spec: {{template: {{spec: {{{}: [{{name: c, volumeMounts: [{{name: "
        "data, mountPath: /d}}]}}]{}}}}}}}}}}}",
        list, more);
  };
  const auto policy = [](const char* templates, const char* when = "Delete") {
    return fmt::format(
        "volumeClaimPolicies: [{{templates: [{}], retentionPolicy: {{whenDeleted: {}}}}}]",
        templates, when);
  };
  const char* const data = "{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}";
  CHECK(create_errors(defaulted(with_jobs(mounting("containers"), policy(data)))).empty());
  CHECK(create_errors(defaulted(with_jobs(mounting("initContainers"), policy(data)))).empty());
  CHECK(create_errors(defaulted(with_jobs("{name: w, " + kT + "}", policy(data)))) ==
        "spec.replicatedJobs: Invalid value: \"data\": replicatedJob containers don't have a "
        "matching volumeMount: data from VolumeClaimPolicies");
  CHECK(create_errors(defaulted(with_jobs(mounting("containers"),
                                          policy((std::string(data) + ", " + data).c_str())))) ==
        "spec.volumeClaimPolicies[0].template[1].name: Invalid value: \"data\": names must be "
        "unique for VolumeClaimPolicies template");
  CHECK(create_errors(defaulted(with_jobs(
            mounting("containers", ", volumes: [{name: data, emptyDir: {}}]"), policy(data)))) ==
        "spec.replicatedJobs[0].template.spec.template.spec.volumes[0].name: Invalid value: "
        "\"data\": volume name conflicts with VolumeClaimPolicy template name: data");
  CHECK(
      create_errors(defaulted(
          with_jobs(mounting("containers"), policy(data), "name: " + std::string(59, 'j')))) ==
      "spec.volumeClaimPolicies[0].template[0].name: Invalid value: \"data\": VolumeClaimPolicies "
      "template name is too long");
  const FindClaim find = [](const std::string& ns, const std::string& name) {
    CHECK(ns == "ns");
    CHECK(name == "data-s");
    return kube::parse_json(R"({"spec":{"accessModes":["ReadWriteOnce"]}})").value();
  };
  const Json kept = defaulted(with_jobs(mounting("containers"), policy(data, "Retain")));
  CHECK(create_errors(kept, {}, find).empty());
  const Json deleted = defaulted(with_jobs(mounting("containers"), policy(data)));
  CHECK(create_errors(deleted, {}, find) ==
        "spec.volumeClaimPolicies[0].retentionPolicy.whenDeleted: Invalid value: \"Delete\": "
        "retentionPolicy must be retain when PVC exists");
  const Json other = defaulted(
      with_jobs(mounting("containers"), policy("{metadata: {name: data}, spec: {}}", "Retain")));
  CHECK(create_errors(other, {}, find) ==
        "spec.volumeClaimPolicies[0].template[0].spec: Invalid value: {}: spec does not match "
        "existing PVC data-s in namespace ns");
}

TEST_CASE("recorded: refusals of the webhook") {
  const std::string path = trainer::test::source_root() + "/tests/conformance/jobset/js-refusals";
  const auto text = [](const std::string& file) {
    std::ifstream stream(file);
    REQUIRE(stream.good());
    std::ostringstream all;
    all << stream.rdbuf();
    return all.str();
  };
  Json steps = (*kube::parse_yaml(text(path + ".yaml")))["steps"];
  const Json answers = *kube::parse_json(text(path + ".expect.json"));
  REQUIRE(steps.size() == answers.size());
  int compared = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string message(answers.as_array()[i].get_string("message"));
    const std::string prefix = "admission webhook \"vjobset.kb.io\" denied the request: ";
    if (message.rfind(prefix, 0) != 0) continue;  // the schema's, or CEL's
    Json object = steps.as_array()[i]["apply"];
    object["metadata"]["namespace"] = "ns";
    apply_schema_defaults(object);
    apply_webhook_defaults(object);
    const std::string name(object["metadata"].get_string("name"));
    CHECK(prefix + "JobSet.jobset.x-k8s.io \"" + name + "\" is invalid: " + create_errors(object) ==
          message);
    ++compared;
  }
  CHECK(compared == 6);
}
