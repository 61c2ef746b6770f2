// Admission of local mode: the rules of the webhooks, without webhooks.
#include "api/kinds/kinds.hh"
#include "controller/kinds/registry.hh"
#include "controller/local/admit.hh"
#include "local/kinds/kinds.hh"
#include "local/tests/local_server_fixture.hh"
#include "runtimes/builtin/builtin_runtimes.hh"

using namespace trainer;
using kube::Json;

namespace {

// The production rules and kinds.
struct Ruled : test::LocalServerFixture {
  Ruled() {
    KindOptions kinds;
    kinds.configuration.jobsetController.mode = JobSetControllerMode::kOwn;
    LocalServerOptions options;
    options.make_admission = [this, rules = production_registry(kinds)](kube::server::Api& api,
                                                                        kube::ApiClient& lookups) {
      return std::make_unique<Admitter>(rules, false, api, lookups, log);
    };
    REQUIRE(start(trainer::local::all_kinds(), std::move(options)));
  }
};

Json trainjob(const std::string& runtime) {
  return *kube::parse_json(R"({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
    "metadata": {"name": "job", "namespace": "default"}, "spec": {"runtimeRef": {"name": ")" +
                           runtime + R"("}}})");
}

Json jobset(const std::string& name) {
  return *kube::parse_json(R"({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
    "metadata": {"namespace": "default", "name": ")" +
                           name + R"("}, "spec": {"replicatedJobs": [{"name": "w", "template":
    {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "none"}]}}}}}]}})");
}

}  // namespace

TEST_CASE_METHOD(Ruled, "a job is refused as its webhook refuses it, and reads what it needs") {
  const Json runtime = builtin_runtimes().front();
  const std::string name = kube::ObjectMeta::of(runtime).name;
  const auto refused = create(kTrainJobs, trainjob(name), "kubectl");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == kube::ErrorCode::kForbidden);
  CHECK_THAT(refused.error().message,
             Catch::StartsWith("admission webhook \"validator.trainjob.trainer.kubeflow.org\" "
                               "denied the request: ") &&
                 kube::test::contains(name));
  REQUIRE(create(kClusterTrainingRuntimes, runtime, "kubectl"));
  CHECK(create(kTrainJobs, trainjob(name), "kubectl"));
}

TEST_CASE_METHOD(Ruled, "a runtime that opts out of validation is stored as it is") {
  Json runtime = builtin_runtimes().front();
  runtime["spec"]["template"]["spec"]["replicatedJobs"].as_array().front().set("replicas", 2);
  CHECK_FALSE(create(kClusterTrainingRuntimes, runtime, "kubectl"));
  runtime["metadata"]["labels"].set("trainer.kubeflow.org/webhook-validation", "disabled");
  CHECK(create(kClusterTrainingRuntimes, runtime, "kubectl"));
}

TEST_CASE_METHOD(Ruled, "a JobSet gets its webhook's defaults, but for the controller's own") {
  const auto success_policy = [](const std::string& text) {
    return kube::parse_json(text)->get("spec").get("successPolicy");
  };
  const auto of_user = create(kJobSets, jobset("a"), "kubectl");
  REQUIRE(of_user);
  CHECK(success_policy(*of_user).get_string("operator") == "All");
  const auto own = create(kJobSets, jobset("b"), "trainer");
  REQUIRE(own);
  CHECK(success_policy(*own).is_null());
}
