// These are tables of the policies that need no running Job: sets of indexes, rules of pods and of
// success, waits after failures.
#include "runtimes/batch/policies.hh"

#include <fmt/format.h>

#include "tests/unit/batch/world.hh"

using namespace trainer::batch;
using namespace trainer::batch::test;
using kube::Json;

namespace {

BatchJob job_of(std::string_view spec) {
  return read_job(std::make_shared<const Json>(
      with(yaml("{metadata: {name: j, namespace: ns}}"), fmt::format("{{spec: {}}}", spec))));
}

BatchPodView pod_of(std::string_view status) {
  return *view_pod(with(yaml("{metadata: {name: p, namespace: ns, uid: u}}"),
                        fmt::format("{{status: {}}}", status)));
}

std::string containers(std::string_view codes) {
  return fmt::format("{{phase: Failed, containerStatuses: [{}]}}", codes);
}

std::string ended(std::string_view name, int code) {
  return fmt::format("{{name: {}, state: {{terminated: {{exitCode: {}}}}}}}", name, code);
}

}  // namespace

TEST_CASE("a set of indexes is read and written as a status has it") {
  struct Row {
    const char* text;
    std::int32_t limit;
    const char* written;
    std::int32_t total;
  };
  for (const Row& row : {
           Row{"", 5, "", 0},
           Row{"0", 5, "0", 1},
           Row{"0,1", 5, "0,1", 2},
           Row{"0-1", 5, "0,1", 2},
           Row{"0,1,2", 5, "0-2", 3},
           Row{"0-2,4,6,7", 9, "0-2,4,6,7", 6},
           Row{"3,1", 5, "1,3", 2},
           Row{"0-9", 5, "0-4", 5},
           Row{"1,7", 5, "1", 1},
           Row{"x,2,3-y,-1,4-3", 9, "2", 1},
       }) {
    INFO(row.text);
    const IndexSet set = IndexSet::parse(row.text, row.limit);
    CHECK(set.to_string() == row.written);
    CHECK(set.total() == row.total);
  }
}

TEST_CASE("a set of indexes joins what touches") {
  IndexSet set;
  for (const int index : {5, 1, 3, 2, 9, 4}) set.add(index);
  CHECK(set.to_string() == "1-5,9");
  CHECK(set.has(1));
  CHECK(set.has(5));
  CHECK_FALSE(set.has(0));
  CHECK_FALSE(set.has(6));
  CHECK(set.first_missing(3, 100) == std::vector<std::int32_t>{0, 6, 7});
  CHECK(set.first_missing(9, 8) == std::vector<std::int32_t>{0, 6, 7});
  CHECK(set.first_missing(9, 1) == std::vector<std::int32_t>{0});
  CHECK(set.shared_with(IndexSet::parse("0-3,9,12", 20)) == 4);
  set.add(IndexSet::parse("0,6-8", 20));
  CHECK(set.to_string() == "0-9");
}

TEST_CASE("podFailurePolicy: the first rule that matches decides") {
  const std::string rule_42 = "onExitCodes: {containerName: c, operator: In, values: [42, 43]}";
  struct Row {
    std::string rules;
    std::string status;
    bool is_counted;
    bool fails_index;
    std::string job_failure;
  };
  const std::string failed_42 =
      "Container c for pod ns/p failed with exit code 42 matching FailJob rule at index ";
  for (const Row& row : {
           Row{"", containers(ended("c", 42)), true, false, ""},
           Row{"{action: FailJob, " + rule_42 + "}", containers(ended("c", 42)), true, false,
               failed_42 + "0"},
           Row{"{action: FailJob, " + rule_42 + "}", containers(ended("c", 1)), true, false, ""},
           Row{"{action: FailJob, " + rule_42 + "}", containers(ended("d", 42)), true, false, ""},
           Row{"{action: FailJob, " + rule_42 + "}", containers("{name: c, state: {running: {}}}"),
               true, false, ""},
           Row{"{action: FailJob, onExitCodes: {operator: In, values: [42]}}",
               containers(ended("d", 0) + ", " + ended("c", 42)), true, false, failed_42 + "0"},
           Row{"{action: FailJob, onExitCodes: {operator: NotIn, values: [42]}}",
               containers(ended("c", 42)), true, false, ""},
           Row{"{action: Ignore, onExitCodes: {operator: NotIn, values: [42]}}",
               containers(ended("c", 3)), false, false, ""},
           Row{"{action: Ignore, onExitCodes: {operator: NotIn, values: [42]}}",
               containers(ended("c", 0)), true, false, ""},
           Row{"{action: FailIndex, " + rule_42 + "}", containers(ended("c", 43)), true, true, ""},
           Row{"{action: Count, " + rule_42 + "}, {action: FailJob, " + rule_42 + "}",
               containers(ended("c", 42)), true, false, ""},
           Row{"{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}, {action: FailJob, " +
                   rule_42 + "}",
               containers(ended("c", 42)), true, false, failed_42 + "1"},
           Row{"{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: 'True'}]}",
               "{phase: Failed, conditions: [{type: DisruptionTarget, status: 'True'}]}", false,
               false, ""},
           Row{"{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: 'True'}]}",
               "{phase: Failed, conditions: [{type: DisruptionTarget, status: 'False'}]}", true,
               false, ""},
           Row{"{action: FailJob, onPodConditions: [{type: ConfigIssue, status: 'True'}]}",
               "{phase: Failed, conditions: [{type: ConfigIssue, status: 'True'}]}", true, false,
               "Pod ns/p has condition ConfigIssue matching FailJob rule at index 0"},
           Row{"{action: FailJob, onExitCodes: {operator: In, values: [7]}}",
               "{phase: Failed, initContainerStatuses: [" + ended("init", 7) + "]}", true, false,
               "Container init for pod ns/p failed with exit code 7 matching FailJob rule at "
               "index 0"},
       }) {
    INFO(row.rules << " of " << row.status);
    const BatchJob job = job_of("{podFailurePolicy: {rules: [" + row.rules + "]}}");
    const PolicyMatch match = match_pod_failure_policy(job, pod_of(row.status));
    CHECK(match.is_counted == row.is_counted);
    CHECK(match.fails_index == row.fails_index);
    CHECK(match.job_failure == row.job_failure);
  }
}

