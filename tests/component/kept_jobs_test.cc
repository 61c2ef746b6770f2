// A restart keeps these Jobs: each gets one patch, and the next reconcile sees the answer.
#include <algorithm>

#include "kube/model/json_text.hh"
#include "tests/component/idle_manager.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

const std::string kKeptJobsPath = "/apis/batch/v1/namespaces/n/jobs/";

// Its one restart is counted, and nothing else has been done for it.
constexpr const char* kKeptJobSet =
    R"({"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet",
    "metadata":{"name":"js","namespace":"n","uid":"u1","resourceVersion":"5",
      "annotations":{"trainer.kubeflow.org/kept-on-restart":"data"}},
    "spec":{"failurePolicy":{"maxRestarts":1},"replicatedJobs":[
      {"name":"data","template":{"spec":{"template":{"spec":{}}}}},
      {"name":"node","template":{"spec":{"template":{"spec":{}}}},
       "dependsOn":[{"name":"data","status":"Complete"}]}]},
    "status":{"restarts":1,"restartsCountTowardsMax":1}})";

std::string kept_job(const std::string& replicated_job, const std::string& ending,
                     const std::string& attempt) {
  return R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"js-)" + replicated_job +
         R"(-0","namespace":"n","uid":"of-)" + replicated_job + R"(","resourceVersion":"1)" +
         attempt +
         R"(","labels":{"jobset.sigs.k8s.io/jobset-name":"js","jobset.sigs.k8s.io/job-index":"0",
      "jobset.sigs.k8s.io/replicatedjob-name":")" +
         replicated_job + R"(","jobset.sigs.k8s.io/restart-attempt":")" + attempt +
         R"("},"ownerReferences":[{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet",
      "name":"js","uid":"u1","controller":true}]},
    "spec":{},"status":{"conditions":[{"type":")" +
         ending + R"(","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}})";
}

}  // namespace

TEST_CASE_METHOD(trainer::test::IdleManager, "a kept Job gets the label of the attempt, once") {
  REQUIRE(jobsets().upsert(kKeptJobSet));
  REQUIRE(jobs().upsert(kept_job("data", "Complete", "0")));
  REQUIRE(jobs().upsert(kept_job("node", "Failed", "0")));
  api.on("PATCH", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/n/jobsets/js/status")
      .always()
      .answer(200, "{}");
  api.on("DELETE", kKeptJobsPath + "js-node-0").always().answer(200, "{}");
  api.on("PATCH", kKeptJobsPath + "js-data-0")
      .always()
      .answer(200, kept_job("data", "Complete", "1"));
  REQUIRE(reconcile("jobset", {"n", "js"}));
  REQUIRE(reconcile("jobset", {"n", "js"}));
  std::vector<Json> patches;
  for (const auto& request : api.log()) {
    CHECK_FALSE((request.method == "DELETE" && request.path != kKeptJobsPath + "js-node-0"));
    if (request.path == kKeptJobsPath + "js-data-0")
      patches.push_back(*kube::parse_json(request.body));
  }
  REQUIRE(patches.size() == 1);
  CHECK(patches[0] == *kube::parse_json(R"({"metadata":{"resourceVersion":"10",
          "labels":{"jobset.sigs.k8s.io/restart-attempt":"1"},
          "annotations":{"jobset.sigs.k8s.io/restart-attempt":"1"}}})"));
}
