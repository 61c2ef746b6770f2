#include <fmt/format.h>

#include <algorithm>

#include "controller/cli/job_change.hh"
#include "controller/cli/job_list.hh"
#include "controller/cli/job_table.hh"
#include "controller/cli/wait_goal.hh"
#include "controller/kinds/registry.hh"
#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;
using kube::Time;

namespace {

const Time kNow = *Time::parse("2026-08-20T10:00:00Z");

Json json(std::string_view text) {
  auto parsed = kube::parse_json(text);
  REQUIRE(parsed);
  return *parsed;
}

const Registry& all_kinds() {
  static const Registry registry = full_registry();
  return registry;
}

// `version` may be "" where the kind has one version.
const KindRegistration& kind_of(std::string_view name, std::string_view version = "") {
  const auto at =
      std::find_if(all_kinds().begin(), all_kinds().end(), [&](const KindRegistration& each) {
        const kube::Resource& resource = each.controller.resource();
        return is_job_kind(each) && resource.kind == name &&
               (version.empty() || resource.version == version);
      });
  REQUIRE(at != all_kinds().end());
  return *at;
}

constexpr const char* kPod =
    R"({"spec":{"containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":"2"}}},
       {"name":"b","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})";

Json trainjob(std::string_view spec, std::string_view status = "{}",
              std::string_view more = R"("uid":"t1")") {
  return json(fmt::format(
      R"({{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","metadata":{{"name":"llama",
      "namespace":"team-a","resourceVersion":"7","creationTimestamp":"2026-08-20T09:00:00Z",{}}},
      "spec":{},"status":{}}})",
      more, spec, status));
}

Json jobset_of_trainjob(std::int64_t replicas) {
  return json(fmt::format(
      R"({{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{{"name":"llama",
      "namespace":"team-a","uid":"s1","ownerReferences":[{{"apiVersion":"trainer.kubeflow.org/v1alpha1",
      "kind":"TrainJob","name":"llama","uid":"t1","controller":true}}]}},"spec":{{"replicatedJobs":[
      {{"name":"node","replicas":{},"template":{{"spec":{{"parallelism":2,"template":{}}}}}}}]}}}})",
      replicas, kPod));
}

}  // namespace

TEST_CASE("each kind of job can be listed, suspended and resumed") {
  for (const KindRegistration& kind : all_kinds()) {
    CAPTURE(kind.controller.name);
    CHECK(kind.why.has_value() == kind.jobs.has_value());
    if (!kind.jobs) continue;
    CHECK_FALSE(kind.jobs->manager.empty());
    CHECK_FALSE(kind.jobs->running.empty());
    const Json patch = suspend_patch(kind, kube::ObjectMeta::of(trainjob("{}")), true);
    CHECK(patch.get_path({"metadata", "resourceVersion"}) == Json("7"));
    const Json& spec = patch.get("spec");
    CHECK((kind.jobs->policy.empty() ? spec : spec.get(kind.jobs->policy)).get_bool("suspend"));
  }
  CHECK(kind_of("TrainJob").jobs->policy.empty());
  CHECK(kind_of("JobSet").jobs->policy.empty());
  for (const char* name : {"PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob"})
    CHECK(kind_of(name).jobs->policy == "runPolicy");
  CHECK(kind_of("MPIJob", "v2beta1").jobs->policy == "runPolicy");
}

TEST_CASE("devices are those of the pods that run at the same time") {
  struct Row {
    const char* kind;
    const char* version;
    std::string spec;
    std::optional<std::int64_t> devices;
  };
  const std::string pod = kPod;
  const std::string two_stages =
      R"({"spec":{"initContainers":[{"resources":{"limits":{"nvidia.com/gpu":"8"}}}],
      "containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})";
  const std::vector<Row> rows{
      {"TrainJob", "", "{}", std::nullopt},
      {"TrainJob", "", R"({"trainer":{"resourcesPerNode":{"limits":{"nvidia.com/gpu":8}}}})",
       std::nullopt},
      {"TrainJob", "",
       R"({"trainer":{"numNodes":4,"resourcesPerNode":{"limits":{"nvidia.com/gpu":"8"}}}})", 32},
      {"TrainJob", "",
       R"({"trainer":{"numNodes":4,"resourcesPerNode":{"limits":{"memory":"8Gi"}}}})", 0},
      {"JobSet", "",
       R"({"replicatedJobs":[{"replicas":2,"template":{"spec":{"parallelism":3,"template":)" + pod +
           R"(}}},{"template":{"spec":{"template":)" + pod + "}}}]}",
       21},
      {"PyTorchJob", "",
       R"({"pytorchReplicaSpecs":{"Master":{"template":)" + pod +
           R"(},"Worker":{"replicas":3,"template":)" + pod + "}}}",
       12},
      {"MPIJob", "v2beta1",
       R"({"mpiReplicaSpecs":{"Launcher":{"replicas":1,"template":{"spec":{"containers":[{}]}}},
       "Worker":{"replicas":2,"template":)" +
           two_stages + "}}}",
       16},
      {"MPIJob", "v1", R"({"mpiReplicaSpecs":{"Worker":{"replicas":-1,"template":)" + pod + "}}}",
       0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.kind, row.spec);
    const Json object = Json::object({{"spec", json(row.spec)}});
    CHECK(kind_of(row.kind, row.version).jobs->count_devices(object) == row.devices);
  }
}

