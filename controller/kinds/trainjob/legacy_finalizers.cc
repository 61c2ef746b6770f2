#include "controller/kinds/trainjob/legacy_finalizers.hh"

#include <string_view>
#include <utility>
#include <vector>

#include "api/runtime.hh"

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

Task<void> LegacyFinalizers::run() {
  while (true) {
    has_changed_ = false;
    const bool is_done = co_await drop_all();
    if (has_changed_) continue;
    co_await wake_.wait_for(client_.clock(),
                            is_done ? kube::Milliseconds(kIdle) : kube::Milliseconds(kRetry));
  }
}

Task<bool> LegacyFinalizers::drop_all() {
  using Pointer = std::shared_ptr<const kube::StoredObject>;
  std::vector<std::pair<kube::Resource, Pointer>> all;  // the caches change during the writes
  runtimes_.each([&all](const kube::ObjectKey&, const Pointer& stored) {
    all.emplace_back(kTrainingRuntimes, stored);
  });
  cluster_runtimes_.each([&all](const kube::ObjectKey&, const Pointer& stored) {
    all.emplace_back(kClusterTrainingRuntimes, stored);
  });
  bool is_done = true;
  for (auto& [resource, stored] : all) {
    std::string room;
    if (stored->body.text(room).find(kFinalizer) == std::string::npos) continue;
    is_done = co_await drop(resource, stored) && is_done;
  }
  co_return is_done;
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
  // Another write in between comes as an event, which wakes this task.
  if (code == kube::ErrorCode::kNotFound || code == kube::ErrorCode::kConflict) co_return true;
  log_.warn("legacy finalizer", {{"object", what}, {"why", patched.error().message}});
  co_return false;
}

}  // namespace trainer
