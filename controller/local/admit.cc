#include "controller/local/admit.hh"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/runtime.hh"
#include "api/trainjob.hh"
#include "kube/model/patch.hh"

namespace trainer {

using kube::Json;
using kube::Task;
using kube::server::PendingWrite;
using kube::server::Response;

namespace {

constexpr std::string_view kOwnManager = "trainer";

std::vector<WebhookHandler> handlers_of(const Registry& registry) {
  std::vector<WebhookHandler> handlers;
  for (const KindRegistration& kind : registry)
    std::ranges::copy(kind.admission.handlers, std::back_inserter(handlers));
  return handlers;
}

std::vector<Webhook> webhooks_of(const Registry& registry) {
  std::vector<Webhook> webhooks = published_webhooks(registry);
  std::ranges::stable_partition(webhooks, &Webhook::is_mutating);
  return webhooks;
}

// Checks a label selector's `matchExpressions`; the program's webhooks use no `matchLabels`.
bool is_selected(const Json& selector, const Json& object) {
  const Json& labels = object.get("metadata").get("labels");
  return std::ranges::all_of(selector.get_array("matchExpressions"), [&](const Json& expression) {
    const Json* const label = labels.find(expression.get_string("key"));
    const std::string_view operation = expression.get_string("operator");
    if (operation == "Exists") return label != nullptr;
    if (operation == "DoesNotExist") return label == nullptr;
    const bool is_in =
        label != nullptr && std::ranges::count(expression.get_array("values"), *label) > 0;
    return is_in == (operation == "In");
  });
}

bool concerns(const Webhook& webhook, const PendingWrite& write, Caller caller) {
  const kube::Resource& resource = write.kind->resource;
  if (!webhook.resource.has_same_objects(resource) || !write.subresource.empty()) return false;
  if (write.operation != "CREATE" && !(write.operation == "UPDATE" && webhook.is_for_updates))
    return false;
  if (webhook.skips_deletion && write.object.get("metadata").find("deletionTimestamp") != nullptr)
    return false;
  if (webhook.skips_own_writes && caller == Caller::kController && write.manager == kOwnManager)
    return false;
  return is_selected(webhook.object_selector, write.object) ||
         (write.before && is_selected(webhook.object_selector, *write.before));
}

// Returns the part of an AdmissionReview that the rules read.
Json review_of(const PendingWrite& write) {
  const kube::Resource& resource = write.kind->resource;
  Json kind = Json::object(
      {{"group", resource.group}, {"version", resource.version}, {"kind", resource.kind}});
  Json request = Json::object({{"uid", "local"},
                               {"kind", std::move(kind)},
                               {"name", write.key.name},
                               {"namespace", write.key.ns},
                               {"operation", write.operation},
                               {"object", write.object},
                               {"dryRun", write.is_dry_run},
                               {"options", write.options}});
  if (write.before) request.set("oldObject", *write.before);
  return Json::object({{"request", std::move(request)}});
}

// The words are those of kube-apiserver (apiserver, plugin/webhook/errors ToStatusErr).
Response refusal_of(const Webhook& webhook, const AdmissionAnswer& answer) {
  return kube::server::failure(
      answer.code, answer.reason,
      fmt::format("admission webhook \"{}\" denied the request: {}", webhook.name, answer.message));
}

}  // namespace

Admitter::Admitter(const Registry& registry, bool has_node, kube::server::Api& api,
                   kube::ApiClient& client, const kube::Log& log)
    : api_(api),
      has_node_(has_node),
      webhooks_(webhooks_of(registry)),
      admission_(handlers_of(registry), client, nothing_cached_, log) {}

Task<std::optional<Response>> Admitter::review(PendingWrite& write, const Webhook& webhook) {
  auto request = read_admission_review(review_of(write));
  if (!request) co_return std::nullopt;
  AdmissionAnswer answer = co_await admission_.review(webhook.path, std::move(*request));
  std::ranges::move(answer.warnings, std::back_inserter(write.warnings));
  if (!answer.is_allowed) co_return refusal_of(webhook, answer);
  if (!webhook.is_mutating || answer.json_patch.empty()) co_return std::nullopt;
  auto changed = kube::apply_json_patch(std::move(write.object), answer.json_patch);
  if (!changed) co_return kube::server::failure(500, "InternalError", changed.error().message);
  write.object = std::move(*changed);
  co_return std::nullopt;
}

// Processes of such jobs are started over SSH or by a broker, whose programs and keys are in
// images.
std::optional<Response> Admitter::check_node_can_run(const PendingWrite& write) const {
  if (write.kind->resource != kTrainJobs || write.operation != "CREATE") return std::nullopt;
  const Json& ref = write.object.get("spec").get("runtimeRef");
  const bool is_namespaced = ref.get_string("kind") == kTrainingRuntimes.kind;
  const kube::Resource& resource = is_namespaced ? kTrainingRuntimes : kClusterTrainingRuntimes;
  const kube::ObjectKey key{is_namespaced ? write.key.ns : "", std::string(ref.get_string("name"))};
  const auto runtime = api_.store().find(resource, key);
  if (!runtime) return std::nullopt;  // the webhook refuses it
  const Json& policy = runtime->get_path({"spec", "mlPolicy"});
  for (const auto& [member, name] : {std::pair("mpi", "MPI"), std::pair("flux", "Flux")}) {
    if (policy.find(member) == nullptr) continue;
    return kube::server::failure(
        403, "Forbidden",
        fmt::format("spec.runtimeRef: local mode has no {}, which {} {} uses: name a runtime "
                    "without it, such as torch-distributed",
                    name, resource.kind, ref.get_string("name")));
  }
  return std::nullopt;
}

Task<ApiServer::Admitted> Admitter::admit(PendingWrite write, Caller caller) {
  bool is_checked = false;
  for (const Webhook& webhook : webhooks_) {
    if (!concerns(webhook, write, caller)) continue;
    if (!webhook.is_mutating && !std::exchange(is_checked, true)) {
      if (auto refusal = api_.check(write)) co_return tl::unexpected(std::move(*refusal));
    }
    if (auto refusal = co_await review(write, webhook))
      co_return tl::unexpected(std::move(*refusal));
  }
  if (has_node_ && !webhooks_.empty()) {
    if (auto refusal = check_node_can_run(write)) co_return tl::unexpected(std::move(*refusal));
  }
  co_return write;
}

}  // namespace trainer
