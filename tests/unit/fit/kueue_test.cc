// These tests check how a job is compared with the quotas of its ClusterQueue and its cohort.
#include "tests/unit/fit/kueue.hh"

using namespace trainer::fit;
using namespace trainer::fit::test;

namespace {

Verdict ask(const std::string& spec, const std::string& status) {
  return TestKueue().queue("cq", spec, status).verdict(8);
}

}  // namespace

TEST_CASE("the quota of a flavor decides", "[fit]") {
  struct Case {
    std::string spec;
    std::string status;
    Verdict verdict;
  };
  const std::vector<Case> cases{
      {group(quota("a", 8)), "", Verdict::kFits},
      {group(quota("a", 8)), reservation("a", 1), Verdict::kWaits},
      {group(quota("a", 7)), "", Verdict::kNever},
      {group(quota("a", 7) + ", " + quota("b", 8)), "", Verdict::kFits},
      {group(quota("a", 7) + ", " + quota("b", 8)), reservation("b", 1), Verdict::kWaits},
      {group(quota("gone", 8)), "", Verdict::kNever},
      {"resourceGroups: [{coveredResources: [cpu], flavors: []}]", "", Verdict::kNever},
      {"stopPolicy: Hold, " + group(quota("a", 8)), "", Verdict::kWaits},
      {group(quota("a", 8)), "conditions: [{type: Active, status: \"False\", message: no flavor}]",
       Verdict::kWaits},
      {"namespaceSelector: {matchLabels: {team: x}}, " + group(quota("a", 8)), "", Verdict::kNever},
      {"namespaceSelector: null, " + group(quota("a", 8)), "", Verdict::kNever},
  };
  for (const Case& each : cases) {
    INFO(each.spec << " " << each.status);
    CHECK(ask(each.spec, each.status) == each.verdict);
  }
}

TEST_CASE("a queue borrows what its cohort lends", "[fit]") {
  struct Case {
    std::string own;
    int own_used;
    std::string other;
    int other_used;
    Verdict verdict;
  };
  const std::vector<Case> cases{
      {quota("a", 4), 0, quota("a", 4), 0, Verdict::kFits},
      {quota("a", 4), 0, quota("a", 4), 1, Verdict::kWaits},
      {quota("a", 4), 0, quota("a", 3), 0, Verdict::kNever},
      {quota("a", 8), 0, quota("a", 2), 4, Verdict::kWaits},
      {quota("a", 8, ", lendingLimit: 0"), 0, quota("a", 2), 2, Verdict::kFits},
      {quota("a", 8, ", lendingLimit: 1"), 0, quota("a", 2), 3, Verdict::kWaits},
      {quota("a", 4), 0, quota("a", 8, ", lendingLimit: 4"), 4, Verdict::kFits},
      {quota("a", 4), 0, quota("a", 8, ", lendingLimit: 3"), 0, Verdict::kNever},
      {quota("a", 4, ", borrowingLimit: 4"), 0, quota("a", 8), 0, Verdict::kFits},
      {quota("a", 4, ", borrowingLimit: 4"), 1, quota("a", 8), 0, Verdict::kWaits},
      {quota("a", 4, ", borrowingLimit: 3"), 0, quota("a", 8), 0, Verdict::kNever},
      {quota("a", 4) + ", " + quota("b", 0), 1, quota("a", 4) + ", " + quota("b", 8), 0,
       Verdict::kFits},
  };
  for (const Case& each : cases) {
    INFO(each.own << " " << each.own_used << " " << each.other << " " << each.other_used);
    CHECK(TestKueue()
              .queue("cq", "cohort: all, " + group(each.own), reservation("a", each.own_used))
              .queue("other", "cohortName: all, " + group(each.other),
                     reservation("a", each.other_used))
              .queue("elsewhere", "cohortName: none, " + group(quota("a", 100)))
              .verdict(8) == each.verdict);
  }
}

TEST_CASE("cohorts within cohorts lend to each other", "[fit]") {
  const auto nested = [](const std::string& above, const std::string& below, int used) {
    return TestKueue()
        .queue("cq", "cohort: inner, " + group(quota("a", 2)))
        .queue("other", "cohort: outer, " + group(quota("a", 6)), reservation("a", used))
        .cohort("inner", below + "parentName: outer")
        .cohort("outer", above)
        .verdict(8);
  };
  CHECK(nested("", "", 0) == Verdict::kFits);
  CHECK(nested("", "", 1) == Verdict::kWaits);
  CHECK(nested(group(quota("a", 1)), "", 1) == Verdict::kFits);
  CHECK(nested("", group(quota("a", 1)) + ", ", 1) == Verdict::kFits);
  CHECK(nested("", group(quota("a", 0, ", borrowingLimit: 6")) + ", ", 0) == Verdict::kFits);
  CHECK(nested("", group(quota("a", 0, ", borrowingLimit: 5")) + ", ", 0) == Verdict::kNever);
  CHECK(nested("parentName: inner", "", 0) == Verdict::kWaits);
}

