#include "controller/core/placement_reconciler.hh"

#include <fmt/format.h>

#include <algorithm>

#include "controller/admission/webhooks.hh"
#include "controller/core/node_labels.hh"
#include "kube/client/url.hh"
#include "kube/model/json_text.hh"
#include "kube/model/resources.hh"
#include "runtimes/jobset/exclusive.hh"
#include "runtimes/jobset/names.hh"

namespace trainer {

using kube::ErrorCode;
using kube::Json;
using kube::Result;
using kube::Task;

Task<Result<Requeue>> PlacementReconciler::reconcile(kube::ObjectKey key) {
  // Where another controller expands JobSets, it keeps their pods in place too.
  if (ownership_.mode() != JobSetControllerMode::kOwn) co_return Requeue{};
  const auto known = stores_.pods.find(key);
  if (!known || !known->is_exclusive_leader) co_return Requeue{};
  const auto installed = co_await is_installed();
  if (!installed) co_return tl::unexpected(installed.error());
  if (!*installed) co_return Requeue{};

  const auto pods = co_await pods_of_job(*known);
  if (!pods) co_return tl::unexpected(pods.error());
  const auto leader = std::find_if(pods->begin(), pods->end(), [&known](const Json& pod) {
    return kube::ObjectMeta::of(pod).uid == known->uid;
  });
  if (leader == pods->end() || !jobset::is_scheduled_leader(*leader)) co_return Requeue{};
  const auto labels = co_await read_node_labels(client_, known->node_name);
  if (!labels) co_return tl::unexpected(labels.error());

  jobset::PlacementLookups lookups;
  lookups.node_labels = [&labels](const std::string&) { return *labels; };
  auto actions = jobset::repair_placement(*leader, *pods, lookups, client_.clock().now());
  if (!actions) co_return tl::unexpected(actions.error());
  if (actions->empty()) co_return Requeue{};
  log_.warn("followers stand in another domain than their leader",
            {{"leader", key.to_string()}, {"then", "they are marked and deleted"}});
  const auto failure = co_await executor_.run(std::move(*actions));
  if (failure) co_return tl::unexpected(failure->error);
  co_return Requeue{};
}

Task<Result<bool>> PlacementReconciler::is_installed() {
  kube::ObjectKey key;
  key.name = kPodWebhooksName;
  const auto found = co_await client_.get(kube::kValidatingWebhookConfigurations, std::move(key));
  if (found) co_return true;
  if (found.error().code == ErrorCode::kNotFound) co_return false;
  co_return tl::unexpected(found.error().at("webhooks of pods"));
}

Task<Result<std::vector<Json>>> PlacementReconciler::pods_of_job(const PodView& leader) {
  const std::string ns = leader.ns;
  const std::string selector = fmt::format(
      "{}={},{}={},{}={}", jobset::kJobSetNameKey, leader.jobset, jobset::kReplicatedJobNameKey,
      leader.replicated_job, jobset::kJobIndexKey, leader.job_index);
  std::vector<Json> pods;
  std::function<void(std::string_view)> on_item = [&pods](std::string_view text) {
    if (auto pod = kube::parse_json(text)) pods.push_back(std::move(*pod));
  };
  const auto listed = co_await client_.list(
      kube::kPods, ns, "labelSelector=" + kube::percent_encode(selector), std::move(on_item));
  if (!listed) co_return tl::unexpected(listed.error().at("pods of " + selector));
  co_return pods;
}

}  // namespace trainer
