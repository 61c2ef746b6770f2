#include "kube/server/deletion.hh"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "kube/model/pod_template.hh"
#include "kube/model/resources.hh"
#include "kube/server/refusals.hh"

namespace kube::server {
namespace {

using std::chrono::seconds;

std::optional<Response> check_options(const Json& options) {
  const std::string_view policy = options.get_string("propagationPolicy");
  if (policy.empty() || policy == "Background" || policy == "Foreground" || policy == "Orphan")
    return std::nullopt;
  return invalid_object(
      "DeleteOptions", "meta.k8s.io", "",
      {not_supported("propagationPolicy", policy, {"Background", "Foreground", "Orphan", "nil"})});
}

std::optional<Response> check_preconditions(const ServedKind& kind, const Json& metadata,
                                            const Json& options) {
  Resource named = kind.resource;
  named.plural = kind.resource.kind;
  const std::string_view name = metadata.get_string("name");
  const Json& preconditions = options.get("preconditions");
  const std::string_view uid = preconditions.get_string("uid");
  if (!uid.empty() && uid != metadata.get_string("uid"))
    return conflict(named, name,
                    fmt::format("the UID in the precondition ({}) does not match the UID in record "
                                "({}). The object might have been deleted and then recreated",
                                uid, metadata.get_string("uid")));
  const std::string_view version = preconditions.get_string("resourceVersion");
  if (!version.empty() && version != metadata.get_string("resourceVersion"))
    return conflict(named, name,
                    fmt::format("the ResourceVersion in the precondition ({}) does not match the "
                                "ResourceVersion in record ({}). The object might have been "
                                "modified",
                                version, metadata.get_string("resourceVersion")));
  return std::nullopt;
}

// Returns how long a pod may take to end.
std::int64_t grace_of(const Json& pod, const Json& options) {
  if (pod.get("spec").get_string("nodeName").empty() || is_pod_over(pod)) return 0;
  const Json& asked = options.get("gracePeriodSeconds");
  const std::int64_t grace =
      asked.is_int() ? asked.as_int() : pod.get("spec").get_int("terminationGracePeriodSeconds");
  return grace < 0 ? 1 : grace;
}

// Sets the finalizers with which the collector deletes or releases the dependents.
void set_propagation(const ServedKind& kind, Json& object, const Json& options) {
  std::string_view policy = options.get_string("propagationPolicy");
  const Json& orphans = options.get("orphanDependents");
  if (orphans.is_bool()) {
    policy = orphans.as_bool() ? "Orphan" : "Background";
  } else if (policy.empty()) {
    const bool is_said = has_finalizer(object, kOrphan) || has_finalizer(object, kForeground);
    if (is_said || !has_default_orphans(kind, options)) return;
    policy = "Orphan";
  }
  Json& metadata = object["metadata"];
  erase_items(metadata, "finalizers", [](const Json& finalizer) {
    return finalizer == Json(kForeground) || finalizer == Json(kOrphan);
  });
  if (policy == "Orphan") metadata["finalizers"].push_back(kOrphan);
  if (policy == "Foreground") metadata["finalizers"].push_back(kForeground);
}

void mark(Json& metadata, Time now, std::int64_t grace) {
  if (!metadata.find("deletionTimestamp") && metadata.get_int("generation") > 0)
    metadata.set("generation", metadata.get_int("generation") + 1);
  metadata.set("deletionTimestamp", (now + seconds(grace)).to_string());
  metadata.set("deletionGracePeriodSeconds", grace);
}

// If a pod is ending already, a shorter time than its present one counts, and a longer one does
// not.
bool is_shorter(const Json& metadata, const Json& options) {
  const Json& asked = options.get("gracePeriodSeconds");
  return asked.is_int() && asked.as_int() < metadata.get_int("deletionGracePeriodSeconds");
}

void shorten(Json& metadata, const Json& options, Time now) {
  const std::int64_t had = metadata.get_int("deletionGracePeriodSeconds");
  const Json& asked = options.get("gracePeriodSeconds");
  std::int64_t grace = asked.as_int() < 0 ? 1 : asked.as_int();
  const auto due = Time::parse(metadata.get_string("deletionTimestamp")).value_or(now);
  Time ends = due + seconds(grace - had);
  if (ends < now) {
    ends = now;
    grace = std::min<std::int64_t>(grace, 1);
  }
  metadata.set("deletionTimestamp", ends.to_string());
  metadata.set("deletionGracePeriodSeconds", grace);
}

tl::expected<Deletion, Response> plan_namespace(const ServedKind& kind, Deletion deletion,
                                                Time now) {
  Json& metadata = deletion.object["metadata"];
  const std::string_view name = metadata.get_string("name");
  if (name == "default" || name == "kube-system" || name == "kube-public")
    return tl::unexpected(
        forbidden_write(kind.resource, name, "this namespace may not be deleted"));
  // The objects in the namespace are deleted first. Then the Collector removes it.
  if (!metadata.find("deletionTimestamp")) mark(metadata, now, 0);
  deletion.object["status"].set("phase", "Terminating");
  return deletion;
}

}  // namespace

void erase_items(Json& object, std::string_view list,
                 const std::function<bool(const Json& item)>& is_erased) {
  Json* items = object.find(list);
  if (items != nullptr && items->is_array()) std::erase_if(items->as_array(), is_erased);
  if (items != nullptr && items->empty()) object.erase(list);
}

bool has_finalizer(const Json& object, std::string_view name) {
  const Json::Array& all = object.get("metadata").get_array("finalizers");
  return std::find(all.begin(), all.end(), Json(name)) != all.end();
}

bool has_default_orphans(const ServedKind& kind, const Json& options) {
  return kind.resource.has_same_objects(kJobs) && options.get_string("propagationPolicy").empty() &&
         !options.get("orphanDependents").is_bool();
}

bool is_removable(const ServedKind& kind, const Json& object) {
  const Json& metadata = object.get("metadata");
  return metadata.find("deletionTimestamp") && metadata.get_array("finalizers").empty() &&
         metadata.get_int("deletionGracePeriodSeconds") == 0 &&
         !kind.resource.has_same_objects(kNamespaces);
}

tl::expected<Deletion, Response> plan_deletion(const ServedKind& kind, const Json& stored,
                                               const Json& options, Time now) {
  if (auto refusal = check_options(options)) return tl::unexpected(std::move(*refusal));
  if (auto refusal = check_preconditions(kind, stored.get("metadata"), options))
    return tl::unexpected(std::move(*refusal));
  Deletion deletion;
  deletion.object = stored;
  if (kind.resource.has_same_objects(kNamespaces))
    return plan_namespace(kind, std::move(deletion), now);
  Json& metadata = deletion.object["metadata"];
  const bool is_ending = metadata.find("deletionTimestamp") != nullptr;
  const bool has_time = is_ending && metadata.get_int("deletionGracePeriodSeconds") > 0;
  if (has_time && !is_shorter(metadata, options)) return deletion;
  set_propagation(kind, deletion.object, options);
  if (has_time) {
    shorten(metadata, options, now);
  } else if (!is_ending) {
    mark(metadata, now, kind.resource.has_same_objects(kPods) ? grace_of(stored, options) : 0);
  }
  deletion.is_immediate = is_removable(kind, deletion.object);
  return deletion;
}

}  // namespace kube::server