TEST_CASE("a cohort that cannot be read decides only where it may", "[fit]") {
  const auto verdict = [](const std::string& flavor, int used) {
    TestKueue kueue;
    kueue.state.cohort_unread = "clusterqueues: forbidden";
    return kueue.queue("cq", "cohort: all, " + group(flavor), reservation("a", used)).verdict(8);
  };
  CHECK(verdict(quota("a", 8), 0) == Verdict::kUnknown);
  CHECK(verdict(quota("a", 8, ", lendingLimit: 0"), 0) == Verdict::kFits);
  CHECK(verdict(quota("a", 4), 0) == Verdict::kUnknown);
  CHECK(verdict(quota("a", 4, ", borrowingLimit: 4"), 1) == Verdict::kWaits);
  CHECK(verdict(quota("a", 4, ", borrowingLimit: 3"), 0) == Verdict::kNever);
}

TEST_CASE("the message has the numbers of the flavor and who holds it", "[fit]") {
  const QueueAnswer answer =
      TestKueue()
          .queue("cq", "cohort: all, " + group(quota("a", 8)), reservation("a", 2))
          .reserved("cq", "old", 2)
          .ask(8);
  REQUIRE(answer.reasons.size() == 1);
  CHECK(answer.reasons[0].rule == "ClusterQueue");
  CHECK(answer.reasons[0].message ==
        "the flavor a of cq has a quota of 8 nvidia.com/gpu, 2 are reserved, and with its cohort "
        "all it may have 6 now; the job asks for 8");
  REQUIRE(answer.reasons[0].holders.size() == 1);
  CHECK(answer.reasons[0].holders[0].by.kind == "trainjob");
  CHECK(answer.reasons[0].holders[0].by.name == "old");
  CHECK(answer.reasons[0].holders[0].amount == "2 nvidia.com/gpu");
  CHECK(answer.reasons[0].holders[0].pods == 2);
}

TEST_CASE("without its labels a namespace is known by its name", "[fit]") {
  const auto verdict = [](const std::string& selector) {
    TestKueue kueue;
    kueue.state.namespace_labels.reset();
    return kueue.queue("cq", "namespaceSelector: {" + selector + "}, " + group(quota("a", 8)))
        .verdict(8);
  };
  const std::string absent = "matchExpressions: [{key: team, operator: DoesNotExist}]";
  CHECK(verdict("") == Verdict::kFits);
  CHECK(verdict("matchLabels: {team: x}") == Verdict::kUnknown);
  CHECK(verdict(absent) == Verdict::kUnknown);
  CHECK(verdict("matchLabels: {kubernetes.io/metadata.name: ns}") == Verdict::kFits);
  CHECK(verdict("matchLabels: {kubernetes.io/metadata.name: other}") == Verdict::kNever);
  CHECK(verdict("matchLabels: {kubernetes.io/metadata.name: ns}, " + absent) == Verdict::kUnknown);
}

TEST_CASE("a reason names the field, its value and a way out", "[fit]") {
  const auto reason = [](TestKueue kueue) {
    const QueueAnswer answer = kueue.ask(8);
    REQUIRE(answer.reasons.size() == 1);
    return answer.reasons[0].rule + ": " + answer.reasons[0].message;
  };
  const std::string quotas = group(quota("a", 8));
  CHECK(reason(TestKueue().queue("cq", "stopPolicy: HoldAndDrain, " + quotas)) ==
        "ClusterQueue: cq admits nothing while spec.stopPolicy is HoldAndDrain; None would let "
        "jobs through");
  CHECK(
      reason(TestKueue()
                 .queue("cq", "cohort: low, " + quotas)
                 .cohort("low", "parentName: top")
                 .cohort("top", "parentName: low")) ==
      "ClusterQueue: cq is in cohort low, whose spec.parentName leads back to itself: correct it");
  CHECK(reason(TestKueue().queue("cq", "namespaceSelector: {matchLabels: {team: x}}, " + quotas)) ==
        "ClusterQueue: cq takes jobs of namespaces with team=x (spec.namespaceSelector), and "
        "not of ns: use a queue of another ClusterQueue, or label the namespace");
  TestKueue held;
  held.state.local_queue_inactive = "lets nothing through";
  CHECK(reason(held.queue("cq", quotas)).starts_with("LocalQueue: ns/"));
}

TEST_CASE("the holders of a quota are named once", "[fit]") {
  const auto answer = TestKueue()
                          .queue("cq", group(quota("a", 8)), reservation("a", 8))
                          .reserved("cq", "old", 8)
                          .ask({job("one", 1, asks("{nvidia.com/gpu: 1}")),
                                job("two", 1, asks("{nvidia.com/gpu: 1}"))});
  std::size_t holders = 0;
  for (const Reason& each : answer.reasons) holders += each.holders.size();
  CHECK(answer.verdict == Verdict::kWaits);
  CHECK(holders == 1);
}
