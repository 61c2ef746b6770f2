// The Jobs as they are created (JobSet, pkg/controllers/jobset_controller.go), and the views of
// Jobs and Pods.
#include "api/api.hh"
#include "kube/model/json_text.hh"
#include "runtimes/jobset/names.hh"
#include "tests/unit/jobset/world.hh"

using namespace trainer;
using namespace trainer::jobset;
using namespace trainer::jobset::test;
using kube::Json;

namespace {

// Literals are text here, not strings of a document.
std::shared_ptr<JobView> job_of(std::string_view text) {
  auto view = transform_job(text);
  const auto object = kube::parse_json(text);
  const auto whole = object ? view_job(*object) : nullptr;
  // Parts of the text that are not decoded must make no difference.
  REQUIRE(!view == !whole);
  if (view) {
    REQUIRE(!view->scheduling == !whole->scheduling);
    if (view->scheduling) REQUIRE(*view->scheduling == *whole->scheduling);
    whole->scheduling = view->scheduling;
    REQUIRE(*view == *whole);
  }
  return view;
}

std::vector<Json> jobs_of(std::string_view yaml, Gates gates = {}) {
  World world(yaml);
  const auto read = read_jobset(world.jobset());
  REQUIRE(read);
  return all_jobs(*read, gates, {});
}

std::string head(std::string_view metadata) {
  return "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: " + std::string(metadata) +
         "\nspec:\n  replicatedJobs:\n";
}

// A value in labels and in annotations, of the Job and of its pods; the same in all four places.
std::string key_of(const Json& job, std::string_view key) {
  const Json* value = job.find_path({"metadata", "labels", key});
  REQUIRE(value);
  for (const char* where : {"labels", "annotations"}) {
    CHECK(*job.find_path({"metadata", where, key}) == *value);
    CHECK(*job.find_path({"spec", "template", "metadata", where, key}) == *value);
  }
  return value->as_string();
}

std::string annotations(const Json& object) {
  std::string text;
  for (const char* key : {"exclusive-topology", "node-selector"}) {
    const Json* value = object.find_path(
        {"metadata", "annotations", std::string("alpha.jobset.sigs.k8s.io/") + key});
    text += value ? value->as_string() : "-";
    text += ' ';
  }
  return text;
}

}  // namespace

TEST_CASE("indices by job, group and set") {
  const auto jobs = jobs_of(head("{name: s}") + R"(
  - {name: a, replicas: 2, groupName: x, template: {spec: {template: {}}}}
  - {name: b, replicas: 1, template: {spec: {template: {}}}}
  - {name: c, replicas: 2, groupName: x, template: {spec: {template: {}}}}
)");
  struct Row {
    const char *name, *replicas, *index, *global, *group, *group_size, *group_index;
  };
  const Row rows[] = {
      {"s-a-0", "2", "0", "0", "x", "4", "0"},       {"s-a-1", "2", "1", "1", "x", "4", "1"},
      {"s-b-0", "1", "0", "2", "default", "1", "0"}, {"s-c-0", "2", "0", "3", "x", "4", "2"},
      {"s-c-1", "2", "1", "4", "x", "4", "3"},
  };
  REQUIRE(jobs.size() == 5);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Row& row = rows[i];
    INFO(row.name);
    CHECK(*jobs[i].find_path({"metadata", "name"}) == row.name);
    CHECK(*jobs[i].find_path({"metadata", "namespace"}) == "default");
    CHECK(key_of(jobs[i], kJobSetNameKey) == "s");
    CHECK(key_of(jobs[i], kJobSetUidKey) == "jobset-uid");
    CHECK(key_of(jobs[i], kReplicatedJobReplicasKey) == row.replicas);
    CHECK(key_of(jobs[i], kGlobalReplicasKey) == "5");
    CHECK(key_of(jobs[i], kJobIndexKey) == row.index);
    CHECK(key_of(jobs[i], kJobGlobalIndexKey) == row.global);
    CHECK(key_of(jobs[i], kGroupNameKey) == row.group);
    CHECK(key_of(jobs[i], kGroupReplicasKey) == row.group_size);
    CHECK(key_of(jobs[i], kJobGroupIndexKey) == row.group_index);
    CHECK(key_of(jobs[i], kRestartAttemptKey) == "0");
    CHECK(jobs[i].find_path({"metadata", "labels", kJobRestartAttemptKey}) == nullptr);
  }
  // SHA-1 of "default/s-a-0".
  CHECK(key_of(jobs[0], kJobKeyKey) == job_key("default", "s-a-0"));
  CHECK(job_key("default", "s-a-0") == "a9ea76dfc03390f1f1f7485f5bc5a32628d09b93");
}

