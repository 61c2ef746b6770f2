// Refusals of changes: rows W6 to W8, W13, W14, W18 to W20 and W33 to W37 of the acceptance
// checklist, U7 and U8.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/jobset/admission_support.hh"

using namespace trainer;
using namespace trainer::jobset;
using namespace trainer::jobset::test;
using kube::Json;

TEST_CASE("W6 to W8, W13, W14, W18 to W20, U7: what may change") {
  const auto set = [](std::vector<const char*> path, Json value) {
    return [path, value](Json& pod_template) {
      Json* at = &pod_template;
      for (const char* step : path) {
        if (at->is_null()) *at = Json::object();
        at = &(*at)[step];
      }
      *at = value;
    };
  };
  struct Row {
    const char* about;
    std::function<void(Json&)> edit;  // an edit of the pod template
    bool is_scheduling;               // may change while suspended
  };
  const Row rows[] = {
      {"W6, W7", set({"spec", "nodeSelector"}, Json::object({{"a", "b"}})), true},
      {"W8 hostname", set({"spec", "hostname"}, "h"), false},
      {"W8 subdomain", set({"spec", "subdomain"}, "h"), false},
      {"W19, W20 annotations", set({"metadata", "annotations"}, Json::object({{"a", "b"}})), true},
      {"labels", set({"metadata", "labels"}, Json::object({{"a", "b"}})), true},
      {"W19 gates", set({"spec", "schedulingGates"}, Json::array({Json::object({{"name", "g"}})})),
       true},
      {"tolerations", set({"spec", "tolerations"}, Json::array({Json::object({{"key", "g"}})})),
       true},
      {"image", set({"spec", "containers"}, Json::array({Json::object({{"name", "c"}})})), false},
      {"nothing", [](Json&) {}, true},
      {"an empty list", set({"spec", "tolerations"}, Json::array()), true},
      {"an empty map", set({"spec", "nodeSelector"}, Json::object()), true},
  };
  struct Suspension {
    bool before, after;
  };
  for (const Suspension& suspend :
       {Suspension{false, false}, {true, true}, {true, false}, {false, true}}) {
    for (const Row& row : rows) {
      INFO(row.about << ", suspended before " << suspend.before << " and after " << suspend.after);
      Json before = defaulted(single());
      before["spec"]["suspend"] = suspend.before;
      Json after = before;
      after["spec"]["suspend"] = suspend.after;
      Json& pod_template =
          after["spec"]["replicatedJobs"].as_array()[0]["template"]["spec"]["template"];
      row.edit(pod_template);
      const bool says_nothing =
          std::string(row.about) == "nothing" || std::string(row.about).rfind("an empty", 0) == 0;
      const bool is_allowed =
          says_nothing || (row.is_scheduling && (suspend.before || suspend.after));
      const std::string errors = update_errors(before, after);
      CHECK(errors.empty() == is_allowed);
      if (!is_allowed) {
        CHECK(errors.find("spec.replicatedJobs: Invalid value: ") == 0);
        CHECK(errors.find("field is immutable") != std::string::npos);
      }
    }
  }
}

TEST_CASE("removing scheduling members while suspended, and members that are not there") {
  Json before = defaulted(single("suspend: true"));
  Json& pod =
      before["spec"]["replicatedJobs"].as_array()[0]["template"]["spec"]["template"]["spec"];
  pod["nodeSelector"] = Json::object({{"a", "b"}});
  Json after = before;
  after["spec"]["replicatedJobs"].as_array()[0]["template"]["spec"]["template"]["spec"].erase(
      "nodeSelector");
  CHECK(update_errors(before, after).empty());
  after["spec"]["replicatedJobs"].as_array()[0]["template"]["spec"]["template"] = "odd";
  CHECK_FALSE(update_errors(before, after).empty());
}

TEST_CASE("what a client with Go types writes back is the same, and no more than that") {
  const auto pod = [](const std::string& spec) {
    return fmt::format("template: {{spec: {{{}}}}}", spec);
  };
  const auto container = [&pod](const std::string& members) {
    return pod(fmt::format("containers: [{{name: c, {}}}]", members));
  };
  // Specs of a Job, before and after, either way round.
  const std::pair<std::string, std::string> same[] = {
      {container("resources: {limits: {cpu: 1, memory: 1024Mi}}"),
       container("resources: {limits: {cpu: '1', memory: 1Gi}}")},
      {container("env: [{name: X, value: ''}]"), container("env: [{name: X}]")},
      {container("tty: false, stdin: false, args: [], workingDir: ''"), container("resources: {}")},
      {container("volumeMounts: [{name: v, mountPath: /v, readOnly: false}]"),
       container("volumeMounts: [{name: v, mountPath: /v}]")},
      {container("env: [{name: X, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]"),
       container("env: [{name: X, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "
                 "'0'}}}]")},
      {pod("hostNetwork: false, hostname: '', containers: []"), pod("containers: null")},
      {pod("volumes: [{name: v, emptyDir: {sizeLimit: 1024Mi}}]"),
       pod("volumes: [{name: v, emptyDir: {sizeLimit: 1Gi}}]")},
  };
  const std::pair<std::string, std::string> different[] = {
      {"backoffLimit: 0", ""},
      {pod("automountServiceAccountToken: false"), pod("")},
      {pod("hostNetwork: true"), pod("hostNetwork: false")},
      {pod("volumes: [{name: v, emptyDir: {}}]"), pod("volumes: [{name: v}]")},
      {"template: {metadata: {labels: {a: ''}}}", "template: {metadata: {labels: {}}}"},
      {container("resources: {limits: {cpu: 1}}"), container("resources: {limits: {cpu: 2}}")},
      {container("env: [{name: X, value: ' '}]"), container("env: [{name: X}]")},
  };
  const auto errors_of = [](const std::string& before, const std::string& after) {
    const auto whole = [](const std::string& spec) {
      return defaulted(with_jobs(fmt::format("{{name: w, template: {{spec: {{{}}}}}}}", spec)));
    };
    return update_errors(whole(before), whole(after));
  };
  for (const auto& [before, after] : same) {
    INFO(before << " and " << after);
    CHECK(errors_of(before, after) == "");
    CHECK(errors_of(after, before) == "");
  }
  for (const auto& [before, after] : different) {
    INFO(before << " and " << after);
    CHECK(errors_of(before, after).find("field is immutable") != std::string::npos);
    CHECK(errors_of(after, before).find("field is immutable") != std::string::npos);
  }
}

