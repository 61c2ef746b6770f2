// This JobSet controller departs from upstream: failure at FailureTarget, disruptions, restarts
// counted once, Jobs removed by their own TTL, labels that do not parse, sizes without bound.
#include <fmt/format.h>

#include "api/api.hh"
#include "kube/model/json_text.hh"
#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/construct.hh"
#include "runtimes/jobset/disruption.hh"
#include "runtimes/jobset/names.hh"
#include "tests/unit/jobset/world.hh"

using namespace trainer;
using namespace trainer::jobset;
using namespace trainer::jobset::test;
using kube::Json;

namespace {

std::string with_annotation(std::string yaml, std::string_view count) {
  const std::string plain = "metadata: {name: test-js}";
  const std::size_t at = yaml.find(plain);
  REQUIRE(at != std::string::npos);
  return yaml.replace(at, plain.size(),
                      fmt::format("metadata: {{name: test-js, annotations: "
                                  "{{trainer.kubeflow.org/max-disruption-restarts: \"{}\"}}}}",
                                  count));
}

PodView disrupted_pod(const Json& job) {
  PodView pod;
  pod.name = "p";
  const Json& labels = job.get("metadata").get("labels");
  pod.replicated_job = labels.get_string(kReplicatedJobNameKey);
  pod.job_index = labels.get_string(kJobIndexKey);
  pod.attempt = parse_count(labels.get_string(kRestartAttemptKey)).value();
  pod.is_infrastructure_failure = true;
  return pod;
}

void restart_done(World& world) {
  world.settle();
  world.release_all();
  world.settle();
}

}  // namespace

TEST_CASE("recovery starts at FailureTarget, while pods still end") {
  World world(test_js("  failurePolicy: {maxRestarts: 1}"));
  world.settle();
  world.ready(kA);
  world.set_condition(kA, "FailureTarget", "BackoffLimitExceeded", "m");
  world.context();
  CHECK(world.restarts() == "1/1");
  CHECK(world.counters("replicated-job-a") == "ready 0 succeeded 0 failed 0 active 0 suspended 0");
  restart_done(world);
  CHECK(world.attempts() == std::map<std::string, int>{{"1", 4}});
}

TEST_CASE("reason and message of FailureTarget are what rules see") {
  World world(
      test_js("  failurePolicy: {rules: [{action: FailJobSet, onJobFailureReasons: "
              "[PodFailurePolicy], onJobFailureMessagePatterns: [exit]}]}"));
  world.settle();
  world.set_condition(kB, "FailureTarget", "PodFailurePolicy", "container c: exit code 3");
  world.settle();
  CHECK(world.condition_reason("Failed") == "FailJobSetFailurePolicyAction");
  CHECK(world.counters("replicated-job-b") == "ready 0 succeeded 0 failed 1 active 0 suspended 0");
  // It ends by itself, and shows the failure.
  CHECK_FALSE(world.job(kB).find("metadata")->find("deletionTimestamp"));
}

TEST_CASE("a restart whose write was lost or repeated counts once") {
  World world(test_js("  failurePolicy: {maxRestarts: 3}"));
  world.settle();
  world.fail(kA);
  const Json before = world.jobset();
  const auto first = world.context();
  REQUIRE(first.status_patch);
  const Json after = world.jobset();
  // The write was lost: the JobSet is unchanged, so the same patch is asked for again, counting to
  // the same number.
  world.jobset() = before;
  const auto again = world.context();
  REQUIRE(again.status_patch);
  CHECK(*again.status_patch == *first.status_patch);
  CHECK(*again.status_patch->find_path({"status", "restarts"}) == 1);
  // The write arrived: the failed Job is of a previous attempt by then.
  world.jobset() = after;
  const auto next = world.context();
  CHECK(next.actions.size() == 4);
  CHECK(world.restarts() == "1/1");
  restart_done(world);
  CHECK(world.restarts() == "1/1");
}

