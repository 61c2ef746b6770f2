// Failure policies and restarts: rows C13 to C34 and C51 of the acceptance checklist, U13.
#include "tests/unit/jobset/world.hh"

using namespace trainer::jobset;
using namespace trainer::jobset::test;
using kube::Json;

namespace {

using Attempts = std::map<std::string, int>;

std::string rules(std::string_view list, std::string_view more = "maxRestarts: 1") {
  return "  failurePolicy:\n    " + std::string(more) + "\n    rules: " + std::string(list) + "\n";
}

Gates single_restarts(bool is_open) {
  Gates gates;
  gates.restart_job = is_open;
  return gates;
}

// A failure, and what follows from it until all is quiet again.
void fail_and_settle(World& world, const std::string& job,
                     std::string_view reason = "BackoffLimitExceeded",
                     std::string_view message = {}) {
  world.fail(job, reason, message);
  world.settle();
  world.release_all();
  world.settle();
}

}  // namespace

TEST_CASE("C13: one restart, then the limit") {
  World world(test_js("  failurePolicy: {maxRestarts: 1}"));
  world.settle();
  world.fail(kA);

  // The restart is counted, and nothing else happens in that pass.
  const auto counting = world.context();
  CHECK(counting.actions.empty());
  CHECK(counting.is_status_first());
  CHECK(world.restarts() == "1/1");
  CHECK(world.condition("RestartingJobSet") == "True");
  CHECK(world.condition_reason("RestartingJobSet") == "DefaultFailurePolicy");
  CHECK(world.attempts() == Attempts{{"0", 4}});

  // All Jobs are deleted now, and none comes back before its name is free.
  const auto deleting = world.context();
  CHECK(deleting.actions.size() == 4);
  world.settle();
  CHECK(world.attempts() == Attempts{{"0", 4}});
  world.release_all();
  world.settle();
  CHECK(world.attempts() == Attempts{{"1", 4}});
  CHECK(world.terminal_state().empty());

  fail_and_settle(world, kB);
  CHECK(world.terminal_state() == "Failed");
  CHECK(world.condition_reason("Failed") == "ReachedMaxRestarts");
  CHECK(world.condition("RestartingJobSet") == "False");
  CHECK(world.restarts() == "1/1");
  CHECK(world.job_names() == std::vector<std::string>{kB});
  CHECK(texts(world.events) ==
        std::vector<std::string>{
            "Warning DefaultFailurePolicy: applying RestartJobSet failure policy action (first "
            "failed job: test-js-replicated-job-a-0)",
            "Warning RestartJobSetFailurePolicyAction: applying RestartJobSet failure policy "
            "action (first failed job: test-js-replicated-job-a-0)",
            "Warning ReachedMaxRestarts: jobset failed due to reaching max number of restarts "
            "(first failed job: test-js-replicated-job-b-1)",
            "Normal JobSetFailed: jobset failed"});
}

