// These tests check which workloads come before a job, and which it would preempt.
#include "tests/unit/fit/kueue.hh"

using namespace trainer::fit;
using namespace trainer::fit::test;

namespace {

std::string names_of(const QueueAnswer& answer) {
  std::string text;
  for (const Holder& each : answer.plan.preempts) text += each.name + " ";
  return text;
}

std::string policy(const std::string& preemption) {
  return "preemption: {" + preemption + "}, ";
}

}  // namespace

TEST_CASE("the job's place is behind older workloads of its priority", "[fit]") {
  TestKueue kueue;
  kueue.queue("cq", group(quota("a", 8)))
      .queue("other", group(quota("a", 8)))
      .waiting("cq", "low", 9, -1)
      .waiting("cq", "same", 9)
      .waiting("cq", "high", 9, 5)
      .waiting("other", "elsewhere", 9, 5)
      .reserved("cq", "runs", 1);
  CHECK(kueue.ask(4).plan.position == 3);
  CHECK(kueue.ask(4).plan.pending == 3);
  CHECK(kueue.verdict(4) == Verdict::kFits);
  kueue.state.priority = 10;
  CHECK(kueue.ask(4).plan.position == 1);
}

TEST_CASE("the visibility API has the order", "[fit]") {
  TestKueue kueue;
  kueue.queue("cq", group(quota("a", 8))).waiting("cq", "same", 9);
  kueue.state.pending = {{"ns", "x", 1}, {"ns", "y", 0}, {"ns", "z", -1}};
  CHECK(kueue.ask(4).plan.position == 3);
  kueue.state.job_name = "y";
  CHECK(kueue.ask(4).plan.position == 2);
  CHECK(kueue.ask(4).plan.pending == 2);
}

TEST_CASE("a job of a StrictFIFO queue waits for those before it", "[fit]") {
  TestKueue kueue;
  kueue.queue("cq", "queueingStrategy: StrictFIFO, " + group(quota("a", 8)), "pendingWorkloads: 1")
      .waiting("cq", "same", 9);
  CHECK(kueue.verdict(4) == Verdict::kWaits);
  CHECK(kueue.verdict(9) == Verdict::kNever);
  kueue.state.priority = 1;
  CHECK(kueue.verdict(4) == Verdict::kFits);
  kueue.state.workloads_unread = "workloads: forbidden";
  CHECK(kueue.verdict(4) == Verdict::kUnknown);
}

TEST_CASE("only the first job of a StrictFIFO queue preempts", "[fit]") {
  TestKueue kueue;
  kueue
      .queue("cq",
             "queueingStrategy: StrictFIFO, " + policy("withinClusterQueue: LowerPriority") +
                 group(quota("a", 8)),
             reservation("a", 8))
      .reserved("cq", "old", 8, -1)
      .waiting("cq", "high", 8, 5);
  const QueueAnswer behind = kueue.ask(8);
  CHECK(behind.verdict == Verdict::kWaits);
  CHECK(names_of(behind).empty());
  REQUIRE(behind.reasons.size() == 2);
  CHECK(behind.reasons[1].message ==
        "cq is a StrictFIFO queue, and 1 workload waits before the job");
  kueue.state.priority = 6;
  CHECK(names_of(kueue.ask(8)) == "old ");
  kueue.state.priority = 0;
  kueue.state.pending.emplace();
  CHECK(names_of(kueue.ask(8)) == "old ");
}

TEST_CASE("a cohort keeps quota for the first workload of a StrictFIFO queue", "[fit]") {
  const auto verdict = [](const std::string& strategy, int waiting, const std::string& preemption) {
    return TestKueue()
        .queue("cq", "cohort: all, " + group(quota("a", 4)))
        .queue("strict", "cohort: all, " + strategy + policy(preemption) + group(quota("a", 4)))
        .queue("third", "cohort: all, " + group(quota("a", 0)), reservation("a", 5))
        .reserved("third", "borrows", 5)
        .waiting("strict", "first", waiting)
        .verdict(2);
  };
  const std::string strict = "queueingStrategy: StrictFIFO, ";
  CHECK(verdict("", 4, "") == Verdict::kFits);
  CHECK(verdict(strict, 4, "") == Verdict::kWaits);
  CHECK(verdict(strict, 4, "reclaimWithinCohort: LowerPriority") == Verdict::kWaits);
  CHECK(verdict(strict, 9, "") == Verdict::kFits);
}