TEST_CASE("U9: job-restart-attempt only behind its gate") {
  Gates gates;
  gates.restart_job = true;
  const auto jobs =
      jobs_of(head("{name: s}") + "  - {name: a, template: {spec: {template: {}}}}", gates);
  CHECK(key_of(jobs[0], kJobRestartAttemptKey) == "0");
}

TEST_CASE("the template is carried, its own metadata first") {
  const auto jobs = jobs_of(head("{name: s, labels: {own: x}, annotations: {own: x}}") + R"(
  - name: a
    template:
      metadata:
        name: ignored
        finalizers: [f]
        labels: {l: v, jobset.sigs.k8s.io/job-index: wrong}
        annotations: {note: v}
      spec:
        suspend: true
        ttlSecondsAfterFinished: 7
        podFailurePolicy: {rules: []}
        template:
          metadata: {labels: {pl: v}}
          spec: {restartPolicy: Never, subdomain: mine, containers: [{name: c, env: [{name: E, value: v}]}]}
)");
  const Json& job = jobs.at(0);
  CHECK(*job.find("apiVersion") == "batch/v1");
  CHECK(*job.find("kind") == "Job");
  CHECK(*job.find_path({"metadata", "name"}) == "s-a-0");
  CHECK(job.find("metadata")->find("finalizers") == nullptr);
  CHECK(*job.find_path({"metadata", "labels", "l"}) == "v");
  CHECK(*job.find_path({"metadata", "annotations", "note"}) == "v");
  CHECK(job.find_path({"metadata", "labels", "own"}) == nullptr);
  CHECK(key_of(job, kJobIndexKey) == "0");
  CHECK(*job.find_path({"metadata", "ownerReferences"}) ==
        Json::array({Json::object({{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
                                   {"kind", "JobSet"},
                                   {"name", "s"},
                                   {"uid", "jobset-uid"},
                                   {"controller", true},
                                   {"blockOwnerDeletion", true}})}));
  const Json& spec = *job.find("spec");
  CHECK(*spec.find("suspend") == false);
  CHECK(*spec.find("ttlSecondsAfterFinished") == 7);
  CHECK(*spec.find("completionMode") == "Indexed");
  CHECK(spec.find("podFailurePolicy"));
  CHECK(*spec.find_path({"template", "metadata", "labels", "pl"}) == "v");
  CHECK(*spec.find_path({"template", "spec", "subdomain"}) == "s");
  CHECK(*spec.find_path({"template", "spec", "containers"}) ==
        *kube::parse_json(R"([{"name":"c","env":[{"name":"E","value":"v"}]}])"));
}

TEST_CASE("U9: annotations for exclusive placement, of the JobSet and of the replicated job") {
  struct Row {
    const char* of_set;
    const char* of_job;
    const char* on_job;
    const char* on_pods;
    bool is_on_labelled_nodes;
  };
  const std::string t = "alpha.jobset.sigs.k8s.io/exclusive-topology: ";
  const std::string n = "alpha.jobset.sigs.k8s.io/node-selector: ";
  const std::string set_t = t + "rack", set_both = t + "rack, " + n + "\"1\"", job_t = t + "zone",
                    job_both = t + "zone, " + n + "\"2\"", only_n = n + "\"3\"";
  const Row rows[] = {
      {"", "", "- - ", "- - ", false},
      {set_t.c_str(), "", "rack - ", "rack - ", false},
      {set_both.c_str(), "", "rack 1 ", "rack 1 ", true},
      {"", job_t.c_str(), "zone - ", "zone - ", false},
      {"", job_both.c_str(), "zone 2 ", "zone 2 ", true},
      {set_t.c_str(), job_t.c_str(), "zone - ", "zone - ", false},
      {only_n.c_str(), "", "- - ", "- - ", false},
      // A Job's own node-selector completes the set's topology, but does not reach the pods.
      {set_t.c_str(), only_n.c_str(), "rack 3 ", "rack - ", true},
  };
  for (const Row& row : rows) {
    INFO(row.of_set << " / " << row.of_job);
    const auto jobs = jobs_of(head(std::string("{name: s, annotations: {") + row.of_set + "}}") +
                              "  - {name: a, template: {metadata: {annotations: {" + row.of_job +
                              "}}, spec: {template: {spec: {}}}}}");
    const Json& job = jobs.at(0);
    CHECK(annotations(job) == row.on_job);
    CHECK(annotations(*job.find_path({"spec", "template"})) == row.on_pods);
    const Json& pod = *job.find_path({"spec", "template", "spec"});
    REQUIRE((pod.find("nodeSelector") != nullptr) == row.is_on_labelled_nodes);
    if (!row.is_on_labelled_nodes) continue;
    CHECK(*pod.find("nodeSelector") ==
          Json::object({{"alpha.jobset.sigs.k8s.io/namespaced-job", "default_s-a-0"}}));
    CHECK(*pod.find("tolerations") ==
          *kube::parse_json(R"([{"key":"alpha.jobset.sigs.k8s.io/no-schedule",)"
                            R"("operator":"Exists","effect":"NoSchedule"}])"));
  }
}

TEST_CASE("claims become volumes of the pods that mount them") {
  const auto jobs = jobs_of(head("{name: s}") + R"(
  - {name: a, template: {spec: {template: {spec: {containers: [{name: c, volumeMounts: [{name: data, mountPath: /d}]}]}}}}}
  - {name: b, template: {spec: {template: {spec: {initContainers: [{name: i, volumeMounts: [{name: data, mountPath: /d}]}], volumes: [{name: own, emptyDir: {}}]}}}}}
  - {name: c, template: {spec: {template: {spec: {containers: [{name: c}]}}}}}
  volumeClaimPolicies: [{templates: [{metadata: {name: data}, spec: {}}]}]
)");
  const Json volume =
      *kube::parse_json(R"({"name":"data","persistentVolumeClaim":{"claimName":"data-s"}})");
  const auto volumes = [&](std::size_t i) {
    return jobs.at(i).find_path({"spec", "template", "spec"})->get_array("volumes");
  };
  CHECK(volumes(0) == Json::Array{volume});
  REQUIRE(volumes(1).size() == 2);
  CHECK(volumes(1)[1] == volume);
  CHECK(volumes(2).empty());
}

TEST_CASE("names and positions of Jobs") {
  CHECK(job_name("s", "a-b", 12) == "s-a-b-12");
  const auto position = parse_job_name("s", "s-a-b-12");
  REQUIRE(position);
  CHECK(position->replicated_job == "a-b");
  CHECK(position->index == 12);
  for (const char* other : {"s", "s-", "s-a", "t-a-0", "s-a-01", "s-a-+1", "sx-a-0",
                            "s-a-99999999999", "s-a-1x", "s-a-"}) {
    INFO(other);
    CHECK_FALSE(parse_job_name("s", other).has_value());
  }
}

TEST_CASE("view of a Job") {
  const auto view = job_of(R"({"metadata":{"name":"j","namespace":"n","uid":"u",
    "resourceVersion":"7","deletionTimestamp":"2027-01-01T00:00:00Z",
    "labels":{"jobset.sigs.k8s.io/replicatedjob-name":"a","jobset.sigs.k8s.io/job-index":"3",
      "jobset.sigs.k8s.io/restart-attempt":"2","jobset.sigs.k8s.io/job-restart-attempt":"1"},
    "ownerReferences":[{"apiVersion":"v1","kind":"X","uid":"x"},
      {"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","uid":"o","controller":true}]},
    "spec":{"suspend":true,"parallelism":2,"completions":3,
      "template":{"metadata":{"labels":{"l":"v"}},"spec":{"nodeSelector":{"a":"b"},"containers":[]}}},
    "status":{"active":1,"ready":2,"succeeded":3,"failed":4,"startTime":"2027-01-01T00:00:00Z",
      "conditions":[{"type":"Suspended","status":"True"},{"type":"Complete","status":"False"},
        {"type":"FailureTarget","status":"True","reason":"R"},
        {"type":"Failed","status":"True","reason":"F","message":"m"}]}})");
  REQUIRE(view);
  CHECK(view->key() == kube::ObjectKey{"n", "j"});
  CHECK(view->uid == "u");
  CHECK(view->resource_version == "7");
  CHECK(view->owner_uid == "o");
  CHECK(view->replicated_job == "a");
  CHECK(view->job_index == "3");
  CHECK(view->restart_attempt == "2");
  CHECK(view->job_restart_attempt == "1");
  CHECK(view->is_suspended);
  CHECK(view->is_deleting);
  CHECK(view->has_start_time);
  CHECK(view->parallelism == 2);
  CHECK(view->completions == 3);
  CHECK(view->active == 1);
  CHECK(view->ready == 2);
  CHECK(view->succeeded == 3);
  CHECK(view->failed == 4);
  REQUIRE(view->finished);
  CHECK(view->finished->reason == "F");
  CHECK(view->failure()->reason == "F");
  REQUIRE(view->scheduling);
  CHECK(*view->scheduling == *kube::parse_json(R"({"labels":{"l":"v"},"nodeSelector":{"a":"b"}})"));
}

