#include "controller/cli/read_plan.hh"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "controller/cli/cluster.hh"
#include "controller/cli/read_queue.hh"
#include "controller/cli/renderer.hh"
#include "kube/client/url.hh"
#include "kube/model/resources.hh"
#include "kube/model/text.hh"

namespace trainer {
namespace {

using kube::ErrorCode;
using kube::Json;
using kube::Result;
using kube::Task;

const kube::Resource kResourceQuotas{"", "v1", "resourcequotas", "ResourceQuota", true};

// Returns why a collection may not be read, in a word; "" if it was read. Errors: the cluster does
// not answer.
Task<Result<std::string>> read_items(kube::ApiClient& client, kube::Resource resource,
                                     std::string ns, std::string query,
                                     std::function<void(std::string_view)> on_item) {
  const auto listed = co_await client.list(std::move(resource), std::move(ns), std::move(query),
                                           std::move(on_item));
  if (listed) co_return std::string();
  if (listed.error().code == ErrorCode::kForbidden) co_return std::string("forbidden");
  if (listed.error().code == ErrorCode::kNotFound) co_return std::string("not served");
  co_return tl::unexpected(listed.error());
}

std::vector<fit::JobLabel> job_labels_of(const Registry& registry) {
  std::vector<fit::JobLabel> labels;
  for (const KindRegistration& kind : registry) {
    if (!kind.why) continue;
    const bool is_known = std::ranges::any_of(
        labels, [&kind](const fit::JobLabel& label) { return label.key == kind.why->pod_label; });
    if (!is_known)
      labels.push_back(
          {std::string(kind.why->pod_label), kube::to_lower(kind.controller.resource().kind)});
  }
  return labels;
}

Task<Result<fit::Snapshot>> read_snapshot(kube::ApiClient& client, const Registry& registry,
                                          const fit::Asked& asked, PlannedJob job) {
  fit::SnapshotReader reader(fit::ResourceTable(fit::resources_of(asked)),
                             fit::label_keys_of(asked), job_labels_of(registry));
  std::function<void(std::string_view)> add = [&reader](std::string_view text) {
    reader.add_node(text);
  };
  const auto nodes = co_await read_items(client, kube::kNodes, "", "", std::move(add));
  if (!nodes) co_return tl::unexpected(nodes.error());
  std::string pods_unread;
  if (nodes->empty()) {
    add = [&reader](std::string_view text) { reader.add_pod(text); };
    std::string query =
        "fieldSelector=" + kube::percent_encode("status.phase!=Succeeded,status.phase!=Failed");
    auto pods = co_await read_items(client, kube::kPods, "", std::move(query), std::move(add));
    if (!pods) co_return tl::unexpected(pods.error());
    pods_unread = std::move(*pods);
  }
  add = [&reader](std::string_view text) { reader.add_quota(text); };
  const auto quotas = co_await read_items(client, kResourceQuotas, asked.ns, "", std::move(add));
  if (!quotas) co_return tl::unexpected(quotas.error());
  fit::Snapshot snapshot = reader.take();
  snapshot.nodes_unread = *nodes;
  snapshot.pods_unread = std::move(pods_unread);
  snapshot.quotas_unread = *quotas;
  if (!asked.queue.empty() && !asked.is_admitted)
    co_await read_queue(client, asked, std::move(job), snapshot);
  co_return snapshot;
}

std::optional<kube::Time> deadline_of(const Json& object) {
  const Json& spec = object.get("spec");
  std::int64_t seconds = spec.get_int("activeDeadlineSeconds");
  if (seconds <= 0) seconds = spec.get("runPolicy").get_int("activeDeadlineSeconds");
  if (seconds <= 0) return std::nullopt;
  const auto started = kube::Time::parse(object.get("status").get_string("startTime"));
  const auto created = kube::ObjectMeta::of(object).creation_timestamp;
  if (!started && !created) return std::nullopt;
  return (started ? *started : *created).after(seconds);
}

// Several kinds may have one label on their pods: the one that exists is the holder.
Task<void> read_deadline(kube::ApiClient& client, const Registry& registry, fit::Held& held) {
  std::string_view label;
  for (const KindRegistration& kind : registry)
    if (kind.why && kube::to_lower(kind.controller.resource().kind) == held.by.kind)
      label = kind.why->pod_label;
  if (label.empty()) co_return;
  for (const KindRegistration& kind : registry) {
    if (!kind.why || kind.why->pod_label != label) continue;
    kube::ObjectKey key{held.by.ns, held.by.name};
    const auto object = co_await client.get(kind.controller.resource(), std::move(key));
    if (!object) continue;
    held.by.kind = kube::to_lower(kind.controller.resource().kind);
    held.deadline = deadline_of(*object);
    co_return;
  }
}

// A user may not read all of them, and without them the files and what is built in are used.
Task<Result<void>> add_runtimes(kube::ApiClient& client, Renderer& renderer, std::string ns) {
  for (const kube::Resource& resource : renderer.kinds_not_rendered()) {
    auto items = co_await list_all(client, resource, resource.namespaced ? ns : "", "");
    if (!items && items.error().is_transient()) co_return tl::unexpected(items.error());
    if (!items) continue;
    for (Json& item : *items) renderer.add_stored(resource, std::move(item));
  }
  co_return Result<void>();
}

Result<std::vector<Json>> objects_of(const Renderer& renderer) {
  if (renderer.is_refused())
    return kube::fail(ErrorCode::kInvalid, "no plan is made, since the job is refused");
  std::vector<Json> objects;
  for (const RenderedObject& each : renderer.rendered()) objects.push_back(each.object);
  return objects;
}

void set_namespace(Json& document, const std::string& ns) {
  Json* metadata = document.find("metadata");
  if (metadata != nullptr && metadata->is_object() && metadata->get("namespace").empty())
    metadata->set("namespace", ns);
}

}  // namespace

Task<Result<fit::PlanAnswer>> read_plan(kube::ApiClient& client, const Registry& registry,
                                        PlanQuery query) {
  fit::Asked asked = fit::read_asked(query.objects, query.running);
  if (!query.job.queue.empty()) asked.queue = query.job.queue;
  const auto snapshot = co_await read_snapshot(client, registry, asked, query.job);
  if (!snapshot) co_return tl::unexpected(snapshot.error());
  fit::PlanAnswer answer = fit::plan_fit(asked, *snapshot);
  // A holder may be named by several reasons, and is read once.
  std::map<std::tuple<std::string, std::string, std::string>, fit::Held> known;
  for (fit::Reason& reason : answer.reasons)
    for (fit::Held& held : reason.holders) {
      auto [at, is_new] = known.try_emplace({held.by.kind, held.by.ns, held.by.name}, held);
      if (is_new) co_await read_deadline(client, registry, at->second);
      held.by.kind = at->second.by.kind;
      held.deadline = at->second.deadline;
    }
  co_return answer;
}

Task<Result<std::vector<Json>>> render_for_plan(kube::ApiClient& client, const Registry& registry,
                                                std::vector<Json> documents, std::string ns,
                                                Console& console) {
  Renderer renderer({.has_jobs = true}, Configuration(), registry, console);
  // Runtimes of other namespaces may be used as well, by jobs of theirs.
  std::set<std::string> namespaces{ns};
  for (Json& document : documents) {
    set_namespace(document, ns);
    namespaces.emplace(document.get("metadata").get_string("namespace"));
  }
  for (const std::string& each : namespaces) {
    const auto added = co_await add_runtimes(client, renderer, each);
    if (!added) co_return tl::unexpected(added.error());
  }
  for (Json& document : documents) renderer.add(std::move(document));
  renderer.render_all("plan");
  co_return objects_of(renderer);
}

Task<Result<fit::PlanAnswer>> read_stored_plan(kube::ApiClient& client, const Registry& registry,
                                               const KindRegistration& kind, Json object,
                                               std::vector<Json> pods) {
  std::istringstream nothing;
  std::ostringstream messages;
  Console console(nothing, messages, messages);
  Renderer renderer({.has_jobs = true}, Configuration(), registry, console);
  const auto added = co_await add_runtimes(client, renderer, kube::ObjectMeta::of(object).ns);
  if (!added) co_return tl::unexpected(added.error());
  const auto meta = kube::ObjectMeta::of(object);
  PlannedJob job;
  job.read_labels(object);
  job.kind = kind.controller.resource().kind;
  job.name = meta.name;
  job.created = meta.creation_timestamp;
  renderer.render_stored(kind.controller.resource(), std::move(object));
  auto objects = objects_of(renderer);
  if (!objects) {
    console.err.flush();
    co_return kube::fail(ErrorCode::kInvalid, "{}{}", messages.str(), objects.error().message);
  }
  PlanQuery query{std::move(*objects), std::move(pods), std::move(job)};
  co_return co_await read_plan(client, registry, std::move(query));
}

}  // namespace trainer
