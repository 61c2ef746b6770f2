// A JobSet of so many Jobs that its reconcile takes several steps.
#include <fmt/format.h>

#include "kube/client/task_group.hh"
#include "kube/client/yield.hh"
#include "tests/component/idle_manager.hh"
#include "tests/support/catch.hh"

using namespace trainer;

namespace {

constexpr int kJobCount = 20'001;

std::string job_text(int index, int version) {
  return fmt::format(
      R"({{"metadata":{{"name":"js-w-{0}","namespace":"n","uid":"j{0}","resourceVersion":"{1}","labels":{{
      "jobset.sigs.k8s.io/jobset-name":"js","jobset.sigs.k8s.io/replicatedjob-name":"w",
      "jobset.sigs.k8s.io/job-index":"{0}","jobset.sigs.k8s.io/restart-attempt":"0"}},
      "ownerReferences":[{{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"js","uid":"u1","controller":true}}]}},
      "spec":{{"parallelism":1}},"status":{{"succeeded":1,"conditions":[{{"type":"Complete","status":"True"}}]}}}})",
      index, version);
}

struct LargeJobsetFixture : trainer::test::IdleManager {
  int turns = 0;

  // It gets a turn before the reconcile and one after each of its steps. It removes a Job once the
  // reconcile has seen them all.
  kube::Task<void> take_turns() {
    while (true) {
      if (++turns == 3) jobs().remove(job_text(7, 30'000));
      co_await kube::yield();
    }
  }
};

}  // namespace

TEST_CASE_METHOD(LargeJobsetFixture, "others have their turn while very many Jobs are sorted") {
  REQUIRE(jobsets().upsert(fmt::format(
      R"({{"metadata":{{"name":"js","namespace":"n","uid":"u1","resourceVersion":"5"}},"spec":{{
      "network":{{"enableDNSHostnames":false}},"replicatedJobs":[{{"name":"w","replicas":{},"template":{{"spec":{{}}}}}}]}}}})",
      kJobCount)));
  for (int i = 0; i < kJobCount; ++i) REQUIRE(jobs().upsert(job_text(i, 100 + i)));
  api.on("PATCH", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/n/jobsets/js/status")
      .answer(200, "{}");
  kube::TaskGroup others(io.get_executor(), nullptr);
  others.spawn("others", take_turns());
  const auto reconciled = reconcile("jobset", {"n", "js"});
  INFO((reconciled ? std::string() : reconciled.error().message));
  REQUIRE(reconciled);
  others.cancel();
  kube::run_task(io, others.join());
  CHECK(turns > 3);
  // The state at the start has decided: all Jobs are complete.
  REQUIRE(api.log().size() == 1);
  CHECK(api.log()[0].body.find(R"("terminalState":"Completed")") != std::string::npos);
  CHECK(api.log()[0].body.find(fmt::format(R"("succeeded":{})", kJobCount)) != std::string::npos);
}
