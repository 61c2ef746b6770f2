// These tests check how a job is compared with the quotas of its ClusterQueue.
#include "runtimes/fit/kueue_quota.hh"
#include "tests/unit/fit/cluster.hh"

using namespace trainer::fit;
using namespace trainer::fit::test;

namespace {

QueueAnswer ask(const std::string& spec, const std::string& status, int pods = 4) {
  const Asked asked = read_asked({job("j", pods, asks("{nvidia.com/gpu: 2}"))}, {});
  const ResourceTable resources(resources_of(asked));
  return kueue_quota(asked, resources,
                     ClusterQueue::read(yaml("{metadata: {name: cq}, spec: {" + spec +
                                             "}, status: {" + status + "}}"),
                                        resources));
}

std::string flavor(const std::string& name, int quota, const std::string& more = "") {
  return "{name: " + name +
         ", resources: [{name: nvidia.com/gpu, nominalQuota: " + std::to_string(quota) + more +
         "}]}";
}

std::string group(const std::string& flavors) {
  return "resourceGroups: [{coveredResources: [nvidia.com/gpu], flavors: [" + flavors + "]}]";
}

std::string reserved(const std::string& name, int total) {
  return "flavorsReservation: [{name: " + name +
         ", resources: [{name: nvidia.com/gpu, total: " + std::to_string(total) + "}]}]";
}

}  // namespace

TEST_CASE("the quota of a flavor decides", "[fit]") {
  struct Case {
    std::string spec;
    std::string status;
    Verdict verdict;
  };
  const std::string cohort = "cohort: all, ";
  const std::vector<Case> cases{
      {group(flavor("a", 8)), "", Verdict::kFits},
      {group(flavor("a", 8)), reserved("a", 1), Verdict::kWaits},
      {group(flavor("a", 7)), "", Verdict::kNever},
      {group(flavor("a", 7) + ", " + flavor("b", 8)), "", Verdict::kFits},
      {group(flavor("a", 7) + ", " + flavor("b", 8)), reserved("b", 1), Verdict::kWaits},
      {cohort + group(flavor("a", 7)), "", Verdict::kUnknown},
      {"cohortName: all, " + group(flavor("a", 7)), "", Verdict::kUnknown},
      {cohort + group(flavor("a", 4, ", borrowingLimit: 4")), reserved("a", 1), Verdict::kWaits},
      {cohort + group(flavor("a", 4, ", borrowingLimit: 2")), "", Verdict::kNever},
      {"resourceGroups: [{coveredResources: [cpu], flavors: []}]", "", Verdict::kNever},
      {"stopPolicy: Hold, " + group(flavor("a", 8)), "", Verdict::kWaits},
  };
  for (const Case& each : cases) {
    INFO(each.spec << " " << each.status);
    CHECK(ask(each.spec, each.status).verdict == each.verdict);
  }
}

TEST_CASE("the message has the numbers of the flavor", "[fit]") {
  const QueueAnswer answer = ask(group(flavor("a", 8)), reserved("a", 2) + ", pendingWorkloads: 3");
  REQUIRE(answer.reason);
  CHECK(answer.reason->message ==
        "the flavor a of cq has a quota of 8 nvidia.com/gpu, 2 are reserved, and the job asks for "
        "8");
  CHECK(answer.reason->change == "3 workloads wait in this queue");
}