TEST_CASE("lower priorities of the same queue are preempted", "[fit]") {
  TestKueue kueue;
  kueue
      .queue("cq", policy("withinClusterQueue: LowerPriority") + group(quota("a", 8)),
             reservation("a", 8))
      .reserved("cq", "one", 3, 1)
      .reserved("cq", "two", 3)
      .reserved("cq", "three", 2);
  CHECK(kueue.verdict(2) == Verdict::kWaits);
  CHECK(names_of(kueue.ask(2)).empty());
  kueue.state.priority = 2;
  CHECK(kueue.verdict(2) == Verdict::kWaits);
  CHECK(names_of(kueue.ask(2)) == "three ");
  CHECK(names_of(kueue.ask(3)) == "two ");
  CHECK(names_of(kueue.ask(5)) == "two three ");
  CHECK(names_of(kueue.ask(8)) == "one two three ");
}

TEST_CASE("what others have borrowed is reclaimed", "[fit]") {
  const auto names = [](const std::string& preemption, int gpus) {
    return names_of(TestKueue()
                        .queue("cq", "cohort: all, " + policy(preemption) + group(quota("a", 4)))
                        .queue("other", "cohort: all, " + group(quota("a", 4)), reservation("a", 7))
                        .reserved("other", "first", 4, 3)
                        .reserved("other", "second", 3, 3)
                        .ask(gpus));
  };
  CHECK(names("", 4).empty());
  CHECK(names("reclaimWithinCohort: LowerPriority", 4).empty());
  CHECK(names("reclaimWithinCohort: Any", 4) == "second ");
  CHECK(names("reclaimWithinCohort: Any", 5).empty());
}

TEST_CASE("workloads of a queue that is not active are no victims", "[fit]") {
  const auto names = [](const std::string& policy_of_other) {
    return names_of(TestKueue()
                        .queue("cq", "cohort: all, " + policy("reclaimWithinCohort: Any") +
                                         group(quota("a", 4)))
                        .queue("other", "cohort: all, " + policy_of_other + group(quota("a", 4)),
                               reservation("a", 8))
                        .reserved("other", "first", 4)
                        .reserved("other", "second", 4)
                        .ask(4));
  };
  CHECK(names("") == "second ");
  CHECK(names("stopPolicy: Hold, ").empty());
}

TEST_CASE("what the first workload of another queue preempts is free for the job", "[fit]") {
  const auto verdict = [](int victim, int head, int gpus) {
    return TestKueue()
        .queue("cq", "cohort: all, " + group(quota("a", 2)))
        .queue("strict",
               "cohort: all, queueingStrategy: StrictFIFO, " +
                   policy("withinClusterQueue: LowerPriority") + group(quota("a", 8)),
               reservation("a", victim))
        .reserved("strict", "victim", victim, -1)
        .waiting("strict", "first", head, 5)
        .verdict(gpus);
  };
  CHECK(verdict(8, 8, 2) == Verdict::kFits);
  CHECK(verdict(8, 9, 2) == Verdict::kFits);
  CHECK(verdict(4, 8, 3) == Verdict::kWaits);
}

TEST_CASE("numbers that are too large for a quota do not overflow", "[fit]") {
  const std::string most =
      "{name: a, resources: [{name: nvidia.com/gpu, nominalQuota: "
      "9223372036854775807, borrowingLimit: 9223372036854775807}]}";
  TestKueue kueue;
  kueue.queue("cq", "cohort: all, " + group(most), reservation("a", 2'000'000'000))
      .queue("strict", "cohort: all, queueingStrategy: StrictFIFO, " + group(most))
      .waiting("strict", "first", 2'000'000'000, 5);
  CHECK(kueue.verdict(8) == Verdict::kFits);
}

TEST_CASE("a state keeps the workloads that may decide", "[fit]") {
  KueueState state;
  state.queue = "cq";
  for (const char* name : {"cq", "strict", "other"}) {
    ClusterQueue queue;
    queue.name = name;
    queue.is_strict = queue.name == "strict";
    state.add(queue);
  }
  const auto add = [&state](const std::string& queue, const std::string& name,
                            std::int64_t priority, bool is_waiting) {
    QueuedWorkload workload;
    workload.name = name;
    workload.cluster_queue = queue;
    workload.priority = priority;
    if (!is_waiting) workload.reserved_since = kube::Time();
    workload.roles.resize(1);
    state.add(std::move(workload));
  };
  for (const char* queue : {"cq", "strict", "other", "gone"}) {
    add(queue, "runs", 0, false);
    add(queue, "low", 0, true);
    add(queue, "high", 2, true);
    add(queue, "middle", 1, true);
  }
  CHECK(state.workloads.size() == 3);
  CHECK(state.workloads_of("cq").size() == 4);
  REQUIRE(state.workloads_of("strict").size() == 2);
  CHECK(state.workloads_of("strict")[0].name == "runs");
  CHECK(state.workloads_of("strict")[0].roles.empty());
  CHECK(state.workloads_of("strict")[1].name == "high");
  CHECK(state.workloads_of("strict")[1].roles.size() == 1);
  REQUIRE(state.workloads_of("other").size() == 1);
  CHECK(state.workloads_of("other")[0].name == "runs");
}
