// A JobSet's dependent objects are read by name and not watched: when they are read again.
#include <set>

#include "kube/model/json_text.hh"
#include "tests/component/idle_manager.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

const std::string kDependentJob = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/n/trainjobs/j";
const std::string kGroup = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/n/podgroups/j";
const std::string kSnapshots = "/api/v1/namespaces/n/configmaps";
const std::string kDependentJobSet = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/n/jobsets/j";
const std::string kRuntime = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/rt";
const char* const kNotFound = R"({"kind":"Status","reason":"NotFound","code":404})";

std::string trainjob(int version, int generation, const std::string& status,
                     bool is_suspended = true) {
  return R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","metadata":{
    "name":"j","namespace":"n","uid":"u1","generation":)" +
         std::to_string(generation) + R"(,"resourceVersion":")" + std::to_string(version) +
         R"("},"spec":{"suspend":)" + (is_suspended ? "true" : "false") +
         R"(,"runtimeRef":{"name":"rt"}},"status":)" + status + "}";
}

const char* const kGangRuntime = R"({
  "apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"ClusterTrainingRuntime",
  "metadata":{"name":"rt","uid":"r","resourceVersion":"1"},
  "spec":{"mlPolicy":{"numNodes":1,"torch":{}},"podGroupPolicy":{"coscheduling":{}},
    "template":{"spec":{"replicatedJobs":[{"name":"node","template":{
      "metadata":{"labels":{"trainer.kubeflow.org/trainjob-ancestor-step":"trainer"}},
      "spec":{"template":{"spec":{"containers":[{"name":"node","image":"i"}]}}}}}]}}}})";

const std::string kServicesPath = "/api/v1/namespaces/n/services";
const char* const kCacheRuntime = R"({
  "apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"ClusterTrainingRuntime",
  "metadata":{"name":"rt","uid":"r","resourceVersion":"1"},
  "spec":{"template":{"spec":{"replicatedJobs":[{"name":"cache-initializer","template":{
      "metadata":{"labels":{"trainer.kubeflow.org/trainjob-ancestor-step":"cache-initializer"}},
      "spec":{"template":{"spec":{"containers":[{"name":"cache","image":"i"}]}}}}}]}}}})";

struct DependentsFixture : trainer::test::IdleManager {
  std::string runtime = kGangRuntime;
  std::string group = kNotFound;  // the answer about the group in the cluster
  std::string status = "{}";
  int version = 5;

  DependentsFixture() {
    api.on("GET", kRuntime).always().reply([this](const kube::ReceivedRequest&) {
      return kube::ScriptedReply(200, runtime);
    });
    api.on("GET", kGroup).always().reply([this](const kube::ReceivedRequest&) {
      return kube::ScriptedReply(group == kNotFound ? 404 : 200, group);
    });
    api.on("PATCH", kGroup).always().reply([](const kube::ReceivedRequest& request) {
      return kube::ScriptedReply(200, stored(request, "g"));
    });
    api.on("POST", kSnapshots).always().reply([this](const kube::ReceivedRequest& request) {
      snapshot = stored(request, "s");
      return kube::ScriptedReply(201, snapshot);
    });
    api.on("GET", kSnapshots + "/j-runtime-snapshot")
        .always()
        .reply([this](const kube::ReceivedRequest&) {
          return kube::ScriptedReply(snapshot.empty() ? 404 : 200,
                                     snapshot.empty() ? kNotFound : snapshot);
        });
    api.on("PATCH", kDependentJobSet).always().reply([this](const kube::ReceivedRequest& request) {
      jobset = stored(request, "js");
      return kube::ScriptedReply(200, jobset);
    });
    api.on("PATCH", kDependentJob + "/status")
        .always()
        .reply([this](const kube::ReceivedRequest& request) {
          status = kube::print_json(*kube::parse_json(request.body)->find("status"));
          ++version;
          return kube::ScriptedReply(200, trainjob(version, generation, status, is_suspended));
        });
    see();
  }
  static std::string stored(const kube::ReceivedRequest& request, const std::string& uid) {
    Json object = *kube::parse_json(request.body);
    object["metadata"].set("uid", uid).set("resourceVersion", "9").set("namespace", "n");
    return kube::print_json(object);
  }
  // The watch brings the current job.
  void see() { REQUIRE(trainjobs().upsert(trainjob(++version, generation, status, is_suspended))); }
  void see_jobset(const std::string& member, Json value) {
    Json object = *kube::parse_json(jobset);
    object["metadata"]
        .set("resourceVersion", std::to_string(100 + ++version))
        .set("creationTimestamp", "2025-01-01T00:00:00Z")
        .set("uid", jobset_uid);
    object.set(member, std::move(value));
    REQUIRE(jobsets().upsert(kube::print_json(object)));
  }
  // Returns whether the group was written since the last call.
  bool writes_group() { return writes().contains("PATCH " + kGroup); }
  // Returns what a reconcile has written.
  std::set<std::string> writes() {
    REQUIRE(reconcile("trainjob_controller", {"n", "j"}));
    std::set<std::string> written;
    for (; seen_ < api.log().size(); ++seen_) {
      const auto& request = api.log()[seen_];
      if (request.method != "GET") written.insert(request.method + " " + request.path);
    }
    return written;
  }

