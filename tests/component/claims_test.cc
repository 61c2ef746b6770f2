// PersistentVolumeClaims of JobSets, which nobody watches: when they are asked for, and made again.
#include <algorithm>

#include "controller/core/jobset_reconciler.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "kube/tests/run_task.hh"
#include "tests/component/listeners.hh"
#include "tests/component/peer.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

const std::string kClaim = "/api/v1/namespaces/n/persistentvolumeclaims/data-js";
const std::string kube::kPersistentVolumeClaims = "/api/v1/namespaces/n/persistentvolumeclaims";
const std::string kJobsPath = "/apis/batch/v1/namespaces/n/jobs";

// One of which a controller before us has written the status.
std::string jobset(const std::string& version = "5") {
  return R"({"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet",
    "metadata":{"name":"js","namespace":"n","uid":"u1","resourceVersion":")" +
         version + R"("},
    "spec":{
      "replicatedJobs":[{"name":"w","replicas":1,"groupName":"default","template":{"spec":{"template":{"spec":{
        "containers":[{"name":"c","image":"i","volumeMounts":[{"name":"data","mountPath":"/d"}]}]}}}}}],
      "volumeClaimPolicies":[{"templates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"]}}],
        "retentionPolicy":{"whenDeleted":"Retain"}}]},
    "status":{"replicatedJobsStatus":[
      {"name":"w","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0}]}})";
}

struct Fixture : trainer::test::ScriptedPeer {
  JobSetReconciler* reconciler_ = nullptr;
  Stores stores{listeners()};
  Executor executor{io, client, stores, log, 4};
  kube::EventRecorder events{client, "trainer"};
  PlanRunner plan_runner{executor, events, clock, log};
  JobSetOwnership ownership{JobSetControllerMode::kOwn};
  JobSetReconciler reconciler{stores, client, plan_runner, ownership, jobset::Gates(), clock};

  Fixture() {
    reconciler_ = &reconciler;
    REQUIRE(stores.jobsets.upsert(jobset()));
    api.on("PATCH", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/n/jobsets/js/status")
        .always()
        .answer(200, "{}");
    // As the API server answers a create.
    api.on("POST", kJobsPath).always().reply([this](const kube::ReceivedRequest& request) {
      auto made = *kube::parse_json(request.body);
      made["metadata"].set("uid", "u2").set("resourceVersion", "9").set("namespace", "n");
      made_job_ = kube::print_json(made);
      return kube::ScriptedReply(201, made_job_);
    });
  }
  Stores::Listeners listeners() {
    Stores::Listeners all = trainer::test::deaf_listeners();
    all.jobset_gone = [this](const StoredObject& last) { reconciler_->forget(last.uid); };
    return all;
  }
  kube::Result<Requeue> reconcile() {
    return kube::run_task(io, reconciler.reconcile({"n", "js"}));
  }
  // What was asked since the last call, statuses left out.
  std::vector<std::string> asked() {
    std::vector<std::string> lines;
    for (; seen_ < api.log().size(); ++seen_) {
      const auto& request = api.log()[seen_];
      if (request.method != "PATCH") lines.push_back(request.method + " " + request.path);
    }
    return lines;
  }
  void remove_jobset() {
    CHECK(stores.jobsets.remove(
        R"({"metadata":{"name":"js","namespace":"n","uid":"u1","resourceVersion":"6"}})"));
  }
  // The Job controller counts one more.
  void fail_pod() {
    auto job = *kube::parse_json(made_job_);
    job["metadata"].set("resourceVersion", "11");
    job["status"].set("failed", 1).set("active", 1);
    REQUIRE(stores.jobs.upsert(kube::print_json(job)));
  }
  void remove_job() {
    const auto jobs = stores.jobs_of("u1");
    REQUIRE(jobs.size() == 1);
    REQUIRE(stores.jobs.remove(
        R"({"metadata":{"name":"js-w-0","namespace":"n","uid":"u2","resourceVersion":"10"}})"));
  }

 private:
  std::size_t seen_ = 0;
  std::string made_job_;
};

using Lines = std::vector<std::string>;
const std::string kFound = R"({"kind":"PersistentVolumeClaim","metadata":{"name":"data-js"}})";
const std::string kEnding =
    R"({"kind":"PersistentVolumeClaim","metadata":{"name":"data-js","deletionTimestamp":"2026-01-01T00:00:00Z"}})";

}  // namespace

TEST_CASE_METHOD(Fixture, "claims are asked for once, and again before pods start anew") {
  api.on("GET", kClaim).answer(200, kFound);
  REQUIRE(reconcile());
  CHECK(asked() == Lines{"GET " + kClaim, "POST " + kJobsPath});
  REQUIRE(reconcile());
  CHECK(asked().empty());

  // The Job and the claim go: the claim is made first.
  remove_job();
  api.on("GET", kClaim).answer(404, R"({"kind":"Status","reason":"NotFound","code":404})");
  api.on("POST", kube::kPersistentVolumeClaims).answer(201, kFound);
  REQUIRE(reconcile());
  CHECK(asked() ==
        Lines{"GET " + kClaim, "POST " + kube::kPersistentVolumeClaims, "POST " + kJobsPath});
}

TEST_CASE_METHOD(Fixture, "a claim that is being deleted is waited for") {
  api.on("GET", kClaim).always().answer(200, kEnding);
  api.on("POST", kube::kPersistentVolumeClaims)
      .answer(409, R"({"kind":"Status","reason":"AlreadyExists","code":409,"message":"exists"})");
  const auto done = reconcile();
  REQUIRE_FALSE(done);
  CHECK_THAT(done.error().message, Catch::Contains("still being deleted"));
  // No Job, whose pods could only wait.
  CHECK(asked() ==
        Lines{"GET " + kClaim, "POST " + kube::kPersistentVolumeClaims, "GET " + kClaim});
}

TEST_CASE_METHOD(Fixture, "a JobSet that goes while its claims are asked for is forgotten") {
  SECTION("one that stands") {
    api.on("GET", kClaim).reply([this](const kube::ReceivedRequest&) {
      remove_jobset();
      return kube::ScriptedReply(200, kFound);
    });
    // A claim made for it now might stay for ever.
    REQUIRE(reconcile());
    REQUIRE_FALSE(stores.jobsets.find({"n", "js"}));
    CHECK(asked() == Lines{"GET " + kClaim});
  }
  SECTION("one that is made") {
    api.on("GET", kClaim).answer(404, R"({"kind":"Status","reason":"NotFound","code":404})");
    api.on("POST", kube::kPersistentVolumeClaims).reply([this](const kube::ReceivedRequest&) {
      remove_jobset();
      return kube::ScriptedReply(201, kFound);
    });
    REQUIRE(reconcile());
    REQUIRE_FALSE(stores.jobsets.find({"n", "js"}));
    CHECK(asked().front() == "GET " + kClaim);
  }

  // Should it come back, nothing that was learnt of it holds any more.
  REQUIRE(stores.jobsets.upsert(jobset("7")));
  api.on("GET", kClaim).answer(200, kFound);
  REQUIRE(reconcile());
  CHECK(asked().front() == "GET " + kClaim);
}

TEST_CASE_METHOD(Fixture,
                 "a pod that failed is replaced without a write of ours: claims are asked for") {
  api.on("GET", kClaim).answer(200, kFound);
  REQUIRE(reconcile());
  REQUIRE(reconcile());
  CHECK(asked() == Lines{"GET " + kClaim, "POST " + kJobsPath});

  api.on("GET", kClaim).answer(404, R"({"kind":"Status","reason":"NotFound","code":404})");
  api.on("POST", kube::kPersistentVolumeClaims).answer(201, kFound);
  fail_pod();
  REQUIRE(reconcile());
  CHECK(asked() == Lines{"GET " + kClaim, "POST " + kube::kPersistentVolumeClaims});
  REQUIRE(reconcile());
  CHECK(asked().empty());
}
