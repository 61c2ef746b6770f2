#include "controller/cli/apply.hh"

#include <utility>

#include "controller/cli/documents.hh"
#include "kube/model/json_text.hh"
#include "kube/model/meta.hh"
#include "kube/model/resources.hh"

namespace trainer {
namespace {

using kube::Json;
using kube::Result;
using kube::Task;

constexpr std::chrono::seconds kLimit{60};
constexpr std::chrono::milliseconds kRetryPause{500};

// A kind whose CRD has just been written is not found for a moment.
bool is_worth_waiting(const kube::Error& error) {
  return error.is_transient() || error.code == kube::ErrorCode::kNotFound;
}

}  // namespace

Task<Result<Json>> apply_object(kube::ApiClient& client, kube::Resource resource, Json object) {
  const auto meta = kube::ObjectMeta::of(object);
  const kube::ObjectKey key = meta.key();
  const auto end = client.clock().steady() + kLimit;
  while (true) {
    auto answer = co_await client.apply(resource, key, object, kInstaller, true);
    if (answer) co_return kube::parse_json(*answer);
    if (!is_worth_waiting(answer.error()) || client.clock().steady() >= end)
      co_return tl::unexpected(answer.error().at(resource.kind + " " + key.to_string()));
    co_await kube::sleep(client.clock(), kRetryPause);
  }
}

Task<Result<void>> apply_crd(kube::ApiClient& client, Json crd) {
  const kube::ObjectKey key = kube::ObjectMeta::of(crd).key();
  const auto end = client.clock().steady() + kLimit;
  auto now = co_await apply_object(client, kube::kCustomResourceDefinitions, std::move(crd));
  while (now && !kube::has_condition(*now, "Established")) {
    if (client.clock().steady() >= end) {
      co_return kube::fail(kube::ErrorCode::kNotFound,
                           "CustomResourceDefinition {}: its kind is not served after {} s: see "
                           "its status.conditions",
                           key.name, kLimit.count());
    }
    co_await kube::sleep(client.clock(), kRetryPause);
    now = co_await client.get(kube::kCustomResourceDefinitions, key);
  }
  if (!now) co_return tl::unexpected(now.error());
  co_return Result<void>{};
}

}  // namespace trainer
