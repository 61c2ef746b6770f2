#include "controller/cli/plan_report.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "runtimes/fit/amounts.hh"

namespace trainer {
namespace {

using fit::count_of_pods;
using fit::PlanAnswer;
using fit::Verdict;
using kube::Json;

constexpr std::size_t kMaxNodes = 12;

std::string span_of(std::int64_t seconds) {
  seconds = std::max<std::int64_t>(seconds, 0);
  if (seconds < 120) return fmt::format("{}s", seconds);
  if (seconds < 7'200) return fmt::format("{}m", seconds / 60);
  if (seconds < 172'800) return fmt::format("{}h", seconds / 3'600);
  return fmt::format("{}d", seconds / 86'400);
}

std::string_view sentence_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return "It fits now:";
    case Verdict::kUnknown:
      return "Whether it fits now cannot be said.";
    case Verdict::kWaits:
      return "It waits:";
    case Verdict::kNever:
      return "It never fits on the nodes and in the quotas that exist:";
  }
  return {};
}

std::string pairs_text(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : pairs) texts.push_back(fmt::format("{} {}", name, value));
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Returns what Kueue would do with the job, behind the name of its queue.
std::string queue_text(const PlanAnswer& answer) {
  if (!answer.queue_plan) return {};
  const fit::QueuePlan& plan = *answer.queue_plan;
  std::string text = fmt::format(" of ClusterQueue {}", plan.cluster_queue);
  if (!plan.cohort.empty()) text += fmt::format(" in cohort {}", plan.cohort);
  if (plan.position > 0)
    text += fmt::format(", place {} of {} that wait", plan.position, plan.pending + 1);
  for (const auto& [role, flavors] : plan.roles)
    if (!flavors.empty()) text += fmt::format("\n  {}: flavor of {}", role, pairs_text(flavors));
  if (!plan.borrowed.empty()) text += fmt::format("\n  it borrows {}", pairs_text(plan.borrowed));
  for (const fit::Holder& each : plan.preempts)
    text += fmt::format("\n  it may preempt {}", each.to_string());
  return text;
}

std::string asked_text(const PlanAnswer& answer, std::string_view title) {
  std::vector<std::string> sums{count_of_pods(answer.pods)};
  for (const auto& [name, count] : answer.devices)
    sums.push_back(fmt::format("{} {} in sum", count, name));
  std::string text = fmt::format("{} asks for {}\n", title, fmt::join(sums, ", "));
  for (const fit::RoleRequest& role : answer.roles)
    text += fmt::format("  {}: {}, each {}\n", role.role, count_of_pods(role.pods),
                        role.requests.empty() ? "without requests" : pairs_text(role.requests));
  if (answer.gang_minimum > 0)
    text += fmt::format("  gang: {} start together, or none\n", count_of_pods(answer.gang_minimum));
  if (!answer.queue.empty())
    text += fmt::format("  queue: {}{}\n", answer.queue, queue_text(answer));
  return text;
}

std::string nodes_text(const PlanAnswer& answer) {
  std::string text;
  for (std::size_t i = 0; i < std::min(answer.nodes.size(), kMaxNodes); ++i) {
    const fit::NodeShare& node = answer.nodes[i];
    std::vector<std::string> fullness;
    for (const auto& each : node.resources)
      fullness.push_back(fmt::format("{} {} of {}", each.resource, each.used, each.allocatable));
    text += fmt::format("  {}: {}{}{}\n", node.node, count_of_pods(node.pods),
                        fullness.empty() ? "" : ", then ", fmt::join(fullness, ", "));
  }
  if (answer.nodes.size() > kMaxNodes)
    text += fmt::format("  and {} more nodes\n", answer.nodes.size() - kMaxNodes);
  return text;
}

std::string reason_text(const fit::Reason& reason, kube::Time now) {
  std::string text = fmt::format("  {}{}: {}\n", reason.role.empty() ? "" : reason.role + ": ",
                                 reason.rule, reason.message);
  for (const fit::Held& held : reason.holders) {
    text += fmt::format("    {} has {} in {}", held.by.to_string(), held.amount,
                        count_of_pods(held.pods));
    if (held.by.since)
      text += fmt::format(", for {}", span_of(now.seconds() - held.by.since->seconds()));
    if (held.deadline)
      text +=
          fmt::format(", its deadline is in {}", span_of(held.deadline->seconds() - now.seconds()));
    text += '\n';
  }
  if (reason.more_holders > 0)
    text += fmt::format("    and {} younger jobs\n", reason.more_holders);
  if (!reason.change.empty()) text += fmt::format("    {}\n", reason.change);
  return text;
}

Json pairs_json(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json object = Json::object();
  for (const auto& [name, value] : pairs) object.set(name, value);
  return object;
}

Json holder_json(const fit::Holder& holder) {
  return Json::object({{"kind", holder.kind}, {"namespace", holder.ns}, {"name", holder.name}});
}

Json queue_json(const fit::QueuePlan& plan) {
  Json item = Json::object({{"clusterQueue", plan.cluster_queue}, {"pending", plan.pending}});
  if (!plan.cohort.empty()) item.set("cohort", plan.cohort);
  if (plan.position > 0) item.set("position", plan.position);
  Json::Array roles;
  for (const auto& [role, flavors] : plan.roles)
    roles.push_back(Json::object({{"role", role}, {"flavors", pairs_json(flavors)}}));
  item.set("roles", std::move(roles));
  if (!plan.borrowed.empty()) item.set("borrowed", pairs_json(plan.borrowed));
  Json::Array preempts;
  for (const fit::Holder& each : plan.preempts) preempts.push_back(holder_json(each));
  if (!preempts.empty()) item.set("preempts", std::move(preempts));
  return item;
}

Json roles_json(const PlanAnswer& answer) {
  Json::Array roles;
  for (const fit::RoleRequest& role : answer.roles)
    roles.push_back(Json::object(
        {{"role", role.role}, {"pods", role.pods}, {"requests", pairs_json(role.requests)}}));
  return roles;
}

Json nodes_json(const PlanAnswer& answer) {
  Json::Array nodes;
  for (const fit::NodeShare& node : answer.nodes) {
    Json resources = Json::object();
    for (const auto& each : node.resources)
      resources.set(each.resource,
                    Json::object({{"used", each.used}, {"allocatable", each.allocatable}}));
    nodes.push_back(Json::object(
        {{"node", node.node}, {"pods", node.pods}, {"resources", std::move(resources)}}));
  }
  return nodes;
}

Json holders_json(const fit::Reason& reason) {
  Json::Array holders;
  for (const fit::Held& held : reason.holders) {
    Json item = holder_json(held.by);
    item.set("pods", held.pods);
    item.set("amount", held.amount);
    if (held.by.since) item.set("since", held.by.since->to_string());
    if (held.deadline) item.set("deadline", held.deadline->to_string());
    holders.push_back(std::move(item));
  }
  return holders;
}

Json reasons_json(const PlanAnswer& answer) {
  Json::Array reasons;
  for (const fit::Reason& reason : answer.reasons) {
    Json item = Json::object({{"rule", reason.rule}, {"message", reason.message}});
    if (!reason.role.empty()) item.set("role", reason.role);
    if (!reason.change.empty()) item.set("change", reason.change);
    if (!reason.holders.empty()) item.set("holders", holders_json(reason));
    if (reason.more_holders > 0) item.set("moreHolders", reason.more_holders);
    reasons.push_back(std::move(item));
  }
  return reasons;
}

}  // namespace

std::string plan_text(const PlanAnswer& answer, std::string_view title, kube::Time now) {
  std::string text = asked_text(answer, title);
  text += fmt::format("{}\n", sentence_of(answer.verdict)) + nodes_text(answer);
  for (const fit::Reason& reason : answer.reasons) text += reason_text(reason, now);
  if (answer.verdict == Verdict::kWaits && answer.waiting_pods > 0)
    text += fmt::format("  {} of the cluster wait{} for a node\n",
                        count_of_pods(answer.waiting_pods), answer.waiting_pods == 1 ? "s" : "");
  if (!answer.undecided.empty()) text += "Not decided here:\n";
  for (const std::string& each : answer.undecided) text += fmt::format("  {}\n", each);
  return text;
}

Json plan_json(const PlanAnswer& answer, std::string_view title) {
  Json devices = Json::object();
  for (const auto& [name, count] : answer.devices) devices.set(name, count);
  Json asked = Json::object(
      {{"pods", answer.pods}, {"roles", roles_json(answer)}, {"devices", std::move(devices)}});
  if (answer.gang_minimum > 0) asked.set("gangMinimum", answer.gang_minimum);
  if (!answer.queue.empty()) asked.set("queue", answer.queue);
  Json::Array undecided(answer.undecided.begin(), answer.undecided.end());
  Json report = Json::object({{"job", title},
                              {"answer", name_of(answer.verdict)},
                              {"asked", std::move(asked)},
                              {"nodes", nodes_json(answer)},
                              {"reasons", reasons_json(answer)},
                              {"waitingPods", answer.waiting_pods},
                              {"undecided", std::move(undecided)}});
  if (answer.queue_plan) report.set("queue", queue_json(*answer.queue_plan));
  return report;
}

}  // namespace trainer