  int generation = 1;
  bool is_suspended = true;
  std::string jobset;
  std::string jobset_uid = "js";

 private:
  std::string snapshot;
  std::size_t seen_ = 0;
};

}  // namespace

TEST_CASE_METHOD(DependentsFixture,
                 "an object that has the name already is read again until it is gone") {
  group = R"({"kind":"PodGroup","metadata":{"name":"j","namespace":"n","uid":"x"}})";
  CHECK_FALSE(writes_group());
  CHECK_FALSE(writes_group());
  CHECK(status.find("ChildNameTaken") != std::string::npos);
  group = kNotFound;
  CHECK(writes_group());
}

TEST_CASE_METHOD(DependentsFixture,
                 "a deleted dependent object is created again with the next change of the job") {
  CHECK(writes_group());
  CHECK_FALSE(writes_group());
  CHECK_FALSE(writes_group());
  ++generation;
  see();
  CHECK(writes_group());
}

TEST_CASE_METHOD(DependentsFixture,
                 "one deleted under a running job is created again when pods start again") {
  is_suspended = false;
  see();
  CHECK(writes_group());
  CHECK_FALSE(writes_group());
  SECTION("a restart is counted") {
    see_jobset("status", Json::object({{"restarts", 1}}));
    CHECK(writes_group());
    // The JobSet is made again.
    jobset_uid = "js2";
    see_jobset("status", Json::object({{"restarts", 0}}));
    CHECK_FALSE(writes_group());
    see_jobset("status", Json::object({{"restarts", 1}}));
    CHECK(writes_group());
  }
  SECTION("the kubelet misses something") {
    api.on("GET", "/api/v1/namespaces/n/events").always().answer(200, R"({"kind":"EventList",
      "metadata":{"resourceVersion":"1"},"items":[{"type":"Warning","reason":"FailedMount",
        "message":"configmap not found","lastTimestamp":"2026-01-01T00:00:00Z"}]})");
    REQUIRE(pods().upsert(R"({"metadata":{"name":"j-node-0-0-x","namespace":"n","uid":"p",
      "resourceVersion":"11","labels":{"jobset.sigs.k8s.io/jobset-name":"j",
        "jobset.sigs.k8s.io/jobset-uid":"js","jobset.sigs.k8s.io/replicatedjob-name":"node",
        "jobset.sigs.k8s.io/job-index":"0","jobset.sigs.k8s.io/restart-attempt":"0"}},
      "spec":{"nodeName":"m"},"status":{"phase":"Pending"}})"));
    see_jobset("status", Json::object());
    CHECK(writes_group());
    CHECK(status.find("configmap not found") != std::string::npos);
  }
  CHECK_FALSE(writes_group());
}

TEST_CASE("a CA that replaces another enqueues the jobs whose pods trust it") {
  KindOptions options = trainer::test::own_jobsets();
  options.configuration.featureGates.TrainJobStatus = true;
  trainer::test::IdleManager idle(options);
  REQUIRE(idle.trainjobs().upsert(trainjob(6, 1, "{}")));
  idle.enqueued.clear();
  options.server->set_ca("old");  // the first: no pod trusts any
  options.server->set_ca("old");
  CHECK(idle.enqueued.empty());
  options.server->set_ca("new+old");
  CHECK(idle.enqueued == std::vector<std::string>{"trainjob_controller n/j for counters"});
}

TEST_CASE_METHOD(DependentsFixture,
                 "the Service of a data cache is created once, and read afterwards") {
  runtime = kCacheRuntime;
  Json created;
  api.on("POST", kServicesPath).always().reply([&created](const kube::ReceivedRequest& request) {
    created = *kube::parse_json(request.body);
    return kube::ScriptedReply(201, stored(request, "sv"));
  });
  api.on("GET", kServicesPath + "/j-cache-service")
      .always()
      .reply([&created](const kube::ReceivedRequest&) {
        return kube::ScriptedReply(200, kube::print_json(created));
      });
  CHECK(writes().contains("POST " + kServicesPath));
  CHECK(kube::ObjectMeta::of(created).controller()->uid == "u1");
  CHECK_FALSE(writes().contains("POST " + kServicesPath));
  ++generation;
  see();
  CHECK_FALSE(writes().contains("POST " + kServicesPath));
}