TEST_CASE("the pass that counts a restart deletes nothing of this attempt") {
  World world(test_js("  failurePolicy: {maxRestarts: 3}"));
  world.settle();
  world.fail(kA);
  world.context();
  world.settle();
  // A second failure while Jobs of the first attempt still linger.
  for (const char* index : {"0", "1", "2"}) {
    world.release(fmt::format("test-js-replicated-job-b-{}", index));
  }
  world.settle();
  world.fail(kB);
  const auto counting = world.context();
  CHECK(counting.is_status_first());
  CHECK(world.restarts() == "2/2");
  for (const auto& action : counting.actions) CHECK(action.key.name == kA);
}

TEST_CASE("a Job removed by its own TTL does not run again") {
  const std::string more = "";
  World world(test_js());
  for (Json& job : world.jobset()["spec"]["replicatedJobs"].as_array()) {
    job["template"]["spec"]["ttlSecondsAfterFinished"] = 0;
  }
  world.settle();
  world.complete(kA);
  const auto planned = world.context();
  // Only the status will know it, so it is not held back.
  CHECK_FALSE(planned.is_status_minor());
  world.remove(kA);
  world.settle();
  CHECK(world.jobs().size() == 3);
  CHECK(world.counters("replicated-job-a") == "ready 0 succeeded 1 failed 0 active 0 suspended 0");
  for (const char* index : {"0", "1", "2"}) {
    world.complete(fmt::format("test-js-replicated-job-b-{}", index));
  }
  world.settle();
  CHECK(world.terminal_state() == "Completed");
}

TEST_CASE("a Job removed by its own TTL does not run again when its neighbour completes later") {
  World world(test_js());
  for (Json& job : world.jobset()["spec"]["replicatedJobs"].as_array()) {
    job["template"]["spec"]["ttlSecondsAfterFinished"] = 0;
  }
  world.settle();
  for (const char* index : {"0", "1", "2"}) {
    const auto name = fmt::format("test-js-replicated-job-b-{}", index);
    world.complete(name);
    world.settle();
    world.remove(name);
    world.settle();
    CHECK_FALSE(world.jobs().contains(name));
  }
  CHECK(world.counters("replicated-job-b") == "ready 0 succeeded 3 failed 0 active 0 suspended 0");
  world.complete(kA);
  world.settle();
  CHECK(world.terminal_state() == "Completed");
}

TEST_CASE("the success of one attempt is not remembered for the next") {
  World world(test_js("  failurePolicy: {maxRestarts: 1}"));
  for (Json& job : world.jobset()["spec"]["replicatedJobs"].as_array()) {
    job["template"]["spec"]["ttlSecondsAfterFinished"] = 0;
  }
  world.settle();
  world.complete(kA);
  world.settle();
  world.remove(kA);
  world.settle();
  world.fail(kB);
  restart_done(world);
  CHECK(world.attempts() == std::map<std::string, int>{{"1", 4}});
}

TEST_CASE("what others wait for outlives restarts where the JobSet asks for it") {
  enum class Then { kComplete, kReady, kNotReady, kGone };
  struct Row {
    const char* about;
    const char* kept;
    const char* status;  // the state that b waits for
    Then then;
    bool is_kept;
  };
  const Row rows[] = {
      {"a complete initializer", "x,replicated-job-a", "Complete", Then::kComplete, true},
      {"one that its TTL has removed", "replicated-job-a", "Complete", Then::kGone, true},
      {"a server that is ready", "replicated-job-a,", "Ready", Then::kReady, true},
      {"a server that is not ready any more", "replicated-job-a", "Ready", Then::kNotReady, false},
      {"one that runs, and whose end is waited for", "replicated-job-a", "", Then::kReady, false},
      {"none is named", ",replicated-job", "Complete", Then::kComplete, false},
  };
  for (const Row& row : rows) {
    INFO(row.about);
    World world(test_js("  failurePolicy: {maxRestarts: 2}"));
    world.jobset()["metadata"]["annotations"].set(kKeptOnRestartKey, row.kept);
    Json::Array& jobs = world.jobset()["spec"]["replicatedJobs"].as_array();
    if (*row.status)
      jobs[1].set(
          "dependsOn",
          Json::array({Json::object({{"name", "replicated-job-a"}, {"status", row.status}})}));
    if (row.then == Then::kGone) jobs[0]["template"]["spec"].set("ttlSecondsAfterFinished", 0);
    world.settle();
    const Json uid = *world.job(kA).find_path({"metadata", "uid"});
    const bool is_server = row.then == Then::kReady || row.then == Then::kNotReady;
    is_server ? world.ready(kA) : world.complete(kA);
    world.settle();
    if (row.then == Then::kNotReady) world.activate(kA);
    if (row.then == Then::kGone) world.remove(kA);
    for (const char* attempt : {"1", "2"}) {
      world.fail(kB);
      restart_done(world);
      if (row.then == Then::kGone) {
        CHECK(world.attempts() == std::map<std::string, int>{{attempt, 3}});
        continue;
      }
      CHECK((*world.job(kA).find_path({"metadata", "uid"}) == uid) == row.is_kept);
      CHECK(world.job(kA).find_path({"metadata", "labels"})->get_string(kRestartAttemptKey) ==
            attempt);
      if (!row.is_kept) break;
      CHECK(world.attempts() == std::map<std::string, int>{{attempt, 4}});
      CHECK(world.counters("replicated-job-a") ==
            (is_server ? "ready 1 succeeded 0 failed 0 active 1 suspended 0"
                       : "ready 0 succeeded 1 failed 0 active 0 suspended 0"));
    }
  }
}

