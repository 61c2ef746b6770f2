#include "controller/cli/why_report.hh"

#include <algorithm>

#include "controller/kinds/trainjob/command_hooks.hh"
#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;
using kube::Time;

namespace {

const Time kNone = *Time::parse("2026-08-20T10:00:00Z");

Json json(std::string_view text) {
  return *kube::parse_json(text);
}

TrainJob job(std::string phase, std::string reason, std::string message) {
  TrainJob made;
  made.metadata.name = "llama";
  made.metadata.ns = "team-a";
  made.status.phase = std::move(phase);
  made.status.reason = std::move(reason);
  made.status.message = std::move(message);
  return made;
}

WhyReport why(const TrainJob& asked, const std::vector<Json>& pods, const std::vector<Json>& events,
              Time now, std::string_view program = "trainer") {
  WhyFacts facts;
  facts.pods = pods;
  facts.events = events;
  return trainer::why(kTrainJobs, asked.metadata.key(), trainjob_state(asked, program), facts, now);
}

bool has_line(const WhyReport& report, const std::string& line) {
  return std::find(report.evidence.begin(), report.evidence.end(), line) != report.evidence.end();
}

}  // namespace

TEST_CASE("the report of a job that waits has its pods' reasons and the next step") {
  const Json pod =
      json(R"({"metadata":{"name":"llama-node-0-0-x"},"status":{"phase":"Pending","conditions":[
      {"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes are available"}]}})");
  const Json event =
      json(R"({"type":"Warning","reason":"FailedScheduling","message":"no\nplace","count":4,
      "lastTimestamp":"2026-08-20T09:55:00Z","involvedObject":{"kind":"Pod","name":"llama-node-0-0-x"}})");
  const WhyReport report =
      why(job("Pending", "Unschedulable", "1 pod: no room"), {pod}, {event}, kNone);
  CHECK(report.job == "team-a/llama");
  CHECK(has_line(report, "pod llama-node-0-0-x: Unschedulable: 0/3 nodes are available"));
  CHECK(has_line(report,
                 "event on Pod llama-node-0-0-x, 5m ago, 4 times: FailedScheduling: no place"));
  CHECK_FALSE(report.next_step.empty());
  CHECK(report.to_text().starts_with(
      "TrainJob team-a/llama: Pending (Unschedulable)\n  1 pod: no room\nEvidence:\n"));
  CHECK(report.to_json().get_string("reason") == "Unschedulable");
}

TEST_CASE("the evidence names both budgets of restarts, and the default deadline its runtime") {
  TrainJob asked = job("Failed", "DeadlineExceeded", "");
  asked.status.restartBudget = "1/3+0/2";
  CHECK(has_line(why(asked, {}, {}, kNone),
                 "restarts: 1/3 of failurePolicy.maxRestarts, 0/2 of maxDisruptionRestarts"));
  asked.status.restartBudget = "0/1";
  asked.status.conditions = {kube::Condition{"Failed", "True", "DeadlineExceeded"}};
  const WhyReport report = why(asked, {}, {}, kNone);
  CHECK(has_line(report, "restarts: 0/1 of failurePolicy.maxRestarts"));
  CHECK(report.next_step.find("its runtime's runPolicy.activeDeadlineSeconds") !=
        std::string::npos);
}

TEST_CASE("the evidence says why containers wait or how they ended") {
  const Json waiting =
      json(R"({"metadata":{"name":"p"},"spec":{"nodeName":"m"},"status":{"containerStatuses":[
      {"name":"node","state":{"waiting":{"reason":"ErrImagePull","message":"not found"}}}]}})");
  const Json ended = json(R"({"metadata":{"name":"q"},"status":{"containerStatuses":[
      {"name":"node","state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]}})");
  const Json starting = json(R"({"metadata":{"name":"r"},"status":{"containerStatuses":[
      {"name":"node","state":{"waiting":{"reason":"ContainerCreating"}}}]}})");
  const WhyReport report = why(job("Starting", "", ""), {waiting, ended, starting}, {}, kNone);
  CHECK(report.cause.starts_with("image  cannot be pulled"));
  CHECK(has_line(report,
                 "also: out of memory: container node of pod q has no limit, its machine "
                 "had no more"));
  CHECK(report.evidence.size() == 5);
  CHECK(has_line(report, "pod p on m: container node waits: ErrImagePull: not found"));
  CHECK(has_line(report, "pod q: container node ended with exit code 137 (OOMKilled)"));
}

TEST_CASE("the evidence of a running job names its slow ranks first") {
  TrainJob asked = job("Running", "", "2 of 2 nodes are ready");
  asked.status.restartBudget = "1/3";
  StragglerStatus slow;
  slow.rank = 5;
  slow.pod = "llama-node-0-1-x";
  slow.node = "gpu-07";
  slow.times = "1.8";
  asked.status.stragglers = {slow};
  HangStatus& hangs = asked.status.hangs.emplace();
  hangs.restarts = 2;
  hangs.step = 40;
  const WhyReport report = why(asked, {}, {}, kNone);
  REQUIRE(report.evidence.size() == 3);
  CHECK(has_line(report, "2 attempts ended by a hang, the last one at step 40"));
  CHECK(report.evidence[0] ==
        "rank 5 (pod llama-node-0-1-x, node gpu-07) is slow: its own work takes 1.8 times the "
        "median; the others wait for it at each step");
  CHECK_FALSE(report.is_failed);
}