TEST_CASE("U7, W18: lists and managers are fixed, suspended or not") {
  const std::string a = "{name: a, " + kT + "}", b = "{name: b, " + kT + "}";
  const Json before = defaulted(with_jobs(a + ", " + b, "suspend: true"));
  for (const std::string& jobs :
       {a, b + ", " + a, a + ", " + b + ", {name: c, " + kT + "}", a + ", {name: x, " + kT + "}"}) {
    INFO(jobs);
    const std::string errors = update_errors(before, defaulted(with_jobs(jobs, "suspend: true")));
    CHECK(errors.find("spec.replicatedJobs: Invalid value: ") == 0);
  }
  CHECK(update_errors(before,
                      defaulted(with_jobs(a + ", " + b, "suspend: true, managedBy: acme.io/x"))) ==
        "spec.managedBy: Invalid value: \"acme.io/x\": field is immutable");
  const Json mutable_fields = defaulted(with_jobs(
      a + ", " + b, "suspend: false, ttlSecondsAfterFinished: 3, coordinator: {replicatedJob: a}"));
  CHECK(update_errors(before, mutable_fields).empty());
}

TEST_CASE("W33 to W37, U8: sizes") {
  const auto sized = [](const char* mode, int parallelism, int completions) {
    return defaulted(with_jobs(fmt::format(
        "{{name: w, template: {{spec: {{completionMode: {}, parallelism: {}, completions: {}, "
        "template: {{}}}}}}}}",
        mode, parallelism, completions)));
  };
  Gates open;
  open.elastic_jobset = true;
  const Json before = sized("Indexed", 2, 2);
  const std::string path = "spec.replicatedJobs[0].template.spec.";
  CHECK(update_errors(before, sized("Indexed", 4, 4), open).empty());
  CHECK(update_errors(before, sized("Indexed", 4, 5), open) ==
        path +
            "completions: Invalid value: 5: completions must be equal to parallelism for Elastic "
            "Indexed Jobs");
  CHECK(update_errors(before, sized("Indexed", 0, 0), open) ==
        "[" + path + "parallelism: Invalid value: 0: parallelism must be >= 1, " + path +
            "completions: Invalid value: 0: completions must be >= 1]");
  CHECK(update_errors(sized("NonIndexed", 2, 2), sized("NonIndexed", 4, 4), open)
            .find("field is immutable") != std::string::npos);
  CHECK(update_errors(before, sized("Indexed", 4, 4)).find("field is immutable") !=
        std::string::npos);
  const auto elastic = [](Json jobset, const char* nodes) {
    Json& job = jobset["spec"]["replicatedJobs"].as_array()[0]["template"];
    job["metadata"]["labels"].set("trainer.kubeflow.org/trainjob-ancestor-step", "trainer");
    jobset["metadata"].set("annotations",
                           Json::object({{"trainer.kubeflow.org/elastic-nodes", nodes}}));
    jobset["metadata"].set(
        "ownerReferences",
        Json::array({Json::object({{"apiVersion", "trainer.kubeflow.org/v1alpha1"},
                                   {"kind", "TrainJob"},
                                   {"name", "j"},
                                   {"uid", "u"},
                                   {"controller", true}})}));
    return jobset;
  };
  CHECK(update_errors(elastic(before, "2:4"), elastic(sized("Indexed", 4, 4), "2:4")).empty());
  Json foreign = elastic(sized("Indexed", 4, 4), "2:4");
  foreign["metadata"]["ownerReferences"].as_array()[0].set("apiVersion", "example.com/v1");
  Json foreign_before = foreign;
  foreign_before["spec"] = elastic(before, "2:4").get("spec");
  CHECK(update_errors(foreign_before, foreign).find("field is immutable") != std::string::npos);
  for (const char* nodes : {"", "4", "4:2", "0:4", "2:x", "2:99999999999", "2:3", "5:9"})
    CHECK(update_errors(elastic(before, nodes), elastic(sized("Indexed", 4, 4), nodes))
              .find("field is immutable") != std::string::npos);
  Json edited = sized("Indexed", 4, 4);
  edited["spec"]["replicatedJobs"].as_array()[0]["replicas"] = 2;
  CHECK(update_errors(before, edited, open).find("field is immutable") != std::string::npos);
  for (const char* type : {"Completed", "Failed"}) {
    Json finished = before;
    finished["status"] = Json::object(
        {{"conditions", Json::array({Json::object({{"type", type}, {"status", "True"}})})}});
    CHECK(
        update_errors(finished, sized("Indexed", 4, 4), open) ==
        "spec.replicatedJobs[0].template.spec: Forbidden: Cannot mutate parallelism or completions "
        "when JobSet is in a terminal state (Completed or Failed)");
  }
}
