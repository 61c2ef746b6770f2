// These tests check the text and the fields of `trainer plan`.
#include "controller/cli/plan_report.hh"

#include "kube/model/json_text.hh"
#include "tests/support/catch.hh"

using namespace trainer;
using kube::Json;
using kube::Time;

namespace {

const Time kNow = Time::from_seconds(1'000'000);

fit::PlanAnswer asked() {
  fit::PlanAnswer answer;
  answer.roles = {{"node", 4, {{"cpu", "4"}, {"nvidia.com/gpu", "8"}}}};
  answer.pods = 4;
  answer.devices = {{"nvidia.com/gpu", 32}};
  return answer;
}

fit::PlanAnswer waiting() {
  fit::PlanAnswer answer = asked();
  answer.verdict = fit::Verdict::kWaits;
  answer.gang_minimum = 4;
  answer.queue = "q";
  fit::Reason reason{"NodeResourcesFit", "node", "8 of 32 are free", "1 of 4 pods fit now", {}, 2};
  fit::Held held{{"trainjob", "b", "old", Time::from_seconds(1'000'000 - 7'200)},
                 2,
                 "16 nvidia.com/gpu",
                 Time::from_seconds(1'000'000 + 60)};
  reason.holders = {held};
  answer.reasons = {reason};
  answer.waiting_pods = 3;
  answer.undecided = {"something"};
  return answer;
}

}  // namespace

TEST_CASE("a job that fits names the nodes") {
  fit::PlanAnswer answer = asked();
  answer.nodes = {{"a", 4, {{"cpu", "16", "32"}}}};
  CHECK(plan_text(answer, "TrainJob b/j", kNow) ==
        "TrainJob b/j asks for 4 pods, 32 nvidia.com/gpu in sum\n"
        "  node: 4 pods, each cpu 4, nvidia.com/gpu 8\n"
        "It fits now:\n"
        "  a: 4 pods, then cpu 16 of 32\n");
}

TEST_CASE("only the first nodes are shown") {
  fit::PlanAnswer answer = asked();
  for (int i = 0; i < 14; ++i) answer.nodes.push_back({"n" + std::to_string(i), 1, {}});
  const std::string text = plan_text(answer, "TrainJob b/j", kNow);
  CHECK(text.find("  n11: 1 pod\n  and 2 more nodes\n") != std::string::npos);
}

TEST_CASE("a job that waits names who has what it lacks") {
  CHECK(plan_text(waiting(), "TrainJob b/j", kNow) ==
        "TrainJob b/j asks for 4 pods, 32 nvidia.com/gpu in sum\n"
        "  node: 4 pods, each cpu 4, nvidia.com/gpu 8\n"
        "  gang: 4 pods start together, or none\n"
        "  queue: q\n"
        "It waits:\n"
        "  node: NodeResourcesFit: 8 of 32 are free\n"
        "    trainjob b/old has 16 nvidia.com/gpu in 2 pods, for 2h, its deadline is in 60s\n"
        "    and 2 younger jobs\n"
        "    1 of 4 pods fit now\n"
        "  3 pods of the cluster wait for a node\n"
        "Not decided here:\n"
        "  something\n");
}

TEST_CASE("what Kueue would do follows the queue") {
  fit::PlanAnswer answer = waiting();
  answer.queue_plan.emplace();
  fit::QueuePlan& plan = *answer.queue_plan;
  plan.cluster_queue = "cq";
  plan.cohort = "all";
  plan.position = 2;
  plan.pending = 3;
  plan.roles = {{"node", {{"nvidia.com/gpu", "spot"}}}};
  plan.borrowed = {{"nvidia.com/gpu", "8"}};
  plan.preempts = {{"trainjob", "b", "old", std::nullopt}};
  CHECK(plan_text(answer, "TrainJob b/j", kNow)
            .find("  queue: q of ClusterQueue cq in cohort all, place 2 of 4 that wait\n"
                  "  node: flavor of nvidia.com/gpu spot\n"
                  "  it borrows nvidia.com/gpu 8\n"
                  "  it may preempt trainjob b/old\n"
                  "It waits:\n") != std::string::npos);
  CHECK(
      kube::print_json(plan_json(answer, "TrainJob b/j").get("queue")) ==
      R"({"borrowed":{"nvidia.com/gpu":"8"},"clusterQueue":"cq","cohort":"all","pending":3,"position":2,"preempts":[{"kind":"trainjob","name":"old","namespace":"b"}],"roles":[{"flavors":{"nvidia.com/gpu":"spot"},"role":"node"}]})");
}

TEST_CASE("the value has the numbers") {
  const Json value = plan_json(waiting(), "TrainJob b/j");
  CHECK(value.get_string("answer") == "waits");
  CHECK(value.get_int("waitingPods") == 3);
  CHECK(value.get("asked").get_int("gangMinimum") == 4);
  CHECK(value.get("asked").get("devices").get_int("nvidia.com/gpu") == 32);
  const Json& reason = value.get_array("reasons").at(0);
  CHECK(reason.get_string("rule") == "NodeResourcesFit");
  CHECK(reason.get_int("moreHolders") == 2);
  CHECK(
      kube::print_json(reason.get_array("holders").at(0)) ==
      R"({"amount":"16 nvidia.com/gpu","deadline":"1970-01-12T13:47:40Z","kind":"trainjob","name":"old","namespace":"b","pods":2,"since":"1970-01-12T11:46:40Z"})");
}