TEST_CASE("a JobSet of a TrainJob has no line, and says the devices of the TrainJob") {
  JobLines lines(all_kinds());
  CHECK(lines.upsert(kind_of("JobSet"), jobset_of_trainjob(1)) == nullptr);
  const JobLine* line = lines.upsert(kind_of("TrainJob"), trainjob("{}"));
  REQUIRE(line);
  CHECK(line->devices == 6);
  CHECK(lines.upsert(kind_of("TrainJob"), trainjob("{}")) == nullptr);
  CHECK(lines.upsert(kind_of("JobSet"), jobset_of_trainjob(1)) == nullptr);
  line = lines.upsert(kind_of("JobSet"), jobset_of_trainjob(2));
  REQUIRE(line);
  CHECK(line->devices == 12);
  CHECK(line->name() == "trainjob/llama");
  CHECK_FALSE(lines.remove("s1"));
  CHECK(lines.sorted().size() == 1);
  CHECK(lines.remove("t1"));
  CHECK(lines.sorted().empty());
}

TEST_CASE("a table of jobs") {
  const std::string queue = R"("uid":"t1","labels":{"kueue.x-k8s.io/queue-name":"gpus"})";
  const JobLine waiting = read_job_line(
      kind_of("TrainJob"),
      trainjob("{}", R"({"phase":"Queued","reason":"Quota","message":"no\nroom"})", queue));
  CHECK(waiting.waited(kNow) == 3'600);
  const JobLine running = read_job_line(
      kind_of("TrainJob"), trainjob("{}", R"({"phase":"Running","startTime":"2026-08-20T09:00:30Z",
               "nodes":{"total":2,"ready":2}})"));
  CHECK(running.waited(kNow) == 30);
  JobTable table({true, true});
  CHECK(table.first({waiting, running}, kNow) ==
        "NAMESPACE   JOB              STATE     NODES   GPUS   QUEUE   WAIT   AGE   REASON   "
        "MESSAGE\n"
        "team-a      trainjob/llama   Queued    -       -      gpus    60m    60m   Quota    no "
        "room\n"
        "team-a      trainjob/llama   Running   2/2     -      -       30s    60m   -        -\n");
  JobTable narrow({});
  CHECK(narrow.first({}, kNow) == "JOB   STATE   NODES   GPUS   QUEUE   WAIT   AGE\n");
  // A cell that is wider than its column moves the others of its row.
  CHECK(narrow.row(running, kNow) ==
        "trainjob/llama   Running   2/2     -      -       30s    60m\n");
  const Json value = waiting.to_json(kNow);
  CHECK(value.get_int("waitSeconds") == 3'600);
  CHECK(value.get_string("queue") == "gpus");
  CHECK(value.find("devices") == nullptr);
}

TEST_CASE("the order of jobs: unfinished first, then the newest") {
  JobLines lines(all_kinds());
  const auto add = [&lines](const char* name, const char* created, const char* phase) {
    Json job = trainjob("{}");
    job["metadata"].set("name", name).set("uid", name).set("creationTimestamp", created);
    Json condition = Json::object({{"type", phase}, {"status", "True"}});
    job["status"].set("phase", phase).set("conditions", Json::array({std::move(condition)}));
    REQUIRE(lines.upsert(kind_of("TrainJob"), job));
  };
  add("old", "2026-08-19T09:00:00Z", "Running");
  add("new", "2026-08-20T09:00:00Z", "Running");
  add("done", "2026-08-20T09:30:00Z", "Complete");
  add("failed", "2026-08-20T09:20:00Z", "Failed");
  std::vector<std::string> names;
  for (const JobLine& line : lines.sorted()) names.push_back(line.key.name);
  CHECK(names == std::vector<std::string>{"new", "old", "done", "failed"});
}

TEST_CASE("a job that cannot be suspended, resumed or cancelled says why") {
  const auto refusal = [](const char* kind, const Json& object, const char* verb) {
    return change_refusal(read_change_facts(all_kinds(), kind_of(kind), object), verb, "trainer")
        .value_or("");
  };
  CHECK(refusal("TrainJob", trainjob("{}"), "suspend").empty());
  CHECK(refusal("JobSet", jobset_of_trainjob(1), "suspend") ==
        "JobSet team-a/llama: it is a part of trainjob/llama, which would change it back: `trainer "
        "suspend trainjob/llama -n team-a` is about both");
  const std::string ended =
      R"({"phase":"Complete","conditions":[{"type":"Complete","status":"True"}]})";
  CHECK(refusal("TrainJob", trainjob("{}", ended), "resume") ==
        "TrainJob team-a/llama: it has ended (Complete): `trainer rerun trainjob/llama -n team-a` "
        "starts a copy");
  CHECK(refusal("TrainJob", trainjob("{}", ended), "cancel") ==
        "TrainJob team-a/llama: it has ended (Complete), so there is nothing to cancel: `kubectl "
        "delete` removes it");
  CHECK(refusal("TrainJob", trainjob("{}", "{}", R"("deletionTimestamp":"2026-08-20T09:10:00Z")"),
                "cancel") == "TrainJob team-a/llama: it is being deleted");
  const ChangeFacts part = read_change_facts(all_kinds(), kind_of("JobSet"), jobset_of_trainjob(1));
  CHECK(copy_refusal(part, "trainer"));
}

TEST_CASE("who else decides whether a job runs is said") {
  const auto facts = [](const char* kind, const Json& object) {
    return read_change_facts(all_kinds(), kind_of(kind), object);
  };
  const ChangeFacts own =
      facts("TrainJob",
            trainjob(R"({"suspend":true,"managedBy":"trainer.kubeflow.org/trainjob-controller"})"));
  CHECK(own.is_suspended);
  CHECK(suspend_notes(own, false).empty());
  const ChangeFacts other =
      facts("TrainJob", trainjob(R"({"managedBy":"kueue.x-k8s.io/multikueue"})"));
  CHECK(suspend_notes(other, true) ==
        std::vector<std::string>{"TrainJob team-a/llama: managedBy leaves it to "
                                 "kueue.x-k8s.io/multikueue, which decides what follows"});
  const ChangeFacts queued =
      facts("TrainJob", trainjob("{}", "{}", R"("labels":{"kueue.x-k8s.io/queue-name":"gpus"})"));
  CHECK(queued.queue == "gpus");
  CHECK(suspend_notes(queued, true).size() == 1);
  CHECK(suspend_notes(queued, false).size() == 1);
  Json job = trainjob(R"({"runPolicy":{"suspend":true,"managedBy":"kueue.x-k8s.io/multikueue"}})");
  const ChangeFacts v1 = facts("PyTorchJob", job);
  CHECK(v1.is_suspended);
  CHECK(v1.managed_by == "kueue.x-k8s.io/multikueue");
}

TEST_CASE("the name of a copy") {
  struct Row {
    std::string name;
    int tries;
    std::string copy;
  };
  const std::vector<Row> rows{
      {"llama", 0, "llama-r2"},
      {"llama", 3, "llama-r5"},
      {"llama-r2", 0, "llama-r3"},
      {"llama-r9", 1, "llama-r11"},
      {"llama-r1", 0, "llama-r1-r2"},
      {"llama-run", 0, "llama-run-r2"},
      {"-r2", 0, "-r2-r2"},
      {"resnet-50", 0, "resnet-50-r2"},
      {std::string(39, 'a'), 0, std::string(37, 'a') + "-r2"},
      {std::string(36, 'a') + "-bcd", 0, std::string(36, 'a') + "-r2"},
      {std::string(50, 'a'), 0, std::string(47, 'a') + "-r2"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(name_of_copy(row.name, row.tries) == row.copy);
  }
}

TEST_CASE("a copy of a job has nothing of the old run") {
  const Json before = trainjob(
      R"({"suspend":true,"runtimeRef":{"name":"torch-distributed"},"runtimePatches":[
      {"manager":"kueue.x-k8s.io/manager"},{"manager":"example.com/me"}]})",
      R"({"phase":"Complete"})",
      R"("uid":"t1","generation":3,"finalizers":["a"],"managedFields":[{}],"selfLink":"x",
      "ownerReferences":[{"kind":"CronJob"}],"generateName":"ll",
      "labels":{"team":"a","app.kubernetes.io/managed-by":"Helm","kueue.x-k8s.io/queue-name":"gpus",
        "kueue.x-k8s.io/prebuilt-workload-name":"w"},
      "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","note":"n",
        "trainer.kubeflow.org/finished":"{}","trainer.kubeflow.org/detect-hangs":"true"})");
  CHECK(copy_of_job(kind_of("TrainJob"), before, "llama-r2") == json(R"({
      "apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",
      "metadata":{"name":"llama-r2","namespace":"team-a",
        "labels":{"team":"a","kueue.x-k8s.io/queue-name":"gpus"},
        "annotations":{"note":"n","trainer.kubeflow.org/detect-hangs":"true"}},
      "spec":{"runtimeRef":{"name":"torch-distributed"},
        "runtimePatches":[{"manager":"example.com/me"}]}})"));
  const Json mpi = json(R"({"metadata":{"name":"m","annotations":{
      "trainer.kubeflow.org/created-version":"v2beta1"}},"spec":{"slotsPerWorker":2,
      "runPolicy":{"suspend":false,"backoffLimit":3}}})");
  CHECK(copy_of_job(kind_of("MPIJob", "v2beta1"), mpi, "m-r2") == json(R"({
      "apiVersion":"kubeflow.org/v2beta1","kind":"MPIJob","metadata":{"name":"m-r2"},
      "spec":{"slotsPerWorker":2,"runPolicy":{"backoffLimit":3}}})"));
}

