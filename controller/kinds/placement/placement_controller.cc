#include "controller/kinds/placement/placement_controller.hh"

#include <fmt/format.h>

#include <algorithm>

#include "controller/kinds/placement/node_labels.hh"
#include "controller/kinds/placement/webhooks.hh"
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

namespace {

// Few events of a leader matter to its followers; the others enqueue nothing.
bool has_moved(const PodView& before, const PodView& after) {
  return !before.is_exclusive_leader || before.uid != after.uid ||
         before.node_name != after.node_name || before.phase != after.phase ||
         before.is_ready != after.is_ready;
}

}  // namespace

PlacementController::PlacementController(const kube::ControllerContext& context,
                                         std::shared_ptr<JobSetState> shared)
    : context_(context),
      shared_(std::move(shared)),
      pods_(context.caches.get<PodView>(jobset_pods())) {
  shared_->ownership.on_change([this] { enqueue_all(); });
}

void PlacementController::enqueue_all() {
  pods_.each([this](const kube::ObjectKey& key, const auto& pod) {
    if (pod->is_exclusive_leader) context_.router.enqueue(context_.id, key, kube::Debounce::kNone);
  });
}

void PlacementController::on_pod(const Pod& before, const Pod& after) {
  if (after && after->is_exclusive_leader && (!before || has_moved(*before, *after)))
    context_.router.enqueue(context_.id, after->key(), kube::Debounce::kNone);
}

Task<Result<kube::Requeue>> PlacementController::reconcile(kube::ObjectKey key) {
  // If another controller manages JobSets, it also repairs the placement of their pods.
  if (shared_->ownership.mode() != JobSetControllerMode::kOwn) co_return kube::Requeue{};
  const auto known = pods_.find(key);
  if (!known || !known->is_exclusive_leader) co_return kube::Requeue{};
  const auto installed = co_await is_installed();
  if (!installed) co_return tl::unexpected(installed.error());
  if (!*installed) co_return kube::Requeue{};

  const auto pods = co_await pods_of_job(*known);
  if (!pods) co_return tl::unexpected(pods.error());
  const auto leader = std::find_if(pods->begin(), pods->end(), [&known](const Json& pod) {
    return kube::ObjectMeta::of(pod).uid == known->uid;
  });
  if (leader == pods->end() || !jobset::is_scheduled_leader(*leader)) co_return kube::Requeue{};
  const auto labels = co_await read_node_labels(context_.client, known->node_name);
  if (!labels) co_return tl::unexpected(labels.error());

  jobset::PlacementLookups lookups;
  lookups.node_labels = [&labels](const std::string&) { return *labels; };
  auto actions = jobset::repair_placement(*leader, *pods, lookups, context_.client.clock().now());
  if (!actions) co_return tl::unexpected(actions.error());
  if (actions->empty()) co_return kube::Requeue{};
  context_.log.warn("followers are in another domain than their leader",
                    {{"leader", key.to_string()}, {"then", "they are marked and deleted"}});
  const auto outcome = co_await context_.executor.run(std::move(*actions));
  if (outcome.failure) co_return tl::unexpected(outcome.failure->error);
  co_return kube::Requeue{};
}

Task<Result<bool>> PlacementController::is_installed() {
  kube::ObjectKey key;
  key.name = kPodWebhooks;
  const auto found =
      co_await context_.client.get(kube::kValidatingWebhookConfigurations, std::move(key));
  if (found) co_return true;
  if (found.error().code == ErrorCode::kNotFound) co_return false;
  co_return tl::unexpected(found.error().at("webhooks of pods"));
}

Task<Result<std::vector<Json>>> PlacementController::pods_of_job(const PodView& leader) {
  const std::string ns = leader.ns;
  const std::string selector = fmt::format(
      "{}={},{}={},{}={}", jobset::kJobSetNameKey, leader.jobset, jobset::kReplicatedJobNameKey,
      leader.replicated_job, jobset::kJobIndexKey, leader.job_index);
  std::vector<Json> pods;
  std::function<void(std::string_view)> on_item = [&pods](std::string_view text) {
    auto pod = kube::parse_json(text, kube::kObjectLimits, jobset::read_of_listed_pods());
    if (pod) pods.push_back(std::move(*pod));
  };
  const auto listed = co_await context_.client.list(
      kube::kPods, ns, "labelSelector=" + kube::percent_encode(selector), std::move(on_item));
  if (!listed) co_return tl::unexpected(listed.error().at("pods of " + selector));
  co_return pods;
}

}  // namespace trainer
