#include "controller/kinds/trainjob/legacy_finalizers.hh"

#include <string_view>
#include <utility>

#include "api/runtime.hh"
#include "kube/client/yield.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Task;

constexpr std::string_view kFinalizer = "trainer.kubeflow.org/resource-in-use";
constexpr std::chrono::minutes kRetry{1};
constexpr std::chrono::hours kIdle{24};

}  // namespace

std::optional<Json> without_legacy_finalizer(const Json& runtime) {
  const Json* metadata = runtime.find("metadata");
  if (!metadata) return std::nullopt;
  Json kept = Json::array();
  bool is_found = false;
  for (const Json& finalizer : metadata->get_array("finalizers")) {
    const bool is_legacy = finalizer.is_string() && finalizer.as_string() == kFinalizer;
    is_found = is_found || is_legacy;
    if (!is_legacy) kept.push_back(finalizer);
  }
  if (!is_found) return std::nullopt;
  Json patch = Json::object();
  patch["metadata"]
      .set("finalizers", std::move(kept))
      .set("resourceVersion", metadata->get_string("resourceVersion"));
  return patch;
}

void LegacyFinalizers::changed(const kube::ObjectKey& key) {
  if (!is_running_) return;
  waiting_.insert(key);
  wake_.notify();
}

Task<void> LegacyFinalizers::run() {
  is_running_ = true;
  for (const StoredCache* cache : {&runtimes_, cluster_runtimes_}) {
    if (cache)
      cache->each([this](const kube::ObjectKey& key, const auto&) { waiting_.insert(key); });
  }
  while (true) {
    std::set<kube::ObjectKey> failed;
    while (!waiting_.empty()) {
      const kube::ObjectKey key = waiting_.extract(waiting_.begin()).value();
      if (!co_await check(key)) failed.insert(key);
      co_await kube::yield();  // a text may be large, and there may be many
    }
    co_await wake_.wait_for(
        client_.clock(), failed.empty() ? kube::Milliseconds(kIdle) : kube::Milliseconds(kRetry));
    waiting_.merge(failed);
  }
}

Task<bool> LegacyFinalizers::check(kube::ObjectKey key) {
  const bool is_cluster_scoped = key.ns.empty();
  const auto stored = (is_cluster_scoped ? *cluster_runtimes_ : runtimes_).find(key);
  std::string room;
  if (!stored || stored->body.text(room).find(kFinalizer) == std::string::npos) co_return true;
  co_return co_await drop(is_cluster_scoped ? kClusterTrainingRuntimes : kTrainingRuntimes, stored);
}

Task<bool> LegacyFinalizers::drop(kube::Resource resource,
                                  std::shared_ptr<const kube::StoredObject> stored) {
  auto patch = without_legacy_finalizer(*stored->object());
  if (!patch) co_return true;
  const std::string what = resource.kind + " " + stored->object_key.to_string();
  if (!is_enabled_) {
    if (!std::exchange(has_warned_, true)) {
      log_.warn("legacy finalizer",
                {{"object", what},
                 {"then",
                  "it cannot be deleted: set removeLegacyFinalizers in the configuration, "
                  "and apply the overlay legacy-finalizers"}});
    }
    co_return true;
  }
  const auto patched =
      co_await client_.merge_patch(resource, stored->object_key, std::move(*patch), {});
  if (patched) {
    log_.info("legacy finalizer removed", {{"object", what}});
    co_return true;
  }
  const auto code = patched.error().code;
  // If another client wrote in between, the watch reports that, and this task is woken.
  if (code == kube::ErrorCode::kNotFound || code == kube::ErrorCode::kConflict) co_return true;
  log_.warn("legacy finalizer", {{"object", what}, {"why", patched.error().message}});
  co_return false;
}

}  // namespace trainer
