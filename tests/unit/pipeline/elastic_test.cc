// The number of nodes may change while torchrun runs: mlPolicy.torch.elasticPolicy.
#include <algorithm>

#include "runtimes/views/labels.hh"
#include "tests/support/catch.hh"
#include "tests/unit/pipeline/fixtures.hh"

namespace trainer::test {
namespace {

Runtime elastic_runtime(const std::string& bounds = "minNodes: 2, maxNodes: 4",
                        const std::string& rest = "") {
  return torch_runtime("{mlPolicy: {numNodes: 3, torch: {elasticPolicy: {" + bounds + "}}}" + rest +
                       "}");
}

const kube::Json& job_spec_in(const Built& result) {
  return job_in(result, "node").get("template").get("spec");
}

TEST_CASE("an elastic job has a rendezvous for a range of nodes", "[torch]") {
  const Built result = built(job_with("{trainer: {numNodes: 4}}"), elastic_runtime());
  const kube::Json& container = container_in(result, "node");
  CHECK(env_value(container, "PET_NNODES") == "2:4");
  CHECK(env_value(container, "PET_MAX_RESTARTS") == "3");
  CHECK(env_value(container, "PET_RDZV_BACKEND") == "c10d");
  CHECK(env_value(container, "PET_RDZV_CONF") ==
        "last_call_timeout=5,join_timeout=600,read_timeout=600");
  CHECK(result.jobset.get_path({"metadata", "annotations"}).get_string(jobset::kElasticNodesKey) ==
        "2:4");
  const kube::Json& spec = job_spec_in(result);
  CHECK(spec.get_int("parallelism") == 4);
  CHECK(spec.get_int("completions") == 4);
  CHECK(spec.get_int("backoffLimit") == 12);
  CHECK(spec.get_path({"successPolicy", "rules"}) == yaml("[{succeededIndexes: '0'}]"));
  CHECK(spec.get_path({"podFailurePolicy", "rules"}) ==
        yaml("[{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: 'True'}]}]"));
  CHECK(spec.get_string("podReplacementPolicy") == "Failed");
}

TEST_CASE("restarts of an elastic job are its own, else those of the policy", "[torch]") {
  const Runtime seven = elastic_runtime("minNodes: 2, maxNodes: 4, maxRestarts: 7");
  const Built by_policy = built(job_with("{trainer: {numNodes: 2}}"), seven);
  CHECK(env_value(container_in(by_policy, "node"), "PET_MAX_RESTARTS") == "7");
  CHECK(job_spec_in(by_policy).get_int("backoffLimit") == 28);
  const Built own =
      built(job_with("{trainer: {numNodes: 2}, failurePolicy: {processRestarts: 1}}"), seven);
  CHECK(env_value(container_in(own, "node"), "PET_MAX_RESTARTS") == "1");
  CHECK(job_spec_in(own).get_int("backoffLimit") == 28);
  const Built none =
      built(job_with("{trainer: {numNodes: 2}, failurePolicy: {processRestarts: 0}}"), seven);
  CHECK(env_value(container_in(none, "node"), "PET_MAX_RESTARTS") == "0");
  CHECK(env_value(container_in(none, "node"), "PET_RDZV_BACKEND") == "c10d");
}

TEST_CASE("a policy without numbers of nodes makes no job elastic", "[torch]") {
  const Built result =
      built(job_with("{trainer: {numNodes: 3}}"), elastic_runtime("maxRestarts: 7"));
  CHECK(env_value(container_in(result, "node"), "PET_NNODES") == "3");
  CHECK(job_spec_in(result).find("backoffLimit") == nullptr);
}

TEST_CASE("the gang of an elastic job has the least number of nodes", "[gang]") {
  for (const char* group : {"coscheduling: {}", "volcano: {}"}) {
    CAPTURE(group);
    const Runtime runtime = elastic_runtime("minNodes: 2, maxNodes: 4",
                                            std::string(", podGroupPolicy: {") + group + "}");
    const Built result = built(job_with("{trainer: {numNodes: 4, resourcesPerNode: {requests: "
                                        "{cpu: 2}}}}"),
                               runtime);
    const kube::Json* pod_group = dependent(result, "PodGroup", "j");
    REQUIRE(pod_group);
    CHECK(pod_group->get("spec").get_int("minMember") == 2);
    CHECK(pod_group->get_path({"spec", "minResources", "cpu"}) == kube::Json("4"));
  }
}

TEST_CASE("what keeps a job from being elastic is refused", "[torch]") {
  struct Row {
    const char* spec;
    const char* bounds;
    const char* path;
    const char* way_out;
  };
  const Row rows[] = {
      {"{trainer: {numNodes: 1}}", "minNodes: 2, maxNodes: 4", "spec.trainer.numNodes",
       "allows 2 to 4 nodes"},
      {"{trainer: {numNodes: 5}}", "minNodes: 2, maxNodes: 4", "spec.trainer.numNodes",
       "allows 2 to 4 nodes"},
      {"{}", "minNodes: 4, maxNodes: 4", "spec.trainer.numNodes", "allows 4 to 4 nodes"},
      {"{trainer: {command: [tune, run]}}", "minNodes: 2, maxNodes: 4", "spec.runtimeRef",
       "resumes from a checkpoint"},
  };
  for (const Row& row : rows) {
    INFO(row.spec);
    const auto errors = validate_trainjob(job_with(row.spec), nullptr, elastic_runtime(row.bounds));
    const auto at =
        std::ranges::find_if(errors, [&row](const auto& error) { return error.path == row.path; });
    REQUIRE(at != errors.end());
    CHECK_THAT(at->to_string(), kube::test::contains(row.way_out));
  }
  CHECK(validate_trainjob(job_with("{}"), nullptr, elastic_runtime()).empty());
}

TEST_CASE("a queue of Kueue admits a fixed number of nodes", "[torch]") {
  TrainJob job = job_with("{trainer: {numNodes: 3}}");
  job.metadata.labels["kueue.x-k8s.io/queue-name"] = "team";
  const auto errors = validate_trainjob(job, nullptr, elastic_runtime());
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].path == "metadata.labels[kueue.x-k8s.io/queue-name]");
  CHECK(validate_trainjob(job, nullptr, elastic_runtime("minNodes: 3, maxNodes: 3")).empty());
}

TEST_CASE("the largest size counts for names and limits", "[torch]") {
  const Runtime runtime = elastic_runtime("minNodes: 1, maxNodes: 100001");
  CHECK_THAT(kube::to_string(refused(job_with("{trainer: {numNodes: 2}}"), runtime)),
             kube::test::contains("an indexed Job has 100000 at most"));
}

}  // namespace
}  // namespace trainer::test