TEST_CASE("a kept Job that fails is made again, and ends what it may end") {
  World world(test_js("  failurePolicy: {maxRestarts: 1}"));
  world.jobset()["metadata"]["annotations"].set(kKeptOnRestartKey, "replicated-job-a");
  world.settle();
  world.fail(kA);
  restart_done(world);
  CHECK(world.attempts() == std::map<std::string, int>{{"1", 4}});
  world.fail(kA);
  world.settle();
  CHECK(world.terminal_state() == "Failed");
}

TEST_CASE("without a TTL of its own a Job that vanished runs again") {
  World world(test_js());
  world.settle();
  world.complete(kA);
  world.settle();
  world.remove(kA);
  world.settle();
  CHECK(world.jobs().size() == 4);
}

TEST_CASE("a label that does not parse stops one Job, not the JobSet") {
  World world(test_js());
  world.settle();
  world.edit_job(
      kA, Json::object(
              {{"metadata",
                Json::object(
                    {{"labels", Json::object({{"jobset.sigs.k8s.io/restart-attempt", "x"}})}})}}));
  world.remove(kB);
  world.settle();
  CHECK(world.jobs().size() == 4);
  REQUIRE(world.events.size() == 1);
  CHECK(world.events[0].type == "Warning");
  CHECK(world.events[0].reason == "MalformedJobLabel");
  CHECK(
      world.events[0].message ==
      "Job test-js-replicated-job-a-0 is left alone: its label jobset.sigs.k8s.io/restart-attempt "
      "is \"x\", which is not a number; correct the label, or delete the Job to have it created "
      "again");
  world.fail(kB);
  world.settle();
  CHECK(world.terminal_state() == "Failed");
  // Nothing runs on after the end.
  CHECK(world.job(kA).find("metadata")->find("deletionTimestamp"));
}

TEST_CASE("Jobs of an earlier attempt that outlived the end are deleted") {
  World world(test_js("  failurePolicy: {maxRestarts: 1}"));
  world.settle();
  world.edit(Json::object(
      {{"status",
        Json::object({{"restarts", 1},
                      {"terminalState", "Failed"},
                      {"conditions", Json::array({Json::object(
                                         {{"type", "Failed"},
                                          {"status", "True"},
                                          {"lastTransitionTime", world.now.to_string()}})})}})}}));
  world.settle();
  REQUIRE(world.jobs().size() == 4);
  for (const auto& [name, job] : world.jobs()) {
    CHECK(job.find("metadata")->find("deletionTimestamp"));
  }
}