TEST_CASE("C14 to C20, C22, C29 to C32: which rule applies") {
  struct Row {
    const char* about;
    const char* rules;
    const char* failed;
    const char* reason;
    const char* message;
    const char* terminal;
    const char* restarts;
  };
  const char* const kMessage = "Job has reached the specified backoff limit";
  const Row rows[] = {
      {"C14: any reason", "[{action: FailJobSet}]", "a", "BackoffLimitExceeded", "", "Failed",
       "0/0"},
      {"C15: another reason", "[{action: FailJobSet, onJobFailureReasons: [BackoffLimitExceeded]}]",
       "a", "PodFailurePolicy", "", "", "1/1"},
      {"C16: pattern not found", "[{action: FailJobSet, onJobFailureMessagePatterns: ['exit 3']}]",
       "a", "BackoffLimitExceeded", kMessage, "", "1/1"},
      {"C17: reason fits, pattern does not",
       "[{action: FailJobSet, onJobFailureReasons: [BackoffLimitExceeded], "
       "onJobFailureMessagePatterns: ['^limit']}]",
       "a", "BackoffLimitExceeded", kMessage, "", "1/1"},
      {"C18: both fit",
       "[{action: FailJobSet, onJobFailureReasons: [BackoffLimitExceeded], "
       "onJobFailureMessagePatterns: ['^Job has reached the specified backoff limit$']}]",
       "a", "BackoffLimitExceeded", kMessage, "Failed", "0/0"},
      {"C19: found inside",
       "[{action: FailJobSet, onJobFailureMessagePatterns: ['specified .* l']}]", "a",
       "BackoffLimitExceeded", kMessage, "Failed", "0/0"},
      {"a second pattern is found",
       "[{action: FailJobSet, onJobFailureMessagePatterns: ['nothing', 'backoff']}]", "a",
       "BackoffLimitExceeded", kMessage, "Failed", "0/0"},
      {"no regular expression finds nothing",
       "[{action: FailJobSet, onJobFailureMessagePatterns: ['(backoff']}]", "a",
       "BackoffLimitExceeded", kMessage, "", "1/1"},
      {"C20: restart first", "[{action: RestartJobSet}, {action: FailJobSet}]", "a",
       "BackoffLimitExceeded", "", "", "1/1"},
      {"C29: of its target", "[{action: FailJobSet, targetReplicatedJobs: [replicated-job-b]}]",
       "b", "FailedIndexes", "", "Failed", "0/0"},
      {"C30: of another target", "[{action: FailJobSet, targetReplicatedJobs: [replicated-job-a]}]",
       "b", "BackoffLimitExceeded", "", "", "1/1"},
      {"C31: the first of two", "[{action: FailJobSet}, {action: RestartJobSet}]", "a",
       "BackoffLimitExceeded", "", "Failed", "0/0"},
      {"C32: the first of two", "[{action: RestartJobSet}, {action: FailJobSet}]", "b",
       "BackoffLimitExceeded", "", "", "1/1"},
      {"U13: the second when the first misses",
       "[{action: FailJobSet, onJobFailureReasons: [DeadlineExceeded]}, {action: "
       "RestartJobSetAndIgnoreMaxRestarts}]",
       "a", "BackoffLimitExceeded", "", "", "1/0"},
  };
  for (const bool is_gate_open : {false, true}) {
    for (const Row& row : rows) {
      INFO(row.about);
      World world(test_js(rules(row.rules)), single_restarts(is_gate_open));
      world.settle();
      fail_and_settle(world, row.failed[0] == 'a' ? kA : kB, row.reason, row.message);
      CHECK(world.terminal_state() == row.terminal);
      CHECK(world.restarts() == row.restarts);
      CHECK(world.replicated_job_status("replicated-job-a")->find("jobRestarts") == nullptr);
    }
  }
}

TEST_CASE("FailJobSet says which Job it was") {
  World world(test_js(rules("[{action: FailJobSet}]")));
  world.settle();
  fail_and_settle(world, kA);
  CHECK(
      texts(world.events) ==
      std::vector<std::string>{"Warning FailJobSetFailurePolicyAction: applying FailJobSet failure "
                               "policy action (first failed job: test-js-replicated-job-a-0)"});
}

TEST_CASE("C21: a restart is over when all Jobs are ready again") {
  World world(test_js(rules("[{name: Rule1, action: RestartJobSet}]")));
  world.settle();
  fail_and_settle(world, kA);
  CHECK(world.condition("RestartingJobSet") == "True");
  CHECK(world.condition_reason("RestartingJobSet") == "FailurePolicy_Rule1");
  for (const auto& name : world.job_names()) world.ready(name);
  world.settle();
  CHECK(world.condition("RestartingJobSet") == "False");
  CHECK(world.condition_reason("RestartingJobSet") == "JobsReady");
}

TEST_CASE("rules without a name have one by their index") {
  World world(
      test_js(rules("[{action: FailJobSet, onJobFailureReasons: [DeadlineExceeded]}, {action: "
                    "RestartJobSet}]")));
  world.settle();
  fail_and_settle(world, kA);
  CHECK(world.condition_reason("RestartingJobSet") == "FailurePolicy_failurePolicyRule1");
}

TEST_CASE("C23, C24: restart of a single Job") {
  for (const bool is_counted : {true, false}) {
    const char* action = is_counted ? "RestartJob" : "RestartJobAndIgnoreMaxRestarts";
    INFO(action);
    World world(test_js(rules(std::string("[{action: ") + action + "}]")), single_restarts(true));
    world.settle();
    CHECK(*world.job(kA).find_path(
              {"metadata", "labels", "jobset.sigs.k8s.io/job-restart-attempt"}) == "0");
    world.fail(kA);
    CHECK(world.context().is_status_first());
    world.settle();
    CHECK(world.job(kA).find("metadata")->find("deletionTimestamp"));
    CHECK_FALSE(world.job(kB).find("metadata")->find("deletionTimestamp"));
    world.release_all();
    world.settle();
    CHECK(world.restarts() == "0/0");
    const Json& status = *world.replicated_job_status("replicated-job-a");
    CHECK(*status.find("jobRestarts") == Json::array({1}));
    REQUIRE((status.find("jobRestartsCountTowardsMax") != nullptr) == is_counted);
    if (is_counted) CHECK(*status.find("jobRestartsCountTowardsMax") == Json::array({1}));
    CHECK(world.replicated_job_status("replicated-job-b")->find("jobRestarts") == nullptr);
    CHECK(*world.job(kA).find_path(
              {"metadata", "labels", "jobset.sigs.k8s.io/job-restart-attempt"}) == "1");
    CHECK(world.condition("RestartingJobSet").empty());
    CHECK(world.attempts() == Attempts{{"0", 4}});
  }
}