TEST_CASE("projections of the malformed and of the strange") {
  for (const char* text : {"", "{", "[]", "null", "{}", R"({"metadata":{}})", R"({"metadata":7})",
                           R"({"metadata":{"name":5}})"}) {
    INFO(text);
    CHECK(job_of(text) == nullptr);
    CHECK(transform_pod(text) == nullptr);
  }
  const auto strange = job_of(R"({"metadata":{"name":"j","labels":[],"ownerReferences":{}},
    "spec":{"suspend":"yes","parallelism":"2","completions":99999999999},"status":{"conditions":"x","active":-9e99}})");
  REQUIRE(strange);
  CHECK(strange->owner_uid.empty());
  CHECK_FALSE(strange->is_suspended);
  CHECK_FALSE(strange->parallelism.has_value());
  CHECK(strange->completions == 2147483647);
  CHECK(strange->active == 0);
  CHECK(strange->scheduling == nullptr);
  // Another controller of the same uid is no JobSet.
  const auto other = job_of(R"({"metadata":{"name":"j","ownerReferences":[
    {"apiVersion":"jobset.x-k8s.io/v1","kind":"JobSet","uid":"o","controller":true}]}})");
  CHECK(other->owner_uid.empty());
}

TEST_CASE("view of a Pod") {
  const auto view = transform_pod(R"({"metadata":{"name":"p","namespace":"n","resourceVersion":"7",
    "labels":{"jobset.sigs.k8s.io/jobset-name":"s","jobset.sigs.k8s.io/replicatedjob-name":"a",
      "jobset.sigs.k8s.io/job-index":"3","jobset.sigs.k8s.io/restart-attempt":"2"},
    "annotations":{"jobset.sigs.k8s.io/in-place-restart-attempt":"4"},
    "ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","uid":"j","controller":true}]},
    "status":{"phase":"Running","containerStatuses":[{"restartCount":1}],
      "initContainerStatuses":[{"restartCount":3}]}})");
  REQUIRE(view);
  CHECK(view->key() == kube::ObjectKey{"n", "p"});
  CHECK(view->jobset == "s");
  CHECK(view->phase == "Running");
  CHECK(view->in_place_attempt == "4");
  CHECK(view->restart_count == 3);
  CHECK(view->replicated_job == "a");
  CHECK(view->job_index == "3");
  CHECK(view->attempt == 2);
  CHECK_FALSE(view->is_infrastructure_failure);
  struct Row {
    const char* status;
    bool is_failure;
    bool is_of_node = is_failure;
  };
  const Row rows[] = {
      {R"({"conditions":[{"type":"DisruptionTarget","status":"True"}]})", true, false},
      {R"({"conditions":[{"type":"DisruptionTarget","status":"True","reason":"EvictionByEvictionAPI"}]})",
       true},
      {R"({"conditions":[{"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler"}]})",
       true, false},
      {R"({"phase":"Failed","reason":"Preempting"})", true, false},
      {R"({"conditions":[{"type":"DisruptionTarget","status":"False"}]})", false},
      {R"({"phase":"Failed","reason":"UnexpectedAdmissionError"})", true},
      {R"({"phase":"Unknown","reason":"NodeLost"})", true},
      {R"({"phase":"Failed","reason":"Evicted"})", false},
      {R"({"phase":"Failed"})", false},
  };
  for (const Row& row : rows) {
    INFO(row.status);
    const auto pod =
        transform_pod(std::string(R"({"metadata":{"name":"p"},"status":)") + row.status + "}");
    CHECK(pod->is_infrastructure_failure == row.is_failure);
    CHECK(pod->is_node_failure == row.is_of_node);
  }
}

TEST_CASE("each object that a plan creates says its kind and version") {
  World world(test_js());
  std::size_t created = 0;
  for (const kube::Action& action : world.context().actions) {
    if (action.verb != kube::Action::Verb::kCreate) continue;
    ++created;
    INFO(action.key.name);
    CHECK(action.body.get_string("kind") == action.resource.kind);
    CHECK(action.body.get_string("apiVersion") ==
          (action.resource.group.empty() ? "v1" : action.resource.group + "/v1"));
  }
  CHECK(created == 5);  // the Service, and four Jobs
}