TEST_CASE("disruptions have a budget of their own") {
  struct Row {
    const char* about;
    const char* annotation;  // "" for none
    const char* policy;
    bool is_disrupted;
    const char* restarts;  // after one failure
    const char* terminal;
  };
  const Row rows[] = {
      {"not asked for", "", "", true, "0/0", "Failed"},
      {"not asked for, with a policy", "", "{maxRestarts: 1}", true, "1/1", ""},
      {"asked for", "2", "", true, "1/0", ""},
      {"asked for, but the program failed", "2", "", false, "0/0", "Failed"},
      {"before the ordinary budget", "2", "{maxRestarts: 1}", true, "1/0", ""},
      {"an ordinary failure", "2", "{maxRestarts: 1}", false, "1/1", ""},
      {"counted rules yield", "2", "{maxRestarts: 1, rules: [{action: RestartJobSet}]}", true,
       "1/0", ""},
      {"other rules do not", "2", "{rules: [{action: FailJobSet}]}", true, "0/0", "Failed"},
      {"nonsense is none", "many", "", true, "0/0", "Failed"},
      {"zero is none", "0", "", true, "0/0", "Failed"},
  };
  for (const bool has_pod : {true, false}) {
    for (const Row& row : rows) {
      INFO(row.about << (has_pod ? ", seen on the pod" : ", said by the Job"));
      std::string yaml =
          test_js(*row.policy ? std::string("  failurePolicy: ") + row.policy : std::string());
      if (*row.annotation) yaml = with_annotation(std::move(yaml), row.annotation);
      World world(yaml);
      world.settle();
      if (row.is_disrupted && has_pod) {
        world.pods.push_back(disrupted_pod(world.job(kA)));
        world.fail(kA);
      } else if (row.is_disrupted) {
        world.fail(kA, "PodFailurePolicy",
                   "Pod default/p has condition DisruptionTarget matching FailJob rule at index 0");
      } else {
        world.fail(kA);
      }
      restart_done(world);
      CHECK(world.restarts() == row.restarts);
      CHECK(world.terminal_state() == row.terminal);
    }
  }
}

TEST_CASE("the budget of disruptions is kept") {
  World world(with_annotation(test_js("  failurePolicy: {maxRestarts: 1}"), "2"));
  world.settle();
  const char* const expected[] = {"1/0", "2/0", "3/1"};
  for (const char* restarts : expected) {
    world.fail(kA, "PodFailurePolicy", "Pod default/p has condition DisruptionTarget matching");
    restart_done(world);
    CHECK(world.restarts() == restarts);
    CHECK(world.terminal_state().empty());
  }
  CHECK(texts(world.events)[0] ==
        "Warning Disruption: restarting after a disruption, 1 of at most 2 (first failed job: "
        "test-js-replicated-job-a-0)");
  world.fail(kA, "PodFailurePolicy", "Pod default/p has condition DisruptionTarget matching");
  restart_done(world);
  CHECK(world.terminal_state() == "Failed");
}

TEST_CASE("a pod of an earlier attempt proves nothing about this failure") {
  World world(with_annotation(test_js(), "2"));
  world.settle();
  PodView pod;
  pod.replicated_job = "replicated-job-a";
  pod.job_index = "0";
  pod.is_infrastructure_failure = true;
  world.pods.push_back(pod);
  world.fail(kA);
  restart_done(world);
  CHECK(world.restarts() == "1/0");
  world.fail(kA);
  restart_done(world);
  CHECK(world.terminal_state() == "Failed");
}

