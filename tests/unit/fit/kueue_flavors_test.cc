// These tests check which flavor Kueue would give to a role.
#include "tests/unit/fit/kueue.hh"

using namespace trainer::fit;
using namespace trainer::fit::test;

namespace {

std::string both(int a, int b) {
  return group(quota("a", a) + ", " + quota("b", b));
}

std::string asks_with(const std::string& spec) {
  return "{spec: {" + spec +
         ", containers: [{name: c, resources: {requests: {nvidia.com/gpu: 1}}}]}}";
}

// Returns the flavor of each role; "" if there is none.
std::string flavors_of(const QueueAnswer& answer) {
  std::string text;
  for (const auto& [role, flavors] : answer.plan.roles)
    for (const auto& [resource, flavor] : flavors) text += flavor;
  return text;
}

std::string flavors_of(const std::string& spec, const std::string& status = "", int gpus = 4) {
  return flavors_of(TestKueue().queue("cq", spec, status).ask(gpus));
}

}  // namespace

TEST_CASE("flavors are tried in their order", "[fit]") {
  CHECK(flavors_of(both(4, 4)) == "a");
  CHECK(flavors_of(both(4, 4), reservation("a", 1)) == "b");
  CHECK(flavors_of(both(3, 4)) == "b");
  CHECK(flavors_of(both(3, 3)).empty());
}

TEST_CASE("a queue may try the next flavor before it borrows", "[fit]") {
  const auto flavors = [](const std::string& policy) {
    return flavors_of(TestKueue()
                          .queue("cq", "cohort: all, " + policy + both(2, 4))
                          .queue("other", "cohort: all, " + both(4, 4))
                          .ask(4));
  };
  CHECK(flavors("") == "a");
  CHECK(flavors("flavorFungibility: {whenCanBorrow: TryNextFlavor}, ") == "b");
}

TEST_CASE("each role gets a flavor, and sees what those before it take", "[fit]") {
  const auto roles = [](const std::string& spec) {
    return TestKueue()
        .queue("cq", spec)
        .ask({job("one", 3, asks("{nvidia.com/gpu: 1}")),
              job("two", 3, asks("{nvidia.com/gpu: 1}"))});
  };
  CHECK(flavors_of(roles(both(6, 6))) == "aa");
  CHECK(flavors_of(roles(both(5, 6))) == "ab");
  CHECK(roles(both(5, 2)).verdict == Verdict::kNever);
}

TEST_CASE("a job that fits now fits, whatever flavors are free", "[fit]") {
  // The first role takes all of flavor a if it is free, and the second one can go nowhere else.
  TestKueue kueue;
  const std::vector<kube::Json> jobs{job("one", 4, asks("{nvidia.com/gpu: 1}")),
                                     job("two", 2, asks_with("nodeSelector: {pool: a}"))};
  kueue.queue("cq", both(5, 4), reservation("a", 2));
  CHECK(kueue.ask(jobs).verdict == Verdict::kFits);
  CHECK(flavors_of(kueue.ask(jobs)) == "ba");
}

TEST_CASE("node labels of a flavor are compared with the job's selectors", "[fit]") {
  const auto verdict = [](const std::string& spec) {
    return TestKueue()
        .queue("cq", group(quota("a", 8)))
        .ask({job("j", 1, asks_with(spec))})
        .verdict;
  };
  const auto term = [](const std::string& expressions) {
    return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
           "{nodeSelectorTerms: [" +
           expressions + "]}}}";
  };
  const std::string in_b = "{matchExpressions: [{key: pool, operator: In, values: [b]}]}";
  const std::string other = "{matchExpressions: [{key: zone, operator: Exists}]}";
  CHECK(verdict("nodeSelector: {pool: a}") == Verdict::kFits);
  CHECK(verdict("nodeSelector: {pool: b}") == Verdict::kNever);
  CHECK(verdict("nodeSelector: {zone: z}") == Verdict::kFits);
  CHECK(verdict(term(in_b)) == Verdict::kNever);
  CHECK(verdict(term(in_b + ", " + other)) == Verdict::kFits);
}

TEST_CASE("versions of Kueue differ about labels that only other flavors have", "[fit]") {
  TestKueue kueue;
  kueue.flavor("{metadata: {name: plain}}")
      .queue("cq", group(quota("plain", 8) + ", " + quota("a", 0)));
  CHECK(kueue.ask({job("j", 1, asks_with("nodeSelector: {pool: a}"))}).verdict ==
        Verdict::kUnknown);
  CHECK(kueue.ask(1).verdict == Verdict::kFits);
}

TEST_CASE("versions of Kueue differ about a flavor in which nothing can be preempted", "[fit]") {
  const auto verdict = [](const std::string& preference) {
    return TestKueue()
        .queue("cq",
               "cohort: all, preemption: {withinClusterQueue: LowerPriority}, "
               "flavorFungibility: {whenCanBorrow: TryNextFlavor" +
                   preference + "}, " + both(4, 2))
        .queue("other", "cohort: all, " + both(0, 4), reservation("a", 4))
        .verdict(4);
  };
  CHECK(verdict("") == Verdict::kFits);
  CHECK(verdict(", preference: PreemptionOverBorrowing") == Verdict::kUnknown);
}

TEST_CASE("taints of a flavor are compared with tolerations", "[fit]") {
  const auto verdict = [](const std::string& effect, const std::string& more,
                          const std::string& spec) {
    return TestKueue()
        .flavor("{metadata: {name: t}, spec: {nodeTaints: [{key: spot, value: \"yes\", effect: " +
                effect + "}]" + more + "}}")
        .queue("cq", group(quota("t", 8)))
        .ask({job("j", 1, asks_with(spec))})
        .verdict;
  };
  const std::string toleration = "tolerations: [{key: spot, operator: Exists}]";
  CHECK(verdict("NoSchedule", "", "nodeSelector: {}") == Verdict::kNever);
  CHECK(verdict("NoSchedule", "", toleration) == Verdict::kFits);
  CHECK(verdict("NoSchedule", ", " + toleration, "nodeSelector: {}") == Verdict::kFits);
  CHECK(verdict("PreferNoSchedule", "", "nodeSelector: {}") == Verdict::kFits);
}

TEST_CASE("the nodes are those of the flavor", "[fit]") {
  TestKueue kueue;
  kueue.flavor(
      "{metadata: {name: t}, spec: {nodeLabels: {pool: t}, tolerations: [{key: spot, "
      "operator: Exists}]}}");
  const QueueAnswer answer = kueue.queue("cq", group(quota("t", 8))).ask(1);
  REQUIRE(answer.roles.size() == 1);
  CHECK(answer.roles[0].pod.node_selector.at("pool") == "t");
  CHECK(answer.roles[0].pod.tolerates({"spot", "yes", "NoSchedule"}));
}

TEST_CASE("flavors that cannot be read may refuse the job", "[fit]") {
  TestKueue kueue;
  kueue.state.flavors_unread = "resourceflavors: forbidden";
  kueue.queue("cq", group(quota("a", 8)));
  CHECK(kueue.verdict(8) == Verdict::kUnknown);
  CHECK(kueue.verdict(9) == Verdict::kNever);
  CHECK(
      kueue.ask(8).undecided ==
      std::vector<std::string>{
          "resourceflavors: forbidden, so the flavors' node labels and taints were not compared"});
}