TEST_CASE("restarts of single Jobs spend the same budget") {
  World world(test_js(rules("[{action: RestartJob, targetReplicatedJobs: [replicated-job-b]}]")),
              single_restarts(true));
  world.settle();
  fail_and_settle(world, kB);
  CHECK(*world.replicated_job_status("replicated-job-b")->find("jobRestarts") ==
        Json::array({0, 1, 0}));
  fail_and_settle(world, kA);  // the default action
  CHECK(world.terminal_state() == "Failed");
  CHECK(world.condition_reason("Failed") == "ReachedMaxRestarts");
}

TEST_CASE("only the selected Job is restarted at a time") {
  World world(test_js(rules("[{action: RestartJob}]", "maxRestarts: 2")), single_restarts(true));
  world.settle();
  world.fail(kA);
  world.now = world.now + std::chrono::seconds(1);
  world.fail(kB);
  world.context();
  CHECK(*world.replicated_job_status("replicated-job-a")->find("jobRestarts") == Json::array({1}));
  CHECK(world.replicated_job_status("replicated-job-b")->find("jobRestarts") == nullptr);
  world.settle();
  world.release_all();
  world.settle();
  CHECK(*world.replicated_job_status("replicated-job-b")->find("jobRestarts") ==
        Json::array({0, 1, 0}));
  CHECK(world.jobs().size() == 4);
}

TEST_CASE("a Job from before the gate was opened is restarted once, not for ever") {
  World world(test_js(rules("[{action: RestartJobAndIgnoreMaxRestarts}]")), single_restarts(false));
  world.settle();
  world.gates.restart_job = true;
  fail_and_settle(world, kA);
  CHECK(*world.replicated_job_status("replicated-job-a")->find("jobRestarts") == Json::array({1}));
}

TEST_CASE("single restarts behind a closed gate say so and change nothing") {
  World world(test_js(rules("[{action: RestartJob}]")));
  world.settle();
  fail_and_settle(world, kA);
  CHECK(world.terminal_state().empty());
  CHECK(world.restarts() == "0/0");
  CHECK(texts(world.events) ==
        std::vector<std::string>{
            "Warning FeatureGateClosed: rule failurePolicyRule0 asks for the action RestartJob, "
            "which needs the feature gate RestartJob; open the gate, or delete the JobSet"});
}

TEST_CASE("C25, C26: Recreate and BlockingRecreate") {
  for (const bool is_blocking : {false, true}) {
    World world(test_js(std::string("  failurePolicy: {maxRestarts: 1, restartStrategy: ") +
                        (is_blocking ? "BlockingRecreate}" : "Recreate}")));
    world.settle();
    world.fail(kA);
    world.settle();
    for (const char* index : {"0", "1", "2"}) {
      world.release(std::string("test-js-replicated-job-b-") + index);
    }
    world.settle();
    CHECK(world.attempts() == (is_blocking ? Attempts{{"0", 1}} : Attempts{{"0", 1}, {"1", 3}}));
    world.release(kA);
    world.settle();
    CHECK(world.attempts() == Attempts{{"1", 4}});
  }
}

TEST_CASE("C27, C28: restarts that do not count never end it") {
  for (const bool is_open : {false, true}) {
    World world(test_js(rules("[{action: RestartJobSetAndIgnoreMaxRestarts}]")),
                single_restarts(is_open));
    world.settle();
    for (int i = 0; i < 3; ++i) fail_and_settle(world, kA);
    CHECK(world.terminal_state().empty());
    CHECK(world.restarts() == "3/0");
    CHECK(world.attempts() == Attempts{{"3", 4}});
    CHECK(texts(world.events).back() ==
          "Warning RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction: applying "
          "RestartJobSetAndIgnoreMaxRestarts failure policy action (first failed job: "
          "test-js-replicated-job-a-0)");
  }
}

