// One user's JobSet may cost this much: patterns, failed Jobs, writes and complaints of one
// reconcile. Whatever is asked for, the result is a status that the API server accepts.
#include <fmt/format.h>

#include <chrono>
#include <span>

#include "api/api.hh"
#include "runtimes/jobset/conditions.hh"
#include "runtimes/jobset/policies.hh"
#include "tests/unit/jobset/world.hh"

using namespace trainer;
using namespace trainer::jobset;
using namespace trainer::jobset::test;
using kube::Json;

namespace {

using Patterns = std::vector<std::string>;

FailurePolicy policy_of(const Patterns& patterns) {
  FailurePolicyRule rule;
  rule.name = "r";
  rule.action = "FailJobSet";
  rule.onJobFailureMessagePatterns = patterns;
  FailurePolicy policy;
  policy.rules = {rule};
  return policy;
}

// A JobSet whose replicated job b has `replicas` Jobs, all of them created.
World large_world(std::int32_t replicas, std::string_view more = {}, Gates gates = {}) {
  World world(test_js(more), gates);
  world.jobset()["spec"]["replicatedJobs"].as_array()[1]["replicas"] = replicas;
  world.settle();
  REQUIRE(world.jobs().size() == static_cast<std::size_t>(replicas) + 1);
  return world;
}

std::size_t count_events(const World& world, std::string_view reason) {
  return static_cast<std::size_t>(
      std::count_if(world.events.begin(), world.events.end(),
                    [&](const kube::PlannedEvent& event) { return event.reason == reason; }));
}

// Returns the errors that the API server would find in the status.
std::string status_errors(const World& world) {
  kube::FieldErrors errors;
  for (auto& error : check_schema(world.jobset())) {
    if (kube::to_string({error}).find("status") != std::string::npos)
      errors.push_back(std::move(error));
  }
  return kube::to_string(errors);
}

}  // namespace

