// Owner references of other namespaces do not count, and little is kept of objects that others
// wrote.
#include <string>
#include <vector>

#include "api/api.hh"
#include "kube/model/json_text.hh"
#include "tests/component/idle_manager.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

const std::string kOwnedJobSet = R"({"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet",
    "metadata":{"name":"js","namespace":"n","uid":"u1","resourceVersion":"5"},
    "spec":{"replicatedJobs":[{"name":"w","replicas":1,"groupName":"default","template":{"spec":{"ttlSecondsAfterFinished":60,
      "template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}}]},
    "status":{"replicatedJobsStatus":[
      {"name":"w","ready":0,"succeeded":0,"failed":0,"active":0,"suspended":0}]}})";

// Job js-w-0 of JobSet js, by its owner reference, in a namespace.
std::string owned_job(const std::string& ns, const std::string& version,
                      const std::string& condition) {
  return R"({"metadata":{"name":"js-w-0","namespace":")" + ns + R"(","uid":"u-)" + ns +
         R"(","resourceVersion":")" + version +
         R"(","labels":{"jobset.sigs.k8s.io/jobset-name":"js",
           "jobset.sigs.k8s.io/replicatedjob-name":"w","jobset.sigs.k8s.io/job-index":"0",
           "jobset.sigs.k8s.io/restart-attempt":"0"},
         "ownerReferences":[{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"js",
           "uid":"u1","controller":true}]},
         "spec":{"suspend":true},"status":{"conditions":[{"type":")" +
         condition + R"(","status":"True"}]}})";
}

struct OwnersFixture : trainer::test::IdleManager {
  const std::string jobs_path = "/apis/batch/v1/namespaces/n/jobs";
  OwnersFixture() {
    REQUIRE(jobsets().upsert(kOwnedJobSet));
    enqueued.clear();
    api.on("PATCH", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/n/jobsets/js/status")
        .always()
        .answer(200, "{}");
    api.on("POST", jobs_path).always().answer(201, "{}");
  }
  // Returns what a reconcile of the JobSet creates; its status has no end.
  std::vector<std::string> written() {
    REQUIRE(reconcile("jobset", {"n", "js"}));
    std::vector<std::string> lines;
    for (const auto& request : api.log()) {
      if (request.method == "POST") lines.push_back(request.method + " " + request.path);
      if (request.method != "PATCH") continue;
      CHECK(request.body.find("\"Failed\"") == std::string::npos);
      CHECK(request.body.find("\"Completed\"") == std::string::npos);
    }
    return lines;
  }
};

}  // namespace

TEST_CASE_METHOD(OwnersFixture,
                 "a Job of another namespace that names a JobSet's uid does not fail it") {
  REQUIRE(jobs().upsert(owned_job("elsewhere", "10", "FailureTarget")));
  CHECK(enqueued.empty());
  CHECK(written() == std::vector<std::string>{"POST " + jobs_path});
}

TEST_CASE_METHOD(OwnersFixture,
                 "a JobSet that was made again is reconciled when an old child is gone") {
  std::string old = owned_job("n", "10", "FailureTarget");
  old.replace(old.find("\"u1\""), 4, "\"u0\"");
  REQUIRE(jobs().upsert(old));
  CHECK(enqueued.empty());
  old.replace(old.find("\"10\""), 4, "\"11\"");
  REQUIRE(jobs().remove(old));
  CHECK(enqueued == std::vector<std::string>{"jobset n/js soon"});
}

TEST_CASE_METHOD(OwnersFixture, "a JobSet is reconciled when a Job is not its own any more") {
  std::string own = owned_job("n", "10", "Suspended");
  REQUIRE(jobs().upsert(own));
  enqueued.clear();
  own.replace(own.find("\"u1\""), 4, "\"u0\"");
  own.replace(own.find("\"10\""), 4, "\"11\"");
  REQUIRE(jobs().upsert(own));
  CHECK(enqueued == std::vector<std::string>{"jobset n/js now"});
}

TEST_CASE_METHOD(OwnersFixture,
                 "a Job that was complete and deleted elsewhere does not complete it") {
  REQUIRE(jobs().upsert(owned_job("elsewhere", "10", "Complete")));
  REQUIRE(jobs().remove(owned_job("elsewhere", "11", "Complete")));
  CHECK(enqueued.empty());
  CHECK(written() == std::vector<std::string>{"POST " + jobs_path});
}

TEST_CASE_METHOD(OwnersFixture, "a Job of the JobSet's namespace counts") {
  REQUIRE(jobs().upsert(owned_job("n", "10", "Complete")));
  REQUIRE(jobs().remove(owned_job("n", "11", "Complete")));
  CHECK(enqueued == std::vector<std::string>{"jobset n/js now", "jobset n/js now"});
  REQUIRE(reconcile("jobset", {"n", "js"}));
  for (const auto& request : api.log()) CHECK(request.path != jobs_path);  // not made again
}

TEST_CASE_METHOD(OwnersFixture, "a Service elsewhere enqueues nothing") {
  auto& services = cache<kube::StoredObject>(all_of(kube::kServices));
  const auto service = [](const std::string& ns) {
    return R"({"metadata":{"name":"s","namespace":")" + ns +
           R"(","uid":"s","resourceVersion":"7","ownerReferences":[{"kind":"JobSet","uid":"u1","controller":true}]}})";
  };
  for (const std::string ns : {"elsewhere", "n"}) {
    REQUIRE(services.upsert(service(ns)));
    REQUIRE(services.remove(service(ns)));
  }
  CHECK(enqueued == std::vector<std::string>{"jobset n/js now"});
}

TEST_CASE_METHOD(OwnersFixture, "a long text is compressed also while its job runs") {
  std::string large = kOwnedJobSet;
  large.insert(large.rfind('}'), R"(,"more":")" + std::string(1'400'000, 'x') + "\"");
  large.replace(large.find("\"5\""), 3, "\"6\"");
  REQUIRE(jobsets().upsert(large));
  const auto stored = jobsets().find({"n", "js"});
  CHECK(stored->body.size() > 1'400'000);
  CHECK(stored->body.stored_size() < 20'000);
  CHECK(stored->object()->get_string("more").size() == 1'400'000);
}

TEST_CASE("an object of far more values than one of its size has is not decoded") {
  std::string text =
      R"({"metadata":{"name":"a","namespace":"n","resourceVersion":"1"},"spec":{"x":[0)";
  for (int i = 0; i < 400'000; ++i) text += ",0";
  const auto stored = kube::StoredObjectTransform(kJobSets)(text + "]}}");
  REQUIRE(stored);  // its name is known, so that a Warning can name it
  CHECK(stored->object()->is_null());
}