TEST_CASE("C33: rules by target") {
  World world(test_js(rules(
      "[{action: RestartJobSetAndIgnoreMaxRestarts, targetReplicatedJobs: [replicated-job-a]}, "
      "{action: FailJobSet}]")));
  world.settle();
  for (int i = 0; i < 3; ++i) fail_and_settle(world, kA);
  CHECK(world.restarts() == "3/0");
  CHECK(world.terminal_state().empty());
  fail_and_settle(world, kB);
  CHECK(world.restarts() == "3/0");
  CHECK(world.terminal_state() == "Failed");
}

TEST_CASE("C34: a restart recreates succeeded Jobs too") {
  World world(test_js("  failurePolicy: {maxRestarts: 1}"));
  world.settle();
  world.complete(kB);
  fail_and_settle(world, kA);
  CHECK(world.attempts() == Attempts{{"1", 4}});
  CHECK(world.counters("replicated-job-b") == "ready 0 succeeded 0 failed 0 active 0 suspended 0");
  CHECK(world.condition("RestartingJobSet") == "True");
  for (const auto& name : world.job_names()) world.complete(name);
  world.settle();
  CHECK(world.terminal_state() == "Completed");
  CHECK(world.condition("RestartingJobSet") == "False");
  CHECK(world.condition_reason("RestartingJobSet") == "JobSetCompleted");
  CHECK(texts(world.events).back() == "Normal JobSetCompleted: jobset completed successfully");
}

TEST_CASE("a JobSet that completes during a restart restarts no more") {
  World world(test_js("  successPolicy: {operator: Any}\n  failurePolicy: {maxRestarts: 1}"));
  world.settle();
  fail_and_settle(world, kA);
  world.complete(kB);
  world.settle();
  CHECK(world.terminal_state() == "Completed");
  CHECK(world.condition("RestartingJobSet") == "False");
  CHECK(world.condition_reason("RestartingJobSet") == "JobSetCompleted");
  REQUIRE_FALSE(world.events.empty());
  for (const auto& event : texts(world.events)) {
    CHECK(event.find("JobsReady") == std::string::npos);
  }
}

TEST_CASE("C51: a restart starts the order again") {
  World world(
      test_js("  startupPolicy: {startupPolicyOrder: InOrder}\n"
              "  failurePolicy: {maxRestarts: 1}"));
  world.settle();
  world.ready(kA);
  world.settle();
  CHECK(world.jobs().size() == 4);
  world.complete(kA);
  fail_and_settle(world, kB);
  CHECK(world.attempts() == Attempts{{"1", 1}});
  world.ready(kA);
  world.settle();
  CHECK(world.attempts() == Attempts{{"1", 4}});
}

TEST_CASE("U13: the earliest failure counts, in list order on ties") {
  World world(test_js());
  world.settle();
  world.fail("test-js-replicated-job-b-2");
  world.now = world.now + std::chrono::seconds(1);
  world.fail(kA);
  world.settle();
  CHECK(texts(world.events)[0].find("(first failed job: test-js-replicated-job-b-2)") !=
        std::string::npos);

  World tie(test_js());
  tie.settle();
  tie.fail(kB);
  tie.fail(kA);
  tie.settle();
  CHECK(texts(tie.events)[0].find("(first failed job: test-js-replicated-job-a-0)") !=
        std::string::npos);
}

TEST_CASE("failure beats success in one pass") {
  World world(test_js("  successPolicy: {operator: Any}"));
  world.settle();
  world.complete(kB);
  world.fail(kA);
  world.settle();
  CHECK(world.terminal_state() == "Failed");
}

TEST_CASE("an unknown action is named and changes nothing") {
  World world(test_js(rules("[{action: FailJobSet}]")));
  world.settle();
  world.jobset()["spec"]["failurePolicy"]["rules"].as_array()[0]["action"] = "Explode";
  fail_and_settle(world, kA);
  CHECK(world.terminal_state().empty());
  CHECK(texts(world.events) ==
        std::vector<std::string>{
            "Warning UnknownFailurePolicyAction: rule failurePolicyRule0 asks for the action "
            "\"Explode\", which is none of FailJobSet, RestartJobSet, "
            "RestartJobSetAndIgnoreMaxRestarts, RestartJob and RestartJobAndIgnoreMaxRestarts; "
            "delete the JobSet and correct the rule"});
}