TEST_CASE("patterns of a failure policy: what exceeds the limits finds nothing, and is named") {
  std::string wide;  // 147,000 characters when it is written out
  while (wide.size() < 1'000) wide += ".{999}";
  const struct {
    const char* about;
    Patterns patterns;
    const char* text;
    bool is_found;
    const char* refused;  // "": nothing
  } rows[] = {
      {"a usual one", {"exit code (137|143)"}, "it ended with exit code 137", true, ""},
      {"no regular expression", {"(exit"}, "(exit", false, "Patterns[0]: Invalid value: \"(exit\""},
      {"one too many", Patterns(51, "b"), "a", false,
       "onJobFailureMessagePatterns[50]: Invalid value: \"b\""},
      {"those before it are searched for", Patterns(51, "a"), "a", true,
       "Patterns[50]: Invalid value: \"a\""},
      {"too long", {std::string(2'049, 'a')}, "a", false, "Patterns[0]: Invalid value: \"aaaa"},
      {"too long together",
       {"x", std::string(2'040, 'a'), "bbbbbbbbb"},
       "bbbbbbbbb",
       false,
       "Patterns[2]: Invalid value: \"bbbbbbbbb\""},
      {"it compiles to too much",
       {"x", wide},
       "a",
       false,
       "Patterns[1]: Invalid value: \".{999}.{999}"},
      {"a quarter of a million states", {"(a|b)*a(a|b){17}c"}, "abc", false, ""},
      {"they compile to too much together", Patterns(30, ".{0,50}z"), "z", true, "Patterns["},
  };
  for (const auto& row : rows) {
    INFO(row.about);
    const FailurePatterns patterns(policy_of(row.patterns));
    CHECK(patterns.finds_any(0, row.text) == row.is_found);
    if (*row.refused == '\0') {
      CHECK_FALSE(patterns.refusal());
    } else {
      REQUIRE(patterns.refusal());
      const std::string text = patterns.refusal()->to_string();
      CHECK(text.find("spec.failurePolicy.rules[0].") == 0);
      CHECK_THAT(text, kube::test::contains(row.refused));
      CHECK(text.size() < 500);
    }
    CHECK(patterns.cost(1'000'000) <= 25'000'000);
  }
}

TEST_CASE("only the start of a message is searched") {
  const FailurePatterns patterns(policy_of({"end"}));
  CHECK(patterns.finds_any(0, std::string(1'021, 'x') + "end"));
  CHECK_FALSE(patterns.finds_any(0, std::string(1'022, 'x') + "end"));
}

TEST_CASE("patterns are compiled once for a uid and a generation") {
  FailurePatternCache cache;
  JobSet jobset;
  jobset.spec.failurePolicy = policy_of({"a"});
  jobset.metadata.uid = "1";
  const FailurePatterns* const first = &cache.of(jobset);
  CHECK(&cache.of(jobset) == first);
  jobset.metadata.generation = 2;
  jobset.spec.failurePolicy = policy_of({"b"});
  CHECK(cache.of(jobset).finds_any(0, "b"));
  for (int i = 0; i < 100; ++i) {
    jobset.metadata.uid = std::to_string(i);
    CHECK_FALSE(cache.of(jobset).finds_any(0, "a"));
  }
}

TEST_CASE("a policy whose patterns exceed the limits acts all the same, and says so") {
  World world(test_js());
  // Added by an update, which nothing validates.
  Json rules = Json::array();
  for (int i = 0; i < 3; ++i) {
    Json patterns = Json::array();
    for (int k = 0; k < 500; ++k) patterns.push_back(fmt::format("pattern {}$", k));
    rules.push_back(Json::object({{"name", fmt::format("r{}", i)},
                                  {"action", "FailJobSet"},
                                  {"onJobFailureMessagePatterns", std::move(patterns)}}));
  }
  world.jobset()["spec"]["failurePolicy"] =
      Json::object({{"maxRestarts", 1}, {"rules", std::move(rules)}});
  world.settle();
  world.fail(kA, "BackoffLimitExceeded", "pattern 499");
  world.settle();
  CHECK(world.restarts() == "1/1");
  CHECK(world.condition_reason("RestartingJobSet") == "DefaultFailurePolicy");
  CHECK(count_events(world, "FailurePatternRefused") == 1);
}

TEST_CASE("a rule whose name is no reason acts all the same") {
  const struct {
    std::string name;
    std::string reason;
  } rows[] = {
      {"x-y", "FailurePolicy_x_y"},
      {"ends:", "FailurePolicy_ends_"},
      {"a,b:c", "FailurePolicy_a,b:c"},
      {"\xc3\xbc ", "FailurePolicy____"},
      {"", "FailurePolicy_"},
      {std::string(5'000, 'a'), "FailurePolicy_" + std::string(1'010, 'a')},
  };
  for (const auto& row : rows) {
    INFO(row.name);
    World world(test_js("  failurePolicy: {maxRestarts: 1, rules: [{action: RestartJobSet}]}"));
    world.jobset()["spec"]["failurePolicy"]["rules"].as_array()[0]["name"] = row.name;
    world.settle();
    world.fail(kA);
    world.settle();
    CHECK(world.restarts() == "1/1");
    CHECK(world.condition_reason("RestartingJobSet") == row.reason);
    CHECK(status_errors(world).empty());
  }
}

TEST_CASE("a condition whose message is cut is written and announced once") {
  World world(test_js());
  world.settle();
  const std::string message(40'000, 'x');
  for (const bool is_first : {true, false}) {
    INFO(is_first);
    const auto jobset = read_jobset(world.jobset());
    REQUIRE(jobset);
    const Observed observed{*jobset};
    JobSetContext context(observed);
    for (ReplicatedJobState& rjob : context.rjobs) {
      REQUIRE(rjob.stored);
      rjob.counters = *rjob.stored;
    }
    context.set_condition(kSuspended, true, "SuspendedJobs", message);
    finish_status(context);
    CHECK(context.plan.status_patch.has_value() == is_first);
    CHECK(context.plan.events.size() == (is_first ? 2U : 0U));
    if (!is_first) continue;
    CHECK(context.plan.events[1].reason == "StatusTruncated");
    world.edit(*context.plan.status_patch);
    CHECK(world.condition("Suspended") == "True");
    CHECK(status_errors(world).empty());
  }
}

TEST_CASE("where searching all failed Jobs would cost too much, the earliest decide") {
  const std::string long_message(1'024, 'x');
  for (const bool is_early : {true, false}) {
    INFO(is_early);
    Json patterns = Json::array();
    for (int i = 0; i < 49; ++i) patterns.push_back("(a|b)*a(a|b){12}c");
    patterns.push_back("boom");
    World world = large_world(100);
    world.jobset()["spec"]["failurePolicy"] = Json::object(
        {{"maxRestarts", 1},
         {"rules", Json::array({Json::object({{"name", "r"},
                                              {"action", "FailJobSet"},
                                              {"onJobFailureMessagePatterns", patterns}})})}});
    const auto fail = [&world](int index, const std::string& message) {
      world.fail(fmt::format("test-js-replicated-job-b-{}", index), "PodFailurePolicy", message);
      world.now = world.now + std::chrono::seconds(1);
    };
    if (is_early) fail(70, "boom");
    for (int i = 0; i < 50; ++i) fail(i, long_message);
    if (!is_early) fail(70, "boom");
    world.settle();
    CHECK(world.terminal_state() == (is_early ? "Failed" : ""));
  }
}

TEST_CASE("a plan in slices is the same plan") {
  const JobSet jobset = [] {
    World world(test_js("  failurePolicy: {maxRestarts: 1}"));
    auto read = read_jobset(world.jobset());
    REQUIRE(read);
    return *read;
  }();
  std::vector<JobView> jobs(4);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].replicated_job = i == 0 ? "replicated-job-a" : "replicated-job-b";
    jobs[i].name = fmt::format("test-js-{}-{}", jobs[i].replicated_job, i == 0 ? 0 : i - 1);
    jobs[i].owner_uid = jobset.metadata.uid;
    jobs[i].restart_attempt = i == 3 ? "none" : "0";
    jobs[i].ready = 1;
  }
  Observed observed{jobset};
  for (const JobView& job : jobs) observed.jobs.push_back(&job);
  const auto text_of = [](const kube::Plan& planned) {
    std::string text = planned.status_patch ? kube::print_json(*planned.status_patch) : "";
    for (const auto& action : planned.actions) text += " " + action.key.name;
    for (const auto& event : texts(planned.events)) text += " " + event;
    return text;
  };
  const std::string whole = text_of(plan(observed));
  REQUIRE(whole.find("is left alone") != std::string::npos);
  Observed rest{jobset};
  SlicedPlan sliced(rest);
  const std::span<const JobView* const> all(observed.jobs);
  for (std::size_t i = 0; i < all.size(); ++i) sliced.add(all.subspan(i, 1));
  CHECK(text_of(sliced.finish()) == whole);
}

TEST_CASE("a restart of very many Jobs deletes them by and by") {
  World world = large_world(2'500, "  failurePolicy: {maxRestarts: 1}");
  world.fail(kA);
  world.context();  // counts the restart
  for (const std::size_t deletions : {1'000U, 1'000U, 501U}) {
    const auto planned = world.context();
    CHECK(planned.actions.size() == deletions);
    CHECK(planned.requeue_after.has_value() == (deletions == 1'000));
  }
  world.settle();
  world.release_all();
  world.settle();
  CHECK(world.attempts() == std::map<std::string, int>{{"1", 2'501}});
}

TEST_CASE("very many Jobs are suspended and resumed by and by") {
  World world = large_world(1'500);
  for (const bool is_suspended : {true, false}) {
    world.set_suspend(is_suspended);
    const auto first = world.context();
    CHECK(first.actions.size() >= 1'000);
    CHECK(first.actions.size() <= 1'001);  // the Service is one more
    CHECK(first.requeue_after.has_value());
    CHECK((world.condition("Suspended") == "True") != is_suspended);
    world.settle();
    CHECK((world.condition("Suspended") == "True") == is_suspended);
    CHECK(world.suspended_jobs() == (is_suspended ? 1'501 : 0));
  }
}

TEST_CASE("a finished JobSet goes after its Jobs, however many") {
  World world = large_world(1'500, "  ttlSecondsAfterFinished: 0");
  world.fail(kA);
  world.context();
  CHECK(world.terminal_state() == "Failed");
  world.context();
  CHECK_FALSE(world.is_jobset_deleted);
  world.settle();
  CHECK(world.is_jobset_deleted);
}

TEST_CASE("many Jobs with one problem are a few events") {
  World world = large_world(200);
  for (const auto& name : world.job_names()) {
    world.edit_job(
        name,
        Json::object({{"metadata",
                       Json::object({{"labels", Json::object({{"jobset.sigs.k8s.io/restart-attempt",
                                                               "x"}})}})}}));
  }
  world.set_suspend(true);
  world.events.clear();
  world.context();
  CHECK(world.events.size() <= 25);
}

TEST_CASE("where the status has no place for the restarts of single Jobs, the JobSet restarts") {
  Gates gates;
  gates.restart_job = true;
  World world =
      large_world(1'025, "  failurePolicy: {maxRestarts: 1, rules: [{action: RestartJob}]}", gates);
  world.fail("test-js-replicated-job-b-7");
  world.settle();
  CHECK(world.restarts() == "1/1");
  CHECK(count_events(world, "TooManyReplicas") == 1);
  CHECK(status_errors(world).empty());
}
