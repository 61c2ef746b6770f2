// Runtimes that have the finalizer of an earlier Trainer.
#include "controller/kinds/trainjob/legacy_finalizers.hh"

#include "api/runtime.hh"
#include "kube/client/task_group.hh"
#include "kube/model/json_text.hh"
#include "kube/tests/run_task.hh"
#include "kube/tests/scripted_peer.hh"
#include "tests/component/captured_errors.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;

namespace {

const std::string kLegacyRuntimePath =
    "/apis/trainer.kubeflow.org/v1alpha1/namespaces/n/trainingruntimes/old";

std::string runtime(const std::string& name, const std::string& finalizers) {
  return R"({"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainingRuntime","metadata":{)"
         R"("namespace":"n","uid":"u","resourceVersion":"5","name":")" +
         name + R"(","finalizers":)" + finalizers + R"(},"spec":{}})";
}

struct LegacyFinalizersFixture : kube::test::ScriptedPeer {
  StoredCache runtimes{kube::StoredObjectTransform(kTrainingRuntimes)};
  StoredCache cluster_runtimes{kube::StoredObjectTransform(kClusterTrainingRuntimes)};
  LegacyFinalizers finalizers{io, client, runtimes, &cluster_runtimes, true, log};
  kube::TaskGroup tasks{io.get_executor(), [](std::string_view, std::string_view) {}};

  bool wait_for(std::size_t requests) {
    return kube::run_until(io, [&] { return api.log().size() >= requests; });
  }
  ~LegacyFinalizersFixture() {
    tasks.cancel();
    kube::run_task(io, tasks.join());
  }
};

}  // namespace

TEST_CASE("the patch removes one finalizer and keeps the others") {
  const auto patch = without_legacy_finalizer(
      *kube::parse_json(runtime("old", R"(["a/b","trainer.kubeflow.org/resource-in-use"])")));
  REQUIRE(patch);
  CHECK(kube::print_json(*patch) == R"({"metadata":{"finalizers":["a/b"],"resourceVersion":"5"}})");
  CHECK_FALSE(without_legacy_finalizer(*kube::parse_json(runtime("new", R"(["a/b"])"))));
  CHECK_FALSE(without_legacy_finalizer(*kube::parse_json(R"({"metadata":{"finalizers":[7]}})")));
  CHECK_FALSE(without_legacy_finalizer(Json()));
}

TEST_CASE_METHOD(LegacyFinalizersFixture,
                 "the finalizer is removed from every runtime, also from new ones") {
  REQUIRE(runtimes.upsert(runtime("new", "[]")));
  REQUIRE(runtimes.upsert(runtime("old", R"(["trainer.kubeflow.org/resource-in-use"])")));
  api.on("PATCH", kLegacyRuntimePath).always().answer(200, runtime("old", "[]"));
  tasks.spawn("finalizers", finalizers.run());
  REQUIRE(wait_for(1));
  CHECK(api.log()[0].method == "PATCH");
  CHECK(api.log()[0].body == R"({"metadata":{"finalizers":[],"resourceVersion":"5"}})");

  finalizers.changed({"n", "new"});  // only what has changed is read
  kube::settle(io);
  CHECK(api.log().size() == 1);
  finalizers.changed({"n", "old"});  // the event of the write has not come yet
  REQUIRE(wait_for(2));
}

TEST_CASE_METHOD(LegacyFinalizersFixture,
                 "where that is not enabled nothing is patched, and one warning says so") {
  const test::CapturedErrors errors;
  const kube::Log warnings{kube::LogLevel::kWarn, kube::Log::Format::kText};
  LegacyFinalizers idle{io, client, runtimes, &cluster_runtimes, false, warnings};
  for (const char* name : {"old", "older"})
    REQUIRE(runtimes.upsert(runtime(name, R"(["trainer.kubeflow.org/resource-in-use"])")));
  tasks.spawn("finalizers", idle.run());
  REQUIRE(kube::run_until(io, [this] { return clock.timers() > 0; }));
  CHECK(errors.count("removeLegacyFinalizers") == 1);
  CHECK(api.log().empty());
  tasks.cancel();  // it borrows objects of this test only
  kube::run_task(io, tasks.join());
}