TEST_CASE("successPolicy: indexes, a count, or a count of indexes") {
  struct Row {
    const char* rules;
    const char* succeeded;
    const char* expected;
  };
  for (const Row& row : {
           Row{"{succeededIndexes: '0,2-3'}", "0,2", ""},
           Row{"{succeededIndexes: '0,2-3'}", "0,2,3", "Matched rules at index 0"},
           Row{"{succeededIndexes: '0,2-3'}", "1,4", ""},
           Row{"{succeededCount: 2}", "4", ""},
           Row{"{succeededCount: 2}", "1,4", "Matched rules at index 0"},
           Row{"{succeededIndexes: '0-2', succeededCount: 2}", "0,4", ""},
           Row{"{succeededIndexes: '0-2', succeededCount: 2}", "0,2", "Matched rules at index 0"},
           Row{"{succeededIndexes: '3'}, {succeededCount: 1}", "0", "Matched rules at index 1"},
           Row{"{succeededIndexes: 'x'}", "0", ""},
           Row{"{succeededCount: 0}", "", ""},
           Row{"", "0-4", ""},
       }) {
    INFO(row.rules << " with " << row.succeeded);
    const BatchJob job =
        job_of(fmt::format("{{completionMode: Indexed, completions: 5, parallelism: 5, "
                           "successPolicy: {{rules: [{}]}}}}",
                           row.rules));
    Observed observed;
    observed.job = &job;
    Context context(observed);
    context.succeeded_indexes = IndexSet::parse(row.succeeded, 5);
    CHECK(match_success_policy(context) == row.expected);
  }
}

TEST_CASE("the wait after failures doubles up to ten minutes") {
  struct Row {
    int failures;
    int seconds_ago;
    int remaining;
  };
  const kube::Time now = kube::Time::from_seconds(1'000'000);
  for (const Row& row : {Row{0, 0, 0}, Row{1, 0, 10}, Row{1, 4, 6}, Row{1, 10, 0}, Row{1, 99, 0},
                         Row{2, 0, 20}, Row{3, 0, 40}, Row{6, 0, 320}, Row{7, 0, 600},
                         Row{8, 0, 600}, Row{1'000'000'000, 0, 600}}) {
    INFO(row.failures << " failures, the last " << row.seconds_ago << " s ago");
    CHECK(remaining_backoff(row.failures, now + -std::chrono::seconds(row.seconds_ago), now) ==
          std::chrono::seconds(row.remaining));
  }
}

TEST_CASE("defaults of a Job that the API server has not defaulted") {
  CHECK(job_of("{}").completions == 1);
  CHECK(job_of("{parallelism: 3}").completions == std::nullopt);
  CHECK(job_of("{parallelism: 3, completions: 2}").completions == 2);
  CHECK(job_of("{}").backoff_limit == 6);
  CHECK(job_of("{backoffLimitPerIndex: 1}").backoff_limit == 2'147'483'647);
  CHECK_FALSE(job_of("{}").replaces_only_failed);
  CHECK(job_of("{podFailurePolicy: {rules: []}}").replaces_only_failed);
  CHECK(job_of("{managedBy: example.com/other}").is_foreign());
  CHECK_FALSE(job_of("{managedBy: kubernetes.io/job-controller}").is_foreign());
}

TEST_CASE("when a pod has ended") {
  struct Row {
    const char* metadata;
    const char* status;
    const char* expected;
  };
  for (const Row& row : {
           Row{"{}",
               "{phase: Failed, containerStatuses: [{state: {terminated: {finishedAt: "
               "'2026-01-01T00:00:05Z'}}}, {state: {terminated: {finishedAt: "
               "'2026-01-01T00:00:03Z'}}}]}",
               "2026-01-01T00:00:05Z"},
           Row{"{}",
               "{phase: Failed, containerStatuses: [{state: {running: {}}}], conditions: [{type: "
               "Ready, status: 'False', lastTransitionTime: '2026-01-01T00:00:04Z'}]}",
               "2026-01-01T00:00:04Z"},
           Row{"{deletionTimestamp: '2026-01-01T00:00:40Z', deletionGracePeriodSeconds: 30}",
               "{phase: Running}", "2026-01-01T00:00:10Z"},
           Row{"{}", "{phase: Failed}", "2026-01-01T00:00:00Z"},
       }) {
    INFO(row.metadata << row.status);
    Json pod = with(yaml("{metadata: {name: p, creationTimestamp: '2026-01-01T00:00:00Z'}}"),
                    fmt::format("{{metadata: {}, status: {}}}", row.metadata, row.status));
    CHECK(view_pod(pod)->finished.to_string() == row.expected);
  }
}

TEST_CASE("a status that is no object counts as none") {
  World world("{completions: 1, suspend: true}");
  world.job.set("status", "text");
  world.patch_job("{spec: {suspend: false}}");
  CHECK(world.pods() == "j Pending*");
  CHECK(world.counters() == "1 active");
}