TEST_CASE("what `trainer wait` waits for") {
  const auto state = [](std::string phase, bool is_finished = false, bool is_failed = false) {
    ObjectState made;
    made.phase = std::move(phase);
    made.is_finished = is_finished;
    made.is_failed = is_failed;
    return made;
  };
  struct Row {
    std::string goal;
    ObjectState state;
    WaitVerdict verdict;
  };
  using enum WaitVerdict;
  const ObjectState complete = state("Complete", true);
  const ObjectState failed = state("Failed", true, true);
  const std::vector<Row> rows{
      {"complete", state(""), kWaiting},
      {"complete", state("Running"), kWaiting},
      {"Complete", complete, kReached},
      {"complete", failed, kNever},
      {"failed", failed, kReached},
      {"failed", complete, kNever},
      // An MPIJob with an evicted worker may still succeed.
      {"failed", state("Failed", false, true), kWaiting},
      {"finished", complete, kReached},
      {"finished", failed, kReached},
      {"finished", state("Suspended"), kWaiting},
      {"running", state("Pending"), kWaiting},
      {"running", state("Running"), kReached},
      {"running", complete, kReached},
      {"running", failed, kNever},
      {"suspended", state("Suspended"), kWaiting},
      {"suspended", complete, kNever},
      {"phase=queued", state("Queued"), kReached},
      {"phase=Queued", state("Running"), kWaiting},
      {"phase=Queued", complete, kNever},
  };
  for (const Row& row : rows) {
    CAPTURE(row.goal, row.state.phase);
    const auto goal = read_wait_goal(row.goal);
    REQUIRE(goal);
    CHECK(check_wait(*goal, Json(), row.state, "Running") == row.verdict);
  }
  CHECK(check_wait(*read_wait_goal("running"), Json(), state("Active"), "Active") == kReached);
  // The phase of a job in a queue is another one.
  const Json suspended =
      json(R"({"status":{"conditions":[{"type":"Suspended","status":"True"}]}})");
  const WaitGoal goal = *read_wait_goal("suspended");
  CHECK(check_wait(goal, suspended, state("Queued"), "Running") == kReached);
  CHECK(check_wait(goal, suspended, complete, "Running") == kNever);
  for (const char* wrong : {"", "phase=", "phase", "done", "complete "})
    CHECK_FALSE(read_wait_goal(wrong));
}