TEST_CASE("evidence does not repeat the message") {
  TrainJob failed = job("Failed", "FailedJobs", "");
  FirstFailure failure;
  failure.pod = "llama-node-0-1-x";
  failure.container = "node";
  failure.exitCode = 3;
  failure.message = "boom\n";
  failed.status.firstFailure = failure;
  const WhyReport alone = why(failed, {}, {}, kNone);
  REQUIRE(alone.evidence.size() == 2);
  CHECK(alone.evidence[0].find("exit code 3") != std::string::npos);
  CHECK(alone.evidence[1] == "its last lines:\nboom");

  failed.status.message = alone.evidence[0] + "\nboom\n";
  Json event =
      Json::object({{"type", "Warning"}, {"reason", "Failed"}, {"message", failed.status.message}});
  const WhyReport whole = why(failed, {}, {event}, kNone);
  CHECK(whole.evidence.empty());
  CHECK(whole.next_step.find("`trainer logs llama -n team-a`") != std::string::npos);
}

TEST_CASE("the next step after a failure depends on its kind") {
  TrainJob late = job("Failed", "DeadlineExceeded", "");
  late.status.conditions.push_back({"Failed", "True", "DeadlineExceeded", "", {}, {}});
  CHECK(why(late, {}, {}, kNone).next_step.find("activeDeadlineSeconds") != std::string::npos);
  TrainJob memory = job("Failed", "FailedJobs", "");
  memory.status.firstFailure.emplace().reason = "OOMKilled";
  CHECK(why(memory, {}, {}, kNone).next_step.find("memory") != std::string::npos);
  CHECK(why(job("Complete", "AllJobsCompleted", ""), {}, {}, kNone).next_step.empty());
}

TEST_CASE("advice names the program as it was called") {
  for (const std::string program : {"trainer", "kubectl trainer"}) {
    CAPTURE(program);
    const std::string command = "`" + program + " logs llama -n team-a`";
    for (const TrainJob& asked :
         {job("Failed", "FailedJobs", ""), job("Pending", "ContainersCrashing", "")}) {
      const WhyReport report = why(asked, {}, {}, kNone, program);
      CAPTURE(report.next_step);
      CHECK_THAT(report.next_step, kube::test::contains(command));
    }
  }
}

TEST_CASE("a job that no controller reconciles has a message about it") {
  CHECK(why(job("", "", ""), {}, {}, kNone).message == "no controller has reconciled this job yet");
  TrainJob elsewhere = job("", "", "");
  elsewhere.spec.managedBy = "kueue.x-k8s.io/multikueue";
  CHECK(why(elsewhere, {}, {}, kNone).message ==
        "spec.managedBy leaves this job to kueue.x-k8s.io/multikueue");
}

TEST_CASE("many pods and events are cut, the newest events stay") {
  std::vector<Json> pods;
  std::vector<Json> events;
  for (int i = 0; i < 9; ++i) {
    pods.push_back(json(R"({"metadata":{"name":"p)" + std::to_string(i) +
                        R"("},"status":{"phase":"Failed"}})"));
    events.push_back(json(R"({"type":"Warning","reason":"R)" + std::to_string(i) +
                          R"(","message":"m)" + std::to_string(i) +
                          R"(","lastTimestamp":"2026-08-20T09:59:0)" + std::to_string(i) +
                          R"(Z"})"));
  }
  const WhyReport report = why(job("Pending", "", ""), pods, events, kNone);
  REQUIRE(report.evidence.size() == 11);
  CHECK(has_line(report, "and 4 more pods that are not well"));
  CHECK(report.evidence[6].find("R8: m8") != std::string::npos);
  CHECK(report.evidence[10].find("R4: m4") != std::string::npos);
}

TEST_CASE("no text of pods, events or statuses reaches the terminal with control characters") {
  const std::string bad =
      "\x1b]0;owned\x07\xc2\x9b"
      "2J\x1b[31mred\x1b[0m\rall is well";
  const std::string shown = "\\x1b]0;owned\\x07\\x9b2Jred\nall is well";
  TrainJob failed = job("Failed" + bad, bad, bad);
  failed.status.firstFailure.emplace().message = "lines: " + bad;
  const auto with = [&bad](std::string_view text) {
    Json made = json(text);
    for (const char* member : {"reason", "message"}) made.set(member, bad);
    return made;
  };
  Json pod = json(R"({"metadata":{"name":"p"}})");
  pod.set("status", with(R"({"phase":"Failed"})"));
  const WhyReport report =
      why(failed, {pod}, {with(R"({"type":"Warning"})"), json(R"({"type":"Warning"})")}, kNone);
  CHECK(report.message == shown);
  CHECK(report.reason == shown);
  CHECK(has_line(report, "its last lines:\nlines: " + shown));
  CHECK(has_line(report, "pod p: failed: " + shown + " " + shown));
  for (const std::string& text : {report.to_text(), kube::print_json_pretty(report.to_json())}) {
    CAPTURE(text);
    CHECK(text.find_first_of("\x1b\x07\x9b\r") == std::string::npos);
  }
}