TEST_CASE("after a failure of a node its Jobs prefer other nodes") {
  struct Row {
    const char* about;
    const char* node;
    bool is_node_failure;
    bool is_of_failed_job;
    const char* preferred;  // "" for no affinity
  };
  const Row rows[] = {
      {"lost", "n-1.example", true, true, "n-1.example"},
      {"of the program", "n-1.example", false, true, ""},
      {"of another Job", "n-1.example", true, false, ""},
      {"never scheduled", "", true, true, ""},
  };
  const auto terms_of = [](const World& world) {
    return world.job(kA).get_path({"spec", "template", "spec", "affinity", "nodeAffinity",
                                   "preferredDuringSchedulingIgnoredDuringExecution"});
  };
  for (const Row& row : rows) {
    INFO(row.about);
    World world(test_js("  failurePolicy: {maxRestarts: 3}"));
    world.settle();
    CHECK(terms_of(world).is_null());
    PodView pod = disrupted_pod(world.job(kA));
    pod.node_name = row.node;
    pod.is_node_failure = row.is_node_failure;
    if (!row.is_of_failed_job) pod.job_index = "7";
    world.pods.push_back(pod);
    world.fail(kA);
    const int writes = world.status_writes;
    const kube::Plan counted = world.context();
    CHECK(world.status_writes == writes + 1);  // together with the restart
    CHECK(counted.actions.empty());
    world.pods.clear();
    restart_done(world);
    CHECK(world.restarts() == "1/1");
    const Json expected = *kube::parse_json(
        R"([{"weight":100,"preference":{"matchFields":[{"key":"metadata.name","operator":"NotIn",
            "values":["n-1.example"]}]}}])");
    CHECK(terms_of(world) == (*row.preferred ? expected : Json()));
    CHECK(world.condition(kAvoidedNode) == (*row.preferred ? "True" : ""));
    // The next restart does not forget it, and it is only a preference.
    world.fail(kA);
    restart_done(world);
    CHECK(terms_of(world) == (*row.preferred ? expected : Json()));
    CHECK(world.job(kA).find_path({"spec", "template", "spec", "affinity", "nodeAffinity",
                                   "requiredDuringSchedulingIgnoredDuringExecution"}) == nullptr);
  }
}

TEST_CASE("pods of a kept Job prove its disruption in later attempts, too") {
  World world(with_annotation(test_js("  failurePolicy: {maxRestarts: 1}"), "2"));
  world.jobset()["metadata"]["annotations"].set(kKeptOnRestartKey, "replicated-job-a");
  Json::Array& jobs = world.jobset()["spec"]["replicatedJobs"].as_array();
  jobs[1].set("dependsOn",
              Json::array({Json::object({{"name", "replicated-job-a"}, {"status", "Ready"}})}));
  world.settle();
  PodView pod = disrupted_pod(world.job(kA));
  world.ready(kA);
  world.settle();
  world.fail(kB);
  restart_done(world);
  CHECK(world.restarts() == "1/1");
  pod.node_name = "n-1";
  pod.is_node_failure = true;
  world.pods.push_back(pod);
  world.fail(kA);
  restart_done(world);
  CHECK(world.restarts() == "2/1");
  CHECK(world.condition(kAvoidedNode) == "True");
}

TEST_CASE("of several pods the first one names the node, and an affinity of the template stays") {
  World world(test_js("  failurePolicy: {maxRestarts: 3}"));
  Json& template_ = world.jobset()["spec"]["replicatedJobs"].as_array()[0]["template"];
  template_["spec"]["template"]["spec"]["affinity"] = *kube::parse_json(
      R"({"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1}]}})");
  world.settle();
  for (const char* node : {"late", "early"}) {
    PodView pod = disrupted_pod(world.job(kA));
    pod.node_name = node;
    pod.is_node_failure = true;
    pod.failure.emplace().finished_at = kube::Time::from_seconds(pod.node_name == "late" ? 20 : 10);
    world.pods.push_back(pod);
  }
  world.fail(kA);
  restart_done(world);
  const Json& terms =
      world.job(kA).get_path({"spec", "template", "spec", "affinity", "nodeAffinity",
                              "preferredDuringSchedulingIgnoredDuringExecution"});
  REQUIRE(terms.size() == 2);
  CHECK(terms.as_array()[0].get_int("weight") == 1);
  const std::string text = kube::print_json(terms.as_array()[1]);
  CHECK(text.find(R"(["early"])") != std::string::npos);
}

