// These tests check how quotas of the namespace are compared.
#include "runtimes/fit/resource_quota.hh"
#include "tests/unit/fit/cluster.hh"

using namespace trainer::fit;
using namespace trainer::fit::test;

namespace {

std::string verdict(const std::string& quota, const std::string& pod, int pods = 2) {
  TestCluster cluster;
  cluster.node("a").quota("{metadata: {name: q}, " + quota + "}");
  return cluster.verdict({job("j", pods, pod)});
}

std::string status(const std::string& hard, const std::string& used = "{}") {
  return "status: {hard: " + hard + ", used: " + used + "}";
}

}  // namespace

TEST_CASE("quotas are compared with what all pods ask for", "[fit]") {
  struct Case {
    std::string quota;
    std::string pod;
    std::string verdict;
  };
  const std::vector<Case> cases{
      {status("{requests.nvidia.com/gpu: 4}"), asks("{nvidia.com/gpu: 2}"), "now"},
      {status("{requests.nvidia.com/gpu: 4}", "{requests.nvidia.com/gpu: 1}"),
       asks("{nvidia.com/gpu: 2}"), "waits ResourceQuota"},
      {status("{requests.nvidia.com/gpu: 3}"), asks("{nvidia.com/gpu: 2}"), "never ResourceQuota"},
      {status("{cpu: 3}"), asks("{cpu: 2}"), "never ResourceQuota"},
      {status("{requests.memory: 1Gi}"), asks("{memory: 600Mi}"), "never ResourceQuota"},
      {status("{limits.cpu: 3}"),
       "{spec: {containers: [{name: c, resources: {limits: {cpu: 2}}}]}}", "never ResourceQuota"},
      {status("{pods: 1}"), "{}", "never ResourceQuota"},
      {status("{count/jobs.batch: 0}"), "{}", "never ResourceQuota"},
      {status("{pods: 5}", "{pods: 4}"), "{}", "waits ResourceQuota"},
      {"spec: {hard: {pods: 1}}", "{}", "never ResourceQuota"},
      {"spec: {scopes: [Terminating]}, " + status("{pods: 0}"), "{}", "now"},
      {"spec: {scopes: [Terminating]}, " + status("{pods: 0}"),
       "{spec: {activeDeadlineSeconds: 5}}", "never ResourceQuota"},
      {"spec: {scopes: [NotTerminating]}, " + status("{pods: 0}"), "{}", "never ResourceQuota"},
      {"spec: {scopes: [BestEffort]}, " + status("{pods: 0}"), "{}", "never ResourceQuota"},
      {"spec: {scopes: [NotBestEffort]}, " + status("{pods: 0}"), "{}", "now"},
      {"spec: {scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: "
       "[high]}]}}, " +
           status("{pods: 0}"),
       "{spec: {priorityClassName: high}}", "never ResourceQuota"},
      {"spec: {scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: "
       "[high]}]}}, " +
           status("{pods: 0}"),
       "{spec: {priorityClassName: low}}", "now"},
  };
  for (const Case& each : cases) {
    INFO(each.quota << " " << each.pod);
    CHECK(verdict(each.quota, each.pod) == each.verdict);
  }
}

TEST_CASE("the message has the numbers of the quota", "[fit]") {
  TestCluster cluster;
  cluster.node("a").quota("{metadata: {name: team}, " +
                          status("{requests.nvidia.com/gpu: 4}", "{requests.nvidia.com/gpu: 3}") +
                          "}");
  const PlanAnswer answer = cluster.plan({job("j", 2, asks("{nvidia.com/gpu: 1}"))});
  REQUIRE(answer.reasons.size() == 1);
  CHECK(answer.reasons[0].message ==
        "the quota team allows 4 requests.nvidia.com/gpu, 3 are used, and the job asks for 2");
}
