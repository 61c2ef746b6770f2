// PersistentVolumeClaims of JobSets are not watched: when they are read, and created again.
#include <algorithm>

#include "kube/model/json_text.hh"
#include "tests/component/idle_manager.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

const std::string kClaim = "/api/v1/namespaces/n/persistentvolumeclaims/data-js";
const std::string kClaims = "/api/v1/namespaces/n/persistentvolumeclaims";
const std::string kJobsPath = "/apis/batch/v1/namespaces/n/jobs";

// A JobSet whose status an earlier process has written.
std::string jobset_text(const std::string& version = "5") {
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

struct ClaimsFixture : trainer::test::IdleManager {
  ClaimsFixture() {
    REQUIRE(jobsets().upsert(jobset_text()));
    api.on("PATCH", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/n/jobsets/js/status")
        .always()
        .answer(200, "{}");
    // The API server answers a create in this way.
    api.on("POST", kJobsPath).always().reply([this](const kube::ReceivedRequest& request) {
      auto made = *kube::parse_json(request.body);
      made["metadata"].set("uid", "u2").set("resourceVersion", "9").set("namespace", "n");
      made_job_ = kube::print_json(made);
      return kube::ScriptedReply(201, made_job_);
    });
  }
  kube::Result<kube::Requeue> reconcile() { return IdleManager::reconcile("jobset", {"n", "js"}); }
  // The requests since the last call, except statuses.
  std::vector<std::string> asked() {
    std::vector<std::string> lines;
    for (; seen_ < api.log().size(); ++seen_) {
      const auto& request = api.log()[seen_];
      if (request.method != "PATCH") lines.push_back(request.method + " " + request.path);
    }
    return lines;
  }
  void remove_jobset() {
    CHECK(jobsets().remove(
        R"({"metadata":{"name":"js","namespace":"n","uid":"u1","resourceVersion":"6"}})"));
  }
  // The Job controller counts one more failed pod.
  void fail_pod() {
    auto job = *kube::parse_json(made_job_);
    job["metadata"].set("resourceVersion", "11");
    job["status"].set("failed", 1).set("active", 1);
    REQUIRE(jobs().upsert(kube::print_json(job)));
  }
  void remove_job() {
    REQUIRE(jobs().find_by(kByOwner, "n", "u1").size() == 1);
    REQUIRE(jobs().remove(
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

TEST_CASE_METHOD(ClaimsFixture, "claims are read once, and again before new pods start") {
  api.on("GET", kClaim).answer(200, kFound);
  REQUIRE(reconcile());
  CHECK(asked() == Lines{"GET " + kClaim, "POST " + kJobsPath});
  REQUIRE(reconcile());
  CHECK(asked().empty());

  // Job and claim are deleted: the claim is created first.
  remove_job();
  api.on("GET", kClaim).answer(404, R"({"kind":"Status","reason":"NotFound","code":404})");
  api.on("POST", kClaims).answer(201, kFound);
  REQUIRE(reconcile());
  CHECK(asked() == Lines{"GET " + kClaim, "POST " + kClaims, "POST " + kJobsPath});
}

TEST_CASE_METHOD(ClaimsFixture, "a claim that is being deleted is waited for") {
  api.on("GET", kClaim).always().answer(200, kEnding);
  api.on("POST", kClaims)
      .answer(409, R"({"kind":"Status","reason":"AlreadyExists","code":409,"message":"exists"})");
  const auto done = reconcile();
  REQUIRE_FALSE(done);
  CHECK_THAT(done.error().message, Catch::Contains("still being deleted"));
  // No Job is created: its pods could not start.
  CHECK(asked() == Lines{"GET " + kClaim, "POST " + kClaims, "GET " + kClaim});
}

TEST_CASE_METHOD(ClaimsFixture,
                 "the claim of a JobSet before it, which goes with that, is waited for") {
  std::string deletes = jobset_text("6");
  deletes.replace(deletes.find("Retain"), 6, "Delete");
  REQUIRE(jobsets().upsert(deletes));
  api.on("GET", kClaim).answer(404, R"({"kind":"Status","reason":"NotFound","code":404})");
  api.on("POST", kClaims)
      .answer(409, R"({"kind":"Status","reason":"AlreadyExists","code":409,"message":"exists"})");
  const std::string claim =
      R"({"kind":"PersistentVolumeClaim","metadata":{"name":"data-js",)"
      R"("ownerReferences":[{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet",)"
      R"("name":"js","uid":"before","controller":true}]}})";
  api.on("GET", kClaim).answer(200, claim);
  const auto done = reconcile();
  REQUIRE_FALSE(done);
  CHECK_THAT(done.error().message, Catch::Contains("is controlled by JobSet js (uid before)"));
  CHECK(done.error().retry_within == std::chrono::seconds(60));
  // The next try does not take it for the JobSet's own, either.
  api.on("GET", kClaim).answer(200, claim).times(2);
  api.on("POST", kClaims)
      .answer(409, R"({"kind":"Status","reason":"AlreadyExists","code":409,"message":"exists"})");
  asked();
  CHECK_FALSE(reconcile());
  CHECK(asked() == Lines{"GET " + kClaim, "POST " + kClaims, "GET " + kClaim});
}

TEST_CASE_METHOD(ClaimsFixture,
                 "an ended JobSet's claims are not read, nor those of one that is stopped") {
  std::string ended = jobset_text("6");
  SECTION("it has ended") {
    ended.insert(ended.find("\"replicatedJobsStatus\""),
                 R"("terminalState":"Completed","conditions":[{"type":"Completed",)"
                 R"("status":"True","reason":"r","message":"m"}],)");
    REQUIRE(jobsets().upsert(ended));
    REQUIRE(reconcile());
    CHECK(asked().empty());
  }
  SECTION("its Jobs are stopped") {
    api.on("GET", kClaim).answer(200, kFound);
    REQUIRE(reconcile());
    CHECK(asked() == Lines{"GET " + kClaim, "POST " + kJobsPath});
    api.on("PATCH", kJobsPath + "/js-w-0").always().answer(200, "{}");
    ended.insert(ended.find("\"replicatedJobs\""), R"("suspend":true,)");
    REQUIRE(jobsets().upsert(ended));
    REQUIRE(reconcile());
    CHECK(asked().empty());
  }
}

TEST_CASE_METHOD(ClaimsFixture,
                 "the claims of a JobSet that is deleted while they are read are forgotten") {
  SECTION("a claim that exists") {
    api.on("GET", kClaim).reply([this](const kube::ReceivedRequest&) {
      remove_jobset();
      return kube::ScriptedReply(200, kFound);
    });
    // A claim created for it now would never be garbage collected.
    REQUIRE(reconcile());
    REQUIRE_FALSE(jobsets().find({"n", "js"}));
    CHECK(asked() == Lines{"GET " + kClaim});
  }
  SECTION("a claim that is created") {
    api.on("GET", kClaim).answer(404, R"({"kind":"Status","reason":"NotFound","code":404})");
    api.on("POST", kClaims).reply([this](const kube::ReceivedRequest&) {
      remove_jobset();
      return kube::ScriptedReply(201, kFound);
    });
    REQUIRE(reconcile());
    REQUIRE_FALSE(jobsets().find({"n", "js"}));
    CHECK(asked().front() == "GET " + kClaim);
  }

  // When it is created again, the claims are read again.
  REQUIRE(jobsets().upsert(jobset_text("7")));
  api.on("GET", kClaim).answer(200, kFound);
  REQUIRE(reconcile());
  CHECK(asked().front() == "GET " + kClaim);
}

TEST_CASE_METHOD(
    ClaimsFixture,
    "a failed pod is replaced without a write of this process: claims are read again") {
  api.on("GET", kClaim).answer(200, kFound);
  REQUIRE(reconcile());
  REQUIRE(reconcile());
  CHECK(asked() == Lines{"GET " + kClaim, "POST " + kJobsPath});

  api.on("GET", kClaim).answer(404, R"({"kind":"Status","reason":"NotFound","code":404})");
  api.on("POST", kClaims).answer(201, kFound);
  fail_pod();
  REQUIRE(reconcile());
  CHECK(asked() == Lines{"GET " + kClaim, "POST " + kClaims});
  REQUIRE(reconcile());
  CHECK(asked().empty());
}