TEST_CASE("a JobSet with disruption restarts gets Jobs that report disruptions") {
  const auto policy_of = [](const char* spec_text) {
    Json spec = *kube::parse_json(spec_text);
    report_disruptions(spec);
    const Json* policy = spec.find("podFailurePolicy");
    return policy ? kube::print_json(*policy) : std::string();
  };
  const std::string rule =
      R"({"action":"FailJob","onPodConditions":[{"status":"True","type":"DisruptionTarget"}]})";
  CHECK(policy_of(R"({"template":{"spec":{"restartPolicy":"Never"}}})") ==
        R"({"rules":[)" + rule + "]}");
  CHECK(policy_of(R"({"template":{"spec":{"restartPolicy":"OnFailure"}}})").empty());
  CHECK(policy_of(R"({"podReplacementPolicy":"TerminatingOrFailed",
                      "template":{"spec":{"restartPolicy":"Never"}}})")
            .empty());
  // The rule is in front of the user's rules, and not there twice.
  CHECK(policy_of(R"({"podFailurePolicy":{"rules":[{"action":"Count"}]},
                      "template":{"spec":{"restartPolicy":"Never"}}})") ==
        R"({"rules":[)" + rule + R"(,{"action":"Count"}]})");
  const std::string own =
      R"({"rules":[{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]}]})";
  CHECK(policy_of(
            (R"({"podFailurePolicy":)" + own + R"(,"template":{"spec":{"restartPolicy":"Never"}}})")
                .c_str()) == own);
  World world(with_annotation(test_js(), "1"));
  world.settle();
  CHECK(world.job(kA).find_path({"spec", "podFailurePolicy", "rules"}));
}

TEST_CASE("a huge JobSet is created by and by") {
  World world(test_js());
  world.jobset()["spec"]["replicatedJobs"].as_array()[0]["replicas"] = 2'000'000'000;
  const auto first = world.context();
  CHECK(first.actions.size() == 257);  // the Service is one more
  CHECK(first.requeue_after.has_value());
  world.context();
  CHECK(world.jobs().size() == 512);
}

TEST_CASE("large templates are copied by and by") {
  World world(test_js());
  Json& job = world.jobset()["spec"]["replicatedJobs"].as_array()[1];
  job["replicas"] = 40;
  job["template"]["spec"]["template"]["spec"]["containers"].as_array()[0]["args"] =
      Json::array({std::string(1'000'000, 'x')});
  const auto first = world.context();
  CHECK(first.actions.size() < 20);
  CHECK(first.requeue_after.has_value());
  world.settle();
  CHECK(world.jobs().size() == 41);
}

TEST_CASE("last lines are kept for the Jobs of TrainJobs only, and only where nothing is said") {
  for (const bool is_of_trainjob : {true, false}) {
    World world(test_js());
    static constexpr JobDecorator kDecorators[] = {keep_last_lines};
    if (is_of_trainjob) world.decorators = kDecorators;
    Json& spec = world.jobset()["spec"]["replicatedJobs"]
                     .as_array()[0]["template"]["spec"]["template"]["spec"];
    spec["initContainers"] = Json::array({Json::object({{"name", "init"}})});
    spec["containers"].push_back(
        Json::object({{"name", "own"}, {"terminationMessagePolicy", "File"}}));
    world.settle();
    const Json& pod = *world.job(kA).find_path({"spec", "template", "spec"});
    const std::string expected = is_of_trainjob ? "FallbackToLogsOnError" : "";
    CHECK(pod.get_array("containers")[0].get_string("terminationMessagePolicy") == expected);
    CHECK(pod.get_array("containers")[1].get_string("terminationMessagePolicy") == "File");
    CHECK(pod.get_array("initContainers")[0].get_string("terminationMessagePolicy") == expected);
  }
}

TEST_CASE("pods are asked for only where they decide something") {
  const auto needs = [](const std::string& yaml, Gates gates, bool has_failed = false) {
    World world(yaml);
    const auto read = read_jobset(world.jobset());
    REQUIRE(read);
    JobView job;
    if (has_failed) job.failure_target.emplace().status = "True";
    const JobView* const jobs[] = {&job};
    return needs_pods(*read, gates, jobs);
  };
  Gates open;
  open.in_place_restart = true;
  CHECK_FALSE(needs(test_js(), open));
  CHECK(needs(test_js(), open, true));
  CHECK(needs(with_annotation(test_js(), "1"), {}));
  const std::string in_place = test_js("  failurePolicy: {restartStrategy: InPlaceRestart}");
  CHECK(needs(in_place, open));
  CHECK_FALSE(needs(in_place, {}));
}
